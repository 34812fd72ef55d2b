"""`authz-casbin`: a policy of Casbin says who may do what.

It comes behind the plugins that recognise consumers, so that a header of theirs can name the subject; any other is what
the client says of itself. Decisions are made in a thread, as they take longer the more rules there are, and remembered.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

from headgate.common.plugins.authz_casbin import AuthzCasbinConfig
from headgate.gateway.plugins.decoded_paths import decoded_text
from headgate.gateway.plugins.interface import Plugin, PluginServices, Request, Response
from headgate.gateway.plugins.keyed import Keyed

_REMEMBERED = 10_000
_MAX_WAITING = 256
"""Decisions under way and waiting, for each use of the plugin."""
_THREAD = ThreadPoolExecutor(1, thread_name_prefix="casbin")


class AuthzCasbin(Plugin[AuthzCasbinConfig]):
    """Lets those pass whom a policy lets pass."""

    name = "authz-casbin"
    order = 2560
    Config = AuthzCasbinConfig
    waits_for_consumer = True

    def __init__(self, config: AuthzCasbinConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._decided: Keyed[bool] = Keyed(_REMEMBERED)
        self._waiting = 0

    async def on_request(self, request: Request) -> Response | None:
        """Decide."""
        asked = request.headers.get(self.config.username) or "anonymous", decoded_text(request.path), request.method
        key = "\n".join(asked)
        is_allowed = self._decided.get(key)
        if is_allowed is None:
            if self._waiting >= _MAX_WAITING:
                return Response.refusal(503, "too many decisions to make")
            self._waiting += 1
            try:
                is_allowed = await asyncio.get_running_loop().run_in_executor(_THREAD, self._decide, asked)
            finally:
                self._waiting -= 1
            self._decided.put(key, is_allowed)
        return None if is_allowed else Response.refusal(403, "Access Denied")

    def _decide(self, asked: tuple[str, str, str]) -> bool:
        return bool(self._enforcer.enforce(*asked))

    @cached_property
    def _enforcer(self) -> Any:
        """The policy, read. Only in the thread: the library takes a fifth of a second to load."""
        import casbin
        from casbin.persist.adapters.string_adapter import StringAdapter

        model = casbin.Enforcer.new_model(text=self.config.model)
        return casbin.Enforcer(model, StringAdapter(self.config.policy))
