"""How connections to an upstream's endpoints are opened, compiled from its entry."""

from headgate.common.table import Upstream
from headgate.gateway.proxy.spec import PLAIN, ConnectionSpec
from headgate.gateway.tls.backend import BackendContexts


def connection_spec(upstream: Upstream, contexts: BackendContexts) -> ConnectionSpec:
    """Return the spec that all endpoints of an upstream have.

    Raises:
        TlsConfigError: what its `tls` asks for cannot be had; the text names the field.
    """
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
    )
    return PLAIN if spec == PLAIN else spec
