"""What `ai-proxy` and `ai-proxy-multi` have in common: requests to models are read, limits asked, loggers told."""

from collections.abc import Awaitable, Iterable
from functools import partial
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from headgate.common.plugins.ai.proxy import AiCallConfig, AiInstance
from headgate.gateway.plugins.built_in.ai.anthropic.requests import Unconvertible
from headgate.gateway.plugins.built_in.ai.asking import ANSWER, Answered, ask
from headgate.gateway.plugins.built_in.ai.bodies import Body, NoBody, kept_messages, read_body
from headgate.gateway.plugins.built_in.ai.clouds.google_tokens import GoogleTokens, tokens_of
from headgate.gateway.plugins.built_in.ai.protocols import is_streaming, protocol_of
from headgate.gateway.plugins.built_in.ai.providers import UnsupportedProtocol, make_question
from headgate.gateway.plugins.built_in.ai.usage import Usage
from headgate.gateway.plugins.built_in.observability.log_entries import ADDED
from headgate.gateway.plugins.interface import Plugin, Request, Response

GATES: Final = "ai.gates"
"""Variable of a request that has the `Gate`s of its route."""

C = TypeVar("C", bound=AiCallConfig)


class Gate(Protocol):
    """What has to let a request pass to a model."""

    def refusal(self, request: Request, instance: str) -> Awaitable[Response | None]:
        """Return why an instance must not be asked now; None: it may be."""


class ModelRequest(NamedTuple):
    """A request to a model."""

    protocol: str
    body: Body


class ModelPlugin(Plugin[C]):
    """Base of both."""

    unforeseen = "asks a model"
    _tokens: tuple[GoogleTokens, ...] = ()

    def keep_tokens(self, instances: Iterable[AiInstance]) -> None:
        """Keep the tokens of instances beyond single requests: what is shared lives as long as somebody holds it."""
        accounts = (each.auth.gcp for each in instances)
        self._tokens = tuple(tokens_of(each, self.services) for each in accounts if each is not None)

    async def read(self, request: Request) -> ModelRequest | Response:
        """Return what a request asks a model, or why it cannot be."""
        kind = request.headers.get("Content-Type") or "application/json"
        if not kind.startswith("application/json"):
            return _refused(f"unsupported content-type: {kind[:80]}, only application/json is supported")
        try:
            body = await read_body(request, self.config.max_req_body_size)
        except NoBody as fault:
            return Response.json(400, {"message": str(fault)}, reason=str(fault))
        protocol = protocol_of(request.path, body)
        if protocol is None:
            return _refused("no matching AI protocol for the request")
        is_stream = is_streaming(protocol, body)
        model = body.get("model")
        request.variables["request_type"] = "ai_stream" if is_stream else "ai_chat"
        request.variables[ADDED] = partial(self._logged, request)
        request.variables["llm_stream"] = "true" if is_stream else "false"
        if isinstance(model, str):
            request.variables["request_llm_model"] = model
        return ModelRequest(protocol, body)

    async def ask(self, instance: AiInstance, name: str, asked: ModelRequest, request: Request) -> Response:
        """Return the answer of an instance. Raises ModelFailed."""
        model = instance.options.get("model", asked.body.get("model"))
        if isinstance(model, str):
            request.variables["llm_model"] = model
        try:
            question = make_question(instance, request, asked.protocol, asked.body)
        except UnsupportedProtocol as fault:
            return _refused(str(fault))
        except Unconvertible as fault:
            return Response.json(400, {"error_msg": str(fault)}, reason=str(fault))
        return await ask(self.services, self.config, instance, question, request, name, self.fails)

    def fails(self, status: int) -> bool:
        """Tell whether a provider's status is a failure."""
        return status == 429 or status >= 500

    def _logged(self, request: Request, seconds: float) -> dict[str, Any]:
        """Return what loggers say of a request."""
        logging, answered = self.config.logging, request.variables.get(ANSWER)
        usage = answered.usage if isinstance(answered, Answered) else Usage()
        variables, said = request.variables, dict[str, Any]()
        if logging.summaries:
            said["llm_summary"] = {
                "request_model": variables.get("request_llm_model"),
                "model": variables.get("llm_model"),
                "duration": variables.get("llm_time_to_first_token"),
                **usage.tokens,
                "upstream_response_time": round(seconds * 1000),
                "stream": variables.get("llm_stream"),
            }
        if logging.payloads:
            messages = kept_messages(request)
            said["llm_request"] = {"messages": messages, "stream": variables.get("llm_stream") == "true"}
            said["llm_response_text"] = {"content": "".join(usage.texts)}
        return said


async def first_refusal(request: Request, instance: str) -> Response | None:
    """Return why the limits of a route let no request pass to an instance; None: they do."""
    gates = request.variables.get(GATES)
    for gate in gates if isinstance(gates, list) else ():
        refusal: Response | None = await gate.refusal(request, instance)
        if refusal is not None:
            return refusal
    return None


def _refused(reason: str) -> Response:
    return Response.text(400, reason, reason=reason)
