"""Certificates, and what is asked of TLS clients."""

from typing import Final, Literal

from pydantic import Field

from headgate.common.sealing import ClusterValue
from headgate.common.table.base import Entry, Provenance

Curve = Literal["X25519", "P-256", "P-384", "P-521", "X25519MLKEM768", "SecP256r1MLKEM768", "SecP384r1MLKEM1024"]
"""A group for the exchange of keys, as OpenSSL names it."""
OTHER_NAMES: Final = ""
"""The server name of a certificate for names that no other has, and for clients that send none."""


class Certificate(Entry):
    """A TLS certificate, its sealed key and the server names that it is presented for."""

    key: str
    """Unique in the table: `<cluster>/<namespace>/<secret>`."""
    server_names: tuple[str, ...]
    """Lower case, sorted; `*.foo.com` for exactly one more label, and `OTHER_NAMES`."""
    chain_pem: str
    private_key: ClusterValue
    fingerprint: str
    not_after: str = ""
    """RFC 3339."""
    provenance: Provenance

    @property
    def shown_names(self) -> tuple[str, ...]:
        """The server names as people read them."""
        return tuple(name or "any other name" for name in self.server_names)


class ClientAuth(Entry):
    """Certificates of clients."""

    mode: Literal["required", "required-any", "optional", "optional-unverified", "optional-any"] = "required"
    """`required`: no handshake without one. `optional`: what is presented must be good; without one the request is
    passed on and marked so. `optional-unverified`: one that no known authority vouches for is passed on too, and
    marked so; one that has ended or is revoked is not. `required-any` and `optional-any`: whatever certificate is
    presented is passed on, and marked if it does not verify; the first has no handshake without one."""
    ca_pem: str
    """Authorities, one or more; `required-any` and `optional-any` may have none."""
    refusals: Literal["handshake", "answer"] = "handshake"
    """Where a client is refused. `answer`: handshakes finish, and requests get a 400 or are sent to `error_page`, for a
    certificate that does not verify too, as with nginx. Sessions are not resumed then."""
    redirect_http: bool = False
    """A request over plain HTTP that would be refused for want of a certificate is redirected to HTTPS (308)."""
    depth: int = Field(default=1, ge=1, le=16)
    """Of the chain, as nginx `ssl_verify_depth` counts."""
    crl_pem: str = ""
    pass_certificate: bool = False
    """Send the certificate to the upstream (`ssl-client-cert`, URL-encoded PEM) besides its verdict and names."""
    allowed_names: tuple[str, ...] = ()
    """RE2 patterns of which one must match the subject's name (RFC 2253); all pass without any."""
    skip_paths: tuple[str, ...] = ()
    """RE2 patterns: requests whose path matches one of them from its beginning need no certificate; the handshake then
    asks for one without insisting (Apache APISIX `skip_mtls_uri_regex`)."""
    error_page: str = ""
    """URL that a client without a certificate is sent to; its handshake finishes. A bad certificate ends it, unless
    `refusals` are answers."""

    @property
    def is_for_requests(self) -> bool:
        """Whether some of it can only be judged by a request, once the handshake is over."""
        is_late = self.refusals == "answer" or self.mode == "optional-unverified"
        return is_late or bool(self.allowed_names or self.skip_paths or self.error_page)


class TlsPolicy(Entry):
    """How TLS is spoken for one server name."""

    min_version: Literal["", "1.0", "1.1", "1.2", "1.3"] = ""
    max_version: Literal["", "1.0", "1.1", "1.2", "1.3"] = ""
    ciphers: str = ""
    """OpenSSL cipher list for TLS 1.2 and older; empty is the gateway's own."""
    prefer_server_ciphers: bool = False
    curves: tuple[Curve, ...] = ()
    """The preferred first; none are OpenSSL's own. Those that a gateway's OpenSSL does not know are left out."""
    session_tickets: bool = True
    """Whether sessions are resumed by tickets."""
    strict_names: bool = False
    """Handshakes for names that no certificate has, and those without a name, fail; else the fallback is presented."""
    alpn: tuple[Literal["h2", "http/1.1"], ...] = ("h2", "http/1.1")
    client_auth: ClientAuth | None = None
