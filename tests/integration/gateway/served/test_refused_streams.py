"""Streams that an HTTP/2 endpoint refuses: sent again where a route says so, whatever the method."""

import pytest

from fakes.gateway.served import at, served, site, to
from fakes.peers.http2 import ErrorCodes, Http2Origin, Peer, answer_with


async def refuse(peer: Peer, stream_id: int) -> None:
    peer.reset(stream_id, ErrorCodes.REFUSED_STREAM)


@pytest.mark.parametrize(("on", "status"), [("refused-stream", 200), ("connect", 200), ("reset", 502)])
async def test_refused_stream_goes_to_another_endpoint_where_a_route_retries_on_that(on: str, status: int) -> None:
    refusing, willing = Http2Origin(refuse), Http2Origin(answer_with(b"ok"))
    await refusing.start()
    await willing.start()
    try:
        route = to("up", retries={"on": [on], "attempts": 1})
        async with served(site(route), at(refusing.port, willing.port, protocol="h2c")) as proxy:
            statuses = {(await proxy.post(b"x")).status for _ in range(2)}
            assert statuses == {200, status}
    finally:
        await refusing.stop()
        await willing.stop()
