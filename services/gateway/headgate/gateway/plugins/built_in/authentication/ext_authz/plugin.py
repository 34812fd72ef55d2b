"""`ext-authz`: ask a service by Envoy's gRPC protocol whether a request may pass.

Only a well-formed `CheckResponse` with the status OK lets in. Its headers go to the upstream and into the client's
answer; dynamic metadata is passed over, as nothing here could read it. A refusal is the service's own, 403 if it does
not say more. Without an answer that can be followed the request is refused.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final
from urllib.parse import quote

from headgate.common.plugins.authentication.ext_authz import ExtAuthzConfig
from headgate.common.plugins.fields import BadHeader, is_reserved
from headgate.gateway.plugins.built_in.authentication.ext_authz.messages import METHOD, messages
from headgate.gateway.plugins.built_in.authentication.ext_authz.question import check_request
from headgate.gateway.plugins.interface import Headers, Plugin, Request, Response
from headgate.gateway.plugins.interface.variables import without_query_value
from headgate.gateway.plugins.kit.calls import CallFailed, call_upstream

_FRAME: Final = 5
"""Bytes in front of a message: a flag for compressed ones, and the length."""
_ADDED: Final = "ext-authz.added"
_FORBIDDEN: Final = 403
_IF_ABSENT, _OVERWRITE_OR_ADD, _IF_PRESENT = 1, 2, 3
"""Values of `append_action`. The first one, 0, is what is read where nothing is said."""


class ExtAuthz(Plugin[ExtAuthzConfig]):
    """Asks a service."""

    name = "ext-authz"
    order = 2003
    unforeseen = "asks another service"
    Config = ExtAuthzConfig
    is_shareable = True

    async def on_request(self, request: Request) -> Response | None:
        """Ask, and do as the service says."""
        longest = self.config.max_req_body_size
        body = await request.read_body(longest) if longest and request.content_length != 0 else None
        try:
            verdict = self._read(await self._call(request, check_request(request, self.config, body)))
            if verdict.status.code:
                return _refusal(verdict.denied_response)
            self._pass(request, verdict.ok_response)
        except (CallFailed, BadHeader) as error:
            self.services.logger.warning("ext-authz of %s: %s", request.route, error)
            return Response.refusal(self.config.status_on_error, "the authorization service gave no answer to follow")
        return None

    def on_response(self, request: Request, response: Response) -> Awaitable[None] | None:
        """Give the client what the service has for it."""
        for change in request.variables.get(_ADDED) or ():  # type: ignore[attr-defined]
            change(response.headers)
        return None

    async def _call(self, request: Request, message: bytes) -> Response:
        config = self.config
        body = b"\0" + len(message).to_bytes(4, "big") + message
        question = Request(
            method="POST",
            host=request.host,
            path=METHOD,
            headers=Headers([("Content-Type", "application/grpc"), ("grpc-timeout", f"{config.timeout}m")]),
            client=request.client,
            request_id=request.id,
            route=request.route,
            content_length=len(body),
            body=body,
        )
        limit = config.max_answer_size + _FRAME
        return await call_upstream(
            self.services, config.upstream, question, timeout_s=config.timeout / 1000, max_body=limit
        )

    def _read(self, answer: Response) -> Any:
        """Return a `CheckResponse`. Raises CallFailed."""
        from google.protobuf.message import DecodeError

        status, raw = answer.headers.get("grpc-status"), answer.body or b""
        if answer.status != 200 or status != "0":
            said = answer.headers.get("grpc-message") or f"status {answer.status}"
            raise CallFailed(f"upstream {self.config.upstream} failed with grpc-status {status}: {said}")
        if len(raw) < _FRAME or raw[0] or len(raw) != _FRAME + int.from_bytes(raw[1:_FRAME], "big"):
            raise CallFailed(f"upstream {self.config.upstream} gave no single message that is not compressed")
        try:
            return messages().reply.FromString(raw[_FRAME:])
        except DecodeError:
            raise CallFailed(f"upstream {self.config.upstream} gave no CheckResponse") from None

    def _pass(self, request: Request, passed: Any) -> None:
        """Change the request as the service wants it. Raises BadHeader."""
        changes = list(_changes(passed.headers))
        request.variables[_ADDED] = [*_changes(passed.response_headers_to_add, are_for_client=True)]
        for change in changes:
            change(request.headers)
        for name in passed.headers_to_remove:
            if not is_reserved(name):
                request.headers.remove(name)
        query = request.query
        for one in passed.query_parameters_to_set:
            query = without_query_value(query, one.key)
            query += f"{'&' if query else ''}{quote(one.key, safe='')}={quote(one.value, safe='')}"
        for name in passed.query_parameters_to_remove:
            query = without_query_value(query, name)
        request.query = query


def _refusal(denied: Any) -> Response:
    """Return what the client gets. Raises BadHeader."""
    code = denied.status.code
    status = code if 200 <= code <= 599 else _FORBIDDEN
    reason = "the authorization service refuses the request"
    refusal = Response(status, Headers(), denied.body.encode(), reason=reason)
    for change in _changes(denied.headers, are_for_client=True):
        change(refusal.headers)
    return refusal


def _changes(options: Iterable[Any], *, are_for_client: bool = False) -> Iterable[Callable[[Headers], None]]:
    """Yield what is done with headers. Raises BadHeader.

    A header for the upstream stands in the place of others of its name, so that no client can add to what the service
    says, unless `append` is set, which adds to those that are there, or `append_action` says otherwise. One for the
    client stands beside others, such as several `Set-Cookie`, unless one of these fields says otherwise.
    """
    for option in options:
        name = option.header.key
        value = option.header.value or option.header.raw_value.decode("latin-1")
        if not is_reserved(name):
            Headers([(name, value)])
            yield _change(name, value, option, are_for_client)


def _change(name: str, value: str, option: Any, is_for_client: bool) -> Callable[[Headers], None]:
    is_said = option.HasField("append")
    action = _OVERWRITE_OR_ADD if is_said and not option.append.value else option.append_action
    appends = option.append.value if is_said else is_for_client and not action

    def change(headers: Headers) -> None:
        if appends:
            if is_for_client or name in headers:
                headers.add(name, value)
        elif action == _IF_ABSENT:
            if name not in headers:
                headers.add(name, value)
        elif action != _IF_PRESENT or name in headers:
            headers.set(name, value)

    return change
