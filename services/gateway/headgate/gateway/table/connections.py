"""How connections to an upstream's endpoints are opened, compiled from its entry."""

from collections.abc import Mapping

from headgate.common.table import BackendProtocol, Provenance, Upstream
from headgate.gateway.errors import BadMatch
from headgate.gateway.model.connection import PLAIN, ConnectionSpec, FastCgiSettings
from headgate.gateway.proxy.heads.grammar import HOST
from headgate.gateway.tls.backend import BackendContexts

_NOBODY = Provenance(cluster="", kind="", namespace="", name="")


def hop_specs(contexts: BackendContexts) -> Mapping[str, ConnectionSpec]:
    """Return how gateways of other clusters are connected to, by what they speak."""
    tls = contexts.backend_context(Upstream(key="", protocol=BackendProtocol.HTTPS, provenance=_NOBODY))
    assert tls is not None
    return {
        "http": ConnectionSpec(is_hop=True),
        "https": ConnectionSpec("https", tls.context, tls.server_hostname, is_hop=True),
    }


def connection_spec(upstream: Upstream, contexts: BackendContexts) -> ConnectionSpec:
    """Return the spec that all endpoints of an upstream have.

    Raises:
        BadMatch: its `host` cannot stand in a Host header, or its protocol has no such PROXY header.
        TlsConfigError: what its `tls` asks for cannot be had; the text names the field.
    """
    if upstream.host and not HOST.fullmatch(upstream.host.encode()):
        raise BadMatch("host", f"{upstream.host!r} is no name or address with an optional port")
    if upstream.proxy_protocol == 1 and upstream.protocol is BackendProtocol.UDP:
        raise BadMatch("proxy_protocol", "version 1 is for TCP; datagrams need version 2")
    tls = contexts.backend_context(upstream)
    spec = ConnectionSpec(
        upstream.protocol.value,
        tls.context if tls is not None else None,
        tls.server_hostname if tls is not None else None,
        upstream.host,
        upstream.proxy_protocol or 0,
        upstream.max_idle,
        upstream.idle_timeout_s,
        upstream.max_requests_per_connection,
        connection_line=_connection_line(upstream),
        fastcgi=FastCgiSettings(upstream.fastcgi.index, upstream.fastcgi.params),
    )
    return PLAIN if spec == PLAIN else spec


def _connection_line(upstream: Upstream) -> bytes:
    if not upstream.sends_connection:
        return b""
    return b"Connection: close\r\n" if upstream.max_requests_per_connection == 1 else b"Connection: keep-alive\r\n"
