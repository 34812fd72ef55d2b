"""`headgate plan` against the world of a real log, and offline."""

import json
from pathlib import Path
from typing import Any

import pytest

from fakes.gateway.served_history import History, empty_history, served_history
from fakes.translator.deltas import applied, endpoint_slice, ingress, ingress_class, service, tls_secret
from fakes.translator.loop import KINDS, NOW, fill
from headgate.cli.offline import planning as planning_module
from headgate.common.deltas import ClusterAnnouncement

BASE = (service(), endpoint_slice("web", "10.0.0.1"), ingress("web", host="a.example", created="2024-01-01T00:00:00Z"))


async def refuse_to_read(*_: object) -> None:
    raise AssertionError("this takes long where there are 10,000 routes")


@pytest.fixture(params=[False, True], ids=["from the log", "by a translator"])
def answers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether a translator answers; then the log is not read."""
    if request.param:
        monkeypatch.setattr(planning_module, "read_world", refuse_to_read)
    return bool(request.param)


def write(folder: Path, *manifests: Any, name: str = "planned.json") -> str:
    path = folder / name
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(manifests)}))
    return str(path)


def stripped(manifest: Any) -> Any:
    """A manifest as people write it."""
    metadata = {name: held for name, held in manifest["metadata"].items() if name in ("name", "namespace", "labels")}
    return {**manifest, "metadata": metadata}


async def test_what_is_served_already_makes_no_difference(answers: bool, tmp_path: Path) -> None:
    async with served_history(*BASE, plans=answers) as history:
        answer = await history.ask("plan", write(tmp_path, *map(stripped, BASE)))
        assert answer.out == "no difference between table default and with these manifests\n"
        assert answer.err == ""


async def test_a_change_is_shown_and_exit_code_1_and_nothing_is_changed(answers: bool, tmp_path: Path) -> None:
    async with served_history(*BASE, plans=answers) as history:
        before = await history.manifest()
        changed = [stripped(ingress("web", host="a.example", path="/shop")), stripped(ingress("new", host="b.example"))]
        shown = (await history.ask("plan", write(tmp_path, *changed), code=1)).out
        assert "+ route /shop prefix  (Ingress a/default/web)" in shown
        assert "- route / prefix  (Ingress a/default/web)" in shown
        assert "+ host b.example" in shown
        assert await history.manifest() == before


async def test_what_is_planned_is_what_applying_does(answers: bool, tmp_path: Path) -> None:
    async with served_history(*BASE, tls_secret("tls", "b.example"), plans=answers) as history:
        secured = ingress("new", host="b.example")
        secured["spec"]["tls"] = [{"hosts": ["b.example"], "secretName": "tls"}]
        weighed = ingress("web", host="a.example", annotations={"headgate.dev/max-body": "1m"})
        # The last one is seen in any case: endpoints of a port that no route names make no revision.
        changes = [service(port=8080), endpoint_slice("web", "10.0.0.1", "10.0.0.2"), weighed, secured]
        planned = (await history.ask("plan", "--json", write(tmp_path, *changes), code=None)).json
        before = await history.manifest()
        assert before
        await history.say(*changes)
        happened = (await history.ask("diff", "--json", str(before.version))).json
        assert planned["counts"] == happened["counts"]
        for change in happened["changes"]:
            if "private_key" in change.get("content", {}):
                change["content"]["private_key"] = "***"  # with a mark that a plan does not have: it seals for nobody
        assert planned["changes"] == happened["changes"]
        assert {change["kind"] for change in planned["changes"]} >= {"host", "route", "certificate", "upstream"}


async def test_who_takes_a_route_over_and_which_guards_go_is_said(answers: bool, tmp_path: Path) -> None:
    guards = {"headgate.dev/plugins": json.dumps([{"name": "ip-restriction", "config": {"whitelist": ["192.0.2.1"]}}])}
    mine = ingress("web", host="a.example", annotations=guards, created="2024-01-01T00:00:00Z")
    async with served_history(*BASE[:2], mine, plans=answers) as history:
        open_now = stripped(ingress("web", host="a.example"))
        (remark,) = (await history.ask("plan", "--json", write(tmp_path, open_now), code=1)).json["remarks"]
        assert remark == "a.example / prefix loses ip-restriction, which may keep requests out"
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    new.mkdir()
    write(old, stripped(mine), name="web.json")
    write(new, {**stripped(mine), "metadata": {"name": "web", "namespace": "other"}}, name="web.json")
    async with empty_history() as history:
        shown = (await history.ask("plan", str(new), "--against", str(old), code=None)).out
    assert "a.example / prefix goes from Ingress default/web" in shown
    assert "to Ingress other/web" in shown


async def test_backends_that_only_the_cluster_has_are_found(answers: bool, tmp_path: Path) -> None:
    async with served_history(*BASE, plans=answers) as history:
        answer = await history.ask("plan", "--json", write(tmp_path, ingress("new", host="b.example")), code=1)
        assert answer.json["findings"] == []
        assert answer.json["counts"] == {"host": {"added": 1}, "route": {"added": 1}}


async def test_errors_are_named_with_their_place_and_exit_code_2(answers: bool, tmp_path: Path) -> None:
    async with served_history(*BASE, plans=answers) as history:
        path = write(tmp_path, ingress("new", host="b.example", service="gone"))
        answer = await history.ask("plan", path, code=2)
        assert f"{path}:1: error: Ingress default/new: spec.rules[0].http.paths[0].backend.service.name:" in answer.err
        assert "+ host b.example" in answer.out


async def test_an_update_with_errors_leaves_its_last_good_version_in_force_in_the_plan_too(
    answers: bool, tmp_path: Path
) -> None:
    async with served_history(*BASE, plans=answers) as history:
        path = write(tmp_path, ingress("web", host="a.example", path="no-slash"))
        answer = await history.ask("plan", path, code=2)
        assert answer.out.startswith("no difference")
        assert f"{path}:1: error: Ingress default/web: spec.rules[0].http.paths[0].path: " in answer.err
        assert "this version is not served; resourceVersion" in answer.err


@pytest.mark.parametrize("versions_with_errors", [1, 12])
async def test_what_is_served_of_an_object_with_errors_is_its_last_good_version(
    answers: bool, tmp_path: Path, versions_with_errors: int
) -> None:
    async with served_history(*BASE, ingress("good", host="b.example", path="/old"), plans=answers) as history:
        for number in range(versions_with_errors):
            await history.append(applied(ingress("good", host="b.example", path=f"bad{number}")))
        await history.say(ingress("more", host="c.example"))
        await history.until_written(ingress("good"))
        assert "no difference" in (await history.ask("plan", write(tmp_path, *map(stripped, BASE)))).out
        mended = stripped(ingress("good", host="b.example", path="/new"))
        shown = (await history.ask("plan", write(tmp_path, mended), code=1)).out
        assert "- route /old prefix  (Ingress a/default/good)" in shown
        assert "+ route /new prefix  (Ingress a/default/good)" in shown
        assert "translator makes another table" not in shown


async def test_the_last_good_version_is_found_in_the_log_that_no_translator_has_read(tmp_path: Path) -> None:
    async with empty_history() as history:
        await fill(history.stores, *BASE, ingress("good", host="b.example", path="/old"))
        await history.append(applied(ingress("good", host="b.example", path="bad")))
        mended = stripped(ingress("good", host="b.example", path="/new"))
        shown = (await history.ask("plan", write(tmp_path, mended), code=1)).out
        assert "- route /old prefix  (Ingress a/default/good)" in shown


async def test_an_object_of_another_class_is_named_with_the_reason(answers: bool, tmp_path: Path) -> None:
    async with served_history(*BASE, plans=answers) as history:
        answer = await history.ask("plan", write(tmp_path, ingress("new", host="b.example", class_name="nginx")))
        assert "not ours" in answer.err
        assert "no difference" in answer.out


async def test_classes_of_the_cluster_count(answers: bool, tmp_path: Path) -> None:
    async with served_history(*BASE, ingress_class("edge"), plans=answers) as history:
        path = write(tmp_path, ingress("new", host="b.example", class_name="edge"))
        assert "+ host b.example" in (await history.ask("plan", path, code=1)).out


async def test_the_age_of_an_object_stays_so_that_it_wins_as_before(answers: bool, tmp_path: Path) -> None:
    younger = ingress("younger", host="a.example", created="2025-01-01T00:00:00Z")
    async with served_history(*BASE, younger, plans=answers) as history:
        edited = {**stripped(ingress("web", host="a.example")), "kind": "Ingress"}
        edited["metadata"]["annotations"] = {"headgate.dev/read-timeout": "5s"}
        found = (await history.ask("plan", "--json", write(tmp_path, edited), code=None)).json
        [change] = found["changes"]
        assert (change["source"], change["fields"][0]["field"]) == ("Ingress a/default/web", "timeouts.read_s")


async def test_a_new_object_is_the_youngest_in_a_cluster_and_the_oldest_in_a_folder(
    answers: bool, tmp_path: Path
) -> None:
    async with served_history(*BASE, plans=answers) as history:
        path = write(tmp_path, stripped(ingress("aaa", host="a.example")))
        found = (await history.ask("plan", "--json", path, code=None)).json
        assert [change["source"] for change in found["changes"]] == ["Ingress a/default/aaa"]
        await history.stores.log_writer.announce(
            ClusterAnnouncement(cluster="a", source="kubernetes", instance="w", kinds=KINDS, announced_at=NOW)
        )
        found = (await history.ask("plan", "--json", path, code=2)).json
        assert found["changes"] == []
        assert found["findings"][0]["object"] == "Ingress default/aaa"


async def test_pruning_takes_away_what_is_not_there(tmp_path: Path) -> None:
    other = ingress("other", host="c.example", namespace="elsewhere")
    async with served_history(*BASE, ingress("more", host="b.example"), other) as history:
        path = write(tmp_path, stripped(ingress("web", host="a.example")))
        assert (await history.ask("plan", "--json", path)).json["changes"] == []
        found = (await history.ask("plan", "--json", "--prune", path, code=1)).json
        assert [(change["operation"], change["name"]) for change in found["changes"] if change["kind"] == "host"] == [
            ("removed", "b.example")
        ]


async def test_a_pinned_table_is_told_of_and_the_live_one_compared(answers: bool, tmp_path: Path) -> None:
    async with served_history(*BASE, plans=answers) as history:
        await history.say(ingress("more", host="b.example"))
        await history.ask("rollback", "HEAD~1")
        answer = await history.ask("plan", write(tmp_path, stripped(ingress("more", host="b.example"))))
        assert "no difference" in answer.out
        assert "is pinned to" in answer.out


async def test_settings_unlike_the_translators_are_told_of(tmp_path: Path) -> None:
    other = ingress("more", host="b.example", class_name="other")
    async with served_history(*BASE, other, class_names=["other"]) as history:
        answer = await history.ask("plan", write(tmp_path, stripped(service())))
        assert "are its settings" in answer.out


async def test_of_several_clusters_one_has_to_be_named(answers: bool, tmp_path: Path) -> None:
    async with served_history(*BASE, plans=answers) as history:
        await fill(history.stores, ingress("web", host="b.example"), cluster="b")
        path = write(tmp_path, ingress("new", host="c.example"))
        answer = await history.ask("plan", path, code=2)
        assert answer.err == "headgate: say which cluster the manifests are for: --cluster a or --cluster b\n"
        answer = await history.ask("plan", path, "--cluster=c", code=2)
        assert answer.err == "headgate: there is no cluster 'c' in the table, but a, b\n"
        found = (await history.ask("plan", path, "--cluster=b", "--json", code=None)).json
        assert found["changes"][0]["name"] == "c.example"


async def test_without_a_watcher_there_is_nothing_to_plan_for(tmp_path: Path) -> None:
    async with empty_history() as history:
        answer = await history.ask("plan", write(tmp_path, service()), code=2)
        assert answer.err.startswith("headgate: no watcher has said anything yet")
        assert answer.err.count("\n") == 1


async def test_two_sets_of_manifests_are_compared_without_a_server(tmp_path: Path) -> None:
    history = History(None, "nats://127.0.0.1:1")  # type: ignore[arg-type]
    old = write(tmp_path, service(), ingress("web", host="a.example"), name="old.json")
    new = write(tmp_path, service(), ingress("web", host="b.example"), name="new.json")
    shown = (await history.ask("plan", new, f"--against={old}", code=1)).out
    assert "+ host b.example" in shown
    assert "- host a.example" in shown
    assert (await history.ask("plan", old, f"--against={old}")).out.startswith("no difference")


@pytest.mark.parametrize("flags", [["no-such-file.yaml"], []])
async def test_wrong_paths_are_one_line(flags: list[str]) -> None:
    history = History(None, "nats://127.0.0.1:1")  # type: ignore[arg-type]
    answer = await history.ask("plan", *flags, code=2)
    assert answer.err.count("\n") == 1


async def test_no_server_is_one_line_with_exit_code_3(tmp_path: Path) -> None:
    history = History(None, "nats://127.0.0.1:1")  # type: ignore[arg-type]
    answer = await history.ask("plan", write(tmp_path, service()), code=3)
    assert answer.err == "headgate: no NATS server answers at nats://127.0.0.1:1: start it, or give --nats-url URL\n"


async def test_a_plan_for_a_table_is_made_of_what_the_table_selects(answers: bool, tmp_path: Path) -> None:
    async with served_history(*BASE, namespaces=["default"], plans=answers) as history:
        elsewhere = ingress("new", namespace="shop", host="b.example")
        answer = await history.ask("plan", write(tmp_path, elsewhere))
        assert answer.err.endswith("Ingress shop/new: not ours: namespace 'shop' is not in the table\n")
        assert "no difference" in answer.out
        shown = (await history.ask("status", code=None)).out
        assert "selects: clusters *; namespaces default" in shown


async def test_what_is_missing_is_asked_for_before_the_log_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning_module, "read_world", refuse_to_read)
    async with served_history(*BASE) as history:
        await fill(history.stores, service(), cluster="b")
        answer = await history.ask("plan", write(tmp_path, ingress("new")), code=2)
        assert "say which cluster the manifests are for: --cluster a or --cluster b" in answer.err
