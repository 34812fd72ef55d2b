"""A gRPC service without generated code: messages are bytes, methods one of each kind."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import grpc
import grpc.aio

from fakes.gateway.tls import Issued

SERVICE = "test.Echo"


class Echo(grpc.GenericRpcHandler):
    """Says back what it hears; `fail`, `sleep` and `break` do what they say."""

    def __init__(self) -> None:
        self.metadata: list[dict[str, str | bytes]] = []
        self.time_left: list[float | None] = []
        self.cancelled = asyncio.Event()

    def service(self, call: Any) -> Any:
        self.metadata.append({each.key: each.value for each in call.invocation_metadata})
        handlers = {
            f"/{SERVICE}/Unary": grpc.unary_unary_rpc_method_handler(self._unary),
            f"/{SERVICE}/ServerStream": grpc.unary_stream_rpc_method_handler(self._server_stream),
            f"/{SERVICE}/ClientStream": grpc.stream_unary_rpc_method_handler(self._client_stream),
            f"/{SERVICE}/Bidi": grpc.stream_stream_rpc_method_handler(self._bidi),
        }
        return handlers.get(call.method)

    async def _unary(self, request: bytes, context: Any) -> bytes:
        self.time_left.append(context.time_remaining())
        if request == b"sleep":
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                self.cancelled.set()
                raise
        if request == b"fail":
            context.set_trailing_metadata((("x-why-bin", b"\0\xff"),))
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "nicht möglich: 100%")
        context.set_trailing_metadata((("x-trailer", "t"),))
        return request[::-1]

    async def _server_stream(self, request: bytes, context: Any) -> AsyncIterator[bytes]:
        for number in range(int(request)):
            yield b"%d" % number

    async def _client_stream(self, requests: AsyncIterator[bytes], context: Any) -> bytes:
        return b",".join([request async for request in requests])

    async def _bidi(self, requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
        async for request in requests:
            yield request + request


@contextlib.asynccontextmanager
async def grpc_server(issued: Issued | None = None) -> AsyncIterator[tuple[Echo, int]]:
    """Serve on a free port of 127.0.0.1, over TLS if there is a certificate."""
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    echo = Echo()
    server.add_generic_rpc_handlers((echo,))
    if issued is None:
        port = server.add_insecure_port("127.0.0.1:0")
    else:
        credentials = grpc.ssl_server_credentials([(issued.key_pem, issued.chain_pem)])
        port = server.add_secure_port("127.0.0.1:0", credentials)
    await server.start()
    try:
        yield echo, port
    finally:
        await server.stop(None)
        await _until_clients_are_gone(port)


async def _until_clients_are_gone(port: int) -> None:
    """Wait for those who have not yet read that the server left, so that no loop ends with their connections open."""
    for _ in range(500):
        if not any(_is_client(line.split(), port) for line in _CONNECTIONS.read_text().splitlines()[1:]):
            return
        await asyncio.sleep(0.01)


def _is_client(fields: list[str], port: int) -> bool:
    remote, inode = fields[2], fields[9]
    return remote.endswith(f":{port:04X}") and inode != "0"


_CONNECTIONS: Final = Path("/proc/self/net/tcp")
"""One line for each; those that nobody holds open any more have the inode 0."""


class Stub:
    """The client's side of the service."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.unary = channel.unary_unary(f"/{SERVICE}/Unary")
        self.server_stream = channel.unary_stream(f"/{SERVICE}/ServerStream")
        self.client_stream = channel.stream_unary(f"/{SERVICE}/ClientStream")
        self.bidi = channel.stream_stream(f"/{SERVICE}/Bidi")
        self.unknown = channel.unary_unary(f"/{SERVICE}/Unknown")


@contextlib.asynccontextmanager
async def grpc_stub(port: int, authority_pem: bytes | None = None, authority: str = "a") -> AsyncIterator[Stub]:
    """Connect to a port of 127.0.0.1, over TLS if there is an authority to trust."""
    options = [("grpc.default_authority", authority)]
    if authority_pem is None:
        channel = grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=options)
    else:
        options.append(("grpc.ssl_target_name_override", authority))
        credentials = grpc.ssl_channel_credentials(authority_pem)
        channel = grpc.aio.secure_channel(f"127.0.0.1:{port}", credentials, options=options)
    async with channel:
        yield Stub(channel)
