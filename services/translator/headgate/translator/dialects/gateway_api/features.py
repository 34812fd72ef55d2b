"""Features of Gateway API by upstream's names (`pkg/features` of versions 1.6 and 1.7), and which are served.

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
    needs_addresses: bool = False
    """Whether it is served only where each Gateway has addresses of its own."""
    needs_infrastructure: bool = False
    """Whether it is served only where something is made for each Gateway."""


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
_NEW: Final = "by the name of Gateway API 1.7"
FEATURES: Final = (
    Feature("BackendTLSPolicy"),
    Feature("BackendTLSPolicySANValidation"),
    Feature("GRPCRoute"),
    Feature("GRPCRouteNamedRouteRule"),
    Feature("GRPCRouteRequestHeaderModifier", note=_NEW),
    Feature("Gateway"),
    Feature("GatewayAddressEmpty"),
    Feature("GatewayBackendClientCertificate"),
    Feature("GatewayFrontendClientCertificateValidation", needs_addresses=True),
    Feature("GatewayFrontendClientCertificateValidationInsecureFallback", needs_addresses=True),
    Feature("GatewayHTTPListenerIsolation"),
    Feature("GatewayHTTPSListenerDetectMisdirectedRequests"),
    Feature(
        "GatewayInfrastructure",
        note="a [ServiceAccount](#a-serviceaccount-for-each-gateway)",
        needs_infrastructure=True,
    ),
    Feature("GatewayPort8080", needs_addresses=True),
    Feature("GatewayRouteHostnameIntersectionPrecedence", note=_NEW),
    Feature("GatewayStaticAddresses", needs_addresses=True),
    Feature("HTTPRoute"),
    *(Feature(f"HTTPRoute{name}") for name in _HTTP_ROUTE),
    Feature("HTTPRouteBackendURLRewrite", note=_NEW),
    Feature("HTTPRouteRetryCodes", note=_NEW),
    Feature("ListenerSet"),
    Feature("Mesh", False, "and all features of meshes"),
    Feature("ReferenceGrant"),
    Feature("TCPRoute"),
    Feature("TLSRoute"),
    Feature("TLSRouteModeMixed"),
    Feature("TLSRouteModeTerminate"),
    Feature("UDPRoute"),
)


def served_features(*, have_addresses: bool, have_infrastructure: bool) -> tuple[str, ...]:
    """Return the names of the features that are served, sorted, as a GatewayClass shows them.

    Args:
        have_addresses: whether Gateways have addresses of their own.
        have_infrastructure: whether something is made for each Gateway.
    """
    served = (
        each.name
        for each in FEATURES
        if each.is_served
        and (have_addresses or not each.needs_addresses)
        and (have_infrastructure or not each.needs_infrastructure)
    )
    return tuple(sorted(served))


def feature_table(features: Sequence[Feature]) -> str:
    """Return features as a Markdown table, for the documentation."""
    lines = (f"| `{each.name}` | {_served(each)} | {each.note} |".replace("|  |", "| |") for each in sorted(features))
    return "\n".join(("| feature | served | |", "|---|---|---|", *lines)) + "\n"


def _served(feature: Feature) -> str:
    if not feature.is_served:
        return "no"
    if feature.needs_infrastructure:
        return "with `gateway_infrastructure`"
    return "with a pool of addresses" if feature.needs_addresses else "yes"
