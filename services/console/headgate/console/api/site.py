"""The API over HTTP: answers with their ETags, problems as RFC 9457 has them, and events as they come."""

import hashlib
import json
import logging
import secrets
from collections.abc import Callable
from contextlib import aclosing, suppress
from functools import partial
from typing import Any, Final

from aiohttp import web

from headgate.common.errors import NotFound, StoreError
from headgate.common.traffic import Tap
from headgate.console.access.guard import PERSON, bearer_of
from headgate.console.actions import act
from headgate.console.api.answers import request_document
from headgate.console.api.openapi import PREFIX, document
from headgate.console.api.question import MANIFESTS, Listing, Question
from headgate.console.api.questions import QUESTIONS, STREAM, TAIL
from headgate.console.commands import MAX_MANIFESTS
from headgate.console.live.view import LiveView
from headgate.operations.errors import InvalidRequest, OperationError, StoresUnreachable

_log = logging.getLogger(__name__)
Handler = Callable[[web.Request], Any]
_TITLES: Final = {400: "Asked for what cannot be", 404: "Not found", 503: "No answer from the stores"}


def add_api(app: web.Application, view: LiveView) -> None:
    """Add the API to a site."""
    described = json.dumps(document((*QUESTIONS, STREAM, TAIL))).encode()

    async def describe(request: web.Request) -> web.Response:
        return respond(request, described)

    for question in QUESTIONS:
        method = "POST" if question.takes_manifests else "GET"
        app.router.add_route(method, f"{PREFIX}{question.path}", _handler(view, question))
    app.router.add_get(f"{PREFIX}/openapi.json", describe)
    app.router.add_post(f"{PREFIX}/actions", partial(change, view))
    app.router.add_get(f"{PREFIX}/stream", partial(stream, view))
    app.router.add_get(f"{PREFIX}/tail", partial(tail, view))


def _handler(view: LiveView, question: Question) -> Handler:
    async def handle(request: web.Request) -> web.Response:
        try:
            body = await _read_manifests(request) if question.takes_manifests else b""
            content = await ask(view, question, dict(request.query), body)
        except (OperationError, StoreError) as error:
            return problem(error)
        return respond(request, json.dumps(content, default=str).encode())

    return handle


async def _read_manifests(request: web.Request) -> bytes:
    """Return the body. Raises InvalidRequest if it is too large, or of a type that any page may send."""
    if not request.content_type.endswith(("yaml", "json")):
        raise InvalidRequest("send manifests as Content-Type: application/yaml or application/json")
    body = bytearray()
    async for chunk in request.content.iter_any():
        body += chunk
        if len(body) > MAX_MANIFESTS:
            raise InvalidRequest(f"that is too much: at most {MAX_MANIFESTS:,} bytes of manifests")
    return bytes(body)


async def ask(view: LiveView, question: Question, query: dict[str, str], body: bytes = b"") -> Any:
    """Return the answer to a question.

    Raises:
        OperationError: there is none.
        StoreError: the stores did not answer.
    """
    values = {**question.read(query), MANIFESTS: body}
    assert question.answer is not None
    answer = await question.answer(view, values)
    return answer.page(values) if isinstance(answer, Listing) else answer


async def change(view: LiveView, request: web.Request) -> web.Response:
    """Do what an operator wants. A session's cookie is not enough: browsers send it along with what others ask for."""
    try:
        if bearer_of(request) is None:
            raise InvalidRequest("changes need a token: Authorization: Bearer TOKEN")
        said = await request.json()
        if not isinstance(said, dict):
            raise InvalidRequest("the body must be a JSON object")
        return web.json_response(await act(view, request[PERSON], said))
    except ValueError as error:
        return problem(InvalidRequest(f"the body is not JSON: {error}"))
    except (OperationError, StoreError) as error:
        return problem(error)


def problem(error: Exception) -> web.Response:
    """Return an error as an answer."""
    match error:
        case InvalidRequest():
            status = 400
        case StoresUnreachable():
            status = 503
        case OperationError() | NotFound():
            status = 404
        case _:
            status = 503
    body = {"status": status, "title": _TITLES[status], "detail": str(error)}
    return web.json_response(body, status=status, content_type="application/problem+json")


def respond(request: web.Request, body: bytes, content_type: str = "application/json") -> web.Response:
    """Return an answer, or say that it is the one that the client has."""
    tag = f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if tag in request.headers.get("If-None-Match", ""):
        return web.Response(status=304, headers=headers)
    response = web.Response(body=body, content_type=content_type, charset="utf-8", headers=headers)
    response.enable_compression()
    return response


async def stream(view: LiveView, request: web.Request) -> web.StreamResponse:
    """Send what happens as server-sent events; `Last-Event-ID` says what the client has."""
    try:
        wanted = set(STREAM.read(dict(request.query))["kinds"].split(","))
    except InvalidRequest as error:
        return problem(error)
    last = request.headers.get("Last-Event-ID", "")
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
    await response.prepare(request)
    with suppress(ConnectionError, InvalidRequest):  # the client has left, or too many listen
        async with aclosing(view.happenings(int(last) if last.isdecimal() else None)) as happenings:
            async for one in happenings:
                if request.transport is None:
                    break  # who wants nothing that happens is not written to
                if one.kind in wanted:
                    data = json.dumps(one.data, default=str)
                    await response.write(f"id: {one.number}\nevent: {one.kind}\ndata: {data}\n\n".encode())
    return response


async def tail(view: LiveView, request: web.Request) -> web.StreamResponse:
    """Send finished requests as server-sent events."""
    try:
        values = TAIL.read(dict(request.query))
    except InvalidRequest as error:
        return problem(error)
    tap = Tap(
        id=secrets.token_hex(8),
        host=values["host"].lower(),
        route=values["route"],
        path=values["path"],
        statuses=(values["status"],) if values["status"] is not None else (),
        client=values["client"],
        request_id=values["request_id"],
        slower_than_s=values["slower_than_ms"] / 1000,
        share=values["share"],
    )
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
    await response.prepare(request)
    try:
        async with aclosing(view.taps.watch(tap)) as requests:
            async for one in requests:
                said = f"event: request\ndata: {json.dumps(request_document(one))}" if one is not None else ": none"
                await response.write(f"{said}\n\n".encode())
    except ConnectionError:
        pass  # the client has left
    except (InvalidRequest, StoreError) as error:
        await response.write(f"event: trouble\ndata: {json.dumps({'detail': str(error)})}\n\n".encode())
    return response
