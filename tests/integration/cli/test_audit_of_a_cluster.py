"""`headgate audit --kubeconfig`: the objects of an API server, by lists alone."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fakes.kubernetes.api import FakeKubernetes, Resource
from fakes.kubernetes.objects import ingress, service
from fakes.kubernetes.rights import Right, RoleHolder
from headgate.cli.__main__ import main
from headgate.common.resources import APISIX_ROUTE, JsonObject
from headgate.watcher.sources.kubernetes.listing import PAGE

TOKEN = "of somebody with a Role"


def annotated(name: str, annotations: dict[str, str], namespace: str = "default") -> JsonObject:
    found = ingress(name, namespace=namespace)
    found["metadata"]["annotations"] = annotations
    return found


def route(name: str) -> JsonObject:
    backend = {"serviceName": "web", "servicePort": 80}
    rule = {"name": "all", "match": {"paths": ["/*"], "filter_func": "x"}, "backends": [backend]}
    return {
        "apiVersion": "apisix.apache.org/v2",
        "kind": "ApisixRoute",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"http": [rule]},
    }


def install_routes(api: FakeKubernetes) -> None:
    kind = APISIX_ROUTE
    api.install(f"{kind.group}/v2", Resource(kind.group, kind.resource, kind.kind, is_custom=True))


async def run(*arguments: str) -> int:
    """Run the command as somebody at a terminal does, while the server answers."""
    return await asyncio.to_thread(main, ["audit", *arguments])


async def ask(config: Path, capsys: pytest.CaptureFixture[str], *flags: str) -> tuple[int, Any]:
    code = await run("--kubeconfig", str(config), "--json", *flags)
    return code, json.loads(capsys.readouterr().out)


def names(document: Any) -> Sequence[str]:
    return [one["object"] for one in document["audited"]]


def unavailable(document: Any, state: str) -> list[str]:
    return [one["kind"] for one in document["unavailable"] if one["state"] == state]


async def test_objects_of_a_cluster_are_audited_as_those_of_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with FakeKubernetes() as api:
        install_routes(api)
        api.apply(annotated("web", {"headgate.dev/max-body": "8m"}))
        api.apply(service("web"))
        api.apply(route("shop"))
        code, document = await ask(api.write_kubeconfig(tmp_path / "config"), capsys)
    assert names(document) == ["ApisixRoute default/shop", "Ingress default/web"]
    assert document["audited"][1]["said"][0]["name"] == "headgate.dev/max-body"
    assert (code, document["verdicts"]["refused"]) == (1, 1)
    assert document["server"].startswith(api.url)


async def test_nothing_but_lists_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with FakeKubernetes() as api:
        await ask(api.write_kubeconfig(tmp_path / "config"), capsys)
        assert {one.verb for one in api.requests} == {"list", "discover"}
        assert api.seen(resource="secrets") == []


async def test_lists_come_in_pages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with FakeKubernetes() as api:
        for number in range(PAGE + 1):
            api.apply(annotated(f"web-{number}", {"headgate.dev/max-body": "8m"}))
        _, document = await ask(api.write_kubeconfig(tmp_path / "config"), capsys)
        assert len(api.seen("list", "ingresses")) == 2
    assert document["objects"] == PAGE + 1


async def test_kinds_without_a_definition_are_named_and_do_no_harm(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with FakeKubernetes() as api:
        api.apply(annotated("web", {"headgate.dev/max-body": "8m"}))
        config = api.write_kubeconfig(tmp_path / "config")
        code, document = await ask(config, capsys)
        await run("--kubeconfig", str(config))
    assert code == 0
    assert "apisixroutes.apisix.apache.org" in unavailable(document, "absent")
    assert "not in this cluster: " in capsys.readouterr().out


async def test_a_kind_that_may_not_be_listed_is_named_with_the_right_and_the_rest_is_audited(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with FakeKubernetes() as api:
        install_routes(api)
        api.apply(annotated("web", {"headgate.dev/max-body": "8m"}))
        api.forbid("apisixroutes")
        config = api.write_kubeconfig(tmp_path / "config")
        code, document = await ask(config, capsys)
        await run("--kubeconfig", str(config))
    assert (code, names(document)) == (1, ["Ingress default/web"])
    assert unavailable(document, "forbidden") == ["apisixroutes.apisix.apache.org"]
    shown = capsys.readouterr().out
    assert "the right to list apisixroutes.apisix.apache.org in all namespaces is missing" in shown
    assert shown.splitlines()[-1] == "! incomplete: apisixroutes.apisix.apache.org may not be listed"


async def test_a_role_in_one_namespace_is_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with FakeKubernetes() as api:
        for namespace in ("shop", "other"):
            api.apply(annotated("web", {"headgate.dev/max-body": "8m"}, namespace))
        rights = {Right("list", "networking.k8s.io", "ingresses"), Right("list", "", "services")}
        api.accounts[TOKEN] = account = RoleHolder("shop", frozenset(rights))
        config = api.write_kubeconfig(tmp_path / "config", user={"token": TOKEN})
        code, document = await ask(config, capsys, "--namespace", "shop")
    assert (code, names(document)) == (0, ["Ingress shop/web"])
    assert (account.refused, account.outside) == ([], [])


async def test_guards_of_a_cluster_that_are_ignored_are_exit_code_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADGATE_IGNORED_PLUGINS", '["a-waf"]')
    guarded = route("shop")
    rule = guarded["spec"]["http"][0]
    del rule["match"]["filter_func"]
    rule["plugins"] = [{"name": "a-waf", "enable": True}]
    async with FakeKubernetes() as api:
        install_routes(api)
        api.apply(guarded)
        code, document = await ask(api.write_kubeconfig(tmp_path / "config"), capsys)
    assert (code, document["lets_in"]) == (1, 1)


async def test_a_server_that_asks_for_patience_is_asked_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with FakeKubernetes() as api:
        api.apply(annotated("web", {"headgate.dev/max-body": "8m"}))
        api.faults.status(429, verb="list", resource="ingresses", retry_after=1)
        code, document = await ask(api.write_kubeconfig(tmp_path / "config"), capsys)
        assert len(api.seen("list", "ingresses")) == 2
    assert (code, document["objects"]) == (0, 1)


async def test_credentials_that_are_refused_are_one_line_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with FakeKubernetes() as api:
        assert await run("--kubeconfig", str(api.write_kubeconfig(tmp_path / "config", user={"token": "old"}))) == 2
    assert "refuses the credentials" in capsys.readouterr().err


async def test_a_server_that_does_not_answer_is_exit_code_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with FakeKubernetes() as api:
        config = api.write_kubeconfig(tmp_path / "config")
    assert await run("--kubeconfig", str(config)) == 3
    assert api.url in capsys.readouterr().err


async def test_another_context_is_another_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with FakeKubernetes() as api:
        assert await run("--kubeconfig", str(api.write_kubeconfig(tmp_path / "config")), "--context", "nowhere") == 3
    assert "http://127.0.0.1:9" in capsys.readouterr().err


async def test_live_asks_the_server_that_kubectl_would(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with FakeKubernetes() as api:
        api.apply(annotated("web", {"headgate.dev/max-body": "8m"}))
        monkeypatch.setenv("KUBECONFIG", str(api.write_kubeconfig(tmp_path / "config")))
        assert await run("--live") == 0
    assert "\n1 object: " in capsys.readouterr().out
