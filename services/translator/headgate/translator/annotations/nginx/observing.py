"""Annotations of ingress-nginx about logs and traces, and those in nginx' own language."""

from headgate.translator.annotations.nginx import values
from headgate.translator.annotations.nginx.row import NginxAnnotation, Risk


def _unread(text: str) -> str:
    return text


_NO_MODSECURITY = "there is no ModSecurity here, and nothing takes its place"
_SNIPPETS = (
    "directives that have a meaning here are followed, and a snippet with another one is refused; off unless the "
    "setting `nginx_allow_snippets` is on, and left out if the ConfigMap says `annotations-risk-level: Critical` "
    "without allowing snippets"
)

OBSERVING = (
    NginxAnnotation(
        name="enable-access-log",
        sets="logging.is_on",
        read=values.boolean,
        value="boolean",
        default="true",
        does="Whether requests are in the access log.",
        example="false",
    ),
    NginxAnnotation(
        name="enable-rewrite-log",
        read=values.boolean,
        value="boolean",
        example="true",
        ignored="`headgate explain` shows how a path is rewritten",
    ),
    NginxAnnotation(
        name="enable-opentelemetry",
        sets="tracing.is_on",
        read=values.boolean,
        value="boolean",
        default="as the gateway's settings say",
        does="Whether requests are traced.",
        example="false",
        approximation="`true` traces what the gateway's settings say, if it has an endpoint for traces",
    ),
    NginxAnnotation(
        name="opentelemetry-trust-incoming-span",
        sets="tracing.trusts",
        read=values.boolean,
        value="boolean",
        default="true",
        does="Whether a client's trace context decides if a request is traced.",
        example="false",
    ),
    NginxAnnotation(
        name="opentelemetry-operation-name",
        read=_unread,
        value="text",
        example="shop",
        ignored="spans have the names that the standard gives them",
        risk=Risk.MEDIUM,
    ),
    *(
        NginxAnnotation(
            name=name, read=_unread, value="text", example="true", refused=_NO_MODSECURITY, guards=True, risk=risk
        )
        for name, risk in (
            ("enable-modsecurity", Risk.LOW),
            ("enable-owasp-core-rules", Risk.LOW),
            ("modsecurity-snippet", Risk.CRITICAL),
        )
    ),
    NginxAnnotation(
        name="modsecurity-transaction-id",
        read=_unread,
        value="variable",
        example="$request_id",
        ignored=_NO_MODSECURITY,
        risk=Risk.HIGH,
    ),
)
SNIPPETS = (
    *(
        NginxAnnotation(
            name=name,
            sets=f"snippets.{block}",
            read=_unread,
            value="configuration of nginx",
            does=does,
            example=example,
            approximation=_SNIPPETS,
            guards=True,
            risk=Risk.CRITICAL,
        )
        for name, block, does, example in (
            (
                "configuration-snippet",
                "location",
                "What is said in the locations of the paths.",
                "more_set_headers 'X-Frame-Options: DENY';",
            ),
            (
                "server-snippet",
                "server",
                "What is said in the servers of the hosts; of several the oldest Ingress' counts.",
                "location = /healthz { return 200; }",
            ),
            (
                "auth-snippet",
                "auth",
                "What is said of questions to the service of `auth-url`.",
                "proxy_set_header X-Tenant shop;",
            ),
            (
                "stream-snippet",
                "stream",
                "Ports of TCP and UDP that the gateways open, as `server` blocks with `listen` and `proxy_pass`.",
                "server { listen 8000; proxy_pass db.example.com:5432; }",
            ),
        )
    ),
)
REMOVED = tuple(
    NginxAnnotation(name=name, read=_unread, value="text", example="true", ignored=why)
    for name, why in (
        ("secure-backends", "removed in release 0.21 of ingress-nginx: write `backend-protocol: HTTPS`"),
        ("grpc-backend", "removed in release 0.21 of ingress-nginx: write `backend-protocol: GRPC`"),
        ("add-base-url", "removed in release 0.22 of ingress-nginx"),
        ("base-url-scheme", "removed in release 0.22 of ingress-nginx"),
        ("session-cookie-hash", "removed in release 0.23 of ingress-nginx"),
        ("secure-verify-ca-secret", "removed in release 0.22 of ingress-nginx: write `proxy-ssl-secret`"),
        ("global-rate-limit", "removed in release 1.10 of ingress-nginx: write `limit-rps`"),
        ("global-rate-limit-window", "removed in release 1.10 of ingress-nginx"),
        ("global-rate-limit-key", "removed in release 1.10 of ingress-nginx"),
        ("global-rate-limit-ignored-cidrs", "removed in release 1.10 of ingress-nginx"),
        ("enable-influxdb", "removed in release 1.10 of ingress-nginx"),
        ("enable-opentracing", "removed in release 1.10 of ingress-nginx"),
        ("opentracing-trust-incoming-span", "removed in release 1.10 of ingress-nginx"),
    )
)
"""Names that manifests still have, and that the last release ignored as well."""
