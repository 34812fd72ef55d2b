"""gRPC end to end, with the library of the gRPC authors at both ends."""

import asyncio
import contextlib
import gc
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import grpc.aio
import pytest
from cryptography import x509

from fakes.gateway.proxied import Proxied, proxied
from fakes.gateway.tls import Authority
from fakes.peers.grpc_service import Echo, Stub, grpc_server, grpc_stub
from fakes.peers.http2 import Http2Origin, answer_with, http2_client, request
from fakes.waiting import until
from headgate.common.secret import Secret
from headgate.common.table import CircuitBreaker
from headgate.gateway.health.circuit import Circuit
from headgate.gateway.model.connection import ConnectionSpec
from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.policies import RoutePolicies
from headgate.gateway.tls import CertificateEntry, CertificateStore

Code = grpc.StatusCode
GRPC = ((b"content-type", b"application/grpc"), (b"te", b"trailers"))


@contextlib.asynccontextmanager
async def service(config: ProxyConfig | None = None) -> AsyncIterator[tuple[Stub, Echo, Proxied]]:
    """A client, a proxy and a service, without TLS."""
    async with grpc_server() as (echo, port), proxied(config=config or ProxyConfig(read_timeout_s=0.5)) as proxy:
        proxy.target.pools = [proxy.pools.get("127.0.0.1", port, ConnectionSpec("h2c"))]
        async with grpc_stub(proxy.port) as stub:
            yield stub, echo, proxy
    gc.collect()


async def failure(call: "grpc.aio.UnaryUnaryCall[bytes, bytes]") -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return caught.value


async def test_a_unary_call_passes_with_metadata_and_trailers() -> None:
    async with service() as (stub, echo, proxy):
        call = stub.unary(b"abc", metadata=[("x-key", "v"), ("x-raw-bin", b"\0\1")])
        assert await call == b"cba"
        assert dict(await call.trailing_metadata())["x-trailer"] == "t"
        assert (echo.metadata[0]["x-key"], echo.metadata[0]["x-raw-bin"]) == ("v", b"\0\1")
        assert proxy.log.records[0][5] == 200


async def test_streams_pass_one_way_the_other_way_and_both() -> None:
    async with service() as (stub, _, _proxy):
        assert [each async for each in stub.server_stream(b"1000")] == [b"%d" % number for number in range(1000)]
        call = stub.client_stream()
        for number in range(5):
            await call.write(b"%d" % number)
        await call.done_writing()
        assert await call == b"0,1,2,3,4"
        talk = stub.bidi()
        for number in range(20):
            await talk.write(b"%d" % number)
            assert await talk.read() == b"%d%d" % (number, number)
        await talk.done_writing()
        assert await talk.read() is grpc.aio.EOF


async def test_many_calls_share_few_connections() -> None:
    async with service() as (stub, _, proxy):
        answers = await asyncio.gather(*(stub.unary(b"%04d" % number) for number in range(200)))
        assert answers == [(b"%04d" % number)[::-1] for number in range(200)]
        assert proxy.server.connections == 1


async def test_large_messages_pass() -> None:
    async with service() as (stub, _, _proxy):
        message = bytes(range(256)) * 12_000
        assert await stub.unary(message) == message[::-1]


async def test_an_error_of_the_service_passes_as_it_is() -> None:
    async with service() as (stub, _, _proxy):
        error = await failure(stub.unary(b"fail"))
        assert (error.code(), error.details()) == (Code.FAILED_PRECONDITION, "nicht möglich: 100%")
        assert dict(error.trailing_metadata() or [])["x-why-bin"] == b"\0\xff"
        assert (await failure(stub.unknown(b""))).code() is Code.UNIMPLEMENTED


async def test_compressed_messages_are_not_touched() -> None:
    message = b"\1\0\0\0\3\x1f\x8b\0"
    origin = Http2Origin(answer_with(message, (b"grpc-encoding", b"gzip"), trailers=[(b"grpc-status", b"0")]))
    await origin.start()
    async with proxied() as proxy, http2_client(proxy.port) as client:
        proxy.target.pools = [proxy.pools.get("127.0.0.1", origin.port, ConnectionSpec("h2c"))]
        encodings = ((b"grpc-encoding", b"gzip"), (b"grpc-accept-encoding", b"gzip"))
        answer = await client.fetch(request(b"POST", b"/a.B/C", *GRPC, *encodings), message)
        assert bytes(answer.body) == bytes(origin.requests[0].body) == message
        assert set(encodings) | set(GRPC) <= set(origin.requests[0].fields)
        assert answer.trailers == {b"grpc-status": b"0"}
    await origin.stop()


async def test_the_deadline_of_the_client_reaches_the_service_and_ends_the_call() -> None:
    async with service(ProxyConfig(read_timeout_s=5.0)) as (stub, echo, proxy):
        error = await failure(stub.unary(b"sleep", timeout=2.0))
        assert error.code() is Code.DEADLINE_EXCEEDED
        assert 0.0 < (echo.time_left[0] or 0.0) <= 2.1  # grpcio rounds up
        await asyncio.wait_for(echo.cancelled.wait(), 5)
        await until(lambda: proxy.target.pools[0].in_flight == 0)


async def test_a_cancelled_call_is_cancelled_at_the_service() -> None:
    async with service(ProxyConfig(read_timeout_s=5.0)) as (stub, echo, proxy):
        call = stub.unary(b"sleep")
        await until(lambda: bool(echo.time_left))
        call.cancel()
        await asyncio.wait_for(echo.cancelled.wait(), 5)
        await until(lambda: bool(proxy.log.records))
        assert proxy.log.records[0][5] == 499


async def test_failures_of_ours_have_the_form_of_grpc() -> None:
    async with service() as (stub, _, proxy):
        proxy.target.pools = []
        proxy.target.unavailable = "Käse is out"
        error = await failure(stub.unary(b""))
        assert (error.code(), error.details()) == (Code.UNAVAILABLE, "Käse is out")
        async with grpc_stub(proxy.port, authority="unknown") as stranger:
            assert (await failure(stranger.unary(b""))).code() is Code.UNIMPLEMENTED


async def test_a_silent_service_is_a_deadline_that_passed() -> None:
    async with service(ProxyConfig(read_timeout_s=0.2)) as (stub, echo, _proxy):
        error = await failure(stub.unary(b"sleep"))
        assert error.code() is Code.DEADLINE_EXCEEDED
        await asyncio.wait_for(echo.cancelled.wait(), 5)


async def test_grpc_timeout_bounds_a_call_whatever_the_client_does() -> None:
    async with service(ProxyConfig(read_timeout_s=4.0)) as (_, echo, proxy), http2_client(proxy.port) as client:
        headers = request(b"POST", b"/test.Echo/Unary", *GRPC, (b"grpc-timeout", b"300m"))
        answer = await client.fetch(headers, b"\0\0\0\0\5sleep")
        assert (answer.status, answer.headers[b"grpc-status"]) == (200, b"4")
        assert bytes(answer.body) == b""
        await asyncio.wait_for(echo.cancelled.wait(), 5)


async def test_a_shorter_timeout_of_the_route_wins() -> None:
    async with service(ProxyConfig(read_timeout_s=4.0)) as (stub, _, proxy):
        proxy.target.policies = RoutePolicies()
        proxy.target.policies.request_s = 0.2
        error = await failure(stub.unary(b"sleep", timeout=20))
        assert error.code() is Code.DEADLINE_EXCEEDED


async def test_calls_go_on_when_the_service_restarts() -> None:
    async with proxied() as proxy, grpc_stub(proxy.port) as stub:
        for _ in range(2):
            async with grpc_server() as (_, port):
                proxy.target.pools = [proxy.pools.get("127.0.0.1", port, ConnectionSpec("h2c"))]
                assert await stub.unary(b"ab") == b"ba"


async def test_grpc_over_tls_on_both_sides(tmp_path: Path) -> None:
    authority = Authority()
    issued = authority.issue("a.example", x509.DNSName("a.example"))
    store = CertificateStore(alpn=("h2", "http/1.1"))
    entry = CertificateEntry(("a.example",), issued.chain_pem.decode(), Secret(issued.key_pem), "f", "k")
    store.set_certificates([entry])
    context = ssl.create_default_context(cadata=authority.pem.decode())
    context.set_alpn_protocols(["h2"])
    circuit = Circuit(CircuitBreaker(max_connections=1))
    assert circuit.acquire_connection()
    async with proxied() as proxy:
        async with grpc_server(issued) as (echo, port):
            proxy.target.pools = [proxy.pools.get("127.0.0.1", port, ConnectionSpec("h2", context, "a.example"))]
            tls_port = await proxy.server.listen_https("127.0.0.1", 0, store)
            async with grpc_stub(tls_port, authority.pem, "a.example") as stub:
                assert await stub.unary(b"abc") == b"cba"
                assert [each async for each in stub.server_stream(b"3")] == [b"0", b"1", b"2"]
            assert echo.metadata[0]["x-forwarded-proto"] == "https"
            side = proxy.target.pools[0].acquire(certain=True)
            assert side is not None
            side.count_by(circuit)
        # gRPC's server closes behind our farewell only when it stops. A loop that ends before cannot be closed.
        await until(lambda: not proxy.server.connections and not circuit.connections)
