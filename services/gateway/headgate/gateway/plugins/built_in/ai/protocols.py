"""The forms that requests to models have: which one a body is of, what it asks, and how a prompt is added to it.

https://platform.openai.com/docs/api-reference, https://docs.anthropic.com/en/api/messages and
https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from headgate.common.plugins.ai.prompts import Message
from headgate.gateway.plugins.built_in.ai.bodies import Body

OPENAI_CHAT = "openai-chat"
OPENAI_RESPONSES = "openai-responses"
OPENAI_EMBEDDINGS = "openai-embeddings"
ANTHROPIC_MESSAGES = "anthropic-messages"
BEDROCK_CONVERSE = "bedrock-converse"
VERTEX_PREDICT = "vertex-predict"
PASSTHROUGH = "passthrough"


class Said(NamedTuple):
    """A message as text."""

    role: str
    content: str


def protocol_of(path: str, body: Body) -> str | None:
    """Return the form of a request, `passthrough` for another one; None: it is empty."""
    has_messages = isinstance(body.get("messages"), list | dict)
    if path.endswith("/converse") and has_messages:
        return BEDROCK_CONVERSE
    if path.endswith("/v1/messages"):
        return ANTHROPIC_MESSAGES
    if path.endswith("/v1/responses") and "input" in body:
        return OPENAI_RESPONSES
    if has_messages:
        return OPENAI_CHAT
    if "input" in body:
        return OPENAI_EMBEDDINGS
    return PASSTHROUGH if body else None


def is_streaming(protocol: str, body: Body) -> bool:
    """Tell whether a request wants its answer in pieces."""
    return protocol != OPENAI_EMBEDDINGS and body.get("stream") is True


def messages_of(protocol: str, body: Body) -> list[Said]:
    """Return what a request says, as text; pictures and the like are left out."""
    match protocol:
        case "openai-responses":
            return [*_system(body.get("instructions")), *_inputs(body.get("input"))]
        case "openai-embeddings":
            given = body.get("input")
            return [Said("user", given)] if isinstance(given, str) else _inputs(given)
        case "passthrough":
            return []
        case "openai-chat":
            return list(_messages(body))
        case _:
            return [*_system(body.get("system")), *_messages(body)]


def with_messages(protocol: str, body: Body, before: Sequence[Message], behind: Sequence[Message]) -> Body:
    """Return a request with a prompt around what it says."""
    if protocol in (OPENAI_EMBEDDINGS, PASSTHROUGH):
        return body
    if protocol == OPENAI_RESPONSES:
        return _with_instructions(body, before, behind)
    given = body.get("messages")
    own = given if isinstance(given, list) else []
    if protocol != BEDROCK_CONVERSE:
        return {**body, "messages": [*map(_written, before), *own, *map(_written, behind)]}
    system = body.get("system")
    blocks = system if isinstance(system, list) else []
    told = [*_blocks(before, is_system=True), *blocks, *_blocks(behind, is_system=True)]
    said = [*_blocks(before, is_system=False), *own, *_blocks(behind, is_system=False)]
    return {**body, **({"system": told} if told else {}), "messages": said}


def _with_instructions(body: Body, before: Sequence[Message], behind: Sequence[Message]) -> Body:
    made = dict(body)
    if before:
        instructions = body.get("instructions")
        own = [instructions] if isinstance(instructions, str) else []
        made["instructions"] = "\n".join([*(message.content for message in before), *own])
    if behind:
        given, text = body.get("input"), "\n".join(message.content for message in behind)
        if isinstance(given, list):
            made["input"] = [*given, {"type": "message", "role": "user", "content": text}]
        else:
            made["input"] = f"{given}\n{text}" if isinstance(given, str) else text
    return made


def _written(message: Message) -> dict[str, str]:
    return {"role": message.role, "content": message.content}


def _blocks(messages: Sequence[Message], *, is_system: bool) -> Iterator[Any]:
    for message in messages:
        if is_system and message.role == "system":
            yield {"text": message.content}
        elif not is_system and message.role != "system":
            yield {"role": message.role, "content": [{"text": message.content}]}


def _system(written: Any) -> Iterator[Said]:
    text = _text(written)
    if text:
        yield Said("system", text)


def _messages(body: Body) -> Iterator[Said]:
    given = body.get("messages")
    for message in given if isinstance(given, list) else ():
        if isinstance(message, dict) and (text := _text(message.get("content"))):
            role = message.get("role")
            yield Said(role if isinstance(role, str) else "", text)


def _inputs(given: Any) -> list[Said]:
    """Return the items of a request's `input`: texts, messages, parts of messages and what tools have said."""
    if isinstance(given, str):
        return [Said("user", given)]
    said = []
    for item in given if isinstance(given, list) else ():
        role = "user"
        if isinstance(item, dict):
            role = item["role"] if isinstance(item.get("role"), str) else role
            parts = (item.get(name) for name in ("content", "text", "output"))
            text = next(filter(None, map(_text, parts)), "")
        else:
            text = item if isinstance(item, str) else ""
        if text:
            said.append(Said(role, text))
    return said


def _text(content: Any) -> str:
    """Return the texts of a content: a text, or a list of parts."""
    if isinstance(content, str):
        return content
    texts = (part.get("text") for part in content if isinstance(part, dict)) if isinstance(content, list) else ()
    return " ".join(text for text in texts if isinstance(text, str))
