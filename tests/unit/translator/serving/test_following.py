"""On random histories, tables that are held have the endpoints of today and nothing else of it."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fakes.translator.apisix import BACKEND, resource, route, rule
from fakes.translator.deltas import applied, deleted, endpoint_slice, service
from fakes.translator.fleet import fleet_of
from fakes.translator.leadership import Seat
from fakes.translator.loop import digests_of, fill, idle, manifest_of, running
from fakes.translator.translating import Follower, ListedLog
from fakes.waiting import until
from headgate.common.deltas import Delta
from headgate.common.stores.chunk_entries import entry_contents
from headgate.common.stores.memory.stores import MemoryStores
from headgate.common.stores.reading import read_chunks
from headgate.common.table import Upstream
from headgate.common.table.upstream_key import UpstreamKey
from headgate.common.table_image import TableImage, encode_entry
from headgate.operations.committing.held_table import HeldTable, is_refusal, with_endpoints_of
from headgate.translator.composition import DIALECTS
from headgate.translator.leading import feeds
from headgate.translator.serving.following import Following
from headgate.translator.status import poster as status_poster
from headgate.translator.translation import Translation
from headgate.translator.upstreams.held import held_upstream
from unit.translator.world.test_incremental import STEPS

MANY = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
HELD = held_upstream([read for dialect in DIALECTS for read in dialect.upstreams])
FEW = settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def endpoints_of_today(translation: Translation, key: str, held: bytes) -> bytes:
    """An entry as it should be: resolved anew, whatever the live table makes of it."""
    parsed = UpstreamKey.parse(key)
    if is_refusal(held):
        return held
    resolved = HELD.compute(translation.graph.look(parsed.cluster), parsed)
    return held if resolved is None else with_endpoints_of(held, encode_entry(resolved.entry))


def entries(image: TableImage) -> dict[str, bytes]:
    return {key: image.get("upstreams", key) or b"" for key in image.keys("upstreams")}


@MANY
@given(st.lists(st.tuples(STEPS, st.sampled_from(["go", "go", "hold"])), max_size=40))
def test_held_tables_have_the_endpoints_of_today_and_their_own_policies(history: list[Any]) -> None:
    log = ListedLog(history=50)
    follower, following, tables = Follower(log), Following(), list[tuple[HeldTable, dict[str, bytes]]]()
    translation = follower.translation
    for (manifest, cluster, operation, _), action in history:
        follower.take(log.append(applied(manifest, cluster) if operation == "apply" else deleted(manifest, cluster)))
        for ref in list(translation.world.tracker.unsure):
            translation.recall(ref, log.history(ref))
        for _ in following.settle(translation):
            pass
        translation.assembly.changed.clear()
        if action == "hold":
            table = HeldTable(translation.assembly.image.copy())
            tables = [*tables, (table, entries(table.image))][-2:]
            following.go_on(table for table, _ in tables)
        for table, before in tables:
            expected = {key: endpoints_of_today(translation, key, held) for key, held in before.items()}
            assert entries(table.image) == expected


SUBSET = {"subsets": [{"name": "v1", "labels": {"app": "web"}}]}
PODS = (
    {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one", "namespace": "default", "labels": {"app": "web"}}},
    resource("ApisixUpstream", "web", SUBSET),
)


@pytest.mark.parametrize(
    ("key", "backend", "besides"),
    [
        ("a/default/web:80/apisix", BACKEND, ()),
        ("a/default/web:80/apisix/subset=v1", {**BACKEND, "subset": "v1"}, PODS),
        ("a/default/web:80/apisix/service", {**BACKEND, "resolveGranularity": "service"}, ()),
    ],
)
def test_endpoints_that_a_dialect_chooses_are_followed_also_where_no_live_route_asks_for_them(
    key: str, backend: Any, besides: tuple[Any, ...]
) -> None:
    log = ListedLog()
    follower, following = Follower(log, clusters=("a",)), Following()

    def say(*manifests: Any, operation: Callable[..., Delta] = applied) -> None:
        for manifest in manifests:
            follower.take(log.append(operation(manifest, "a")))
        for _ in following.settle(follower.translation):
            pass

    routed = route(rule() | {"backends": [backend]})
    say(service("web", clusterIP="10.9.0.1"), slice_of_pod("10.0.0.1"), *besides, routed)
    table = HeldTable(follower.translation.assembly.image.copy())
    following.begin([table])
    say(routed, operation=deleted)
    assert follower.translation.assembly.image.get("upstreams", key) is None
    say(service("web", clusterIP="10.9.0.2"), slice_of_pod("10.0.0.2"))
    held = Upstream.model_validate_json(table.image.get("upstreams", key) or b"")
    assert [endpoint.address for endpoint in held.endpoints] == ["10.9.0.2" if "service" in key else "10.0.0.2"]


def slice_of_pod(address: str) -> Any:
    made = endpoint_slice("web", address)
    made["endpoints"][0]["targetRef"] = {"kind": "Pod", "name": "one"}
    return made


@FEW
@given(st.lists(st.tuples(STEPS, st.sampled_from(["one", "other", "stay", "pause"])), max_size=12))
def test_two_translators_agree_on_what_is_rolled_out_whoever_leads(history: list[Any]) -> None:
    asyncio.run(_roll_out_by_turns(history))


async def _roll_out_by_turns(history: list[Any]) -> None:
    stores, seats = MemoryStores(), (Seat(is_leader=True), Seat())
    policy: dict[str, Any] = {"rollout_shares": [50.0], "rollout_window_s": 3600.0}
    with patch.object(feeds, "LOOK_AROUND_S", 0.02), patch.object(status_poster, "QUIET_S", 0.005):
        for cluster in ("a", "b"):
            await fill(stores, cluster=cluster)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(fleet_of(stores.snapshots, stores.heartbeats, "g1", "g2", "g3"))
            loops = [await stack.enter_async_context(running(stores, leadership=seat, **policy)) for seat in seats]
            for (manifest, cluster, operation, _), turn in history:
                delta = applied(manifest, cluster) if operation == "apply" else deleted(manifest, cluster)
                await stores.log_writer.append(delta)
                if turn in ("one", "other") and not seats[turn == "other"].is_leader:
                    seats[turn != "other"].lose()
                    seats[turn == "other"].take()
                elif turn == "pause":
                    await asyncio.sleep(0.01)
            await until(lambda: any(each.leads for each in loops))
            await idle(stores, *loops)
            before = await manifest_of(stores)
            for each in loops:
                assert digests_of(each) == [name.digest for name in before.live]
            [leading] = [each for each in loops if each.leads]
            for names in (before.chunks, before.rollout.next if before.rollout else ()):
                for chunk in await read_chunks(stores.snapshots, (name for name in names if name.kind == "upstreams")):
                    for key, held in entry_contents(chunk.content).items():
                        assert held == endpoints_of_today(leading.translation, key, held)
            leader = int(seats[1].is_leader)
            seats[leader].lose()
            seats[1 - leader].take()
            await asyncio.sleep(0.03)
            await idle(stores, *loops)
            assert await manifest_of(stores) == before
