"""Asking a provider: the answer passes on in pieces as they come, and is looked at meanwhile."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple

import aiohttp
from yarl import URL

from headgate.common.plugins.ai.proxy import AiCallConfig, AiInstance
from headgate.gateway.net.destinations import DestinationDenied
from headgate.gateway.plugins.built_in.ai.anthropic.answers import EventConverter, convert_answer
from headgate.gateway.plugins.built_in.ai.bodies import write
from headgate.gateway.plugins.built_in.ai.clouds.aws_signing import sign
from headgate.gateway.plugins.built_in.ai.clouds.event_stream import CONTENT_TYPE, EventStreamWatcher
from headgate.gateway.plugins.built_in.ai.clouds.google_tokens import tokens_of
from headgate.gateway.plugins.built_in.ai.clouds.predictions import embeddings_told
from headgate.gateway.plugins.built_in.ai.providers import Question
from headgate.gateway.plugins.built_in.ai.usage import EventWatcher, Usage, Watcher, WholeWatcher
from headgate.gateway.plugins.interface import BodyTooLarge, Headers, PluginServices, Request, Response
from headgate.gateway.plugins.kit.calls import CallFailed, readable_headers

ANSWER: Final = "ai.answer"
"""Variable of a request that has its `Answered`."""
_PASSED_ON: Final = ("Content-Type", "Content-Encoding", "Retry-After")
_SPARE_S: Final = 1.0
"""Of the gateway's patience, so that the bounds of the plugin come first."""
_MAX_CONVERTED: Final = 8 << 20
"""Bytes of a whole answer that is put into another form."""
_MAX_ERROR: Final = 1 << 20
"""Bytes of an error that goes to the client."""


_WATCHERS: Final[Mapping[str, type[Watcher]]] = {
    "text/event-stream": EventWatcher,
    CONTENT_TYPE: EventStreamWatcher,
}


class Answered(NamedTuple):
    """Which model answers a request, and what that takes."""

    instance: str
    usage: Usage


class ModelFailed(Exception):
    """A provider did not answer, or with an error for which another may be asked."""

    def __init__(self, reason: str, response: Response) -> None:
        super().__init__(reason)
        self.response = response
        """What the client gets if no other is asked."""


class _ModelStream:
    """The body of an answer; the `BodyStream` of a response."""

    def __init__(
        self,
        answer: aiohttp.ClientResponse,
        request: Request,
        watcher: Watcher,
        config: AiCallConfig,
        ended: Callable[[], None],
        clock: Callable[[], float],
        began: float,
        converter: EventConverter | None,
    ) -> None:
        self._answer = answer
        self._request = request
        self._watcher = watcher
        self._ended = ended
        self._clock = clock
        self._began = began
        self._converter = converter
        self._left = config.max_response_bytes
        self._ends = began + config.max_stream_duration_ms / 1000 if config.max_stream_duration_ms else None
        self._has_begun = False
        self._is_over = False

    async def read(self) -> bytes:
        """Return the next piece. Raises OSError."""
        converter = self._converter
        if converter is None:
            return await self._receive()
        while data := await self._receive():
            # Some events of one form are none in the other.
            if converted := converter.feed(data):
                return converted
        self._converter = None
        try:
            return converter.finish()
        except ValueError as error:
            raise OSError(str(error)) from error

    async def _receive(self) -> bytes:
        if self._is_over:
            return b""
        if self._ends is not None and self._clock() >= self._ends:
            raise OSError("the model's answer took longer than max_stream_duration_ms")
        try:
            data = await self._answer.content.readany()
        except TimeoutError as error:
            raise OSError("the model's answer did not go on in time") from error
        except aiohttp.ClientError as error:
            raise OSError(f"the model's answer broke off: {error}") from error
        if not self._has_begun:
            self._has_begun = True
            self._request.variables["llm_time_to_first_token"] = str(round((self._clock() - self._began) * 1000))
        if not data:
            self._finish()
            return b""
        if self._left is not None:
            self._left -= len(data)
            if self._left < 0:
                raise OSError("the model's answer is longer than max_response_bytes")
        self._watcher.feed(data)
        return data

    def _finish(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._watcher.finish()
            self._ended()

    def close(self) -> None:
        """Let go of the connection, which goes on if the answer is over."""
        self._answer.close()
        self._finish()


async def ask(
    services: PluginServices,
    config: AiCallConfig,
    instance: AiInstance,
    question: Question,
    request: Request,
    name: str,
    fails: Callable[[int], bool],
) -> Response:
    """Ask a provider, and return its answer, which may still be coming.

    Args:
        services: of the plugin.
        config: how it is asked.
        instance: the model.
        question: the request to it.
        request: the client's.
        name: of the instance.
        fails: tells of a status whether it is a failure.

    Raises:
        ModelFailed: it did not answer, or with such a status.
    """
    began = services.clock()
    body = write(question.body) if question.is_changed else request.body or b""
    try:
        await _authorize(services, config, instance, question, body)
        answer = await _sent(services, config, question, body, request)
    except CallFailed as error:
        raise _unanswered(502, f"no token for {_shown(question.url)}: {error}") from error
    except TimeoutError as error:
        raise _unanswered(504, f"{_shown(question.url)} did not answer in time") from error
    except (aiohttp.ClientError, OSError, ValueError) as error:
        denied = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
        if isinstance(denied, DestinationDenied):
            services.dialler.destinations.tell(denied, f"{request.route} to {_shown(question.url)}")
        raise _unanswered(502, f"{_shown(question.url)} did not answer: {error}") from error
    request.upstream_status = answer.status
    if fails(answer.status):
        raise ModelFailed(f"{_shown(question.url)} answered {answer.status}", await _error(answer))
    length = answer.content_length
    if config.max_response_bytes is not None and length is not None and length > config.max_response_bytes:
        answer.close()
        raise _unanswered(502, "the model's answer is longer than max_response_bytes")
    usage = Usage()
    request.variables[ANSWER] = Answered(name, usage)
    watch = _WATCHERS.get(answer.content_type, WholeWatcher)
    is_in_events = watch is not WholeWatcher
    watcher = watch(usage, keeps_text=config.logging.payloads)
    tools = question.tools
    converter = EventConverter(tools) if is_in_events and tools is not None else None
    stream = _ModelStream(
        answer, request, watcher, config, lambda: _note(request, usage), services.clock, began, converter
    )
    response = Response(
        answer.status,
        _passed_on(answer),
        None,
        from_upstream=True,
        content_length=length if not is_in_events else None,
        stream=stream,
    )
    if tools is not None and not is_in_events:
        await _convert(response, "Anthropic", lambda raw: convert_answer(raw, tools, _model_of(request)))
    elif question.is_prediction and answer.status == 200:

        def told(raw: bytes) -> bytes:
            body, took = embeddings_told(raw, _model_of(request))
            usage.add(took)
            return body

        await _convert(response, "OpenAI", told)
        _note(request, usage)
    return response


def _model_of(request: Request) -> str:
    return str(request.variables.get("llm_model") or "")


async def _authorize(
    services: PluginServices, config: AiCallConfig, instance: AiInstance, question: Question, body: bytes
) -> None:
    """Add what shows a cloud who asks. Raises CallFailed."""
    aws, gcp = instance.auth.aws, instance.auth.gcp
    if instance.provider == "bedrock" and aws is not None:
        region, now = instance.provider_conf.region, datetime.now(UTC)
        sign(aws, region, "bedrock", question.method, question.url, question.headers, body, now)
    elif instance.provider == "vertex-ai" and gcp is not None:
        token = await tokens_of(gcp, services).get(gcp, services, verify=config.ssl_verify)
        question.headers.set("Authorization", f"Bearer {token}")


async def _convert(response: Response, form: str, convert: Callable[[bytes], bytes]) -> None:
    """Put a whole answer into another form. Raises ModelFailed."""
    try:
        raw = await response.read_body(_MAX_CONVERTED)
        converted = convert(raw)
    except BodyTooLarge as error:
        raise _unanswered(502, "the model's answer is too long to be put into another form") from error
    except (OSError, ValueError) as error:
        raise _unanswered(502, f"the model's answer cannot be put into the form of {form}: {error}") from error
    finally:
        if response.stream is not None:
            response.stream.close()
            response.stream = None
    response.body = converted
    response.headers.remove("Content-Encoding")


async def _sent(
    services: PluginServices, config: AiCallConfig, question: Question, body: bytes, request: Request
) -> aiohttp.ClientResponse:
    wait_s = config.timeout / 1000
    # For a connection, and then for the beginning of an answer.
    request.wait_for(2 * wait_s + _SPARE_S)
    return await services.http().request(
        question.method,
        URL(question.url, encoded=True),
        headers=list(question.headers),
        data=body or None,
        allow_redirects=False,
        ssl=config.ssl_verify,
        timeout=aiohttp.ClientTimeout(total=None, connect=wait_s, sock_read=wait_s),
    )


async def _error(answer: aiohttp.ClientResponse) -> Response:
    """Return an error of a provider with its whole body, or the beginning of a long one."""
    body = b""
    try:
        while len(body) < _MAX_ERROR and (part := await answer.content.readany()):
            body += part
    except (aiohttp.ClientError, OSError, TimeoutError):
        pass  # what is there says enough
    finally:
        answer.close()
    return Response(answer.status, _passed_on(answer), body[:_MAX_ERROR], from_upstream=True)


def _passed_on(answer: aiohttp.ClientResponse) -> Headers:
    given = readable_headers(answer.raw_headers)
    return Headers([(name, value) for name in _PASSED_ON if (value := given.get(name)) is not None])


def _unanswered(status: int, reason: str) -> ModelFailed:
    return ModelFailed(reason, Response.refusal(status, reason))


def _note(request: Request, usage: Usage) -> None:
    """Put into variables what an answer took."""
    for name, count in usage.tokens.items():
        request.variables[f"llm_{name}"] = str(count)


def _shown(url: str) -> str:
    """Leave the query out, which may hold a key."""
    return url.partition("?")[0]
