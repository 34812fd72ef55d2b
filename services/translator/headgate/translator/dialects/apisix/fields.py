"""How each field of the resources compares with Apache APISIX: for `headgate audit` and `docs/apisix.md`.

A field that no row speaks of is followed; one that no model has is named by the object's problems.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from headgate.common.resources import (
    APISIX_CLUSTER_CONFIG,
    APISIX_CONSUMER,
    APISIX_GLOBAL_RULE,
    APISIX_PLUGIN_CONFIG,
    APISIX_ROUTE,
    APISIX_TLS,
    APISIX_UPSTREAM,
    BACKEND_TRAFFIC_POLICY,
    GATEWAY_CONSUMER,
    GATEWAY_PROXY,
    HTTP_ROUTE_POLICY,
    L4_ROUTE_POLICY,
    ROUTE_PLUGIN_CONFIG,
)
from headgate.translator.manifests.verdicts import FieldVerdict, Likeness

ROUTE_FIELDS: Final = (
    FieldVerdict(
        fields=("ingressClassName",),
        likeness=Likeness.SAME,
        note="without one the default class holds, or any class in a cluster without IngressClasses",
    ),
    FieldVerdict(
        fields=("http[].name",),
        likeness=Likeness.SAME,
        note="two rules of one name are both served, and the status names them",
    ),
    FieldVerdict(
        fields=("http[].priority",),
        likeness=Likeness.SAME,
        note="it orders rules for the same path; a longer prefix goes before a higher priority",
    ),
    FieldVerdict(
        fields=("http[].timeout",),
        likeness=Likeness.SAME,
        note="a part that is not written is 60 s; `5s` and `5` are the same. Without a `timeout` the gateway's "
        "timeouts hold",
    ),
    FieldVerdict(
        fields=("http[].match.paths",),
        likeness=Likeness.BETTER,
        note="text before and between stars is taken literally: `.` and `+` mean themselves. A star within a "
        "segment (`/a*b`) is refused instead of cut off",
    ),
    FieldVerdict(
        fields=("http[].match.hosts",),
        likeness=Likeness.SAME,
        note="upper and lower case are the same. `*foo.com` is refused: write `foo.com` and `*.foo.com`",
    ),
    FieldVerdict(
        fields=(
            "http[].match.methods",
            "http[].match.remoteAddrs",
        ),
        likeness=Likeness.SAME,
        label="`http[].match.methods`, `remoteAddrs`",
    ),
    FieldVerdict(
        fields=("http[].match.exprs",),
        likeness=Likeness.SAME,
        note="all operators and scopes. Patterns are [RE2](matching.md#patterns), which has no look-around. A "
        "comparison of numbers with a value that is no number is refused",
    ),
    FieldVerdict(
        fields=("http[].match.exprs[].subject.scope",),
        likeness=Likeness.DIFFERENT,
        note="JSON and forms are read, `multipart/form-data` too, up to 256 KiB; `items[*].sku` holds if it holds "
        "for one of the first 1024 items; paths have no filters",
        value="Body",
        label="… scope `Body`",
    ),
    FieldVerdict(
        fields=("http[].match.exprs[].subject.scope",),
        likeness=Likeness.DIFFERENT,
        note="it is the path as in [matching](matching.md#path): only escapes of letters, digits and `-._~` are "
        "resolved",
        value="Path",
        label="… scope `Path`",
    ),
    FieldVerdict(
        fields=("http[].match.exprs[].subject.scope",),
        likeness=Likeness.STRICTER,
        note="`args`, `arg_*`, `content_length`, `content_type`, `cookie_*`, `host`, `http_*`, `post_arg.*`, "
        "`query_string`, `remote_addr`, `request_method`, `request_uri`, `scheme`, `server_name`, `uri`; others are "
        "refused",
        value="Variable",
        label="… scope `Variable`",
    ),
    FieldVerdict(
        fields=("http[].match.filter_func",),
        likeness=Likeness.REFUSED,
        note="Lua is not run: say it with `exprs`, or with the plugin `traffic-split` or `workflow`. Requests of the "
        "rule are answered with 503, unless another rule takes them",
    ),
    FieldVerdict(
        fields=("http[].backends[]",),
        likeness=Likeness.BETTER,
        note="one Service may stand in a rule several times with different subsets; a condition and a 503 name a "
        "missing Service or port, which has no share of the requests beside a backend that exists",
    ),
    FieldVerdict(
        fields=("http[].backends[].resolveGranularity",),
        likeness=Likeness.SAME,
        note="both forms may be used for one Service at the same time",
        label="… `resolveGranularity`",
    ),
    FieldVerdict(
        fields=("http[].backends[].subset",),
        likeness=Likeness.SAME,
        note="it selects Pods by labels, in each rule for itself. If the subset does not exist, requests are "
        "answered with 503",
        label="… `subset`",
    ),
    FieldVerdict(fields=("http[].upstreams[]",), likeness=Likeness.SAME),
    FieldVerdict(
        fields=("http[].websocket",), likeness=Likeness.BETTER, note="WebSocket is let through unless this is `false`"
    ),
    FieldVerdict(
        fields=("http[].plugins[]",),
        likeness=Likeness.SAME,
        note="keys of a `secretRef` are merged, and `a.b` goes one level down; values stay sealed until the "
        "gateway opens them",
    ),
    FieldVerdict(
        fields=(
            "http[].plugin_config_name",
            "http[].plugin_config_namespace",
        ),
        likeness=Likeness.SAME,
        note="its `secretRef`s are looked up in its own namespace. If it does not exist, the rule's requests are "
        "answered with 503",
        label="`http[].plugin_config_name`, `_namespace`",
    ),
    FieldVerdict(
        fields=("http[].authentication",),
        likeness=Likeness.STRICTER,
        note="an undocumented type is refused instead of taken for basic-auth",
    ),
    FieldVerdict(
        fields=("stream[].match.ingressPort",),
        likeness=Likeness.BETTER,
        note="the port opens and closes with the object; no list of ports is needed",
    ),
    FieldVerdict(
        fields=("stream[].match.host",),
        likeness=Likeness.SAME,
        note="the server name of TLS that ends at the gateway, with the certificate of an ApisixTls",
    ),
    FieldVerdict(fields=("stream[].backend",), likeness=Likeness.SAME),
    FieldVerdict(
        fields=("stream[].plugins[]",),
        likeness=Likeness.STRICTER,
        note="`ip-restriction`, `limit-conn` and [`mqtt-proxy`](streams.md#mqtt); `prometheus` and `syslog` are not "
        "needed; with any other the port stays closed",
    ),
)
UPSTREAM_FIELDS: Final = (
    FieldVerdict(
        fields=("loadbalancer",),
        likeness=Likeness.SAME,
        note="`roundrobin`, `chash` (a ketama ring), `ewma`, `least_conn`. A request without what `chash` hashes is "
        "balanced by round robin",
    ),
    FieldVerdict(
        fields=(
            "loadbalancer.hashOn",
            "loadbalancer.key",
        ),
        likeness=Likeness.STRICTER,
        note="`vars` and `vars_combinations`: `uri`, `request_uri`, `query_string`, `host`, `server_name`, "
        "`remote_addr`, `consumer_name`, `arg_*`, `http_*`, `cookie_*`, `mqtt_client_id`; without a consumer,"
        " `consumer` is the client's address. `remote_port`, `server_addr` and `hostname`, which tell no "
        "clients apart, are refused",
        label="… `hashOn`, `key`",
    ),
    FieldVerdict(
        fields=("scheme",),
        likeness=Likeness.BETTER,
        note="without one the Service's `appProtocol` holds, also where there is an ApisixUpstream",
    ),
    FieldVerdict(
        fields=("retries",),
        likeness=Likeness.DIFFERENT,
        note="at most 10; without it the gateway makes one retry. Only requests that can be sent again are retried"
        " ([health](health.md))",
    ),
    FieldVerdict(fields=("timeout",), likeness=Likeness.SAME, note="a route's own timeout goes first"),
    FieldVerdict(
        fields=(
            "passHost",
            "upstreamHost",
        ),
        likeness=Likeness.SAME,
    ),
    FieldVerdict(fields=("tlsSecret",), likeness=Likeness.SAME, note="`tls.crt` and `tls.key`, or `cert` and `key`"),
    FieldVerdict(fields=("subsets",), likeness=Likeness.SAME),
    FieldVerdict(
        fields=("healthCheck.active",),
        likeness=Likeness.BETTER,
        note="the defaults are those of APISIX; a `timeout` is in seconds, and `strictTLS: false` is followed. One"
        " count of failures in a row (`httpFailures`, for `tcp` `tcpFailures`) stands for all kinds of "
        "failure",
    ),
    FieldVerdict(
        fields=("healthCheck.passive",),
        likeness=Likeness.BETTER,
        note="`httpFailures`, `tcpFailures`, `httpCodes` of `unhealthy`; a node that was taken out comes back after a "
        "while even without active checks",
    ),
    FieldVerdict(
        fields=("portLevelSettings",),
        likeness=Likeness.BETTER,
        note="a field that a port does not set is that of the Service",
    ),
    FieldVerdict(
        fields=("externalNodes",),
        likeness=Likeness.SAME,
        note="addresses of a `Domain` are followed as its DNS answers change",
    ),
    FieldVerdict(
        fields=("discovery",),
        likeness=Likeness.STRICTER,
        note="`kubernetes` (`namespace/name:port`, with a cluster in front) and `dns` (`host`, or `host:port`); other "
        "registries are refused",
    ),
)
TLS_FIELDS: Final = (
    FieldVerdict(
        fields=(
            "hosts",
            "secret",
        ),
        likeness=Likeness.SAME,
        note="of two objects with one host the older one's certificate is presented, and the status of the other one "
        "says so. A rotated "
        "Secret is presented at once",
    ),
    FieldVerdict(
        fields=("client.caSecret",),
        likeness=Likeness.BETTER,
        note="`ca.crt`, `cert` or `tls.crt`; if it does not exist, no request is let in. It counts at hosts that "
        "its namespace [owns](hosts.md). Requests over plain HTTP for these hosts are refused too. The "
        "authorities of a wildcard hold below it for hosts of ApisixRoutes of its namespace, and for younger "
        "hosts of other namespaces, unless a host has an ApisixTls of its own",
    ),
    FieldVerdict(fields=("client.depth",), likeness=Likeness.SAME, note="1 by default"),
    FieldVerdict(
        fields=("client.skip_mtls_uri_regex",),
        likeness=Likeness.SAME,
        note="the pattern is looked for at the beginning of the path",
    ),
)
CONSUMER_FIELDS: Final = (
    FieldVerdict(
        fields=(
            "authParameter.keyAuth",
            "authParameter.basicAuth",
            "authParameter.jwtAuth",
            "authParameter.hmacAuth",
            "authParameter.ldapAuth",
            "authParameter.wolfRBAC",
        ),
        likeness=Likeness.SAME,
        note="given by `value` or `secretRef`; if several are set, the first in this order counts. Values are "
        "sealed by the watcher. A `jwtAuth` without a key to check with is refused: none is made up, because "
        "tokens are not signed here. An object without `authParameter` is a consumer that routes name in "
        "`anonymous_consumer`",
        label="`authParameter.keyAuth`, `basicAuth`, `jwtAuth`, `hmacAuth`, `ldapAuth`, `wolfRBAC`",
    ),
    FieldVerdict(
        fields=(
            "authParameter.hmacAuth.value.clock_skew",
            "authParameter.hmacAuth.value.signed_headers",
            "authParameter.hmacAuth.value.keep_headers",
            "authParameter.hmacAuth.value.encode_uri_params",
            "authParameter.hmacAuth.value.validate_request_body",
            "authParameter.hmacAuth.value.max_req_body",
        ),
        likeness=Likeness.UNUSED,
        note="they belong to the configuration of the plugin on the route; a warning names them",
        label="`hmacAuth` `clock_skew`, `signed_headers` and others of older releases",
    ),
    FieldVerdict(fields=("plugins[]",), likeness=Likeness.SAME, note="an authentication plugin there is a credential"),
)
_PLUGINS = (FieldVerdict(fields=("plugins[]",), likeness=Likeness.SAME),)
CLUSTER_CONFIG_FIELDS: Final = (
    FieldVerdict(
        fields=("monitoring.prometheus",), likeness=Likeness.SAME, note="the plugin `prometheus` for all routes"
    ),
    FieldVerdict(
        fields=("monitoring.skywalking",),
        likeness=Likeness.UNUSED,
        note="there is no such plugin; run `opentelemetry` by an ApisixGlobalRule instead",
    ),
    FieldVerdict(fields=("admin",), likeness=Likeness.UNUSED, note="not needed: there is no Admin API"),
)
GATEWAY_PROXY_FIELDS: Final = (
    FieldVerdict(
        fields=("plugins[]",),
        likeness=Likeness.SAME,
        note="they run for every route of the table, as plugins of ApisixGlobalRules do",
    ),
    FieldVerdict(
        fields=("statusAddress",),
        likeness=Likeness.SAME,
        note="written into the status of the Ingresses of the class; it goes before `HEADGATE_PUBLISH_ADDRESSES`",
    ),
    FieldVerdict(
        fields=("publishService",),
        likeness=Likeness.DIFFERENT,
        note="without a `statusAddress` the addresses of its load balancer are written. Addresses of Ingresses in "
        "front of a Service of type ClusterIP are not looked for: write them under `statusAddress`",
    ),
    FieldVerdict(
        fields=("pluginMetadata.*",),
        label="`pluginMetadata`",
        likeness=Likeness.STRICTER,
        note="`log_format*` of loggers, `path` of `file-logger`; `host`, `port`, `protocol`, `timeout` of `loggly`; "
        "`host`, `port`, `namespace`, `constant_tags` of `datadog`; `spec_url_ttl` of `oas-validator`; `limit_header`, "
        "`remaining_header`, `reset_header` of `limit-count`; `allow_origins` of `cors`; `model`, `policy` of "
        "`authz-casbin`. Other metadata is not used, and the status names it. It holds for objects of the class",
    ),
    FieldVerdict(
        fields=("provider",),
        likeness=Likeness.UNUSED,
        note="not needed, as there is no Admin API; it is checked all the same",
    ),
)
GATEWAY_CONSUMER_FIELDS: Final = (
    FieldVerdict(
        fields=("gatewayRef",),
        likeness=Likeness.BETTER,
        note="the controller of the Gateway's class decides whether the consumer is ours, and routes of other "
        "Gateways do not recognise it. While the Gateway does not exist, no route does, and its status says so",
    ),
    FieldVerdict(
        fields=("credentials[]",),
        likeness=Likeness.SAME,
        note="there may be several of one type; upstreams get the `name`. Values are sealed by the watcher. A "
        "credential that cannot be read is named, and the others count. An object without credentials is a "
        "consumer that routes name in `anonymous_consumer`",
    ),
    FieldVerdict(
        fields=("credentials[].secretRef",),
        likeness=Likeness.SAME,
        note="it may be in another namespace if a ReferenceGrant there allows it",
    ),
    FieldVerdict(fields=("plugins[]",), likeness=Likeness.SAME, note="an authentication plugin there is a credential"),
)
ROUTE_PLUGIN_CONFIG_FIELDS: Final = (
    FieldVerdict(
        fields=("plugins[]",),
        likeness=Likeness.SAME,
        note="run for the rules of HTTPRoutes and GRPCRoutes whose filters name it, and for single backends",
    ),
)
BACKEND_POLICY_FIELDS: Final = (
    FieldVerdict(
        fields=("targetRefs",),
        likeness=Likeness.BETTER,
        note="if several policies name one target, the oldest holds and the others have the reason `Conflicted`. A"
        " `sectionName` is a port's name, whether an Ingress refers to the port by name or by number",
    ),
    FieldVerdict(
        fields=("loadbalancer", "passHost", "upstreamHost", "healthCheck"),
        likeness=Likeness.SAME,
        note="as in an [ApisixUpstream](#apisixupstream); health checks have `timeouts` in place of `timeout`",
    ),
    FieldVerdict(
        fields=("loadbalancer.hashOn", "loadbalancer.key"),
        likeness=Likeness.STRICTER,
        note="as in an ApisixUpstream",
        label="… `hashOn`, `key`",
    ),
    FieldVerdict(
        fields=("scheme",),
        likeness=Likeness.BETTER,
        note="without one the port's `appProtocol` holds, where APISIX speaks `http`. APISIX' own CRD writes "
        "`scheme: http` into every policy without a scheme: set it there. With `tls` connections of TCPRoutes and "
        "TLSRoutes go on over TLS; `tcp`, `tls` and `udp` say nothing of requests",
    ),
    FieldVerdict(
        fields=("retries",),
        likeness=Likeness.DIFFERENT,
        note="at most 10; without it the gateway makes one retry",
    ),
    FieldVerdict(
        fields=("timeout",), likeness=Likeness.SAME, note="a part that is not written is 60 s; `500ms` is read too"
    ),
)
ROUTE_POLICY_FIELDS: Final = (
    FieldVerdict(
        fields=("targetRefs",),
        likeness=Likeness.SAME,
        note="Ingresses and HTTPRoutes; a `sectionName` is the name of an HTTPRoute's rule, and ignored for Ingresses",
    ),
    FieldVerdict(
        fields=("priority",),
        likeness=Likeness.SAME,
        note="it orders routes for the same host and path, those of ApisixRoutes included; without one it is 0. If"
        " policies for one Ingress or rule disagree, none holds there, and all have the reason `Conflicted`",
    ),
    FieldVerdict(
        fields=("vars",),
        likeness=Likeness.STRICTER,
        note="all operators, `AND`, `OR`, `!AND`, `!OR`, `!`; the conditions of several policies hold together. "
        "Variables are those of the scope `Variable` above. While a condition cannot be read, the requests of "
        "the Ingress or rule are answered with 503",
    ),
)
L4_POLICY_FIELDS: Final = (
    FieldVerdict(
        fields=("targetRefs",),
        likeness=Likeness.STRICTER,
        note="TCPRoutes, UDPRoutes and TLSRoutes. The oldest policy for a route holds; one with a `sectionName`, which "
        "is ignored there, is told that such routes have no sections",
    ),
    FieldVerdict(
        fields=("plugins[]",),
        likeness=Likeness.STRICTER,
        note="those of `stream` rules: `ip-restriction`, `limit-conn`, `mqtt-proxy`. While no policy for a route can "
        "be followed, its connections are refused",
    ),
)

APISIX_FIELDS: Final[Mapping[str, Sequence[FieldVerdict]]] = {
    APISIX_ROUTE.resource: ROUTE_FIELDS,
    APISIX_UPSTREAM.resource: UPSTREAM_FIELDS,
    APISIX_TLS.resource: TLS_FIELDS,
    APISIX_CONSUMER.resource: CONSUMER_FIELDS,
    APISIX_PLUGIN_CONFIG.resource: _PLUGINS,
    APISIX_GLOBAL_RULE.resource: _PLUGINS,
    APISIX_CLUSTER_CONFIG.resource: CLUSTER_CONFIG_FIELDS,
    GATEWAY_PROXY.resource: GATEWAY_PROXY_FIELDS,
    GATEWAY_CONSUMER.resource: GATEWAY_CONSUMER_FIELDS,
    ROUTE_PLUGIN_CONFIG.resource: ROUTE_PLUGIN_CONFIG_FIELDS,
    BACKEND_TRAFFIC_POLICY.resource: BACKEND_POLICY_FIELDS,
    HTTP_ROUTE_POLICY.resource: ROUTE_POLICY_FIELDS,
    L4_ROUTE_POLICY.resource: L4_POLICY_FIELDS,
}
"""By resource."""
