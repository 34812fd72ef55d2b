"""How requests and answers are exchanged with endpoints by `proxy-*` (`test/e2e/annotations/proxy.go`), and mirrors."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator

import pytest

from fakes.gateway.proxied import Conversation, answering
from fakes.gateway.served import asking, named, read_answer
from fakes.translator.applied import World, world
from fakes.translator.deltas import endpoint_slice, service
from fakes.translator.nginx import ADOPTED, NGINX_CLASS, classed, options
from fakes.waiting import until

SHORT = {f"proxy_{each}_timeout": "1" for each in ("connect", "send", "read")}
ONCE = {"proxy_next_upstream": "off"}


@pytest.fixture
async def one() -> AsyncIterator[World]:
    """A proxy before a Service `one`, which has adopted the class of ingress-nginx."""
    async with world("one", settings=ADOPTED) as made:
        made.proxy.apply(NGINX_CLASS)
        yield made


async def deaf(conversation: Conversation) -> None:
    """Read nothing but the head, and say nothing."""
    await conversation.head()
    await asyncio.Event().wait()


# Timeouts


@pytest.mark.parametrize("times", [("50", "20", "20"), ("50k", "20k", "20k"), ("0.5", "-1", "1 s")])
async def test_times_are_seconds_and_others_are_ignored(one: World, times: tuple[str, str, str]) -> None:
    named_times = zip(("proxy_connect_timeout", "proxy_send_timeout", "proxy_read_timeout"), times, strict=True)
    manifest = classed(**dict(named_times))
    one.proxy.apply(manifest)
    assert await one.proxy.bodies(1) == ["one"]
    assert one.proxy.errors(manifest) == []
    assert len(one.proxy.problems(manifest)) == (0 if times[0] == "50" else 3)


@pytest.mark.parametrize("body", [None, b"x" * (32 << 20)])
async def test_an_endpoint_that_neither_answers_nor_reads_is_a_504(body: bytes | None) -> None:
    async with world(one=deaf, settings=ADOPTED) as made:
        made.proxy.apply(NGINX_CLASS, classed(proxy_body_size="0", **SHORT, **ONCE))
        started = time.monotonic()
        client = await made.proxy.proxy.connect()
        sending = asyncio.create_task(client.send(asking(method="POST", body=body) if body else asking()))
        assert (await read_answer(client)).status == 504
        assert 0.9 < time.monotonic() - started < 10
        sending.cancel()


async def test_an_endpoint_that_takes_no_connection_is_a_504(one: World) -> None:
    with socket.socket() as full, socket.socket() as first, socket.socket() as second:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        address = full.getsockname()
        for each in (first, second):
            each.setblocking(False)
            each.connect_ex(address)
        one.proxy.apply(service("full"), endpoint_slice("full", "127.0.0.1", port=address[1]))
        one.proxy.apply(classed(to="full", **SHORT, **ONCE))
        started = time.monotonic()
        assert await one.proxy.status() == 504
        assert 0.9 < time.monotonic() - started < 10


# Buffers


@pytest.mark.parametrize(("value", "is_read_first"), [("on", True), ("off", False)])
async def test_a_body_may_be_read_before_the_endpoint_is_asked(one: World, value: str, is_read_first: bool) -> None:
    one.proxy.apply(classed(proxy_request_buffering=value))
    client = await one.proxy.proxy.connect()
    request = asking(method="POST", body=b"x" * 100)
    await client.send(request[:-1])
    await asyncio.sleep(0.1) if is_read_first else await until(lambda: one.servers["one"].heads)
    assert bool(one.servers["one"].heads) is not is_read_first
    await client.send(request[-1:])
    assert (await read_answer(client)).body == b"one"


async def test_an_answer_is_taken_before_the_client_reads_it_whatever_the_buffers() -> None:
    size, is_taken = 12 << 20, asyncio.Event()

    async def large(conversation: Conversation) -> None:
        await conversation.request()
        conversation.writer.transport.set_write_buffer_limits(0)
        await conversation.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        await conversation.send(b"x" * size)
        is_taken.set()

    buffers = {
        "proxy_max_temp_file_size": "16m",
        "proxy_buffers_number": "8",
        "proxy_buffer_size": "8k",
        "proxy_busy_buffers_size": "16k",
    }
    async with world(one=large, settings=ADOPTED) as made:
        made.proxy.apply(NGINX_CLASS, classed(proxy_buffering="on", **buffers))
        client = await made.proxy.proxy.connect()
        await client.send(asking())
        await asyncio.wait_for(is_taken.wait(), 10)
        assert len((await read_answer(client)).body) == size


async def test_endpoints_are_asked_by_http_1_1_whatever_is_said(one: World) -> None:
    manifest = classed(proxy_http_version="1.0")
    one.proxy.apply(manifest)
    assert await one.proxy.bodies(1) == ["one"]
    assert one.servers["one"].heads[-1].startswith(b"GET / HTTP/1.1\r\n")
    assert one.proxy.errors(manifest) == []


async def test_hints_to_load_go_to_the_client_and_nothing_is_pushed() -> None:
    link = "</style.css>; as=style; rel=preload"
    answer = named(b"one").replace(b"\r\n", f"\r\nLink: {link}\r\n".encode(), 1)
    async with world(one=answering(answer), settings=ADOPTED) as made:
        made.proxy.apply(NGINX_CLASS, classed(http2_push_preload="true"))
        assert (await made.proxy.get())["link"] == link
        assert len(made.servers["one"].heads) == 1


# Further endpoints


async def test_further_endpoints_are_asked_for_a_status_that_is_named() -> None:
    bad = named(b"bad").replace(b"200 OK", b"502 Bad Gateway")
    rules = {
        "proxy_next_upstream": "error timeout http_502",
        "proxy_next_upstream_timeout": "999999",
        "proxy_next_upstream_tries": "888888",
    }
    async with world(a=answering(bad), b=answering(named(b"good")), settings=ADOPTED) as made:
        slices = [endpoint_slice("all", "127.0.0.1", name=name, port=made.port(name)) for name in "ab"]
        made.proxy.apply(NGINX_CLASS, service("all"), *slices, classed(to="all", **rules))
        assert set(await made.proxy.bodies(4)) == {"good"}
        made.proxy.apply(classed(to="all", proxy_next_upstream="error timeout"))
        assert set(await made.proxy.bodies(4)) == {"good", "bad"}
        made.proxy.apply(classed(to="all"), options(**rules))
        assert set(await made.proxy.bodies(4)) == {"good"}


# Mirrors


@pytest.mark.parametrize(
    ("target", "body", "asked"),
    [
        ("/mirror", "on", "POST /mirror?a=b"),
        ("/mirror", "off", "POST /mirror?a=b"),
        ("/$request_uri", "on", "POST /x?a=b"),
        ("/base$request_uri", "on", "POST /base/x?a=b"),
        ("$request_uri", "off", "POST /x?a=b"),
    ],
)
async def test_a_mirror_gets_the_request_with_or_without_its_body(target: str, body: str, asked: str) -> None:
    got: list[tuple[bytes, bytes]] = []

    async def shadow(conversation: Conversation) -> None:
        got.append(await conversation.request())
        await conversation.send(named(b"shadow"))

    async with world("one", shadow=shadow, settings=ADOPTED) as made:
        url = f"http://127.0.0.1:{made.port('shadow')}{target}"
        made.proxy.apply(NGINX_CLASS, classed(mirror_target=url, mirror_request_body=body))
        assert (await made.proxy.post(b"abc", "/x?a=b")).body == b"one"
        await until(lambda: got)
        ((head, sent),) = got
        assert head.decode().split(" HTTP/")[0] == asked
        assert sent == (b"abc" if body == "on" else b"")
