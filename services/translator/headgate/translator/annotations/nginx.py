"""The `nginx.ingress.kubernetes.io/*` annotations of ingress-nginx: none is read, and here is what says the same.

`headgate audit` and `docs/audit.md` show this table, so that nobody finds out after a move what was left behind.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from headgate.translator.annotations.annotation import PREFIX

NGINX_PREFIX: Final = "nginx.ingress.kubernetes.io/"


class NginxAnnotation(NamedTuple):
    """Annotations of one purpose."""

    names: tuple[str, ...]
    """Without the prefix."""
    instead: str
    """What says the same here, or why there is nothing; `~name` is an annotation of ours."""
    guards: bool = False
    """Whether it keeps requests out: without it they come in."""


_NOTHING = "nothing takes its place"
_ROWS: Final = (
    # Routing, rewrites, redirects
    NginxAnnotation(("use-regex",), "`~path-type: regex`"),
    NginxAnnotation(("rewrite-target", "x-forwarded-prefix"), "plugin `proxy-rewrite` in `~plugins`"),
    NginxAnnotation(
        (
            "app-root",
            "ssl-redirect",
            "force-ssl-redirect",
            "permanent-redirect",
            "permanent-redirect-code",
            "temporal-redirect",
            "temporal-redirect-code",
            "from-to-www-redirect",
        ),
        "plugin `redirect` in `~plugins`",
    ),
    NginxAnnotation(("preserve-trailing-slash",), "nothing is needed: plugin `redirect` keeps slashes"),
    NginxAnnotation(("relative-redirects", "use-port-in-redirects"), "the target of plugin `redirect`"),
    NginxAnnotation(("proxy-redirect-from", "proxy-redirect-to"), _NOTHING),
    NginxAnnotation(("server-alias",), "a rule for each further host"),
    NginxAnnotation(("upstream-vhost",), "`~backend-host` on the Service"),
    NginxAnnotation(("mirror-target", "mirror-host", "mirror-request-body"), "plugin `proxy-mirror` in `~plugins`"),
    NginxAnnotation(
        ("default-backend", "custom-http-errors", "disable-proxy-intercept-errors"), "plugin `error-page` in `~plugins`"
    ),
    # Proxying
    NginxAnnotation(("backend-protocol", "secure-backends", "grpc-backend"), "`~backend-protocol` on the Service"),
    NginxAnnotation(("proxy-connect-timeout",), "`~connect-timeout`"),
    NginxAnnotation(("proxy-send-timeout",), "`~send-timeout`"),
    NginxAnnotation(("proxy-read-timeout",), "`~read-timeout`"),
    NginxAnnotation(("proxy-next-upstream",), "`~retry-on`"),
    NginxAnnotation(("proxy-next-upstream-tries",), "`~retries`, which does not count the first attempt"),
    NginxAnnotation(("proxy-next-upstream-timeout",), "`~request-timeout`, for all attempts together"),
    NginxAnnotation(("proxy-body-size",), "`~max-body`"),
    NginxAnnotation(("proxy-request-buffering",), "`~buffer-request`"),
    NginxAnnotation(("proxy-buffering", "proxy-max-temp-file-size"), "`~buffer-response`"),
    NginxAnnotation(
        (
            "client-body-buffer-size",
            "proxy-buffer-size",
            "proxy-buffers-number",
            "proxy-busy-buffers-size",
            "proxy-http-version",
            "connection-proxy-header",
            "http2-push-preload",
        ),
        "nothing is needed: there are no such buffers and connections to be set",
    ),
    NginxAnnotation(("proxy-cookie-domain", "proxy-cookie-path"), _NOTHING),
    NginxAnnotation(("service-upstream",), "nothing is needed: endpoints are followed"),
    NginxAnnotation(("custom-headers",), "plugin `response-rewrite` in `~plugins`"),
    NginxAnnotation(("fastcgi-index", "fastcgi-params-configmap"), "FastCGI is not spoken: put a web server before it"),
    # TLS
    NginxAnnotation(("proxy-ssl-verify", "proxy-ssl-verify-depth"), "`~backend-tls-verify` on the Service", True),
    NginxAnnotation(("proxy-ssl-secret",), "`~backend-tls-ca` on the Service", True),
    NginxAnnotation(("proxy-ssl-name", "proxy-ssl-server-name"), "`~backend-tls-server-name` on the Service"),
    NginxAnnotation(("proxy-ssl-ciphers", "proxy-ssl-protocols"), _NOTHING),
    NginxAnnotation(("ssl-passthrough",), "`~stream-protocol: tls-passthrough` on the Service"),
    NginxAnnotation(("ssl-ciphers",), "`~tls-ciphers`"),
    NginxAnnotation(("ssl-prefer-server-ciphers",), _NOTHING),
    NginxAnnotation(("auth-tls-secret",), "`~client-auth-secret`", True),
    NginxAnnotation(("auth-tls-verify-client",), "`~client-auth`", True),
    NginxAnnotation(("auth-tls-verify-depth",), "`~client-auth-depth`", True),
    NginxAnnotation(("auth-tls-match-cn",), _NOTHING, True),
    NginxAnnotation(("auth-tls-error-page", "auth-tls-pass-certificate-to-upstream"), _NOTHING),
    # Who may come in
    NginxAnnotation(
        ("auth-type", "auth-secret", "auth-secret-type", "auth-realm"),
        "plugin `basic-auth` in `~plugins`, and consumers",
        True,
    ),
    NginxAnnotation(
        ("auth-url", "auth-method", "auth-proxy-set-headers", "auth-request-redirect"),
        "plugin `forward-auth` in `~plugins`",
        True,
    ),
    NginxAnnotation(("auth-response-headers",), "plugin `forward-auth` in `~plugins`"),
    NginxAnnotation(("auth-signin", "auth-signin-redirect-param"), "`signin` of plugin `forward-auth` in `~plugins`"),
    NginxAnnotation(("auth-always-set-cookie",), "`always_set_cookie` of plugin `forward-auth` in `~plugins`"),
    NginxAnnotation(("enable-global-auth",), "nothing is needed: plugins run where they are written"),
    NginxAnnotation(
        (
            "auth-cache-key",
            "auth-cache-duration",
            "auth-keepalive",
            "auth-keepalive-share-vars",
            "auth-keepalive-requests",
            "auth-keepalive-timeout",
        ),
        _NOTHING,
    ),
    NginxAnnotation(("satisfy",), _NOTHING, True),
    NginxAnnotation(
        ("allowlist-source-range", "whitelist-source-range"),
        "`~client-networks`",
        True,
    ),
    NginxAnnotation(("denylist-source-range",), "plugin `ip-restriction` in `~plugins`", True),
    NginxAnnotation(("limit-rps", "limit-rpm", "limit-burst-multiplier"), "plugin `limit-req` in `~plugins`", True),
    NginxAnnotation(("limit-connections",), "plugin `limit-conn` in `~plugins`", True),
    NginxAnnotation(("limit-rate", "limit-rate-after"), "plugin `bandwidth` in `~plugins`"),
    NginxAnnotation(("limit-allowlist", "limit-whitelist"), "a further Ingress with `~client-networks`"),
    # CORS
    NginxAnnotation(
        (
            "enable-cors",
            "cors-allow-origin",
            "cors-allow-methods",
            "cors-allow-headers",
            "cors-allow-credentials",
            "cors-expose-headers",
            "cors-max-age",
        ),
        "plugin `cors` in `~plugins`",
    ),
    # Balancing, affinity, canaries
    NginxAnnotation(("load-balance",), "`~load-balance` on the Service"),
    NginxAnnotation(("upstream-hash-by",), "`~hash-by` on the Service"),
    NginxAnnotation(("upstream-hash-by-subset", "upstream-hash-by-subset-size"), "`~hash-subset-size` on the Service"),
    NginxAnnotation(("affinity", "session-cookie-name"), "`~sticky-cookie`"),
    NginxAnnotation(("affinity-mode",), "`~sticky-cookie-mode`"),
    NginxAnnotation(("session-cookie-max-age", "session-cookie-expires"), "`~sticky-cookie-max-age`"),
    NginxAnnotation(("session-cookie-path",), "`~sticky-cookie-path`"),
    NginxAnnotation(("session-cookie-samesite",), "`~sticky-cookie-samesite`"),
    NginxAnnotation(
        (
            "affinity-canary-behavior",
            "session-cookie-domain",
            "session-cookie-conditional-samesite-none",
            "session-cookie-secure",
            "session-cookie-change-on-failure",
        ),
        _NOTHING,
    ),
    NginxAnnotation(("canary",), "`~canary`: without it the canary's paths are in conflict with the main Ingress'"),
    NginxAnnotation(("canary-weight",), "`~canary-weight`"),
    NginxAnnotation(("canary-weight-total",), "`~canary-weight`, which is a percentage"),
    NginxAnnotation(("canary-by-header",), "`~canary-by-header`"),
    NginxAnnotation(("canary-by-header-value",), "`~canary-by-header-value`"),
    NginxAnnotation(("canary-by-header-pattern",), "`~canary-by-header-regex`"),
    NginxAnnotation(("canary-by-cookie",), "`~canary-by-cookie`"),
    # Seeing, filtering, configuration in nginx' own words
    NginxAnnotation(("enable-access-log",), "a setting of the gateway: `HEADGATE_ACCESS_LOG`"),
    NginxAnnotation(
        ("enable-opentelemetry", "opentelemetry-trust-incoming-span", "opentelemetry-operation-name"),
        "plugin `opentelemetry` in `~plugins`",
    ),
    NginxAnnotation(("enable-rewrite-log",), _NOTHING),
    NginxAnnotation(
        ("enable-modsecurity", "enable-owasp-core-rules", "modsecurity-snippet", "modsecurity-transaction-id"),
        "there is no ModSecurity here, and nothing takes its place",
        True,
    ),
    NginxAnnotation(
        ("configuration-snippet", "server-snippet", "stream-snippet", "auth-snippet"),
        "nginx' own configuration is not read: say what it does by annotations and plugins",
        True,
    ),
)
NGINX_ANNOTATIONS: Final[Mapping[str, NginxAnnotation]] = {name: row for row in _ROWS for name in row.names}
"""By name, without the prefix."""


def what_instead(row: NginxAnnotation) -> str:
    """Return what is said of annotations of ingress-nginx: what says the same here."""
    return row.instead.replace("~", PREFIX)


def nginx_table() -> str:
    """Return the table in Markdown, for the documentation."""
    return "| annotation | |\n|---|---|\n" + "".join(_lines())


def _lines() -> Iterator[str]:
    for row in _ROWS:
        names = ", ".join(f"`{name}`" for name in row.names)
        yield f"| {names} | {'**guard** ' if row.guards else ''}{row.instead.replace('~', '')} |\n"
