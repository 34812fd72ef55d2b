"""What the end-to-end tests of ingress-nginx say of times, sizes, retries, limits and lists of addresses.

Files there: `test/e2e/annotations/proxy.go`, `ipallowlist.go`, `ipdenylist.go`, `limitconnections.go`, `limitrate.go`,
`mirror.go`, `connection.go`, `disableaccesslog.go`.
"""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from fakes.gateway.proxied import Conversation
from fakes.gateway.served import asking, read_answer
from fakes.translator.applied import World, switching, world
from fakes.translator.deltas import endpoint_slice, service
from fakes.translator.nginx import nginx_ingress
from fakes.waiting import until


@pytest.fixture
async def one() -> AsyncIterator[World]:
    """A proxy before a Service `one`."""
    async with world("one") as made:
        yield made


async def silent(conversation: Conversation) -> None:
    await conversation.request()
    await asyncio.Event().wait()


async def hanging_up(conversation: Conversation) -> None:
    await conversation.request()


# Sizes


async def test_bodies_have_one_megabyte_by_default(one: World) -> None:
    one.proxy.apply(nginx_ingress(enable_cors="false"))
    assert (await one.proxy.post(b"x" * ((1 << 20) + 1))).status == 413
    assert (await one.proxy.post(b"x" * 1000)).status == 200


@pytest.mark.parametrize(
    ("size", "body", "status"),
    [("8", 9, 413), ("8", 8, 200), ("0", 1 << 21, 200), ("8m", 8 << 20, 200), ("8m", (8 << 20) + 1, 413),
     ("15r", 9, 200), ("15r", (1 << 20) + 1, 413)],
)  # fmt: skip
async def test_proxy_body_size(one: World, size: str, body: int, status: int) -> None:
    one.proxy.apply(nginx_ingress(proxy_body_size=size))
    assert (await one.proxy.post(b"x" * body)).status == status


# Times


async def test_proxy_read_timeout() -> None:
    async with world(one=silent) as made:
        made.proxy.apply(nginx_ingress(proxy_read_timeout="1", proxy_next_upstream="off"))
        started = time.monotonic()
        assert await made.proxy.status() == 504
        assert 0.9 < time.monotonic() - started < 10


async def test_times_with_units_are_ignored_with_a_warning(one: World) -> None:
    made = nginx_ingress(proxy_read_timeout="50s", proxy_send_timeout="20k", proxy_connect_timeout="x")
    one.proxy.apply(made)
    assert await one.proxy.status() == 200
    assert one.proxy.errors(made) == []
    assert len(one.proxy.problems(made)) == 3


# Retries


@pytest.mark.parametrize(
    ("annotations", "attempts"),
    [({}, 2), ({"proxy_next_upstream_tries": "1"}, 1), ({"proxy_next_upstream": "off"}, 1),
     ({"proxy_next_upstream_tries": "2"}, 2), ({"proxy_next_upstream": "http_503"}, 1),
     ({"proxy_next_upstream_tries": "0"}, 3)],
)  # fmt: skip
async def test_next_upstream(annotations: dict[str, str], attempts: int) -> None:
    async with world(a=hanging_up, b=hanging_up, c=hanging_up) as made:
        slices = [endpoint_slice("all", "127.0.0.1", name=name, port=made.port(name)) for name in "abc"]
        made.proxy.apply(service("all"), *slices, nginx_ingress(to="all", **annotations or {"enable_cors": "false"}))
        assert await made.proxy.status() == 502
        asked = sum(len(server.heads) for server in made.servers.values())
        assert asked == attempts or (attempts == 3 and asked > 3)


# Connections


@pytest.mark.parametrize(("value", "connections"), [("close", 3), ("keep-alive", 1)])
async def test_connections_are_kept_as_is_said_and_told_so(one: World, value: str, connections: int) -> None:
    one.proxy.apply(nginx_ingress(connection_proxy_header=value))
    for body in (b"", b"", b"body"):
        assert (await one.proxy.post(body)).status == 200
    assert len(one.servers["one"].conversations) == connections
    for head in one.servers["one"].heads:
        assert head.lower().count(b"\r\nconnection:") == 1
        assert f"\r\nConnection: {value}\r\n".encode() in head


async def test_a_websocket_is_opened_though_connections_are_kept() -> None:
    async with world(one=switching) as made:
        made.proxy.apply(nginx_ingress(connection_proxy_header="keep-alive"))
        client = await made.proxy.offer_websocket()
        assert (await client.head()).startswith(b"HTTP/1.1 101 ")
        assert b"\r\nConnection: Upgrade\r\n" in made.servers["one"].heads[-1]


async def test_another_connection_header_drops_the_ingress(one: World) -> None:
    broken = nginx_ingress(connection_proxy_header="upgrade")
    one.proxy.apply(broken)
    assert await one.proxy.status() == 404
    assert one.proxy.errors(broken) == ["InvalidAnnotation"]


# Lists of addresses


@pytest.mark.parametrize("name", ["allowlist_source_range", "whitelist_source_range"])
async def test_only_listed_addresses_may_come(one: World, name: str) -> None:
    one.proxy.apply(nginx_ingress(**{name: "18.0.0.0/8, 56.0.0.0/8"}))
    assert await one.proxy.status() == 403
    one.proxy.apply(nginx_ingress(**{name: "18.0.0.0/8,127.0.0.1"}))
    assert await one.proxy.status() == 200


async def test_denied_addresses_may_not_come_whatever_is_allowed(one: World) -> None:
    one.proxy.apply(nginx_ingress(denylist_source_range="127.0.0.0/8"))
    assert await one.proxy.status() == 403
    one.proxy.apply(nginx_ingress(denylist_source_range="18.0.0.0/8"))
    assert await one.proxy.status() == 200
    one.proxy.apply(nginx_ingress(denylist_source_range="127.0.0.1", allowlist_source_range="127.0.0.0/8"))
    assert await one.proxy.status() == 403


@pytest.mark.parametrize("written", ["10.0.0.0/33", "a.example", "127.0.0.1;"])
async def test_a_list_that_cannot_be_read_lets_nobody_in(one: World, written: str) -> None:
    broken = nginx_ingress(allowlist_source_range=written)
    one.proxy.apply(broken)
    assert await one.proxy.status() == 503
    assert one.proxy.errors(broken) == ["InvalidAnnotation"]


# Limits


async def test_limit_rps_lets_its_burst_come_and_refuses_more_with_503(one: World) -> None:
    one.proxy.apply(nginx_ingress(limit_rps="1", limit_burst_multiplier="3"))
    statuses = [await one.proxy.status() for _ in range(8)]
    assert statuses[:4] == [200] * 4
    assert statuses[-1] == 503


async def test_the_burst_is_five_times_the_limit_by_default(one: World) -> None:
    one.proxy.apply(nginx_ingress(limit_rpm="1"))
    assert [await one.proxy.status() for _ in range(7)] == [200] * 6 + [503]


async def test_both_rates_hold(one: World) -> None:
    one.proxy.apply(nginx_ingress(limit_rps="1000", limit_rpm="1", limit_burst_multiplier="1"))
    assert [await one.proxy.status() for _ in range(3)] == [200, 200, 503]
    one.proxy.apply(nginx_ingress("other", path="/o", limit_rps="1", limit_rpm="6000", limit_burst_multiplier="1"))
    assert [await one.proxy.status("/o") for _ in range(3)] == [200, 200, 503]


async def test_listed_clients_are_not_limited(one: World) -> None:
    one.proxy.apply(nginx_ingress(limit_rpm="1", limit_burst_multiplier="1", limit_whitelist="127.0.0.0/8"))
    assert [await one.proxy.status() for _ in range(5)] == [200] * 5


async def test_a_limit_that_cannot_be_read_drops_the_ingress(one: World) -> None:
    broken = nginx_ingress(limit_rps="ten")
    one.proxy.apply(broken)
    assert await one.proxy.status() == 404
    assert one.proxy.errors(broken) == ["InvalidAnnotation"]


@pytest.mark.parametrize(("limit", "requests"), [(2, 3), (8, 20)])
async def test_limit_connections(limit: int, requests: int) -> None:
    release = asyncio.Event()

    async def slow(conversation: Conversation) -> None:
        await conversation.request()
        await release.wait()
        await conversation.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    async with world(one=slow) as made:
        made.proxy.apply(nginx_ingress())
        made.proxy.apply(nginx_ingress(limit_connections=str(limit)))
        waiting = [asyncio.create_task(made.proxy.status()) for _ in range(requests)]
        await until(lambda: sum(task.done() for task in waiting) == requests - limit)
        assert len(made.servers["one"].heads) == limit
        release.set()
        assert sorted(await asyncio.gather(*waiting)) == [200] * limit + [503] * (requests - limit)
        assert await made.proxy.status() == 200


async def test_limit_rate_slows_answers() -> None:
    async def large(conversation: Conversation) -> None:
        await conversation.request()
        await conversation.send(b"HTTP/1.1 200 OK\r\nContent-Length: 307200\r\n\r\n" + b"x" * 307200)

    async with world(one=large) as made:
        made.proxy.apply(nginx_ingress(proxy_buffering="on", limit_rate="100", limit_rate_after="100"))
        started = time.monotonic()
        assert (await made.proxy.get()).body == b"x" * 307200
        assert time.monotonic() - started > 0.5
        made.proxy.apply(nginx_ingress(proxy_buffering="on", limit_rate="1"))
        client = await made.proxy.proxy.connect()
        await client.send(asking())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(read_answer(client), 0.5)
        made.proxy.apply(nginx_ingress(proxy_buffering="on", limit_rate="9000"))
        assert (await made.proxy.get()).body == b"x" * 307200


# Mirrors


async def test_a_mirror_gets_a_copy_at_the_path_of_its_url() -> None:
    async with world("one", "shadow") as made:
        target = f"http://127.0.0.1:{made.port('shadow')}"
        made.proxy.apply(nginx_ingress(mirror_target=f"{target}/mirror"))
        assert (await made.proxy.post(b"abc", "/x?a=b")).body == b"one"
        await until(lambda: made.servers["shadow"].heads)
        assert made.servers["shadow"].heads[0].startswith(b"POST /mirror")


async def test_a_mirror_with_the_request_uri_gets_the_same_path() -> None:
    async with world("one", "shadow") as made:
        target = f"http://127.0.0.1:{made.port('shadow')}"
        made.proxy.apply(nginx_ingress(mirror_target=f"{target}$request_uri", mirror_host="shadow.example"))
        await made.proxy.get("/x?a=b")
        await until(lambda: made.servers["shadow"].heads)
        head = made.servers["shadow"].heads[0]
        assert head.startswith(b"GET /x?a=b HTTP/1.1")
        assert b"\r\nHost: shadow.example\r\n" in head
