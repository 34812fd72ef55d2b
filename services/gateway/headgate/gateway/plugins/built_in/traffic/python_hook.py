"""`python-hook`: run functions of the operator's own, by their names."""

import inspect
from collections.abc import Awaitable

from headgate.common.plugins.traffic.python_hook import PythonHookConfig
from headgate.gateway.plugins.interface import Plugin, PluginServices, Request, Response
from headgate.gateway.plugins.kit.hooks import Hook


class PythonHook(Plugin[PythonHookConfig]):
    """Runs functions."""

    name = "python-hook"
    order = 10000
    answer_order = -10000
    Config = PythonHookConfig
    is_shareable = True
    unforeseen = "runs a function of the gateway's hooks_file"

    def __init__(self, config: PythonHookConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._request = self._find(config.request, "request")
        self._response = self._find(config.response, "request", "response")

    def _find(self, name: str | None, *given: str) -> Hook | None:
        """Return a function that takes these arguments. Raises ValueError."""
        if name is None:
            return None
        hooks = self.services.hooks
        hook = hooks.get(name)
        if hook is None:
            there = f"it has {', '.join(sorted(hooks))}" if hooks else "the gateway has none (hooks_file)"
            raise ValueError(f"there is no function {name} in the gateway's hooks_file: {there}")
        try:
            inspect.signature(hook).bind(*given, **self.config.arguments)
        except TypeError as error:
            raise ValueError(f"function {name} does not take these arguments: {error}") from None
        return hook

    def on_request(self, request: Request) -> Response | Awaitable[Response | None] | None:
        """Have the function change the request, or answer it."""
        if self._request is None:
            return None
        answer: Response | Awaitable[Response | None] | None = self._request(request, **self.config.arguments)
        return answer

    def on_response(self, request: Request, response: Response) -> Awaitable[None] | None:
        """Have the function change the answer."""
        if self._response is None:
            return None
        done: Awaitable[None] | None = self._response(request, response, **self.config.arguments)
        return done
