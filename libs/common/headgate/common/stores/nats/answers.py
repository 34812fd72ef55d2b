"""What JetStream answers, and in which errors it says no."""

import base64
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
from nats.aio.msg import Msg

from headgate.common.errors import Conflict, StoreError, StoreUnavailable
from headgate.common.resources import JsonObject

_STREAM_NOT_FOUND = 10059
NAME_IN_USE = 10058
NO_MESSAGE = 10037
_WRONG_SEQUENCE = frozenset({10071, 10164})
_FULL = frozenset({10002, 10028, 10047})
"""The account or the server may store no more; its operator can change that while we wait."""
_UNAVAILABLE = frozenset({10008, 10023, 10074, 10076, 10077, 10115, 10039}) | _FULL


class StreamMissing(StoreUnavailable):
    """The stream does not exist, or nothing answers for it."""

    def __init__(self, message: str, *, is_certain: bool = False) -> None:
        super().__init__(message)
        self.is_certain = is_certain
        """Whether JetStream itself said so."""


class BatchRefused(StoreError):
    """The server did not take an atomic batch; none of its messages is stored."""


class ApiError(StoreError):
    """JetStream refused what was asked."""

    def __init__(self, code: int, description: str) -> None:
        super().__init__(description)
        self.code = code


class Ack(NamedTuple):
    """The server's confirmation of one message."""

    sequence: int
    is_duplicate: bool


def read_answer(answer: Msg) -> JsonObject:
    """Read an answer of the server's API; raises what it refuses, and `StreamMissing` where it has no such stream."""
    try:
        content: Any = msgspec.json.decode(answer.data)
        error = content.get("error")
    except (msgspec.DecodeError, AttributeError) as broken:
        raise StoreError(f"NATS gave an answer that is not JSON: {answer.data[:80]!r}") from broken
    if not error:
        return content  # type: ignore[no-any-return]
    code, description = int(error.get("err_code", 0)), str(error.get("description", "unknown error"))
    if code == _STREAM_NOT_FOUND:
        raise StreamMissing(description, is_certain=True)
    if code in _WRONG_SEQUENCE:
        raise Conflict(description)
    if code in _UNAVAILABLE or int(error.get("code", 0)) == 503:
        raise StoreUnavailable(description)
    raise ApiError(code, description)


def read_ack(answer: Msg) -> Ack:
    """Read the confirmation of a message."""
    content = read_answer(answer)
    return Ack(content["seq"], bool(content.get("duplicate")))


def read_batch(answer: Msg, count: int) -> list[int]:
    """Read the confirmation of a batch; return the sequences of its messages."""
    try:
        last = int(read_answer(answer)["seq"])
    except ApiError as error:
        raise BatchRefused(str(error)) from error
    return list(range(last - count + 1, last + 1))


def read_headers(encoded: str | None) -> Mapping[str, str]:
    """Read a block of headers as the server stored it: a line that names the version, then one for each."""
    if not encoded:
        return {}
    lines = base64.b64decode(encoded).decode(errors="replace").split("\r\n")
    return {name: value.strip() for name, colon, value in (line.partition(":") for line in lines[1:]) if colon}
