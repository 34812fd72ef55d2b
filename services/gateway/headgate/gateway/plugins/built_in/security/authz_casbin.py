"""`authz-casbin`: a policy of Casbin says who may do what.

It comes behind the plugins that recognise consumers, so that a header of theirs can name the subject; any other is what
the client says of itself. A decision is made in steps of about a millisecond, between which other requests have their
turn, and remembered.

A model's matcher has `r.NAME`, `p.NAME`, texts, numbers, `true`, `false`, `==`, `!=`, `in ("a", "b")`, `&&`, `||`, `!`,
parentheses, `keyMatch` to `keyMatch5`, `regexMatch`, `globMatch` and `ipMatch`, whose patterns are texts or fields of
the policy, and the roles of `[role_definition]`: `g`, `g2` and so on, each `_, _` or with a domain `_, _, _`. Effects
are allow-override, deny-override, allow-and-deny and priority. Not followed, and refused: arithmetic, attributes
(`r.sub.age`), `eval()`, `timeMatch`, conditional roles, `p2` and `m2`, `subjectPriority`.

A policy has at most 5,000 lines; lines times parts of the matcher are at most 100,000. A request for which its patterns
take about 100 ms all the same gets a 503.

Files are read when a route first asks them, and again when its configuration changes. Routes are written by many, so
only files below the folder are read that the gateway's setting `plugin_policy_dir` names.
"""

import asyncio
from collections.abc import Awaitable, Coroutine, Generator
from pathlib import Path
from typing import Any, Final

from headgate.common.casbin.deciding import Enforcer
from headgate.common.casbin.errors import TooMuchWork
from headgate.common.casbin.policy import MAX_POLICY
from headgate.common.patterns import bounded_patterns
from headgate.common.plugins.security.authz_casbin import AuthzCasbinConfig, enforcer_of
from headgate.gateway.plugins.interface import Foreseen, Plugin, PluginServices, Request, Response
from headgate.gateway.plugins.interface.errors import Unforeseeable
from headgate.gateway.plugins.kit.decoded_paths import decoded_text
from headgate.gateway.plugins.kit.folders import file_below
from headgate.gateway.plugins.kit.keyed import Keyed

_REMEMBERED: Final = 10_000
_MAX_KEY: Final = 512
"""Characters of subject, path and method of a decision that is remembered."""
_MAX_UNDER_WAY: Final = 64
"""Decisions that took more than one step and are not finished, for each use of the plugin."""


class AuthzCasbin(Plugin[AuthzCasbinConfig]):
    """Lets those pass whom a policy lets pass."""

    name = "authz-casbin"
    order = 2560
    Config = AuthzCasbinConfig
    waits_for_consumer = True
    decides_by_consumer = True

    def __init__(self, config: AuthzCasbinConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._files = _files(config, services.policy_dir)
        self._enforcer: Enforcer | None = None
        if self._files is None and config.model is not None and config.policy is not None:
            self._enforcer = enforcer_of(config.model, config.policy)
        self._decided: Keyed[bool] = Keyed(_REMEMBERED)
        self._under_way = 0

    def on_request(self, request: Request) -> Response | Awaitable[Response | None] | None:
        """Decide."""
        if self._enforcer is None:
            return self._decide_by_files(request)
        return self._decide(self._enforcer, request)

    def foresee(self, request: Request) -> Foreseen:
        """Decide, if that takes one step."""
        if self._enforcer is None:
            raise Unforeseeable("its policy is in files of gateways")
        decided = self._decide(self._enforcer, request)
        if isinstance(decided, Response | None):
            return decided
        decided.close()
        raise Unforeseeable("takes long to decide")

    async def _decide_by_files(self, request: Request) -> Response | None:
        assert self._files is not None
        model, policy = await asyncio.to_thread(_read_files, self._files)
        if self._enforcer is None:
            with bounded_patterns():
                self._enforcer = enforcer_of(model, policy)
        decided = self._decide(self._enforcer, request)
        return await decided if isinstance(decided, Awaitable) else decided

    def _decide(self, enforcer: Enforcer, request: Request) -> Response | Coroutine[Any, Any, Response | None] | None:
        asked = request.headers.get(self.config.username) or "anonymous", decoded_text(request.path), request.method
        key = "\n".join(asked)
        is_allowed = self._decided.get(key)
        if is_allowed is not None:
            return _answer(is_allowed)
        steps = enforcer.decide(*asked)
        try:
            next(steps)
        except StopIteration as decided:
            return self._remember(key, decided.value)
        except TooMuchWork as error:
            return Response.refusal(503, str(error))
        if self._under_way >= _MAX_UNDER_WAY:
            return Response.refusal(503, "too many decisions to make")
        return self._finish(steps, key)

    async def _finish(self, steps: Generator[None, None, bool], key: str) -> Response | None:
        """Make the steps behind the first, each in a turn of its own."""
        self._under_way += 1
        try:
            while True:
                await asyncio.sleep(0)
                next(steps)
        except StopIteration as decided:
            return self._remember(key, decided.value)
        except TooMuchWork as error:
            return Response.refusal(503, str(error))
        finally:
            self._under_way -= 1

    def _remember(self, key: str, is_allowed: bool) -> Response | None:
        if len(key) <= _MAX_KEY:
            self._decided.put(key, is_allowed)
        return _answer(is_allowed)


def _answer(is_allowed: bool) -> Response | None:
    return None if is_allowed else Response.refusal(403, "Access Denied")


def _read_files(files: tuple[Path, Path]) -> tuple[str, str]:
    """Read model and policy, and of a longer file as much as shows that it is too long."""
    texts = []
    for file in files:
        with file.open(encoding="utf-8") as opened:
            texts.append(opened.read(MAX_POLICY + 1))
    return texts[0], texts[1]


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
