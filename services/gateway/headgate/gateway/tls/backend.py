"""TLS towards endpoints: what is verified, by which names, and who we are.

A `BackendTls` that cannot be put into effect raises; its upstream is then unavailable, with that reason. It is never
spoken to without the verification that was asked for.
"""

import contextlib
import ipaddress
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

from cryptography import x509

from headgate.common.errors import SealingError
from headgate.common.pem import load_key_pair
from headgate.common.sealing import Purpose, Unseal
from headgate.common.table import BackendProtocol, BackendTls, Upstream
from headgate.gateway.tls.errors import TlsConfigError
from headgate.gateway.tls.loading import (
    load_authorities,
    set_ciphers,
    set_versions,
    verified_intermediates,
)

_ALPN: Final = {BackendProtocol.HTTPS: ["http/1.1"], BackendProtocol.H2: ["h2"]}
_SPEAK_TLS: Final = (BackendProtocol.HTTPS, BackendProtocol.H2, BackendProtocol.TLS)


class BackendContext(NamedTuple):
    """How to open a connection to an upstream's endpoints; equal for upstreams that may share connections."""

    context: ssl.SSLContext
    server_hostname: str | None
    """Sent as SNI and, if the name is verified, compared; None: the endpoint's address."""


class _EndpointTls(ssl.SSLObject):
    """A connection that checks after the handshake what OpenSSL cannot be told through `ssl`."""

    context: "_ClientContext"

    def do_handshake(self) -> None:
        """Shake hands; raises ssl.SSLCertVerificationError for a chain too long or a name not expected."""
        super().do_handshake()
        expected = self.context
        if expected.depth is not None and verified_intermediates(self) > expected.depth:
            raise _refusal(f"certificate chain has more than {expected.depth} intermediates")
        if expected.subject_names:
            certificate = self.getpeercert(binary_form=True)
            if not certificate or not _is_named(x509.load_der_x509_certificate(certificate), expected.subject_names):
                raise _refusal(f"certificate has none of the names {', '.join(expected.subject_names)}")


class _ClientContext(ssl.SSLContext):
    sslobject_class = _EndpointTls
    depth: int | None = None
    subject_names: tuple[str, ...] = ()


class BackendContexts:
    """Contexts of all upstreams, one for each distinct content; collected with the last upstream that holds one.

    Args:
        unseal: opens the key of a client certificate; raises SealingError.
    """

    def __init__(self, unseal: Unseal) -> None:
        self._unseal = unseal
        self._contexts: WeakValueDictionary[tuple[BackendTls, str | None, BackendProtocol], _ClientContext] = (
            WeakValueDictionary()
        )

    def __len__(self) -> int:
        return len(self._contexts)

    def backend_context(self, upstream: Upstream) -> BackendContext | None:
        """Return how an upstream is connected to; None: without TLS.

        Raises:
            TlsConfigError: what it asks for cannot be had; the text names the field.
        """
        if upstream.protocol not in _SPEAK_TLS:
            return None
        tls = upstream.tls or BackendTls()
        name = tls.server_name or upstream.host or None
        # The sealed key is another one each time that it is sealed, and dictionaries cannot hold it; the certificate
        # says which key it is, though not who may use it: that depends on the cluster.
        content = tls.model_copy(update={"private_key": None, "server_name": ""})
        key = (content, tls.private_key.cluster if tls.private_key else None, upstream.protocol)
        context = self._contexts.get(key)
        if context is None:
            context = self._contexts[key] = self._load(tls, upstream.protocol)
        return BackendContext(context, _sni(name))

    def _load(self, tls: BackendTls, protocol: BackendProtocol) -> _ClientContext:
        context = _ClientContext(ssl.PROTOCOL_TLS_CLIENT)
        with _in_field():
            set_versions(context, tls.min_version or "1.2")
            if tls.ciphers:
                set_ciphers(context, tls.ciphers)
            _verify(context, tls)
        self._identify(context, tls)
        if protocol in _ALPN:
            context.set_alpn_protocols(_ALPN[protocol])
        return context

    def _identify(self, context: ssl.SSLContext, tls: BackendTls) -> None:
        if not tls.certificate_pem:
            return
        if tls.private_key is None:
            raise TlsConfigError("tls.private_key: missing, as there is a certificate_pem")
        try:
            load_key_pair(
                context, tls.certificate_pem.encode(), self._unseal(tls.private_key, Purpose.PRIVATE_KEY).reveal()
            )
        except SealingError as error:
            raise TlsConfigError(f"tls.private_key: cannot be opened: {error}") from error
        except (ssl.SSLError, ValueError) as error:
            raise TlsConfigError(f"tls.certificate_pem: no pair with private_key: {error}") from error


def _verify(context: _ClientContext, tls: BackendTls) -> None:
    if not tls.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return
    context.check_hostname = not tls.subject_names
    context.subject_names = tls.subject_names
    context.depth = tls.depth
    if tls.ca_pem:
        load_authorities(context, tls.ca_pem)
        return
    paths = ssl.get_default_verify_paths()
    if not (paths.cafile or (paths.capath and any(Path(paths.capath).iterdir()))):
        raise TlsConfigError("verify: there is no ca_pem, and this system has no authorities")
    context.load_default_certs(ssl.Purpose.SERVER_AUTH)


@contextlib.contextmanager
def _in_field() -> Iterator[None]:
    try:
        yield
    except TlsConfigError as error:
        raise TlsConfigError(f"tls.{error}") from error


def _refusal(reason: str) -> ssl.SSLCertVerificationError:
    return ssl.SSLCertVerificationError(ssl.SSL_ERROR_SSL, reason)


def _sni(name: str | None) -> str | None:
    """Strip the port from a Host value, which may have one."""
    if name is None:
        return None
    host, colon, port = name.rpartition(":")
    name = host if colon and port.isdigit() and (":" not in host or host.endswith("]")) else name
    return name.strip("[]")


def _is_named(certificate: x509.Certificate, names: tuple[str, ...]) -> bool:
    """Tell whether a certificate is for one of the names: DNS, IP address or URI (a SPIFFE id, say)."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return False
    dns = [name.lower() for name in found.get_values_for_type(x509.DNSName)]
    others = {*found.get_values_for_type(x509.UniformResourceIdentifier)}
    others |= {str(address) for address in found.get_values_for_type(x509.IPAddress)}
    return any(name in others or _normal_address(name) in others or _covers(dns, name.lower()) for name in names)


def _normal_address(name: str) -> str:
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        return name


def _covers(patterns: list[str], name: str) -> bool:
    """Compare DNS names; a `*` stands for the whole first label (RFC 9525 section 6.3)."""
    label, dot, parent = name.removesuffix(".").partition(".")
    return any(pattern in (label + dot + parent, "*." + parent) for pattern in patterns)
