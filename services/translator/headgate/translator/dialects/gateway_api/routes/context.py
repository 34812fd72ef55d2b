"""What is known wherever a part of a route is translated."""

from typing import Final, NamedTuple

from headgate.common.resources import ObjectRef
from headgate.common.table import BackendProtocol
from headgate.translator.dialects.gateway_api.gateways.client_certificate import SecretName
from headgate.translator.sources.policies import ObjectTarget
from headgate.translator.world.graph import Lookups

OF_HTTP: Final = (
    "RequestHeaderModifier",
    "ResponseHeaderModifier",
    "RequestRedirect",
    "URLRewrite",
    "RequestMirror",
    "CORS",
    "ExtensionRef",
    "ExternalAuth",
)
"""Types of filters that are served for rules of HTTPRoutes."""
OF_GRPC: Final = ("RequestHeaderModifier", "ResponseHeaderModifier", "RequestMirror", "ExtensionRef")
"""The same of GRPCRoutes."""


class RouteContext(NamedTuple):
    """The route, and where it is looked at."""

    ref: ObjectRef
    kind: str
    lookups: Lookups
    is_grpc: bool = False
    """Services are spoken to by HTTP/2 whatever is not said of them."""
    shown: SecretName | None = None
    """Certificate that Services are shown over TLS."""
    parameters: ObjectTarget | None = None
    """Of the first of its Gateways that names any, which plugins may need."""
    stream: BackendProtocol | None = None
    """What is spoken with Services of streams: `TCP` or `UDP`."""
    ends_tls: bool = False
    """The TLS of a stream ends here, so that a BackendTLSPolicy may have it spoken with Services again."""

    @property
    def filter_types(self) -> tuple[str, ...]:
        """Filters that a rule may have."""
        return OF_GRPC if self.is_grpc else OF_HTTP
