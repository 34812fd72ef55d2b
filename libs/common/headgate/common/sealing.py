"""Sealing of secrets: what crosses the bus can be read by gateways only.

A watcher seals each value to the gateways' public keys (libsodium's sealed box: X25519, XSalsa20-Poly1305, an ephemeral
sender); only gateways hold the private halves. Several recipients at once let keys be rotated: seal to both, move
the gateways, drop the old one. The translator passes sealed values on and can open none.

Rejected: encrypting the bus alone (TLS does that besides): the log and the store would keep keys readable at rest,
and every translator and console could read them.
"""

import base64
import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from nacl.exceptions import CryptoError
from nacl.public import PrivateKey, PublicKey, SealedBox
from pydantic import BaseModel, ConfigDict

from headgate.common.errors import SealingError
from headgate.common.secret import Secret

PRIVATE_KEY_FILE = "gateway.key"
PUBLIC_KEY_FILE = "gateway.pub"


class SealedValue(BaseModel):
    """One value, sealed once for each recipient."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    boxes: dict[str, str]
    """Recipient (`recipient_id`) to sealed box in base64."""

    def __repr__(self) -> str:
        return f"SealedValue(***, recipients={sorted(self.boxes)})"

    __str__ = __repr__


class CertificateFacts(BaseModel):
    """What is public about a TLS certificate, and what only the holder of its key could check."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    chain_pem: str
    names: tuple[str, ...] = ()
    """DNS names (and addresses) that the leaf is valid for."""
    not_before: datetime | None = None
    not_after: datetime | None = None
    fingerprint: str = ""
    """SHA-256 of the leaf in DER, hex."""
    problem: str | None = None
    """Why the pair cannot be used: unreadable certificate or key, or a key that belongs to another certificate."""


class SealedSecret(BaseModel):
    """What a delta carries under `sealed` in place of a Secret's `data`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    values: dict[str, SealedValue]
    certificate: CertificateFacts | None = None
    """Set for secrets of type kubernetes.io/tls."""
    authorities_pem: str | None = None
    """Certificates under `ca.crt`, which are public; None where there is none, empty where it is unreadable."""
    revocations_pem: str | None = None
    """Revocation list under `ca.crl` or `crl.pem`, likewise."""


def recipient_id(public_key: PublicKey) -> str:
    """Short name of a recipient: the first 16 hex digits of its public key's SHA-256."""
    return hashlib.sha256(bytes(public_key)).hexdigest()[:16]


def seal(value: bytes, recipients: Iterable[PublicKey]) -> SealedValue:
    """Seal a value for every recipient."""
    boxes = {recipient_id(key): base64.b64encode(SealedBox(key).encrypt(value)).decode() for key in recipients}
    if not boxes:
        raise SealingError("there is no recipient to seal for: set HEADGATE_SEALING_PUBLIC_KEYS")
    return SealedValue(boxes=boxes)


class Unsealer:
    """Opens what was sealed for any of a gateway's private keys."""

    def __init__(self, private_keys: Sequence[PrivateKey]) -> None:
        self._boxes: Mapping[str, SealedBox[PrivateKey]] = {
            recipient_id(key.public_key): SealedBox(key) for key in private_keys
        }

    def open(self, sealed: SealedValue) -> Secret[bytes]:
        """Return the value.

        Raises:
            SealingError: it was sealed for other keys, or is damaged.
        """
        for recipient, box in self._boxes.items():
            if recipient in sealed.boxes:
                try:
                    return Secret(box.decrypt(base64.b64decode(sealed.boxes[recipient], validate=True)))
                except (CryptoError, ValueError) as error:
                    raise SealingError(f"the value sealed for {recipient} is damaged") from error
        raise SealingError(
            f"sealed for {', '.join(sorted(sealed.boxes))}, but this gateway holds {', '.join(self._boxes) or 'no key'}"
        )


def load_or_create_key_pair(folder: Path) -> PrivateKey:
    """Return the key pair kept in a data directory, making it on first use.

    Two files: `gateway.key` (private half in base64, mode 0600; gateways only) and `gateway.pub` (public half).
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / PRIVATE_KEY_FILE
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        key = read_private_key(path)
    else:
        key = PrivateKey.generate()
        with os.fdopen(descriptor, "wb") as file:
            file.write(key_pair_files(key)[PRIVATE_KEY_FILE])
    (folder / PUBLIC_KEY_FILE).write_bytes(key_pair_files(key)[PUBLIC_KEY_FILE])
    return key


def key_pair_files(key: PrivateKey) -> dict[str, bytes]:
    """Return what the two files of a key pair hold, by their names."""
    halves = {PRIVATE_KEY_FILE: bytes(key), PUBLIC_KEY_FILE: bytes(key.public_key)}
    return {name: base64.b64encode(half) + b"\n" for name, half in halves.items()}


def read_private_key(path: Path) -> PrivateKey:
    """Read a private key that `load_or_create_key_pair` wrote."""
    try:
        return PrivateKey(base64.b64decode(path.read_bytes(), validate=False))
    except (OSError, ValueError, CryptoError, TypeError) as error:
        raise SealingError(f"{path} does not hold a private key (32 bytes in base64)") from error


def parse_public_key(text: str) -> PublicKey:
    """Read a public key: 32 bytes in base64, as in `gateway.pub`."""
    try:
        return PublicKey(base64.b64decode(text.strip(), validate=True))
    except (ValueError, CryptoError, TypeError) as error:
        raise SealingError(f"{text[:60]!r} is not a public key (32 bytes in base64)") from error
