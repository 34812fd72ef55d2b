"""Plugins by name, and how a use of one in a route becomes a plugin: secrets opened, configuration checked.

Built-in ones are an explicit table; third-party ones come through the entry-point group `headgate.plugins` and are
imported once, when the registry is made. One that cannot be imported costs the routes that use it, nothing else.
"""

import copy
import difflib
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from pydantic import JsonValue, ValidationError

from headgate.common.errors import SealingError
from headgate.common.sealing import SealedValue
from headgate.common.secret import Secret
from headgate.common.table import PluginUse
from headgate.gateway.plugins.built_in import BUILT_IN
from headgate.gateway.plugins.chain import PluginChain
from headgate.gateway.plugins.errors import PluginRefused
from headgate.gateway.plugins.interface import Plugin, PluginConfig, PluginServices

ENTRY_POINT_GROUP = "headgate.plugins"

Unseal = Callable[[SealedValue], Secret[bytes]]
_Kind = type[Plugin[Any]]


class PluginRegistry:
    """All plugins that routes of this process may use."""

    def __init__(self, found: Iterable[EntryPoint] | None = None, built_in: Mapping[str, _Kind] = BUILT_IN) -> None:
        """Import the third-party plugins; `found` stands for the installed entry points."""
        self._kinds: dict[str, _Kind] = dict(built_in)
        self._broken: dict[str, str] = {}
        for point in entry_points(group=ENTRY_POINT_GROUP) if found is None else found:
            self._add(point)

    def _add(self, point: EntryPoint) -> None:
        logger = logging.getLogger(__name__)
        if point.name in self._kinds:
            logger.warning("plugin %s of %s is ignored: the name is taken", point.name, point.value)
            return
        try:
            self._kinds[point.name] = _checked_kind(point.name, point.load())
        except Exception as error:
            self._broken[point.name] = f"{point.value} cannot be used: {error}"
            logger.exception("plugin %s cannot be used", point.name)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all that can be used, sorted."""
        return tuple(sorted(self._kinds))

    def find(self, name: str) -> _Kind:
        """Return the class of a plugin. Raises PluginRefused."""
        kind = self._kinds.get(name)
        if kind is not None:
            return kind
        if name in self._broken:
            raise PluginRefused(name, "", self._broken[name])
        near = difflib.get_close_matches(name, self._kinds, 3)
        hint = f"did you mean {' or '.join(near)}?" if near else "is its package installed with every gateway?"
        raise PluginRefused(name, "", f"there is no plugin of this name; {hint}")

    def make(self, use: PluginUse, services: PluginServices, unseal: Unseal) -> Plugin[Any]:
        """Make the plugin of one use.

        Raises:
            PluginRefused: unknown plugin, bad configuration, or a secret that this gateway cannot open.
        """
        kind = self.find(use.name)
        config = _read_config(kind, use, _with_secrets(use, unseal))
        try:
            return kind(config, services)
        except Exception as error:
            raise PluginRefused(use.name, "config", f"{error or type(error).__name__}") from error

    def chain(
        self, uses: Iterable[PluginUse], services: PluginServices, unseal: Unseal, *, scope: str = ""
    ) -> PluginChain | None:
        """Make the chain of a route, None without plugins. `scope` is `host|route name`: limits of one scope that are
        told the same count together.

        Raises:
            PluginRefused: as `make`.
        """
        own = replace(services, scope=scope)
        parts = []
        for use in uses:
            plugin = self.make(use, own, unseal)
            parts.append((plugin.order if use.order is None else use.order, plugin))
        return PluginChain(parts, own) if parts else None


def _checked_kind(name: str, loaded: object) -> _Kind:
    if not (isinstance(loaded, type) and issubclass(loaded, Plugin)):
        raise TypeError("it is no subclass of headgate.gateway.plugins.interface.Plugin")
    if getattr(loaded, "name", None) != name:
        raise TypeError(f"its `name` is not {name!r}, that of its entry point")
    if not issubclass(loaded.Config, PluginConfig):
        raise TypeError("its `Config` is no subclass of headgate.gateway.plugins.interface.PluginConfig")
    return loaded


def _with_secrets(use: PluginUse, unseal: Unseal) -> dict[str, JsonValue]:
    """Put the opened secrets into a copy of the configuration."""
    if not use.secrets:
        return use.config
    config = copy.deepcopy(use.config)
    for path, sealed in use.secrets.items():
        try:
            text = unseal(sealed).reveal().decode("utf-8")
        except SealingError as error:
            raise PluginRefused(use.name, f"secrets.{path}", f"cannot be opened: {error}") from error
        except UnicodeDecodeError:
            raise PluginRefused(use.name, f"secrets.{path}", "is not text in UTF-8") from None
        if not _place(config, path.split("."), text):
            raise PluginRefused(use.name, f"secrets.{path}", "there is no such place in the configuration")
    return config


def _place(container: JsonValue, path: list[str], value: str) -> bool:
    """Put a value at a path of names and indexes; objects on the way are made, members of lists are not."""
    key, rest = path[0], path[1:]
    if isinstance(container, dict):
        if not rest:
            container[key] = value
            return True
        return _place(container.setdefault(key, {}), rest, value)
    if isinstance(container, list) and key.isdecimal() and int(key) < len(container):
        if not rest:
            container[int(key)] = value
            return True
        return _place(container[int(key)], rest, value)
    return False


def _read_config(kind: _Kind, use: PluginUse, config: dict[str, JsonValue]) -> PluginConfig:
    try:
        return kind.Config.model_validate(config)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in ("config", *first["loc"]))
        message = first["msg"].removeprefix("Value error, ")
        if first["type"] == "extra_forbidden":
            message = _unknown_field(kind.Config, str(first["loc"][-1]), top=len(first["loc"]) == 1)
        elif first["type"] == "missing":
            message = "is required"
        # Without the cause, whose text may hold what the user wrote, a secret perhaps.
        raise PluginRefused(use.name, field, message) from None


def _unknown_field(config: type[PluginConfig], name: str, *, top: bool) -> str:
    if not top:
        return "there is no such field"
    known = [info.alias or field for field, info in config.model_fields.items()]
    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known) or 'none'}"
    return f"there is no such field; {hint}"
