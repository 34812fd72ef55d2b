"""Annotations of ingress-nginx about rates and cross-origin requests."""

from headgate.translator.annotations.nginx import values
from headgate.translator.annotations.nginx.row import NginxAnnotation, Risk

LIMITS = (
    NginxAnnotation(
        name="limit-rps",
        sets="limits.per_second",
        read=values.count,
        value="number",
        does="Requests of one client in a second; more get a 503.",
        example="10",
        drops=True,
    ),
    NginxAnnotation(
        name="limit-rpm",
        sets="limits.per_minute",
        read=values.count,
        value="number",
        does="Requests of one client in a minute.",
        example="300",
        drops=True,
    ),
    NginxAnnotation(
        name="limit-burst-multiplier",
        sets="limits.burst",
        read=values.count,
        value="number",
        default="5",
        does="So many times the limit may come at once.",
        example="3",
    ),
    NginxAnnotation(
        name="limit-connections",
        sets="limits.connections",
        read=values.count,
        value="number",
        does="Requests of one client at the same time; more get a 503.",
        example="5",
        drops=True,
    ),
    NginxAnnotation(
        name="limit-rate",
        sets="limits.rate",
        read=values.count,
        value="KiB in a second",
        does="Speed of each answer.",
        example="100",
    ),
    NginxAnnotation(
        name="limit-rate-after",
        sets="limits.after",
        read=values.count,
        value="KiB",
        does="What goes out at full speed before.",
        example="500",
    ),
    *(
        NginxAnnotation(
            name=name,
            sets="limits.exempt",
            read=values.networks,
            value="networks, separated by commas",
            does=does,
            example="10.0.0.0/8",
            drops=True,
        )
        for name, does in (
            ("limit-whitelist", "The older name of `limit-allowlist`."),
            ("limit-allowlist", "Clients that no limit holds for."),
        )
    ),
)
CORS = (
    NginxAnnotation(
        name="enable-cors",
        sets="cors.is_enabled",
        read=values.boolean,
        value="boolean",
        default="false",
        does="Answers say which origins may read them; `OPTIONS` is answered with 204.",
        example="true",
    ),
    NginxAnnotation(
        name="cors-allow-origin",
        sets="cors.*",
        read=values.origins,
        value="origins, `*` for one label; or `*`",
        default="*",
        does="Origins that may.",
        approximation="what is no origin is left out, also where ingress-nginx would then allow all",
        example="https://*.example.com, https://example.org:8443",
        risk=Risk.MEDIUM,
    ),
    NginxAnnotation(
        name="cors-allow-methods",
        sets="cors.methods",
        read=values.methods,
        value="methods",
        default="GET, PUT, POST, DELETE, PATCH, OPTIONS",
        does="Methods that they may use.",
        example="GET, POST",
        risk=Risk.MEDIUM,
    ),
    NginxAnnotation(
        name="cors-allow-headers",
        sets="cors.headers",
        read=values.header_text,
        value="headers",
        default="DNT,Keep-Alive,User-Agent,X-Requested-With,If-Modified-Since,Cache-Control,Content-Type,Range,"
        "Authorization",
        does="Headers that they may send.",
        example="X-Requested-With, Content-Type",
        risk=Risk.MEDIUM,
    ),
    NginxAnnotation(
        name="cors-allow-credentials",
        sets="cors.credentials",
        read=values.boolean,
        value="boolean",
        default="true",
        does="Whether they may send cookies.",
        example="false",
    ),
    NginxAnnotation(
        name="cors-expose-headers",
        sets="cors.exposed",
        read=values.exposed_headers,
        value="headers, or `*`",
        does="Headers of answers that they may read.",
        example="X-Total-Count",
        risk=Risk.MEDIUM,
    ),
    NginxAnnotation(
        name="cors-max-age",
        sets="cors.max_age",
        read=values.integer,
        value="seconds",
        default="1728000",
        does="How long browsers keep what a preflight said.",
        example="600",
    ),
)
