"""`headgate plan` where a translator answers, and where it has to make the plan by itself."""

import asyncio
import json
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from fakes.gateway.served_history import History, planning, served_history
from fakes.gateway.tls import SelfSigned
from fakes.translator.deltas import applied, endpoint_slice, ingress, service
from headgate.cli.offline import planning as planning_module
from headgate.cli.terminal.progress import Progress
from headgate.common.bus import planning as bus_planning
from headgate.common.planning import PlanAnswer, PlanBasis, PlanOutcome, encode, plan_subject
from headgate.translator.planning import desk as desk_module

BASE = (service(), endpoint_slice("web", "10.0.0.1"), ingress("web", host="a.example", created="2024-01-01T00:00:00Z"))


@pytest.fixture
def reads_of_the_log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A table's name for each time that a command reads the whole log."""
    found: list[str] = []
    read_world = planning_module.read_world

    async def read(*arguments: Any) -> planning_module.World:
        found.append(arguments[2])
        return await read_world(*arguments)

    monkeypatch.setattr(planning_module, "read_world", read)
    return found


def write(folder: Path, *manifests: Any) -> str:
    path = folder / "planned.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(manifests)}))
    return str(path)


async def plan(history: History, folder: Path, *flags: str) -> str:
    """Return the plan of a new host."""
    answer = await history.ask("plan", *flags, write(folder, ingress("new", host="b.example")), code=None)
    assert "+ host b.example" in answer.out, answer
    return answer.out


async def test_a_translator_is_asked_and_the_log_is_not_read(tmp_path: Path, reads_of_the_log: list[str]) -> None:
    async with served_history(*BASE, plans=True) as history:
        await plan(history, tmp_path)
        assert reads_of_the_log == []


async def test_without_a_translator_the_log_is_read(tmp_path: Path, reads_of_the_log: list[str]) -> None:
    async with served_history(*BASE) as history:
        await plan(history, tmp_path)
        assert reads_of_the_log == ["default"]


@pytest.mark.parametrize("flag", ["--prune", "--class-names=headgate"])
async def test_flags_that_a_translator_does_not_know_have_the_log_read(
    tmp_path: Path, reads_of_the_log: list[str], flag: str
) -> None:
    async with served_history(*BASE, plans=True) as history:
        await plan(history, tmp_path, flag)
        assert reads_of_the_log == ["default"]


async def test_a_translator_of_another_release_is_not_believed(
    tmp_path: Path, reads_of_the_log: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk_module, "release", lambda: "another")
    async with served_history(*BASE, plans=True) as history:
        await plan(history, tmp_path)
        assert reads_of_the_log == ["default"]


@asynccontextmanager
async def answered(answer: Callable[[PlanBasis, bytes], Awaitable[bytes]]) -> AsyncIterator[History]:
    async with served_history(*BASE) as history, planning(history.stores.bus, answer):
        yield history


async def never(basis: PlanBasis, question: bytes) -> bytes:
    await asyncio.Event().wait()
    return b""


async def rubbish(basis: PlanBasis, question: bytes) -> bytes:
    return b"rubbish"


async def busy(basis: PlanBasis, question: bytes) -> bytes:
    return encode(PlanAnswer(outcome=PlanOutcome.BUSY))


@pytest.mark.parametrize("answer", [never, rubbish, busy])
async def test_without_a_plan_of_a_translator_the_log_is_read(
    tmp_path: Path,
    reads_of_the_log: list[str],
    monkeypatch: pytest.MonkeyPatch,
    answer: Callable[[PlanBasis, bytes], Awaitable[bytes]],
) -> None:
    monkeypatch.setattr(bus_planning, "ANSWER_S", 0.3)
    async with answered(answer) as history:
        await plan(history, tmp_path)
        assert reads_of_the_log == ["default"]


async def test_what_is_done_is_said_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(Progress, "begin", lambda _, what: said.append(what))
    async with served_history(*BASE) as history:
        await plan(history, tmp_path)
    assert said[:3] == [
        "reading manifests",
        "asking a translator",
        "reading the log, as no plan came from a translator: no translator listens",
    ]


async def test_the_translators_own_settings_say_which_objects_are_served(tmp_path: Path) -> None:
    async with served_history(*BASE, class_names=["other"], plans=True) as history:
        new = ingress("new", host="b.example", class_name="other")
        answer = await history.ask("plan", write(tmp_path, new), code=1)
        assert "+ host b.example" in answer.out
        assert "are its settings" not in answer.out


async def test_what_was_said_just_before_is_in_the_answer(tmp_path: Path, reads_of_the_log: list[str]) -> None:
    async with served_history(*BASE, plans=True) as history:
        for number in range(5):
            taken = ingress("new", host="b.example", path=f"/{number}", created="2024-01-01T00:00:00Z")
            await history.append(applied(taken))
            planned = write(tmp_path, ingress("new", host="b.example", path="/p"))
            found = (await history.ask("plan", "--json", planned, code=1)).json
            assert found["counts"] == {"route": {"added": 1, "removed": 1}}
            assert f"/{number} prefix" in [one["name"] for one in found["changes"]]
        assert reads_of_the_log == []


async def test_no_private_key_travels_in_a_question(tmp_path: Path) -> None:
    heard: list[bytes] = []
    async with served_history(*BASE, plans=True) as history:

        async def hear(message: Any) -> None:
            heard.append(zlib.decompress(message.data))

        await history.stores.bus.subscribe(plan_subject("default"), hear, messages=10, size=10_000_000)
        secret = SelfSigned("b.example").secret("default", "tls")
        await history.ask("plan", write(tmp_path, secret, ingress("new", host="b.example")), code=None)
        (question,) = heard
        assert b'"sealed"' in question
        assert secret["data"]["tls.key"].encode() not in question
        assert b"PRIVATE KEY" not in question


async def test_a_translator_has_nothing_of_what_it_was_asked(tmp_path: Path) -> None:
    async with served_history(*BASE, ingress("bad", host="c.example", path="/good"), plans=True) as history:
        before = await history.manifest()
        assert before
        for changed in (ingress("bad", host="c.example", path="bad"), ingress("web", host="b.example"), service(81)):
            await history.ask("plan", write(tmp_path, changed), code=None)
        await history.say(ingress("more", host="d.example"))
        happened = (await history.ask("diff", "--json", str(before.version))).json
        assert [change["name"] for change in happened["changes"]] == ["d.example", "/ prefix"]
        found = await history.ask("status", "ingress/default/bad", code=None)
        assert "not served" not in found.out
