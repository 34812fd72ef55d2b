"""A dialect is added by the rows of its kinds and its folder alone: everything that lists kinds, annotations or
policies follows from these two."""

import asyncio
import json
import os
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml
from deploy.manifests import rights
from deploy.manifests.render import CHART, MANIFESTS, ROOT

from fakes.kubernetes.admission_reviews import review
from fakes.kubernetes.api import FakeKubernetes, Resource
from fakes.kubernetes.following import Following
from fakes.waiting import until
from headgate.cli.offline.auditing import audit_paths
from headgate.cli.offline.tables import translate_paths
from headgate.common.admission import Outcome
from headgate.common.resources import ObjectRef
from headgate.common.sealing import Sealer
from headgate.common.service.tasks import cancel
from headgate.common.status import ConditionType, StatusCondition, StatusUpdate
from headgate.common.stores.memory.boards import MemoryStatusBoard
from headgate.common.table import VirtualHost
from headgate.operations.status.objects import parse_object
from headgate.translator.admission.examine import examine
from headgate.translator.composition import DIALECTS as RELEASED
from headgate.translator.translation import Translation
from headgate.watcher.admission.question import Scope, pose
from headgate.watcher.admission.review import parse_review
from headgate.watcher.admission.selector import parse_selector
from headgate.watcher.api.transport import KubernetesTransport
from headgate.watcher.objects.secrets import throwaway_recipients
from headgate.watcher.sources.kubernetes.source import KubernetesSource
from headgate.watcher.status.writer import StatusWriter
from integration.made_up_kind.forward import FORWARD, KINDS, TOYS

HELM = shutil.which(os.environ.get("HELM", "helm"))
NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
DIALECTS = (*RELEASED, TOYS)
SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"ports": [{"port": 80}]},
}


def forward(annotations: Any = None, **spec: Any) -> dict[str, Any]:
    metadata = {"name": "a", "namespace": "default", "annotations": annotations or {}}
    return {"apiVersion": "toys.example.com/v1", "kind": "Forward", "metadata": metadata, "spec": spec}


def limit(name: str, size: Any, target: str = "a") -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    targets = [{"group": FORWARD.group, "kind": "Forward", "name": target}]
    spec = {"targetRefs": targets, "maxBody": size}
    return {"apiVersion": "toys.example.com/v1", "kind": "ForwardLimit", "metadata": metadata, "spec": spec}


def folder(tmp_path: Path, *manifests: Any) -> list[Path]:
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all(manifests))
    return [tmp_path]


def api_server() -> FakeKubernetes:
    api = FakeKubernetes()
    api.install("toys.example.com/v1", Resource(FORWARD.group, "forwards", "Forward", is_custom=True))
    return api


async def test_it_is_watched(tmp_path: Path) -> None:
    async with api_server() as api:
        api.apply(forward(host="a.test", service="web"))
        source = KubernetesSource(
            kubeconfig=api.write_kubeconfig(tmp_path / "config"), choices=KINDS.choices, rng=Random(1)
        )
        async with Following(source) as seen:
            await seen.until(lambda: seen.names(FORWARD) == {"a"})


def test_it_is_read_from_manifests_and_translated(tmp_path: Path) -> None:
    table = translate_paths(
        folder(tmp_path, SERVICE, forward(host="a.test", service="web", token="t")),
        kinds=KINDS,
        dialects=DIALECTS,
    )
    assert [one.problem.reason for one in table.findings] == ["NoReadyEndpoints"]
    (host,) = (entry for entry in table.entries if isinstance(entry, VirtualHost))
    assert (host.host, host.routes[0].provenance.kind) == ("a.test", "Forward")


def test_what_its_row_hides_is_not_published(tmp_path: Path) -> None:
    table = translate_paths(folder(tmp_path, forward(token="t")), kinds=KINDS, dialects=DIALECTS)
    assert [one["spec"]["token"] for one in table.manifests.values()] == ["***"]


def test_it_is_checked(tmp_path: Path) -> None:
    table = translate_paths(folder(tmp_path, forward(host="a.test")), kinds=KINDS, dialects=DIALECTS)
    assert [(one.object, str(one.problem)) for one in table.findings] == [
        ("Forward default/a", "spec.service: name a Service")
    ]


def test_it_is_audited(tmp_path: Path) -> None:
    report = audit_paths(folder(tmp_path, forward(service="web", pace=3)), kinds=KINDS, dialects=DIALECTS)
    (audited,) = report.found
    assert [(said.name, said.verdict.value) for said in audited.said] == [("pace", "ignored"), ("service", "honoured")]


def test_its_annotation_and_its_policy_hold_for_its_route(tmp_path: Path) -> None:
    annotated = forward({"toys.example.com/read-timeout": "5s"}, host="a.test", service="web")
    found = folder(tmp_path, SERVICE, annotated, limit("wide", 4096), limit("narrow", 512))
    table = translate_paths(found, kinds=KINDS, dialects=DIALECTS)
    (host,) = (entry for entry in table.entries if isinstance(entry, VirtualHost))
    assert (host.routes[0].timeouts.read_s, host.routes[0].max_body) == (5.0, 512)


def test_mistakes_in_them_are_said(tmp_path: Path) -> None:
    annotated = forward({"toys.example.com/read-timeout": "soon"}, host="a.test", service="web")
    found = folder(tmp_path, SERVICE, annotated, limit("wide", "much"), limit("lost", 1, target="b"))
    table = translate_paths(found, kinds=KINDS, dialects=DIALECTS)
    assert {(one.object, one.problem.field, one.problem.reason) for one in table.findings} >= {
        ("Forward default/a", "metadata.annotations[toys.example.com/read-timeout]", "InvalidAnnotation"),
        ("ForwardLimit default/wide", "spec.maxBody", "Invalid"),
        ("ForwardLimit default/lost", "spec.targetRefs[0]", "TargetNotFound"),
    }


def test_its_annotation_is_audited(tmp_path: Path) -> None:
    written = {"toys.example.com/read-timeout": "5s"}
    report = audit_paths(folder(tmp_path, forward(written, service="web")), kinds=KINDS, dialects=DIALECTS)
    (audited,) = report.found
    assert ("toys.example.com/read-timeout", "honoured") in [(said.name, said.verdict.value) for said in audited.said]


async def test_its_status_is_written(tmp_path: Path) -> None:
    async with api_server() as api:
        api.apply(forward(service="web"))
        board, transport = MemoryStatusBoard(), KubernetesTransport(api.write_kubeconfig(tmp_path / "config"))
        writing = asyncio.create_task(StatusWriter(board, "east", transport, instance="w", kinds=KINDS).run())
        try:
            await board.post(update())
            await until(lambda: conditions(api) == ["Accepted"])
        finally:
            await cancel(writing)
            await transport.close()


def update() -> StatusUpdate:
    return StatusUpdate(
        ref=ObjectRef("east", FORWARD.group, "forwards", "default", "a"),
        api_version="toys.example.com/v1",
        kind="Forward",
        uid="",
        is_accepted=True,
        addresses=None,
        conditions=(StatusCondition(type=ConditionType.ACCEPTED, status="True", reason="Accepted", since=NOW),),
        at=datetime.now(UTC),
    )


def conditions(api: FakeKubernetes) -> list[str]:
    status = api.get("forwards", "a").get("status", {})
    return [one["type"] for one in status.get("conditions", [])]


def test_its_status_is_asked_for_by_its_names() -> None:
    assert parse_object("forward/a", KINDS) == parse_object("FWD/a", KINDS) == parse_object("forwards/default/a", KINDS)
    assert parse_object("forward/a", KINDS).is_meant(update())


def test_the_webhook_asks_about_it_and_hears_what_is_wrong() -> None:
    scope = Scope("east", frozenset(), parse_selector(""), Sealer("east", throwaway_recipients()), KINDS)
    sent = review(forward(host="a.test"), kinds=KINDS)
    question = pose(parse_review(json.dumps(sent).encode()), scope, NOW)
    assert question is not None
    assert question.speaks_to_us
    opinion = examine(Translation(DIALECTS), question.proposal)
    assert opinion.outcome is Outcome.JUDGED
    assert [finding.problem.field for finding in opinion.findings] == ["spec.service"]


def test_a_tenant_gets_the_rights_to_it_and_the_webhook_an_entry() -> None:
    role = yaml.safe_load("\n".join(rights.tenant_rules(KINDS)))
    found = {resource: rule["verbs"] for rule in role for resource in rule["resources"]}
    assert (found["forwards"], found["forwards/status"]) == (["get", "list", "watch"], ["patch"])
    entries = yaml.safe_load("\n".join(rights.webhook_entries(KINDS)))
    assert ["forwards"] in [entry["rules"][0]["resources"] for entry in entries]


@pytest.mark.skipif(HELM is None, reason="helm is not installed: HELM names it where it is not in the PATH")
def test_the_chart_renders_the_rights_to_it(tmp_path: Path) -> None:
    chart = tmp_path / "chart"
    shutil.copytree(CHART, chart)
    (chart / rights.CHART_FILE.relative_to(CHART)).write_text(rights.chart_file(KINDS))
    values = MANIFESTS / "values" / "edge.yaml"
    command = [str(HELM), "template", "headgate", str(chart), "--kube-version", "1.34.0", "--values", str(values)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    rendered = [one for one in yaml.safe_load_all(done.stdout) if one]
    (role,) = (one for one in rendered if one["kind"] == "ClusterRole")
    resources = {resource: rule["verbs"] for rule in role["rules"] for resource in rule["resources"]}
    assert (resources["forwards"], resources["forwards/status"]) == (["get", "list", "watch"], ["patch"])
    (webhooks,) = (one["webhooks"] for one in rendered if one["kind"] == "ValidatingWebhookConfiguration")
    assert "forwards.admission.headgate.dev" in [webhook["name"] for webhook in webhooks]
