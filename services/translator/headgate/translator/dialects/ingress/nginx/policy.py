"""What the annotations of ingress-nginx on one Ingress say, as parts of routes and upstreams."""

from functools import lru_cache
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from headgate.common.effort import bounded_effort
from headgate.common.plugins.limits.limits import LimitConnConfig, LimitReqConfig
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
from headgate.translator.dialects.ingress.nginx.plugins import hsts, https_redirect, plugins_of
from headgate.translator.manifests.patches import RoutePatch, UpstreamPatch

COOKIE: Final = "INGRESSCOOKIE"
DEFAULT_BODY: Final = 1 << 20
_MODSECURITY: Final = f"{NGINX_PREFIX}enable-modsecurity"
_MAX_ATTEMPTS: Final = 10
_MAX_BUFFER: Final = 16 << 20
_DEFAULT_BUFFER: Final = 1 << 20
_TRIES: Final = 3
_LEAST_TOTAL: Final = 100
"""Of which shares are: a smaller `canary-weight-total` counts as this."""
_CACHED_SIZE: Final = 2048
"""Characters of a set of annotations that is kept read for the next object that has it."""
_CACHED_POLICIES: Final = 1024
"""Sets of annotations that are kept read."""
_BY_THEMSELVES: Final = frozenset(
    (
        "addresses",
        "affinity",
        "answer",
        "balancing",
        "brotli",
        "buffers",
        "canary",
        "cors",
        "gzip",
        "hsts",
        "inspection",
        "limits",
        "log",
        "logging",
        "mirror",
        "no_auth",
        "paths",
        "port",
        "redirects",
        "retries",
        "rewrite",
        "route",
        "satisfy",
        "security",
        "timeouts",
        "tracing",
        "tries",
    )
)
"""Groups of annotations that mean the same on every Ingress. Any other is read together with the object."""


class NginxPolicy(NamedTuple):
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
    looks_up: bool
    """Whether it refers to other objects, or to what only the settings know."""


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
    return policy._replace(reading=policy.reading.copy(), patch=patch)


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
            plugins=tuple(plugins_of(reading)),
            mirrors=_mirrors(reading),
            max_body=reading.group("route").get("max_body", DEFAULT_BODY) or None,
            buffer_request=reading.group("route").get("buffer_request"),
            needs_length=_protocol(reading) is BackendProtocol.FCGI or None,
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
        hsts=hsts(reading),
        https_redirect=https_redirect(reading.group("redirects")),
        unreadable=_unreadable(annotations, options),
        redirects=reading.group("redirects"),
        looks_up=not reading.groups <= _BY_THEMSELVES,
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
