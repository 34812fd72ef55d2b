"""A request in the form of Anthropic's Messages as one in that of OpenAI's Chat Completions.

What has no counterpart is left out: built-in tools, thinking of earlier turns, `cache_control`.
https://docs.anthropic.com/en/api/messages and https://platform.openai.com/docs/api-reference/chat/create
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from headgate.gateway.plugins.built_in.ai.bodies import Body
from headgate.gateway.plugins.interface import Headers

_BUILT_IN_TOOLS: Final = ("computer_", "bash_", "text_editor_", "web_search", "code_execution_")
_NO_NAME: Final = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST_NAME: Final = 64
_KEPT_OF_NAME: Final = 55
_HASHED: Final = 8
_EFFORTS: Final = ((4096, "high"), (2048, "medium"), (1024, "low"))
_BILLING: Final = "x-anthropic-billing-header:"
_CHOICES: Final = {"auto": "auto", "any": "required", "none": "none"}
_OPENAI_ALONE: Final = ("tool_choice", "parallel_tool_calls")
_MEDIA: Final = {"image": "image/png", "document": "application/pdf"}


class Unconvertible(Exception):
    """A request that cannot be had in the other form; the text says why."""


class Converted(NamedTuple):
    """A request in the form of OpenAI."""

    body: Body
    tools: Mapping[str, str]
    """Tools' own names by those that they have there, where these are others."""


def convert_request(body: Body) -> Converted:
    """Return the request. Raises Unconvertible."""
    try:
        return _Conversion(body).run()
    except RecursionError:
        raise Unconvertible("a schema is nested too deep") from None


def convert_headers(headers: Headers) -> None:
    """Have headers say to OpenAI's interface what they say to Anthropic's."""
    key = headers.get("x-api-key")
    if key and "Authorization" not in headers:
        headers.set("Authorization", f"Bearer {key}")
    for name in {name for name, _ in headers}:
        if name.lower() == "x-api-key" or name.lower().startswith(("anthropic-", "x-stainless-")):
            headers.remove(name)


class _Conversion:
    """Of one request."""

    def __init__(self, body: Body) -> None:
        self._body = body
        self._renamed: dict[str, str] = {}

    def run(self) -> Converted:
        given = self._body.get("messages")
        if not isinstance(given, list) or not given:
            raise Unconvertible("missing messages")
        made = dict(self._options())
        tools = list(self._tools())
        if tools:
            made["tools"] = tools
        else:
            for name in _OPENAI_ALONE:
                made.pop(name, None)
        system = _system(self._body.get("system"))
        messages = [{"role": "system", "content": system}] if system else []
        for number, message in enumerate(given, 1):
            messages += self._message(message, number)
        return Converted({**made, "messages": messages}, self._renamed)

    def _options(self) -> Iterator[tuple[str, Any]]:
        """Yield all but messages and tools."""
        body = self._body
        if isinstance(body.get("model"), str):
            yield "model", body["model"]
        if "stream" in body:
            yield "stream", body["stream"]
        for name, other in (("max_tokens", "max_completion_tokens"), ("temperature",) * 2, ("top_p",) * 2):
            if body.get(name):
                yield other, body[name]
        if isinstance(body.get("stop_sequences"), list):
            yield "stop", body["stop_sequences"]
        if isinstance(body.get("service_tier"), str):
            yield "service_tier", body["service_tier"]
        effort = _effort(_object(body.get("thinking")), _object(body.get("output_config")))
        if effort:
            yield "reasoning_effort", effort
        yield from self._choice(_object(body.get("tool_choice")))
        user = _object(body.get("metadata")).get("user_id")
        if isinstance(user, str):
            yield "user", user
        form = _object(body.get("output_format")) or _object(_object(body.get("output_config")).get("format"))
        schema = _object(form.get("schema"))
        if form.get("type") == "json_schema" and schema:
            told = {"name": "structured_output", "schema": _strict(schema), "strict": True}
            yield "response_format", {"type": "json_schema", "json_schema": told}

    def _choice(self, choice: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        kind, name = choice.get("type"), choice.get("name")
        if kind == "tool" and isinstance(name, str):
            yield "tool_choice", {"type": "function", "function": {"name": self._declared(name)}}
        elif isinstance(kind, str) and kind in _CHOICES:
            yield "tool_choice", _CHOICES[kind]
        if choice.get("disable_parallel_tool_use") is True:
            yield "parallel_tool_calls", False

    def _declared(self, name: str) -> str:
        names = (tool.get("name") for tool in _objects(self._body.get("tools")))
        return self._name(name) if name in names else name

    def _tools(self) -> Iterator[dict[str, Any]]:
        for tool in _objects(self._body.get("tools")):
            kind, name = tool.get("type"), tool.get("name")
            is_built_in = isinstance(kind, str) and kind.startswith(_BUILT_IN_TOOLS)
            if not is_built_in and isinstance(name, str) and name:
                told = {"description": tool.get("description"), "parameters": tool.get("input_schema")}
                kept = {key: value for key, value in told.items() if value is not None}
                yield {"type": "function", "function": {"name": self._name(name), **kept}}

    def _name(self, name: str) -> str:
        """Return what a tool is called there: 64 letters, digits, `_` and `-` at most."""
        plain = _NO_NAME.sub("_", name)
        if plain == name and len(name) <= _LONGEST_NAME:
            return name
        digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_HASHED]
        renamed = f"{plain[:_KEPT_OF_NAME]}_{digest}"
        self._renamed[renamed] = name
        return renamed

    def _message(self, message: Any, number: int) -> list[dict[str, Any]]:
        role = message.get("role") if isinstance(message, dict) else None
        if not isinstance(role, str):
            raise Unconvertible(f"invalid message at index {number}")
        content = message.get("content")
        if isinstance(content, str):
            return [{"role": role, "content": content}]
        if not isinstance(content, list):
            raise Unconvertible(f"invalid message content at index {number}")
        blocks = _objects(content)
        parts = list(_parts(blocks))
        results = [_result(block) for block in blocks if _is_result(block)]
        if results:
            # They have to stand right behind the calls that they are the results of.
            return [*results, *([{"role": role, "content": parts}] if parts else [])]
        calls = [self._call(block) for block in blocks if _is_call(block)]
        text = "".join(part["text"] for part in parts if part["type"] == "text")
        if calls:
            return [{"role": role, "tool_calls": calls, **({"content": text} if text else {})}]
        return [{"role": role, "content": text if role == "assistant" or not parts else parts}]

    def _call(self, block: Mapping[str, Any]) -> dict[str, Any]:
        arguments = json.dumps(block.get("input") or {}, separators=(",", ":"))
        return {
            "id": block["id"],
            "type": "function",
            "function": {"name": self._name(block["name"]), "arguments": arguments},
        }


def _is_call(block: Mapping[str, Any]) -> bool:
    return block.get("type") == "tool_use" and all(isinstance(block.get(name), str) for name in ("id", "name"))


def _is_result(block: Mapping[str, Any]) -> bool:
    return block.get("type") == "tool_result" and isinstance(block.get("tool_use_id"), str)


def _result(block: Mapping[str, Any]) -> dict[str, Any]:
    content = block.get("content")
    if not isinstance(content, str):
        parts = list(_parts(_objects(content)))
        has_media = any(part["type"] != "text" for part in parts)
        content = parts if has_media else "".join(part["text"] for part in parts)
    return {"role": "tool", "tool_call_id": block["tool_use_id"], "content": content}


def _parts(blocks: list[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield texts and pictures."""
    for block in blocks:
        kind = block.get("type")
        if kind == "text" and isinstance(block.get("text"), str):
            yield {"type": "text", "text": block["text"]}
        elif kind in _MEDIA:
            url = _url(kind, _object(block.get("source")))
            if url:
                yield {"type": "image_url", "image_url": {"url": url}}


def _url(kind: str, source: Mapping[str, Any]) -> str:
    data, url = source.get("data"), source.get("url")
    if source.get("type") == "base64" and isinstance(data, str) and data:
        return f"data:{source.get('media_type') or _MEDIA[kind]};base64,{data}"
    return url if kind == "image" and source.get("type") == "url" and isinstance(url, str) else ""


def _system(written: Any) -> str:
    if isinstance(written, str):
        return written
    texts = (block.get("text") for block in _objects(written) if block.get("type") == "text")
    return "".join(_without_cache_key(text) for text in texts if isinstance(text, str))


def _without_cache_key(text: str) -> str:
    """Leave out of a client's note for Anthropic what changes with each request, and would spoil caches."""
    if text[: len(_BILLING)].lower() != _BILLING:
        return text
    parts = (part for part in text[len(_BILLING) :].split(";") if not part.lstrip(" ").startswith("cch="))
    kept = ";".join(parts).strip("; ")
    return f"{_BILLING}{kept}" if kept else ""


def _effort(thinking: Mapping[str, Any], output: Mapping[str, Any]) -> str:
    told = output.get("effort")
    if thinking.get("type") == "adaptive":
        return told if isinstance(told, str) and told else "medium"
    if thinking.get("type") != "enabled":
        return ""
    budget = thinking.get("budget_tokens")
    tokens = budget if isinstance(budget, int | float) else 0
    return next((effort for least, effort in _EFFORTS if tokens >= least), "minimal")


def _strict(schema: Any) -> Any:
    """Return a schema as OpenAI's strict mode wants it: all properties required, and no others."""
    if isinstance(schema, list):
        return [_strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = dict(schema)
    if schema.get("type") == "object" and isinstance(schema.get("properties"), dict):
        made |= {"additionalProperties": False, "required": sorted(schema["properties"])}
        made["properties"] = {name: _strict(each) for name, each in schema["properties"].items()}
    for name in ("items", "anyOf", "oneOf", "allOf"):
        if name in made:
            made[name] = _strict(made[name])
    for name in ("$defs", "definitions"):
        if isinstance(made.get(name), dict):
            made[name] = {key: _strict(each) for key, each in made[name].items()}
    return made


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
