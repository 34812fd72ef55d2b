"""The filter RequestRedirect, as the plugin `redirect` says it.

Without a scheme and a port the client is sent to the port that it came by, as it is known to clients: that of the
listener. A port that its scheme has anyway is not written.
"""

import re
from typing import Final, NamedTuple

from headgate.common.plugins.traffic.redirect import RedirectConfig
from headgate.common.table import PluginUse
from headgate.translator.dialects.gateway_api.gateways.ports import Transport
from headgate.translator.dialects.gateway_api.models.filters import PathModifier, RequestRedirect
from headgate.translator.dialects.gateway_api.routes.literals import literal

_PORTS: Final[dict[Transport, int]] = {"http": 80, "https": 443}


class Origin(NamedTuple):
    """Where clients come from who are redirected: a listener."""

    transport: Transport
    port: int


def depends_on_origin(written: RequestRedirect) -> bool:
    """Whether it depends on the listener which port a client is told."""
    return written.scheme is None and written.port in (None, *_PORTS.values())


def redirect_use(written: RequestRedirect, prefix: str | None, origin: Origin | None) -> PluginUse:
    """Return the plugin that says it.

    Args:
        written: the filter.
        prefix: that the match asks for, if a prefix is to be replaced.
        origin: where clients come from; None if nothing depends on it.
    """
    base = f"{written.scheme or '${scheme}'}://{literal(written.hostname) or '${host}'}{_port(written, origin)}"
    path = written.path
    fields: dict[str, object] = {"ret_code": written.status_code}
    if path is None:
        fields["uri"] = f"{base}${{request_uri}}"
    elif path.type == "ReplaceFullPath":
        fields |= {"uri": f"{base}{literal(_slashed(path.replace_full_path or ''))}", "append_query_string": True}
    else:
        fields |= {"regex_uri": _prefix_pair(base, path, prefix or "/"), "append_query_string": True}
    return PluginUse.of(RedirectConfig.model_validate(fields))


def _port(written: RequestRedirect, origin: Origin | None) -> str:
    scheme = written.scheme or (origin.transport if origin is not None else None)
    port = written.port or (None if written.scheme or origin is None else origin.port)
    is_usual = port is None or (scheme is not None and port == _PORTS[scheme])
    return "" if is_usual else f":{port}"


def _prefix_pair(base: str, path: PathModifier, prefix: str) -> tuple[str, str]:
    """Return a pattern for a path with a prefix, and the URL with another one: elements stay whole."""
    beginning, instead = re.escape(prefix.rstrip("/")), (path.replace_prefix_match or "").rstrip("/")
    if instead:
        return f"^{beginning}(/.*)?$", f"{base}{literal(_slashed(instead))}${{1}}"
    return f"^{beginning}/?(.*)$", f"{base}/${{1}}"


def _slashed(path: str) -> str:
    return path if path.startswith("/") else f"/{path}"
