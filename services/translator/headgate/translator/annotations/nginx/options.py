"""The keys of ingress-nginx' ConfigMap, each with what becomes of it.

A key that is an annotation too has the annotation's row: its value holds for Ingresses that do not say it themselves.
"""

from dataclasses import replace
from typing import Final

from headgate.translator.annotations.annotation import AnnotationTable
from headgate.translator.annotations.nginx import NGINX_TABLE, values
from headgate.translator.annotations.nginx.row import NginxAnnotation, Risk
from headgate.translator.annotations.nginx.snippet_values import SNIPPETS_FOLLOWED, snippet
from headgate.translator.manifests import texts
from headgate.translator.snippets.scope import Context

_SETTING: Final = "a setting of the gateway: "
_NO_NEED: Final = "nothing here corresponds to it, and nothing is needed in its place"
_NO_MODSECURITY: Final = "there is no ModSecurity here, and nothing takes its place"
_NOT_YET: Final = "it is not followed yet"


def _unread(text: str) -> str:
    return text


_SHARED: Final = (
    "proxy-body-size",
    "proxy-connect-timeout",
    "proxy-read-timeout",
    "proxy-send-timeout",
    "proxy-next-upstream",
    "proxy-next-upstream-timeout",
    "proxy-next-upstream-tries",
    "proxy-request-buffering",
    "proxy-buffering",
    "proxy-buffer-size",
    "proxy-buffers-number",
    "proxy-busy-buffers-size",
    "proxy-http-version",
    "proxy-max-temp-file-size",
    "client-body-buffer-size",
    "ssl-redirect",
    "force-ssl-redirect",
    "preserve-trailing-slash",
    "relative-redirects",
    "denylist-source-range",
    "whitelist-source-range",
    "limit-rate",
    "limit-rate-after",
    "load-balance",
    "upstream-hash-by",
    "service-upstream",
    "enable-opentelemetry",
    "opentelemetry-trust-incoming-span",
    "opentelemetry-operation-name",
    "custom-http-errors",
    "proxy-redirect-from",
    "proxy-redirect-to",
    "proxy-cookie-domain",
    "proxy-cookie-path",
)
_OWN: Final = (
    NginxAnnotation(
        name="allow-snippet-annotations",
        sets="snippets.are_allowed",
        read=values.boolean,
        value="boolean",
        default="false",
        does="Whether snippets on Ingresses are followed, as with the setting `nginx_allow_snippets`.",
        example="true",
    ),
    NginxAnnotation(
        name="http-snippet",
        sets="snippets.of_http",
        read=snippet(Context.HTTP),
        value="configuration of nginx",
        does="What is said around all servers.",
        example="more_set_headers 'X-Frame-Options: DENY';",
        approximation=SNIPPETS_FOLLOWED,
    ),
    NginxAnnotation(
        name="server-snippet",
        sets="snippets.of_servers",
        read=snippet(Context.SERVER),
        value="configuration of nginx",
        does="What is said in all servers; without location blocks.",
        example="if ($http_user_agent ~ badbot) { return 403; }",
        approximation=SNIPPETS_FOLLOWED,
        guards=True,
    ),
    NginxAnnotation(
        name="location-snippet",
        sets="snippets.of_locations",
        read=snippet(Context.LOCATION),
        value="configuration of nginx",
        does="What is said in all locations.",
        example="proxy_set_header X-Cluster paris;",
        approximation=SNIPPETS_FOLLOWED,
        guards=True,
    ),
    NginxAnnotation(
        name="hsts",
        sets="hsts.is_on",
        read=values.boolean,
        value="boolean",
        default="true",
        does="Answers over HTTPS say that the host is to be asked over HTTPS only.",
        example="false",
    ),
    NginxAnnotation(
        name="hsts-max-age",
        sets="hsts.max_age",
        read=values.count,
        value="seconds",
        default="31536000",
        does="For how long.",
        example="86400",
    ),
    NginxAnnotation(
        name="hsts-include-subdomains",
        sets="hsts.subdomains",
        read=values.boolean,
        value="boolean",
        default="true",
        does="And that this holds for all names below it.",
        example="false",
    ),
    NginxAnnotation(
        name="hsts-preload",
        sets="hsts.preload",
        read=values.boolean,
        value="boolean",
        default="false",
        does="And that browsers may have the host in their list.",
        example="true",
    ),
    NginxAnnotation(
        name="http-redirect-code",
        sets="redirects.ssl_code",
        read=values.between(301, 308, 308),
        value="301, 302, 307, 308",
        default="308",
        does="Status of redirects to HTTPS.",
        example="301",
    ),
    NginxAnnotation(
        name="no-tls-redirect-locations",
        sets="redirects.exempt",
        read=values.paths,
        value="paths, separated by commas",
        default="/.well-known/acme-challenge",
        does="Paths of Ingresses that are not redirected to HTTPS.",
        example="/.well-known/acme-challenge",
    ),
    *(
        NginxAnnotation(
            name=name,
            sets=f"headers.{field}",
            read=values.basic,
            value="namespace/ConfigMap",
            does=does,
            example="ingress-nginx/headers",
        )
        for name, field, does in (
            ("add-headers", "answers", "Headers that all answers get."),
            ("proxy-set-headers", "requests", "Headers that all requests to upstreams get."),
        )
    ),
    NginxAnnotation(
        name="global-allowed-response-headers",
        sets="custom_headers.allowed",
        read=values.header_list,
        value="headers, separated by commas",
        does="Headers that Ingresses may add to answers by `custom-headers`.",
        example="X-Frame-Options,X-Shop",
    ),
    NginxAnnotation(
        name="allow-cross-namespace-resources",
        sets="security.crosses_namespaces",
        read=values.boolean,
        value="boolean",
        default="false",
        does="Whether Secrets and ConfigMaps that annotations name may be of other namespaces.",
        example="true",
    ),
    NginxAnnotation(
        name="no-auth-locations",
        sets="no_auth.paths",
        read=values.paths,
        value="paths, separated by commas",
        default="/.well-known/acme-challenge",
        does="Paths of Ingresses that begin so need no authentication.",
        example="/.well-known/acme-challenge,/health",
    ),
    NginxAnnotation(
        name="limit-req-status-code",
        sets="limits.rate_status",
        read=values.between(400, 599, 503),
        value="status",
        default="503",
        does="Answer to requests over a rate.",
        example="429",
    ),
    NginxAnnotation(
        name="limit-conn-status-code",
        sets="limits.connection_status",
        read=values.between(400, 599, 503),
        value="status",
        default="503",
        does="Answer to requests over `limit-connections`.",
        example="429",
    ),
    NginxAnnotation(
        name="block-cidrs",
        sets="block.networks",
        read=values.networks,
        value="networks, separated by commas",
        does="Clients of these get a 403, unless the Ingress has lists of its own.",
        example="198.51.100.0/24",
        guards=True,
    ),
    NginxAnnotation(
        name="block-user-agents",
        sets="block.agents",
        read=values.names_or_patterns,
        value="texts, or patterns after `~` or `~*`",
        does="Clients that call themselves so get a 403.",
        example="~*bot, curl/7.0",
        guards=True,
    ),
    NginxAnnotation(
        name="block-referers",
        sets="block.referers",
        read=values.names_or_patterns,
        value="texts, or patterns after `~` or `~*`",
        does="Requests with such a `Referer` get a 403.",
        example="~*spam",
        guards=True,
    ),
    NginxAnnotation(
        name="hide-headers",
        sets="answer.hidden",
        read=values.header_list,
        value="headers",
        does="Headers of upstreams that clients do not get.",
        example="X-Powered-By",
    ),
    NginxAnnotation(
        name="ssl-protocols",
        sets="tls.min_version",
        read=values.client_tls_versions,
        value="words such as `TLSv1.2 TLSv1.3`",
        default="TLSv1.2 TLSv1.3",
        does="Versions of TLS for the hosts.",
        example="TLSv1.3",
        approximation="the oldest counts: newer ones are spoken, too",
    ),
    NginxAnnotation(
        name="ssl-ciphers",
        sets="tls.ciphers",
        read=texts.ciphers,
        value="OpenSSL cipher list",
        does="Ciphers up to TLS 1.2 for the hosts.",
        example="ECDHE-RSA-AES128-GCM-SHA256",
    ),
    NginxAnnotation(
        name="use-http2",
        sets="tls.http2",
        read=values.boolean,
        value="boolean",
        default="true",
        does="Whether clients may speak HTTP/2.",
        example="false",
    ),
    NginxAnnotation(
        name="use-gzip",
        sets="gzip.is_on",
        read=values.boolean,
        value="boolean",
        default="false",
        does="Answers are compressed.",
        example="true",
    ),
    NginxAnnotation(
        name="gzip-level",
        sets="gzip.level",
        read=values.between(1, 9, 1),
        value="1 to 9",
        default="1",
        does="How hard.",
        example="5",
    ),
    NginxAnnotation(
        name="gzip-min-length",
        sets="gzip.min_length",
        read=values.count,
        value="bytes",
        default="256",
        does="From which length on.",
        example="1000",
    ),
    NginxAnnotation(
        name="gzip-types",
        sets="gzip.types",
        read=values.media_types,
        value="media types",
        does="Of which types, besides `text/html`.",
        example="application/json text/css",
    ),
    NginxAnnotation(
        name="enable-brotli",
        sets="brotli.is_on",
        read=values.boolean,
        value="boolean",
        default="false",
        does="Answers are compressed by Brotli for clients that take it.",
        example="true",
    ),
    NginxAnnotation(
        name="brotli-level",
        sets="brotli.level",
        read=values.between(0, 11, 4),
        value="0 to 11",
        default="4",
        does="How hard.",
        example="6",
        approximation="10 and 11 count as 9",
    ),
    NginxAnnotation(
        name="brotli-min-length",
        sets="brotli.min_length",
        read=values.count,
        value="bytes",
        default="20",
        does="From which length on.",
        example="1000",
    ),
    NginxAnnotation(
        name="brotli-types",
        sets="brotli.types",
        read=values.media_types,
        value="media types",
        does="Of which types, besides `text/html`.",
        example="application/json text/css",
    ),
    NginxAnnotation(
        name="retry-non-idempotent",
        sets="retries.unsafe",
        read=values.boolean,
        value="boolean",
        default="false",
        does="Requests that may change something are sent to the next endpoint, too.",
        example="true",
    ),
    NginxAnnotation(
        name="annotations-risk-level",
        sets="security.risk",
        read=values.option({risk.name.upper(): risk for risk in Risk}, ignores_case=True),
        value="`Low`, `Medium`, `High`, `Critical`",
        default="all that is not a snippet",
        does="Ingresses with annotations of a higher risk are not served.",
        example="Medium",
        guards=True,
    ),
    NginxAnnotation(
        name="annotation-value-word-blocklist",
        sets="security.words",
        read=values.words,
        value="words, separated by commas",
        does="Ingresses with such a word in a value of an annotation are not served.",
        example="load_module,lua_package",
        guards=True,
    ),
    NginxAnnotation(
        name="disable-access-log",
        sets="logging.is_off",
        read=values.boolean,
        value="boolean",
        default="false",
        does="No request is in the access log.",
        example="true",
    ),
)
_REFUSED: Final = (
    ("enable-modsecurity", _NO_MODSECURITY, True),
    ("modsecurity-snippet", _NO_MODSECURITY, True),
    ("enable-owasp-modsecurity-crs", _NO_MODSECURITY, True),
    ("main-snippet", "there is no process of nginx that it could configure", False),
    ("stream-snippet", _NOT_YET, False),
    ("global-auth-snippet", _NOT_YET, True),
    ("proxy-add-original-uri-header", _NOT_YET, False),
    ("ssl-reject-handshake", _NOT_YET, False),
    ("gzip-disable", _NOT_YET, False),
    ("skip-access-log-urls", _NOT_YET, False),
    ("proxy-stream-timeout", _NOT_YET, False),
    ("proxy-stream-next-upstream", _NOT_YET, False),
    ("proxy-stream-next-upstream-timeout", _NOT_YET, False),
    ("proxy-stream-next-upstream-tries", _NOT_YET, False),
    ("proxy-stream-responses", _NOT_YET, False),
    ("proxy-ssl-location-only", _NOT_YET, False),
    ("use-geoip", "there are no tables of places here", False),
    ("use-geoip2", "there are no tables of places here", False),
)
_IGNORED: Final = {
    **dict.fromkeys(
        (
            "access-log-path",
            "http-access-log-path",
            "stream-access-log-path",
            "access-log-params",
            "error-log-path",
            "error-log-level",
            "enable-access-log-for-default-backend",
            "log-format-upstream",
            "log-format-stream",
            "log-format-escape-json",
            "log-format-escape-none",
            "disable-http-access-log",
            "disable-stream-access-log",
            "enable-syslog",
            "syslog-host",
            "syslog-port",
        ),
        f"{_SETTING}`HEADGATE_ACCESS_LOG` and `HEADGATE_LOG_LEVEL`",
    ),
    **dict.fromkeys(
        (
            "use-forwarded-headers",
            "compute-full-forwarded-for",
            "forwarded-for-header",
            "forwarded-for-proxy-protocol-header",
            "proxy-real-ip-cidr",
            "enable-real-ip",
        ),
        f"{_SETTING}`HEADGATE_TRUSTED_PROXIES`",
    ),
    **dict.fromkeys(("use-proxy-protocol", "proxy-protocol-header-timeout"), f"{_SETTING}`HEADGATE_PROXY_PROTOCOL`"),
    **dict.fromkeys(
        (
            "client-header-timeout",
            "client-body-timeout",
            "client-header-buffer-size",
            "large-client-header-buffers",
            "keep-alive",
            "keep-alive-requests",
            "http2-max-field-size",
            "http2-max-header-size",
            "http2-max-requests",
            "http2-max-concurrent-streams",
            "max-worker-connections",
            "worker-shutdown-timeout",
            "upstream-keepalive-connections",
            "upstream-keepalive-time",
            "upstream-keepalive-timeout",
            "upstream-keepalive-requests",
            "worker-processes",
            "bind-address",
            "server-tokens",
            "allow-backend-server-header",
            "generate-request-id",
            "enable-ocsp",
            "otlp-collector-host",
            "otlp-collector-port",
            "otel-sampler",
            "otel-sampler-ratio",
            "otel-sampler-parent-based",
            "otel-service-name",
            "otel-max-queuesize",
            "otel-schedule-delay-millis",
            "otel-max-export-batch-size",
            "opentelemetry-config",
        ),
        "the gateway has settings of its own, and defaults that suit most",
    ),
    **dict.fromkeys(
        (
            "disable-ipv6",
            "disable-ipv6-dns",
            "enable-underscores-in-headers",
            "ignore-invalid-headers",
            "enable-multi-accept",
            "max-worker-open-files",
            "map-hash-bucket-size",
            "map-hash-max-size",
            "nginx-status-ipv4-whitelist",
            "nginx-status-ipv6-whitelist",
            "server-name-hash-max-size",
            "server-name-hash-bucket-size",
            "proxy-headers-hash-max-size",
            "proxy-headers-hash-bucket-size",
            "reuse-port",
            "ssl-ecdh-curve",
            "ssl-dh-param",
            "ssl-session-cache",
            "ssl-session-cache-size",
            "ssl-session-tickets",
            "ssl-session-ticket-key",
            "ssl-session-timeout",
            "ssl-buffer-size",
            "ssl-early-data",
            "enable-aio-write",
            "geoip2-autoreload-in-minutes",
            "worker-cpu-affinity",
            "enable-serial-reloads",
            "variables-hash-bucket-size",
            "variables-hash-max-size",
            "limit-conn-zone-variable",
            "lua-shared-dicts",
            "default-type",
            "debug-connections",
            "strict-validate-path-type",
            "grpc-buffer-size-kb",
            "server-name-hash-bucket-size",
        ),
        _NO_NEED,
    ),
    **dict.fromkeys(
        (
            "jaeger-collector-host",
            "jaeger-collector-port",
            "jaeger-endpoint",
            "jaeger-service-name",
            "jaeger-propagation-format",
            "jaeger-sampler-type",
            "jaeger-sampler-param",
            "jaeger-sampler-host",
            "jaeger-sampler-port",
            "jaeger-trace-context-header-name",
            "jaeger-debug-header",
            "jaeger-baggage-header",
            "jaeger-trace-baggage-header-prefix",
        ),
        "removed before the last release of ingress-nginx",
    ),
}


_GLOBAL_AUTH: Final = (
    "url",
    "method",
    "signin",
    "signin-redirect-param",
    "response-headers",
    "request-redirect",
    "cache-key",
    "cache-duration",
    "always-set-cookie",
)


def _global_auth(name: str) -> NginxAnnotation:
    """Return the row of a key that says of all Ingresses what an annotation says of one."""
    row = NGINX_TABLE.rows[f"auth-{name}"]
    assert isinstance(row, NginxAnnotation)
    read = values.service_url if name == "url" else row.read
    sets = f"global_{row.sets}"
    return replace(row, name=f"global-auth-{name}", sets=sets, read=read, guards=row.guards, drops=False)


def _rows() -> tuple[NginxAnnotation, ...]:
    shared = tuple(row for name in _SHARED if isinstance(row := NGINX_TABLE.rows[name], NginxAnnotation))
    refused = tuple(
        NginxAnnotation(name=name, read=_unread, value="", example="x", refused=why, guards=guards)
        for name, why, guards in _REFUSED
    )
    ignored = tuple(
        NginxAnnotation(name=name, read=_unread, value="", example="x", ignored=why) for name, why in _IGNORED.items()
    )
    return (*shared, *map(_global_auth, _GLOBAL_AUTH), *_OWN, *refused, *ignored)


class OptionTable(AnnotationTable):
    """The keys of a ConfigMap."""

    def field(self, name: str) -> str:
        """Return the field path of a key."""
        return f"data[{name}]"


OPTION_ROWS: Final = _rows()
OPTIONS: Final = OptionTable("", {row.name: row for row in OPTION_ROWS})
