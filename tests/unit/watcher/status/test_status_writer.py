"""The status writer against the fake API server, in virtual time."""

import asyncio
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

from fakes.kubernetes.api import FakeKubernetes, Resource
from fakes.kubernetes.objects import ingress
from fakes.kubernetes.status_writing import EDGE, START, addresses, condition, wanted, writing
from fakes.translator.leadership import Seat
from fakes.virtual_time import in_virtual_time
from fakes.waiting import until
from headgate.common.resources import ObjectRef
from headgate.common.status import EventNote, LoadBalancerAddress
from headgate.common.stores.memory.boards import MemoryStatusBoard


def note(text: str = "Served", after_s: float = 0.0, **changes: Any) -> EventNote:
    return EventNote(
        **{"type": "Normal", "reason": "Accepted", "note": text, "at": START + timedelta(seconds=after_s), **changes}
    )


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
            return await api.serve(request, api.requests[-1])

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
            await board.post(wanted("ours", is_accepted=False, addresses=(), withdrawn=EDGE))
            await board.post(wanted("taken-over", is_accepted=False, addresses=(), withdrawn=EDGE))
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
        await board.post(wanted("a", events=(note(),)))
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
        said = note("ä" * 1024, type="Warning", reason="ServiceNotFound")
        await board.post(wanted("a", uid=uid, addresses=None, events=(said,)))
        await until(lambda: len(api.events()) == 1)
        event = api.events()[0]
        assert event["regarding"] == {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "Ingress",
            "name": "a",
            "namespace": "default",
            "uid": uid,
        }
        assert (event["type"], event["reason"], event["note"]) == ("Warning", "ServiceNotFound", "ä" * 510 + "…")
        assert event["reportingController"] == "headgate.dev/ingress-controller"
        assert event["reportingInstance"] == "watcher-0"


@in_virtual_time
async def test_an_object_whose_definition_has_no_status_gets_events(tmp_path: Path) -> None:
    ref = ObjectRef("east", "traefik.io", "ingressroutes", "default", "web")
    route = {"apiVersion": "traefik.io/v1alpha1", "kind": "IngressRoute", "metadata": {"name": "web"}, "spec": {}}
    async with FakeKubernetes() as api, writing(api, tmp_path) as (board, writer):
        api.install(
            "traefik.io/v1alpha1",
            Resource("traefik.io", "ingressroutes", "IngressRoute", is_custom=True, has_status=False),
        )
        uid = api.apply(route)["metadata"]["uid"]
        said = wanted("web", uid=uid, addresses=None, conditions=(condition("False", "InvalidRule"),), events=(note(),))
        await board.post(
            said.model_copy(update={"ref": ref, "api_version": "traefik.io/v1alpha1", "kind": "IngressRoute"})
        )
        await until(lambda: len(api.events()) == 1 and writer.pending == 0)
        assert api.events()[0]["regarding"]["kind"] == "IngressRoute"
        await asyncio.sleep(600)
        assert len(api.seen("patch")) == 1


@in_virtual_time
async def test_the_same_note_is_not_repeated_within_ten_minutes(tmp_path: Path) -> None:
    async with FakeKubernetes() as api, writing(api, tmp_path) as (board, writer):
        uid = api.apply(ingress("a"))["metadata"]["uid"]
        said: list[EventNote] = []
        for minute in (0, 3, 9, 11):
            await asyncio.sleep(max(0, minute * 60 - asyncio.get_running_loop().time()))
            said.append(note(after_s=minute * 60))
            await board.post(wanted("a", uid=uid, events=tuple(said)))
            await asyncio.sleep(5)
        assert len(api.events()) == 2
        assert writer.pending == 0


@in_virtual_time
async def test_a_second_watcher_makes_no_second_event(tmp_path: Path) -> None:
    board = MemoryStatusBoard()
    async with (
        FakeKubernetes() as api,
        writing(api, tmp_path, board) as (_, one),
        writing(api, tmp_path, board) as (_, other),
    ):
        uid = api.apply(ingress("a"))["metadata"]["uid"]
        await board.post(wanted("a", uid=uid, events=(note(),)))
        await until(lambda: len(api.seen("create")) == 2 and one.pending == other.pending == 0)
        assert len(api.events()) == 1


@in_virtual_time
async def test_events_of_hours_ago_do_not_come_up_again_after_a_restart(tmp_path: Path) -> None:
    async with FakeKubernetes() as api, writing(api, tmp_path) as (board, writer):
        api.apply(ingress("a"))
        await board.post(wanted("a", events=(note(after_s=-7200),), at=START - timedelta(hours=2)))
        await until(lambda: bool(addresses(api, "a")) and writer.pending == 0)
        assert api.events() == []


@in_virtual_time
async def test_events_that_may_not_be_written_hold_back_no_status_and_are_written_when_they_may(
    tmp_path: Path,
) -> None:
    async with FakeKubernetes() as api, writing(api, tmp_path) as (board, writer):
        api.forbid("events")
        for name in ("a", "b", "c"):
            api.apply(ingress(name))
            await board.post(wanted(name, events=(note(),)))
        await until(lambda: bool(addresses(api, "a") and addresses(api, "b") and addresses(api, "c")), within_s=2)
        await asyncio.sleep(900)
        assert len(api.seen("create", "events")) <= 20  # the right is asked for, not each Event
        api.allow("events")
        await asyncio.sleep(301)
        assert len(api.events()) == 3
        assert writer.pending == 0


@in_virtual_time
async def test_events_in_a_namespace_that_ends_are_not_waited_for(tmp_path: Path) -> None:
    text = "events is forbidden: unable to create new content in namespace default because it is being terminated"
    body = json.dumps({"kind": "Status", "status": "Failure", "reason": "Forbidden", "message": text, "code": 403})
    async with FakeKubernetes() as api, writing(api, tmp_path) as (board, writer):
        api.apply(ingress("a"))
        api.faults.status(403, verb="create", resource="events", body=body, times=None)
        await board.post(wanted("a", events=(note(),)))
        await until(lambda: bool(addresses(api, "a")) and writer.pending == 0)
        assert len(api.seen("create", "events")) == 1


@in_virtual_time
async def test_events_survive_errors_of_the_api_server_in_order(tmp_path: Path) -> None:
    async with FakeKubernetes() as api, writing(api, tmp_path) as (board, writer):
        api.apply(ingress("a"))
        for code in (500, 429, 410):
            api.faults.status(code, verb="create", resource="events")
        api.faults.reset(verb="create", resource="events")
        await board.post(wanted("a", events=(note("one"), note("two", 1))))
        await until(lambda: len(api.events()) == 2, within_s=120)
        assert sorted(event["note"] for event in api.events()) == ["one", "two"]
        assert writer.pending == 0


@in_virtual_time
async def test_events_of_an_update_that_another_one_overtook_are_written_after_a_restart(tmp_path: Path) -> None:
    board = MemoryStatusBoard()
    async with FakeKubernetes() as api:
        uid = api.apply(ingress("a"))["metadata"]["uid"]
        await board.post(wanted("a", uid=uid, events=(note("first"),)))
        await board.post(wanted("a", uid=uid, events=(note("first"), note("second", 1))))
        for _ in range(2):
            async with writing(api, tmp_path, board) as (_, writer):
                await until(lambda: len(api.events()) == 2 and writer.pending == 0)
        assert sorted(event["note"] for event in api.events()) == ["first", "second"]


# One of several watchers


@in_virtual_time
async def test_only_the_leader_writes_and_the_next_one_finds_what_is_left(tmp_path: Path) -> None:
    board, one, other = MemoryStatusBoard(), Seat(), Seat()
    async with (
        FakeKubernetes() as api,
        writing(api, tmp_path, board, one),
        writing(api, tmp_path, board, other) as (_, second),
    ):
        for name in ("a", "b"):
            api.apply(ingress(name))
            await board.post(wanted(name))
        await asyncio.sleep(60)
        assert api.requests == []
        api.faults.status(500, verb="patch", name="b", times=None)
        one.take()
        await until(lambda: bool(addresses(api, "a")))
        one.lose()
        await asyncio.sleep(60)
        api.faults.clear()
        before = len(api.requests)
        await asyncio.sleep(600)
        assert len(api.requests) == before
        other.take()
        await until(lambda: bool(addresses(api, "b")) and second.pending == 0)
        assert len([one for one in api.seen("patch") if one.name == "a"]) == 1


@in_virtual_time
async def test_what_is_new_goes_before_what_was_left_from_before(tmp_path: Path) -> None:
    board = MemoryStatusBoard()
    async with FakeKubernetes() as api:
        for number in range(1000):
            api.apply(ingress(f"old{number}"))
            await board.post(wanted(f"old{number}", at=START - timedelta(hours=1)))
        api.apply(ingress("new"))
        async with writing(api, tmp_path, board) as (_, writer):
            await until(lambda: writer.pending > 500)
            await board.post(wanted("new"))
            await until(lambda: bool(addresses(api, "new")), within_s=10)
            assert writer.pending > 500


# Several tables


@in_virtual_time
async def test_the_addresses_of_all_tables_are_written_and_one_takes_back_its_own(tmp_path: Path) -> None:
    inner = (LoadBalancerAddress(ip="10.0.0.7"),)
    async with FakeKubernetes() as api, writing(api, tmp_path) as (board, writer):
        api.apply(ingress("a"))
        await board.post(wanted("a", conditions=(condition(),)))
        await board.post(wanted("a", table="inner", addresses=inner, conditions=(condition(),)))
        await until(lambda: addresses(api, "a") == [{"ip": "192.0.2.7"}, {"ip": "10.0.0.7"}])
        await board.post(wanted("a", table="inner", addresses=(), withdrawn=inner, is_accepted=False))
        await until(lambda: addresses(api, "a") == [{"ip": "192.0.2.7"}] and writer.pending == 0)


@in_virtual_time
async def test_each_table_has_events_of_its_own_that_name_it(tmp_path: Path) -> None:
    async with FakeKubernetes() as api, writing(api, tmp_path) as (board, writer):
        made = api.apply(ingress("a"))
        uid = made["metadata"]["uid"]
        for table in ("default", "inner"):
            await board.post(wanted("a", uid=uid, table=table, events=(note(),)))
        await until(lambda: len(api.events()) == 2 and writer.pending == 0)
        assert {event["note"] for event in api.events()} == {"Served", "table inner: Served"}
