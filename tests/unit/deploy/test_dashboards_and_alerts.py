"""Dashboards and alerts ask for what there is: each metric and label that they name is documented, and made."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from prometheus_client import REGISTRY
from prometheus_client.metrics import MetricWrapperBase

import headgate.translator.metrics
import headgate.watcher.admission.certificate
import headgate.watcher.admission.metrics
import headgate.watcher.metrics
import headgate.watcher.status.requests
import headgate.watcher.status.writer

ROOT = Path(__file__).parents[3]
DASHBOARDS = {path.name: json.loads(path.read_text()) for path in sorted((ROOT / "deploy/grafana").glob("*.json"))}
RULES = yaml.safe_load((ROOT / "deploy/prometheus/headgate.rules.yaml").read_text())
RUNBOOKS = "https://headgate.dev/docs/alerts"
OF_PROMETHEUS = {"job", "instance", "namespace", "cluster", "worker"}
"""Labels that come with the scrape, and those of several workers."""
OF_SERVICES = ("headgate_watcher_", "headgate_translator_", "headgate_manifest_", "headgate_admission_")
MODULES = (
    headgate.translator.metrics,
    headgate.watcher.metrics,
    headgate.watcher.admission.certificate,
    headgate.watcher.admission.metrics,
    headgate.watcher.status.requests,
    headgate.watcher.status.writer,
)
_KEYWORDS = {"and", "or", "unless", "bool", "offset"}
_TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*"|(?P<grouping>\b(?:by|without|on|ignoring|group_left|group_right)\s*\((?P<labels>[^()]*)\))'
    r"|(?P<name>(?<![\w.])[a-zA-Z_:][\w:]*+)\s*(?P<matchers>\{(?:[^{}\"]|\"(?:[^\"\\]|\\.)*\")*\})?"
    r"(?P<call>(?=\s*\(|\s*\b(?:by|without)\b))?|\[[^\]]*\]"
)
_MATCHER = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"")
_REPLACED = re.compile(r'"(\w+)", "\$1", "(\w+)", "')
"""Destination and source in what `label_replace` is called with."""
_SUFFIXES = ("_bucket", "_sum", "_count")


class Asked(NamedTuple):
    """What a query names."""

    metrics: dict[str, set[str]]
    """By metric the labels of its matchers."""
    groups: set[str]
    """Labels that results are grouped or joined by."""
    made: dict[str, str]
    """Labels that the query makes itself, each with the one that it is made of."""


def read_query(text: str) -> Asked:
    asked = Asked({}, set(), dict(_REPLACED.findall(text)))
    for found in _TOKEN.finditer(text):
        if found["grouping"]:
            asked.groups.update(filter(None, re.split(r"[\s,]+", found["labels"])))
        elif found["name"] and found["call"] is None and found["name"] not in _KEYWORDS:
            asked.metrics.setdefault(found["name"], set()).update(_MATCHER.findall(found["matchers"] or ""))
    return asked


def documented() -> dict[str, tuple[str, set[str]]]:
    """Kind and labels of each metric in docs/metrics.md."""
    rows = re.findall(r"(?m)^\| `(headgate_\w+)` \| (\w+) \| ([^|]*)\|", (ROOT / "docs/metrics.md").read_text())
    return {name: (kind, set(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows}


def panels(board: Any) -> Iterator[Any]:
    for panel in board["panels"]:
        yield panel
        yield from panel["panels"] if panel["type"] == "row" else ()


def queries() -> Iterator[tuple[str, str, set[str]]]:
    """Where each query is, its text, and the labels that its legend or text shows."""
    for name, board in DASHBOARDS.items():
        for panel in panels(board):
            for target in panel.get("targets", ()):
                shown = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
                yield f"{name}: {panel['title']}", target["expr"], shown
        for annotation in board["annotations"]["list"]:
            if "expr" in annotation:
                yield f"{name}: {annotation['name']}", annotation["expr"], set()
        for variable in board["templating"]["list"]:
            if variable["type"] == "query":
                found = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["definition"])
                assert found, variable["definition"]
                yield f"{name}: ${variable['name']}", f"sum by ({found[2]}) ({found[1]})", set()
    for rule in (rule for group in RULES["groups"] for rule in group["rules"]):
        shown = set(re.findall(r"\$labels\.(\w+)", json.dumps(rule["annotations"])))
        yield rule["alert"], rule["expr"], shown


QUERIES = list(queries())


@pytest.mark.parametrize(("where", "text", "shown"), QUERIES, ids=[where for where, _, _ in QUERIES])
def test_every_metric_and_label_that_is_asked_for_exists(where: str, text: str, shown: set[str]) -> None:
    known, asked = documented(), read_query(text)
    assert asked.metrics, text
    everywhere: set[str] = set(OF_PROMETHEUS)
    for name, labels in asked.metrics.items():
        base = next((name.removesuffix(end) for end in _SUFFIXES if name.endswith(end)), name)
        _, own = known[base if known.get(base, ("",))[0] == "histogram" else name]
        own = own | {"le"} if name.endswith("_bucket") else own
        assert labels <= own | OF_PROMETHEUS, (name, labels)
        everywhere |= own
    assert set(asked.made.values()) <= everywhere
    everywhere |= asked.made.keys()
    assert asked.groups <= everywhere
    assert shown <= (asked.groups or everywhere)


def labels_of(metric: MetricWrapperBase, expected: set[str]) -> set[str]:
    """Return the labels of a metric, or what it says where these are not the expected ones."""
    if not expected:
        (family,) = metric.collect()
        # One with labels has no samples before they are used.
        return {label for sample in family.samples for label in sample.labels} - {"le"} if family.samples else {"some"}
    values = dict.fromkeys(expected, "of a test")
    try:
        metric.labels(**values)
    except ValueError as error:
        return {str(error)}
    metric.remove(*values.values())
    return expected


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_metrics_of_the_control_plane_are_documented_with_their_labels(module: Any) -> None:
    known = documented()
    own = {id(each): each for each in vars(module).values() if isinstance(each, MetricWrapperBase)}.values()
    assert own
    for metric in own:
        (family,) = metric.describe()
        name = family.name + ("_total" if family.type == "counter" else "")
        assert known[name] == (family.type, labels_of(metric, known[name][1]))


def test_what_is_documented_of_the_control_plane_is_there() -> None:
    made = {
        family.name + ("_total" if family.type == "counter" else "")
        for family in REGISTRY.collect()
        if family.name.startswith(OF_SERVICES)
    }
    assert {name for name in documented() if name.startswith(OF_SERVICES)} == made


@pytest.mark.parametrize("name", DASHBOARDS)
def test_the_data_source_is_chosen_in_the_dashboard(name: str) -> None:
    board = DASHBOARDS[name]
    first = board["templating"]["list"][0]
    assert (first["type"], first["name"], first["query"]) == ("datasource", "datasource", "prometheus")
    chosen = {"type": "prometheus", "uid": "${datasource}"}
    for panel in panels(board):
        if panel["type"] != "row":
            assert panel["datasource"] == chosen
            assert all(target["datasource"] == chosen for target in panel["targets"])
    assert board["uid"] == name.removesuffix(".json")
    assert "id" not in board


@pytest.mark.parametrize("name", DASHBOARDS)
def test_panels_do_not_overlap(name: str) -> None:
    seen: set[tuple[int, int]] = set()
    for panel in panels(DASHBOARDS[name]):
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert max(x for x, _ in cells) < 24
        assert not cells & seen, panel["title"]
        seen |= cells
    ids = [panel["id"] for panel in panels(DASHBOARDS[name])]
    assert len(ids) == len(set(ids))


def test_alerts_say_how_bad_it_is_and_what_to_do() -> None:
    rules = [rule for group in RULES["groups"] for rule in group["rules"]]
    assert len({rule["alert"] for rule in rules}) == len(rules)
    for rule in rules:
        assert rule["labels"]["severity"] in ("page", "ticket", "info")
        assert {"summary", "description", "runbook_url"} == rule["annotations"].keys()


def test_every_alert_has_a_section_in_the_runbook_and_no_other_has() -> None:
    sections = re.findall(r"(?m)^### (Headgate\w+)$", (ROOT / "docs/alerts.md").read_text())
    rules = [rule for group in RULES["groups"] for rule in group["rules"]]
    assert sections == [rule["alert"] for rule in rules]
    for rule in rules:
        assert rule["annotations"]["runbook_url"] == f"{RUNBOOKS}#{rule['alert'].lower()}"


def test_the_chart_can_have_runbooks_elsewhere() -> None:
    values = yaml.safe_load((ROOT / "deploy/helm/headgate/values.yaml").read_text())
    assert values["prometheusRule"]["runbooks"] == RUNBOOKS


@pytest.mark.parametrize(
    ("text", "metrics", "groups"),
    [
        ('sum by (a, b) (rate(x_total{c="d", e=~"f{2}"}[5m])) > 1', {"x_total": {"c", "e"}}, {"a", "b"}),
        ('x and on (job) y unless z{a!="by (q)"}', {"x": set(), "y": set(), "z": {"a"}}, {"job"}),
        ("histogram_quantile(0.9, sum by (le) (x_bucket)) or vector(0)", {"x_bucket": set()}, {"le"}),
    ],
)
def test_queries_are_taken_apart(text: str, metrics: dict[str, set[str]], groups: set[str]) -> None:
    assert read_query(text)[:2] == (metrics, groups)


def test_a_label_that_a_query_makes_is_known_with_what_it_is_made_of() -> None:
    asked = read_query('sum by (host) (label_replace(x{a="b"}, "host", "$1", "route", "(.*)"))')
    assert asked == ({"x": {"a"}}, {"host"}, {"host": "route"})
