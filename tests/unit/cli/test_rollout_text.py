"""What `headgate rollout` says."""

from datetime import UTC, datetime
from typing import Any

from fakes.translator.fleet import FakeGateway
from headgate.cli.commands.rollout import describe
from headgate.common.snapshot import ChangedEntries, Manifest, Rollout, RolloutPhase, Version
from headgate.operations.rollouts.figures import compare
from headgate.operations.status.rollout import RolloutState, as_document

NOW = datetime.now(UTC)
HOSTS = {"hosts": ChangedEntries(count=1, names=("a.example",))}


def state(heard_of: tuple[str, ...] = ("g1", "g2", "g3"), **changes: Any) -> RolloutState:
    values: dict[str, Any] = {
        "base": Version(7, 1),
        "target": Version(7, 2),
        "begun": Version(7, 2),
        "shares": (10.0, 50.0),
        "since": NOW,
        "replicas": ("g1",),
        "changed": HOSTS,
    }
    rollout = Rollout(**values | changes)
    manifest = Manifest(table="default", version=Version(7, 2), created_at=NOW, chunks=(), rollout=rollout)
    gateways = [FakeGateway(name, manifest=manifest, errors_of_next=42) for name in heard_of]
    waiting: Any = {"hosts": ChangedEntries(count=1, names=("b.example",))}
    return RolloutState("default", manifest, compare(rollout, [each.beat() for each in gateways]), waiting, 3)


def test_a_rollout_under_way_shows_its_replicas_its_figures_and_what_waits() -> None:
    lines = list(describe(state()))
    assert "7.2 is rolled out, step 1 of 3, since " in lines[0]
    assert lines[1:] == [
        "  changes:  a.example",
        "  serve it: g1, 1 of 3 replicas",
        "  a.example: errors 4.2% of 1,000 requests, against 0.0% of 2,000; 95% within 10 ms, against 10 ms",
        "  all requests: errors 4.2% of 1,000 requests, against 0.0% of 2,000; 95% within 10 ms, against 10 ms",
        "  waits:    b.example",
        "To decide: headgate rollout promote, or headgate rollout back. What differs: headgate diff HEAD next",
    ]


def test_before_gateways_have_said_anything_there_is_nothing_to_compare() -> None:
    assert any("errors 0.0% of 0 requests, against 0.0% of 0" in line for line in describe(state(heard_of=())))
    assert as_document(state(heard_of=("g1",)))["others"]["all"] == {"requests": 0, "errors": 0, "p95_ms": 0.0}


def test_a_table_that_was_taken_back_shows_why_and_what_to_do() -> None:
    held = state(phase=RolloutPhase.HELD, replicas=(), reason="errors 4.2%", by="ann", ended=("g1",))
    lines = list(describe(held))
    assert "back from 7.2 since " in lines[0]
    assert "by ann: errors 4.2%" in lines[0]
    assert "  ended:    g1, without a word after taking it" in lines
    assert lines[-1].startswith("Change the objects, or: headgate rollout promote.")


def test_without_a_rollout_it_says_what_all_serve() -> None:
    manifest = Manifest(table="default", version=Version(7, 2), created_at=NOW, chunks=())
    assert list(describe(RolloutState("default", manifest))) == [
        "table default: nothing is rolled out; all replicas serve revision 7.2"
    ]
    assert as_document(RolloutState("default", manifest))["rollout"] is None


def test_programs_get_the_figures_of_both_sides() -> None:
    document = as_document(state())
    assert document["rollout"]["target"] == "7.2"
    assert document["chosen"]["changed"] == {"requests": 1000, "errors": 42, "p95_ms": 10.0}
    assert document["others"]["replicas"] == ["g2", "g3"]
    assert document["waiting"]["hosts"]["names"] == ["b.example"]
