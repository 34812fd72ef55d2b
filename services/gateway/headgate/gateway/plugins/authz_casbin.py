"""`authz-casbin`: a policy of Casbin says who may do what.

It comes behind the plugins that recognise consumers, so that a header of theirs can name the subject; any other is what
the client says of itself. Decisions are made in a thread, as they take longer the more rules there are, and remembered.

Files are read when a route first asks them, and again when its configuration changes. Routes are written by many, so
only files below the folder are read that the gateway's setting `plugin_policy_dir` names.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any

from headgate.common.plugins.authz_casbin import AuthzCasbinConfig, checked_model, checked_policy
from headgate.gateway.plugins.decoded_paths import decoded_text
from headgate.gateway.plugins.folders import file_below
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
        self._files = _files(config, services.policy_dir)
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

        model, policy = self.config.model, self.config.policy
        if self._files is not None:
            model, policy = (file.read_text() for file in self._files)
            checked_model(model)
            checked_policy(policy)
        return casbin.Enforcer(casbin.Enforcer.new_model(text=model), StringAdapter(policy))


def _files(config: AuthzCasbinConfig, folder: Path | None) -> tuple[Path, Path] | None:
    """Return the files with model and policy; None: there are none. Raises ValueError if they may not be read."""
    if config.model_path is None or config.policy_path is None:
        return None
    if folder is None:
        raise ValueError(
            "model_path and policy_path are files, and the setting plugin_policy_dir names no folder for such; "
            "write model and policy into the configuration"
        )
    return _file(folder, config.model_path), _file(folder, config.policy_path)


def _file(folder: Path, path: str) -> Path:
    found = file_below(folder, path, "plugin_policy_dir")
    if not found.is_file():
        raise ValueError(f"there is no file {path} below the folder that the setting plugin_policy_dir names")
    return found
