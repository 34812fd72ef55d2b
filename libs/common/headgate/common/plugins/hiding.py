"""Configurations of plugins without the secrets that users write into them in plain text, for people to read."""

from collections.abc import Callable, Iterator
from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from headgate.common.plugins.catalogue import CONFIGS
from headgate.common.plugins.credentials import CREDENTIALS
from headgate.common.secret import Secret

Hide = Callable[[str], str]
"""Returns what is shown instead of a secret."""


def hide_secrets(plugin: str, config: dict[str, Any], hide: Hide) -> dict[str, Any]:
    """Return a configuration of a built-in plugin, or what it knows of a consumer, in which secrets are replaced.

    Of third-party plugins nobody here knows which fields are secret; theirs belong into sealed values.
    """
    models = [table[plugin] for table in (CONFIGS, CREDENTIALS) if plugin in table]
    for model in models:
        config = _hidden(config, model, hide)
    return config


def secret_fields(model: type[BaseModel]) -> frozenset[str]:
    """Return the names of the fields of a configuration that are secret."""
    return frozenset(name for name, info in model.model_fields.items() if _is_secret(info.annotation))


def _hidden(value: Any, expected: Any, hide: Hide) -> Any:
    """Replace the secrets in a value of an expected type."""
    if isinstance(value, list):
        return [_hidden(one, expected, hide) for one in value]
    if isinstance(value, dict):
        fields = {info.alias or name: info for model in _models(expected) for name, info in model.model_fields.items()}
        other = next(_held_by_maps(expected), None)
        # Actions of `workflow` are written as lists, in which a plugin's fields stand where its own model has others.
        fields = {**_secrets_below(expected), **fields}
        return {
            name: _hidden(one, fields[name].annotation if name in fields else other, hide)
            for name, one in value.items()
        }
    return hide(value) if isinstance(value, str) and _is_secret(expected) else value


def _secrets_below(expected: Any) -> dict[str, FieldInfo]:
    """Return the secret fields of all models that a type leads to."""
    found: dict[str, FieldInfo] = {}
    for model in _models(expected):
        for name, info in model.model_fields.items():
            if _is_secret(info.annotation):
                found[name] = info
            found |= _secrets_below(info.annotation)
    return found


def _is_secret(expected: Any) -> bool:
    return get_origin(expected) is Secret or any(map(_is_secret, _parts(expected)))


def _models(expected: Any) -> Iterator[type[BaseModel]]:
    if isinstance(expected, type) and issubclass(expected, BaseModel):
        yield expected
    for part in _parts(expected):
        yield from _models(part)


def _held_by_maps(expected: Any) -> Iterator[Any]:
    if get_origin(expected) is dict:
        yield get_args(expected)[1]
    for part in _parts(expected):
        yield from _held_by_maps(part)


def _parts(expected: Any) -> tuple[Any, ...]:
    """Return what a list or a choice is made of; the members of a map are no part of it."""
    return () if get_origin(expected) is dict else get_args(expected)
