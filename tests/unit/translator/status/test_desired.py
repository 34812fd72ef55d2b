"""What should stand in a status, as a pure function of what is known."""

from datetime import timedelta
from typing import Any

import pytest

from fakes.translator.facts import BAD, IDENTITY, NOW, R1, R2, R3, TWO, facts, programmed, told
from headgate.common.heartbeats import Heartbeat
from headgate.common.problems import Problem, Severity
from headgate.common.snapshot import Rollout, RolloutPhase, Version
from headgate.common.status import (
    ConditionType,
    LoadBalancerAddress,
    StatusUpdate,
    shorten,
)
from headgate.translator.fragments.fragment import Identity
from headgate.translator.serving.fleet import ClosedPort, Fleet, Replica
from headgate.translator.status.conditions import Facts
from headgate.translator.status.desired import (
    MAX_PROBLEMS,
    DesiredStatus,
    disown,
    forget,
    has_news,
    limit,
    report,
    to_update,
    wanted_by,
)
from headgate.translator.world.last_good import VersionId

GONE = Problem(reason="ServiceNotFound", message="Service x not found")

ODD = Problem(severity=Severity.WARNING, reason="Odd", message="odd")

LOST = Problem(reason="PathConflict", message="belongs to another")

EDGE, NEW = LoadBalancerAddress(ip="192.0.2.1"), LoadBalancerAddress(hostname="edge.example")


def accepted(known: Facts) -> tuple[str, str, str]:
    said = told(report(known, None, TWO, None), ConditionType.ACCEPTED)
    return said.status, said.reason, said.message


def test_addresses_that_another_controller_writes_are_left_alone() -> None:
    known = facts()
    assert report(known, (EDGE,), TWO, None).addresses == (EDGE,)
    left = known._replace(leaves_addresses=True)
    assert report(left, (EDGE,), TWO, None).addresses is None
    assert report(left, (EDGE,), TWO, report(known, (EDGE,), TWO, None)).addresses is None


# Accepted, ResolvedRefs


def test_an_object_without_problems_is_accepted_with_its_references_resolved() -> None:
    wanted = report(facts(), None, TWO, None)
    assert [(said.status, said.reason) for said in wanted.conditions] == [
        ("True", "Accepted"),
        ("True", "ResolvedRefs"),
        ("True", "Programmed"),
    ]
    assert wanted.generation == 4


def test_an_object_with_errors_that_is_served_is_accepted_in_part() -> None:
    assert accepted(facts(LOST, ODD))[:2] == ("True", "ServedInPart")


def test_what_it_refers_to_counts_as_a_reference_and_not_against_acceptance() -> None:
    wanted = report(facts(GONE, unresolved=(GONE,)), None, TWO, None)
    assert told(wanted, ConditionType.ACCEPTED).status == "True"
    said = told(wanted, ConditionType.RESOLVED_REFS)
    assert (said.status, said.reason, said.message) == ("False", "ServiceNotFound", "Service x not found")


def test_a_version_that_another_one_stands_in_for_is_not_accepted_and_says_what_is_served() -> None:
    known = facts(BAD, errors=(BAD,), stand_in=VersionId("u", "812", 3, 5))
    status, reason, message = accepted(known)
    assert (status, reason) == ("False", "Invalid")
    assert message == (
        "spec.ports[0].port: must be a number; generation 3, resourceVersion 812 stays in force until this is mended"
    )
    wanted = report(known, None, TWO, None)
    assert wanted.stand_in is not None
    assert (wanted.stand_in.generation, wanted.stand_in.resource_version) == (3, "812")
    assert wanted.is_accepted


@pytest.mark.parametrize(("problems", "errors", "reason"), [((BAD,), (BAD,), "Invalid"), ((LOST,), (), "PathConflict")])
def test_an_object_of_which_nothing_is_served_says_why(
    problems: tuple[Problem, ...], errors: tuple[Problem, ...], reason: str
) -> None:
    known = facts(*problems, is_accepted=False, errors=errors)
    assert accepted(known) == ("False", reason, str(problems[0]))
    assert programmed(report(known, (EDGE,), TWO, None)) == ("False", "NotAccepted")
    assert report(known, (EDGE,), TWO, None).addresses == ()


# Programmed


def test_a_revision_that_a_replica_lacks_is_pending_and_names_it() -> None:
    fleet = Fleet((Replica("g1", R2), Replica("g2", R1)))
    said = told(report(facts(), None, fleet, None), ConditionType.PROGRAMMED)
    assert (said.status, said.reason) == ("False", "Pending")
    assert said.message == "revision 7.2 is served by 1 of 2 replicas; not yet by g2"


def test_without_replicas_nobody_knows() -> None:
    assert programmed(report(facts(), None, Fleet(), None)) == ("Unknown", "NoReplicas")


def test_the_revision_of_an_unchanged_object_stays_as_the_table_goes_on() -> None:
    before = report(facts(), None, TWO, None)
    after = report(facts(version=R3), None, TWO, before)
    assert after == before
    assert after.revision == R2


def test_changed_content_has_the_revision_that_it_came_with() -> None:
    before = report(facts(), None, TWO, None)
    after = report(facts(content="c2", version=R3), None, TWO, before)
    assert after.revision == R3
    assert programmed(after) == ("False", "Pending")


def test_an_object_that_was_not_accepted_before_has_a_revision_of_its_own() -> None:
    before = report(facts(LOST, is_accepted=False), None, TWO, None)
    assert before.revision is None
    assert report(facts(version=R3), None, TWO, before).revision == R3


def test_more_or_fewer_replicas_are_no_news_of_what_all_of_them_serve() -> None:
    before = report(facts(), None, TWO, None)
    assert report(facts(), None, Fleet((Replica("g3", R3),)), before) == before
    assert report(facts(), None, Fleet(), before) == before


def test_a_replica_that_falls_behind_is_news() -> None:
    before = report(facts(), None, TWO, None)
    assert programmed(report(facts(), None, Fleet((Replica("g3", R1),)), before)) == ("False", "Pending")


def test_what_came_after_the_revision_of_a_pin_waits_for_its_end() -> None:
    assert programmed(report(facts(pinned=R1), None, TWO, None)) == ("False", "TablePinned")
    assert programmed(report(facts(pinned=R2), None, TWO, None)) == ("True", "Programmed")


def rolling(**changes: Any) -> Rollout:
    """R1 is served by all but `g1`, which serves R2."""
    values: dict[str, Any] = {"target": R2, "begun": R2, "shares": (10.0,), "since": NOW, "replicas": ("g1",)}
    return Rollout(base=R1, **values | changes)


HELD = {"phase": RolloutPhase.HELD, "replicas": (), "reason": "errors 4.2% of 1,310 requests"}


@pytest.mark.parametrize(
    ("rollout", "version", "reason", "message"),
    [
        (rolling(), R2, "RollingOut", "revision 7.2 goes to 1 of 2 replicas first: g1"),
        (rolling(), R3, "RollingOut", "revision 7.3 waits until 7.2, now on g1, is served by all"),
        (
            rolling(**HELD),
            R3,
            "HeldBack",
            "revision 7.3 is served nowhere: taken back with 7.2: errors 4.2% of 1,310 requests",
        ),
        (
            rolling(**HELD, by="ann"),
            R2,
            "HeldBack",
            "revision 7.2 is served nowhere: taken back with 7.2 by ann: errors 4.2% of 1,310 requests",
        ),
    ],
)
def test_what_is_rolled_out_or_waits_or_was_taken_back_says_so(
    rollout: Rollout, version: Version, reason: str, message: str
) -> None:
    said = told(report(facts(version=version, rollout=rollout), None, TWO, None), ConditionType.PROGRAMMED)
    assert (said.status, said.reason, said.message) == ("False", reason, message)


def test_what_all_served_before_a_rollout_is_programmed() -> None:
    before = report(facts(version=R1), None, TWO, None)
    assert programmed(report(facts(version=R2, rollout=rolling()), None, TWO, before)) == ("True", "Programmed")


def test_an_object_that_was_taken_back_gets_an_event_once() -> None:
    first = update(report(facts(version=R1), None, TWO, None))
    changed = facts(version=R2, rollout=rolling(), content="c2")
    rolled = update(report(changed, None, TWO, wanted_by(first)), first, 1)
    held = changed._replace(rollout=rolling(**HELD))
    back = update(report(held, None, TWO, wanted_by(rolled)), rolled, 2)
    again = update(report(held, None, TWO, wanted_by(back)), back, 3)
    assert reasons(back)[-1] == "HeldBack"
    assert reasons(back).count("HeldBack") == reasons(again).count("HeldBack") == 1


def test_in_a_rollout_each_replica_serves_what_it_says() -> None:
    assert Fleet.of([beat("g1", R3, routes=R2), beat("g2", R3, routes=R1)], "t").least == R1


def beat(replica: str, version: Version | None, worker: int = 0, **changes: Any) -> Heartbeat:
    return Heartbeat(replica=replica, worker=worker, table="t", version=version, at=NOW, **changes)


def test_a_replica_serves_what_its_slowest_worker_serves() -> None:
    beats = [beat("g1", R2), beat("g1", R1, worker=1), beat("g2", R3)]
    assert Fleet.of(beats, "t") == Fleet((Replica("g1", R1), Replica("g2", R3)))


def test_ports_that_replicas_could_not_open_are_known_once_for_each() -> None:
    told = ("http://0.0.0.0:9000 not open: taken",)
    beats = [beat("g2", R2, listeners=told), beat("g1", R2, listeners=told), beat("g1", R2, worker=1, listeners=told)]
    assert Fleet.of(beats, "t").closed == (
        ClosedPort(9000, "0.0.0.0", "g1", "taken"),
        ClosedPort(9000, "0.0.0.0", "g2", "taken"),
    )


def test_a_replica_that_starts_and_one_of_another_table_do_not_count() -> None:
    beats = [
        beat("g1", R2),
        beat("g1", None, worker=1),
        beat("g2", R3),
        beat("g3", R1).model_copy(update={"table": "o"}),
    ]
    assert Fleet.of(beats, "t") == Fleet((Replica("g2", R3),))


def test_a_replica_of_a_pinned_table_serves_the_old_revision() -> None:
    assert Fleet.of([beat("g1", R3, pinned=R1)], "t").least == R1


def sharded(*beats: tuple[str, str, Version | None]) -> Fleet:
    return Fleet.of([beat(name, version, shard=shard) for name, shard, version in beats], "t")


def test_an_object_waits_for_a_gateway_of_every_shard() -> None:
    fleet = sharded(("g1", "0/2", R2), ("g2", "1/2", None))
    wanted = report(facts(), None, fleet, None)
    assert programmed(wanted) == ("False", "ShardWithoutGateway")
    assert told(wanted, ConditionType.PROGRAMMED).message == (
        "no gateway serves shard 1/2, and revision 7.2 may have hosts of it"
    )
    assert fleet.lacking(R2) == ("shard 1/2",)
    both = sharded(("g1", "0/2", R2), ("g2", "1/2", R2))
    assert programmed(report(facts(), None, both, wanted)) == ("True", "Programmed")


def test_a_shard_that_lags_is_waited_for() -> None:
    fleet = sharded(("g1", "0/2", R2), ("g2", "1/2", R1))
    assert programmed(report(facts(), None, fleet, None)) == ("False", "Pending")
    assert fleet.lacking(R2) == ("g2",)


def test_gateways_of_other_counts_stand_in_for_shards() -> None:
    assert sharded(("g1", "0/2", R2), ("g2", "2/4", R2), ("g3", "3/4", R2)).missing == ()
    assert sharded(("g1", "0/2", R2), ("g2", "", R2)).missing == ()
    assert list(map(str, sharded(("g1", "0/2", R2), ("g2", "2/4", R2)).missing)) == ["3/4"]


def test_what_was_programmed_stays_so_when_the_gateways_of_a_shard_go() -> None:
    before = report(facts(), None, sharded(("g1", "0/2", R2), ("g2", "1/2", R2)), None)
    assert programmed(report(facts(), None, sharded(("g1", "0/2", R2)), before)) == ("True", "Programmed")


# Addresses


def test_addresses_that_are_no_longer_wanted_are_remembered_as_ours() -> None:
    before = report(facts(), (EDGE,), TWO, None)
    after = report(facts(), (NEW,), TWO, before)
    assert (after.addresses, after.withdrawn) == ((NEW,), (EDGE,))
    back = report(facts(), (EDGE,), TWO, after)
    assert (back.addresses, back.withdrawn) == ((EDGE,), (NEW,))


def test_an_object_that_is_no_longer_ours_has_all_its_addresses_withdrawn() -> None:
    gone = disown(report(facts(), (EDGE,), TWO, None))
    assert (gone.is_accepted, gone.addresses, gone.withdrawn) == (False, (), (EDGE,))
    assert (gone.conditions, gone.revision) == ((), None)


def test_addresses_that_are_not_known_now_stay_as_they_were() -> None:
    before = report(facts(), (EDGE,), TWO, None)
    assert report(facts(), None, TWO, before).addresses == (EDGE,)


# What is told


def update(wanted: DesiredStatus, before: StatusUpdate | None = None, after_s: float = 0) -> StatusUpdate:
    return to_update(wanted, before, NOW + timedelta(seconds=after_s), None)


def reasons(said: StatusUpdate) -> list[str]:
    return [note.reason for note in said.events]


def test_an_update_says_what_it_was_made_from() -> None:
    wanted = report(facts(BAD, ODD, errors=(BAD,)), (EDGE,), TWO, None)
    assert wanted_by(update(wanted)) == wanted
    assert wanted_by(StatusUpdate.model_validate_json(update(wanted).model_dump_json())) == wanted


@pytest.mark.parametrize("found", [(), (BAD, ODD)], ids=["all right", "wrong"])
def test_an_update_is_as_if_it_had_been_validated(found: tuple[Problem, ...]) -> None:
    made = update(report(facts(*found), (EDGE,), TWO, None))
    again = StatusUpdate.decode(made.encode(), made.ref, made.table)
    assert again == made
    assert again.encode() == made.encode()


def test_acceptance_and_problems_are_told_with_the_revision_that_serves() -> None:
    said = update(report(facts(BAD, errors=(BAD,)), None, TWO, None))
    assert reasons(said) == ["Accepted", "InvalidPort"]
    assert said.events[0].note == (
        "Served in part: 1 of its fields have errors; revision 7.2 was served by all 2 replicas when this was written"
    )


def test_only_what_is_new_is_told_and_what_was_told_lately_is_repeated_for_who_missed_it() -> None:
    first = update(report(facts(BAD, errors=(BAD,)), None, TWO, None))
    second = update(report(facts(BAD, ODD, errors=(BAD,)), None, TWO, wanted_by(first)), first, 60)
    assert reasons(second) == ["Accepted", "InvalidPort", "Odd"]
    third = update(report(facts(), None, TWO, wanted_by(second)), second, 3700)
    assert reasons(third) == []


def test_a_change_that_all_replicas_serve_is_told_once() -> None:
    first = update(report(facts(), None, TWO, None))
    fleet = Fleet((Replica("g1", R3),))
    second = update(report(facts(content="c2", version=R3), None, fleet, wanted_by(first)), first, 60)
    assert reasons(second) == ["Accepted", "Programmed"]


def test_a_condition_says_since_when_it_holds() -> None:
    first = update(report(facts(), None, Fleet(), None))
    second = update(report(facts(), None, TWO, wanted_by(first)), first, 60)
    since = {condition.type: condition.since for condition in second.conditions}
    assert since[ConditionType.ACCEPTED] == NOW
    assert since[ConditionType.PROGRAMMED] == NOW + timedelta(seconds=60)


def test_the_last_error_outlives_its_cause() -> None:
    first = update(report(facts(BAD, errors=(BAD,)), None, TWO, None))
    mended = update(report(facts(), None, TWO, wanted_by(first)), first, 7200)
    assert mended.problems == ()
    assert mended.last_error is not None
    assert (mended.last_error.reason, mended.last_error.at) == ("InvalidPort", NOW)


def test_an_object_made_anew_has_no_history() -> None:
    first = update(report(facts(BAD, errors=(BAD,)), (EDGE,), TWO, None))
    anew = Identity(IDENTITY.ref, "v1", "Service", "another")
    second = update(report(facts(identity=anew), None, TWO, wanted_by(first)), first, 60)
    assert (second.withdrawn, second.last_error, reasons(second)) == ((), None, ["Accepted"])


def test_a_deleted_object_leaves_nothing_to_tell() -> None:
    wanted = forget(report(facts(BAD, errors=(BAD,)), (EDGE,), TWO, None))
    assert (wanted.addresses, wanted.problems, wanted.conditions) == (None, (), ())
    assert update(wanted).events == ()


def test_only_what_is_wrong_and_new_cannot_wait() -> None:
    before = report(facts(ODD), None, TWO, None)
    assert not has_news(report(facts(ODD, content="c2", version=R3), None, TWO, before), before)
    assert has_news(report(facts(ODD, BAD), None, TWO, before), before)


def test_neither_many_nor_long_problems_make_a_status_that_the_bus_refuses() -> None:
    problems = [Problem(reason="Bad", field="f" * 5000, message=f"{number} " + "ä" * 5000) for number in range(200)]
    shown = limit(problems)
    assert len(shown) == MAX_PROBLEMS + 1
    assert shown[-1].message == f"and {200 - MAX_PROBLEMS} more problems"
    said = update(report(facts(*problems, errors=tuple(problems)), None, TWO, None))
    assert len(said.model_dump_json().encode()) < 256 * 1024
    assert all(len(note.note.encode()) <= 1024 for note in said.events)
    assert all(len(condition.message) <= 4096 for condition in said.conditions)


def test_a_text_is_cut_between_characters() -> None:
    assert shorten("ääää", 8) == "ääää"
    assert shorten("äääää", 8) == "ää…"
    assert len(shorten("x" * 2000, 1024).encode()) == 1024


# Addresses


def test_an_objects_own_addresses_go_before_those_of_the_gateways() -> None:
    assert report(facts(), (EDGE,), TWO, None).addresses == (EDGE,)
    before = report(facts(addresses=(NEW,)), (EDGE,), TWO, None)
    assert before.addresses == (NEW,)
    assert report(facts(addresses=()), None, TWO, before).addresses == ()
