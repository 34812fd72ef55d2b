"""Where NATS is and how to get in, without connecting to it."""

import ssl
from dataclasses import dataclass, field
from pathlib import Path

from headgate.common.errors import SettingsError
from headgate.common.trust import verifying_context


@dataclass(frozen=True, slots=True)
class NatsTls:
    """What a connection over TLS is made with; the servers' certificates are always verified."""

    ca_file: Path | None = None
    """Authorities that servers may be signed by, PEM; None: the system's."""
    certificate_file: Path | None = None
    """Chain that is shown to servers which ask for one, PEM."""
    key_file: Path | None = None
    server_name: str = ""
    """Name that a server's certificate must have; empty: the host that was connected to."""


@dataclass(frozen=True, slots=True)
class NatsAccess:
    """Everything that is needed to connect."""

    url: str
    """Server or servers, separated by commas."""
    user: str = ""
    """Empty for none: no authentication, or by certificate."""
    password: str = field(default="", repr=False)
    inbox: str = "_INBOX"
    """Subjects below this one are where answers come: what a user with few rights may subscribe to."""
    tls: NatsTls | None = None
    """None: in the clear, unless a server asks for TLS."""

    @property
    def servers(self) -> list[str]:
        """The servers one by one."""
        return [server.strip() for server in self.url.split(",") if server.strip()]

    def __str__(self) -> str:
        """The servers, without credentials."""
        return ",".join(server.rsplit("@", 1)[-1] for server in self.servers)


class TlsFiles:
    """The TLS context of now: files that were replaced since are read again."""

    def __init__(self, tls: NatsTls) -> None:
        """Read the files.

        Raises:
            SettingsError: one cannot be used; names it.
        """
        self._tls = tls
        self._state = self._look()
        self._context = make_context(tls)

    def context(self) -> ssl.SSLContext:
        """Return what to connect with.

        Raises:
            SettingsError: the files were replaced by what cannot be used; what was read before is used next time.
        """
        state = self._look()
        if state != self._state:
            self._state = state
            self._context = make_context(self._tls)
        return self._context

    def _look(self) -> list[tuple[int, int] | None]:
        return [_state_of(path) for path in (self._tls.ca_file, self._tls.certificate_file, self._tls.key_file)]


def make_context(tls: NatsTls) -> ssl.SSLContext:
    """Make a client's context that verifies chain and name.

    Raises:
        SettingsError: a file cannot be used; names the setting and the file.
    """
    try:
        context = verifying_context(tls.ca_file)
    except OSError as error:  # ssl.SSLError is one
        raise SettingsError(f"nats_ca_file: {tls.ca_file} cannot be used: {_reason(error)}") from error
    if tls.certificate_file is not None:
        try:
            context.load_cert_chain(tls.certificate_file, tls.key_file)
        except OSError as error:
            raise SettingsError(
                f"nats_certificate_file: {tls.certificate_file} with key {tls.key_file} cannot be used: "
                f"{_reason(error)}"
            ) from error
    return context


def _state_of(path: Path | None) -> tuple[int, int] | None:
    try:
        found = path.stat() if path else None
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_size) if found else None


def _reason(error: OSError) -> str:
    return getattr(error, "reason", "") or error.strerror or str(error)
