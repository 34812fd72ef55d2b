"""How each field of the resources compares with Traefik, for audits.

A field that no row speaks of is followed; one that no model has is named by the object's problems.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from headgate.common.resources.traefik import (
    INGRESS_ROUTE,
    INGRESS_ROUTE_TCP,
    INGRESS_ROUTE_UDP,
    MIDDLEWARE,
    MIDDLEWARE_TCP,
    SERVERS_TRANSPORT,
    SERVERS_TRANSPORT_TCP,
    TLS_OPTION,
    TLS_STORE,
    TRAEFIK_SERVICE,
)
from headgate.translator.manifests.verdicts import FieldVerdict, Likeness


def _row(*fields: str, is_: Likeness, note: str = "", value: str = "", label: str = "") -> FieldVerdict:
    return FieldVerdict(fields=fields, likeness=is_, note=note, value=value, label=label)


_SERVICE: Final = "routes[].services[]"

ROUTE_FIELDS: Final = (
    _row(
        "ingressClassName",
        is_=Likeness.SAME,
        note="before the annotation `kubernetes.io/ingress.class`; compared with `HEADGATE_TRAEFIK_INGRESS_CLASS`. "
        "Without that setting, objects without a class and those of class `traefik` are served",
    ),
    _row(
        "entryPoints",
        is_=Likeness.SAME,
        note="`web` and `websecure` are the gateways' HTTP and HTTPS ports, others are settings; one that is missing "
        "is left out with a warning",
    ),
    _row(
        "parentRefs",
        is_=Likeness.STRICTER,
        note="rules are asked behind the middlewares of the routes above; a child with `entryPoints` or `tls` answers "
        "503. `retry` and `buffering` of a child stand in the place of those above",
    ),
    _row(
        "routes[].match",
        is_=Likeness.SAME,
        note="both syntaxes; a mistake is named with its column and costs its own route alone",
    ),
    _row(
        "routes[].priority",
        is_=Likeness.DIFFERENT,
        note="as in Traefik, over all hosts; an Ingress keeps the requests of its host, whatever rules there are for "
        "wildcards, patterns and any host",
    ),
    _row("routes[].observability.metrics", is_=Likeness.UNUSED, note="requests of all routes are counted"),
    _row("routes[].observability.traceVerbosity", is_=Likeness.UNUSED, note="spans have one form"),
    _row(
        "routes[].middlewares",
        is_=Likeness.STRICTER,
        note="in their order; one that is missing or cannot be followed closes the route with 503, and the status says "
        "so",
    ),
    _row(
        _SERVICE,
        is_=Likeness.BETTER,
        note="a Service or a port that is missing, or without endpoints, is a 503 and a condition; of several services "
        "each keeps its share",
    ),
    _row(
        f"{_SERVICE}.namespace",
        is_=Likeness.SAME,
        note="another one than the object's own only with `HEADGATE_TRAEFIK_ALLOW_CROSS_NAMESPACE`",
    ),
    _row(
        f"{_SERVICE}.scheme",
        is_=Likeness.SAME,
        note="certificates of servers are checked; by default the Service's `appProtocol` counts too",
    ),
    _row(
        f"{_SERVICE}.strategy",
        is_=Likeness.DIFFERENT,
        note="`p2c` is least requests of two, `hrw` rendezvous hashing of the client's address, `leasttime` the "
        "peak-EWMA of two",
    ),
    _row(
        f"{_SERVICE}.sticky",
        is_=Likeness.SAME,
        note="values too, old ones included, so that sessions go on; those of a weighted TraefikService too",
    ),
    _row(
        f"{_SERVICE}.serversTransport",
        is_=Likeness.STRICTER,
        note="one that is missing, or cannot be followed, closes the route with 503, and the status says so",
    ),
    _row(f"{_SERVICE}.responseForwarding", is_=Likeness.UNUSED, note="answers are passed on as they come"),
    _row(
        f"{_SERVICE}.nodePortLB",
        is_=Likeness.UNUSED,
        note="servers are asked at their own addresses, and a warning says so",
    ),
    _row(
        f"{_SERVICE}.healthCheck",
        is_=Likeness.BETTER,
        note="for every Service, and not for ExternalName alone",
    ),
    _row(f"{_SERVICE}.healthCheck.followRedirects", is_=Likeness.UNUSED, note="redirects count as healthy"),
    _row(
        f"{_SERVICE}.passiveHealthCheck",
        is_=Likeness.DIFFERENT,
        note="failures to connect and answers 500, 502, 503 and 504 count",
    ),
    _row(
        "tls.secretName",
        is_=Likeness.SAME,
        note="the certificate is presented for all names that it is valid for; without it the default one is",
    ),
    _row(
        "tls.options",
        is_=Likeness.STRICTER,
        note="for the hosts that rules name; one that is missing, or cannot be followed, lets no client in. Where it "
        "asks for certificates, plain requests for the host are refused too. Routes of one host that differ have "
        "`default`, unless one of them asks for certificates: then the oldest object's holds. A request over a "
        "connection for a host with another TLSOption is a 421",
    ),
    _row(
        "tls.certResolver",
        is_=Likeness.SAME,
        note="a [resolver](acme.md) of the translator; one certificate for each domain, else for the hosts of each "
        "rule. Without `tls.secretName` only",
    ),
    _row("tls.domains", is_=Likeness.SAME),
    _row("tls.store", is_=Likeness.UNUSED),
)
MIDDLEWARE_FIELDS: Final = (
    _row("circuitBreaker", is_=Likeness.SAME, note="each worker and each route has a circuit of its own"),
    _row("encodedCharacters", is_=Likeness.SAME),
    _row("grpcWeb", is_=Likeness.SAME, note="bodies in base64 up to 8 MiB"),
    _row(
        "passTLSClientCert",
        is_=Likeness.SAME,
        note="of a resumed TLS session the client's own certificate, without those of its authorities",
    ),
    _row(
        "plugin",
        is_=Likeness.DIFFERENT,
        note="a [plugin](plugins.md) of the gateways by its name, built in or of a package of its own; plugins of "
        "Traefik are not run",
    ),
    _row(
        "buffering",
        is_=Likeness.SAME,
        note="bodies that the gateway cannot hold (`max_buffered`) are passed on as they come",
    ),
    _row(
        "buffering.memRequestBodyBytes",
        "buffering.memResponseBodyBytes",
        is_=Likeness.UNUSED,
        note="bodies wait in memory and never on disk",
    ),
    _row(
        "buffering.retryExpression",
        is_=Likeness.STRICTER,
        note="not by `RequestMethod()`; requests without a body are sent again too",
    ),
    _row(
        "compress",
        is_=Likeness.SAME,
        note="an answer marked `no-transform`, or a part of one, is left as it is",
    ),
    _row(
        "errors",
        is_=Likeness.BETTER,
        note="without an answer of the service the client gets the error as it was",
    ),
    _row(
        "forwardAuth",
        is_=Likeness.SAME,
        note="without bounds bodies have 64 MiB, and its answers 16 MiB",
    ),
    _row("forwardAuth.tls.caOptional", is_=Likeness.UNUSED, note="without effect in Traefik 3 too"),
    _row(
        "retry",
        is_=Likeness.SAME,
        note="of a route, or of one of its services; at most 101 attempts, each at another server if there is one; "
        "502 and 504 in `status` are those of the gateway too, where a server does not answer",
    ),
    _row("stripPrefix.forceSlash", is_=Likeness.UNUSED, note="deprecated; a path always begins with a slash"),
    _row(
        "replacePathRegex.replacement",
        "redirectRegex.replacement",
        is_=Likeness.STRICTER,
        note="`$0` is refused: put the whole pattern into a group",
    ),
    _row(
        "basicAuth",
        is_=Likeness.BETTER,
        note="a Secret with one element, a file of `htpasswd`, or with `username` and `password`; comments in a file "
        "are passed over",
    ),
    _row("digestAuth", is_=Likeness.SAME, note="a Secret with one element, a file of `htdigest`"),
    _row("inFlightReq", is_=Likeness.SAME),
    _row("ipAllowList", "ipWhiteList", is_=Likeness.SAME),
    _row(
        "ipAllowList.ipStrategy",
        "ipWhiteList.ipStrategy",
        "rateLimit.sourceCriterion.ipStrategy",
        "inFlightReq.sourceCriterion.ipStrategy",
        is_=Likeness.SAME,
        note="of `X-Forwarded-For` as the gateways' trusted proxies send it; without a strategy the client is the one "
        "that these name",
    ),
    _row("rateLimit", is_=Likeness.SAME),
    _row("rateLimit.redis", is_=Likeness.SAME, note="several addresses are a cluster; without any the route is closed"),
    _row(
        "rateLimit.redis.poolSize",
        "rateLimit.redis.minIdleConns",
        "rateLimit.redis.maxActiveConns",
        "rateLimit.redis.writeTimeout",
        "rateLimit.redis.dialTimeout",
        is_=Likeness.UNUSED,
        note="a worker has one connection, and `readTimeout` is for all of a question",
    ),
    _row("headers.isDevelopment", is_=Likeness.SAME, note="no `Strict-Transport-Security`, and any host"),
    _row(
        "headers.customRequestHeaders",
        "headers.customResponseHeaders",
        is_=Likeness.SAME,
        note="headers of the connection, such as `Connection` and `Upgrade`, have no effect",
    ),
    _row(
        "headers.featurePolicy",
        "headers.sslRedirect",
        "headers.sslTemporaryRedirect",
        "headers.sslHost",
        "headers.sslForceHost",
        is_=Likeness.UNUSED,
        note="without effect in Traefik 3 too: use `permissionsPolicy`, `redirectScheme` and `redirectRegex`",
    ),
    _row("contentType", is_=Likeness.SAME, note="by the table of Go, from the first 512 bytes at most"),
)
TCP_ROUTE_FIELDS: Final = (
    _row("ingressClassName", is_=Likeness.SAME, note="as of IngressRoutes"),
    _row(
        "entryPoints",
        is_=Likeness.DIFFERENT,
        note="on `websecure`, the gateways' HTTPS port, routes have `tls` and server names; `web` serves none",
    ),
    _row(
        "routes[].match",
        is_=Likeness.SAME,
        note="both syntaxes; connections that a rule does not take go on to the other routes of the port. Without "
        "`tls` it is asked with no server name and no protocol; one that asks for a name with `HostSNI`, or that no "
        "connection satisfies, is refused",
    ),
    _row(
        "routes[].priority",
        is_=Likeness.DIFFERENT,
        note="among the streams of the port; of routes with the same rule one is served, in other objects the oldest, "
        "and the status of the others says so. Server names of another namespace are its own, whatever the rules ask "
        "besides",
    ),
    _row(
        "routes[].middlewares",
        is_=Likeness.STRICTER,
        note="one that is missing, or cannot be followed, has the connections of the route refused, and the status "
        "says so",
    ),
    _row(
        _SERVICE,
        is_=Likeness.BETTER,
        note="one that is missing, or cannot be followed, refuses its own share of the connections, and the status "
        "says so",
    ),
    _row(
        f"{_SERVICE}.namespace",
        is_=Likeness.SAME,
        note="another one than the object's own only with `HEADGATE_TRAEFIK_ALLOW_CROSS_NAMESPACE`",
    ),
    _row(f"{_SERVICE}.tls", is_=Likeness.BETTER, note="the servers' certificates are checked by their addresses"),
    _row(
        f"{_SERVICE}.serversTransport",
        is_=Likeness.STRICTER,
        note="one that is missing, or cannot be followed, refuses the service's share, and the status says so",
    ),
    _row(
        f"{_SERVICE}.terminationDelay",
        is_=Likeness.UNUSED,
        note="the end of one direction is passed on, and the other one goes on",
    ),
    _row(f"{_SERVICE}.nodePortLB", is_=Likeness.UNUSED, note="connections go to the endpoints"),
    _row(
        "tls.secretName",
        is_=Likeness.SAME,
        note="the certificate is presented for all names that it is valid for; without it the default one is",
    ),
    _row("tls.passthrough", is_=Likeness.SAME),
    _row(
        "tls.options",
        is_=Likeness.STRICTER,
        note="for each route, whatever its rule; without one the TLSOption `default` holds. One that is missing, "
        "or cannot be followed, has the connections refused; `alpnProtocols` has no effect, nor has any with "
        "`passthrough`",
    ),
    _row(
        "tls.certResolver",
        is_=Likeness.SAME,
        note="a [resolver](acme.md) of the translator; one certificate for each domain, else for the hosts of each "
        "rule. Without `tls.secretName` only",
    ),
    _row("tls.domains", is_=Likeness.SAME),
    _row("tls.store", is_=Likeness.UNUSED),
)
UDP_ROUTE_FIELDS: Final = (
    _row("entryPoints", is_=Likeness.SAME, note="those of UDP; all of these by default"),
    _row(
        "routes[]",
        is_=Likeness.STRICTER,
        note="an entry point has one route: the first of the oldest object, and the status of the others says so",
    ),
    _row(
        _SERVICE,
        is_=Likeness.BETTER,
        note="one that is missing, or cannot be followed, refuses its own share of the sessions, and the status says "
        "so",
    ),
    _row(f"{_SERVICE}.nodePortLB", is_=Likeness.UNUSED, note="datagrams go to the endpoints"),
)
MIDDLEWARE_TCP_FIELDS: Final = (
    _row("inFlightConn", is_=Likeness.DIFFERENT, note="each route counts for itself"),
    _row("ipAllowList", "ipWhiteList", is_=Likeness.SAME),
)
TRAEFIK_SERVICE_FIELDS: Final = (
    _row(
        "weighted",
        "highestRandomWeight",
        is_=Likeness.BETTER,
        note="nested five deep, with a sticky cookie at each level, which names the service and not its servers; a "
        "service without servers fails its own share",
    ),
    _row(
        "mirroring",
        is_=Likeness.DIFFERENT,
        note="copies go out beside the request, and not behind its answer; those of bodies take up to 128 MiB of a "
        "worker. Middlewares of mirrors close the route",
    ),
    _row(
        "failover",
        is_=Likeness.BETTER,
        note="the fallback stands in without `errors` too, while no server of the service is healthy; a body beyond "
        "`maxRequestBodyBytes` is sent once, instead of 413",
    ),
)
TLS_OPTION_FIELDS: Final = (
    _row(
        "minVersion",
        "maxVersion",
        is_=Likeness.SAME,
        note="a name that is no version is left out with a warning; the oldest by default is TLS 1.2",
    ),
    _row(
        "cipherSuites", is_=Likeness.SAME, note="by Go's names; one that is none closes the names that use the object"
    ),
    _row("alpnProtocols", is_=Likeness.STRICTER, note="`h2` and `http/1.1`; others are left out with a warning"),
    _row("preferServerCipherSuites", is_=Likeness.UNUSED, note="without effect in Traefik 3 too"),
)
TLS_STORE_FIELDS: Final = (
    _row("defaultGeneratedCert", is_=Likeness.UNUSED, note="no certificates are asked for: name a Secret"),
)
SERVERS_TRANSPORT_FIELDS: Final = (
    _row("serverName", "insecureSkipVerify", is_=Likeness.SAME),
    _row(
        "rootCAs",
        "rootCAsSecrets",
        is_=Likeness.STRICTER,
        note="one that is missing, or has no certificates, closes the routes that use the transport",
    ),
    _row("certificatesSecrets", is_=Likeness.DIFFERENT, note="the first one is presented to servers that ask for one"),
    _row("peerCertSANs", is_=Likeness.STRICTER, note="of type DNS; those of other types close the routes"),
    _row("peerCertURI", "spiffe", is_=Likeness.REFUSED, note="routes that use it answer 503"),
    _row("cipherSuites", is_=Likeness.SAME, note="by Go's names; one that is none closes the routes"),
    _row("minVersion", is_=Likeness.SAME, note="the oldest is TLS 1.2"),
    _row("maxVersion", is_=Likeness.REFUSED, note="routes answer 503 if it is older than TLS 1.3"),
    _row("maxIdleConnsPerHost", is_=Likeness.DIFFERENT, note="of each worker; 0 is the gateways' own setting"),
    _row("forwardingTimeouts.dialTimeout", "forwardingTimeouts.idleConnTimeout", is_=Likeness.SAME),
    _row(
        "forwardingTimeouts.responseHeaderTimeout",
        is_=Likeness.DIFFERENT,
        note="holds between any two reads of an answer, too",
    ),
    _row(
        "forwardingTimeouts.readIdleTimeout",
        "forwardingTimeouts.pingTimeout",
        is_=Likeness.UNUSED,
        note="connections of HTTP/2 are watched by the gateways' own settings",
    ),
    _row("disableHTTP2", is_=Likeness.UNUSED, note="HTTP/2 is spoken with servers only where the scheme says so"),
)
SERVERS_TRANSPORT_TCP_FIELDS: Final = (
    _row("tls", is_=Likeness.STRICTER, note="as in ServersTransport, for services with `tls`"),
    _row("proxyProtocol", is_=Likeness.SAME, note="that of the service goes before it"),
    _row(
        "dialTimeout",
        "dialKeepAlive",
        "terminationDelay",
        is_=Likeness.UNUSED,
        note="the gateways' own settings hold",
    ),
)

TRAEFIK_FIELDS: Final[Mapping[str, Sequence[FieldVerdict]]] = {
    SERVERS_TRANSPORT.resource: SERVERS_TRANSPORT_FIELDS,
    SERVERS_TRANSPORT_TCP.resource: SERVERS_TRANSPORT_TCP_FIELDS,
    TLS_OPTION.resource: TLS_OPTION_FIELDS,
    TLS_STORE.resource: TLS_STORE_FIELDS,
    TRAEFIK_SERVICE.resource: TRAEFIK_SERVICE_FIELDS,
    INGRESS_ROUTE.resource: ROUTE_FIELDS,
    INGRESS_ROUTE_TCP.resource: TCP_ROUTE_FIELDS,
    INGRESS_ROUTE_UDP.resource: UDP_ROUTE_FIELDS,
    MIDDLEWARE_TCP.resource: MIDDLEWARE_TCP_FIELDS,
    MIDDLEWARE.resource: MIDDLEWARE_FIELDS,
}
"""By resource."""
