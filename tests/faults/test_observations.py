"""What judges a run finds everything that must not be."""

from collections.abc import Sequence

import pytest

from fakes.kubernetes.api import FakeKubernetes
from fakes.translator.deltas import applied, endpoint_slice, ingress, service
from faults.desired import Desired
from faults.observed import Observed, Table
from faults.recorded_log import RecordedLog, digest_of
from headgate.common.deltas import Delta
from headgate.common.snapshot import ChunkName, Version
from headgate.translator.offline import translate_all

HOST = "steady0.local.example"


class World:
    """An observer with a clock of the test's."""

    def __init__(self) -> None:
        self.now = 100.0
        self.log = RecordedLog()
        self.desired = Desired("local", FakeKubernetes(), ())
        self.desired.generations[HOST] = 9
        self.observed = Observed([self.desired], self.log, lambda: self.now)

    def answer(self, generation: int, status: int = 200) -> None:
        self.observed.answered(self.observed.asks("gateway-0", HOST), status, generation, "")

    def serve(self, revision: int) -> None:
        self.observed.serves("gateway-0", Version(1, revision))


@pytest.fixture
def world() -> World:
    return World()


def test_growing_generations_and_versions_are_in_order(world: World) -> None:
    for number in (1, 2, 2, 5):
        world.answer(number)
        world.serve(number)
    assert world.observed.wrong == []
    assert world.observed.answers["gateway-0"] == 4


def test_a_failed_request_is_wrong_unless_its_gateway_was_broken_at_some_time_of_it(world: World) -> None:
    world.answer(0, status=503)
    assert len(world.observed.wrong) == 1
    question = world.observed.asks("gateway-0", HOST)
    world.observed.break_gateway("gateway-0")
    world.answer(0, status=0)
    world.observed.mend_gateway("gateway-0")
    world.observed.answered(question, 0, 0, "reset")
    assert (len(world.observed.wrong), world.observed.excused) == (1, 2)
    world.answer(0, status=0)
    assert len(world.observed.wrong) == 2


def test_an_older_generation_is_wrong_only_after_a_newer_one_had_come(world: World) -> None:
    early = world.observed.asks("gateway-0", HOST)
    world.answer(3)
    world.observed.answered(early, 200, 2, "")
    assert world.observed.wrong == []
    world.answer(2)
    assert len(world.observed.wrong) == 1


def test_a_generation_that_nobody_wrote_is_wrong(world: World) -> None:
    world.answer(10)
    assert "nobody has heard" in world.observed.wrong[0]


def test_a_version_that_goes_back_is_wrong(world: World) -> None:
    world.serve(3)
    world.serve(2)
    assert world.observed.wrong == ["100.00 s: gateway-0: version 1.2 after (1, 3)"]


def test_a_killed_gateway_may_forget_the_last_seconds_and_no_more(world: World) -> None:
    world.serve(1)
    world.now += 60
    world.serve(2)
    world.now += 1
    world.observed.restart_gateway("gateway-0")
    world.serve(1)
    assert world.observed.wrong == []
    world.now += 60
    world.serve(2)
    world.now += 60
    world.observed.restart_gateway("gateway-0")
    world.serve(1)
    assert len(world.observed.wrong) == 1


def test_one_version_for_two_tables_is_wrong(world: World) -> None:
    world.observed.stored(Table("gateway-0", Version(1, 1), {}, "one"))
    world.observed.stored(Table("gateway-1", Version(1, 1), {}, "other"))
    assert "stands for two tables" in world.observed.wrong[0]


def test_a_table_must_be_a_translation_of_the_log_at_one_place(world: World) -> None:
    deltas = [
        applied(each) for each in (ingress("web", host="a.example"), service(), endpoint_slice("web", "10.0.0.1"))
    ]
    moved = applied(endpoint_slice("web", "10.0.0.2"))
    away = applied(ingress("web", host="b.example"))
    world.log.take([*deltas, moved, away])
    torn = table_of([*deltas[1:], away], {"a": moved.sequence})
    for whole in (table_of([*deltas[:2], moved], {"a": moved.sequence}), table_of(deltas, {"a": deltas[-1].sequence})):
        world.observed.stored(whole)
        world.observed.check_tables()
    assert world.observed.wrong == []
    world.observed.stored(torn._replace(version=Version(2, 1)))
    world.observed.check_tables()
    assert "is no translation of the log" in world.observed.wrong[0]


def test_a_log_that_was_restored_counts_beside_what_it_was(world: World) -> None:
    before = applied(ingress("web", host="a.example"))
    after = applied(ingress("web", host="b.example")).model_copy(update={"sequence": before.sequence})
    world.log.take([before])
    world.log.lines.append(type(world.log.lines[0])())
    world.log.take([after])
    for number, delta in enumerate((before, after)):
        world.observed.stored(table_of([delta], {"a": delta.sequence})._replace(version=Version(1, number)))
    world.observed.check_tables()
    assert world.observed.wrong == []


def table_of(deltas: Sequence[Delta], inputs: dict[str, int]) -> Table:
    names = [
        ChunkName(kind=chunk.kind, prefix=chunk.prefix, digest=chunk.digest)
        for chunk in translate_all(deltas).image.chunks()
    ]
    return Table("gateway-0", Version(1, max(inputs.values())), inputs, digest_of(names))
