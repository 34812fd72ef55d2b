"""How `routes`, `history`, `status` and the banner say what they know; the data comes from models, not from servers."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headgate.cli.commands.history import describe_causes, describe_changes
from headgate.cli.terminal.rendering import print_table
from headgate.cli.up.banner import attempts, try_line
from headgate.common.heartbeats import Heartbeat
from headgate.common.problems import Problem, Severity
from headgate.common.resources import ObjectRef
from headgate.common.snapshot import TABLE_KIND, Cause, ChangedEntries, Manifest, Pin, Version
from headgate.common.status import StatusUpdate
from headgate.common.table import (
    Backend,
    Consumer,
    Credential,
    Endpoint,
    EntryKind,
    PathMatch,
    PathType,
    PluginUse,
    Provenance,
    Route,
    Upstream,
    VirtualHost,
)
from headgate.operations.status.report import Report, as_document, is_well
from headgate.operations.tables.consumers import lines_of as consumer_lines
from headgate.operations.tables.routes import lines_of
from headgate.operations.wording import age

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SOURCE = Provenance(cluster="local", kind="Ingress", namespace="default", name="web")


def route(path: str, *backends: Backend) -> Route:
    return Route(name=path, path=PathMatch(type=PathType.PREFIX, value=path), backends=backends, provenance=SOURCE)


def manifest(revision: int = 7, causes: int = 0) -> Manifest:
    each = Cause(cluster="local", kind="Ingress", namespace="default", name="web", operation="apply", sequence=1)
    return Manifest(
        table="default",
        version=Version(1, revision),
        created_at=NOW,
        causes=(each,) * causes,
        cause_count=causes,
        inputs={"local": 9},
        chunks=(),
    )


def beat(revision: int | None) -> Heartbeat:
    version = None if revision is None else Version(1, revision)
    return Heartbeat(replica="a", worker=0, table="default", version=version, at=NOW)


def update(severity: Severity) -> StatusUpdate:
    return StatusUpdate(
        ref=ObjectRef("local", "networking.k8s.io", "ingresses", "default", "web"),
        api_version="networking.k8s.io/v1",
        kind="Ingress",
        uid="1",
        is_accepted=True,
        problems=(Problem(severity=severity, reason="ServiceNotFound", message="not found"),),
        at=NOW,
    )


def test_routes_say_on_which_listeners_their_host_is() -> None:
    hosts = [
        VirtualHost(host="a.com", routes=(route("/", Backend(upstream="up")),), listeners=listeners)
        for listeners in ((), ("gw/web",))
    ]
    assert [(line.host, line.listeners) for line in lines_of(hosts)] == [("a.com", ()), ("a.com", ("gw/web",))]


def test_routes_show_weights_and_ready_endpoints_of_each_backend() -> None:
    one = Endpoint(address="10.0.0.1", port=80)
    two = Endpoint(address="10.0.0.2", port=80, ready=False)
    host = VirtualHost(
        host="a.example",
        routes=(route("/", Backend(upstream="one", weight=3), Backend(upstream="gone")),),
    )
    lines = lines_of([Upstream(key="one", endpoints=(one, two), provenance=SOURCE), host])
    assert [(line.backend, line.weight, line.ready, line.endpoints) for line in lines] == [
        ("one", 3, 1, 2),
        ("gone", 1, 0, 0),
    ]
    assert lines[1].unavailable == "not in the table"


def test_history_says_the_first_causes_with_their_clusters_and_how_many_more() -> None:
    assert describe_causes(manifest(causes=1)) == ["apply Ingress local/default/web"]
    assert describe_causes(manifest(causes=5))[3:] == ["and 2 more"]
    assert describe_causes(manifest()) == ["translated again"]


def test_history_says_who_it_was_and_of_files_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cause = manifest(causes=1).causes[0]
    for by, told in (("kubectl-edit", "kubectl-edit"), (f"{tmp_path}/a/b.yaml", "a/b.yaml"), ("/x.yaml", "/x.yaml")):
        made = manifest().model_copy(update={"causes": (cause.model_copy(update={"by": by}),), "cause_count": 1})
        assert describe_causes(made) == [f"apply Ingress local/default/web by {told}"]


def test_history_says_what_people_did_to_the_table() -> None:
    cause = Cause(
        cluster="",
        kind=TABLE_KIND,
        namespace="",
        name="t",
        operation="rollback",
        sequence=0,
        by="ann",
        note="to 1.5: no",
    )
    made = manifest().model_copy(update={"causes": (cause,), "cause_count": 1})
    assert describe_causes(made) == ["rollback to 1.5: no by ann"]


@pytest.mark.parametrize(
    ("changed", "waiting", "expected"),
    [
        ({"hosts": 2}, {}, "h0, h1"),
        ({"hosts": 9, "upstreams": 1}, {}, "h0, h1, h2, 6 more hosts, 1 upstream"),
        ({"certificates": 2, "streams": 1}, {}, "2 certificates, 1 stream"),
        ({"consumers": 2, "consumer_groups": 1}, {}, "2 consumers, 1 consumer group"),
        ({}, {"hosts": 1}, "waits: h0"),
        ({"upstreams": 1}, {"hosts": 1, "upstreams": 1}, "1 upstream; waits: h0, 1 upstream"),
        ({}, {}, "-"),
    ],
)
def test_history_says_which_hosts_changed_and_how_much_else(
    changed: dict[EntryKind, int], waiting: dict[EntryKind, int], expected: str
) -> None:
    def entries(counts: dict[EntryKind, int]) -> dict[EntryKind, ChangedEntries]:
        return {
            kind: ChangedEntries(count=count, names=tuple(f"{kind[0]}{number}" for number in range(count)))
            for kind, count in counts.items()
        }

    pin = Pin(version=Version(1, 1), since=NOW, waiting=entries(waiting)) if waiting else None
    assert describe_changes(manifest().model_copy(update={"changed": entries(changed), "pin": pin})) == expected


@pytest.mark.parametrize(
    ("heartbeats", "updates", "expected"),
    [
        ((beat(7),), (), True),
        ((beat(7),), (update(Severity.WARNING),), True),
        ((beat(7),), (update(Severity.ERROR),), False),
        ((beat(7), beat(6)), (), False),
        ((beat(None),), (), False),
        ((), (), False),
    ],
)
def test_all_is_well_when_every_gateway_is_current_and_no_object_has_errors(
    heartbeats: tuple[Heartbeat, ...], updates: tuple[StatusUpdate, ...], expected: bool
) -> None:
    report = Report("default", manifest(), heartbeats, updates, None)
    assert is_well(report) is expected
    assert as_document(report)["is_well"] is expected


def test_nothing_is_well_without_a_table() -> None:
    report = Report("default", None, (), (), None)
    assert not is_well(report)
    assert as_document(report)["published"] is None


@pytest.mark.parametrize(
    ("hosts", "expected"),
    [
        ([("demo.localhost", ["/red", "/"])], "curl -H 'Host: demo.localhost' http://127.0.0.1:8080/"),
        ([("*", ["/"])], "curl http://127.0.0.1:8080/"),
        ([("*.b.example", ["/x"])], "curl -H 'Host: any.b.example' http://127.0.0.1:8080/x"),
        ([("*.b.example", ["/"]), ("z.example", ["/"])], "curl -H 'Host: z.example' http://127.0.0.1:8080/"),
        ([], "no route is served yet: `headgate check PATH` finds mistakes in manifests"),
    ],
)
def test_the_line_to_try_uses_a_host_that_is_served(hosts: list[tuple[str, list[str]]], expected: str) -> None:
    table = {"hosts": [{"host": host, "routes": [{"path": path} for path in paths]} for host, paths in hosts]}
    assert try_line(next(attempts(table), None), 8080) == expected


def test_columns_are_as_wide_as_their_widest_cell(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("A", "LONG"), [("value", 1)])
    assert capsys.readouterr().out == "A      LONG\nvalue  1\n"


@pytest.mark.parametrize(("seconds", "shown"), [(0, "0s"), (119, "119s"), (120, "2m"), (7200, "2h"), (200_000, "2d")])
def test_ages_are_short(seconds: int, shown: str) -> None:
    assert age(NOW - timedelta(seconds=seconds), NOW) == shown


def test_consumers_are_listed_by_name_without_their_keys() -> None:
    use = PluginUse(name="key-auth", config={"key": "sesame"})
    limit = PluginUse(name="limit-count", config={"count": 1, "time_window": 1})
    people = [
        Consumer(key=f"a/shop/{name}", name=f"shop_{name}", credentials=(Credential(use=use),), provenance=SOURCE)
        for name in ("jill", "jack")
    ]
    people[0] = people[0].model_copy(update={"group": "gold", "plugins": (limit,)})
    jack, jill = consumer_lines(people)
    assert (jack.name, jack.group, jack.credentials, jack.plugins) == ("shop_jack", "", ("key-auth",), ())
    assert (jill.group, jill.plugins) == ("gold", ("limit-count",))
    assert "sesame" not in str((jack, jill))
