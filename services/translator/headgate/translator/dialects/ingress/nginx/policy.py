"""What the annotations of ingress-nginx on one Ingress say, as parts of routes and upstreams."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlsplit

from pydantic import ValidationError

from headgate.common.effort import bounded_effort
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
from headgate.common.table import (
    BackendProtocol,
    Balancing,
    BalancingPolicy,
    Canary,
    Mirror,
    PluginUse,
    Retries,
    Stickiness,
    Timeouts,
    Tracing,
)
from headgate.translator.annotations.nginx.reading import read_nginx_annotations, says_something
from headgate.translator.annotations.nginx.row import NGINX_PREFIX
from headgate.translator.annotations.nginx.values import is_pattern
from headgate.translator.annotations.reading import Reading
from headgate.translator.dialects.ingress.canary import make_canary
from headgate.translator.dialects.ingress.nginx.options import NO_OPTIONS, NginxOptions
from headgate.translator.manifests.patches import RoutePatch, UpstreamPatch

COOKIE: Final = "INGRESSCOOKIE"
DEFAULT_BODY: Final = 1 << 20
_METHODS: Final = "GET, PUT, POST, DELETE, PATCH, OPTIONS"
_HEADERS: Final = (
    "DNT,Keep-Alive,User-Agent,X-Requested-With,If-Modified-Since,Cache-Control,Content-Type,Range,Authorization"
)
_MODSECURITY: Final = f"{NGINX_PREFIX}enable-modsecurity"
_MAX_AGE: Final = 1728000
_BURST: Final = 5
_HSTS_AGE: Final = 31_536_000
_MAX_ATTEMPTS: Final = 10
_MAX_BUFFER: Final = 16 << 20
_DEFAULT_BUFFER: Final = 1 << 20
_TRIES: Final = 3
_SHOWN: Final = 60
"""Characters of a mistake that are shown."""
_LEAST_TOTAL: Final = 100
"""Of which shares are: a smaller `canary-weight-total` counts as this."""
_REDIRECT_ORDER: Final = 3900
_CACHED_SIZE: Final = 2048
"""Characters of a set of annotations that is kept read for the next object that has it."""
_CACHED_POLICIES: Final = 1024
"""Sets of annotations that are kept read."""
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


@dataclass(frozen=True, slots=True)
class NginxPolicy:
    """The annotations of one Ingress."""

    reading: Reading
    patch: RoutePatch
    """For all routes, besides what depends on host and path."""
    upstream: UpstreamPatch
    """For all upstreams."""
    follows_scheme: bool
    """Whether upstreams are spoken to as the client speaks."""
    canary: Canary | None
    hsts: PluginUse | None
    """For routes of hosts with TLS."""
    https_redirect: PluginUse
    """For those too, or for all."""
    unreadable: tuple[str, ...]
    """Keys of the ConfigMap because of which all requests are refused."""
    redirects: JsonObject
    """Fields of group `redirects`, as they were written."""
    rewrite: JsonObject


def read_nginx_policy(name: str, annotations: JsonObject, options: NginxOptions = NO_OPTIONS) -> NginxPolicy:
    """Read the annotations of ingress-nginx of the Ingress with a name.

    Most Ingresses of a cluster have the same few sets of annotations: each set is read once.
    """
    texts = [value for value in annotations.values() if isinstance(value, str)]
    if len(texts) == len(annotations) and sum(map(len, texts)) <= _CACHED_SIZE:
        policy = _read_once(tuple(annotations.items()), options)
    else:
        policy = _read(annotations, options)
    plugins = tuple(_counted_for(name, use) for use in policy.patch.plugins)
    patch = policy.patch.model_copy(update={"plugins": plugins}) if plugins else policy.patch
    return replace(policy, reading=policy.reading.copy(), patch=patch)


def _counted_for(name: str, use: PluginUse) -> PluginUse:
    """Return a limit that counts the requests of one Ingress together; of other plugins the use as it is."""
    if use.name not in (LimitReqConfig.plugin, LimitConnConfig.plugin):
        return use
    return use.model_copy(update={"config": {**use.config, "group": f"Ingress {name}"}})


@lru_cache(maxsize=_CACHED_POLICIES)
def _read_once(annotations: tuple[tuple[str, Any], ...], options: NginxOptions) -> NginxPolicy:
    return _read(dict(annotations), options)


@bounded_effort()
def _read(annotations: JsonObject, options: NginxOptions) -> NginxPolicy:
    reading = read_nginx_annotations(annotations, options.groups)
    balancing, affinity = _balancing(reading), _stickiness(reading)
    upstream = reading.group("upstream")
    connection = upstream.get("connection")
    return NginxPolicy(
        reading=reading,
        patch=RoutePatch(
            timeouts=_timeouts(reading),
            retries=_retries(reading),
            stickiness=affinity,
            plugins=tuple(_plugins(reading)),
            mirrors=_mirrors(reading),
            max_body=reading.group("route").get("max_body", DEFAULT_BODY) or None,
            buffer_request=reading.group("route").get("buffer_request"),
            buffer_response=_buffer(reading),
            access_log_share=_log_share(reading),
            tracing=_tracing(reading),
            nginx_headers=True,
        ),
        upstream=UpstreamPatch(
            protocol=_protocol(reading),
            balancing=balancing,
            host=upstream.get("host"),
            max_requests_per_connection=1 if connection == "close" else None,
            sends_connection=True if connection else None,
        ),
        follows_scheme="protocol" in upstream and upstream["protocol"] is None,
        canary=_canary(reading),
        hsts=_hsts(reading),
        https_redirect=_https_redirect(reading.group("redirects")),
        unreadable=_unreadable(annotations, options),
        redirects=reading.group("redirects"),
        rewrite=reading.group("rewrite"),
    )


def _unreadable(annotations: JsonObject, options: NginxOptions) -> tuple[str, ...]:
    """Return the keys that keep requests out; an Ingress can turn ModSecurity off for itself."""
    written = annotations.get(_MODSECURITY)
    if not written or says_something(written):
        return options.unreadable
    return tuple(key for key in options.unreadable if "modsecurity" not in key)


def _protocol(reading: Reading) -> BackendProtocol | None:
    protocol: BackendProtocol | None = reading.group("upstream").get("protocol")
    return protocol


def _timeouts(reading: Reading) -> Timeouts | None:
    written = {name: value for name, value in reading.group("timeouts").items() if value is not None}
    return Timeouts(**written) if written else None


def _retries(reading: Reading) -> Retries | None:
    """`tries` counts the first attempt; 0 is no limit."""
    retries, tries = reading.group("retries"), reading.group("tries")
    if not retries and not tries:
        return None
    fields: dict[str, Any] = {"on": ("connect", "reset", "timeout"), "budget": None, **retries}
    if "attempts" not in fields:
        count = tries.get("count", _TRIES)
        fields["attempts"] = min(count - 1 if count else _MAX_ATTEMPTS, _MAX_ATTEMPTS)
    if tries.get("total_s"):
        fields["total_s"] = tries["total_s"]
    return Retries(**fields)


def _buffer(reading: Reading) -> int | None:
    buffers = reading.group("buffers")
    if not buffers.get("is_on"):
        return None
    return min(buffers.get("size", _DEFAULT_BUFFER), _MAX_BUFFER) or None


def _log_share(reading: Reading) -> float | None:
    logging = reading.group("logging")
    is_off = logging.get("is_off", False) or logging.get("is_http_off", False)
    return None if logging.get("is_on", True) and not is_off else 0.0


def _tracing(reading: Reading) -> Tracing | None:
    tracing = reading.group("tracing")
    if not tracing:
        return None
    share = None if tracing.get("is_on", True) else 0.0
    return Tracing(share=share, heeds_parent=tracing.get("trusts", True) and share is None)


def _plugins(reading: Reading) -> list[PluginUse]:
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


def _hsts(reading: Reading) -> PluginUse | None:
    hsts = reading.group("hsts")
    if not hsts.get("is_on", True):
        return None
    config = HstsConfig(
        max_age=hsts.get("max_age", _HSTS_AGE),
        include_subdomains=hsts.get("subdomains", True),
        preload=hsts.get("preload", False),
    )
    return PluginUse.of(config)


def _https_redirect(redirects: JsonObject) -> PluginUse:
    config = RedirectConfig(
        http_to_https=True,
        ret_code=redirects.get("ssl_code", 308),
        strip_trailing_slash=not redirects.get("keeps_slash", False),
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


def _mirrors(reading: Reading) -> tuple[Mirror, ...]:
    mirror = reading.group("mirror")
    written = mirror.get("target")
    if not written:
        return ()
    try:
        parts = urlsplit(written.replace("$request_uri", ""))
        is_target = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_target = False
    if not is_target or "$" in parts.netloc:
        reading.refuse("mirror-target", "must be a URL that begins with http:// or https://")
        return ()
    keeps_path = "$request_uri" in written
    fields: dict[str, Any] = {"path": parts.path} if parts.path.strip("/") or keeps_path else {}
    if keeps_path:
        fields["path_mode"] = "prefix"
    return (
        Mirror(
            address=f"{parts.scheme}://{parts.netloc}",
            host=mirror.get("host", ""),
            with_body=mirror.get("with_body", True),
            **fields,
        ),
    )


def _balancing(reading: Reading) -> Balancing | None:
    written = reading.group("balancing")
    if "hash" in written:
        subset = written.get("subset_size", _TRIES) if written.get("by_subset") else None
        return Balancing(policy=BalancingPolicy.RING_HASH, hash=written["hash"], subset_size=subset)
    return Balancing(policy=written["policy"]) if "policy" in written else None


def _stickiness(reading: Reading) -> Stickiness | None:
    written = reading.group("affinity")
    if written.get("kind") != "cookie":
        return None
    if reading.group("paths").get("use_regex") and not written.get("path"):
        reading.caution("affinity", "needs session-cookie-path where paths are patterns (use-regex)")
    age, expires = written.get("max_age_s"), written.get("expires_s")
    return Stickiness(
        cookie=written.get("cookie", COOKIE),
        mode=written.get("mode", "balanced"),
        path=written.get("path", ""),
        domain=written.get("domain", ""),
        max_age_s=age if age is not None and age >= 0 else None,
        expires_s=expires if expires is not None and expires >= 0 else None,
        secure=True if written.get("secure") else None,
        conditional_same_site=written.get("conditional", False),
        change_on_failure=written.get("changes", False),
        same_site=written.get("same_site", ""),
    )


def _canary(reading: Reading) -> Canary | None:
    written = reading.group("canary")
    if not written.get("is_canary"):
        return None
    if not is_pattern(written.get("header_regex", "")):
        message = "cannot be compiled by RE2: requests with the header stay with the main Ingress"
        reading.caution("canary-by-header-pattern", message)
        written["header_regex"] = None
    share = min(1.0, written.get("weight", 0) / max(_LEAST_TOTAL, written.get("total", 0)))
    binds = reading.group("affinity").get("canary") != "legacy"
    return make_canary(written, share).model_copy(update={"keeps_sessions": binds, "needs_main": True})
