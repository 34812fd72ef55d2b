"""The plugins of one worker: the registry, and what they are given of the gateway."""

import logging
from collections.abc import Callable, Sequence

import aiohttp

from headgate.common.sealing import SealedValue
from headgate.common.secret import Secret
from headgate.common.table import PluginUse
from headgate.gateway.plugins.calls import make_client
from headgate.gateway.plugins.chain import PluginChain
from headgate.gateway.plugins.interface import PluginServices, SendTo
from headgate.gateway.plugins.registry import PluginRegistry


class PluginHost:
    """Makes the plugins of routes, and ends with the worker.

    Args:
        unseal: opens the secrets in plugins' configurations.
        send_to: sends plugins' requests to upstreams of the table.
    """

    def __init__(self, unseal: Callable[[SealedValue], Secret[bytes]], send_to: SendTo) -> None:
        self._unseal = unseal
        self._registry = PluginRegistry()
        self._session: aiohttp.ClientSession | None = None
        self._services = PluginServices(
            http=self._http, send_to=send_to, logger=logging.getLogger("headgate.gateway.plugins")
        )

    def make_chain(self, uses: Sequence[PluginUse], scope: str) -> PluginChain | None:
        """Make the plugins of a route, known as `host|route name`; raises PluginRefused."""
        return self._registry.chain(uses, self._services, self._unseal, scope=scope)

    def _http(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = make_client()
        return self._session

    async def close(self) -> None:
        """Close the connections of plugins' own requests."""
        if self._session is not None:
            await self._session.close()
            self._session = None
