"""Before any figure: does a proxy carry a gRPC call from end to end, message and trailers?"""

import socket

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, Event, ResponseReceived, StreamEnded, StreamReset, TrailersReceived
from h2.exceptions import ProtocolError

from bench.errors import BenchError
from bench.setup.workload import GRPC_PATH, grpc_message

_PATIENCE_S = 10.0


def check_grpc(port: int, host: str) -> None:
    """Make one unary call over HTTP/2 without TLS.

    Raises:
        BenchError: no answer, another message, or no `grpc-status: 0` in the trailers.
    """
    try:
        status, body, trailers = _call(port, host)
    except (OSError, ProtocolError) as error:
        raise BenchError(f"no gRPC call comes through: {error or type(error).__name__}") from error
    if status != b"200" or body != grpc_message() or trailers.get(b"grpc-status") != b"0":
        raise BenchError(f"a gRPC call is answered with {status!r}, {len(body)} bytes, trailers {trailers}")


def _call(port: int, host: str) -> tuple[bytes, bytes, dict[bytes, bytes]]:
    connection = H2Connection(H2Configuration(client_side=True, header_encoding=False))
    with socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE_S) as transport:
        connection.initiate_connection()
        head = [(":method", "POST"), (":scheme", "http"), (":authority", host), (":path", GRPC_PATH)]
        head += [("content-type", "application/grpc"), ("te", "trailers")]
        connection.send_headers(1, head)
        connection.send_data(1, grpc_message(), end_stream=True)
        seen: list[Event] = []
        while not any(isinstance(event, StreamEnded | StreamReset) for event in seen):
            transport.sendall(connection.data_to_send())
            data = transport.recv(65536)
            if not data:
                raise BenchError("the connection is closed before the call's end")
            seen += connection.receive_data(data)
    heads = {name: value for event in seen if isinstance(event, ResponseReceived) for name, value in event.headers}
    body = b"".join(event.data for event in seen if isinstance(event, DataReceived))
    trailers = {name: value for event in seen if isinstance(event, TrailersReceived) for name, value in event.headers}
    return bytes(heads.get(b":status", b"")), body, {bytes(name): bytes(value) for name, value in trailers.items()}
