"""`headgate clusters`, `drain`, `undrain` and `set-cluster` on a real log, with a translator behind it."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fakes.gateway.served_history import History, served_history
from fakes.translator.deltas import applied, endpoint_slice, ingress, service
from fakes.translator.loop import INGRESSES, KINDS, SERVICES, announce, fill, mark, running
from headgate.common.deltas import ClusterAnnouncement
from headgate.common.table import Endpoint, Upstream
from headgate.operations.clusters.decisions import change_cluster

KEY = "a/default/web:80"


def shared() -> Any:
    made = service()
    made["metadata"]["annotations"] = {"headgate.dev/global": "true"}
    return made


@asynccontextmanager
async def two_clusters() -> AsyncIterator[History]:
    web = ingress("web", host="shop.example")
    async with served_history(web, shared(), endpoint_slice("web", "10.1.0.1")) as history:
        await fill(history.stores, shared(), endpoint_slice("web", "10.2.0.1", "10.2.0.2"), cluster="b")
        await history.until(lambda manifest: "b" in manifest.inputs)
        await endpoints(history, lambda found: len(found) == 3)
        yield history


async def endpoints(history: History, are_as_wanted: Any) -> dict[str, Endpoint]:
    """Wait for the endpoints of the Service to be as wanted."""
    async with asyncio.timeout(30):
        while True:
            upstream = (await history.table())[KEY]
            assert isinstance(upstream, Upstream)
            found = {endpoint.address: endpoint for endpoint in upstream.endpoints}
            if are_as_wanted(found):
                return found
            await asyncio.sleep(0.02)


async def test_a_drained_cluster_gets_no_new_requests_until_it_is_undrained() -> None:
    async with two_clusters() as history:
        said = await history.ask("drain", "b", "--by=ada", "--reason=upgrade")
        assert said.out == "cluster b: drained by ada, weighted by its endpoints, priority 0, reached directly\n"
        found = await endpoints(history, lambda found: found["10.2.0.1"].terminating)
        assert [found[address].ready for address in sorted(found)] == [True, False, False]
        listed = (await history.ask("clusters")).out.splitlines()
        assert listed[1].startswith("a        served")
        assert re.search(r"drained by ada, \d+s ago: upgrade", listed[2])
        assert "by ada: drained by ada, weighted by its endpoints" in (await history.ask("history", "--limit=1")).out
        await history.ask("undrain", "b")
        await endpoints(history, lambda found: found["10.2.0.1"].ready)


async def test_age_of_what_is_known_of_a_cluster_is_shown() -> None:
    async with two_clusters() as history:
        now = datetime.now(UTC)
        for cluster, silent_s in (("a", 0), ("b", 300)):
            told = ClusterAnnouncement(
                cluster=cluster,
                source="kubernetes",
                instance="w",
                kinds=(),
                announced_at=now - timedelta(seconds=silent_s),
                heard_at=now - timedelta(seconds=3000),
            )
            await history.stores.log_writer.announce(told)
        listed = (await history.ask("clusters")).out.splitlines()
        assert "50m ago" in listed[1]
        assert "silent" not in listed[1]
        assert "served, its watcher is silent since 5m" in listed[2]


async def test_a_cluster_without_objects_is_listed() -> None:
    async with two_clusters() as history:
        await announce(history.stores, "empty")
        assert "not listed yet" in (await history.ask("clusters")).out.splitlines()[3]
        await mark(history.stores, *KINDS, cluster="empty")
        assert "listed, nothing to serve" in (await history.ask("clusters")).out.splitlines()[3]


async def test_settings_are_changed_one_by_one() -> None:
    async with two_clusters() as history:
        await history.ask("set-cluster", "b", "--weight=3")
        await history.ask("drain", "b", "--by=ada")
        await history.ask("set-cluster", "b", "--priority=1", "--gateway=http://192.0.2.1:80")
        listed = (await history.ask("clusters", "--json")).json[1]
        assert (listed["cluster"], listed["weight"], listed["priority"]) == ("b", 3, 1)
        assert (listed["gateways"], listed["drained"]["by"]) == (["http://192.0.2.1:80"], "ada")
        found = await endpoints(history, lambda found: "192.0.2.1" in found)
        assert found["192.0.2.1"].hop == "http"
        said = await history.ask("set-cluster", "b", "--by-endpoints", "--direct", "--json")
        assert (said.json["weight"], said.json["gateways"], said.json["priority"]) == (None, [], 1)


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["drain", "west"], 1, "no cluster 'west' in table 'default'; it has a, b"),
        (["set-cluster", "b"], 2, "nothing to set: give --weight"),
        (["set-cluster", "b", "--weight=101"], 2, "101 is not in the range 0<=x<=100"),
        (["set-cluster", "b", "--weight=1", "--by-endpoints"], 2, "exclude each other"),
        (["set-cluster", "b", "--gateway=192.0.2.1"], 2, "'192.0.2.1' is not of the form http://ADDRESS:PORT"),
    ],
)
async def test_what_cannot_be_is_told_in_one_line(arguments: list[str], code: int, told: str) -> None:
    async with two_clusters() as history:
        answer = await history.ask(*arguments, code=code)
        assert told in answer.err
        assert len(answer.err.splitlines()) == 1


async def test_those_who_decide_at_once_do_not_undo_each_other() -> None:
    async with two_clusters() as history:
        changes: list[dict[str, Any]] = [{"weight": 7}, {"priority": 3}, {"gateways": ("http://192.0.2.1:80",)}]
        await asyncio.gather(*(change_cluster(history.stores, "default", "b", "ada", each) for each in changes))
        listed = (await history.ask("clusters", "--json")).json[1]
        assert (listed["weight"], listed["priority"], listed["gateways"]) == (7, 3, ["http://192.0.2.1:80"])


async def test_a_cluster_is_not_drained_by_what_it_lists_itself() -> None:
    async with two_clusters() as history:
        await history.ask("drain", "b")
        await history.stores.log_writer.append(applied(endpoint_slice("web", "10.2.0.7"), "b"))
        found = await endpoints(history, lambda found: "10.2.0.7" in found)
        assert not found["10.2.0.7"].ready


async def test_gateways_that_stand_for_a_cluster_are_named_for_each_table() -> None:
    async with two_clusters() as history, running(history.stores, table="tenant"):
        async with asyncio.timeout(10):
            while await history.stores.snapshots.read_pointer("tenant") is None:  # noqa: ASYNC110 - no event here
                await asyncio.sleep(0.02)
        await history.ask("set-cluster", "b", "--gateway=http://192.0.2.1:80")
        said = await history.ask("set-cluster", "b", "--gateway=http://192.0.2.2:80", "--table=tenant")
        assert said.out.endswith("reached by http://192.0.2.2:80\n")
        assert "http://192.0.2.1:80" in (await history.ask("clusters")).out
        listed = (await history.ask("clusters", "--table=tenant")).out
        assert "http://192.0.2.2:80" in listed
        assert "http://192.0.2.1:80" not in listed
        said = await history.ask("set-cluster", "b", "--direct")
        assert said.out.endswith("reached directly\n")
        assert (await history.ask("clusters", "--json")).json[1]["table_gateways"] == {}


async def test_a_table_has_the_clusters_that_it_selects() -> None:
    async with two_clusters() as history, running(history.stores, table="tenant", clusters=["b"]):
        async with asyncio.timeout(10):
            while await history.stores.snapshots.read_pointer("tenant") is None:  # noqa: ASYNC110 - no event here
                await asyncio.sleep(0.02)
        listed = (await history.ask("clusters", "--table=tenant", "--json")).json
        assert [one["cluster"] for one in listed] == ["b"]
        status = (await history.ask("status", "--table=tenant", "--json", code=None)).json
        assert {kind["cluster"] for kind in status["kinds"]} == {"b"}
        assert (await history.ask("drain", "a", "--table=tenant", code=1)).err == (
            "headgate: no cluster 'a' in table 'tenant'; it has b\n"
        )


async def test_a_removed_cluster_leaves_the_table_and_is_waited_for_by_nobody() -> None:
    async with two_clusters() as history:
        last = await history.stores.log_writer.append(applied(ingress("own", host="west.example"), "b"))
        await history.until(lambda manifest: manifest.inputs["b"] >= last)
        assert "west.example" in await history.table()
        said = await history.ask("remove-cluster", "b", "--by=ada", "--reason=moved", "--dry-run")
        assert said.out == "cluster b with 3 objects would be removed\n"
        said = await history.ask("remove-cluster", "b", "--by=ada", "--reason=moved")
        assert said.out == "cluster b with 3 objects removed\n"
        await history.until(lambda manifest: "b" not in manifest.inputs)
        assert [*await endpoints(history, lambda found: len(found) == 1)] == ["10.1.0.1"]
        assert "west.example" not in await history.table()
        listed = (await history.ask("clusters")).out.splitlines()
        assert re.search(r"^b +removed by ada, \d+s ago: moved", listed[2])
        assert "by ada: removed by ada" in (await history.ask("history", "--limit=1")).out
        status = json.loads((await history.ask("status", "--json", code=None)).out)
        assert {one["work"] for one in status["leaders"]} & {"watcher of a", "watcher of b"} == {"watcher of a"}
        assert {kind["cluster"] for kind in status["kinds"]} == {"a"}
        async with running(history.stores, table="later") as translator:
            async with asyncio.timeout(30):
                while translator.readiness() is not None:  # noqa: ASYNC110 - no event here
                    await asyncio.sleep(0.02)
            pointer = await history.stores.snapshots.read_pointer("later")
            assert pointer is not None
            assert [*(await history.stores.snapshots.get_manifest("later", pointer.version)).inputs] == ["a"]


async def test_a_removed_cluster_comes_back_whole_with_its_watcher() -> None:
    async with two_clusters() as history:
        await history.ask("remove-cluster", "b")
        await history.until(lambda manifest: "b" not in manifest.inputs)
        told = ClusterAnnouncement(
            cluster="b", source="kubernetes", instance="w", kinds=KINDS, announced_at=datetime.now(UTC)
        )
        await history.stores.log_writer.announce(told)
        await history.stores.log_writer.append(applied(shared(), "b"))
        await mark(history.stores, SERVICES, cluster="b")
        await history.stores.log_writer.append(applied(endpoint_slice("web", "10.2.0.9"), "b"))
        half = await history.stores.log_writer.append(applied(endpoint_slice("web", "10.1.0.2"), "a"))
        await history.until(lambda manifest: manifest.inputs["a"] >= half and "b" not in manifest.inputs)
        assert [*await endpoints(history, lambda found: "10.1.0.2" in found)] == ["10.1.0.2"]
        await mark(history.stores, INGRESSES, cluster="b")
        await endpoints(history, lambda found: {*found} == {"10.1.0.2", "10.2.0.9"})
        assert (await history.ask("clusters")).out.splitlines()[2].startswith("b        served")


async def test_a_cluster_with_a_watcher_is_not_removed() -> None:
    async with two_clusters() as history:
        told = ClusterAnnouncement(
            cluster="b", source="kubernetes", instance="w-7", kinds=KINDS, announced_at=datetime.now(UTC)
        )
        await history.stores.log_writer.announce(told)
        said = await history.ask("remove-cluster", "b", code=1)
        assert re.search(r"watcher w-7 of cluster b announced itself \d+s ago .*: stop its watchers, and try", said.err)
        said = await history.ask("remove-cluster", "west", code=1)
        assert "no cluster 'west' in the log; it has a, b" in said.err
        assert len(await endpoints(history, lambda _: True)) == 3
