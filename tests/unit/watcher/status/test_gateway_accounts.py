"""The ServiceAccount of a Gateway, against the fake API server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from fakes.kubernetes.api import FakeKubernetes, Resource
from fakes.kubernetes.status_writing import condition, now, writing
from fakes.translator.gateway_api import GROUP, gateway, listener
from fakes.virtual_time import in_virtual_time
from fakes.waiting import until
from headgate.common.resources import GATEWAY, ObjectRef
from headgate.common.status import StatusUpdate
from headgate.common.stores.memory.boards import MemoryStatusBoard
from headgate.watcher.status.accounts import GATEWAY_NAME, account_of
from headgate.watcher.status.writer import StatusWriter

ACCOUNTS = "serviceaccounts"
ASKED = {"infrastructure": {"labels": {"team": "shop"}, "annotations": {"cost": "7"}}}


@asynccontextmanager
async def cluster(
    tmp_path: Path, **settings: Any
) -> AsyncIterator[tuple[FakeKubernetes, MemoryStatusBoard, StatusWriter]]:
    async with FakeKubernetes() as api:
        api.install("v1", Resource("", ACCOUNTS, "ServiceAccount"))
        api.install(f"{GROUP}/v1", Resource(GATEWAY.group, GATEWAY.resource, GATEWAY.kind, is_custom=True))
        async with writing(api, tmp_path, makes_accounts=True, **settings) as (board, writer):
            yield api, board, writer


def apply(api: FakeKubernetes, spec: Any = ASKED) -> Any:
    written = gateway(listener(), spec=spec)
    metadata = {"name": "gw", "namespace": "default"}
    return api.apply({**written, "apiVersion": f"{GROUP}/v1", "metadata": metadata})


async def tell(api: FakeKubernetes, board: MemoryStatusBoard, writer: StatusWriter, generation: int = 1) -> None:
    """Post a status of the Gateway and wait until all that follows from it is written."""
    await board.post(status(generation))

    def is_written() -> bool:
        conditions = api.get("gateways", "gw").get("status", {}).get("conditions", [])
        return [one["observedGeneration"] for one in conditions] == [generation] and writer.pending == 0

    await until(is_written)


def status(generation: int = 1, **changes: Any) -> StatusUpdate:
    said = {"api_version": f"{GROUP}/v1", "kind": "Gateway", "uid": "", "generation": generation, "at": now()}
    ref = ObjectRef("east", GROUP, "gateways", "default", "gw")
    return StatusUpdate(**{"ref": ref, "is_accepted": True, "conditions": (condition(),), **said, **changes})


def names(api: FakeKubernetes) -> list[str]:
    return [one["metadata"]["name"] for one in api.all(ACCOUNTS)]


@in_virtual_time
async def test_a_gateway_gets_an_account_that_it_owns_with_its_labels_and_annotations(tmp_path: Path) -> None:
    async with cluster(tmp_path) as (api, board, writer):
        owner = apply(api)
        await tell(api, board, writer)
        made = api.get(ACCOUNTS, "gw-edge")
        assert made["metadata"]["labels"] | {"team": "shop", GATEWAY_NAME: "gw"} == made["metadata"]["labels"]
        assert made["metadata"]["annotations"]["cost"] == "7"
        assert [one["uid"] for one in made["metadata"]["ownerReferences"]] == [owner["metadata"]["uid"]]
        assert made["automountServiceAccountToken"] is False


@in_virtual_time
async def test_what_a_gateway_wants_no_more_goes_and_what_others_set_stays(tmp_path: Path) -> None:
    async with cluster(tmp_path) as (api, board, writer):
        apply(api)
        await tell(api, board, writer)
        made = api.get(ACCOUNTS, "gw-edge")
        made["metadata"]["labels"]["theirs"] = "1"
        api.apply(made)
        apply(api, {"infrastructure": {"labels": {"stage": "b"}}})
        await tell(api, board, writer, 2)
        metadata = api.get(ACCOUNTS, "gw-edge")["metadata"]
        assert {name: metadata["labels"].get(name) for name in ("team", "stage", "theirs")} == {
            "team": None,
            "stage": "b",
            "theirs": "1",
        }
        assert "cost" not in metadata["annotations"]


@in_virtual_time
async def test_a_status_alone_is_no_reason_to_ask_for_the_account_again(tmp_path: Path) -> None:
    async with cluster(tmp_path) as (api, board, writer):
        apply(api)
        await tell(api, board, writer)
        before = len(api.seen(resource=ACCOUNTS))
        await tell(api, board, writer, 2)
        assert len(api.seen(resource=ACCOUNTS)) == before > 0


@in_virtual_time
async def test_an_account_of_somebody_else_is_left_alone_and_an_event_says_so(tmp_path: Path) -> None:
    async with cluster(tmp_path) as (api, board, writer):
        apply(api)
        theirs = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "gw-edge", "namespace": "default"}}
        before = api.apply(theirs)
        await tell(api, board, writer)
        assert api.get(ACCOUNTS, "gw-edge") == before
        (event,) = api.events()
        assert (event["type"], event["reason"], event["regarding"]["name"]) == (
            "Warning",
            "InfrastructureNotMade",
            "gw",
        )


@in_virtual_time
async def test_a_missing_right_holds_no_status_back(tmp_path: Path) -> None:
    async with cluster(tmp_path) as (api, board, writer):
        apply(api)
        api.forbid(ACCOUNTS)
        await board.post(status())
        await until(lambda: bool(api.get("gateways", "gw").get("status", {}).get("conditions")))
        await until(lambda: any("ServiceAccount" in one for one in writer.troubles))
        api.allow(ACCOUNTS)
        await until(lambda: names(api) == ["gw-edge"], within_s=600)


@in_virtual_time
async def test_a_gateway_of_another_controller_gets_none(tmp_path: Path) -> None:
    async with cluster(tmp_path) as (api, board, writer):
        apply(api)
        await board.post(status(conditions=()))
        await until(lambda: bool(api.seen("get", "gateways")) and writer.pending == 0)
        assert names(api) == []


@pytest.mark.parametrize("length", [54, 63, 64, 253])
def test_names_of_any_length_give_names_and_labels_that_are_taken(length: int) -> None:
    one, other = ("a" * (length - 1) + end for end in "bc")
    made = [account_of(gateway(name=name, namespace="default"))["metadata"] for name in (one, other)]
    assert all(len(each["name"]) <= 253 and len(each["labels"][GATEWAY_NAME]) <= 63 for each in made)
    assert made[0]["name"] != made[1]["name"]
    assert made[0]["labels"][GATEWAY_NAME] != made[1]["labels"][GATEWAY_NAME]


def test_labels_that_a_gateway_wants_do_not_replace_those_that_it_is_found_by() -> None:
    made = account_of(gateway(name="gw", spec={"infrastructure": {"labels": {GATEWAY_NAME: "other"}}}))
    assert made["metadata"]["labels"][GATEWAY_NAME] == "gw"
