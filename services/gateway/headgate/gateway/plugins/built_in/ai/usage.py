"""How many tokens a model says that an answer took: found in answers as they pass, whole or in events."""

import json
import re
from typing import Any, Final, TypeGuard

from headgate.gateway.plugins.built_in.ai.events import Events, data_of

_HEAD: Final = 1 << 20
_TAIL: Final = 16 << 10
"""Bytes of an answer that are kept: from its beginning, and where it is longer from its end."""
_MAX_COUNT: Final = 1 << 53
"""JSON of Python has `Infinity` too, and numbers of thousands of digits."""
_MAX_TEXT: Final = 512 << 10
"""Characters of an answer that loggers get."""
_USAGE: Final = re.compile(rb'"usage"\s*+:\s*+(?=\{)')
_NAMES: Final = {
    "prompt_tokens": ("input_tokens", "inputTokens"),
    "completion_tokens": ("output_tokens", "outputTokens"),
    "total_tokens": ("totalTokens",),
}


def is_count(value: Any) -> TypeGuard[float]:
    """Tell whether something is a number of tokens."""
    return isinstance(value, int | float) and 0 <= value <= _MAX_COUNT


class Usage:
    """What an answer took, as far as it is known."""

    __slots__ = ("raw", "texts", "tokens")

    def __init__(self) -> None:
        self.tokens: dict[str, int] = {}
        """`prompt_tokens`, `completion_tokens` and `total_tokens`; empty as long as nothing was said."""
        self.raw: dict[str, float] = {}
        """Numbers by the provider's own names."""
        self.texts: list[str] = []
        """What was answered."""

    def add(self, raw: Any) -> None:
        """Take what a provider says; Anthropic says it in two parts."""
        if not isinstance(raw, dict):
            return
        numbers = {name: value for name, value in raw.items() if is_count(value)}
        self.raw.update({name: value for name, value in numbers.items() if value or name not in self.raw})
        before = self.tokens.get("total_tokens", 0)
        for name, others in _NAMES.items():
            value = int(next((numbers[each] for each in (name, *others) if each in numbers), 0))
            self.tokens[name] = value or self.tokens.get(name, 0)
        parts = self.tokens["prompt_tokens"] + self.tokens["completion_tokens"]
        self.tokens["total_tokens"] = max(self.tokens["total_tokens"], parts, before)


class Watcher:
    """Looks at an answer that passes."""

    def __init__(self, usage: Usage, *, keeps_text: bool) -> None:
        self._usage = usage
        self._room = _MAX_TEXT if keeps_text else 0

    def feed(self, data: bytes) -> None:
        """Look at more of the body."""

    def finish(self) -> None:
        """Look at what is left at its end."""

    def _keep(self, text: Any) -> None:
        if isinstance(text, str) and self._room > 0:
            self._usage.texts.append(text[: self._room])
            self._room -= len(text)


class WholeWatcher(Watcher):
    """Of an answer that is one object of JSON."""

    def __init__(self, usage: Usage, *, keeps_text: bool) -> None:
        super().__init__(usage, keeps_text=keeps_text)
        self._head = bytearray()
        self._tail = b""

    def feed(self, data: bytes) -> None:
        room = _HEAD - len(self._head)
        self._head += data[:room]
        if len(data) > room:
            self._tail = (self._tail + data[room:])[-_TAIL:]

    def finish(self) -> None:
        if self._tail:
            # Too long to be read; embeddings have their usage at the end.
            self._usage.add(_last_usage((bytes(self._head[-_TAIL:]) + self._tail)[-2 * _TAIL :]))
            return
        answer = _parsed(self._head)
        if isinstance(answer, dict):
            self._usage.add(answer.get("usage"))
            for text in _texts_of(answer):
                self._keep(text)


class EventWatcher(Watcher):
    """Of one that comes in events."""

    def __init__(self, usage: Usage, *, keeps_text: bool) -> None:
        super().__init__(usage, keeps_text=keeps_text)
        self._events = Events()

    def feed(self, data: bytes) -> None:
        for event in self._events.feed(data):
            self._look(data_of(event))

    def finish(self) -> None:
        self._look(data_of(self._events.finish()))

    def _look(self, data: bytes) -> None:
        told = _parsed(data) if self._room > 0 or b'"usage"' in data else None
        if not isinstance(told, dict):
            return
        for part in (told, told.get("message"), told.get("response")):
            if isinstance(part, dict):
                self._usage.add(part.get("usage"))
        if self._room > 0:
            for text in _deltas_of(told):
                self._keep(text)


def _texts_of(answer: dict[str, Any]) -> list[Any]:
    """Return what an answer of any form says."""
    choices = [one.get("message") for one in _objects(answer.get("choices"))]
    output = answer.get("output")
    items = [output.get("message")] if isinstance(output, dict) else output
    parts = [part for item in _objects(items) for part in _objects(item.get("content"))]
    texts = [one.get("content") for one in choices if isinstance(one, dict)]
    return [*texts, *(part.get("text") for part in (*parts, *_objects(answer.get("content"))))]


def _deltas_of(event: dict[str, Any]) -> list[Any]:
    """Return what an event of any form adds to what is said."""
    delta = event.get("delta")
    told = delta.get("text") if isinstance(delta, dict) else delta
    deltas = (one.get("delta") for one in _objects(event.get("choices")))
    return [told, *(one.get("content") for one in deltas if isinstance(one, dict))]


def _objects(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _parsed(raw: bytes | bytearray) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def _last_usage(text: bytes) -> Any:
    """Return the last object of this name within a part of an answer."""
    found = list(_USAGE.finditer(text))
    if not found:
        return None
    try:
        return json.JSONDecoder().raw_decode(text[found[-1].end() :].decode("utf-8", "replace"))[0]
    except (ValueError, RecursionError):
        return None
