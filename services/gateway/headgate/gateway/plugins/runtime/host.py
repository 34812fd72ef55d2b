"""The plugins of one worker: the registry, and what they are given of the gateway."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from weakref import WeakSet

import aiohttp

from headgate.common.sealing import Unseal
from headgate.common.table import Mirror, PathMatch, PluginUse
from headgate.gateway.balancing.backends import BackendSet
from headgate.gateway.counting.peers import Peers
from headgate.gateway.model.steps import Steps
from headgate.gateway.net.dialling import UNBOUNDED, Dialler
from headgate.gateway.plugins.interface import (
    AnswersFolder,
    Closing,
    PluginServices,
    Request,
    Response,
    SendTo,
    no_metrics,
)
from headgate.gateway.plugins.interface.consumers import ConsumerDirectory
from headgate.gateway.plugins.interface.targets import Endpoints, NoEndpoints
from headgate.gateway.plugins.kit.calls import CallFailed, call_url, make_client
from headgate.gateway.plugins.kit.hooks import load_hooks
from headgate.gateway.plugins.kit.keyed import Keyed
from headgate.gateway.plugins.redis.counters import CountersDirectory
from headgate.gateway.plugins.redis.sessions import SessionsDirectory
from headgate.gateway.plugins.runtime.registry import PluginRegistry
from headgate.gateway.plugins.runtime.run import RoutePlugins

_FETCH_S = 5.0
_MAX_PAGE = 64 << 20
_SHARED_CHAINS = 1024
"""Remembered for the next route that has the same plugins."""


class PluginHost:
    """Makes the plugins of routes, and ends with the worker.

    Args:
        unseal: opens the secrets in plugins' configurations.
        send_to: sends plugins' requests to upstreams of the table.
        find_upstream: gives the endpoints of an upstream of the table, or of one that may be in it later.
        metrics: gives the metrics of this gateway.
        log_dir: folder for files of routes' plugins.
        consumers: those of the table.
        policy_dir: folder of files that routes' plugins may read their policies from.
        dialler: opens the connections of plugins' own requests.
        find_group: gives the endpoints of a group of backends, as `find_upstream` does.
        hooks_file: of the functions that the plugin `python-hook` runs.
        peers: how other workers of the gateway are heard; None: there are none.
        answers: where answers are kept together with them.

    Raises:
        SettingsError: that file cannot be run.
    """

    def __init__(
        self,
        unseal: Unseal,
        send_to: SendTo,
        find_upstream: Callable[[str], Endpoints] = NoEndpoints,
        metrics: Callable[[], Awaitable[Response]] = no_metrics,
        log_dir: Path | None = None,
        consumers: ConsumerDirectory | None = None,
        policy_dir: Path | None = None,
        dialler: Dialler = UNBOUNDED,
        find_group: Callable[[str], Endpoints] = NoEndpoints,
        hooks_file: Path | None = None,
        peers: Peers | None = None,
        answers: AnswersFolder | None = None,
    ) -> None:
        self._unseal = unseal
        self._registry = PluginRegistry()
        self._chains: Keyed[tuple[RoutePlugins | None]] = Keyed(_SHARED_CHAINS)
        """Chains of several routes, by what their plugins are told."""
        self._session: aiohttp.ClientSession | None = None
        self._counters = CountersDirectory(dialler)
        self._sessions = SessionsDirectory(dialler)
        self._closing: WeakSet[Closing] = WeakSet()
        self._services = PluginServices(
            http=self._http,
            dialler=dialler,
            send_to=send_to,
            find_upstream=find_upstream,
            find_group=find_group,
            find_counters=self._counters.find,
            peers=peers,
            answers=answers,
            find_sessions=self._sessions.find,
            metrics=metrics,
            log_dir=log_dir,
            policy_dir=policy_dir,
            hooks=load_hooks(hooks_file),
            close_later=self._closing.add,
            consumers=ConsumerDirectory() if consumers is None else consumers,
            logger=logging.getLogger("headgate.gateway.plugins"),
        )

    def make_plugins(
        self,
        uses: Sequence[PluginUse],
        scope: str,
        path: PathMatch | None,
        owner: str,
        mirrors: Sequence[Mirror] = (),
        among: BackendSet | None = None,
        *,
        of_backend: bool = False,
    ) -> Steps[RoutePlugins | None]:
        """Make plugins and mirrors of a route, `host|route name`, for its paths, in steps; raises PluginRefused.

        `owner` is the cluster and namespace that the route comes from.

        Routes whose plugins are told the same share one chain, where the plugins allow it. Behind the plugins a backend
        is chosen `among` several, if something is to be done on the way there. Plugins `of_backend` recognise no
        consumers.
        """
        if of_backend:
            self._registry.check_for_backend(uses)
        plugins = yield from self._make_plugins(uses, scope, path, owner, mirrors)
        return plugins if among is None else RoutePlugins(plugins.chain if plugins is not None else None, among)

    def _make_plugins(
        self, uses: Sequence[PluginUse], scope: str, path: PathMatch | None, owner: str, mirrors: Sequence[Mirror]
    ) -> Steps[RoutePlugins | None]:
        if mirrors or not self._registry.are_shareable(uses):
            services = replace(self._services, path=path, owner=owner, scope=scope)
            chain = yield from self._registry.chain_in_steps(uses, services, self._unseal, scope=scope, mirrors=mirrors)
            return RoutePlugins(chain) if chain is not None else None
        shared_by = owner if self._registry.are_of_owner(uses) else ""
        told = shared_by + "".join(use.model_dump_json() for use in uses)
        shared = self._chains.get(told)
        if shared is None:
            services = replace(self._services, owner=shared_by)
            chain = yield from self._registry.chain_in_steps(uses, services, self._unseal)
            shared = self._chains.put(told, (RoutePlugins(chain) if chain is not None else None,))
        return shared[0]

    async def fetch_own(self, url: str) -> Response:
        """Get a page of this gateway's own, for plugins that show it: with a 502 if it cannot be had."""
        async with make_client() as client:
            services = replace(self._services, http=lambda: client)
            try:
                return await call_url(services, url, Request(), timeout_s=_FETCH_S, max_body=_MAX_PAGE)
            except CallFailed as error:
                return Response.refusal(502, str(error))

    def _http(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = make_client(self._services.dialler)
        return self._session

    async def close(self) -> None:
        """Close the connections of plugins' own requests."""
        await asyncio.gather(*(each.close() for each in list(self._closing)))
        await self._counters.close()
        await self._sessions.close()
        if self._session is not None:
            await self._session.close()
            self._session = None
