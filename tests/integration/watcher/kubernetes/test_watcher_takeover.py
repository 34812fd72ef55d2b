"""A pair of watchers as processes between an API server and NATS: killed, stopped, asked to end."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fakes.kubernetes.api import ApiFault, FakeKubernetes
from fakes.kubernetes.objects import ingress, service
from fakes.service_process import running_service
from fakes.stores.nats import real_bus
from fakes.waiting import until
from headgate.common.deltas import ClusterAnnouncement, Delta, Operation
from headgate.common.resources import ObjectRef
from headgate.common.sealing import load_or_create_key_pair
from headgate.common.service.tasks import cancel
from headgate.common.status import EventNote, LoadBalancerAddress, StatusUpdate
from headgate.common.stores import LogReplay
from headgate.common.stores.nats import NatsStores

LEASE = "headgate-watcher-east"
FAST = ("--lease-duration-s=3", "--lease-renew-deadline-s=2.5", "--lease-retry-s=0.3")


class Pair:
    """Two watchers of one cluster, and what a translator hears of them."""

    def __init__(self, api: FakeKubernetes, stores: NatsStores, spawn: Any) -> None:
        self.api = api
        self.stores = stores
        self._spawn = spawn
        self.processes: dict[str, asyncio.subprocess.Process] = {}
        self.heard: list[Delta] = []
        self.announced: list[str] = []

    async def start(self, name: str) -> None:
        """Start a watcher under a name."""
        self.processes[name] = await self._spawn(name)

    async def follow(self) -> None:
        async for batch in self.stores.log_reader.follow():
            for message in () if isinstance(batch, LogReplay) else batch:
                if isinstance(message, Delta):
                    self.heard.append(message)
                elif isinstance(message, ClusterAnnouncement):
                    self.announced.append(message.instance)

    @property
    def leader(self) -> str:
        try:
            return str(self.api.get("leases", LEASE, "default")["spec"]["holderIdentity"])
        except ApiFault:
            return ""

    def said(self, resource: str = "services") -> list[tuple[str, str]]:
        """What was said of the objects of a kind, in order: operation and name."""
        return [(delta.operation.value, delta.ref.name) for delta in self.heard if delta.ref.resource == resource]

    def present(self, resource: str = "services") -> set[str]:
        last = {delta.ref: delta for delta in self.heard if delta.ref.resource == resource}
        return {ref.name for ref, delta in last.items() if delta.operation is Operation.APPLY}

    async def until_led_by_another(self, than: str = "") -> str:
        await until(lambda: self.leader not in ("", than))
        return self.leader


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[Pair]:
    """Two watchers, of which one has published a Service."""
    load_or_create_key_pair(tmp_path / "data")
    async with FakeKubernetes() as api, real_bus() as (server, bus), AsyncExitStack() as stack:
        config = api.write_kubeconfig(tmp_path / "config")
        flags = (f"--kubeconfig={config}", "--cluster=east", f"--nats-url={server.url}", *FAST)

        async def spawn(name: str) -> asyncio.subprocess.Process:
            own = (f"--data-dir={tmp_path / 'data'}", f"--instance={name}")
            return await stack.enter_async_context(
                running_service("watcher", *flags, *own, log=tmp_path / f"{name}.log")
            )

        both = Pair(api, await NatsStores.open(bus), spawn)
        following = asyncio.create_task(both.follow())
        stack.push_async_callback(cancel, following)
        api.apply(service("web"))
        for name in ("one", "other"):
            await both.start(name)
        await until(lambda: both.present() == {"web"})
        await asyncio.sleep(1.0)  # the other one has listed by now, or lists when it takes over
        yield both


async def test_one_of_two_publishes(pair: Pair) -> None:
    pair.api.apply(service("new"))
    await until(lambda: pair.present() == {"web", "new"})
    assert pair.said() == [("apply", "web"), ("apply", "new")]
    assert set(pair.announced) == {pair.leader}


async def test_a_killed_watcher_is_replaced_and_nothing_is_said_twice(pair: Pair) -> None:
    leader = pair.leader
    pair.processes[leader].kill()
    pair.api.apply(service("new"))
    pair.api.delete("services", "web")
    await pair.until_led_by_another(leader)
    await until(lambda: pair.present() == {"new"})
    pair.api.apply(service("newer"))
    await until(lambda: pair.present() == {"new", "newer"})
    assert sorted(pair.said()) == [("apply", "new"), ("apply", "newer"), ("apply", "web"), ("delete", "web")]
    assert pair.announced[-1] == pair.leader


async def test_one_that_is_asked_to_end_gives_the_lease_back(pair: Pair) -> None:
    leader = pair.leader
    pair.processes[leader].terminate()
    assert await pair.processes[leader].wait() == 0
    assert pair.api.get("leases", LEASE, "default")["spec"]["holderIdentity"] != leader
    await pair.until_led_by_another(leader)
    pair.api.apply(service("new"))
    await until(lambda: pair.present() == {"web", "new"})


async def test_one_that_stood_still_does_no_harm_when_it_goes_on(pair: Pair) -> None:
    leader = pair.leader
    stopped = pair.processes[leader]
    stopped.send_signal(signal.SIGSTOP)
    pair.api.apply(service("new"))
    await pair.until_led_by_another(leader)
    await until(lambda: pair.present() == {"web", "new"})
    pair.api.delete("services", "web")
    await until(lambda: pair.present() == {"new"})
    stopped.send_signal(signal.SIGCONT)
    pair.api.apply(service("newer"))
    await until(lambda: pair.present() == {"new", "newer"})
    await asyncio.sleep(1.0)
    assert pair.said() == [("apply", "web"), ("apply", "new"), ("delete", "web"), ("apply", "newer")]
    assert stopped.returncode is None
    assert pair.leader != leader


async def test_statuses_and_events_are_written_by_one(pair: Pair) -> None:
    made = pair.api.apply(ingress("shop"))
    update = StatusUpdate(
        ref=ObjectRef("east", "networking.k8s.io", "ingresses", "default", "shop"),
        api_version="networking.k8s.io/v1",
        kind="Ingress",
        uid=made["metadata"]["uid"],
        is_accepted=True,
        addresses=(LoadBalancerAddress(ip="192.0.2.7"),),
        events=(EventNote(type="Normal", reason="Accepted", note="it is served", at=datetime.now(UTC)),),
        at=datetime.now(UTC),
    )
    await pair.stores.statuses.post(update)
    await until(lambda: bool(pair.api.events()))
    await until(lambda: "ingress" in pair.api.get("ingresses", "shop").get("status", {}).get("loadBalancer", {}))
    await asyncio.sleep(0.5)
    assert len(pair.api.seen("patch", "ingresses/status")) == 1
    assert len(pair.api.events()) == 1
    leader = pair.leader
    pair.processes[leader].kill()
    await pair.until_led_by_another(leader)
    await asyncio.sleep(1.0)
    assert len(pair.api.seen("patch", "ingresses/status")) == 1
    assert len(pair.api.events()) == 1


async def test_without_the_right_to_leases_both_publish_and_the_log_is_right(pair: Pair) -> None:
    leader = pair.leader
    pair.api.forbid("leases")
    for name, process in pair.processes.items():
        process.kill()
        await process.wait()
        await pair.start(name)
    pair.api.apply(service("new"))
    pair.api.delete("services", "web")
    await until(lambda: pair.present() == {"new"})
    for number in range(10):
        pair.api.apply(service("busy", port=1000 + number))
    pair.api.apply(service("last"))
    await until(lambda: pair.present() == {"new", "busy", "last"})
    await asyncio.sleep(0.5)
    ports = [d.object["spec"]["ports"][0]["port"] for d in pair.heard if d.ref.name == "busy" and d.object]
    assert ports == sorted(ports)
    assert ports[-1] == 1009
    assert leader in pair.processes
