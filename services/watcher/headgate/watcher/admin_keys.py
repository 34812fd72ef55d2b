"""GatewayProxies on their way to the log: the key of another gateway's Admin API is nobody's business here."""

from typing import Any

from headgate.common.resources import JsonObject

_WAY = ("spec", "provider", "controlPlane", "auth", "adminKey", "value")
HIDDEN = "***"


def hide_admin_key(manifest: JsonObject) -> JsonObject:
    """Return a GatewayProxy without the key that may stand in it; that there is one stays to be seen."""
    hidden: JsonObject = _hide(manifest, _WAY)
    return hidden


def _hide(value: Any, way: tuple[str, ...]) -> Any:
    if not way:
        return HIDDEN
    if not isinstance(value, dict) or value.get(way[0]) is None:
        return value
    return {**value, way[0]: _hide(value[way[0]], way[1:])}
