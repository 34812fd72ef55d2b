"""An API server that is away is found again soon and at little cost, and a kind's own trouble is no outage."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from fakes.kubernetes.api import FakeKubernetes
from fakes.kubernetes.following import Following
from fakes.kubernetes.objects import ingress, service
from fakes.virtual_time import in_virtual_time
from fakes.waiting import until
from headgate.common.resources import INGRESS, NAMESPACE, SECRET, SERVICE
from headgate.watcher.api.transport import KubernetesTransport
from headgate.watcher.sources.kubernetes.outages import Outages
from headgate.watcher.sources.kubernetes.source import KubernetesScope, KubernetesSource

KINDS = (INGRESS, SERVICE, NAMESPACE, SECRET)


class Watched(NamedTuple):
    api: FakeKubernetes
    seen: Following

    def lists(self) -> Counter[str]:
        return Counter(one.resource for one in self.api.seen("list"))

    async def break_down(self, how: str) -> None:
        if how == "stop":
            await self.api.stop()
        else:
            self.api.faults.status(500, times=None)
            self.api.drop_connections()

    async def mend(self, how: str) -> None:
        self.api.faults.clear()
        if how == "stop":
            await self.api.start()

    async def until_listed_anew(self, before: Counter[str], within_s: float) -> None:
        await until(lambda: all(self.lists()[kind.resource] > before[kind.resource] for kind in KINDS), within_s)


@asynccontextmanager
async def watched(tmp_path: Path, *namespaces: str) -> AsyncIterator[Watched]:
    """A cluster of which four kinds are watched."""
    async with FakeKubernetes() as api:
        config = api.write_kubeconfig(tmp_path / "config")
        choices = [(kind,) for kind in KINDS]
        source = KubernetesSource(KubernetesScope(namespaces), config, choices=choices, rng=Random(7))
        async with Following(source) as seen:
            await seen.until(lambda: all(seen.listed(kind) for kind in KINDS))
            yield Watched(api, seen)


@pytest.mark.parametrize("how", ["stop", "errors"])
@pytest.mark.parametrize("away_s", [1, 10, 200])
@in_virtual_time
async def test_however_long_a_server_was_away_it_is_listed_within_five_seconds(
    away_s: float, how: str, tmp_path: Path
) -> None:
    async with watched(tmp_path) as one:
        for _ in range(3):
            await one.break_down(how)
            await asyncio.sleep(away_s)
            before = one.lists()
            await one.mend(how)
            await one.until_listed_anew(before, within_s=5)


@in_virtual_time
async def test_a_server_that_fails_is_asked_by_one_request_at_a_time_and_seldom_for_a_list(tmp_path: Path) -> None:
    async with watched(tmp_path, *(f"team{number}" for number in range(20))) as one:
        await one.break_down("errors")
        await asyncio.sleep(60)  # each of the kinds has met it
        asked = len(one.api.requests)
        await asyncio.sleep(120)
        probes = [request.at for request in one.api.requests[asked:] if request.verb == "probe"]
        assert 120 / 4 < len(probes) < 120 / 1.4
        assert len(one.api.requests) - asked - len(probes) < 61 * 120 / 15 * 2


@in_virtual_time
async def test_kinds_that_waited_do_not_come_back_in_one_instant(tmp_path: Path) -> None:
    async with watched(tmp_path, *(f"team{number}" for number in range(20))) as one:
        await one.break_down("stop")
        await asyncio.sleep(60)
        before, asked = one.lists(), len(one.api.requests)
        await one.mend("stop")
        await one.until_listed_anew(before, within_s=5)
        await asyncio.sleep(1)
        times = [request.at for request in one.api.requests[asked:] if request.verb == "list"]
        assert len(times) >= 61
        assert max(Counter(round(at, 1) for at in times).values()) < 20


@pytest.mark.parametrize("code", [500, 503])
@in_virtual_time
async def test_a_kind_that_fails_while_the_server_is_well_is_asked_no_sooner_for_the_success_of_others(
    code: int, tmp_path: Path
) -> None:
    async with watched(tmp_path) as one:
        one.api.faults.status(code, resource="services", times=None)
        one.api.break_watches("end", "services")
        await asyncio.sleep(120)
        asked = len(one.api.seen(resource="services"))
        for number in range(200):
            one.api.apply(ingress(f"i{number % 10}", f"{number}.test"))
            await asyncio.sleep(3)
        assert 20 <= len(one.api.seen(resource="services")) - asked <= 100


@in_virtual_time
async def test_a_kind_that_fails_is_not_asked_in_a_loop_though_the_server_never_says_that_it_is_well(
    tmp_path: Path,
) -> None:
    async with watched(tmp_path) as one:
        one.api.faults.status(500, verb="probe", times=None)
        one.api.faults.status(500, resource="services", times=None)
        one.api.break_watches("end", "services")
        await asyncio.sleep(600)
        assert 20 <= len(one.api.seen(resource="services")) <= 100
        one.api.faults.clear()
        one.api.faults.status(500, verb="probe", times=None)
        one.api.apply(service("web"))
        await one.seen.until(lambda: one.seen.names(SERVICE) == {"web"}, within_s=35)


@in_virtual_time
async def test_a_server_that_asks_for_patience_gets_it_though_it_is_well(tmp_path: Path) -> None:
    async with watched(tmp_path) as one:
        one.api.faults.status(503, resource="services", retry_after=20, times=2)
        one.api.break_watches("end", "services")
        await one.seen.until(lambda: len(one.seen.listed(SERVICE)) == 2, within_s=45)
        assert one.api.seen("probe") == []


@in_virtual_time
async def test_storms_of_expired_versions_every_half_minute_are_over_within_five_seconds_each(tmp_path: Path) -> None:
    async with watched(tmp_path) as one:
        for number in range(12):
            for _ in range(13):
                one.api.compact()
                one.api.break_watches("end")
                await asyncio.sleep(0.3)
            one.api.apply(service(f"s{number}"))
            await one.seen.until(lambda number=number: f"s{number}" in one.seen.names(SERVICE), within_s=5.5)
            await asyncio.sleep(20)


@pytest.mark.parametrize("code", [401, 403, 404, 429])
@in_virtual_time
async def test_whoever_answers_is_there_whatever_it_says(code: int, tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        transport = KubernetesTransport(api.write_kubeconfig(tmp_path / "config"))
        api.faults.status(code, verb="probe")
        assert not await Outages(transport, Random(1)).outwait()
        assert len(api.requests) == 1
        await transport.close()


@in_virtual_time
async def test_a_server_that_hangs_is_away(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        transport = KubernetesTransport(api.write_kubeconfig(tmp_path / "config"))
        api.faults.hang(verb="probe", times=2)
        before = asyncio.get_running_loop().time()
        assert await Outages(transport, Random(1)).outwait()
        assert asyncio.get_running_loop().time() - before < 8
        await transport.close()


@in_virtual_time
async def test_many_who_ask_at_a_time_are_told_by_one_request(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        transport = KubernetesTransport(api.write_kubeconfig(tmp_path / "config"))
        outages = Outages(transport, Random(1))
        assert not any(await asyncio.gather(*(outages.outwait() for _ in range(50))))
        assert len(api.requests) == 1
        api.faults.status(500, verb="probe", times=3)
        await asyncio.sleep(1)
        assert all(await asyncio.gather(*(outages.outwait() for _ in range(50))))
        assert len(api.requests) == 5
        await transport.close()


@in_virtual_time
async def test_whoever_asks_for_all_may_leave(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        transport = KubernetesTransport(api.write_kubeconfig(tmp_path / "config"))
        outages = Outages(transport, Random(1))
        api.faults.status(500, verb="probe", times=3)
        first, second = asyncio.create_task(outages.outwait()), asyncio.create_task(outages.outwait())
        await asyncio.sleep(1)
        first.cancel()
        assert await second
        await transport.close()
