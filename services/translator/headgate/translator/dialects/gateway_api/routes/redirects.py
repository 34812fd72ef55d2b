"""The filter RequestRedirect, as the plugin `redirect` says it.

Without a scheme and a port the client is sent to the port that it came by, as it is known to clients: that of the
listener. A port that its scheme has anyway is not written.
"""

import re
from typing import Final

from headgate.common.plugins.traffic.redirect import RedirectConfig
from headgate.common.table import PluginUse
from headgate.translator.dialects.gateway_api.models.filters import PathModifier, RequestRedirect
from headgate.translator.dialects.gateway_api.routes.literals import literal

_PORTS: Final = {"http": 80, "https": 443}


def redirect_use(written: RequestRedirect, prefix: str | None, port: int | None) -> PluginUse:
    """Return the plugin that says it.

    Args:
        written: the filter.
        prefix: that the match asks for, if a prefix is to be replaced.
        port: of the listener, if the client has to be told; None: that of the scheme.
    """
    base = f"{written.scheme or '${scheme}'}://{literal(written.hostname) or '${host}'}{_port(written, port)}"
    path = written.path
    fields: dict[str, object] = {"ret_code": written.status_code}
    if path is None:
        fields["uri"] = f"{base}${{request_uri}}"
    elif path.type == "ReplaceFullPath":
        fields |= {"uri": f"{base}{literal(_slashed(path.replace_full_path or ''))}", "append_query_string": True}
    else:
        fields |= {"regex_uri": _prefix_pair(base, path, prefix or "/"), "append_query_string": True}
    return PluginUse.of(RedirectConfig.model_validate(fields))


def _port(written: RequestRedirect, of_listener: int | None) -> str:
    port = written.port or (None if written.scheme else of_listener)
    is_usual = port is None or port == _PORTS.get(written.scheme or "")
    return "" if is_usual else f":{port}"


def _prefix_pair(base: str, path: PathModifier, prefix: str) -> tuple[str, str]:
    """Return a pattern for a path with a prefix, and the URL with another one: elements stay whole."""
    beginning, instead = re.escape(prefix.rstrip("/")), (path.replace_prefix_match or "").rstrip("/")
    if instead:
        return f"^{beginning}(/.*)?$", f"{base}{literal(_slashed(instead))}${{1}}"
    return f"^{beginning}/?(.*)$", f"{base}/${{1}}"


def _slashed(path: str) -> str:
    return path if path.startswith("/") else f"/{path}"
