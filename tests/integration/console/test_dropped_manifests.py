"""Manifests that somebody drops in, and tables of the past: the console has the command answer, which is real here."""

import asyncio
import io
import json
import os
import signal
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from fakes.console import VIEWER, Console, Got, console, people_file
from fakes.translator.deltas import endpoint_slice, ingress, service
from fakes.waiting import until
from headgate.console import commands
from headgate.console.commands import MAX_MANIFESTS
from headgate.watcher.sources.manifests.folders import scan

BASE = (ingress("web", host="a.example"), service(), endpoint_slice("web", "10.0.0.1"))
YAML = "application/yaml"


def written(*manifests: Any) -> str:
    """As people write them; JSON is YAML."""
    kept = ("name", "namespace", "annotations")
    plain = [{**one, "metadata": {name: one["metadata"].get(name) for name in kept}} for one in manifests]
    return "\n---\n".join(json.dumps(one) for one in plain)


async def post(made: Console, path: str, body: str | bytes, kind: str = YAML, token: str = "") -> Got:
    content = body.encode() if isinstance(body, str) else body
    return await made.ask("POST", path, token, data=io.BytesIO(content), Content_Type=kind)


async def drop(made: Console, path: str, **fields: str) -> str:
    form = aiohttp.FormData(default_to_multipart=True)
    for name, value in fields.items():
        form.add_field(name, value, filename="web.yaml" if name == "file" else None)
    found = await made.ask("POST", path, data=form)
    assert found.status == 200, found.text
    return found.text


async def test_a_plan_says_what_would_change_and_what_is_wrong() -> None:
    async with console(*BASE) as made:
        asked = written(ingress("web", host="a.example", path="/shop"), ingress("lost", host="b.example", service="no"))
        answer = json.loads((await post(made, "/api/v1/plan", asked)).body)
        assert answer["counts"]["route"] == {"added": 2, "removed": 1}
        assert [one["reason"] for one in answer["findings"]] == ["ServiceNotFound"]
        for field in ("manifests", "file"):
            page = await drop(made, "/plan", **{field: asked})
            assert "/shop prefix" in page
            assert "Service default/no not found" in page
            assert "headgate plan FILE" in page
        assert (await made.api("/routes?q=/shop"))["total"] == 0


async def test_why_objects_are_not_ours_is_on_the_page() -> None:
    async with console(*BASE) as made:
        page = await drop(made, "/plan", manifests=written(ingress("other", host="b.example", class_name="theirs")))
        assert "not ours: there is no IngressClass" in page


async def test_of_very_many_findings_the_page_says_how_many_more_there_are() -> None:
    many = [ingress(f"web-{number}", host=f"{number}.example", service="no") for number in range(310)]
    async with console(*BASE) as made:
        assert "and 10 more" in await drop(made, "/plan", manifests=written(*many))


async def test_what_is_missing_counts_as_deleted_where_that_is_asked() -> None:
    async with console(*BASE) as made:
        other = written(ingress("other", host="b.example"))
        kept, pruned = [
            json.loads((await post(made, f"/api/v1/plan?prune={prune}", other)).body) for prune in ("false", "true")
        ]
        assert "removed" not in kept["counts"]["host"]
        assert pruned["counts"]["host"]["removed"] == 1
        assert "a.example" in await drop(made, "/plan", manifests=other, prune="on")
        assert "there is no cluster" in await drop(made, "/plan", manifests=other, cluster="nowhere")


async def test_an_audit_says_what_becomes_of_annotations() -> None:
    lost = ingress("old", host="a.example", annotations={"nginx.ingress.kubernetes.io/enable-modsecurity": "true"})
    async with console(*BASE) as made:
        answer = json.loads((await post(made, "/api/v1/audit", written(lost))).body)
        named = {one["name"].rpartition("/")[2]: one["verdict"] for one in answer["summary"]}
        assert named["enable-modsecurity"] != "honoured"
        page = await drop(made, "/audit", manifests=written(lost))
        assert "enable-modsecurity" in page
        assert named["enable-modsecurity"] in page


async def test_a_request_is_explained_by_a_table_of_the_past() -> None:
    async with console(*BASE) as made:
        await made.history.say(ingress("web", host="a.example", path="/new"))
        now, before = [
            await made.api(f"/explain?url=http://a.example/old&client=192.0.2.1&headers=X: y&revision={name}")
            for name in ("HEAD", "HEAD~1")
        ]
        assert (now["winner"], bool(before["winner"])) == (None, True)
        assert before["version"] != now["version"]


@pytest.mark.parametrize(
    ("path", "body", "kind", "status", "said"),
    [
        ("/plan", "", YAML, 400, "there are no manifests"),
        ("/plan", "{", YAML, 400, ""),
        ("/plan", "kind: Ingress", "text/plain", 400, "application/yaml"),
        ("/plan", b" " * (MAX_MANIFESTS + 1), YAML, 400, "too much"),
        ("/plan?cluster=nowhere", written(BASE[0]), YAML, 400, "no cluster 'nowhere'"),
        ("/plan?prune=perhaps", written(BASE[0]), YAML, 400, "must be true or false"),
        ("/plan?cluster=%00", written(BASE[0]), YAML, 400, "NUL"),
        ("/audit", "", YAML, 400, "there are no manifests"),
        ("/audit?all=true", written(BASE[0]), YAML, 400, "has no parameter"),
    ],
)
async def test_what_cannot_be_asked_is_said(path: str, body: str | bytes, kind: str, status: int, said: str) -> None:
    async with console(*BASE) as made:
        found = await post(made, f"/api/v1{path}", body, kind)
        if body == "{":  # the command finds nothing wrong but the manifest, and says where
            assert "planned" not in found.text
            assert found.status == 200
            assert json.loads(found.body)["findings"][0]["severity"] == "error"
            return
        assert found.status == status, found.text
        assert said in json.loads(found.body)["detail"]


async def test_who_has_to_log_in_may_ask_as_a_viewer(tmp_path: Path) -> None:
    async with console(*BASE, flags=[f"--console-people-file={people_file(tmp_path)}"]) as made:
        asked = written(BASE[0])
        assert (await post(made, "/api/v1/plan", asked)).status == 401
        assert (await post(made, "/api/v1/plan", asked, token=VIEWER)).status == 200
        await made.ask("POST", "/login", data={"token": VIEWER})
        form = aiohttp.FormData({"token": "of another session", "manifests": asked}, default_to_multipart=True)
        assert (await made.ask("POST", "/plan", data=form)).status == 403
        form = aiohttp.FormData({"manifests": asked}, default_to_multipart=True)
        assert (await made.ask("POST", "/audit", data=form, Sec_Fetch_Site="cross-site")).status == 403


async def test_a_form_that_is_none_or_too_large_is_refused() -> None:
    async with console(*BASE) as made:
        found = await made.ask("POST", "/plan", data=b"x", Content_Type="text/plain")
        assert (found.status, "the form cannot be read" in found.text) == (400, True)
        form = aiohttp.FormData(default_to_multipart=True)
        form.add_field("file", io.BytesIO(b" " * (MAX_MANIFESTS + 5000)), filename="web.yaml")
        found = await made.ask("POST", "/plan", data=form)
        assert (found.status, "too much" in found.text) == (400, True)


@pytest.mark.parametrize(
    "parts",
    [
        b"--x\r\nno header\r\n\r\n\r\n--x--\r\n",
        b"--x\r\nContent-Disposition: form-data; name=_charset_\r\n\r\n" + b"u" * 40 + b"\r\n--x--\r\n",
        b"--x\r\n" + b"a" * 10_000 + b": b\r\n\r\n\r\n--x--\r\n",
        b"".join(b'--x\r\nContent-Disposition: form-data; name="%d"\r\n\r\n\r\n' % each for each in range(17)),
    ],
    ids=["no header", "a long charset", "a long header", "many fields"],
)
async def test_a_form_with_parts_that_no_browser_sends_is_refused(parts: bytes) -> None:
    async with console(*BASE) as made:
        found = await made.ask("POST", "/plan", data=parts, Content_Type="multipart/form-data; boundary=x")
        assert (found.status, "the form cannot be read" in found.text) == (400, True)


@pytest.mark.parametrize("field", ["manifests", "file"])
async def test_a_form_shows_all_of_a_text_again_or_nothing(field: str) -> None:
    text = f"# {'x' * 200_000}\nkind: Last\n"
    async with console(*BASE) as made:
        assert "xxxx" not in await drop(made, "/audit", **{field: text})
        assert "kind: Last" in await drop(made, "/audit", **{field: text[190_000:]})


async def test_an_answer_that_takes_too_long_is_given_up_and_others_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "ANSWER_S", 0.01)
    async with console(*BASE) as made:
        answers = await asyncio.gather(*(post(made, "/api/v1/plan", written(BASE[0])) for _ in range(6)))
        details = sorted(json.loads(one.body)["detail"] for one in answers)
        assert {one.status for one in answers} == {503}
        assert details[:4] == ["headgate plan took more than 0.01 s"] * 4
        assert all("answered one by one" in detail for detail in details[4:])


async def test_an_answer_that_is_too_large_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "MAX_ANSWER", 200_000)
    items = [{**ingress(f"web-{number}", path="LONG"), "status": {}} for number in range(40)]
    asked = written({"kind": "List", "metadata": {}, "long": "TEXT", "items": items})
    asked = asked.replace('"TEXT"', f"&long {'x' * 10_000}").replace('"LONG"', "*long ")
    async with console(*BASE) as made:
        answer = await post(made, "/api/v1/audit", asked)
        assert answer.status == 400
        assert "more than 200,000 bytes" in json.loads(answer.body)["detail"]


async def test_a_command_that_was_ended_is_asked_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "bound", lambda process_id: os.kill(process_id, signal.SIGKILL))
    async with console(*BASE) as made:
        answer = await post(made, "/api/v1/audit", written(BASE[0]))
        assert answer.status == 400
        assert "needs more than 4 GiB of memory or 120 s" in json.loads(answer.body)["detail"]


async def test_a_file_of_the_consoles_settings_is_not_the_commands(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "console.toml").write_text('table = "default"\ngateway_url = "http://127.0.0.1:9"\n')
    monkeypatch.setenv("HEADGATE_CONFIG", str(tmp_path / "console.toml"))
    async with console(*BASE) as made:
        for path in ("/api/v1/plan", "/api/v1/audit"):
            answer = await post(made, path, written(BASE[0]))
            assert answer.status == 200, answer.text


async def test_manifests_that_are_asked_about_are_hidden_from_watchers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    began = asyncio.create_subprocess_exec
    seen: list[tuple[Path, dict[str, Any]]] = []

    async def start(*words: str, **more: Any) -> asyncio.subprocess.Process:
        seen.append((Path(more["cwd"]).parent, scan(str(tmp_path)).files))
        return await began(*words, **more)

    async with console(*BASE, flags=[f"--data-dir={tmp_path}"]) as made:
        monkeypatch.setattr(asyncio, "create_subprocess_exec", start)
        assert (await post(made, "/api/v1/audit", written(BASE[0]))).status == 200
    assert seen == [(tmp_path, {})]
    assert os.listdir(tmp_path) == []


async def test_where_memory_runs_out_the_command_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    began = asyncio.create_subprocess_exec
    started: list[asyncio.subprocess.Process] = []

    async def start(*words: str, **more: Any) -> asyncio.subprocess.Process:
        started.append(await began(*words, **more))
        return started[-1]

    async with console(*BASE) as made:
        monkeypatch.setattr(asyncio, "create_subprocess_exec", start)
        asking = asyncio.create_task(post(made, "/api/v1/audit", written(BASE[0])))
        await until(lambda: bool(started) and score(started[0].pid) == 1000)
        assert (await asking).status == 200


def score(pid: int) -> int:
    return int(Path(f"/proc/{pid}/oom_score_adj").read_text())


async def test_a_password_in_the_url_of_the_bus_is_not_among_the_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    started = asyncio.create_subprocess_exec
    flags: list[str] = []

    async def start(*words: str, **more: Any) -> asyncio.subprocess.Process:
        flags.extend(words)
        return await started(*words, **more)

    monkeypatch.setattr(asyncio, "create_subprocess_exec", start)
    async with console(*BASE) as made:
        assert (await post(made, "/api/v1/plan", written(BASE[0]))).status == 200
        assert flags[-1] == "--table=default"
        assert not any("nats://" in flag for flag in flags)
