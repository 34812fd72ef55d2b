"""Which trailers of a request an upstream gets: it may take them for headers of the gateway's own."""

import pytest

from fakes.gateway.proxied import OK, Conversation, Proxied, Script, proxied
from fakes.peers.http2 import Http2Origin, answer_with, http2_client, request
from headgate.gateway.model.connection import ConnectionSpec
from headgate.gateway.plugins.interface import PluginServices
from headgate.gateway.plugins.runtime.chain import PluginChain
from headgate.gateway.plugins.runtime.run import RoutePlugins
from headgate.gateway.proxy.policies import RoutePolicies

CHUNKED = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\nok\r\n0\r\n"
GRPC = ((b"content-type", b"application/grpc"), (b"te", b"trailers"))


async def sent(proxy: Proxied, bodies: list[bytes], trailers: bytes, *, bytewise: bool = False) -> bytes:
    """Give the trailers that the origin gets of a request's."""
    assert (await proxy.talk(CHUNKED + trailers + b"\r\n", bytewise=bytewise)).endswith(b"ok")
    return bodies[-1].partition(b"\r\n0\r\n")[2].removesuffix(b"\r\n")


def recording(bodies: list[bytes]) -> Script:
    async def script(conversation: Conversation) -> None:
        await conversation.head()
        bodies.append(await conversation.reader.readuntil(b"\r\n0\r\n") + await conversation.reader.readuntil(b"\r\n"))
        while not bodies[-1].endswith(b"\r\n\r\n"):
            bodies[-1] += await conversation.reader.readuntil(b"\r\n")
        await conversation.send(OK)

    return script


@pytest.mark.parametrize("bytewise", [False, True], ids=["whole", "bytewise"])
@pytest.mark.parametrize("name", [b"X-Consumer-Username", b"ssl-client-verify", b"X-Sum"])
async def test_trailers_are_dropped_where_no_route_asks_for_them(name: bytes, bytewise: bool) -> None:
    bodies: list[bytes] = []
    async with proxied(recording(bodies)) as proxy:
        assert await sent(proxy, bodies, name + b": root\r\n", bytewise=bytewise) == b""


async def test_a_route_that_asks_for_trailers_has_them_passed_on_but_no_identity() -> None:
    bodies: list[bytes] = []
    async with proxied(recording(bodies)) as proxy:
        proxy.target.policies = RoutePolicies()
        proxy.target.policies.request_trailers = True
        claimed = b"X-Sum: 1\r\nX-Consumer-Username: root\r\nSSL-Client-Verify: SUCCESS\r\nX_Sum: 2\r\n"
        claimed += b"X-Userinfo: e30=\r\n"
        assert await sent(proxy, bodies, claimed) == b"X-Sum: 1\r\n"


async def test_a_trailer_that_the_head_has_too_is_dropped() -> None:
    bodies: list[bytes] = []
    async with proxied(recording(bodies)) as proxy:
        proxy.target.policies = RoutePolicies()
        proxy.target.policies.request_trailers = True
        request_ = CHUNKED.replace(b"Host: a", b"Host: a\r\nX-Tenant: a")
        assert (await proxy.talk(request_ + b"x-tenant: b\r\n\r\n")).endswith(b"ok")
        assert b"tenant" not in bodies[0].lower()


async def seen_by_a_grpc_service(policies: RoutePolicies | None) -> dict[bytes, bytes]:
    origin = Http2Origin(answer_with(b"ok", trailers=[(b"grpc-status", b"0")]))
    await origin.start()
    async with proxied() as proxy, http2_client(proxy.port) as client:
        proxy.target.pools = [proxy.pools.get("127.0.0.1", origin.port, ConnectionSpec("h2c"))]
        proxy.target.policies = policies
        stream_id = client.open(request(b"POST", b"/a.B/C", *GRPC), end=False)
        client.send(stream_id, b"hello")
        client.trailers(stream_id, [(b"x-count", b"5"), (b"x-consumer-username", b"root")])
        await client.answer(stream_id)
    await origin.stop()
    return origin.requests[0].trailers


async def test_trailers_of_grpc_pass_but_no_identity() -> None:
    assert await seen_by_a_grpc_service(None) == {b"x-count": b"5"}


async def test_trailers_of_grpc_do_not_pass_where_plugins_may_say_who_the_client_is() -> None:
    policies = RoutePolicies()
    policies.hooks = RoutePlugins(PluginChain([], PluginServices()))
    assert await seen_by_a_grpc_service(policies) == {}
