"""Answers in the form of OpenAI's Chat Completions as ones in that of Anthropic's Messages: whole, and in events."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from headgate.gateway.plugins.built_in.ai.bodies import write
from headgate.gateway.plugins.built_in.ai.events import Events, data_of

_STOPS: Final = {
    "stop": "end_turn",
    "length": "max_tokens",
    "content_filter": "end_turn",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
}


def convert_answer(raw: bytes, tools: Mapping[str, str], model: str) -> bytes:
    """Return a whole answer. Raises ValueError: it is none of its form."""
    try:
        answer = json.loads(raw)
    except RecursionError:
        raise ValueError("the answer is nested too deep") from None
    if not isinstance(answer, dict):
        raise ValueError("the answer is no object")
    error = answer.get("error")
    if error:
        return write(_error(error))
    choice = next(iter(_objects(answer.get("choices"))), None)
    if choice is None:
        raise ValueError("no choices in response")
    content = list(_content(_object(choice.get("message")), tools))
    return write(
        {
            "id": answer.get("id"),
            "type": "message",
            "role": "assistant",
            "model": model or answer.get("model"),
            "content": content or [{"type": "text", "text": ""}],
            "stop_reason": _STOPS.get(str(choice.get("finish_reason")), "end_turn"),
            "usage": _usage(answer.get("usage")),
        }
    )


def _error(error: Any) -> dict[str, Any]:
    told = _object(error)
    kind = told.get("type") or told.get("code") or "api_error"
    message = error if isinstance(error, str) else told.get("message")
    return {"type": "error", "error": {"type": kind, "message": message if isinstance(message, str) else ""}}


def _content(message: Mapping[str, Any], tools: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    thought = _thought(message)
    if thought:
        yield {"type": "thinking", "thinking": thought, "signature": ""}
    text = message.get("content")
    if isinstance(text, str) and text:
        yield {"type": "text", "text": text}
    for call in _objects(message.get("tool_calls")):
        function = _object(call.get("function"))
        name = str(function.get("name") or "")
        yield {
            "type": "tool_use",
            "id": call.get("id") or "",
            "name": tools.get(name, name),
            "input": _arguments(function.get("arguments")),
        }


def _arguments(written: Any) -> Mapping[str, Any]:
    try:
        return _object(json.loads(written))
    except (ValueError, TypeError, RecursionError):
        return {}


def _thought(message: Mapping[str, Any]) -> str:
    told = message.get("reasoning_content") or message.get("reasoning")
    return told if isinstance(told, str) else ""


def _usage(told: Any) -> dict[str, int]:
    numbers, details = _object(told), _object(_object(told).get("prompt_tokens_details"))
    prompt, cached = _number(numbers.get("prompt_tokens")), _number(details.get("cached_tokens"))
    made = {"input_tokens": max(0, prompt - cached), "output_tokens": _number(numbers.get("completion_tokens"))}
    if details:
        made["cache_read_input_tokens"] = cached
    if details.get("cache_creation_input_tokens"):
        made["cache_creation_input_tokens"] = _number(details["cache_creation_input_tokens"])
    return made


class EventConverter:
    """Converts an answer in events, as it passes."""

    def __init__(self, tools: Mapping[str, str]) -> None:
        self._tools = tools
        self._events = Events()
        self._has_begun = False
        self._has_ended = False
        self._next = 0
        """Number of the next block of content."""
        self._open: tuple[int, str] | None = None
        """The block that is being sent, and its type."""
        self._calls: dict[int, int] = {}
        """Blocks of tools by their numbers in the other form."""
        self._stop: dict[str, Any] | None = None
        """The last word, which waits for the usage that may come behind it."""

    def feed(self, data: bytes) -> bytes:
        """Return the events for more of the body."""
        return b"".join(_event(told) for event in self._events.feed(data) for told in self._convert(data_of(event)))

    def finish(self) -> bytes:
        """Return the events at its end. Raises ValueError: there was nothing of its form."""
        rest = [*self._convert(data_of(self._events.finish())), *self._end()]
        if not self._has_begun:
            raise ValueError("streaming response completed without producing any output")
        return b"".join(map(_event, rest))

    def _convert(self, data: bytes) -> Iterator[dict[str, Any]]:
        if not data or self._has_ended:
            return
        if data == b"[DONE]":
            yield from self._end()
            return
        try:
            chunk = json.loads(data)
        except (ValueError, RecursionError):
            return
        if isinstance(chunk, dict):
            yield from self._chunk(chunk)

    def _chunk(self, chunk: dict[str, Any]) -> Iterator[dict[str, Any]]:
        usage = chunk.get("usage")
        if self._stop is not None:
            if isinstance(usage, dict):
                self._stop.setdefault("usage", _usage(usage))
            yield from self._end()
            return
        if not self._has_begun:
            self._has_begun = True
            yield {
                "type": "message_start",
                "message": {
                    "id": chunk.get("id"),
                    "type": "message",
                    "role": "assistant",
                    "model": chunk.get("model"),
                    "content": [],
                    "usage": {"input_tokens": 0, "output_tokens": 0},
                },
            }
        choice = next(iter(_objects(chunk.get("choices"))), {})
        yield from self._deltas(_object(choice.get("delta")))
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason.strip() not in ("", "null"):
            yield from self._close()
            self._stop = {"type": "message_delta", "delta": {"stop_reason": _STOPS.get(reason.strip(), "end_turn")}}
            if isinstance(usage, dict):
                self._stop["usage"] = _usage(usage)

    def _deltas(self, delta: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        thought, text = _thought(delta), delta.get("content")
        if thought:
            yield from self._begin("thinking", {"type": "thinking", "thinking": ""})
            yield self._delta({"type": "thinking_delta", "thinking": thought})
        if isinstance(text, str) and text:
            yield from self._begin("text", {"type": "text", "text": ""})
            yield self._delta({"type": "text_delta", "text": text})
        for call in _objects(delta.get("tool_calls")):
            number = call.get("index")
            if isinstance(number, int):
                yield from self._call(number, call)

    def _call(self, number: int, call: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        function = _object(call.get("function"))
        if number not in self._calls:
            name = str(function.get("name") or "")
            block: dict[str, Any] = {
                "type": "tool_use",
                "id": call.get("id") or "",
                "name": self._tools.get(name, name),
            }
            block["input"] = {}
            yield from self._begin("tool_use", block, is_another=True)
            self._calls[number] = self._next - 1
        arguments = function.get("arguments")
        if isinstance(arguments, str) and arguments:
            yield self._delta({"type": "input_json_delta", "partial_json": arguments}, self._calls[number])

    def _begin(self, kind: str, block: dict[str, Any], *, is_another: bool = False) -> Iterator[dict[str, Any]]:
        """Open a block, unless one of its type is open."""
        if self._open is not None and self._open[1] == kind and not is_another:
            return
        yield from self._close()
        self._open = self._next, kind
        self._next += 1
        yield {"type": "content_block_start", "index": self._open[0], "content_block": block}

    def _delta(self, delta: dict[str, Any], index: int | None = None) -> dict[str, Any]:
        assert self._open is not None or index is not None
        at = index if index is not None or self._open is None else self._open[0]
        return {"type": "content_block_delta", "index": at, "delta": delta}

    def _close(self) -> Iterator[dict[str, Any]]:
        if self._open is not None:
            yield {"type": "content_block_stop", "index": self._open[0]}
            self._open = None

    def _end(self) -> Iterator[dict[str, Any]]:
        if self._has_ended or not self._has_begun:
            return
        self._has_ended = True
        yield from self._close()
        nothing = {"input_tokens": 0, "output_tokens": 0}
        yield self._stop or {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": nothing}
        yield {"type": "message_stop"}


def _event(told: Mapping[str, Any]) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (str(told["type"]).encode(), write(told))


def _number(value: Any) -> int:
    return int(value) if isinstance(value, int | float) else 0


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
