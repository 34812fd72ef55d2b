"""What should stand in the status of an object by target, parent or listener."""

from datetime import timedelta
from typing import Any

from fakes.translator.facts import BAD, NOW, TWO, facts, programmed
from headgate.common.problems import Problem
from headgate.common.status import (
    AncestorRef,
    ConditionType,
    ListenerRef,
    ListenerReport,
    ParentRef,
    StatusUpdate,
)
from headgate.translator.fragments.status_part import SaidCondition, StatusPart
from headgate.translator.serving.fleet import ClosedPort
from headgate.translator.status.conditions import Facts
from headgate.translator.status.desired import (
    report,
    to_update,
    wanted_by,
)
from headgate.translator.world.last_good import VersionId

# Ancestors of policies

ONE, OTHER = (AncestorRef("", "Service", "default", name) for name in ("one", "two"))

TARGETS = (StatusPart(ONE, "spec.targetRefs[0]"), StatusPart(OTHER, "spec.targetRefs[1]"))

CONFLICT = Problem(reason="Conflicted", field="spec.targetRefs[1]", message="is older")


def ancestors(known: Facts) -> list[tuple[AncestorRef, str, str, str]]:
    return [
        (said.part, said.type, said.status, said.reason)
        for said in report(known, None, TWO, None).conditions
        if said.part is not None
    ]


def test_each_target_of_a_policy_is_told_how_the_policy_stands_there() -> None:
    assert ancestors(facts(CONFLICT, parts=TARGETS)) == [
        (ONE, "Accepted", "True", "Accepted"),
        (ONE, "Programmed", "True", "Programmed"),
        (OTHER, "Accepted", "False", "Conflicted"),
    ]


def test_an_error_of_a_policy_itself_keeps_it_from_all_targets() -> None:
    known = facts(BAD, is_accepted=False, errors=(BAD,), parts=TARGETS)
    assert ancestors(known) == [
        (ONE, "Accepted", "False", "Invalid"),
        (OTHER, "Accepted", "False", "Invalid"),
    ]


def test_while_its_last_good_version_holds_all_targets_are_told_that_the_present_one_does_not() -> None:
    good = VersionId("u", "17", 3, 1)
    found = ancestors(facts(BAD, errors=(BAD,), stand_in=good, parts=TARGETS))
    assert [(ancestor, status, reason) for ancestor, _, status, reason in found] == [
        (ONE, "False", "Invalid"),
        (OTHER, "False", "Invalid"),
    ]


def test_conditions_of_targets_keep_the_time_since_when_they_hold() -> None:
    known = facts(CONFLICT, parts=TARGETS)
    first = to_update(report(known, None, TWO, None), None, NOW, None)
    later = to_update(report(facts(parts=TARGETS), None, TWO, wanted_by(first)), first, NOW + timedelta(1), None)
    times = {(one.part, one.type): one.since for one in later.conditions}
    assert times[ONE, ConditionType.ACCEPTED] == NOW
    assert times[OTHER, ConditionType.ACCEPTED] == NOW + timedelta(1)


def test_a_fault_at_the_eleventh_target_is_not_one_of_the_second() -> None:
    targets = tuple(
        StatusPart(AncestorRef("", "Service", "default", str(n)), f"spec.targetRefs[{n}]") for n in range(12)
    )
    conflict = Problem(reason="Conflicted", field="spec.targetRefs[11].name", message="is older")
    refused = [part.name for part, type_, status, _ in ancestors(facts(conflict, parts=targets)) if status == "False"]
    assert refused == ["11"]


# Parents of routes and listeners of Gateways

HTTP, HTTPS = (ParentRef("gateway.networking.k8s.io", "Gateway", "infra", "edge", name) for name in ("http", "https"))

PARENTS = (StatusPart(HTTP, "spec.parentRefs[0]"), StatusPart(HTTPS, "spec.parentRefs[1]"))

LISTENERS = (StatusPart(ListenerRef("http"), "spec.listeners[0]"), StatusPart(ListenerRef("db"), "spec.listeners[1]"))


def parts(known: Facts, ref: Any) -> list[tuple[str, str, str]]:
    wanted = report(known, None, TWO, None)
    return [(said.type, said.status, said.reason) for said in wanted.conditions if said.part == ref]


def test_a_route_stands_by_parent() -> None:
    refused = Problem(reason="NotAllowedByListeners", field="spec.parentRefs[1]", message="takes other namespaces")
    known = facts(refused, parts=PARENTS)
    served = [
        ("Accepted", "True", "Accepted"),
        ("Programmed", "True", "Programmed"),
        ("ResolvedRefs", "True", "ResolvedRefs"),
    ]
    assert parts(known, HTTP) == served
    assert parts(known, HTTPS) == [
        ("Accepted", "False", "NotAllowedByListeners"),
        ("ResolvedRefs", "True", "ResolvedRefs"),
    ]


def test_a_missing_backend_of_a_route_is_said_at_each_parent_and_the_route_is_accepted_there() -> None:
    missing = Problem(reason="BackendNotFound", field="spec.rules[0].backendRefs[0].name", message="no Service")
    known = facts(missing, unresolved=(missing,), parts=PARENTS)
    for parent in (HTTP, HTTPS):
        said = parts(known, parent)
        assert ("Accepted", "True", "Accepted") in said
        assert ("ResolvedRefs", "False", "BackendNotFound") in said


def test_what_a_dialect_says_of_a_part_goes_before_what_follows_from_problems() -> None:
    said = (
        SaidCondition(ConditionType.CONFLICTED, "True", "HostnameConflict", "http has the host"),
        SaidCondition(ConditionType.ACCEPTED, "False", "HostnameConflict", "http has the host"),
    )
    known = facts(parts=(LISTENERS[0], LISTENERS[1]._replace(said=said)))
    assert ("Conflicted", "True", "HostnameConflict") in parts(known, ListenerRef("db"))
    assert ("Accepted", "False", "HostnameConflict") in parts(known, ListenerRef("db"))
    assert [one[1] for one in parts(known, ListenerRef("http"))] == ["True", "True", "True"]
    wanted = report(known, None, TWO, None)
    assert programmed(wanted) == ("True", "Programmed")


def test_a_part_keeps_its_time_and_its_type_in_a_message() -> None:
    listeners = (ListenerReport(name="http", attached_routes=2),)
    known = facts(parts=(*LISTENERS, *PARENTS), listeners=listeners)
    first = to_update(report(known, None, TWO, None), None, NOW, None)
    again = StatusUpdate.model_validate_json(first.model_dump_json())
    later = to_update(wanted_by(again), again, NOW + timedelta(hours=1), None)
    assert (later.conditions, later.listeners) == (first.conditions, listeners)
    assert {one.part for one in later.conditions} == {None, HTTP, HTTPS, ListenerRef("http"), ListenerRef("db")}


# Ports of listeners


def test_a_listener_whose_port_a_replica_could_not_open_is_not_programmed() -> None:
    reports = (ListenerReport(name="http"), ListenerReport(name="db", port=9000))
    known = facts(parts=LISTENERS, listeners=reports)
    in_use = ClosedPort(9000, "0.0.0.0", "g1", "Address already in use")
    closed = TWO._replace(closed=(in_use, ClosedPort(9001, "0.0.0.0", "g1", "taken")))
    wanted = report(known, None, closed, None)
    said = {one.part: one for one in wanted.conditions if one.type is ConditionType.PROGRAMMED}
    assert said[ListenerRef("http")].status == "True"
    found = said[ListenerRef("db")]
    assert (found.status, found.reason) == ("False", "PortUnavailable")
    assert found.message == "port 9000 is not open at g1: Address already in use"


def test_a_port_that_is_closed_at_another_address_than_a_listeners_is_no_matter_of_it() -> None:
    reports = (ListenerReport(name="http"), ListenerReport(name="db", port=9000, addresses=("192.0.2.1",)))
    known = facts(parts=LISTENERS, listeners=reports)
    for address, is_udp, status in (
        ("192.0.2.1", False, "False"),
        ("192.0.2.2", False, "True"),
        ("192.0.2.1", True, "True"),
    ):
        wanted = report(known, None, TWO._replace(closed=(ClosedPort(9000, address, "g1", "taken", is_udp),)), None)
        said = {one.part: one.status for one in wanted.conditions if one.type is ConditionType.PROGRAMMED}
        assert said[ListenerRef("db")] == status
