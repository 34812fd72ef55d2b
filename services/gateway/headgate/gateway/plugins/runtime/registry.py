"""Plugins by name, and how a use of one in a route becomes a plugin: secrets opened, configuration checked.

Built-in ones are an explicit table; third-party ones come through the entry-point group `headgate.plugins` and are
imported once, when the registry is made. One that cannot be imported costs the routes that use it, nothing else.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points
from typing import Any
from weakref import WeakValueDictionary

import msgspec

from headgate.common.plugins.checking import read_config, read_meta, unknown_plugin
from headgate.common.plugins.errors import PluginFault
from headgate.common.plugins.meta import PluginMeta
from headgate.common.plugins.templates import body_is_read
from headgate.common.plugins.third_party import ENTRY_POINT_GROUP
from headgate.common.sealing import Purpose, Unseal
from headgate.common.table import Mirror, PluginUse
from headgate.gateway.model.steps import Steps, finish
from headgate.gateway.plugins.built_in.catalogue import BUILT_IN
from headgate.gateway.plugins.interface import Plugin, PluginConfig, PluginServices
from headgate.gateway.plugins.interface.errors import PluginRefused
from headgate.gateway.plugins.interface.opening import opened_secrets
from headgate.gateway.plugins.kit.keyed import Keyed
from headgate.gateway.plugins.kit.mirroring import MirrorPart
from headgate.gateway.plugins.runtime.chain import GLOBAL, Part, PluginChain
from headgate.gateway.plugins.runtime.consumer_chain import ConsumerChain
from headgate.gateway.plugins.runtime.meta import under

_Kind = type[Plugin[Any]]
_SHARED_PLUGINS = 4096
"""Remembered for the next route that says the same. A plugin that is forgotten lives on in the chains that have it."""
_STEP_BYTES = 1024
"""Of configurations, which take about a millisecond where they are patterns."""


class PluginRegistry:
    """All plugins that routes of this process may use."""

    def __init__(self, found: Iterable[EntryPoint] | None = None, built_in: Mapping[str, _Kind] = BUILT_IN) -> None:
        """Import the third-party plugins; `found` stands for the installed entry points."""
        self._kinds: dict[str, _Kind] = dict(built_in)
        self._broken: dict[str, str] = {}
        self._configs: WeakValueDictionary[tuple[str, bytes], PluginConfig] = WeakValueDictionary()
        """By the plugin and what it was told."""
        self._shared: Keyed[Plugin[Any]] = Keyed(_SHARED_PLUGINS)
        """Plugins that keep nothing of a route. The references are strong, as compiled classes have no weak ones."""
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
        raise _refused(unknown_plugin(name, self.names, "its package has to be installed beside every gateway"))

    def make(self, use: PluginUse, services: PluginServices, unseal: Unseal) -> Plugin[Any]:
        """Make the plugin of one use.

        Raises:
            PluginRefused: unknown plugin, bad configuration, or a secret that this gateway cannot open.
        """
        if use.fault:
            raise PluginRefused(use.name, "", use.fault)
        kind = self.find(use.name)
        try:
            config = self._read_config(kind, use, unseal)
            read_meta(use)
        except PluginFault as fault:
            # Without the cause: a model's own words may hold what the user wrote.
            raise _refused(fault) from None
        try:
            plugin = kind(config, replace(services, gateways=use.gateways) if use.gateways else services)
        except Exception as error:
            raise PluginRefused(use.name, "config", f"{error or type(error).__name__}") from error
        if use.is_nested:
            plugin.is_nested = True
        return plugin

    def _read_config(self, kind: _Kind, use: PluginUse, unseal: Unseal) -> PluginConfig:
        """Read what a plugin is told, once for all that are told the same. Raises PluginFault, PluginRefused."""
        if use.secrets:
            return read_config(kind.Config, use, opened_secrets(use, unseal, Purpose.VALUE))
        told = use.name, msgspec.json.encode(use.config)
        config = self._configs.get(told)
        if config is None:
            config = self._configs[told] = read_config(kind.Config, use, {})
        return config

    def _shared_plugin(self, use: PluginUse, written: bytes, services: PluginServices, unseal: Unseal) -> Plugin[Any]:
        """Return the one plugin of all routes that say the same, or a new one if routes may not share it.

        `written` is the configuration. Raises PluginRefused as `make`.
        """
        kind = self._kinds.get(use.name)
        if kind is None or not kind.is_shareable or use.secrets or use.fault:
            return self.make(use, services, unseal)
        owner = services.owner if kind.is_of_owner else ""
        told = f"{use.name}|{use.is_nested}|{owner}|{' '.join(use.gateways)}|{written.decode()}"
        shared = self._shared.get(told)
        # Plugins call upstreams and files through their services, so that they belong to one gateway.
        if shared is None or shared.services.shared is not services.shared:
            of_all = replace(services, scope="", path=None, owner=owner)
            shared = self._shared.put(told, self.make(use, of_all, unseal))
        return shared

    def are_shareable(self, uses: Iterable[PluginUse]) -> bool:
        """Tell whether routes that have these plugins may share one chain. Secrets are opened for each route."""
        kinds = ((use, self._kinds.get(use.name)) for use in uses)
        return all(kind is not None and kind.is_shareable and not use.secrets for use, kind in kinds)

    def are_of_owner(self, uses: Iterable[PluginUse]) -> bool:
        """Tell whether only routes of one owner may share a chain of these plugins."""
        kinds = (self._kinds.get(use.name) for use in uses)
        return any(kind is not None and kind.is_of_owner for kind in kinds)

    def check_for_backend(self, uses: Iterable[PluginUse]) -> None:
        """Raise PluginRefused for a plugin that backends cannot have."""
        for use in uses:
            if self.find(use.name).finds_consumer:
                raise PluginRefused(use.name, "", "recognises consumers, which is for routes and not for backends")

    def parts(
        self, uses: Iterable[PluginUse], services: PluginServices, unseal: Unseal, *, of_route: bool = True
    ) -> Steps[list[Part]]:
        """Make plugins, with their orders, in steps. Those of a consumer are not shared with routes.

        Raises:
            PluginRefused: as `make`.
        """
        made = []
        size = 0
        told: set[tuple[str, bytes]] = set()
        for use in uses:
            if size > _STEP_BYTES:
                size = 0
                yield
            written = msgspec.json.encode(use.config)
            # A chain that has the same use twice, as of a global rule and of its route, tells the two apart.
            is_first = (use.name, written) not in told
            told.add((use.name, written))
            if of_route and is_first:
                plugin = self._shared_plugin(use, written, services, unseal)
            else:
                plugin = self.make(use, services, unseal)
            meta = read_meta(use)
            if not meta.disable:
                phase = body_is_read(use.name, use.config) if b"post_arg" in written else None
                made.append((order_of(use, meta, plugin), under(meta, plugin, phase)))
            size += len(written)
        return made

    def chain(
        self, uses: Iterable[PluginUse], services: PluginServices, unseal: Unseal, *, scope: str = ""
    ) -> PluginChain | None:
        """Make a chain at once; see `chain_in_steps`."""
        return finish(self.chain_in_steps(uses, services, unseal, scope=scope))

    def chain_in_steps(
        self,
        uses: Iterable[PluginUse],
        services: PluginServices,
        unseal: Unseal,
        *,
        scope: str = "",
        mirrors: Iterable[Mirror] = (),
    ) -> Steps[PluginChain | None]:
        """Make the chain of a route, None without plugins and mirrors. `scope` is `host|route name`: limits of one
        scope that are told the same count together.

        Raises:
            PluginRefused: as `make`.
        """
        own = services if services.scope == scope else replace(services, scope=scope)
        parts = yield from self.parts(uses, own, unseal)
        parts += [(MirrorPart.order, MirrorPart(mirror, own)) for mirror in mirrors]
        if any(plugin.finds_consumer for _, plugin in parts):
            return ConsumerChain(
                parts,
                own,
                lambda uses, scope, owner: finish(
                    self.parts(uses, replace(services, scope=scope, owner=owner), unseal, of_route=False)
                ),
            )
        chain = PluginChain(parts, own)
        return None if chain.is_idle else chain


def order_of(use: PluginUse, meta: PluginMeta, plugin: Plugin[Any] | _Kind) -> int:
    """Return the place of a plugin among those of its route; greater runs earlier."""
    own = plugin.order if meta.priority is None else meta.priority
    order = own if use.order is None else use.order
    return GLOBAL + order if use.is_global else order


def _refused(fault: PluginFault) -> PluginRefused:
    return PluginRefused(fault.plugin, fault.field, fault.fault)


def _checked_kind(name: str, loaded: object) -> _Kind:
    if not (isinstance(loaded, type) and issubclass(loaded, Plugin)):
        raise TypeError("it is no subclass of headgate.gateway.plugins.interface.Plugin")
    if getattr(loaded, "name", None) != name:
        raise TypeError(f"its `name` is not {name!r}, that of its entry point")
    if not issubclass(loaded.Config, PluginConfig):
        raise TypeError("its `Config` is no subclass of headgate.gateway.plugins.interface.PluginConfig")
    return loaded
