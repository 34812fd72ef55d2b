"""Several requests in one: the page `/apisix/batch-requests` of `public-api`, as Apache APISIX has it.

A POST with a `pipeline` of requests is answered with a list of their answers. They are served one after the other, as
if the client had sent them itself over the same connection, each by the route of its own path and host.
"""

import json
from collections.abc import Mapping
from typing import Any, Final, Literal
from urllib.parse import urlencode

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from headgate.common.plugins.fields import BadHeader, configured_value
from headgate.gateway.plugins.interface import Asked, BodyTooLarge, Request, Response
from headgate.gateway.plugins.kit.patterns import sendable
from headgate.gateway.proxy.errors import phrase

BATCH_PAGE: Final = "/apisix/batch-requests"
_MAX_BODY: Final = 1 << 20
_MAX_ITEMS: Final = 1000
_MAX_ANSWERS: Final = 16 << 20
"""Bytes of the bodies of all answers together."""
_MAX_TIMEOUT_MS: Final = 600_000
_FRAMING: Final = frozenset(("content-length", "transfer-encoding", "connection", "x-request-id"))


class _Item(BaseModel):
    """One of the requests."""

    model_config = ConfigDict(extra="forbid", strict=True)

    version: float = 1.1
    method: Literal["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"] = "GET"
    path: str = Field(min_length=1, pattern="^/")
    query: dict[str, Any] = Field(default_factory=dict)
    headers: dict[str, Any] = Field(default_factory=dict)
    body: str = ""
    ssl_verify: bool = False


class _Batch(BaseModel):
    """What a client sends."""

    model_config = ConfigDict(strict=True)

    query: dict[str, Any] = Field(default_factory=dict)
    headers: dict[str, Any] = Field(default_factory=dict)
    timeout: int = Field(default=30_000, ge=1, le=_MAX_TIMEOUT_MS)
    pipeline: list[_Item] = Field(min_length=1)


async def show_batch_page(request: Request) -> Response:
    """Answer a batch."""
    if request.method != "POST":
        return Response.refusal(404, f"{BATCH_PAGE} is asked with POST")
    try:
        raw = await request.read_body(_MAX_BODY)
    except BodyTooLarge:
        return _refused(413, f"the request is greater than the maximum size {_MAX_BODY} allowed")
    if not raw:
        return _refused(400, "no request body, you should give at least one pipeline setting")
    try:
        batch = _Batch.model_validate(json.loads(raw))
        asked = [_asked(item, batch, request) for item in _bounded(batch.pipeline)]
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        return _refused(400, f"bad request body: {'.'.join(map(str, first['loc']))}: {first['msg']}")
    except (ValueError, RecursionError) as error:
        return _refused(400, f"invalid request body: {error}")
    answers = await _answers(request, asked, batch.timeout / 1000)
    return Response.json(200, answers)


def _bounded(items: list[_Item]) -> list[_Item]:
    if len(items) > _MAX_ITEMS:
        raise ValueError(f"too many pipeline requests, {len(items)} exceeds the maximum of {_MAX_ITEMS}")
    return items


async def _answers(request: Request, asked: list[Asked], timeout_s: float) -> list[Any]:
    """Serve requests one after the other; behind one that is not answered in time none is."""
    answers: list[Any] = []
    room = _MAX_ANSWERS
    is_late = False
    for one in asked:
        if is_late:
            answers.append({"status": 504, "reason": "upstream timeout"})
            continue
        try:
            answer = await request.dispatch(one, timeout_s=timeout_s, max_body=room)
        except TimeoutError:
            is_late = True
            answers.append({"status": 504, "reason": "upstream timeout"})
        except BodyTooLarge:
            answers.append({"status": 502, "reason": f"the answers have more than {_MAX_ANSWERS} bytes"})
        except OSError as error:
            answers.append({"status": 502, "reason": str(error)})
        else:
            room -= len(answer.body or b"")
            answers.append(_told(answer))
    return answers


def _told(answer: Response) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    for name, value in answer.headers:
        before = headers.get(name)
        headers[name] = value if before is None else [*(before if isinstance(before, list) else [before]), value]
    body = {"body": answer.body.decode("utf-8", "replace")} if answer.body else {}
    return {"status": answer.status, "reason": phrase(answer.status), "headers": headers, **body}


def _asked(item: _Item, batch: _Batch, request: Request) -> Asked:
    """Return a request of a batch: what it lacks of the query and the headers it has of those of all, then of the
    request that brought the batch. Raises ValueError.
    """
    query = urlencode({**batch.query, **item.query}, doseq=True)
    target = sendable(item.path.encode().decode("latin-1"))
    if query:
        target += ("&" if "?" in target else "?") + query
    headers: dict[str, tuple[str, str]] = {"host": ("Host", request.authority)}
    headers.update(
        {name.lower(): (name, value) for name, value in request.headers if not name.lower().startswith("content-")}
    )
    for own in (batch.headers, item.headers):
        headers.update(_headers(own))
    kept = [pair for name, pair in headers.items() if name not in _FRAMING]
    return Asked(item.method, target, kept, item.body.encode())


def _headers(written: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    made = {}
    for name, value in written.items():
        if not isinstance(value, str | int | float) or isinstance(value, bool):
            raise ValueError(f"header {name[:80]} is neither a text nor a number")
        try:
            made[name.lower()] = (name, configured_value(str(value)))
        except BadHeader as error:
            raise ValueError(str(error)) from error
    return made


def _refused(status: int, message: str) -> Response:
    return Response.json(status, {"error_msg": message}, reason=message)
