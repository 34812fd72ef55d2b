"""How each field compares with the specification of Gateway API, for audits and the documentation.

A field that no row speaks of is followed; one that no model has is named by the object's problems.
"""

from typing import Final

from headgate.translator.manifests.verdicts import FieldVerdict, Likeness


def _row(*fields: str, is_: Likeness, note: str = "", value: str = "", label: str = "") -> FieldVerdict:
    return FieldVerdict(fields=fields, likeness=is_, note=note, value=value, label=label)


def _filter(name: str, field: str, is_: Likeness = Likeness.SAME, note: str = "") -> FieldVerdict:
    return _row(
        f"rules[].filters[].{field}", f"rules[].backendRefs[].filters[].{field}", is_=is_, note=note, label=name
    )


_EXTENSIONS: Final = (
    "a [Plugin](#plugins), or a PluginConfig of [Apache APISIX](apisix.md); while it cannot be followed, requests of "
    "the rule answer 500, and so does the share of a backend"
)
GATEWAY_CLASS_FIELDS: Final = (
    _row(
        "controllerName",
        is_=Likeness.SAME,
        note="`headgate.dev/gateway-controller`, and those of the setting `controller_names`",
    ),
    _row("parametersRef", is_=Likeness.SAME, note="see [Parameters](#parameters)"),
)
GATEWAY_FIELDS: Final = (
    _row("gatewayClassName", is_=Likeness.SAME),
    _row(
        "listeners[].port",
        is_=Likeness.DIFFERENT,
        note="80 for HTTP and 443 for HTTPS are the gateways' own ports; others are opened. All Gateways share the "
        "gateways and their addresses, unless `HEADGATE_GATEWAY_ADDRESSES` has addresses for each",
    ),
    _row(
        "listeners[].protocol",
        is_=Likeness.STRICTER,
        note="`HTTP`, `HTTPS`, `TLS`, `TCP` and `UDP`; others are not accepted (`UnsupportedProtocol`)",
    ),
    _row("listeners[].hostname", is_=Likeness.SAME, note="the most specific listener of a port has a request alone"),
    _row(
        "listeners[].tls.certificateRefs",
        is_=Likeness.SAME,
        note="several too; while none can be used, the gateways' default certificate is presented, and the listener is "
        "not programmed",
    ),
    _row("listeners[].tls.mode", is_=Likeness.SAME, note="`Passthrough` for `TLS` alone; both modes may share a port"),
    _row("listeners[].tls.options", is_=Likeness.UNUSED, note="with a warning"),
    _row("listeners[].allowedRoutes.namespaces", is_=Likeness.SAME, note="labels need the right to read Namespaces"),
    _row(
        "listeners[].allowedRoutes.kinds",
        is_=Likeness.STRICTER,
        note="kinds that the protocol has; others are left out of `supportedKinds` (`InvalidRouteKinds`)",
    ),
    _row(
        "addresses",
        is_=Likeness.STRICTER,
        note="`IPAddress`, of those of `HEADGATE_GATEWAY_ADDRESSES`. Without that setting an address with a value is "
        "not accepted (`UnsupportedAddress`), and the status shows those of the gateways",
    ),
    _row(
        "infrastructure.labels",
        "infrastructure.annotations",
        is_=Likeness.DIFFERENT,
        note="of a [ServiceAccount](#a-serviceaccount-for-each-gateway), with `HEADGATE_GATEWAY_INFRASTRUCTURE`; else "
        "unused, with a warning",
    ),
    _row("infrastructure.parametersRef", is_=Likeness.SAME, note="see [Parameters](#parameters)"),
    _row("allowedListeners", is_=Likeness.SAME, note="labels need the right to read Namespaces"),
    _row(
        "tls.frontend",
        is_=Likeness.STRICTER,
        note="authorities in ConfigMaps; without `HEADGATE_GATEWAY_ADDRESSES` not accepted (`UnsupportedValue`)",
    ),
    _row(
        "tls.backend.clientCertificateRef",
        is_=Likeness.DIFFERENT,
        note="shown where a BackendTLSPolicy has TLS spoken, for routes all of whose Gateways have the same one",
    ),
    _row("defaultScope", is_=Likeness.UNUSED, note="with a warning"),
)
LISTENER_SET_FIELDS: Final = (
    _row("parentRef", is_=Likeness.SAME, note="a Gateway that lets it in"),
    *(row for row in GATEWAY_FIELDS if row.fields[0].startswith("listeners[]")),
)
HTTP_ROUTE_FIELDS: Final = (
    _row(
        "parentRefs",
        is_=Likeness.SAME,
        note="Gateways and ListenerSets, by `sectionName` and `port` too; parents of other kinds are passed over",
    ),
    _row(
        "hostnames",
        is_=Likeness.SAME,
        note="a request that no rule of a hostname takes goes to the next wider one of its listener",
    ),
    _row("useDefaultGateways", is_=Likeness.UNUSED, note="with a warning"),
    _row("rules[].name", is_=Likeness.SAME, note="part of the name of the routes of the table"),
    _row(
        "rules[].matches[].path",
        is_=Likeness.SAME,
        note="patterns are RE2, have to take the whole path, and go behind exact paths and before prefixes",
    ),
    _row(
        "rules[].matches[].headers",
        "rules[].matches[].queryParams",
        is_=Likeness.SAME,
        note="patterns are RE2 and have to take the whole value",
    ),
    _row("rules[].matches[].method", is_=Likeness.SAME),
    _filter("`requestHeaderModifier`", "requestHeaderModifier"),
    _filter("`responseHeaderModifier`", "responseHeaderModifier"),
    _filter("`urlRewrite`", "urlRewrite"),
    _filter(
        "`requestMirror`",
        "requestMirror",
        note="several too, with `percent` or `fraction`; copies have bodies of 1 MiB at most",
    ),
    _filter("`requestRedirect`", "requestRedirect"),
    _filter(
        "`cors`",
        "cors",
        note="an origin that is not allowed is told nothing, and its preflight goes to the Service",
    ),
    _filter("`extensionRef`", "extensionRef", note=_EXTENSIONS),
    _filter(
        "`externalAuth`",
        "externalAuth",
        is_=Likeness.DIFFERENT,
        note="over HTTP: 200 lets in, any other answer is the client's, and 403 if there is none. Without "
        "`allowedResponseHeaders` the Service gets all headers of the answer but `Content-*`, `Date`, `Server` and "
        "`Set-Cookie`. Over gRPC: as [`ext-authz`](plugins.md#ext-authz) has it. A body longer than "
        "`forwardBody.maxSize` is refused with 413",
    ),
    _row(
        "rules[].backendRefs",
        is_=Likeness.SAME,
        note="Services, and ServiceImports of `multicluster.x-k8s.io`; what cannot be had answers 500 with its share",
    ),
    _row("rules[].timeouts.request", is_=Likeness.SAME),
    _row("rules[].timeouts.backendRequest", is_=Likeness.DIFFERENT, note="the time until the head of the answer"),
    _row(
        "rules[].retry",
        is_=Likeness.DIFFERENT,
        note="100 times at most; connections that fail are a reason too; a request that a Service may have acted on is "
        "repeated only if its method is idempotent, and within the budget of retries",
    ),
    _row(
        "rules[].sessionPersistence",
        is_=Likeness.SAME,
        note="by a cookie, `headgate-session` if it has no name, or by a header that answers give and requests repeat, "
        "`X-Headgate-Session`, over all Services of the rule. A session ends after `absoluteTimeout`",
    ),
    _row("rules[].sessionPersistence.idleTimeout", is_=Likeness.UNUSED, note="with a warning"),
)
GRPC_ROUTE_FIELDS: Final = (
    *HTTP_ROUTE_FIELDS[:3],
    _row("rules[].name", is_=Likeness.SAME, note="part of the name of the routes of the table"),
    _row(
        "rules[].matches[].method",
        is_=Likeness.SAME,
        note="patterns are RE2 and have to take the whole name; a method of any service goes before a service",
    ),
    _row("rules[].matches[].headers", is_=Likeness.SAME, note="patterns are RE2 and have to take the whole value"),
    _filter("`requestHeaderModifier`", "requestHeaderModifier"),
    _filter("`responseHeaderModifier`", "responseHeaderModifier"),
    _filter(
        "`requestMirror`",
        "requestMirror",
        note="several too, with `percent` or `fraction`; copies have bodies of 1 MiB at most",
    ),
    _filter("`extensionRef`", "extensionRef", note=_EXTENSIONS),
    _row(
        "rules[].backendRefs",
        is_=Likeness.SAME,
        note="Services and ServiceImports; HTTP/2 is spoken with them, over TLS if `appProtocol` is `https`, `grpcs` "
        "or `kubernetes.io/wss`",
    ),
    *(row for row in HTTP_ROUTE_FIELDS if row.fields[0].startswith("rules[].sessionPersistence")),
)
STREAM_ROUTE_FIELDS: Final = (
    HTTP_ROUTE_FIELDS[0],
    HTTP_ROUTE_FIELDS[2],
    _row("rules", is_=Likeness.SAME, note="one"),
    _row(
        "rules[].backendRefs",
        is_=Likeness.SAME,
        note="Services and ServiceImports; connections of the share of what cannot be had are closed",
    ),
)
TLS_ROUTE_FIELDS: Final = (
    _row("hostnames", is_=Likeness.SAME, note="without any those of the listeners"),
    *STREAM_ROUTE_FIELDS,
)
BACKEND_TLS_POLICY_FIELDS: Final = (
    _row(
        "targetRefs",
        is_=Likeness.SAME,
        note="Services of HTTPRoutes, GRPCRoutes and TLSRoutes whose TLS ends here, and their ports by name",
    ),
    _row(
        "validation.caCertificateRefs",
        is_=Likeness.SAME,
        note="ConfigMaps with `ca.crt`; several too, of which those count that can be read",
    ),
    _row("validation.wellKnownCACertificates", is_=Likeness.SAME, note="`System`: those of the gateways' image"),
    _row("validation.hostname", is_=Likeness.SAME, note="the server name; compared if there are no other names"),
    _row("validation.subjectAltNames", is_=Likeness.SAME),
    _row("options", is_=Likeness.UNUSED, note="with a warning"),
)
TRAFFIC_POLICY_FIELDS: Final = (
    _row("targetRefs", is_=Likeness.SAME, note="Services of HTTPRoutes and GRPCRoutes"),
    _row(
        "retryConstraint.budget.percent",
        "retryConstraint.budget.interval",
        is_=Likeness.SAME,
        note="of the requests to the Service that a worker has begun within the time, retries among them. A request "
        "that is not sent again gets the answer of its last attempt",
    ),
    _row("retryConstraint.minRetryRate", is_=Likeness.SAME, note="by each worker"),
    _row(
        "sessionPersistence",
        is_=Likeness.SAME,
        note="as in an HTTPRoute, for the pods of the Service; `sessionPersistence` of a rule goes before it",
    ),
)
