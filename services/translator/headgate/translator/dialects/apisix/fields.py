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
        note="without one the default class, or any in a cluster without IngressClasses",
    ),
    FieldVerdict(fields=("http[].name",), likeness=Likeness.SAME, note="two rules of one name are served, and said"),
    FieldVerdict(
        fields=("http[].priority",),
        likeness=Likeness.SAME,
        note="among rules for the same path; the longer prefix goes before it",
    ),
    FieldVerdict(
        fields=("http[].timeout",),
        likeness=Likeness.SAME,
        note="what of it is not written is 60 s; `5s` and `5` are the same. Without a `timeout` those of the gateway",
    ),
    FieldVerdict(
        fields=("http[].match.paths",),
        likeness=Likeness.BETTER,
        note="what is before and between stars is taken literally: `.` and `+` mean themselves. A star within a "
        "segment (`/a*b`) is refused instead of cut off",
    ),
    FieldVerdict(
        fields=("http[].match.hosts",),
        likeness=Likeness.SAME,
        note="in any case. `*foo.com` is refused: write `foo.com` and `*.foo.com`",
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
        note="all ops and scopes. Patterns are [RE2](matching.md#patterns): no look-around. Comparisons of numbers "
        "with what is no number are refused",
    ),
    FieldVerdict(
        fields=("http[].match.exprs[].subject.scope",),
        likeness=Likeness.DIFFERENT,
        note="JSON and forms, `multipart/form-data` too, up to 256 KiB; `items[*].sku` holds if it does for one of the "
        "first 1024 items; no filters in paths",
        value="Body",
        label="… scope `Body`",
    ),
    FieldVerdict(
        fields=("http[].match.exprs[].subject.scope",),
        likeness=Likeness.DIFFERENT,
        note="the path as in [matching](matching.md#path): escapes of anything but letters, digits and `-._~` stay",
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
        note="one Service may stand in a rule several times with different subsets; a missing Service or port is a "
        "condition, and a 503 that names it; beside a backend that is there it has no share",
    ),
    FieldVerdict(
        fields=("http[].backends[].resolveGranularity",),
        likeness=Likeness.SAME,
        note="both forms of one Service live side by side",
        label="… `resolveGranularity`",
    ),
    FieldVerdict(
        fields=("http[].backends[].subset",),
        likeness=Likeness.SAME,
        note="by labels of Pods; each rule its own. Without such a subset requests are answered with 503",
        label="… `subset`",
    ),
    FieldVerdict(fields=("http[].upstreams[]",), likeness=Likeness.SAME),
    FieldVerdict(fields=("http[].websocket",), likeness=Likeness.BETTER, note="let through unless it is `false`"),
    FieldVerdict(
        fields=("http[].plugins[]",),
        likeness=Likeness.SAME,
        note="`secretRef` keys are merged, `a.b` goes one level down; they stay sealed until the gateway",
    ),
    FieldVerdict(
        fields=(
            "http[].plugin_config_name",
            "http[].plugin_config_namespace",
        ),
        likeness=Likeness.SAME,
        note="its `secretRef`s are looked up in its own namespace. If it is absent the rule's requests are answered "
        "with 503",
        label="`http[].plugin_config_name`, `_namespace`",
    ),
    FieldVerdict(
        fields=("http[].authentication",),
        likeness=Likeness.STRICTER,
        note="another word than the documented types is refused instead of taken for basic-auth",
    ),
    FieldVerdict(
        fields=("stream[].match.ingressPort",),
        likeness=Likeness.BETTER,
        note="the port opens and closes with the object; nothing has to be listed before",
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
        "`remote_addr`, `consumer_name`, `arg_*`, `http_*`, `cookie_*`, `mqtt_client_id`; `consumer` is the address "
        "where there is none. `remote_port`, `server_addr` and `hostname`, which tell no clients apart, are refused",
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
        note="at most 10; without it the gateway's own one retry. Only what can be sent again is ([health](health.md))",
    ),
    FieldVerdict(fields=("timeout",), likeness=Likeness.SAME, note="a route's own goes first"),
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
        note="APISIX' defaults; a `timeout` is seconds, `strictTLS: false` is heeded. One count of failures in a row "
        "(`httpFailures`, for `tcp` `tcpFailures`) stands for all sorts",
    ),
    FieldVerdict(
        fields=("healthCheck.passive",),
        likeness=Likeness.BETTER,
        note="`httpFailures`, `tcpFailures`, `httpCodes` of `unhealthy`; a node that was taken out comes back after a "
        "while even without active checks",
    ),
    FieldVerdict(
        fields=("portLevelSettings",), likeness=Likeness.BETTER, note="what a port does not say is as for the Service"
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
        note="`ca.crt`, `cert` or `tls.crt`; if it is absent no request is let in. It counts at hosts that its "
        "namespace "
        "[owns](hosts.md). Requests over plain HTTP for these hosts are refused too. What a wildcard asks holds for "
        "all hosts of ApisixRoutes of its namespace, and younger ones of others, below it that have no ApisixTls of "
        "their own",
    ),
    FieldVerdict(fields=("client.depth",), likeness=Likeness.SAME, note="1 by default"),
    FieldVerdict(fields=("client.skip_mtls_uri_regex",), likeness=Likeness.SAME, note="from the path's beginning"),
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
        note="by `value` or `secretRef`; of several the first in this order. Values are sealed by the watcher. A "
        "`jwtAuth` without a key to check with is refused: none is made up, because tokens are not signed here. "
        "Without "
        "`authParameter` it is a consumer that routes name in `anonymous_consumer`",
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
        note="said on the route, in the configuration of the plugin; a warning names them",
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
        note="for every route of the table, as those of ApisixGlobalRules",
    ),
    FieldVerdict(
        fields=("statusAddress",),
        likeness=Likeness.SAME,
        note="in the status of the Ingresses of the class, over `HEADGATE_PUBLISH_ADDRESSES`",
    ),
    FieldVerdict(
        fields=("publishService",),
        likeness=Likeness.DIFFERENT,
        note="the addresses of its load balancer, where there is no `statusAddress`. Those of Ingresses in front of a "
        "Service of type ClusterIP are not looked for: say them under `statusAddress`",
    ),
    FieldVerdict(
        fields=("pluginMetadata.*",),
        label="`pluginMetadata`",
        likeness=Likeness.STRICTER,
        note="`log_format` of `http-logger`, `kafka-logger`, `tcp-logger`, `udp-logger`, `syslog` and "
        "`file-logger`, `path` of the latter; `limit_header`, `remaining_header`, `reset_header` of "
        "`limit-count`; `allow_origins` of `cors`; `model`, `policy` of `authz-casbin`. Of other plugins they"
        " are not used, and named. They hold for the plugins of objects of the class",
    ),
    FieldVerdict(
        fields=("provider",),
        likeness=Likeness.UNUSED,
        note="not needed: there is no Admin API; checked all the same",
    ),
)
GATEWAY_CONSUMER_FIELDS: Final = (
    FieldVerdict(
        fields=("gatewayRef",),
        likeness=Likeness.BETTER,
        note="ours by the controller of the Gateway's class. While the Gateway does not exist the consumer is not "
        "recognised, and its status says so",
    ),
    FieldVerdict(
        fields=("credentials[]",),
        likeness=Likeness.SAME,
        note="several of one type too; upstreams get the `name`. Values are sealed by the watcher. What cannot be "
        "read is named, and the others count. Without any it is a consumer that routes name in `anonymous_consumer`",
    ),
    FieldVerdict(
        fields=("credentials[].secretRef",),
        likeness=Likeness.SAME,
        note="in another namespace where a ReferenceGrant there allows it",
    ),
    FieldVerdict(fields=("plugins[]",), likeness=Likeness.SAME, note="an authentication plugin there is a credential"),
)
ROUTE_PLUGIN_CONFIG_FIELDS: Final = (
    FieldVerdict(
        fields=("plugins[]",),
        likeness=Likeness.UNUSED,
        note="checked, and not in force: the HTTPRoutes and GRPCRoutes that name it are not served",
    ),
)
BACKEND_POLICY_FIELDS: Final = (
    FieldVerdict(
        fields=("targetRefs",),
        likeness=Likeness.BETTER,
        note="of several policies for one target the oldest holds, the others have the reason `Conflicted`. A "
        "`sectionName` "
        "is a port's name, by whichever of name and number an Ingress names the port",
    ),
    FieldVerdict(
        fields=("loadbalancer", "passHost", "upstreamHost", "healthCheck"),
        likeness=Likeness.SAME,
        note="as of an [ApisixUpstream](#apisixupstream); `timeouts` of health checks stand where `timeout` does there",
    ),
    FieldVerdict(
        fields=("loadbalancer.hashOn", "loadbalancer.key"),
        likeness=Likeness.STRICTER,
        note="as of an ApisixUpstream",
        label="… `hashOn`, `key`",
    ),
    FieldVerdict(
        fields=("scheme",),
        likeness=Likeness.BETTER,
        note="without one the port's `appProtocol` holds; APISIX speaks `http` then. Its own CRD writes `scheme: http` "
        "into every policy that says none: say it there",
    ),
    FieldVerdict(
        fields=("retries",),
        likeness=Likeness.DIFFERENT,
        note="at most 10; without it the gateway's own one retry",
    ),
    FieldVerdict(fields=("timeout",), likeness=Likeness.SAME, note="what of it is not written is 60 s; `500ms` too"),
)
ROUTE_POLICY_FIELDS: Final = (
    FieldVerdict(
        fields=("targetRefs",),
        likeness=Likeness.SAME,
        note="Ingresses; their `sectionName` is not looked at, as they have no sections",
    ),
    FieldVerdict(
        fields=("targetRefs[].kind",),
        likeness=Likeness.UNUSED,
        note="checked, and reported with the reason `TargetsNotServed`: HTTPRoutes are not served yet",
        value="HTTPRoute",
        label="… of kind `HTTPRoute`",
    ),
    FieldVerdict(
        fields=("priority",),
        likeness=Likeness.SAME,
        note="among routes for the same host and path, those of ApisixRoutes included; none is as good as 0. Of "
        "policies for one Ingress that disagree none holds, and all have the reason `Conflicted`",
    ),
    FieldVerdict(
        fields=("vars",),
        likeness=Likeness.STRICTER,
        note="all operators, `AND`, `OR`, `!AND`, `!OR`, `!`; those of several policies hold together. Variables are "
        "those of the scope `Variable` above. While one cannot be read the Ingress' requests are answered with 503",
    ),
)
L4_POLICY_FIELDS: Final = (
    FieldVerdict(
        fields=("targetRefs", "plugins[]"),
        likeness=Likeness.UNUSED,
        note="checked, and not in force: TCPRoutes, UDPRoutes and TLSRoutes are not served. Streams are routed by "
        "`stream` rules of an ApisixRoute, which have the same plugins",
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
