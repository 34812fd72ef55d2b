"""Checks over HTTP/2: a request, and the gRPC health service (grpc.health.v1), with `h2` and no gRPC library.

The messages are three lines of protobuf, written by hand: `HealthCheckRequest { string service = 1 }` and
`HealthCheckResponse { ServingStatus status = 1 }` with SERVING = 1, each after gRPC's prefix of a zero byte and four of
length (github.com/grpc/grpc, doc/health-checking.md and doc/PROTOCOL-HTTP2.md).
"""

import asyncio
from typing import Final

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)
from h2.exceptions import ProtocolError

from headgate.gateway.health.asking import USER_AGENT, Asking, authority, judge, request_fields
from headgate.gateway.health.target import CheckTarget

_SERVING: Final = b"\x08\x01"
_STATUSES: Final = ("UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN")


class Http2Asking(Asking):
    """Sends a request over HTTP/2 and judges the status of the answer; its body is not awaited."""

    def __init__(self, target: CheckTarget) -> None:
        super().__init__()
        self._target = target
        self._connection = H2Connection(H2Configuration(client_side=True, header_encoding=None))

    def begin(self, transport: asyncio.Transport) -> None:
        """Send the request."""
        self._connection.initiate_connection()
        try:
            self.ask()
        except (ValueError, ProtocolError) as error:
            self.end(str(error))
        self._flush()

    def ask(self) -> None:
        """Put the request into the connection; raises ValueError as `request_fields` does."""
        fields = [(name.lower(), value) for name, value in request_fields(self._target)]
        scheme = "https" if self._target.check.type == "https" else "http"
        self._connection.send_headers(
            1,
            [
                (":method", self._target.check.method),
                (":scheme", scheme),
                (":authority", authority(self._target)),
                (":path", self._target.check.path),
                *fields,
            ],
            end_stream=True,
        )

    def take(self, data: bytes) -> None:
        """Parse, answer settings and pings, and look at what concerns the request."""
        try:
            events = self._connection.receive_data(data)
        except ProtocolError as error:
            self.end(f"the answer is not HTTP/2: {error}")
            return
        for event in events:
            if isinstance(event, ConnectionTerminated):
                self.end(f"GOAWAY with code {int(event.error_code or 0)}")
            elif isinstance(event, StreamReset):
                self.end(f"the stream was reset with code {int(event.error_code or 0)}")
            else:
                self.look_at(event)
        self._flush()

    def look_at(self, event: Event) -> None:
        """Judge the status."""
        if isinstance(event, ResponseReceived):
            self.end(judge(int(_field(event, b":status") or "0"), self._target.check))

    def _flush(self) -> None:
        data = self._connection.data_to_send()
        if data and self.transport is not None and not self.transport.is_closing():
            self.transport.write(data)


class GrpcAsking(Http2Asking):
    """Calls `grpc.health.v1.Health/Check` for a service and wants SERVING."""

    def __init__(self, target: CheckTarget) -> None:
        super().__init__(target)
        self._message = b""
        self._grpc_status: str | None = None
        self._status = "0"

    def ask(self) -> None:
        """Put the call into the connection."""
        self._connection.send_headers(
            1,
            [
                (":method", "POST"),
                (":scheme", "http"),
                (":authority", authority(self._target)),
                (":path", "/grpc.health.v1.Health/Check"),
                ("content-type", "application/grpc"),
                ("te", "trailers"),
                ("user-agent", USER_AGENT),
            ],
        )
        self._connection.send_data(1, health_request(self._target.check.service), end_stream=True)

    def look_at(self, event: Event) -> None:
        """Collect the message and the status, which comes in trailers or in the only head."""
        if isinstance(event, ResponseReceived):
            self._status = _field(event, b":status") or "0"
            self._grpc_status = _field(event, b"grpc-status")
        elif isinstance(event, DataReceived):
            self._message += event.data or b""
        elif isinstance(event, TrailersReceived):
            self._grpc_status = _field(event, b"grpc-status")
        elif isinstance(event, StreamEnded):
            self.end(self._judge_call())

    def _judge_call(self) -> str | None:
        if self._status != "200":
            return f"status {self._status}"
        if self._grpc_status != "0":
            return f"gRPC status {self._grpc_status or 'missing'}"
        message = self._message[5:]
        if message.startswith(_SERVING):
            return None
        number = message[1] if message[:1] == b"\x08" and len(message) > 1 else 0
        return f"the service is {_STATUSES[number] if number < len(_STATUSES) else number}"


def health_request(service: str) -> bytes:
    """Encode a HealthCheckRequest with gRPC's prefix."""
    name = service.encode()
    message = b"\x0a" + _varint(len(name)) + name if name else b""
    return b"\0" + len(message).to_bytes(4, "big") + message


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _field(event: ResponseReceived | TrailersReceived, name: bytes) -> str | None:
    for known, value in event.headers or ():
        if known == name:
            return value.decode("latin-1")
    return None
