"""Rollouts over a real NATS server, with gateways as processes under traffic and a translator at work."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from fakes.gateway.process import GatewayProcess
from fakes.gateway.served import closed_port
from fakes.gateway.served_history import History, served_history
from fakes.peers.echo import EchoServer
from fakes.peers.steady_client import SteadyClient
from fakes.translator.deltas import endpoint_slice, ingress, service
from headgate.common.snapshot import Manifest, Rollout, RolloutPhase

HOST = "a.example"


class Edge(NamedTuple):
    """A table that three gateways serve."""

    history: History
    gateways: dict[str, GatewayProcess]
    echoes: dict[str, EchoServer]

    def slice_of(self, name: str, echo: str) -> Any:
        """A Service's endpoint is an echo server; an unknown one answers nothing."""
        port = self.echoes[echo].port if echo in self.echoes else closed_port()
        return endpoint_slice(name, "127.0.0.1", port=port)

    async def until(self, is_reached: Any) -> Manifest:
        return await self.history.until(is_reached)

    async def begun(self, *manifests: Any) -> Rollout:
        """Change something that is rolled out, and wait until it is."""
        await self.history.say(*manifests)
        rollout = (await self.until(lambda found: found.rollout is not None)).rollout
        assert rollout is not None
        return rollout

    def others(self, rollout: Rollout) -> Sequence[GatewayProcess]:
        return [gateway for name, gateway in self.gateways.items() if name not in rollout.replicas]

    async def answers(self, gateway: GatewayProcess, name: str) -> None:
        """Wait until a backend answers through a gateway."""
        async with SteadyClient(gateway.http_port, HOST) as client:
            await client.wait_for_answer(name)


@asynccontextmanager
async def edge(folder: Path, window_s: float = 3600.0) -> AsyncIterator[Edge]:
    async with AsyncExitStack() as stack:
        echoes = {name: await stack.enter_async_context(EchoServer(name)) for name in ("old", "new", "other")}
        found = Edge(None, {}, echoes)  # type: ignore[arg-type]
        base = (
            *(service(name) for name in ("old", "new", "dead")),
            *(found.slice_of(name, name) for name in ("old", "new", "dead")),
            ingress("web", host=HOST, service="old"),
        )
        # Errors are what is compared here: on a busy machine one of three processes may well be the slow one.
        settings = {"rollout_shares": [30.0], "rollout_window_s": window_s, "rollout_latency_ms": 60_000.0}
        history = await stack.enter_async_context(served_history(*base, **settings))
        gateways = {}
        for name in ("g1", "g2", "g3"):
            gateway = GatewayProcess(folder / name, history.url, f"--instance={name}", "--access-log=off")
            gateways[name] = await stack.enter_async_context(gateway)
        for gateway in gateways.values():
            await gateway.ready()
        await history.until_heard_of(*gateways)
        yield Edge(history, gateways, echoes)


async def test_a_route_to_a_dead_service_is_taken_back_and_the_other_gateways_never_fail(tmp_path: Path) -> None:
    async with edge(tmp_path) as table, AsyncExitStack() as stack:
        clients = {
            name: await stack.enter_async_context(SteadyClient(gateway.http_port, HOST))
            for name, gateway in table.gateways.items()
        }
        rollout = await table.begun(ingress("web", host=HOST, service="dead"))
        [chosen] = rollout.replicas
        held = await table.until(lambda found: found.rollout and found.rollout.phase is RolloutPhase.HELD)
        assert held.rollout is not None
        assert held.rollout.reason.startswith("errors ")
        assert held.rollout.reason.endswith(f"({HOST}; {chosen} against 2 others)")
        await table.gateways[chosen].serves(str(held.version))
        await clients[chosen].wait_for_more(20)  # answers that were on their way
        failed = len(clients[chosen].failures)
        await clients[chosen].wait_for_more(50)
        assert 0 < failed == len(clients[chosen].failures)
        assert not [client.failures for name, client in clients.items() if name != chosen and client.failures]
        await told_everywhere(table, held.rollout)


async def told_everywhere(table: Edge, rollout: Rollout) -> None:
    ask = table.history.ask
    told = await table.history.until_status("ingress/default/web", "HeldBack")
    assert f"taken back with {rollout.target}: {rollout.reason}" in told
    assert f"back from {rollout.target} since" in (await ask("rollout")).out
    assert rollout.reason in (await ask("rollout")).out
    assert "HeldBack" in (await ask("status", code=None)).out  # the watcher of the log is long silent
    assert f"rollout-back {rollout.reason} by translator" in (await ask("history")).out
    assert "a/default/dead:80" in (await ask("diff", "HEAD", "next")).out


async def test_a_good_change_reaches_all_in_steps_without_a_failed_request(tmp_path: Path) -> None:
    async with edge(tmp_path, window_s=8.0) as table, AsyncExitStack() as stack:
        clients = {
            name: await stack.enter_async_context(SteadyClient(gateway.http_port, HOST))
            for name, gateway in table.gateways.items()
        }
        rollout = await table.begun(ingress("web", host=HOST, service="new"))
        await clients[rollout.replicas[0]].wait_for_answer("new")
        others = [client for name, client in clients.items() if name not in rollout.replicas]
        assert not any("new" in client.answers for client in others)
        done = await table.until(lambda found: found.rollout is None)
        assert "errors 0.0% of" in done.causes[0].note
        for client in others:
            await client.wait_for_answer("new")
        assert not [client.failures for client in clients.values() if client.failures]


async def test_endpoints_reach_all_gateways_at_once_and_a_person_ends_the_rollout(tmp_path: Path) -> None:
    async with edge(tmp_path) as table:
        rollout = await table.begun(ingress("web", host=HOST, service="new"))
        chosen = table.gateways[rollout.replicas[0]]
        await table.answers(chosen, "new")
        await table.history.say(table.slice_of("new", "other"))
        await table.answers(chosen, "other")
        await table.history.say(table.slice_of("old", "other"))
        for gateway in table.others(rollout):
            await table.answers(gateway, "other")
        assert (await table.history.ask("rollout", "--json")).json["rollout"]["phase"] == "stepping"
        assert "applied by 3 gateway workers" in (await table.history.ask("rollout", "promote", "--reason=ok")).out
        await table.history.say(table.slice_of("new", "new"))
        for gateway in table.gateways.values():
            await table.answers(gateway, "new")
        assert "nothing is rolled out" in (await table.history.ask("rollout")).out


async def test_a_chosen_gateway_that_is_killed_comes_back_with_what_it_served_and_its_end_is_noted(
    tmp_path: Path,
) -> None:
    async with edge(tmp_path) as table:
        rollout = await table.begun(ingress("web", host=HOST, service="new"))
        [chosen] = rollout.replicas
        await table.answers(table.gateways[chosen], "new")
        await table.history.until_counted(chosen)
        table.gateways[chosen].process.kill()
        await table.gateways[chosen].process.wait()
        again = GatewayProcess(tmp_path / chosen, table.history.url, f"--instance={chosen}", "--access-log=off")
        async with again:
            await again.ready()
            await table.answers(again, "new")
            found = await table.until(lambda manifest: manifest.rollout and manifest.rollout.ended)
            assert found.rollout is not None
            assert (found.rollout.ended, found.rollout.replicas) == ((chosen,), (chosen,))


@pytest.mark.parametrize("decision", ["promote", "back"])
async def test_where_nothing_is_rolled_out_there_is_nothing_to_decide(decision: str) -> None:
    async with served_history(service("old"), ingress("web", host=HOST, service="old")) as history:
        answer = await history.ask("rollout", decision, code=1)
        assert "nothing of table default is rolled out" in answer.err
        assert "belong to a decision" in (await history.ask("rollout", "--reason=x", code=2)).err
