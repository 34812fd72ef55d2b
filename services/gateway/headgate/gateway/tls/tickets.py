"""Keys of session tickets that several processes share, so that a client may come back to any of them.

A key belongs to a period of eight hours and to a scope: what a context presents and asks for. A ticket of one host is
nothing to another, and none outlives a change of its host's policy or certificate. Keys are derived, never sent:

- The workers of one replica share a seed that their parent draws when it starts. It moves on with each period by a
  function that cannot be undone, and the one before is forgotten: who takes the process later cannot read what was
  recorded earlier (`RatchetFile`).
- Replicas share a secret in a file, if the operator gives one. Who has the file can read sessions of TLS 1.2 that were
  resumed, recorded ones too, until it is replaced; hence there is none by default (`SecretFile`).

A ticket of the period before leads to a whole handshake, as OpenSSL holds one key for a context here.
"""

import hashlib
import hmac
import logging
import os
import secrets
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from headgate.common.errors import SettingsError
from headgate.gateway.tls.openssl import SET_TICKET_KEYS, pointer, usable_library

_log = logging.getLogger(__name__)

PERIOD_S: Final = 8 * 3600
KEY_BYTES: Final = 80
"""As OpenSSL takes them: 16 for the key's name, 32 to sign, 32 to encrypt (AES-256)."""
MIN_SECRET: Final = 32
"""Bytes of a secret in a file."""


class TicketSource(Protocol):
    """Where the secret of a period comes from."""

    def secret_of(self, period: int) -> bytes:
        """Return the secret of a period, which is that of now or a later one than was asked for before."""


class HostContext(ssl.SSLContext):
    """A context whose tickets have shared keys."""

    scope: bytes
    period: int


class TicketKeys:
    """Gives contexts the keys of their scope and of the present period.

    Args:
        source: of secrets.
        clock: seconds since 1970.
    """

    def __init__(self, source: TicketSource, clock: Callable[[], float] = time.time) -> None:
        self._source = source
        self._clock = clock
        self._period = -1
        self._secret = b""

    def new_context(self, scope: bytes) -> ssl.SSLContext:
        """Return a new server context with keys for a scope; a plain one where this build of Python cannot set them."""
        if usable_library() is None:
            return ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context = HostContext(ssl.PROTOCOL_TLS_SERVER)
        context.scope, context.period = scope, -1
        self.refresh(context)
        return context

    def refresh(self, context: ssl.SSLContext) -> None:
        """Give a context of ours the keys of the present period, if it has others."""
        if not isinstance(context, HostContext):
            return
        if int(self._clock() // PERIOD_S) == context.period:
            return
        self._move_on()
        library = usable_library()
        keys = _expand(self._secret, context.scope)
        if library is not None and library.control(pointer(context), SET_TICKET_KEYS, len(keys), keys):
            context.period = self._period

    def sealing_key(self, scope: bytes) -> bytes:
        """Return the key of the present period for tickets that are sealed without OpenSSL: 32 bytes."""
        self._move_on()
        return hmac.digest(self._secret, b"headgate sealed tickets" + scope + b"\1", "sha256")

    @property
    def now(self) -> float:
        """Seconds since 1970."""
        return self._clock()

    def _move_on(self) -> None:
        period = int(self._clock() // PERIOD_S)
        if period > self._period:
            self._secret, self._period = self._source.secret_of(period), period


def _expand(secret: bytes, scope: bytes) -> bytes:
    """Derive the keys of a scope (HKDF-Expand of RFC 5869 with SHA-256)."""
    made = block = b""
    for number in range(1, -(-KEY_BYTES // 32) + 1):
        block = hmac.digest(secret, block + b"headgate session tickets" + scope + bytes((number,)), "sha256")
        made += block
    return made[:KEY_BYTES]


class Seed(NamedTuple):
    """A secret that moves on with each period, and from which no earlier one can be found."""

    period: int
    secret: bytes

    def at(self, period: int) -> "Seed":
        """Return the seed of a period; of one that is past this one."""
        seed = self
        while seed.period < period:
            seed = Seed(seed.period + 1, hmac.digest(seed.secret, b"next period", "sha256"))
        return seed


class RatchetMemory:
    """The seed of a process that is alone."""

    def __init__(self) -> None:
        self._seed = Seed(0, b"")

    def secret_of(self, period: int) -> bytes:
        """Return the secret of a period, and forget those before."""
        self._seed = self._seed.at(period) if self._seed.secret else Seed(period, secrets.token_bytes(32))
        return self._seed.secret


class RatchetFile:
    """The seed of one replica's workers, in a file that their parent writes.

    Args:
        path: of the file, in a folder that nobody else may read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seed: Seed | None = None

    @staticmethod
    def begin(path: Path, now: float) -> "RatchetFile":
        """Draw a seed for a new replica and write it down."""
        made = RatchetFile(path)
        made._write(Seed(int(now // PERIOD_S), secrets.token_bytes(32)))
        return made

    def advance(self, now: float) -> None:
        """Replace what is written by the seed of the present period."""
        seed = self._read()
        moved = seed.at(int(now // PERIOD_S))
        if moved != seed:
            self._write(moved)

    def secret_of(self, period: int) -> bytes:
        """Return the secret of a period, and forget those before."""
        self._seed = (self._seed or self._read()).at(period)
        return self._seed.secret

    def _read(self) -> Seed:
        period, _, secret = self._path.read_text(encoding="ascii").partition(" ")
        return Seed(int(period), bytes.fromhex(secret))

    def _write(self, seed: Seed) -> None:
        beside = self._path.with_suffix(".new")
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as file:
            file.write(f"{seed.period} {seed.secret.hex()}")
        beside.replace(self._path)


class SecretFile:
    """A secret that replicas share, in a file of the operator's.

    Args:
        path: of the file, which is read once in each period.

    Raises:
        SettingsError: it cannot be read, or is too short.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._content = self._read()
        except (OSError, ValueError) as error:
            raise SettingsError(f"tls_ticket_key_file: {path} cannot be used: {error}") from error

    def secret_of(self, period: int) -> bytes:
        """Return the secret of a period."""
        try:
            self._content = self._read()
        except (OSError, ValueError) as error:
            _log.warning("secret of tickets not read again", extra={"file": str(self._path), "error": str(error)})
        return hmac.digest(hashlib.sha256(self._content).digest(), f"period {period}".encode(), "sha256")

    def _read(self) -> bytes:
        content = self._path.read_bytes().strip()
        if len(content) < MIN_SECRET:
            raise ValueError(
                f"it has {len(content)} bytes: at least {MIN_SECRET}, such as `openssl rand -hex 32` makes"
            )
        return content
