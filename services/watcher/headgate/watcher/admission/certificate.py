"""The webhook's certificate, read again whenever it changes, without a connection being lost.

It comes from files, or from the Secret in which the watchers keep it themselves (`keeper`). The files of a Secret that
Kubernetes mounts are replaced all at once, by a link that moves; others may be replaced one after the other, and for a
moment do not fit each other. What cannot be used never takes the place of what can.
"""

import ssl
from pathlib import Path
from typing import Protocol

from prometheus_client import Gauge

from headgate.common.pem import load_key_pair
from headgate.watcher.admission.kept_secret import KeptSecret
from headgate.watcher.admission.rotation import Kept
from headgate.watcher.errors import CertificateUnusable, WatcherError
from headgate.watcher.objects.certificates import read_certificate_facts

NOT_AFTER = Gauge(
    "headgate_admission_certificate_not_after_seconds",
    "When the certificate that the webhook presents ends, in seconds since 1970",
)


class CertificateSource(Protocol):
    """A TLS context for the server, with the certificate of now."""

    context: ssl.SSLContext
    pause_s: float
    """Between two looks whether there is another one."""

    async def refresh(self) -> bool:
        """Look for another certificate; return whether there was one.

        Raises:
            CertificateUnusable: it cannot be used; the certificate of before stays in force.
        """
        ...


class FileCertificate:
    """A certificate in files."""

    pause_s = 1.0

    def __init__(self, certificate_file: Path, key_file: Path, client_ca_file: Path | None = None) -> None:
        """Choose the files; nothing is read yet.

        Args:
            certificate_file: the server's certificate with its chain, PEM.
            key_file: its key, PEM, without a passphrase.
            client_ca_file: authorities of which clients must have a certificate; None: no client is asked for one.
        """
        self._files = certificate_file, key_file
        self._loaded: object = None
        self.context = _server_context()
        self._clients = _ClientAuthorities(self.context, client_ca_file)

    async def refresh(self) -> bool:
        """Read the files if they have changed."""
        self._clients.refresh()
        state = [_state_of(path) for path in self._files]
        if state == self._loaded:
            return False
        chain, key = (path.resolve() for path in self._files)
        try:
            _present(self.context, chain.read_bytes(), key.read_bytes())
        except OSError as error:  # ssl.SSLError is one
            raise CertificateUnusable(f"{chain} with key {key} cannot be used: {_reason(error)}") from error
        self._loaded = state
        return True


class SecretCertificate:
    """The certificate that the watchers of a cluster keep in a Secret."""

    def __init__(self, secret: KeptSecret, client_ca_file: Path | None = None, pause_s: float = 5.0) -> None:
        """Choose the Secret; nothing is read yet. `client_ca_file` is that of `FileCertificate`."""
        self._secret = secret
        self._loaded: object = None
        self.pause_s = pause_s
        self.context = _server_context()
        self._clients = _ClientAuthorities(self.context, client_ca_file)

    async def refresh(self) -> bool:
        """Read the Secret."""
        self._clients.refresh()
        try:
            kept, _ = await self._secret.read()
        except CertificateUnusable:
            raise
        except WatcherError as error:
            raise CertificateUnusable(f"{self._secret} cannot be read: {error}") from error
        return self._take(kept)

    def _take(self, kept: Kept) -> bool:
        pair = kept.present
        if pair is None:
            raise CertificateUnusable(f"{self._secret} holds no certificate yet: a watcher makes it")
        if pair == self._loaded:
            return False
        try:
            _present(self.context, pair.chain_pem, pair.key_pem.reveal())
        except OSError as error:
            raise CertificateUnusable(f"the certificate in {self._secret} cannot be used: {_reason(error)}") from error
        self._loaded = pair
        return True


class _ClientAuthorities:
    """Of which clients must have a certificate, where there is a file of them."""

    def __init__(self, context: ssl.SSLContext, path: Path | None) -> None:
        self._context, self._path = context, path
        self._loaded: object = None

    def refresh(self) -> None:
        if self._path is None:
            return
        state = _state_of(self._path)
        if self._loaded is not None and state == self._loaded:
            return
        try:
            self._context.load_verify_locations(self._path)
        except OSError as error:
            raise CertificateUnusable(f"{self._path} cannot be used: {_reason(error)}") from error
        self._context.verify_mode = ssl.CERT_REQUIRED
        self._loaded = state


def _server_context() -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.set_alpn_protocols(["http/1.1"])
    return context


def _present(context: ssl.SSLContext, chain_pem: bytes, key_pem: bytes) -> None:
    """Present a certificate from now on; a pair that cannot be used, `ssl.SSLError`, leaves the one of before."""
    load_key_pair(_server_context(), chain_pem, key_pem)
    load_key_pair(context, chain_pem, key_pem)
    if ends := read_certificate_facts(chain_pem, key_pem).not_after:
        NOT_AFTER.set(ends.timestamp())


def _state_of(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _reason(error: OSError) -> str:
    return getattr(error, "reason", "") or error.strerror or str(error)
