"""The plugins that stand for annotations of ingress-nginx."""

from collections.abc import Iterator
from typing import Any, Final

from pydantic import ValidationError

from headgate.common.plugins.config import PluginConfig
from headgate.common.plugins.expressions import Comparison, write_comparison
from headgate.common.plugins.limits.bandwidth import BandwidthConfig
from headgate.common.plugins.limits.limits import LimitConnConfig, LimitReqConfig, RequestRate
from headgate.common.plugins.meta import META
from headgate.common.plugins.security.cors import CorsConfig
from headgate.common.plugins.security.hsts import HstsConfig
from headgate.common.plugins.security.restrictions import UaRestrictionConfig
from headgate.common.plugins.traffic.redirect import RedirectConfig
from headgate.common.plugins.transformation.compression import BrotliConfig, GzipConfig
from headgate.common.plugins.transformation.fault_injection import Abort, FaultInjectionConfig
from headgate.common.plugins.transformation.proxy_redirect import AddressRule, ProxyRedirectConfig
from headgate.common.plugins.transformation.response_rewrite import AnswerHeaderChanges, ResponseRewriteConfig
from headgate.common.resources import JsonObject
from headgate.common.table import PluginUse
from headgate.translator.annotations.reading import Reading

_METHODS: Final = "GET, PUT, POST, DELETE, PATCH, OPTIONS"
_HEADERS: Final = (
    "DNT,Keep-Alive,User-Agent,X-Requested-With,If-Modified-Since,Cache-Control,Content-Type,Range,Authorization"
)
_MAX_AGE: Final = 1728000
_BURST: Final = 5
_HSTS_AGE: Final = 31_536_000
_SHOWN: Final = 60
"""Characters of a mistake that are shown."""
_REDIRECT_ORDER: Final = 3900
_OLD_EXPLORERS: Final = "msie6"
_LIMIT_ORDER: Final = 3500
_GZIP_TYPES: Final = (
    "application/atom+xml",
    "application/javascript",
    "application/x-javascript",
    "application/json",
    "application/rss+xml",
    "application/vnd.ms-fontobject",
    "application/x-font-ttf",
    "application/x-web-app-manifest+json",
    "application/xhtml+xml",
    "application/xml",
    "font/opentype",
    "image/svg+xml",
    "image/x-icon",
    "text/css",
    "text/javascript",
    "text/plain",
    "text/x-component",
)


def plugins_of(reading: Reading) -> list[PluginUse]:
    """Return the plugins that stand for annotations, but for those that depend on the path, and for `access`."""
    found = (
        *_blocked(reading),
        _cors(reading),
        _addresses(reading),
        *_limits(reading),
        *_compression(reading),
        _answer_headers(reading),
    )
    return [use for use in found if use is not None]


def _blocked(reading: Reading) -> Iterator[PluginUse]:
    blocked = reading.group("block")
    if agents := blocked.get("agents"):
        yield PluginUse.of(UaRestrictionConfig(denylist=agents, bypass_missing=True))
    if sources := blocked.get("referers"):
        pattern = "|".join(f"(?:{source})" for source in sources)
        told = Comparison("http_referer", "~~", pattern, is_turned=False)
        yield PluginUse.of(FaultInjectionConfig(abort=Abort(http_status=403, vars=([write_comparison(told)],))))


def _compression(reading: Reading) -> Iterator[PluginUse]:
    brotli, gzip = reading.group("brotli"), reading.group("gzip")
    if brotli.get("is_on"):
        fields = {"comp_level": brotli.get("level", 4), "min_length": max(1, brotli.get("min_length", 20))}
        yield PluginUse.of(BrotliConfig(types=("text/html", *brotli.get("types", _GZIP_TYPES)), **fields))
    if gzip.get("is_on"):
        fields = {"comp_level": gzip.get("level", 1), "min_length": max(1, gzip.get("min_length", 256))}
        use = PluginUse.of(GzipConfig(types=("text/html", *gzip.get("types", _GZIP_TYPES)), **fields))
        yield _but_for(use, gzip["not_for"]) if "not_for" in gzip else use


def _but_for(use: PluginUse, agents: str) -> PluginUse:
    """Return the use for all requests but those of clients that call themselves so.

    nginx takes `msie6` for old Internet Explorers, but for those with service pack 1 of their last version.
    """
    excused = agents == _OLD_EXPLORERS
    pattern = r"MSIE [4-6]\." if excused else f"(?i){agents}"
    others = write_comparison(Comparison("http_user_agent", "~~", pattern, is_turned=True))
    mended = write_comparison(Comparison("http_user_agent", "~~", "SV1", is_turned=False))
    found = ["OR", others, mended] if excused else others
    return use.model_copy(update={"config": {**use.config, META: {"filter": [found]}}})


def _answer_headers(reading: Reading) -> PluginUse | None:
    answer = reading.group("answer")
    hidden: tuple[str, ...] = answer.get("hidden", ())
    if not answer.get("names_server", True):
        hidden = (*hidden, "Server")
    if not hidden:
        return None
    return PluginUse.of(ResponseRewriteConfig(headers=AnswerHeaderChanges(remove=hidden)))


def hsts(reading: Reading) -> PluginUse | None:
    """Return what tells clients to come with TLS only; None: nothing does."""
    written = reading.group("hsts")
    if not written.get("is_on", True):
        return None
    config = HstsConfig(
        max_age=written.get("max_age", _HSTS_AGE),
        include_subdomains=written.get("subdomains", True),
        preload=written.get("preload", False),
    )
    return PluginUse.of(config)


def https_redirect(redirects: JsonObject) -> PluginUse:
    """Return the redirect of plain requests to TLS."""
    config = RedirectConfig(
        http_to_https=True,
        ret_code=redirects.get("ssl_code", 308),
        strip_trailing_slash=not redirects.get("keeps_slash", False),
        names_port=redirects.get("with_port", False),
    )
    return early(config)


def early(config: RedirectConfig) -> PluginUse:
    """Return a redirect that comes after `cors`, and before whatever lets requests in, as with nginx."""
    return PluginUse.of(config).model_copy(update={"order": _REDIRECT_ORDER})


def _cors(reading: Reading) -> PluginUse | None:
    cors = reading.group("cors")
    origins = cors.get("origins", ("*",))
    if left_out := cors.get("left_out"):
        message = f"{left_out[0][:_SHOWN]!r} is no origin such as https://shop.example.com:8443 and is left out"
        reading.caution("cors-allow-origin", message)
    if not cors.get("is_enabled") or not origins:
        return None
    config = CorsConfig(
        allow_origins=",".join(origins),
        allow_methods=cors.get("methods", _METHODS),
        allow_headers=cors.get("headers", _HEADERS),
        expose_headers=cors.get("exposed", ""),
        max_age=cors.get("max_age", _MAX_AGE),
        allow_credential=cors.get("credentials", True),
        preflight_status=204,
        unconditional=True,
    )
    return PluginUse.of(config)


def _early(config: PluginConfig) -> PluginUse:
    """Return a use before those that authenticate: nginx counts requests before it asks who sends them."""
    return PluginUse.of(config).model_copy(update={"order": _LIMIT_ORDER})


def _addresses(reading: Reading) -> PluginUse | None:
    """Return what rewrites the addresses that upstreams give, in redirects and cookies."""
    written = reading.group("addresses")
    start, end = written.get("redirect_from", "off"), written.get("redirect_to", "off")
    redirect = (start, end) if start not in ("off", "default") and end != "off" else None
    named = {"location": redirect, "cookie_domain": written.get("domain"), "cookie_path": written.get("path")}
    try:
        fields: dict[str, Any] = {field: (_address_rule(*pair),) for field, pair in named.items() if pair}
    except ValidationError:
        reading.refuse("proxy-redirect-from", "must be a text, or after ~ a pattern that can be compiled")
        return None
    absolute = not reading.group("redirects").get("relative", False)
    return PluginUse.of(ProxyRedirectConfig(absolute=absolute, **fields)) if fields else None


def _address_rule(pattern: str, replacement: str) -> AddressRule:
    is_regex = pattern.startswith("~")
    return AddressRule(pattern=pattern.removeprefix("~"), replacement=replacement, is_regex=is_regex)


def _limits(reading: Reading) -> list[PluginUse]:
    limits = reading.group("limits")
    burst, exempt = limits.get("burst", _BURST), limits.get("exempt", ())
    shared: dict[str, Any] = {"allowlist": exempt} if exempt else {}
    of_rates = {"rejected_code": limits["rate_status"]} if "rate_status" in limits else {}
    of_connections = {"rejected_code": limits["connection_status"]} if "connection_status" in limits else {}
    rates = [(limits.get("per_second", 0), 1), (limits.get("per_minute", 0), 60)]
    rules = [RequestRate(rate=number / seconds, burst=number * burst) for number, seconds in rates if number]
    uses = []
    if rules:
        first, *others = rules
        config = LimitReqConfig(
            rate=first.rate, burst=first.burst, also=tuple(others), nodelay=True, **shared, **of_rates
        )
        uses.append(_early(config))
    if connections := limits.get("connections", 0):
        uses.append(_early(LimitConnConfig(conn=connections, **shared, **of_connections)))
    if rate := limits.get("rate", 0):
        uses.append(PluginUse.of(BandwidthConfig(rate=rate << 10, after=limits.get("after", 0) << 10)))
    return uses
