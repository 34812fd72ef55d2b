"""Bodies of requests to models: JSON, read and written with a bound on the work."""

import asyncio
import json
from typing import Any, Final

from headgate.common.plugins.ai.prompts import MAX_BODY
from headgate.gateway.plugins.built_in.transformation.body_transformer.content_codings import CodingFault, decompress
from headgate.gateway.plugins.interface import BodyTooLarge, Request, Unforeseeable

MAX_VALUES: Final = 200_000
"""In one body, told by its commas, colons and opening brackets, of which texts have a few too: some 50 ms."""
_SHORT: Final = 64 << 10
"""Bytes that may have any number of values."""
_READ: Final = "ai.body"
"""Variable of a request that keeps the body as it was read."""

QUICK: Final = 4096
"""Bytes of a body that is dealt with on the event loop."""

Body = dict[str, Any]


class NoBody(Exception):
    """A body that is no object of JSON; the text says why, in words for the client."""


def check_foreseeable(request: Request) -> None:
    """Raise Unforeseeable for a body that is dealt with beside the event loop."""
    if len(request.body or b"") > QUICK or "Content-Encoding" in request.headers:
        raise Unforeseeable("its body takes long to read")


async def read_body(request: Request, limit: int) -> Body:
    """Return the body of a request. What it holds is shared by all that ask: make another instead of changing it.

    Raises:
        NoBody: it cannot be read.
        BodyTooLarge: it has more bytes or values than are taken.
    """
    limit = min(limit, MAX_BODY)
    raw = await request.read_body(limit)
    kept = request.variables.get(_READ)
    if isinstance(kept, tuple) and kept[0] is raw:
        known: Body = kept[1]
        return known
    coding = request.headers.get("Content-Encoding") or ""
    if coding:
        try:
            raw = await asyncio.to_thread(decompress, raw, coding, limit)
        except CodingFault as fault:
            raise NoBody(f"could not parse JSON request body: {fault}") from fault
        request.headers.remove("Content-Encoding")
        request.replace_body(raw)
    body = parse_object(raw)
    request.variables[_READ] = (raw, body)
    return body


def kept_messages(request: Request) -> Any:
    """Return the prompt of a request whose body was read; None: there is none."""
    kept = request.variables.get(_READ)
    body: Body = kept[1] if isinstance(kept, tuple) else {}
    return body.get("messages", body.get("input"))


def replace_body(request: Request, body: Body) -> None:
    """Send another body."""
    raw = write(body)
    request.replace_body(raw)
    request.variables[_READ] = (raw, body)


def parse_object(raw: bytes) -> Body:
    """Return an object of JSON.

    It is read as leniently as by the servers behind, with `NaN`, half surrogates and byte order marks: what a guard
    cannot read it cannot judge.

    Raises:
        NoBody: it is none.
        BodyTooLarge: it has more values than are taken.
    """
    if not raw:
        raise NoBody("could not get body: request body is empty")
    if len(raw) > _SHORT and sum(map(raw.count, (b",", b":", b"[", b"{"))) > MAX_VALUES:
        raise BodyTooLarge(f"a body of more than {MAX_VALUES} values")
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise NoBody("could not parse JSON request body: it is no JSON") from error
    if not isinstance(body, dict):
        raise NoBody("could not parse JSON request body: it is no object")
    return body


def write(body: Any) -> bytes:
    """Return JSON."""
    try:
        return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # half a surrogate
        return json.dumps(body, separators=(",", ":")).encode()
