"""What the bytes of an API server mean: Status objects, lists, watch events.

Only what we need is decoded into types; objects stay as they are.
"""

import re
from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec

from headgate.common.deltas import MAX_DEPTH
from headgate.common.resources import JsonObject
from headgate.watcher.errors import (
    Absent,
    ApiStatusError,
    ApiUnreachable,
    Expired,
    Forbidden,
    Throttled,
    Unauthorized,
    WriteConflict,
)

_T = TypeVar("_T")

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
LINE_LIMIT = 64 * 1024 * 1024
"""No object in etcd is larger than a few MB; more than this is not a line."""
LONGEST_RETRY_AFTER_S = 120.0
"""No server puts us to sleep for longer than this."""

_ERROR_TYPES: dict[int, type[ApiStatusError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: Absent,
    409: WriteConflict,
    410: Expired,
    429: Throttled,
}


class _Details(msgspec.Struct):
    retry_after_s: float | None = msgspec.field(default=None, name="retryAfterSeconds")


class Status(msgspec.Struct):
    """A `Status` object: how the API server says that something failed."""

    message: str = ""
    reason: str = ""
    code: int = 0
    details: _Details | None = None


class _ListMeta(msgspec.Struct):
    resource_version: str = msgspec.field(default="", name="resourceVersion")
    continue_token: str = msgspec.field(default="", name="continue")


class ObjectList(msgspec.Struct):
    """One page of a list."""

    metadata: _ListMeta
    items: list[JsonObject] | None = None


class WatchEvent(msgspec.Struct):
    """One line of a watch."""

    type: str
    object: JsonObject

    @property
    def resource_version(self) -> str:
        """Version of the object, or of the store for a BOOKMARK."""
        version = self.object.get("metadata", {}).get("resourceVersion", "")
        return version if isinstance(version, str) else ""

    @property
    def ends_initial_events(self) -> bool:
        """Whether this is the BOOKMARK after the initial state of a streaming list."""
        annotations = self.object.get("metadata", {}).get("annotations") or {}
        return self.type == "BOOKMARK" and annotations.get(INITIAL_EVENTS_END) == "true"


class _ApiResource(msgspec.Struct):
    name: str


class ApiResourceList(msgspec.Struct):
    """Discovery of one group version."""

    resources: list[_ApiResource]


_LEVELS = MAX_DEPTH + 100
"""Deep enough for an object that is cut there to be refused as too deep, with the list around it."""
_NESTING = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[{]|[\]}]', re.DOTALL)
_STATUS = msgspec.json.Decoder(Status)
_LIST = msgspec.json.Decoder(ObjectList)
_EVENT = msgspec.json.Decoder(WatchEvent)
_RESOURCES = msgspec.json.Decoder(ApiResourceList)
_OBJECT = msgspec.json.Decoder(dict[str, Any])


def status_error(status: int, body: bytes, retry_after: str | None = None) -> ApiStatusError:
    """Return the error that an answer is; `retry_after` is the header of that name."""
    try:
        found = _STATUS.decode(body)
    except msgspec.DecodeError:  # plain text, as for a kind that does not exist
        found = Status(message=body[:200].decode(errors="replace").strip())
    seconds = float(retry_after) if retry_after and retry_after.strip().isdecimal() else None
    if seconds is None and found.details is not None:
        seconds = found.details.retry_after_s
    if seconds is not None:
        seconds = min(max(seconds, 0.0), LONGEST_RETRY_AFTER_S)
    return _ERROR_TYPES.get(status, ApiStatusError)(status, found.reason, found.message, seconds)


def event_error(event: WatchEvent) -> ApiStatusError:
    """Return the error that an ERROR event is."""
    return status_error(int(event.object.get("code") or 0), msgspec.json.encode(event.object))


def decode_list(body: bytes) -> ObjectList:
    """Decode a page; raises `ApiUnreachable` for what is not a list."""
    return _decoded(_LIST, body, "a list")


def decode_event(line: bytes) -> WatchEvent:
    """Decode a watch's line; raises `ApiUnreachable` for what is not an event."""
    return _decoded(_EVENT, line, "a watch event")


def decode_resources(body: bytes) -> frozenset[str]:
    """Decode the plurals of a group version; raises `ApiUnreachable` for what is not a discovery document."""
    return frozenset(resource.name for resource in _decoded(_RESOURCES, body, "a list of resources").resources)


def decode_object(body: bytes) -> JsonObject:
    """Decode an object; raises `ApiUnreachable` for what is not one."""
    return _decoded(_OBJECT, body, "an object")


def _decoded(decoder: "msgspec.json.Decoder[_T]", body: bytes, wanted: str) -> _T:
    try:
        return _decoded_to_any_depth(decoder, body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ApiUnreachable(f"the answer is not {wanted}: {error}") from error


def _decoded_to_any_depth(decoder: "msgspec.json.Decoder[_T]", body: bytes) -> _T:
    """Decode what an API server takes, 10,000 levels: an object that is nested too deep hides no other of its kind.

    What is deeper than `_LEVELS` is cut off: from Python 3.12 on no setting lets decoders go as deep as API servers.
    """
    try:
        return decoder.decode(body)
    except RecursionError:
        return decoder.decode(_cut(body))


def _cut(body: bytes) -> bytes:
    """Put null in the place of each object and list that is deeper than `_LEVELS`, in one pass without recursion."""
    kept, begin, depth = [], 0, 0
    for token in _NESTING.finditer(body):
        match token[0]:
            case b"[" | b"{":
                depth += 1
                if depth == _LEVELS + 1:
                    kept += [body[begin : token.start()], b"null"]
            case b"]" | b"}":
                depth -= 1
                if depth == _LEVELS:
                    begin = token.end()
    return b"".join((*kept, body[begin:] if depth <= _LEVELS else b""))


class LineSplitter:
    """Lines of any length out of chunks of any size; each byte is looked at once."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Take a chunk and yield the lines that it completes, without empty ones.

        Raises:
            ApiUnreachable: a line does not end.
        """
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            line = b"".join((*self._parts, piece)) if self._parts else piece
            self._parts.clear()
            self._size = 0
            if line.strip():
                yield line
        if rest:
            self._parts.append(rest)
            self._size += len(rest)
            if self._size > LINE_LIMIT:
                raise ApiUnreachable(f"a line of the watch is longer than {LINE_LIMIT >> 20} MiB")
