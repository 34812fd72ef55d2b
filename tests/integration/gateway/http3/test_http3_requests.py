"""Requests over HTTP/3 from an independent client to origins of HTTP/1.1, and what is told of them."""

import asyncio
import os

import pytest

from fakes.gateway.proxied import OK, Conversation, answering
from fakes.gateway.served import HOST, at, named, origins, served, site, to
from fakes.gateway.tls import unverified
from fakes.peers.http2 import http2_client, request
from fakes.peers.http3 import head_of, http3_client
from headgate.gateway.listeners.http3 import Http3Ports
from headgate.gateway.proxy.config import ProxyConfig

TRAILERS = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: x-sum\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 6\r\n\r\n"
GRPC = {"content_type": "application/grpc", "te": "trailers"}


async def test_a_request_passes_as_over_http2_and_is_logged_with_its_protocol() -> None:
    async with (
        origins(answering(named(b"one"))) as (origin,),
        served(at(origin.port), site(), http3=True) as proxy,
        http3_client(proxy.https_port) as client,
    ):
        answer = await client.ask("/path?query", x_own="value", cookie="a=1")
        assert (answer.status, answer.body, answer[b"server"]) == (200, b"one", b"headgate")
        head = origin.heads[0]
        assert head.startswith(b"GET /path?query HTTP/1.1\r\nHost: a.example\r\n")
        for line in (b"x-own: value", b"cookie: a=1", b"X-Forwarded-Proto: https", b"X-Forwarded-For: 127.0.0.1"):
            assert b"\r\n" + line + b"\r\n" in head
        assert b"X-Forwarded-Port: %d\r\n" % proxy.https_port in head
        assert b"transfer-encoding" not in head.lower()
        assert b"3.0" in proxy.log.records[0]


async def test_a_request_whose_end_comes_apart_from_its_head_has_no_body() -> None:
    async with (
        origins(answering(OK, OK)) as (origin,),
        served(at(origin.port), site(), http3=True) as proxy,
        http3_client(proxy.https_port) as client,
    ):
        stream_id = client.begin(head_of())
        assert (await client.ask("/other")).status == 200
        client.quic.send_stream_data(stream_id, b"", end_stream=True)
        client.transmit()
        assert (await client.answers[stream_id].until_over()).status == 200
        assert [head.split()[1] for head in origin.heads] == [b"/other", b"/"]
        assert b"transfer-encoding" not in origin.heads[1].lower()


@pytest.mark.parametrize("size", [0, 1, 5000, 3_000_000])
async def test_bodies_pass_both_ways(size: int) -> None:
    async def echo(conversation: Conversation) -> None:
        while True:
            _, body = await conversation.request()
            await conversation.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))

    body = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    async with (
        origins(echo) as (origin,),
        served(at(origin.port), site(), http3=True) as proxy,
        http3_client(proxy.https_port) as client,
    ):
        answer = await client.ask(body=body, content_length=size)
        assert (answer.status, answer.body == body) == (200, True)
        assert answer[b"content-length"] == b"%d" % size


async def test_many_requests_at_once_share_a_connection() -> None:
    async with (
        origins(answering(*[named(b"one")] * 300)) as (origin,),
        served(at(origin.port), site(), http3=True) as proxy,
        http3_client(proxy.https_port) as client,
    ):
        for _ in range(3):
            answers = await asyncio.gather(*(client.ask(f"/{number}") for number in range(60)))
            assert {answer.body for answer in answers} == {b"one"}
        assert proxy.server.connections == 1


async def test_trailers_pass_both_ways() -> None:
    came: list[bytes] = []

    async def chunked(conversation: Conversation) -> None:
        await conversation.head()
        came.append(await conversation.reader.readuntil(b"\r\n0\r\n"))
        came.append(await conversation.reader.readuntil(b"\r\n\r\n"))
        await conversation.send(TRAILERS)

    async with (
        origins(chunked) as (origin,),
        served(at(origin.port), site(), http3=True) as proxy,
        http3_client(proxy.https_port) as client,
    ):
        stream_id = client.begin(head_of(method="POST", **GRPC))
        client.send(stream_id, b"body")
        client.http.send_headers(stream_id, [(b"x-checked", b"yes")], end_stream=True)
        client.transmit()
        answer = await client.answers[stream_id].until_over()
        assert (answer.status, answer.body, answer.trailers) == (200, b"abc", {b"x-sum": b"6"})
        assert came == [b"4\r\nbody\r\n0\r\n", b"x-checked: yes\r\n\r\n"]


async def test_a_refused_grpc_call_is_told_in_a_head_of_grpc() -> None:
    async with served(site(), http3=True) as proxy, http3_client(proxy.https_port) as client:
        answer = await client.ask("/a.B/C", body=b"\0\0\0\0\0", **GRPC)
        assert answer.status == 200
        assert (answer[b"content-type"], answer[b"grpc-status"]) == (b"application/grpc", b"14")


async def test_head_has_no_body_and_informational_answers_pass() -> None:
    hint = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n"
    async with (
        origins(answering(hint + b"HTTP/1.1 200 OK\r\nX-Own: 1\r\n\r\n")) as (origin,),
        served(at(origin.port), site(), http3=True) as proxy,
        http3_client(proxy.https_port) as client,
    ):
        stream_id = client.begin(head_of(method="HEAD"), end=True)
        answer = await client.answers[stream_id].until_over()
        assert dict(answer.heads[0]) == {b":status": b"103", b"link": b"</a.css>"}
        assert (answer.status, answer.body, answer[b"x-own"]) == (200, b"", b"1")


async def test_a_websocket_opens_by_an_extended_connect() -> None:
    switched = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"

    async def switching(conversation: Conversation) -> None:
        await conversation.head()
        await conversation.send(switched)
        await conversation.send((await conversation.reader.readexactly(4))[::-1])

    async with (
        origins(switching) as (origin,),
        served(at(origin.port), site(), http3=True) as proxy,
        http3_client(proxy.https_port) as client,
    ):
        fields = [(b":protocol", b"websocket"), *head_of(method="CONNECT", sec_websocket_version="13")]
        stream_id = client.begin(fields)
        answer = client.answers[stream_id]
        await answer.until(lambda: answer.heads)
        client.send(stream_id, b"ping")
        await answer.until(lambda: answer.body == b"gnip")
        assert answer.status == 200
        assert origin.heads[0].startswith(b"GET / HTTP/1.1\r\n")


@pytest.mark.parametrize(
    ("status", "more"),
    [
        (404, {"host": "other.example"}),
        (413, {"body": b"x" * 101}),
        (413, {"body": b"", "content_length": 101}),
        (414, {"path": "/" + "x" * 200}),
        (431, {"x_long": "x" * 3000}),
        (431, {f"x_{number}": "" for number in range(40)}),
    ],
)
async def test_limits_and_missing_routes_are_answered_as_over_http2(status: int, more: dict[str, object]) -> None:
    config = ProxyConfig(max_body=100, max_target=150, max_head=2048, max_header_count=32)
    async with (
        origins(answering(OK)) as (origin,),
        served(at(origin.port), site(), config=config, http3=True) as proxy,
        http3_client(proxy.https_port) as client,
    ):
        assert (await client.ask(**more)).status == status  # type: ignore[arg-type]
        assert (await client.ask()).status == 200


@pytest.mark.parametrize(("method", "protocol"), [("TRACE", b""), ("CONNECT", b"connect-udp")])
async def test_methods_that_are_not_served_are_refused(method: str, protocol: bytes) -> None:
    async with served(site(), http3=True) as proxy, http3_client(proxy.https_port) as client:
        fields = [*([(b":protocol", protocol)] if protocol else []), *head_of(method=method)]
        answer = await client.answers[client.begin(fields, end=True)].until_over()
        assert answer.status == 405


async def test_clients_of_tls_are_offered_http3_and_plain_ones_are_not() -> None:
    async with (
        origins(answering(OK, OK, OK, OK)) as (origin,),
        served(at(origin.port), site(), http3=True) as proxy,
    ):
        offer = f'h3=":{proxy.https_port}"; ma=86400'
        assert (await proxy.secure())["alt-svc"] == offer
        tls = unverified()
        tls.set_alpn_protocols(["h2"])
        async with http2_client(proxy.https_port, tls=tls) as client:
            answer = await client.fetch(request(authority=HOST.encode()))
            assert answer.headers[b"alt-svc"].decode() == offer
        assert not (await proxy.get())["alt-svc"]
        async with http3_client(proxy.https_port) as other:
            assert not (await other.ask())[b"alt-svc"]


async def test_without_the_setting_nothing_is_offered_and_no_datagram_is_read() -> None:
    async with origins(answering(OK)) as (origin,), served(at(origin.port), site()) as proxy:
        assert not (await proxy.secure())["alt-svc"]
        async with http3_client(proxy.https_port, waits=False) as client:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await client.wait_connected()


async def test_connections_of_one_client_are_bounded_over_all_protocols() -> None:
    config = ProxyConfig(max_connections_per_client=1)
    async with (
        origins(answering(OK, OK)) as (origin,),
        served(at(origin.port), site(), config=config, http3=True) as proxy,
        http3_client(proxy.https_port) as client,
    ):
        assert (await client.ask()).status == 200
        async with http3_client(proxy.https_port) as second:
            assert (await second.until_closed()).error_code == 0x107
        refused = await proxy.connect()
        assert await refused.rest() == b""


async def test_a_route_is_found_by_host_and_path() -> None:
    async with (
        origins(answering(named(b"a")), answering(named(b"b"), named(b"b"))) as (a, b),
        served(
            at(a.port, key="a"),
            at(b.port, key="b"),
            site(to("a", path="/a"), to("b", path="/b")),
            site(to("b"), host="b.example"),
            http3=True,
        ) as proxy,
        http3_client(proxy.https_port) as client,
    ):
        assert (await client.ask("/a")).body == b"a"
        assert (await client.ask("/b")).body == b"b"
        assert (await client.ask("/c")).status == 404
        assert (await client.ask("/c", host="b.example")).body == b"b"


async def test_clients_of_both_families_are_served_on_one_socket() -> None:
    async with origins(answering(OK, OK)) as (origin,), served(at(origin.port), site()) as proxy:
        Http3Ports(proxy.certificates, 60).serve_own(proxy.server.https_port(), "::")
        for address in ("127.0.0.1", "::1"):
            async with http3_client(proxy.https_port, address=address) as client:
                assert (await client.ask()).status == 200
        told = [line for head in origin.heads for line in head.split(b"\r\n") if line.startswith(b"X-Forwarded-For")]
        assert told == [b"X-Forwarded-For: 127.0.0.1", b"X-Forwarded-For: ::1"]


@pytest.mark.parametrize("length", [8, 11, 18], ids="first id of {} bytes".format)
async def test_clients_without_connection_ids_are_served_as_browsers_are(length: int) -> None:
    """Their packets name the gateway's ids alone."""
    async with (
        origins(answering(*[named(b"one")] * 6)) as (origin,),
        served(at(origin.port), site(), http3=True) as proxy,
        http3_client(proxy.https_port, connection_id_length=0, first_id=os.urandom(length)) as client,
        http3_client(proxy.https_port, connection_id_length=0, first_id=os.urandom(8)) as other,
    ):
        assert client.retries == (length != 8)
        for each in (client, other, client):
            assert (await each.ask()).body == b"one"
        await client.move()
        assert (await client.ask()).body == b"one"
