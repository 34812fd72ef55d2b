"""Whether a use of a plugin can be followed: the same words for the translator, which checks, and for gateways.

What a user wrote is shown only where it cannot be a secret: numbers, and words out of a fixed choice.
"""

import copy
import difflib
import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from pydantic import JsonValue, ValidationError
from pydantic_core import ErrorDetails

from headgate.common.patterns import bounded_patterns
from headgate.common.plugins.catalogue import CONFIGS
from headgate.common.plugins.config import SEALED, PluginConfig
from headgate.common.plugins.credentials import CREDENTIALS
from headgate.common.plugins.elsewhere import ELSEWHERE
from headgate.common.plugins.errors import PluginFault
from headgate.common.plugins.meta import META, PluginMeta
from headgate.common.secret import Secret
from headgate.common.table import PluginUse

C = TypeVar("C", bound=PluginConfig)
MAX_CONFIG: Final = 128 << 10
"""Bytes of one configuration as JSON. Gateways read one in a go, between requests: nobody's may hold up everybody's."""
_TYPES = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "dict_type": "an object",
    "float_parsing": "a number",
    "float_type": "a number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "list_type": "a list",
    "model_attributes_type": "an object",
    "model_type": "an object",
    "string_type": "a text",
    "tuple_type": "a list",
}
"""What pydantic wants where an error is of this type."""
_NO_META = PluginMeta()


def check_use(use: PluginUse, others: Collection[str] = ()) -> None:
    """Look for what a gateway could not follow; of a third-party plugin only the name is looked at.

    Args:
        use: as a route has it.
        others: names of third-party plugins.

    Raises:
        PluginFault: unknown plugin, or a configuration that it does not take.
    """
    model = CONFIGS.get(use.name)
    if model is None and use.name not in others:
        remedy = "one of a third party is named by the translator's setting plugin_names"
        raise unknown_plugin(use.name, (*CONFIGS, *others), remedy)
    with bounded_patterns():
        read_meta(use)
    if model is not None:
        _check_sealed(model, use)


def check_credential(use: PluginUse) -> None:
    """Look for what a gateway could not follow in what an authentication plugin has to know of a consumer.

    Raises:
        PluginFault: no plugin that recognises consumers, or a configuration that it does not take.
    """
    model = CREDENTIALS.get(use.name)
    if model is None:
        raise PluginFault(use.name, "", f"recognises no consumers; {', '.join(CREDENTIALS)} do")
    _check_sealed(model, use)


def unknown_plugin(name: str, known: Collection[str], remedy: str) -> PluginFault:
    """Return the error about a plugin that is not among those known.

    It says what does instead of one of Apache APISIX' own, else which are like it, else the remedy.
    """
    near = difflib.get_close_matches(name, known, 3)
    hint = ELSEWHERE.get(name) or (f"the nearest is {' or '.join(near)}" if near else remedy)
    return PluginFault(name, "", f"there is no plugin of this name; {hint}")


def read_meta(use: PluginUse) -> PluginMeta:
    """Return what a plugin is told under `_meta`. Raises PluginFault."""
    if META not in use.config:
        return _NO_META
    try:
        return PluginMeta.model_validate(use.config[META])
    except ValidationError as error:
        raise _fault(PluginMeta, use.name, error.errors(include_url=False)[0], META) from None


def read_config(model: type[C], use: PluginUse, secrets: Mapping[str, str]) -> C:
    """Return what a plugin is told.

    Args:
        model: of its configuration.
        use: with the configuration as it was written.
        secrets: what was sealed, opened, by its place in the configuration.

    Raises:
        PluginFault: the plugin does not take it.
    """
    config = _with_secrets(use, secrets)
    try:
        return model.model_validate(config)
    except ValidationError as error:
        # Without the cause, whose text may hold what the user wrote, a secret perhaps.
        raise _fault(model, use.name, error.errors(include_url=False)[0]) from None


@contextmanager
def faults_of(model: type[PluginConfig]) -> Iterator[None]:
    """Raise PluginFault for a value that a configuration made within does not take."""
    try:
        with bounded_patterns():
            yield
    except ValidationError as error:
        raise _fault(model, model.plugin, error.errors(include_url=False)[0]) from None


def check_size(use: PluginUse) -> None:
    """Look whether gateways would read a configuration of this size. Raises PluginFault."""
    size = len(json.dumps(use.config))
    if size > MAX_CONFIG:
        raise PluginFault(use.name, "config", f"must have at most {MAX_CONFIG} bytes as JSON, but has {size}")


def _check_sealed(model: type[PluginConfig], use: PluginUse) -> None:
    """Check a configuration, of which what is sealed cannot be looked at."""
    check_size(use)
    try:
        with bounded_patterns():
            model.model_validate(_with_secrets(use, dict.fromkeys(use.secrets, SEALED)))
    except ValidationError as error:
        for each in error.errors(include_url=False):
            if ".".join(map(str, each["loc"])) not in use.secrets:
                raise _fault(model, use.name, each) from None


def _with_secrets(use: PluginUse, secrets: Mapping[str, str | Secret[str]]) -> Mapping[str, Any]:
    config: dict[str, Any] = copy.deepcopy(use.config) if secrets else use.config
    if META in config:
        config = {name: value for name, value in config.items() if name != META}
    for place, secret in secrets.items():
        if not _put(config, place.split("."), secret):
            raise PluginFault(use.name, f"secrets.{place}", "there is no such place in the configuration")
    return config


def _fault(model: type[PluginConfig], plugin: str, error: ErrorDetails, *at: str) -> PluginFault:
    field = ".".join(str(part) for part in ("config", *at, *error["loc"]))
    return PluginFault(plugin, field, _told(model, error))


def _put(container: Any, path: list[str], value: str | Secret[str]) -> bool:
    """Put a value at a path of names and indexes; objects on the way are made, members of lists are not."""
    key, rest = path[0], path[1:]
    if isinstance(container, dict):
        if not rest:
            container[key] = value
            return True
        return _put(container.setdefault(key, {}), rest, value)
    if isinstance(container, list) and key.isdecimal() and int(key) < len(container):
        if not rest:
            container[int(key)] = value
            return True
        return _put(container[int(key)], rest, value)
    return False


def _told(model: type[PluginConfig], error: ErrorDetails) -> str:
    kind, place = error["type"], error["loc"]
    if kind == "missing":
        return "is required"
    if kind == "extra_forbidden":
        return _unknown_field(model, str(place[-1]), is_at_the_top=len(place) == 1)
    if kind in _TYPES:
        return f"must be {_TYPES[kind]}, but is {_shown(kind, error['input']) or _kind_of(error['input'])}"
    if kind == "union_tag_invalid":
        return f"must be one of {error['ctx']['expected_tags']}, but is {json.dumps(error['ctx']['tag'])[:60]}"
    text = error["msg"].removeprefix("Value error, ").replace(" items after validation, not ", " items, not ")
    for beginning, other in (("Input should be ", "must be "), ("String should ", "must "), ("Tuple should ", "must ")):
        if text.startswith(beginning):
            shown = _shown(kind, error["input"])
            return f"{other}{text.removeprefix(beginning)}{f', but is {shown}' if shown else ''}"
    return text


def _shown(kind: str, written: JsonValue) -> str:
    """Return what was written as JSON; empty if it may be a secret."""
    if isinstance(written, bool | int | float) or (kind == "literal_error" and isinstance(written, str)):
        return json.dumps(written)[:60]
    return ""


def _kind_of(written: JsonValue) -> str:
    """Say what was written without showing it."""
    if written is None:
        return "null"
    if isinstance(written, str):
        return "a text"
    return "an object" if isinstance(written, dict) else "a list"


def _unknown_field(model: type[PluginConfig], name: str, *, is_at_the_top: bool) -> str:
    if not is_at_the_top:
        return "there is no such field"
    known = [info.alias or field for field, info in model.model_fields.items()]
    near = difflib.get_close_matches(name, known, 1)
    hint = f"the nearest is {near[0]}" if near else f"there are {', '.join(known) or 'none'}"
    return f"there is no such field; {hint}"
