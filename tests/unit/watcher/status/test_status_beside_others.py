"""Addresses and conditions that the status writer puts beside those of other controllers, in virtual time."""

import asyncio
import copy
from datetime import timedelta
from pathlib import Path
from typing import Any

from fakes.kubernetes.api import FakeKubernetes, Resource
from fakes.kubernetes.objects import ingress, service
from fakes.kubernetes.status_writing import EDGE, START, addresses, condition, wanted, writing
from fakes.virtual_time import in_virtual_time
from fakes.waiting import until
from headgate.common.resources import INGRESS, ObjectRef
from headgate.common.status import LoadBalancerAddress, StatusCondition, StatusUpdate
from headgate.common.stores.memory.boards import MemoryStatusBoard
from headgate.watcher.sources import Applied, Listed
from headgate.watcher.status.writer import StatusWriter

# Others' addresses


OTHERS = {"ip": "198.51.100.1", "ports": [{"port": 80, "protocol": "TCP"}]}


@in_virtual_time
async def test_addresses_of_other_controllers_stay_as_they_are(tmp_path: Path) -> None:
    async with FakeKubernetes() as api, writing(api, tmp_path) as (board, writer):
        api.apply(ingress("a"))
        api.set_status("ingresses", "a", {"loadBalancer": {"ingress": [OTHERS]}})
        await board.post(wanted("a"))
        await until(lambda: addresses(api, "a") == [OTHERS, {"ip": "192.0.2.7"}])
        moved = (LoadBalancerAddress(hostname="edge.example"),)
        await board.post(wanted("a", addresses=moved, withdrawn=EDGE))
        await until(lambda: addresses(api, "a") == [OTHERS, {"hostname": "edge.example"}])
        await board.post(wanted("a", is_accepted=False, addresses=(), withdrawn=(*moved, *EDGE)))
        await until(lambda: addresses(api, "a") == [OTHERS])
        assert writer.troubles == []


async def report(writer: StatusWriter, api: FakeKubernetes, name: str) -> None:
    """Tell the writer what a watch reports of an Ingress now."""
    await writer.observe(Applied(INGRESS, copy.deepcopy(api.get("ingresses", name))))


@in_virtual_time
async def test_addresses_that_another_controller_clears_are_written_again(tmp_path: Path) -> None:
    async with FakeKubernetes() as api, writing(api, tmp_path) as (board, writer):
        api.apply(ingress("a"))
        await board.post(wanted("a"))
        await until(lambda: bool(addresses(api, "a")) and writer.pending == 0)
        await report(writer, api, "a")
        assert writer.pending == 0
        api.set_status("ingresses", "a", {"loadBalancer": {}})
        await report(writer, api, "a")
        await until(lambda: addresses(api, "a") == [{"ip": "192.0.2.7"}])


@in_virtual_time
async def test_a_list_shows_what_was_cleared_unseen(tmp_path: Path) -> None:
    async with FakeKubernetes() as api, writing(api, tmp_path) as (board, writer):
        for name in "ab":
            api.apply(ingress(name))
            await board.post(wanted(name))
        await until(lambda: bool(addresses(api, "a") and addresses(api, "b")) and writer.pending == 0)
        api.set_status("ingresses", "b", {"loadBalancer": {}})
        await writer.observe(Listed(INGRESS, copy.deepcopy(api.all("ingresses"))))
        assert writer.pending == 1
        await until(lambda: addresses(api, "b") == [{"ip": "192.0.2.7"}])


@in_virtual_time
async def test_a_controller_that_clears_them_every_time_is_answered_ever_more_slowly(tmp_path: Path) -> None:
    async with FakeKubernetes() as api, writing(api, tmp_path) as (board, writer):
        api.apply(ingress("a"))
        await board.post(wanted("a"))
        await until(lambda: bool(addresses(api, "a")) and writer.pending == 0)
        before = len(api.seen("patch", "ingresses/status"))
        for _ in range(6 * 60):  # six hours
            api.set_status("ingresses", "a", {"loadBalancer": {"ingress": [OTHERS]}})
            await report(writer, api, "a")
            await asyncio.sleep(60)
        repairs = len(api.seen("patch", "ingresses/status")) - before
        assert 8 <= repairs <= 25


def of_service(**changes: Any) -> StatusUpdate:
    ref = ObjectRef("east", "", "services", "default", "web")
    return wanted("web", **{"ref": ref, "api_version": "v1", "kind": "Service", "addresses": (), **changes})


def of_route(*conditions: StatusCondition, **changes: Any) -> StatusUpdate:
    ref = ObjectRef("east", "apisix.apache.org", "apisixroutes", "default", "web")
    named = {"ref": ref, "api_version": "apisix.apache.org/v2", "kind": "ApisixRoute", "addresses": ()}
    return wanted("web", **{**named, "conditions": conditions, **changes})


ROUTE = {"apiVersion": "apisix.apache.org/v2", "kind": "ApisixRoute", "metadata": {"name": "web"}, "spec": {}}


def conditions_of_route(api: FakeKubernetes) -> list[Any]:
    return list(api.get("apisixroutes", "web").get("status", {}).get("conditions", []))


def conditions(api: FakeKubernetes) -> list[Any]:
    return list(api.get("services", "web").get("status", {}).get("conditions", []))


FOREIGN = {
    "type": "LoadBalancerPortsError",
    "status": "True",
    "reason": "Busy",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


@in_virtual_time
async def test_an_annotated_service_gets_conditions_beside_those_of_others(tmp_path: Path) -> None:
    async with FakeKubernetes() as api, writing(api, tmp_path) as (board, _):
        api.apply(service("web"))
        status = {"loadBalancer": {"ingress": [OTHERS]}, "conditions": [FOREIGN]}
        api.set_status("services", "web", status)
        await board.post(of_service(conditions=(condition(),), generation=3))
        await until(lambda: len(conditions(api)) == 2)
        assert conditions(api)[0] == FOREIGN
        assert conditions(api)[1] == {
            "type": "headgate.dev/Accepted",
            "status": "True",
            "observedGeneration": 3,
            "lastTransitionTime": "2026-03-01T12:00:00Z",
            "reason": "Accepted",
            "message": "",
        }
        assert api.get("services", "web")["status"]["loadBalancer"] == {"ingress": [OTHERS]}


@in_virtual_time
async def test_a_resource_of_apisix_gets_its_own_condition_under_the_reasons_that_it_has(tmp_path: Path) -> None:
    async with FakeKubernetes() as api, writing(api, tmp_path) as (board, _):
        api.install(
            "apisix.apache.org/v2", Resource("apisix.apache.org", "apisixroutes", "ApisixRoute", is_custom=True)
        )
        api.apply(ROUTE)
        before = {**FOREIGN, "type": "Accepted", "status": "True", "reason": "Accepted"}
        api.set_status("apisixroutes", "web", {"conditions": [before, FOREIGN]})
        await board.post(of_route(condition("False", "spec.http: must be a list"), generation=4))
        await until(lambda: conditions_of_route(api)[0]["status"] == "False")
        assert conditions_of_route(api) == [
            {
                "type": "Accepted",
                "status": "False",
                "observedGeneration": 4,
                "lastTransitionTime": "2026-03-01T12:00:00Z",
                "reason": "InvalidSpec",
                "message": "spec.http: must be a list",
            },
            FOREIGN,
        ]


@in_virtual_time
async def test_the_status_of_a_resource_of_apisix_is_written_once(tmp_path: Path) -> None:
    async with FakeKubernetes() as api, writing(api, tmp_path) as (board, writer):
        api.install(
            "apisix.apache.org/v2", Resource("apisix.apache.org", "apisixroutes", "ApisixRoute", is_custom=True)
        )
        api.apply(ROUTE)
        for _ in range(2):
            await board.post(of_route(condition()))
            await until(lambda: len(conditions_of_route(api)) == 1 and writer.pending == 0)
        assert len(api.seen("patch")) == 1


@in_virtual_time
async def test_what_another_controller_says_of_a_resource_of_apisix_stays_once_it_is_not_ours(tmp_path: Path) -> None:
    async with FakeKubernetes() as api, writing(api, tmp_path) as (board, writer):
        api.install(
            "apisix.apache.org/v2", Resource("apisix.apache.org", "apisixroutes", "ApisixRoute", is_custom=True)
        )
        api.apply(ROUTE)
        api.set_status("apisixroutes", "web", {"conditions": [FOREIGN]})
        await board.post(of_route(is_accepted=False))
        await until(lambda: writer.pending == 0)
        assert conditions_of_route(api) == [FOREIGN]


@in_virtual_time
async def test_a_condition_keeps_its_time_while_its_status_stays(tmp_path: Path) -> None:
    async with FakeKubernetes() as api, writing(api, tmp_path) as (board, _):
        api.apply(service("web"))
        await board.post(of_service(conditions=(condition("False", "one"),)))
        await until(lambda: len(conditions(api)) == 1)
        await board.post(of_service(conditions=(condition("False", "two", since=60),)))
        await until(lambda: conditions(api)[0]["message"] == "two")
        assert conditions(api)[0]["lastTransitionTime"] == "2026-03-01T12:00:00Z"
        await board.post(of_service(conditions=(condition("True", since=60),)))
        await until(lambda: conditions(api)[0]["status"] == "True")
        assert conditions(api)[0]["lastTransitionTime"] == "2026-03-01T12:01:00Z"


@in_virtual_time
async def test_conditions_that_are_there_are_not_written_again(tmp_path: Path) -> None:
    board = MemoryStatusBoard()
    async with FakeKubernetes() as api:
        api.apply(service("web"))
        await board.post(of_service(conditions=(condition(),)))
        for _ in range(3):
            async with writing(api, tmp_path, board) as (_, writer):
                await until(lambda: bool(conditions(api)) and writer.pending == 0)
        assert len(api.seen("patch")) == 1


@in_virtual_time
async def test_a_service_that_is_not_ours_any_more_loses_our_conditions_only(tmp_path: Path) -> None:
    async with FakeKubernetes() as api, writing(api, tmp_path) as (board, _):
        api.apply(service("web"))
        api.set_status("services", "web", {"conditions": [FOREIGN]})
        await board.post(of_service(conditions=(condition(),)))
        await until(lambda: len(conditions(api)) == 2)
        await board.post(of_service(is_accepted=False))
        await until(lambda: conditions(api) == [FOREIGN])


@in_virtual_time
async def test_a_condition_that_another_controller_wrote_meanwhile_is_not_lost(tmp_path: Path) -> None:
    async with FakeKubernetes() as api, writing(api, tmp_path) as (board, _):
        api.apply(service("web"))

        async def change_meanwhile(request: Any) -> Any:
            api.set_status("services", "web", {"conditions": [FOREIGN]})
            return await api.serve(request, api.requests[-1])

        api.faults.add(change_meanwhile, verb="patch")
        await board.post(of_service(conditions=(condition(),)))
        await until(lambda: len(conditions(api)) == 2)
        assert conditions(api)[0] == FOREIGN


@in_virtual_time
async def test_a_watcher_that_begins_writes_nothing_before_it_has_heard_every_table(tmp_path: Path) -> None:
    at = START - timedelta(hours=2)
    ours = of_service(conditions=(condition(),), at=at)
    theirs = of_service(table="inner", conditions=(condition("False"),), at=at)
    async with FakeKubernetes() as api:
        api.apply(service("web"))
        async with writing(api, tmp_path) as (board, _):
            await board.post(ours)
            await board.post(theirs)
            await until(lambda: [one["status"] for one in conditions(api)] == ["False"])
        api.requests.clear()
        async with writing(api, tmp_path) as (board, writer):
            await board.post(ours)
            await asyncio.sleep(0.3)
            await board.post(theirs)
            await until(lambda: bool(api.seen("get")) and writer.pending == 0)
        assert api.seen("patch") == []
