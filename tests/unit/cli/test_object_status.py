"""`headgate status KIND/NAMESPACE/NAME`: what is said of one object."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headgate.cli.__main__ import main
from headgate.cli.running.object_status import print_object
from headgate.cli.terminal.errors import ExitCode
from headgate.common.heartbeats import Heartbeat
from headgate.common.problems import Problem
from headgate.common.resources import ObjectRef
from headgate.common.snapshot import Version
from headgate.common.status import (
    AncestorRef,
    ConditionType,
    EventNote,
    ListenerRef,
    LoadBalancerAddress,
    ParentRef,
    ServedVersion,
    StatusCondition,
    StatusUpdate,
)
from headgate.operations.errors import InvalidRequest
from headgate.operations.status.objects import ObjectName, Served, as_document, is_well, parse_object, present_only

NOW = datetime.now(UTC)
REF = ObjectRef("paris", "networking.k8s.io", "ingresses", "shop", "web")
BAD = Problem(reason="InvalidPath", field="spec.rules[0]", message="must start with '/'")
ERROR = EventNote(type="Warning", reason="InvalidPath", note=str(BAD), at=NOW - timedelta(hours=5))
R1, R2 = Version(7, 1), Version(7, 2)


def update(**changes: Any) -> StatusUpdate:
    conditions = tuple(
        StatusCondition(type=kind, status="True", reason=kind, since=NOW - timedelta(hours=3)) for kind in ConditionType
    )
    values = {
        "ref": REF,
        "api_version": "networking.k8s.io/v1",
        "kind": "Ingress",
        "uid": "u",
        "generation": 4,
        "is_accepted": True,
        "addresses": (LoadBalancerAddress(ip="192.0.2.1"),),
        "conditions": conditions,
        "revision": R2,
        "at": NOW,
    }
    return StatusUpdate(**values | changes)


def beat(replica: str, version: Version | None, worker: int = 0, **changes: Any) -> Heartbeat:
    values = {"replica": replica, "worker": worker, "table": "default", "version": version, "at": NOW}
    return Heartbeat(**values | changes)


def printed(capsys: pytest.CaptureFixture[str], *updates: StatusUpdate, heartbeats: Any = ()) -> str:
    print_object(updates, heartbeats)
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ingress/shop/web", ObjectName("ingress", "shop", "web")),
        ("Ing/shop/web", ObjectName("ingress", "shop", "web")),
        ("svc/web", ObjectName("service", "default", "web")),
    ],
)
def test_objects_are_named_as_kubectl_names_them(text: str, expected: ObjectName) -> None:
    assert parse_object(text) == expected


@pytest.mark.parametrize("text", ["web", "pod/shop/web", "ingress/", "ingress/shop/", "ingress/a/b/c"])
def test_what_names_no_object_is_refused_with_what_would(text: str) -> None:
    with pytest.raises(InvalidRequest, match="write KIND/NAMESPACE/NAME"):
        parse_object(text)


def test_an_object_is_found_by_kind_namespace_and_name_in_every_cluster() -> None:
    name = parse_object("ingress/shop/web")
    assert name.is_meant(update())
    assert name.is_meant(update(ref=REF._replace(cluster="rome", group="extensions")))
    assert not name.is_meant(update(ref=REF._replace(namespace="default")))
    assert not name.is_meant(update(ref=REF._replace(group="", resource="services")))


def test_a_replica_serves_a_revision_when_all_its_workers_do() -> None:
    beats = [beat("g1", R2), beat("g1", R1, 1), beat("g2", R2), beat("g3", None), beat("g4", R2, pinned=R1)]
    assert Served.of(R2, beats) == Served(("g2",), ("g1", "g3", "g4"))
    assert Served.of(None, beats).by == ()


def test_the_answer_says_where_it_is_served_and_since_when(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, update(), heartbeats=[beat("g1", R2), beat("g2", R1)])
    assert "Ingress shop/web in cluster paris" in text
    assert "revision:   7.2, served by 1 of 2 replicas; not by g2" in text
    assert "addresses:  192.0.2.1" in text
    assert "Programmed" in text
    assert "3h" in text


def test_the_answer_says_what_is_served_in_place_of_a_version_with_errors(capsys: pytest.CaptureFixture[str]) -> None:
    held = update(
        problems=(BAD,),
        stand_in=ServedVersion(resource_version="812", generation=3),
        last_error=ERROR,
        events=(ERROR,),
    )
    text = printed(capsys, held)
    assert "served:     as of generation 3, resourceVersion 812, which was last good" in text
    assert "last error: 5h ago: spec.rules[0]: must start with '/'" in text
    assert "no gateway announces itself" in text


def test_conditions_of_a_part_say_which(capsys: pytest.CaptureFixture[str]) -> None:
    service = AncestorRef("", "Service", "shop", "web", "http")
    gateway = ParentRef("gateway.networking.k8s.io", "Gateway", "infra", "edge")
    conditions = tuple(
        StatusCondition.of(part, type=ConditionType.ACCEPTED, status="True", reason="Accepted", since=NOW)
        for part in (None, service, gateway, ListenerRef("https"))
    )
    shown = printed(capsys, update(conditions=conditions))
    names = ("Accepted", "Accepted of Service web:http", "Accepted of Gateway edge", "Accepted of listener https")
    assert all(f"{name}  " in shown for name in names)


def test_an_error_that_was_mended_is_still_told_as_the_last_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert "5h ago, not any more: spec.rules[0]" in printed(capsys, update(last_error=ERROR))


def test_an_object_that_is_gone_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, update(is_accepted=False, conditions=(), revision=None, addresses=None))
    assert "no: it is gone, or not one of ours" in text


def test_each_cluster_has_its_own_answer(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, update(), update(ref=REF._replace(cluster="rome")))
    assert text.index("cluster paris") < text.index("cluster rome")


def test_json_says_everything_but_what_machines_keep_for_themselves() -> None:
    (document,) = as_document([update()], [beat("g1", R2)])
    assert document["served_by"] == ["g1"]
    assert document["revision"] == [7, 2]
    assert not {"content", "traceparent"} & document.keys()


@pytest.mark.parametrize(
    ("changes", "version", "expected"),
    [
        ({}, R2, True),
        ({}, R1, False),
        ({"problems": (BAD,)}, R2, False),
        ({"is_accepted": False, "revision": None}, R2, False),
    ],
)
def test_all_is_well_where_all_replicas_serve_it_as_it_is_written(
    changes: dict[str, Any], version: Version, expected: bool
) -> None:
    assert is_well([update(**changes)], [beat("g1", version)]) is expected


def test_a_wrong_name_ends_the_command_with_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "web"]) == ExitCode.USAGE
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("headgate: 'web' names no object")


def let_go(table: str) -> StatusUpdate:
    return update(table=table, conditions=(), addresses=(), is_accepted=False, revision=None)


def test_each_table_is_shown_with_the_replicas_that_serve_it(capsys: pytest.CaptureFixture[str]) -> None:
    beats = (beat("edge", R2), beat("inner", R1, table="tenant"))
    text = printed(capsys, update(), update(table="tenant"), heartbeats=beats)
    assert "in cluster paris\n" in text
    assert "in cluster paris, table tenant\n" in text
    assert "7.2, served by 1 of 1 replicas" in text
    assert "7.2, served by 0 of 1 replicas; not by inner" in text
    assert is_well([update()], beats)
    assert not is_well([update(), update(table="tenant")], beats)


def test_tables_that_have_let_an_object_go_are_not_shown_unless_all_have() -> None:
    assert [one.table for one in present_only([let_go("a"), update(table="b"), update()])] == ["default", "b"]
    assert [one.table for one in present_only([let_go("a"), let_go("default")])] == ["default", "a"]


def test_an_object_is_not_well_while_a_shard_has_no_gateway(capsys: pytest.CaptureFixture[str]) -> None:
    beats = [beat("g1", R2, shard="0/2")]
    assert Served.of(R2, beats) == Served(("g1",), (), ("1/2",))
    assert not is_well([update()], beats)
    assert is_well([update()], [*beats, beat("g2", R2, shard="1/2")])
    assert "served by 1 of 1 replicas; no gateway serves shard 1/2" in printed(capsys, update(), heartbeats=beats)
