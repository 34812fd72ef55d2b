"""`body-transformer`: make other bodies of those that pass, by templates: JSON of XML, a SOAP call of a form.

Templates are those of lua-resty-template, without running Lua: `{{ }}` and `{* *}` with fields, texts, numbers,
operators and some functions, `{% %}` with `if`, `for`, `local` and assignments. `_body` is the body as text,
`_ctx.var.name` a variable, `_ctx.consumer.username` the consumer, `context` all fields; `_escape_json(value)` and
`_escape_xml(text)` escape. The functions `string.gsub` (of texts), `string.len`, `string.lower`, `string.sub`,
`string.upper`, `table.concat`, `tonumber`, `tostring` and `type` are there. What else Lua has is refused where it is
written, with what to write instead.

Only answers of the upstream and of `mocking` are transformed; a body is held back as a whole, and compressed ones are
decompressed. What cannot be decoded is answered with 400, or 502 if it came from the upstream, and a template that does
not fit with 503; an error of the upstream keeps its status. A rendering has 50,000 steps and 8 MiB at most.
"""

import asyncio
from collections.abc import Awaitable
from typing import Any, Final, NamedTuple

from headgate.common.plugins.transformation.body_transformer import MAX_BODY, BodyTemplate, BodyTransformerConfig
from headgate.gateway.plugins.built_in.transformation.body_transformer.content_codings import CodingFault, decompress
from headgate.gateway.plugins.built_in.transformation.body_transformer.formats import (
    BodyFault,
    Fields,
    decode_fields,
    decode_query,
    format_of,
)
from headgate.gateway.plugins.built_in.transformation.body_transformer.rendering import RenderFault, Rendering
from headgate.gateway.plugins.built_in.transformation.mocking import MOCKED
from headgate.gateway.plugins.interface import (
    BodyTooLarge,
    BuffersFull,
    Headers,
    Plugin,
    PluginServices,
    Request,
    Response,
)
from headgate.gateway.plugins.interface.errors import Unforeseeable
from headgate.gateway.plugins.interface.variables import variable

_SHORT: Final = 4096
"""Bytes of a body that takes less than a millisecond."""
_OF_THE_OLD_BODY: Final = ("Content-Encoding", "Content-MD5", "Digest", "Content-Digest", "Repr-Digest")
_OF_THE_OLD_ANSWER: Final = ("ETag", "Last-Modified", "Accept-Ranges")


class BodyTransformer(Plugin[BodyTransformerConfig]):
    """Transforms bodies."""

    name = "body-transformer"
    order = 1080
    preview = "yes"
    answer_order = 398
    """Before all that change answers: templates are written for what the upstream sends."""
    Config = BodyTransformerConfig

    def __init__(self, config: BodyTransformerConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._for_request = (
            _Transformation(config.request, min(config.max_req_body_size, MAX_BODY)) if config.request else None
        )
        self._for_answer = (
            _Transformation(config.response, min(config.max_resp_body_size, MAX_BODY)) if config.response else None
        )

    def foresee(self, request: Request) -> Any:
        """Transform a body, unless that takes long."""
        if self._for_request is not None and self._for_request.takes_long(request.body or b"", request.headers):
            raise Unforeseeable("its body takes long to transform")
        return self.on_request(request)

    def on_request(self, request: Request) -> Any:
        """Transform the request's body."""
        if self._for_answer is not None:
            # A part of an answer could not be decoded.
            request.headers.remove("Range")
        return self._change_request(request, self._for_request) if self._for_request is not None else None

    async def _change_request(self, request: Request, transformation: "_Transformation") -> Response | None:
        body = await request.read_body(transformation.limit)
        try:
            made = await transformation.run(
                _Message(body, request.headers, request, {}), is_get=request.method == "GET"
            )
        except BodyFault as fault:
            return _told(400, f"request body decode: {fault}")
        except CodingFault as fault:
            return _told(415, f"request body decode: {fault}")
        except RenderFault as fault:
            return _told(503, f"request template rendering: {fault}")
        for name in _OF_THE_OLD_BODY:
            request.headers.remove(name)
        request.replace_body(made)
        return None

    def on_response(self, request: Request, response: Response) -> Awaitable[None] | None:
        """Transform the answer's body."""
        transformation = self._for_answer
        if transformation is None or response.is_bodiless:
            return None
        if not (response.from_upstream or MOCKED in request.variables):
            return None
        if request.method == "HEAD":
            response.content_length = None
            _drop_validators(response.headers)
            return None
        return self._change_answer(request, response, transformation)

    async def _change_answer(self, request: Request, response: Response, transformation: "_Transformation") -> None:
        variables = {"status": str(response.status)}
        try:
            body = await response.read_body(transformation.limit)
            response.body = await transformation.run(_Message(body, response.headers, request, variables))
        except (BodyFault, CodingFault) as fault:
            _refuse(response, 502, f"the upstream's answer cannot be transformed: {fault}")
        except BuffersFull as full:
            _refuse(response, 503, str(full))
        except BodyTooLarge:
            _refuse(response, 502, f"the upstream's answer has more than {transformation.limit} bytes to transform")
        except RenderFault as fault:
            _refuse(response, 503, f"the template does not fit the upstream's answer: {fault}")
        else:
            _drop_validators(response.headers)


def _refuse(response: Response, status: int, reason: str) -> None:
    """Put an error in the place of an answer; one that is an error keeps its status."""
    response.replace(Response.refusal(response.status if response.status >= 400 else status, reason))


def _drop_validators(headers: Headers) -> None:
    for name in (*_OF_THE_OLD_BODY, *_OF_THE_OLD_ANSWER):
        headers.remove(name)


def _told(status: int, fault: str) -> Response:
    """Make an answer in the form of Apache APISIX."""
    return Response.json(status, {"message": fault}, reason=fault)


class _Message(NamedTuple):
    """What is transformed."""

    body: bytes
    headers: Headers
    request: Request
    variables: dict[str, str]
    """Besides those of the request."""


class _Transformation:
    """A template, and what it is for."""

    def __init__(self, config: BodyTemplate, limit: int) -> None:
        self.limit = limit
        """Bytes of a body."""
        self._template = config.parsed()
        self._format = config.input_format

    async def run(self, message: _Message, *, is_get: bool = False) -> bytes:
        """Return what becomes of a body. Raises BodyFault, CodingFault, BodyTooLarge, RenderFault."""
        headers = message.headers
        format_ = "args" if is_get else self._format or format_of(headers.get("Content-Type") or "")
        if self.takes_long(message.body, headers):
            return await asyncio.to_thread(self._run, message, format_)
        return self._run(message, format_)

    def takes_long(self, body: bytes, headers: Headers) -> bool:
        """Tell whether a body may take more than a millisecond."""
        return len(body) > _SHORT or "Content-Encoding" in headers or not self._template.is_quick

    def _run(self, message: _Message, format_: str | None) -> bytes:
        headers = message.headers
        body = decompress(message.body, headers.get("Content-Encoding") or "", self.limit)
        fields: Fields = {}
        if format_ == "args":
            fields = decode_query(message.request.query)
        elif body and format_ is not None and format_ != "plain":
            fields = decode_fields(body, format_, headers.get("Content-Type") or "")

        def look_up(name: str) -> str | None:
            return message.variables[name] if name in message.variables else variable(message.request, name)

        text = Rendering(fields, body.decode("utf-8", "surrogateescape"), look_up).render(self._template)
        try:
            return text.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise RenderFault("it has a character that is none") from None
