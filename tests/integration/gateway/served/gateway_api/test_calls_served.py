"""GRPCRoutes from manifests to the wire, with the library of the gRPC authors at both ends."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import grpc
import pytest

from fakes.gateway.ports import free_port
from fakes.gateway.served import HOST
from fakes.gateway.tls import Authority, Issued
from fakes.peers.grpc_service import SERVICE, Echo, Stub, grpc_server, grpc_stub
from fakes.translator.applied import World, world
from fakes.translator.deltas import endpoint_slice, service
from fakes.translator.gateway_api import call, gateway, gateway_class, grpc_route, listener, to

MODIFIER = {"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [{"name": "X-Set", "value": "1"}]}}


class Calls(NamedTuple):
    """A proxy with two gRPC services behind it, `one` and `two`."""

    made: World
    one: Echo
    two: Echo

    def counts(self) -> tuple[int, int]:
        return len(self.one.metadata), len(self.two.metadata)


@contextlib.asynccontextmanager
async def calls(*objects: Any, issued: Issued | None = None, **port: str) -> AsyncIterator[tuple[Calls, Stub]]:
    async with grpc_server(issued) as (one, first), grpc_server(issued) as (two, second), world() as made:
        for name, number in (("one", first), ("two", second)):
            written = service(name)
            written["spec"]["ports"][0] |= port
            made.proxy.apply(written, endpoint_slice(name, "127.0.0.1", port=number))
        made.proxy.apply(gateway_class(), gateway(), *objects)
        async with grpc_stub(made.proxy.proxy.port, authority=HOST) as stub:
            yield Calls(made, one, two), stub


async def test_methods_of_a_service_go_before_the_service_and_other_methods_are_unimplemented() -> None:
    route = grpc_route(
        to("one", matches=[call(SERVICE)]), to("two", matches=[call(SERVICE, "Unary"), call("other", "Unary")])
    )
    async with calls(route) as (found, stub):
        assert await stub.unary(b"abc") == b"cba"
        assert await stub.client_stream(iter((b"a", b"b"))) == b"a,b"
        assert found.counts() == (1, 1)


async def test_a_call_that_no_match_takes_is_unimplemented() -> None:
    async with calls(grpc_route(to("one", matches=[call(SERVICE, "Unary")]))) as (found, stub):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.unknown(b"abc")
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
        assert found.counts() == (0, 0)


async def test_more_headers_go_first_and_patterns_take_names_of_services_and_methods() -> None:
    pattern = {"method": {"type": "RegularExpression", "service": "test[.].*", "method": "Un.*"}}
    red = {"name": "color", "value": "red"}
    route = grpc_route(to("one", matches=[pattern]), to("two", matches=[{**pattern, "headers": [red]}]))
    async with calls(route) as (found, stub):
        await stub.unary(b"abc")
        await stub.unary(b"abc", metadata=[("color", "red")])
        assert found.counts() == (1, 1)


async def test_a_method_without_a_service_is_that_of_any() -> None:
    async with calls(grpc_route(to("one", matches=[call(method="Unary")]))) as (found, stub):
        assert await stub.unary(b"abc") == b"cba"
        assert found.counts() == (1, 0)


async def test_calls_are_shared_by_weight_and_changed_by_filters() -> None:
    async with calls(grpc_route(to(("one", 3), ("two", 1), filters=[MODIFIER]))) as (found, stub):
        for _ in range(8):
            await stub.unary(b"abc")
        assert found.counts() == (6, 2)
        assert found.one.metadata[0]["x-set"] == "1"


async def test_tls_is_spoken_with_a_service_whose_port_says_so() -> None:
    issued = Authority().issue("one.example")
    async with calls(grpc_route(to("one")), issued=issued, appProtocol="https") as (_, stub):
        assert await stub.unary(b"abc") == b"cba"


async def test_a_service_that_is_not_there_keeps_its_share() -> None:
    async with calls(grpc_route(to("one", "missing"))) as (found, stub):
        codes = []
        for _ in range(4):
            try:
                await stub.unary(b"abc")
                codes.append("OK")
            except grpc.aio.AioRpcError as error:
                codes.append(error.code().name)
        assert sorted(codes).count("OK") == 2
        assert found.counts() == (2, 0)


async def test_a_whole_hostname_takes_calls_before_an_older_wildcard() -> None:
    old, young = {"creationTimestamp": "2026-01-01T00:00:00Z"}, {"creationTimestamp": "2026-01-02T00:00:00Z"}
    wide = grpc_route(to("one"), name="wide", hostnames=["*.example"], **old)
    async with calls(gateway(listener(hostname=HOST)), wide) as (found, stub):
        assert await stub.unary(b"abc") == b"cba"
        found.made.proxy.apply(grpc_route(to("two"), name="exact", hostnames=[HOST], **young))
        assert await stub.unary(b"abc") == b"cba"
        assert found.counts() == (1, 1)


async def test_calls_of_two_gateways_go_each_where_their_route_says() -> None:
    port = free_port()
    one, other = grpc_route(to("one"), name="one"), grpc_route(to("two"), name="other", parents=[{"name": "other"}])
    async with calls(gateway(listener("grpc", port), name="other"), one, other) as (found, stub):
        assert await stub.unary(b"abc") == b"cba"
        assert found.counts() == (1, 0)
        async with grpc_stub(port, authority=HOST) as second:
            assert await second.unary(b"abc") == b"cba"
        assert found.counts() == (1, 1)
