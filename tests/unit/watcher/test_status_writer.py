"""The status writer against the fake API server, in virtual time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from fakes.kubernetes_api import FakeKubernetes, Resource
from fakes.kubernetes_objects import ingress
from fakes.virtual_time import in_virtual_time
from fakes.waiting import until
from headgate.common.resources import ObjectRef
from headgate.common.status import EventNote, LoadBalancerAddress, StatusUpdate
from headgate.common.stores.memory import MemoryStatusBoard
from headgate.common.tasks import cancel
from headgate.watcher.sources.kubernetes.transport import KubernetesTransport
from headgate.watcher.status_writer import StatusWriter

EDGE = (LoadBalancerAddress(ip="192.0.2.7"),)
SERVED = EventNote(type="Normal", reason="Accepted", note="Served")


@asynccontextmanager
async def writing(
    api: FakeKubernetes, tmp_path: Path, board: MemoryStatusBoard | None = None
) -> AsyncIterator[tuple[MemoryStatusBoard, StatusWriter]]:
    board = board or MemoryStatusBoard()
    transport = KubernetesTransport(api.write_kubeconfig(tmp_path / "config"))
    writer = StatusWriter(board, "east", transport, instance="watcher-0", rng=Random(3))
    running = asyncio.create_task(writer.run())
    try:
        yield board, writer
    finally:
        await cancel(running)
        await transport.close()


def wanted(name: str, **changes: Any) -> StatusUpdate:
    return StatusUpdate(
        **{
            "ref": ObjectRef("east", "networking.k8s.io", "ingresses", "default", name),
            "api_version": "networking.k8s.io/v1",
            "kind": "Ingress",
            "uid": "",
            "is_accepted": True,
            "addresses": EDGE,
            "at": datetime.now(UTC),
            **changes,
        }
    )


def addresses(api: FakeKubernetes, name: str) -> list[Any]:
    found = api.get("ingresses", name).get("status", {}).get("loadBalancer", {}).get("ingress", [])
    assert isinstance(found, list)
    return found


@in_virtual_time
async def test_addresses_are_written_to_the_status_and_nothing_else(tmp_path: Path) -> None:
    async with FakeKubernetes() as api, writing(api, tmp_path) as (board, writer):
        before = api.apply(ingress("a"))
        await board.post(wanted("a"))
        await until(lambda: addresses(api, "a") == [{"ip": "192.0.2.7"}])
        after = api.get("ingresses", "a")
        assert after["spec"] == before["spec"]
        assert after["metadata"]["generation"] == before["metadata"]["generation"]
        await until(lambda: writer.pending == 0)


@in_virtual_time
async def test_nothing_is_written_when_it_is_there_already(tmp_path: Path) -> None:
    async with FakeKubernetes() as api, writing(api, tmp_path) as (board, writer):
        api.apply(ingress("a"))
        api.set_status("ingresses", "a", {"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}]}})
        await board.post(wanted("a"))
        await until(lambda: bool(api.seen("get")) and writer.pending == 0)
        assert api.seen("patch") == []


@in_virtual_time
async def test_a_conflict_is_retried_on_the_newer_object(tmp_path: Path) -> None:
    async with FakeKubernetes() as api, writing(api, tmp_path) as (board, _):
        api.apply(ingress("a"))

        async def change_meanwhile(request: Any) -> Any:
            api.apply(ingress("a", "newer.test"))
            return await api._serve(request, api.requests[-1])

        api.faults.add(change_meanwhile, verb="patch")
        await board.post(wanted("a"))
        await until(lambda: addresses(api, "a") == [{"ip": "192.0.2.7"}])
        assert api.get("ingresses", "a")["spec"]["rules"][0]["host"] == "newer.test"
        first, second = (one.at for one in api.seen("patch"))
        assert second - first < 0.1  # at once: nothing is wrong, somebody was faster


@in_virtual_time
async def test_the_version_that_the_object_was_read_in_is_written(tmp_path: Path) -> None:
    async with FakeKubernetes() as api, writing(api, tmp_path) as (board, _):
        api.install("networking.k8s.io/v1beta1", Resource("networking.k8s.io", "ingresses", "Ingress"))
        api.apply(ingress("a"))
        await board.post(wanted("a", api_version="networking.k8s.io/v1beta1"))
        await until(lambda: bool(addresses(api, "a")))
        assert api.seen("patch")[0].path.startswith("/apis/networking.k8s.io/v1beta1/namespaces/default/ingresses/a/")


@in_virtual_time
async def test_an_object_that_is_gone_is_dropped(tmp_path: Path) -> None:
    async with FakeKubernetes() as api, writing(api, tmp_path) as (board, writer):
        await board.post(wanted("gone"))
        await until(lambda: bool(api.requests) and writer.pending == 0)
        await asyncio.sleep(300)
        assert len(api.requests) == 1


@in_virtual_time
async def test_an_object_made_anew_is_not_given_what_was_meant_for_the_old_one(tmp_path: Path) -> None:
    async with FakeKubernetes() as api, writing(api, tmp_path) as (board, writer):
        api.apply(ingress("a"))
        await board.post(wanted("a", uid="of-the-old-one"))
        await until(lambda: bool(api.requests) and writer.pending == 0)
        assert addresses(api, "a") == []


@in_virtual_time
async def test_what_is_not_accepted_is_not_touched(tmp_path: Path) -> None:
    async with FakeKubernetes() as api, writing(api, tmp_path) as (board, writer):
        api.apply(ingress("a"))
        api.set_status("ingresses", "a", {"loadBalancer": {"ingress": [{"ip": "198.51.100.1"}]}})
        await board.post(wanted("a", is_accepted=False))
        await until(lambda: len(api.seen("get")) == 1 and writer.pending == 0)
        await board.post(wanted("a", is_accepted=False, addresses=()))
        await until(lambda: len(api.seen("get")) == 2 and writer.pending == 0)
        await board.post(wanted("a", is_accepted=False, addresses=None))
        await asyncio.sleep(5)
        assert addresses(api, "a") == [{"ip": "198.51.100.1"}]
        assert api.seen("patch") == []


@in_virtual_time
async def test_only_addresses_that_we_wrote_are_removed_also_after_a_restart(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        api.apply(ingress("ours"))
        api.apply(ingress("taken-over"))
        async with writing(api, tmp_path) as (board, _):
            await board.post(wanted("ours"))
            await board.post(wanted("taken-over"))
            await until(lambda: bool(addresses(api, "ours") and addresses(api, "taken-over")))
        api.set_status("ingresses", "taken-over", {"loadBalancer": {"ingress": [{"ip": "198.51.100.1"}]}})
        async with writing(api, tmp_path) as (board, writer):
            await board.post(wanted("ours", is_accepted=False, addresses=()))
            await board.post(wanted("taken-over", is_accepted=False, addresses=()))
            await until(lambda: addresses(api, "ours") == [] and writer.pending == 0)
        assert addresses(api, "taken-over") == [{"ip": "198.51.100.1"}]


@in_virtual_time
async def test_a_failing_object_does_not_hold_back_the_others(tmp_path: Path) -> None:
    async with FakeKubernetes() as api, writing(api, tmp_path) as (board, writer):
        names = [f"i{number}" for number in range(8)]
        for name in ("stuck", *names):
            api.apply(ingress(name))
        api.faults.status(500, verb="patch", name="stuck", times=None)
        for name in ("stuck", *names):
            await board.post(wanted(name))
        await until(lambda: writer.pending == 1 and all(addresses(api, name) for name in names), within_s=2)
        await asyncio.sleep(600)
        assert 20 <= len([one for one in api.seen("patch") if one.name == "stuck"]) <= 60
        api.faults.clear()
        await until(lambda: writer.pending == 0, within_s=31)


@in_virtual_time
async def test_an_outage_of_the_api_server_loses_no_status(tmp_path: Path) -> None:
    async with FakeKubernetes() as api, writing(api, tmp_path) as (board, _):
        api.apply(ingress("a"))
        await api.stop()
        await board.post(wanted("a", events=(SERVED,)))
        await asyncio.sleep(600)
        await api.start()
        await until(lambda: bool(addresses(api, "a")) and len(api.events()) == 1, within_s=60)


@in_virtual_time
async def test_a_missing_right_is_asked_for_slowly(tmp_path: Path) -> None:
    async with FakeKubernetes() as api, writing(api, tmp_path) as (board, _):
        api.apply(ingress("a"))
        api.forbid("ingresses/status")
        await board.post(wanted("a"))
        await asyncio.sleep(3600)
        assert 10 <= len(api.seen("patch")) <= 25
        api.allow("ingresses/status")
        await asyncio.sleep(301)
        assert addresses(api, "a")


@in_virtual_time
async def test_what_the_server_finds_invalid_is_not_tried_again(tmp_path: Path) -> None:
    async with FakeKubernetes() as api, writing(api, tmp_path) as (board, writer):
        api.apply(ingress("a"))
        api.faults.status(422, verb="patch", times=None)
        await board.post(wanted("a"))
        await until(lambda: bool(api.seen("patch")) and writer.pending == 0)
        await asyncio.sleep(600)
        assert len(api.seen("patch")) == 1


@in_virtual_time
async def test_writes_keep_to_the_rate_limit(tmp_path: Path) -> None:
    async with FakeKubernetes() as api, writing(api, tmp_path) as (board, writer):
        for number in range(150):
            api.apply(ingress(f"i{number}"))
            await board.post(wanted(f"i{number}"))
        await until(lambda: len(api.seen("patch")) >= 150)
        times = [one.at for one in api.seen("patch")]
        assert times[-1] - times[0] >= (150 - 50) / 20 - 0.1
        await until(lambda: writer.pending == 0)


@in_virtual_time
async def test_an_event_says_what_the_api_wants_to_know(tmp_path: Path) -> None:
    async with FakeKubernetes() as api, writing(api, tmp_path) as (board, _):
        uid = api.apply(ingress("a"))["metadata"]["uid"]
        note = EventNote(type="Warning", reason="ServiceNotFound", note="ä" * 1024)
        await board.post(wanted("a", uid=uid, addresses=None, events=(note,)))
        await until(lambda: len(api.events()) == 1)
        event = api.events()[0]
        assert event["regarding"] == {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "Ingress",
            "name": "a",
            "namespace": "default",
            "uid": uid,
        }
        assert (event["type"], event["reason"], event["note"]) == ("Warning", "ServiceNotFound", "ä" * 512)
        assert event["reportingController"] == "headgate.dev/ingress-controller"
        assert event["reportingInstance"] == "watcher-0"


@in_virtual_time
async def test_the_same_note_is_not_repeated_within_ten_minutes(tmp_path: Path) -> None:
    async with FakeKubernetes() as api, writing(api, tmp_path) as (board, writer):
        uid = api.apply(ingress("a"))["metadata"]["uid"]
        start = datetime.now(UTC)
        for minute in (0, 3, 9, 11):
            await asyncio.sleep(max(0, minute * 60 - asyncio.get_running_loop().time()))
            await board.post(wanted("a", uid=uid, events=(SERVED,), at=start + timedelta(minutes=minute)))
            await until(lambda: writer.pending == 0)
        await until(lambda: len(api.events()) == 2)


@in_virtual_time
async def test_a_second_watcher_makes_no_second_event(tmp_path: Path) -> None:
    board = MemoryStatusBoard()
    async with (
        FakeKubernetes() as api,
        writing(api, tmp_path, board) as (_, one),
        writing(api, tmp_path, board) as (_, other),
    ):
        uid = api.apply(ingress("a"))["metadata"]["uid"]
        await board.post(wanted("a", uid=uid, events=(SERVED,)))
        await until(lambda: len(api.seen("create")) == 2 and one.pending == other.pending == 0)
        assert len(api.events()) == 1


@in_virtual_time
async def test_events_of_hours_ago_do_not_come_up_again_after_a_restart(tmp_path: Path) -> None:
    async with FakeKubernetes() as api, writing(api, tmp_path) as (board, writer):
        api.apply(ingress("a"))
        await board.post(wanted("a", events=(SERVED,), at=datetime.now(UTC) - timedelta(hours=2)))
        await until(lambda: bool(addresses(api, "a")) and writer.pending == 0)
        assert api.events() == []


@in_virtual_time
async def test_events_that_may_not_be_written_do_not_hold_back_the_status(tmp_path: Path) -> None:
    async with FakeKubernetes() as api, writing(api, tmp_path) as (board, writer):
        api.apply(ingress("a"))
        api.forbid("events")
        await board.post(wanted("a", events=(SERVED,)))
        await until(lambda: bool(addresses(api, "a")) and writer.pending == 0)
        assert len(api.seen("create", "events")) == 1
