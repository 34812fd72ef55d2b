"""`workflow`: treat requests by case: answer them, or limit them."""

from collections.abc import Awaitable
from typing import Any

from headgate.common.plugins.expressions import looks_at_body
from headgate.common.plugins.limits.workflow import Action, LimitCountAction, ReturnAction, WorkflowConfig
from headgate.gateway.plugins.built_in.limits.limit_conn import LimitConn
from headgate.gateway.plugins.built_in.limits.limit_count import LimitCount
from headgate.gateway.plugins.interface import Foreseen, Plugin, PluginServices, Request, Response
from headgate.gateway.plugins.kit.conditions import Takes, compile_expressions, with_body


class Workflow(Plugin[WorkflowConfig]):
    """Follows the first rule whose case holds."""

    name = "workflow"
    order = 1006
    Config = WorkflowConfig

    def __init__(self, config: WorkflowConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._rules: list[tuple[Takes | None, Plugin[Any]]] = []
        for number, rule in enumerate(config.rules):
            own = services.within(f"workflow {number}")
            self._rules.append((compile_expressions(rule.case), _make(rule.actions[0], own)))
        self._needs_body = any(looks_at_body(rule.case) for rule in config.rules)
        self._chosen = f"workflow.{id(self)}"

    def on_request(self, request: Request) -> Response | Awaitable[Response | None] | None:
        """Find the rule, and do what it says."""
        return with_body(request, self._follow, is_guard=True) if self._needs_body else self._follow(request)

    def _follow(self, request: Request) -> Response | Awaitable[Response | None] | None:
        for takes, action in self._rules:
            if takes is None or takes(request, None):
                request.variables[self._chosen] = action
                return action.on_request(request)
        return None

    def foresee(self, request: Request) -> Foreseen | Awaitable[Foreseen]:
        """Say what the rule says, but for limits."""
        return with_body(request, self._foresee, is_guard=True) if self._needs_body else self._foresee(request)

    def _foresee(self, request: Request) -> Foreseen | Awaitable[Foreseen]:
        for takes, action in self._rules:
            if takes is None or takes(request, None):
                return action.foresee(request)
        return None

    def on_response(self, request: Request, response: Response) -> Awaitable[None] | None:
        """Let a limit say what is left."""
        action = request.variables.get(self._chosen)
        return action.on_response(request, response) if isinstance(action, Plugin) else None

    def on_finish(self, request: Request, status: int, seconds: float) -> None:
        """Let a limit give its place back."""
        action = request.variables.get(self._chosen)
        if isinstance(action, Plugin):
            action.on_finish(request, status, seconds)


class _Return(Plugin[Any]):
    """The action `return`."""

    name = "return"
    preview = "yes"

    def on_request(self, request: Request) -> Response:
        """Refuse the request."""
        reason = "rejected by workflow"
        return Response.json(self.config.code, {"error_msg": reason}, reason=reason)


def _make(action: Action, services: PluginServices) -> Plugin[Any]:
    if isinstance(action, ReturnAction):
        return _Return(action.config, services)
    if isinstance(action, LimitCountAction):
        return LimitCount(action.config, services)
    return LimitConn(action.config, services)
