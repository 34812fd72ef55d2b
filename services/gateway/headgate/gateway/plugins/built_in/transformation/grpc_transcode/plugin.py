"""`grpc-transcode`: call a method of gRPC for a request of HTTP, and answer with JSON.

The upstream has to speak gRPC (`grpc`, `grpcs`, h2c). The message is made of a body of JSON, of a form, or of the
query; what it has no field for is left out. Errors of the service become statuses of HTTP.
"""

import asyncio
import base64
import binascii
import json
from collections.abc import Awaitable
from typing import Any, Final
from urllib.parse import parse_qsl

from headgate.common.plugins.transformation.grpc_transcode import GrpcTranscodeConfig
from headgate.common.plugins.transformation.protobuf_methods import decode, find_method, status_message
from headgate.gateway.plugins.built_in.transformation.grpc_transcode.messages import Transcoder, Unfit
from headgate.gateway.plugins.interface import (
    BodyTooLarge,
    BuffersFull,
    Foreseen,
    Plugin,
    PluginServices,
    Request,
    Response,
    Unforeseeable,
)

_MAX_BODY: Final = 1 << 20
_MAX_ANSWER: Final = 4 << 20
_SHORT: Final = 16 << 10
"""Bytes that are read and written on the event loop."""
_MAX_FIELDS: Final = 1024
_FRAME: Final = 5
"""Bytes in front of a message: a flag for compressed ones, and the length."""
_CALLED: Final = "grpc-transcode.called"
_DETAILS: Final = "grpc-status-details-bin"
_STATUSES: Final = {
    "1": 499,
    "2": 500,
    "3": 400,
    "4": 504,
    "5": 404,
    "6": 409,
    "7": 403,
    "8": 429,
    "9": 400,
    "10": 409,
    "11": 400,
    "12": 501,
    "13": 500,
    "14": 503,
    "15": 500,
    "16": 401,
}
"""Of HTTP by those of gRPC (https://cloud.google.com/apis/design/errors)."""
_OTHER_STATUS: Final = 599


class GrpcTranscode(Plugin[GrpcTranscodeConfig]):
    """Makes calls of requests."""

    name = "grpc-transcode"
    order = 506
    preview = "yes"
    Config = GrpcTranscodeConfig
    is_shareable = True

    def __init__(self, config: GrpcTranscodeConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._method = find_method(config.proto or "", config.service, config.method)
        self._transcoder = Transcoder(config.pb_option)
        self._most = min(config.max_resp_body_size, _MAX_ANSWER)

    def foresee(self, request: Request) -> Foreseen | Awaitable[Foreseen]:
        """Make the call, unless that takes long."""
        if len(request.body or b"") > _SHORT:
            raise Unforeseeable("its body takes long to read")
        return self.on_request(request)

    async def on_request(self, request: Request) -> Response | None:
        """Send a call instead of the request."""
        body = await request.read_body(_MAX_BODY)
        try:
            if len(body) > _SHORT:
                message = await asyncio.to_thread(self._message, request, body)
            else:
                message = self._message(request, body)
        except Unfit as fault:
            return Response.refusal(400, str(fault))
        request.variables[_CALLED] = True
        request.method, request.path, request.query = "POST", f"/{self.config.service}/{self.config.method}", ""
        for name in ("Content-Encoding", "grpc-encoding", "grpc-accept-encoding", "Accept-Encoding"):
            request.headers.remove(name)
        request.headers.set("Content-Type", "application/grpc")
        if self.config.deadline > 0:
            request.headers.set("grpc-timeout", f"{self.config.deadline:.0f}m")
        request.replace_body(b"\0" + len(message).to_bytes(4, "big") + message)
        return None

    def _message(self, request: Request, body: bytes) -> bytes:
        return self._transcoder.read(self._method.request, _fields(request, body))

    async def on_response(self, request: Request, response: Response) -> None:
        """Put JSON in the place of the message."""
        if _CALLED not in request.variables or not response.from_upstream or response.status >= 300:
            return
        headers = response.headers
        status = headers.get("grpc-status") or "0"
        try:
            if status != "0":
                response.status = _STATUSES.get(status, _OTHER_STATUS)
                response.body = self._details(headers.get(_DETAILS)) if self.config.show_status_in_body else b""
            else:
                raw = await response.read_body(self._most)
                response.body = await asyncio.to_thread(self._reply, raw) if len(raw) > _SHORT else self._reply(raw)
        except BuffersFull as full:
            response.replace(Response.refusal(503, str(full)))
        except BodyTooLarge:
            response.replace(Response.refusal(502, f"the upstream's message has more than {self._most} bytes"))
        except Unfit as fault:
            response.replace(Response.refusal(502, str(fault)))
        else:
            headers.set("Content-Type", "application/json")

    def _reply(self, raw: bytes) -> bytes:
        """Return a message as JSON. Raises Unfit."""
        size = int.from_bytes(raw[1:_FRAME], "big")
        if len(raw) < _FRAME or raw[0] or len(raw) != _FRAME + size:
            raise Unfit("the upstream did not answer with one message that is not compressed")
        return _written(self._transcoder.write(_decoded(self._method.reply, raw[_FRAME:])))

    def _details(self, header: str | None) -> bytes:
        """Return the status that a header has, in JSON. Raises Unfit."""
        if header is None:
            return b""
        try:
            raw = base64.b64decode(header + "=" * (-len(header) % 4), validate=True)
        except (binascii.Error, ValueError):
            raise Unfit(f"{_DETAILS} is not base64 format") from None
        status = _decoded(status_message(), raw)
        kind = self.config.status_detail_type
        if kind is None:
            details: list[Any] = [
                {"type_url": each.type_url, "value": each.value.decode("utf-8", "replace")} for each in status.details
            ]
        else:
            decoded = (_decoded(self._method.message_of(kind), each.value) for each in status.details)
            details = [self._transcoder.write(each) for each in decoded]
        return _written({"error": {"code": status.code, "message": status.message, "details": details}})


def _decoded(kind: Any, raw: bytes) -> Any:
    try:
        return decode(kind, raw)
    except ValueError:
        raise Unfit("failed to decode response data by protobuf") from None


def _written(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")


def _fields(request: Request, body: bytes) -> dict[str, Any]:
    """Return what a message is made of. Raises Unfit."""
    is_json = "application/json" in (request.headers.get("Content-Type") or "")
    try:
        if is_json and request.method in ("POST", "PUT", "PATCH"):
            given = json.loads(body) if body else {}
            if not isinstance(given, dict):
                raise Unfit("the body is no object")
            return given
        text = body.decode() if request.method == "POST" else request.query
        fields: dict[str, Any] = {}
        for name, value in parse_qsl(text, keep_blank_values=True, max_num_fields=_MAX_FIELDS):
            fields.setdefault(name, []).append(value)
        return fields
    except (ValueError, RecursionError):
        raise Unfit("the request's fields cannot be read") from None
