"""What `status` finds wrong: files, refused objects, kinds that are not read, and services that are not ready."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from aiohttp import web

from headgate.cli.commands.status import describe_lag, print_report
from headgate.common.deltas import ClusterAnnouncement, KindName, SyncMarker, SyncState
from headgate.common.heartbeats import Heartbeat
from headgate.common.problems import Problem, Severity
from headgate.common.resources import ObjectRef
from headgate.common.sealing import ClusterValue
from headgate.common.service.admin import AdminSite
from headgate.common.snapshot import Manifest, Pin, Version
from headgate.common.status import StatusUpdate
from headgate.common.table import Certificate, Provenance
from headgate.operations.status.kinds import KindState, kind_problems, kinds_of
from headgate.operations.status.report import Report, as_document, is_well
from headgate.operations.status.service_pages import PageProblem, ServicePage, read_pages
from headgate.operations.status.up_state import UpState

NOW = datetime(2026, 1, 1, tzinfo=UTC)
REF = ObjectRef("local", "networking.k8s.io", "ingresses", "default", "web")
BAD = Problem(reason="NotYaml", message="is not YAML")
MANIFEST = Manifest(
    table="default", version=Version(1, 7), created_at=NOW, causes=(), cause_count=0, inputs={"local": 9}, chunks=()
)
BEAT = Heartbeat(replica="a", worker=0, table="default", version=Version(1, 7), at=NOW)


def up(**state: object) -> UpState:
    known = {"pid": 1, "nats_url": "nats://x", "admin_url": "http://x", "http_port": 1, "https_port": 2}
    return UpState.model_validate({**known, "processes": {}, **state})


def kind(state: str, resource: str = "secrets", group: str = "", message: str = "") -> KindState:
    return KindState.model_validate(
        {"cluster": "local", "group": group, "resource": resource, "state": state, "message": message}
    )


def report(
    *, kinds: tuple[KindState, ...] = (), pages: tuple[ServicePage, ...] = (), state: UpState | None = None
) -> Report:
    return Report("default", MANIFEST, (BEAT,), (), state, kinds, pages)


def reasons(one: Report) -> list[str]:
    return [problem.reason for _, problem in one.problems]


def test_a_broken_file_is_named_with_its_line_and_nothing_is_well() -> None:
    page = ServicePage(service="watcher", url="http://x", problems=(PageProblem(file="a.yaml", line=3, problem=BAD),))
    found = report(pages=(page,))
    assert found.problems == [("a.yaml:3", BAD)]
    assert not is_well(found)
    assert as_document(found)["problems"][0]["what"] == "a.yaml:3"


def test_what_the_board_says_too_is_said_once() -> None:
    page = ServicePage(service="watcher", url="http://x", problems=(PageProblem(object=str(REF), problem=BAD),))
    update = StatusUpdate(ref=REF, api_version="v1", kind="Ingress", uid="1", is_accepted=True, problems=(BAD,), at=NOW)
    found = Report("default", MANIFEST, (BEAT,), (update,), None, (), (page,))
    assert found.problems == [("Ingress default/web", BAD)]


def test_a_watcher_that_does_not_answer_is_named_and_its_markers_are_used() -> None:
    refused = kind("synced", message="not published: default/big: 2 MB")
    away = report(kinds=(refused,), pages=(ServicePage(service="watcher", url="http://x", is_away=True),))
    assert reasons(away) == ["NoAnswer", "NotPublished"]
    assert not is_well(away)
    there = report(kinds=(refused,), pages=(ServicePage(service="watcher", url="http://x"),))
    assert reasons(there) == []  # the page would name each object


def test_a_service_that_is_not_ready_says_why() -> None:
    page = ServicePage(service="translator", url="http://x", checks={"table": "no cluster", "stopping": None})
    assert report(pages=(page,)).problems == [("translator", Problem(reason="NotReady", message="table: no cluster"))]


def test_a_service_that_is_being_restarted_is_a_problem() -> None:
    assert reasons(report(state=up(restarts={"watcher": 2}))) == ["NotRunning"]
    assert reasons(report(state=up(restarts={"watcher": 2}, processes={"watcher": 7}))) == []


@pytest.mark.parametrize(
    ("one", "severity"),
    [
        (kind("forbidden"), Severity.ERROR),
        (kind("forbidden", "ingressclasses", "networking.k8s.io"), Severity.WARNING),
        (kind("synced", message="not published: default/web: too large"), Severity.ERROR),
        (kind("awaited"), Severity.ERROR),
        (kind("absent"), None),
        (kind("synced"), None),
    ],
)
def test_kinds_that_are_not_read_count_by_what_they_cost(one: KindState, severity: Severity | None) -> None:
    assert [problem.severity for _, problem in kind_problems([one])] == ([severity] if severity else [])


def test_a_kind_that_was_announced_and_not_marked_is_awaited() -> None:
    secrets, services = KindName(group="", resource="secrets"), KindName(group="", resource="services")
    announcement = ClusterAnnouncement(
        cluster="local", source="kubernetes", instance="a", kinds=(secrets, services), announced_at=NOW
    )
    marker = SyncMarker(cluster="local", kind=secrets, state=SyncState.FORBIDDEN, message="no", at=NOW)
    assert kinds_of([announcement], [marker]) == [kind("forbidden", message="no"), kind("awaited", "services")]


async def test_the_pages_of_the_services_are_read_and_absence_is_noted() -> None:
    async def problems(request: web.Request) -> web.Response:
        return web.json_response(
            {"problems": [{"file": "a.yaml", "line": 3, "object": "", "problem": BAD.model_dump()}]}
        )

    site = AdminSite()
    site.add_readiness("published", lambda: "not yet")
    site.add_route("GET", "/problems", problems)
    await site.start()
    try:
        state = up(admin_urls={"watcher": site.url, "translator": "http://127.0.0.1:1"})
        translator, watcher = await read_pages(state)
    finally:
        await site.stop()
    assert translator.is_away
    assert watcher.checks == {"published": "not yet"}
    assert [one.what for one in watcher.problems] == ["a.yaml:3"]


PIN = Pin(version=Version(1, 3), since=NOW, by="ann", reason="404s", is_frozen=True)
PINNED = MANIFEST.model_copy(update={"pin": PIN})


def certificate(not_after: str) -> Certificate:
    return Certificate(
        key="local/default/tls",
        server_names=("a.example",),
        chain_pem="chain",
        private_key=ClusterValue(boxes={}),
        fingerprint="f",
        not_after=not_after,
        provenance=Provenance(cluster="local", kind="Secret", namespace="default", name="tls"),
    )


def test_a_pin_is_a_warning_that_says_who_and_why() -> None:
    found = Report("default", PINNED, (BEAT,), (), None)
    [(what, problem)] = found.problems
    assert (what, problem.severity, problem.reason) == ("table default", Severity.WARNING, "Pinned")
    assert re.match(r"pinned to 1\.3, endpoints too \d+d ago by ann: 404s; changes of objects wait", problem.message)
    assert is_well(found)
    assert as_document(found)["pin"]["by"] == "ann"


@pytest.mark.parametrize(("days", "severity"), [(-1, Severity.ERROR), (13, Severity.WARNING), (15, None)])
def test_a_pinned_certificate_that_ends_is_told_of_in_time(days: int, severity: Severity | None) -> None:
    end = (datetime.now(UTC) + timedelta(days=days)).isoformat()
    found = Report("default", PINNED, (BEAT,), (), None, certificates=(certificate(end),))
    told = [problem.severity for _, problem in found.problems if problem.reason == "PinnedCertificateEnds"]
    assert told == ([severity] if severity else [])


def test_a_pinned_certificate_whose_end_is_not_known_is_left_alone() -> None:
    assert reasons(Report("default", PINNED, (BEAT,), (), None, certificates=(certificate(""),))) == ["Pinned"]


@pytest.mark.parametrize(
    ("days", "expected"),
    [(-1, "CertificateEnded"), (13, "CertificateEnds"), (15, None)],
)
def test_a_certificate_that_ends_is_a_problem_that_names_its_hosts(days: int, expected: str | None) -> None:
    end = (datetime.now(UTC) + timedelta(days=days)).isoformat()
    found = Report("default", MANIFEST, (BEAT,), (), None, certificates=(certificate(end),))
    assert reasons(found) == ([expected] if expected else [])
    assert all("presented for a.example" in problem.message for _, problem in found.problems)
    assert is_well(found) is (days > 0)


def beat(replica: str, version: Version | None) -> Heartbeat:
    return BEAT.model_copy(update={"replica": replica, "version": version})


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (Version(1, 7), "-"),
        (Version(1, 8), "-"),
        (Version(1, 6), "1 revision, 5m"),
        (Version(1, 4), "3 revisions, 5m"),
        (Version(0, 9), "another epoch, 5m"),
        (None, "all, 5m"),
    ],
)
def test_a_replica_says_how_far_it_is_behind(version: Version | None, expected: str) -> None:
    made = MANIFEST.model_copy(update={"created_at": datetime.now(UTC) - timedelta(minutes=5)})
    assert describe_lag(beat("a", version), made) == expected


def test_a_replica_says_since_when_it_is_behind() -> None:
    now = datetime.now(UTC)
    made = MANIFEST.model_copy(update={"created_at": now})
    late = beat("a", Version(1, 4)).model_copy(update={"behind_since": now - timedelta(hours=3)})
    assert describe_lag(late, made) == "3 revisions, 3h"


def test_replicas_that_are_behind_are_listed_first(capsys: pytest.CaptureFixture[str]) -> None:
    beats = (beat("a", Version(1, 7)), beat("b", Version(1, 6)), beat("c", Version(1, 2)), beat("d", None))
    print_report(Report("default", MANIFEST, beats, (), None))
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line[:2] in ("a ", "b ", "c ", "d ")]
    assert [row[0] for row in rows] == ["d", "c", "b", "a"]


def test_a_shard_without_a_gateway_is_a_problem_of_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    starting = BEAT.model_copy(update={"replica": "b", "shard": "1/2", "version": None})
    found = Report("default", MANIFEST, (BEAT.model_copy(update={"shard": "0/2"}), starting), (), None)
    assert [(what, problem.reason) for what, problem in found.problems] == [("table default", "ShardWithoutGateway")]
    assert not is_well(found)
    print_report(found)
    text = capsys.readouterr().out
    assert re.search(r"REPLICA +WORKER +SHARD +APPLIED", text)
    assert re.search(r"a +0 +0/2 +1\.7", text)
    assert "no gateway serves shard 1/2: requests for its hosts are answered with 421" in text


def test_nothing_is_said_of_shards_where_all_serve_the_whole_table(capsys: pytest.CaptureFixture[str]) -> None:
    print_report(report())
    assert "SHARD" not in capsys.readouterr().out
