"""What gateways say of themselves."""

import json
from datetime import UTC, datetime
from typing import Any

from headgate.common.heartbeats import Heartbeat, Refusal, RolloutReport, TrafficCounts
from headgate.common.snapshot import Version

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def beat(**fields: Any) -> Heartbeat:
    return Heartbeat(replica="g1", worker=0, table="default", version=Version(7, 3), at=NOW, **fields)


def test_what_is_not_in_use_is_left_out_so_that_earlier_releases_read_the_rest() -> None:
    assert json.loads(beat().encode()).keys() == {"replica", "worker", "table", "version", "at"}
    nothing_yet = beat().model_copy(update={"version": None})
    assert Heartbeat.model_validate_json(nothing_yet.encode()) == nothing_yet


def test_what_a_later_release_says_besides_hides_nothing() -> None:
    refusal = Refusal(version=Version(7, 4), reason="damaged")
    said = json.loads(beat(refusal=refusal).encode())
    said |= {"temperature": 21, "refusal": {**said["refusal"], "advice": "upgrade"}}
    assert Heartbeat.model_validate_json(json.dumps(said)) == beat(refusal=refusal)


def test_a_heartbeat_survives_encoding() -> None:
    counts = TrafficCounts(errors=1, bounds_s=(0.1,), buckets=(5, 2))
    report = RolloutReport(step=Version(7, 2), is_next=True, started=NOW, changed=counts, all=counts)
    said = beat(routes=Version(7, 2), rollout=report, refusal=Refusal(version=Version(7, 4), reason="damaged"))
    assert Heartbeat.model_validate_json(said.encode()) == said
    assert counts.requests == 7


def test_a_worker_serves_the_routes_of_the_applied_revision_unless_it_says_otherwise() -> None:
    assert beat().served == Version(7, 3)
    assert beat(routes=Version(7, 1)).served == Version(7, 1)
    assert beat(pinned=Version(6, 9)).served == Version(6, 9)


def test_ports_of_listeners_that_are_not_open_are_read_with_the_reason() -> None:
    listeners = (
        "http://0.0.0.0:8080",
        "http://0.0.0.0:9000 not open: Address already in use",
        "https://[::]:9443 not open: host * on this port: belongs to listener http",
        "tcp://0.0.0.0:5432 not open: taken",
        "udp://192.0.2.1:53 not open: not permitted",
    )
    reasons = {
        (9000, "0.0.0.0", False): "Address already in use",
        (9443, "::", False): "host * on this port: belongs to listener http",
        (5432, "0.0.0.0", False): "taken",
        (53, "192.0.2.1", True): "not permitted",
    }
    assert beat(listeners=listeners).closed_ports == reasons
