"""Values that are hidden before an object is published, as the key of another gateway's Admin API in a GatewayProxy."""

from collections.abc import Sequence
from typing import Any

from headgate.common.resources import JsonObject, ResourceKind

HIDDEN = "***"


def hide_fields(kind: ResourceKind, manifest: JsonObject) -> JsonObject:
    """Return an object without the values that its row hides; that there is one can still be seen."""
    shown: JsonObject = manifest
    for field in kind.hidden:
        shown = _hide(shown, field.split("."))
    return shown


def _hide(value: Any, path: Sequence[str]) -> Any:
    if not path:
        return HIDDEN
    name, *rest = path
    if not isinstance(value, dict) or value.get(name) is None:
        return value
    return {**value, name: _hide(value[name], rest)}
