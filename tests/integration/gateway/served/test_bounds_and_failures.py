"""Ejection, active checks, circuit breaker, retry budget and latency: what requests teach, and what is refused."""

import asyncio

import pytest

from fakes.gateway.proxied import OK, Conversation, Origin, answering
from fakes.gateway.served import HOST, asking, at, closed_port, named, origins, ports, read_answer, served, site, to
from fakes.peers.http2 import Http2Origin, answer_with, http2_client, request
from fakes.waiting import until
from headgate.common.table import Endpoint
from headgate.gateway.proxy.config import ProxyConfig

ERROR = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n"


def slowly(seconds: float, answer: bytes = OK):
    async def script(conversation: Conversation) -> None:
        while True:
            await conversation.request()
            await asyncio.sleep(seconds)
            await conversation.send(answer)

    return script


class Gate:
    """An origin's script that answers when it is told to."""

    def __init__(self) -> None:
        self.opened = asyncio.Event()
        self.waiting = 0

    async def __call__(self, conversation: Conversation) -> None:
        while True:
            await conversation.request()
            self.waiting += 1
            await self.opened.wait()
            await conversation.send(OK)
            self.waiting -= 1


async def test_endpoint_that_fails_in_a_row_is_left_out_and_comes_back() -> None:
    async with origins(answering(ERROR), answering(named(b"good"))) as servers:
        upstream = at(*ports(servers), ejection={"consecutive_errors": 2, "base_s": 2.0})
        async with served(site(), upstream) as proxy:
            statuses = [(await proxy.get()).status for _ in range(10)]
            assert statuses.count(500) == 2
            assert proxy.health.stats.ejections["up"] == 1
            await until(lambda: not proxy.health.stats.unavailable)
            assert 500 in [(await proxy.get()).status for _ in range(2)]


async def test_endpoint_that_refuses_connections_is_ejected_without_a_failed_request() -> None:
    async with origins(answering(named(b"good"))) as (good,):
        upstream = at(closed_port(), good.port, ejection={"consecutive_errors": 2, "base_s": 60})
        async with served(site(), upstream) as proxy:
            assert await proxy.bodies(8) == ["good"] * 8
            assert proxy.stats.retries == 2


async def test_last_endpoint_is_never_ejected() -> None:
    async with (
        origins(answering(ERROR)) as (bad,),
        served(site(), at(bad.port, ejection={"consecutive_errors": 1})) as proxy,
    ):
        assert [(await proxy.get()).status for _ in range(3)] == [500] * 3


async def test_endpoint_that_fails_its_check_gets_no_requests_until_it_passes() -> None:
    async def check_fails(conversation: Conversation) -> None:
        head, _ = await conversation.request()
        is_well = not head.startswith(b"GET /health") or sick.is_set() is False
        await conversation.send(named(b"sick") if is_well else ERROR)

    sick = asyncio.Event()
    sick.set()
    async with origins(check_fails, answering(named(b"well"))) as servers:
        check = {"path": "/health", "interval_s": 0.05, "unhealthy_after": 2, "healthy_after": 2}
        async with served(site(), at(*ports(servers), active_check=check)) as proxy:
            await until(lambda: proxy.health.stats.unavailable.get("up") == 1)
            assert await proxy.bodies(4) == ["well"] * 4
            sick.clear()
            await until(lambda: not proxy.health.stats.unavailable)
            assert "sick" in await proxy.bodies(4)


async def test_requests_beyond_the_bound_are_refused_at_once() -> None:
    gate = Gate()
    async with (
        origins(gate) as (origin,),
        served(site(), at(origin.port, circuit_breaker={"max_requests": 1})) as proxy,
    ):
        first = asyncio.create_task(proxy.get())
        await until(lambda: gate.waiting == 1)
        refused = await proxy.get()
        assert (refused.status, refused["x-headgate-reason"]) == (
            503,
            "circuit breaker of up: 1 requests are under way",
        )
        gate.opened.set()
        assert (await first).status == 200
        assert (await proxy.get()).status == 200


async def test_requests_queue_for_a_connection_in_their_order() -> None:
    gate = Gate()
    async with origins(gate) as (origin,):
        breaker = {"max_connections": 1, "max_pending": 2}
        async with served(site(), at(origin.port, circuit_breaker=breaker)) as proxy:
            tasks = []
            circuit = proxy.health.state("up").circuit
            assert circuit is not None
            for number in range(3):
                tasks.append(asyncio.create_task(proxy.get(f"/{number}")))
                await until(lambda queued=number: (gate.waiting, circuit.pending) == (1, queued))
            refused = await proxy.get("/4")
            assert refused["x-headgate-reason"] == "circuit breaker of up: 2 requests wait for one of 1 connections"
            gate.opened.set()
            assert [(await task).status for task in tasks] == [200] * 3
            assert [head.split()[1] for head in origin.heads] == [b"/0", b"/1", b"/2"]
            assert len(origin.conversations) == 1


async def test_queue_goes_on_when_the_connection_is_closed() -> None:
    async with (
        origins(answering(OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))) as (origin,),
        served(site(), at(origin.port, circuit_breaker={"max_connections": 1})) as proxy,
    ):
        answers = await asyncio.gather(*[proxy.get() for _ in range(5)])
        assert [answer.status for answer in answers] == [200] * 5


async def test_queue_goes_on_when_no_connection_can_be_made() -> None:
    async with served(site(), at(closed_port(), circuit_breaker={"max_connections": 1})) as proxy:
        answers = await asyncio.gather(*[proxy.get() for _ in range(5)])
        assert [answer.status for answer in answers] == [502] * 5
        circuit = proxy.health.state("up").circuit
        assert circuit is not None
        await until(lambda: (circuit.connections, circuit.requests, circuit.pending) == (0, 0, 0))


async def test_client_that_leaves_gives_its_place_in_the_queue_back() -> None:
    gate = Gate()
    async with origins(gate) as (origin,):
        breaker = {"max_connections": 1, "max_pending": 1}
        async with served(site(), at(origin.port, circuit_breaker=breaker)) as proxy:
            first = asyncio.create_task(proxy.get())
            await until(lambda: gate.waiting == 1)
            circuit = proxy.health.state("up").circuit
            assert circuit is not None
            leaving = await proxy.connect()
            await leaving.send(asking())
            await until(lambda: circuit.pending == 1)
            leaving.reset()
            await until(lambda: circuit.pending == 0)
            patient = asyncio.create_task(proxy.get())
            await until(lambda: circuit.pending == 1)
            gate.opened.set()
            assert [(await task).status for task in (first, patient)] == [200, 200]
            assert (circuit.requests, len(origin.heads)) == (0, 2)


async def test_client_that_leaves_while_its_request_is_under_way_frees_the_bound() -> None:
    gate = Gate()
    async with (
        origins(gate) as (origin,),
        served(site(), at(origin.port, circuit_breaker={"max_requests": 1, "max_connections": 1})) as proxy,
    ):
        client = await proxy.connect()
        await client.send(asking())
        await until(lambda: gate.waiting == 1)
        client.reset()
        circuit = proxy.health.state("up").circuit
        assert circuit is not None
        await until(lambda: (circuit.requests, circuit.connections) == (0, 0))
        gate.opened.set()
        assert (await proxy.get()).status == 200


async def test_waiting_for_a_connection_ends_with_the_time_of_the_request() -> None:
    gate = Gate()
    async with origins(gate) as (origin,):
        route = to("up", timeouts={"request_s": 0.3})
        upstream = at(origin.port, circuit_breaker={"max_connections": 1})
        async with served(
            site(to("up", path="/first"), route), upstream, config=ProxyConfig(lingering_s=0.04)
        ) as proxy:
            first = asyncio.create_task(proxy.get("/first"))
            await until(lambda: gate.waiting == 1)
            assert (await proxy.get()).status == 504
            gate.opened.set()
            assert (await first).status == 200


@pytest.mark.parametrize("breaker", [None, {"max_requests": 1000}])
async def test_retries_stop_when_their_budget_is_spent(breaker: dict[str, int] | None) -> None:
    gates = Gate(), Gate()

    async def fail(conversation: Conversation) -> None:
        await conversation.request()

    async with origins(fail, gates[0]) as (bad, slow):
        # Every request fails first, and its retry hangs: with few under way only the floor of three may.
        route = to("up", retries={"attempts": 1, "on": ["reset"], "budget": 0.2})
        upstream = at(
            Endpoint(address="127.0.0.1", port=bad.port, weight=100),
            Endpoint(address="127.0.0.1", port=slow.port),
            circuit_breaker=breaker,
        )
        async with served(site(route), upstream) as proxy:
            tasks = [asyncio.create_task(proxy.get()) for _ in range(8)]
            await until(lambda: sum(task.done() for task in tasks) == 5)
            assert gates[0].waiting <= 4
            assert proxy.health.stats.budget_rejections["up"] >= 4
            gates[0].opened.set()
            assert {(await task).status for task in tasks} == {200, 502}
            assert proxy.health.state("up").retries.under_way == 0


async def test_retries_after_refused_connections_draw_from_no_budget() -> None:
    gate = Gate()
    async with origins(gate) as (slow,):
        upstream = at(
            Endpoint(address="127.0.0.1", port=closed_port(), weight=100), Endpoint(address="127.0.0.1", port=slow.port)
        )
        async with served(site(to("up", retries={"attempts": 1, "on": ["connect"], "budget": 0.2})), upstream) as proxy:
            tasks = [asyncio.create_task(proxy.get()) for _ in range(8)]
            await until(lambda: gate.waiting == 8)
            gate.opened.set()
            assert {(await task).status for task in tasks} == {200}
            assert not proxy.health.stats.budget_rejections


async def test_a_service_all_of_whose_endpoints_refuse_is_asked_at_three_of_them_beyond_its_budget() -> None:
    gone = [Endpoint(address=f"127.0.0.{number}", port=closed_port()) for number in range(2, 8)]
    route = to("up", retries={"attempts": 5, "on": ["connect"], "budget": 0.2})
    async with served(site(route), at(*gone)) as proxy:
        answers = await asyncio.gather(*[proxy.get() for _ in range(60)])
        assert {answer.status for answer in answers} == {502}
        connects = sum(pool.connects for _, pool in proxy.pools.pools())
        assert 60 * 3 <= connects < 60 * 6
        assert proxy.health.stats.budget_rejections["up"]


async def test_answer_that_is_tried_again_leaves_nothing_behind_though_its_body_streams() -> None:
    async def endless(conversation: Conversation) -> None:
        await conversation.request()
        await conversation.send(b"HTTP/1.1 503 Service Unavailable\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nbad\r\n")
        await conversation.reader.read()
        hung_up.set()

    hung_up = asyncio.Event()
    async with origins(endless, answering(named(b"good"))) as servers:
        route = to("up", retries={"on": ["gateway-error"]})
        async with served(site(route), at(*ports(servers))) as proxy:
            assert await proxy.bodies(2) == ["good", "good"]
            await asyncio.wait_for(hung_up.wait(), 30)
            assert all(slot.active == 0 for slot in proxy.slots())


async def test_retry_that_has_nowhere_else_to_go_passes_the_error_on() -> None:
    async with origins(answering(ERROR)) as (bad,):
        route = to("up", retries={"on": ["status"], "statuses": [500], "attempts": 2})
        async with served(site(route), at(bad.port)) as proxy:
            assert (await proxy.get()).status == 500
            assert len(bad.heads) == 3


async def test_latency_of_answers_decides_who_gets_more() -> None:
    async with origins(slowly(0.05, named(b"slow")), answering(named(b"fast"))) as servers:
        upstream = at(*ports(servers), balancing={"policy": "peak-ewma"})
        async with served(site(), upstream) as proxy:
            await proxy.bodies(4)
            assert (await proxy.bodies(20)).count("fast") > 15
            latency = proxy.slot(servers[0].port).latency
            assert latency is not None


async def test_connection_is_kept_between_requests_of_different_clients() -> None:
    async with (
        origins(answering(OK)) as (origin,),
        served(site(), at(origin.port, circuit_breaker={"max_connections": 5})) as proxy,
    ):
        client = await proxy.connect()
        for _ in range(3):
            await client.send(asking())
            await read_answer(client)
        await proxy.get()
        assert len(origin.conversations) == 1
        assert isinstance(origin, Origin)


async def test_connection_that_rests_makes_room_for_one_to_another_endpoint() -> None:
    async with (
        origins(answering(named(b"1")), answering(named(b"2"))) as servers,
        served(site(), at(*ports(servers), circuit_breaker={"max_connections": 1})) as proxy,
    ):
        assert sorted(await proxy.bodies(4)) == ["1", "1", "2", "2"]
        circuit = proxy.health.state("up").circuit
        assert circuit is not None
        assert circuit.connections == 1


async def test_http2_connection_that_rests_makes_room_for_one_to_another_endpoint() -> None:
    servers = [Http2Origin(answer_with(name)) for name in (b"one", b"two")]
    for server in servers:
        await server.start()
    try:
        upstream = at(*(server.port for server in servers), protocol="h2c", circuit_breaker={"max_connections": 1})
        async with served(site(), upstream) as proxy:
            assert sorted(await proxy.bodies(6)) == ["one"] * 3 + ["two"] * 3
    finally:
        for server in servers:
            await server.stop()


async def test_client_that_leaves_before_its_connection_is_begun_frees_the_bound() -> None:
    async with (
        origins(answering(OK)) as (origin,),
        served(site(), at(origin.port, circuit_breaker={"max_connections": 1})) as proxy,
        http2_client(proxy.port) as client,
    ):
        stream_id = client.h2.get_next_available_stream_id()
        client.h2.send_headers(stream_id, request(authority=HOST.encode()), end_stream=True)
        client.h2.reset_stream(stream_id)
        client.flush()
        assert (await client.fetch(request(authority=HOST.encode()))).status == 200
