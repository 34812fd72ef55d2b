"""Plugins that routes have fields for: `proxy-mirror` and `opentelemetry`.

Users write them as plugins, and a table has them as `Route.mirrors` and `Route.tracing`, whatever dialect, annotation
or global rule they come from. What is decided for each request, by `_meta`, stays a plugin, and so does a mirror of a
consumer or of all routes, whose place among other plugins counts.
"""

from typing import Any

from headgate.common.plugins.checking import read_config, read_meta
from headgate.common.plugins.errors import PluginFault
from headgate.common.plugins.meta import META
from headgate.common.plugins.observability.opentelemetry import OpentelemetryConfig
from headgate.common.plugins.traffic.proxy_mirror import ProxyMirrorConfig
from headgate.common.table import Mirror, PluginUse, Route, Tracing

_NAMES = frozenset((OpentelemetryConfig.plugin, ProxyMirrorConfig.plugin))


def plugins_as_fields(route: Route) -> Route:
    """Return a route whose plugins are fields of it where there are such.

    A mirror is added to those that there are. Of several that say what is traced the first counts, in the place of what
    the route says.
    """
    if not any(use.name in _NAMES for use in route.plugins):
        return route
    kept: list[PluginUse] = []
    mirrors: list[Mirror] = []
    tracings: list[Tracing] = []
    for use in route.plugins:
        mirror, tracing = _mirror(use), _tracing(use)
        if mirror is not None:
            mirrors.append(mirror)
        elif tracing is not None:
            tracings.append(tracing)
        else:
            kept.append(use)
    changed: dict[str, Any] = {"plugins": tuple(kept)}
    if mirrors:
        changed["mirrors"] = (*route.mirrors, *mirrors)
    if tracings:
        changed["tracing"] = tracings[0]
    return route.model_copy(update=changed)


def _mirror(use: PluginUse) -> Mirror | None:
    """Return what a use of a plugin mirrors; None: it is no mirror, or its place or the request counts."""
    has_place = use.is_global or use.order is not None or META in use.config
    if use.name != ProxyMirrorConfig.plugin or has_place or use.fault or use.secrets:
        return None
    try:
        return read_config(ProxyMirrorConfig, use, {}).as_mirror()
    except PluginFault:
        return None


def _tracing(use: PluginUse) -> Tracing | None:
    """Return what a use of a plugin says of traces; None: nothing."""
    if use.name != OpentelemetryConfig.plugin or use.fault or use.secrets:
        return None
    try:
        return None if read_meta(use).disable else read_config(OpentelemetryConfig, use, {}).as_tracing()
    except PluginFault:
        return None
