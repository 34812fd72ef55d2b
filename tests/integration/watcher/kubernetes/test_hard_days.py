"""What API servers do on hard days, against the watcher's own process: each ends with the log as the cluster is."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from fakes.kubernetes.api import FakeKubernetes
from fakes.kubernetes.objects import ingress, service
from fakes.service_process import running_service
from fakes.stores.nats import real_bus
from fakes.waiting import until
from headgate.common.deltas import Delta, Operation, SyncMarker
from headgate.common.resources import ObjectRef
from headgate.common.sealing import load_or_create_key_pair
from headgate.common.stores import LogReplay
from headgate.common.stores.nats import NatsStores


class Day(NamedTuple):
    """The cluster, and what the log says of it."""

    api: FakeKubernetes
    last: dict[ObjectRef, Delta]
    markers: list[SyncMarker]

    def hosts(self) -> dict[str, str]:
        """Name to host of the Ingresses that are there."""
        return {
            ref.name: delta.object["spec"]["rules"][0]["host"]
            for ref, delta in self.last.items()
            if ref.resource == "ingresses" and delta.operation is Operation.APPLY and delta.object
        }

    async def until_hosts(self, **expected: str) -> None:
        await until(lambda: self.hosts() == expected, within_s=90)


@asynccontextmanager
async def day(tmp_path: Path, **user: Any) -> AsyncIterator[Day]:
    load_or_create_key_pair(tmp_path / "data")
    async with FakeKubernetes() as api, real_bus() as (server, bus):
        config = api.write_kubeconfig(tmp_path / "config", user=user or None)
        stores, found = await NatsStores.open(bus), Day(api, {}, [])

        async def follow() -> None:
            async for batch in stores.log_reader.follow():
                for message in () if isinstance(batch, LogReplay) else batch:
                    if isinstance(message, Delta):
                        found.last[message.ref] = message
                    elif isinstance(message, SyncMarker):
                        found.markers.append(message)

        following = asyncio.create_task(follow())
        flags = (f"--kubeconfig={config}", f"--nats-url={server.url}", f"--data-dir={tmp_path / 'data'}")
        async with running_service("watcher", *flags, log=tmp_path / "log", is_ended_orderly=True):
            yield found
        following.cancel()
        await asyncio.wait([following])


async def test_an_etcd_that_goes_back_in_time_takes_the_log_back_with_it(tmp_path: Path) -> None:
    async with day(tmp_path) as today:
        today.api.apply(ingress("kept", "then.test"))
        today.api.apply(ingress("gone", "gone.test"))
        await today.until_hosts(kept="then.test", gone="gone.test")
        backup = today.api.backup()
        today.api.apply(ingress("kept", "now.test"))
        today.api.delete("ingresses", "gone")
        today.api.apply(ingress("new", "new.test"))
        await today.until_hosts(kept="now.test", new="new.test")
        today.api.restore(backup)
        await today.until_hosts(kept="then.test", gone="gone.test")
        today.api.apply(ingress("kept", "later.test"))  # with a version that the log has seen already
        await today.until_hosts(kept="later.test", gone="gone.test")


async def test_an_object_of_a_megabyte_keeps_no_other_one_back(tmp_path: Path) -> None:
    async with day(tmp_path) as today:
        large = ingress("large", "large.test")
        large["metadata"]["annotations"] = {"filler": "x" * 1_200_000}
        today.api.apply(large)
        today.api.apply(ingress("small", "small.test"))
        await today.until_hosts(small="small.test")
        await until(lambda: any("large" in marker.message for marker in today.markers))
        today.api.apply(ingress("large", "large.test"))
        await today.until_hosts(small="small.test", large="large.test")


async def test_a_flood_of_events_is_not_read(tmp_path: Path) -> None:
    async with day(tmp_path) as today:
        today.api.apply(ingress("a", "a.test"))
        await today.until_hosts(a="a.test")
        for number in range(20_000):
            event = {"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": f"e{number}"}}
            today.api.store.put(today.api.find("events"), event)
        today.api.apply(service("web"))
        today.api.apply(ingress("a", "b.test"))
        await today.until_hosts(a="b.test")
        assert today.api.seen(resource="events") == []


async def test_a_token_file_that_expires_is_read_again(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("let-me-in")
    async with day(tmp_path, tokenFile=str(token)) as today:
        today.api.apply(ingress("a", "a.test"))
        await today.until_hosts(a="a.test")
        await asyncio.sleep(6)  # a token is not read again within five seconds
        token.write_text("let-me-in-again")
        today.api.token = "let-me-in-again"
        today.api.drop_connections()
        today.api.apply(ingress("a", "b.test"))
        await today.until_hosts(a="b.test")
