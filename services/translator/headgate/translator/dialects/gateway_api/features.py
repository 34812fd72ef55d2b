"""Features of Gateway API by upstream's names (`pkg/features` of version 1.6), and which are served.

`status.supportedFeatures` of GatewayClasses and the table of the documentation both come from this list.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple


class Feature(NamedTuple):
    """A feature of Gateway API."""

    name: str
    is_served: bool = True
    note: str = ""
    """Why it is not served, or how; Markdown."""


_HTTP_ROUTE: Final = (
    "303RedirectStatusCode",
    "307RedirectStatusCode",
    "308RedirectStatusCode",
    "BackendProtocolH2C",
    "BackendProtocolWebSocket",
    "BackendRequestHeaderModification",
    "BackendTimeout",
    "CORS",
    "DestinationPortMatching",
    "HostRewrite",
    "MethodMatching",
    "NamedRouteRule",
    "ParentRefPort",
    "PathRedirect",
    "PathRewrite",
    "PortRedirect",
    "QueryParamMatching",
    "RequestMirror",
    "RequestMultipleMirrors",
    "RequestPercentageMirror",
    "RequestTimeout",
    "ResponseHeaderModification",
    "Retry",
    "RetryBackendTimeout",
    "RetryConnectionError",
    "SchemeRedirect",
)
FEATURES: Final = (
    Feature("BackendTLSPolicy"),
    Feature("BackendTLSPolicySANValidation"),
    Feature("GRPCRoute"),
    Feature("GRPCRouteNamedRouteRule"),
    Feature("Gateway"),
    Feature("GatewayAddressEmpty"),
    Feature("GatewayBackendClientCertificate"),
    Feature("GatewayFrontendClientCertificateValidation", False),
    Feature("GatewayFrontendClientCertificateValidationInsecureFallback", False),
    Feature("GatewayHTTPListenerIsolation"),
    Feature("GatewayHTTPSListenerDetectMisdirectedRequests"),
    Feature("GatewayInfrastructure", False, "nothing is made for a Gateway"),
    Feature("GatewayPort8080", False, "the gateways' own port inside their container, unless it is set otherwise"),
    Feature("GatewayStaticAddresses", False),
    Feature("HTTPRoute"),
    *(Feature(f"HTTPRoute{name}") for name in _HTTP_ROUTE),
    Feature("ListenerSet"),
    Feature("Mesh", False, "and all features of meshes"),
    Feature("ReferenceGrant"),
    Feature("TCPRoute"),
    Feature("TLSRoute"),
    Feature("TLSRouteModeMixed"),
    Feature("TLSRouteModeTerminate"),
    Feature("UDPRoute"),
)
SERVED: Final = tuple(sorted(feature.name for feature in FEATURES if feature.is_served))
"""Names of the features that are served, as a GatewayClass shows them."""


def feature_table(features: Sequence[Feature]) -> str:
    """Return features as a Markdown table, for the documentation."""
    lines = (
        f"| `{each.name}` | {'yes' if each.is_served else 'no'} | {each.note} |".replace("|  |", "| |")
        for each in sorted(features)
    )
    return "\n".join(("| feature | served | |", "|---|---|---|", *lines)) + "\n"
