"""What a translator answers about plans, and when it answers none."""

import zlib
from typing import Any

import pytest

from fakes.translator.deltas import applied, endpoint_slice, ingress, service
from headgate.common.deltas import Delta
from headgate.common.planning import (
    MAX_CONTENT_BYTES,
    MAX_OBJECTS,
    PlanAnswer,
    PlanBasis,
    PlanOutcome,
    PlanQuestion,
    decode_answer,
    encode,
)
from headgate.common.release import release
from headgate.translator.composition import DIALECTS
from headgate.translator.planning.child import Bounds
from headgate.translator.planning.desk import MAX_PENDING, PlanningDesk
from headgate.translator.translation import Translation

BASIS = PlanBasis(release(), "a", "log", 7)
BOUNDS = Bounds(seconds=20.0, memory_bytes=512 * 1024 * 1024, answer_bytes=1024 * 1024)


class Source:
    """A translator that has read the log up to a sequence."""

    is_quiet = True

    def __init__(self, *manifests: Any, sequence: int = 7, settles: bool = True) -> None:
        self.translation = Translation(DIALECTS)
        self.translation.activate("a")
        for manifest in manifests:
            self.translation.apply(applied(manifest))
        for _ in self.translation.settle() if settles else ():
            pass
        self._sequence = sequence

    def knows(self, cluster: str) -> bool:
        return cluster == "a"

    def has_read(self, incarnation: str, sequence: int) -> bool:
        return incarnation == "log" and sequence <= self._sequence

    def digests(self) -> list[str]:
        return [chunk.digest for chunk in self.translation.assembly.image.chunks()]


def web(*more: Any, **options: Any) -> Source:
    return Source(service(), endpoint_slice("web", "10.0.0.1"), ingress("web", host="a.example"), *more, **options)


async def plan(source: Source, *deltas: Delta, basis: PlanBasis = BASIS, bounds: Bounds = BOUNDS) -> PlanAnswer:
    return await ask(source, encode(PlanQuestion(deltas=deltas)), basis, bounds)


async def ask(source: Source, question: bytes, basis: PlanBasis = BASIS, bounds: Bounds = BOUNDS) -> PlanAnswer:
    return decode_answer(await PlanningDesk(source, bounds).plan(basis, question))


async def test_the_difference_is_said_and_the_translation_stays_as_it_is() -> None:
    source = web()
    before, runs = source.digests(), source.translation.graph.runs
    bad = ingress("bad", host="c.example", path="no-slash")
    other = ingress("other", host="d.example", class_name="other")
    answer = await plan(source, *map(applied, (ingress("new", host="b.example"), bad, other)))
    assert answer.outcome is PlanOutcome.PLANNED
    assert answer.diff.counts == {"host": {"added": 2}, "route": {"added": 1}}
    told = {one.ref.name: one for one in answer.objects}
    assert told.keys() == {"bad", "other"}
    assert told["bad"].problems
    assert "IngressClass 'other'" in told["other"].foreign
    assert (source.digests(), source.translation.graph.runs) == (before, runs)
    assert source.translation.world.get(applied(bad).ref) is None


async def test_what_waits_to_be_translated_is_no_part_of_the_difference() -> None:
    source = web(ingress("more", host="b.example"), settles=False)
    answer = await plan(source, applied(ingress("new", host="c.example")))
    assert answer.diff.counts == {"host": {"added": 1}, "route": {"added": 1}}
    assert source.translation.pending


@pytest.mark.parametrize(
    ("basis", "outcome", "said"),
    [
        (BASIS._replace(release="0.0.1"), PlanOutcome.OTHER_RELEASE, "is of release"),
        (BASIS._replace(cluster="b"), PlanOutcome.NOT_READY, "cluster b"),
        (BASIS._replace(sequence=8), PlanOutcome.NOT_READY, "has not read all of the log"),
        (BASIS._replace(incarnation="another"), PlanOutcome.NOT_READY, "has not read all of the log"),
    ],
)
async def test_a_question_that_cannot_be_answered_exactly_is_not_answered(
    basis: PlanBasis, outcome: PlanOutcome, said: str
) -> None:
    answer = await plan(web(), applied(ingress("new", host="b.example")), basis=basis)
    assert answer.outcome is outcome
    assert said in answer.detail


async def test_objects_whose_last_good_version_is_not_known_keep_plans_back() -> None:
    source = web(ingress("bad", host="c.example", path="no-slash"))
    assert (await plan(source)).detail == "the translator does not know all last good versions yet"


async def test_much_that_waits_to_be_translated_keeps_plans_back() -> None:
    many = (ingress(f"site-{number}", host=f"site-{number}.example") for number in range(MAX_PENDING + 1))
    assert (await plan(web(*many, settles=False))).detail == "the translator is translating"


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (b"rubbish", "not compressed"),
        (zlib.compress(b"{}"), "not a PlanQuestion"),
        (zlib.compress(b"[" * (MAX_CONTENT_BYTES + 1)), "larger than it may be"),
        (zlib.compress(b'{"deltas":[]}')[:-4], "cut off"),
    ],
)
async def test_a_question_that_is_none_is_refused(question: bytes, said: str) -> None:
    answer = await ask(web(), question)
    assert answer.outcome is PlanOutcome.FAILED
    assert said in answer.detail


async def test_too_many_objects_are_refused() -> None:
    answer = await plan(web(), *[applied(service())] * (MAX_OBJECTS + 1))
    assert answer.outcome is PlanOutcome.FAILED
    assert "more than 2,000" in answer.detail


async def test_a_plan_that_needs_too_long_is_given_up() -> None:
    many = [applied(ingress(f"site-{number}", host=f"site-{number}.example")) for number in range(MAX_OBJECTS)]
    answer = await plan(web(), *many, bounds=BOUNDS._replace(seconds=0.01))
    assert answer.outcome is PlanOutcome.FAILED
    assert "took more than 0.01 s" in answer.detail
