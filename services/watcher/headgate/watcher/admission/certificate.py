"""The webhook's certificate, read again whenever its files change, without a connection being lost.

The files of a Secret that Kubernetes mounts are replaced all at once, by a link that moves; others may be replaced one
after the other, and for a moment do not fit each other. What cannot be used never takes the place of what can.
"""

import ssl
from pathlib import Path

from headgate.watcher.errors import WatcherError


class CertificateUnusable(WatcherError):
    """The files cannot be used; says which, and why."""


class ServerCertificate:
    """A TLS context for the server, with the certificate of now."""

    def __init__(self, certificate_file: Path, key_file: Path, client_ca_file: Path | None = None) -> None:
        """Choose the files; nothing is read yet.

        Args:
            certificate_file: the server's certificate with its chain, PEM.
            key_file: its key, PEM, without a passphrase.
            client_ca_file: authorities of which clients must have a certificate; None: nobody is asked for one.
        """
        self._files = certificate_file, key_file
        self._client_ca_file = client_ca_file
        self._loaded: object = None
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.context.set_alpn_protocols(["http/1.1"])

    def refresh(self) -> bool:
        """Read the files if they have changed; return whether they had.

        Raises:
            CertificateUnusable: they cannot be used; the certificate of before stays in force.
        """
        state = [_state_of(path) for path in (*self._files, self._client_ca_file)]
        if state == self._loaded:
            return False
        chain, key = (path.resolve() for path in self._files)
        try:
            _load(ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), chain, key)
            _load(self.context, chain, key)
        except OSError as error:  # ssl.SSLError is one
            raise CertificateUnusable(f"{chain} with key {key} cannot be used: {_reason(error)}") from error
        if self._client_ca_file is not None:
            self._trust(self._client_ca_file)
        self._loaded = state
        return True

    def _trust(self, client_ca_file: Path) -> None:
        try:
            self.context.load_verify_locations(client_ca_file)
        except OSError as error:
            raise CertificateUnusable(f"{client_ca_file} cannot be used: {_reason(error)}") from error
        self.context.verify_mode = ssl.CERT_REQUIRED


def _load(context: ssl.SSLContext, chain: Path, key: Path) -> None:
    # Without a passphrase OpenSSL would ask on the terminal for that of an encrypted key.
    context.load_cert_chain(chain, key, password="")


def _state_of(path: Path | None) -> tuple[int, int, int] | None:
    try:
        found = path.stat() if path else None
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_size, found.st_ino) if found else None


def _reason(error: OSError) -> str:
    return getattr(error, "reason", "") or error.strerror or str(error)
