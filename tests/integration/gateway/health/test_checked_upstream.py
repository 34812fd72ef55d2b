"""Checks of a whole upstream over real sockets, as the worker runs them."""

import asyncio
import tracemalloc

import uvloop

from fakes.peers.echo import EchoServer
from fakes.waiting import until
from headgate.common.table import ActiveCheck, BackendProtocol, Ejection
from headgate.gateway.health.policies import HealthPolicies
from headgate.gateway.health.stats import HealthStats
from headgate.gateway.health.upstreams import UpstreamHealth
from headgate.gateway.model.steps import finish

CHECK = ActiveCheck(interval_s=0.05, timeout_s=1, healthy_after=2, unhealthy_after=2)


class FakeSlot:
    pool = None

    def __init__(self, port: int, address: str = "127.0.0.1") -> None:
        self.key = (address, port, BackendProtocol.HTTP)


async def follow_an_endpoint_that_dies_and_returns() -> None:
    health, heard = UpstreamHealth(HealthStats()), list[tuple[int, bool]]()
    async with EchoServer("steady") as steady:
        dying = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
        port = dying.sockets[0].getsockname()[1]
        dying.close()
        slots = [FakeSlot(steady.port), FakeSlot(port)]
        finish(health.adopt("up", HealthPolicies(CHECK), slots, lambda slot, is_up: heard.append((slot.key[1], is_up))))
        await until(lambda: heard == [(port, False)])
        assert health.state("up").unavailable == {slots[1]}

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            writer.close()

        revived = await asyncio.start_server(answer, "127.0.0.1", port)
        await until(lambda: heard[-1] == (port, True))
        assert not health.state("up").unavailable
        assert steady.requests > 2
        revived.close()
    await health.close()
    await until(lambda: len(asyncio.all_tasks()) == 1)


def test_an_endpoint_that_dies_and_returns_is_noticed_on_the_standard_loop() -> None:
    asyncio.run(follow_an_endpoint_that_dies_and_returns())


def test_an_endpoint_that_dies_and_returns_is_noticed_on_uvloop() -> None:
    uvloop.run(follow_an_endpoint_that_dies_and_returns())


async def test_an_ejected_endpoint_comes_back_by_itself() -> None:
    health, heard, slot = UpstreamHealth(HealthStats()), list[bool](), FakeSlot(1)
    policies = HealthPolicies(ejection=Ejection(consecutive_errors=1, base_s=0.05))
    finish(health.adopt("up", policies, [slot, FakeSlot(2)], lambda slot, is_up: heard.append(is_up)))
    health.state("up").report(slot, "connect")
    assert heard == [False]
    await until(lambda: heard == [False, True])
    await health.close()


async def test_a_plain_upstream_has_no_state_until_somebody_asks() -> None:
    health = UpstreamHealth(HealthStats())
    finish(health.adopt("up", HealthPolicies(), [FakeSlot(1)], lambda slot, is_up: None))
    assert len(health) == 0
    assert health.state("up") is health.state("up")
    health.forget("up")
    health.forget("never there")
    assert len(health) == 0
    await health.close()


async def test_endpoints_that_rest_cost_no_task_and_under_two_kilobytes() -> None:
    health, check = UpstreamHealth(HealthStats()), ActiveCheck(interval_s=3600)
    slots = [FakeSlot(80, f"10.{n // 10000}.{n // 100 % 100}.{n % 100}") for n in range(20_000)]
    tracemalloc.start()
    for number in range(200):
        members = slots[number * 100 : number * 100 + 100]
        finish(health.adopt(f"up{number}", HealthPolicies(check), members, lambda slot, is_up: None))
    per_endpoint = tracemalloc.get_traced_memory()[0] / len(slots)
    tracemalloc.stop()
    assert len(asyncio.all_tasks()) == 1
    assert per_endpoint < 2048
    await health.close()
