"""The questions of three in the morning, at 10,000 routes: each has one command and, but for two, one page.

What the answers are is judged here. How long they take is printed (`pytest -s`), and stands in docs/console.md: figures
are not asserted.
"""

import os
import resource
import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

import pytest

from fakes.busy_console import FAILING, HOST, BusyConsole, busy_console
from fakes.command import headgate
from fakes.translator.manifests import ingress, write

ROUNDS = 3


class Question(NamedTuple):
    """A question, how it is asked, and what an answer has to have."""

    asked: str
    command: tuple[str, ...]
    code: int
    said: str
    page: str = ""
    """Empty: there is no page for it."""
    shown: str = ""


QUESTIONS = (
    Question(
        "what serves a host",
        ("explain", "GET", f"http://{HOST}/"),
        0,
        "web",
        f"/routes?q={HOST}",
        "Ingress default/web",
    ),
    Question(
        "why a request goes there",
        ("explain", "GET", f"http://{HOST}/cart", "-H", "X-Kind: a"),
        0,
        "takes the path",
        f"/why?request=curl%20-H%20'X-Kind:%20a'%20http://{HOST}/cart",
        "takes the path",
    ),
    Question("what changed, and by whom", ("history", "--limit=2"), 0, "changing.yaml", "/changes", "changing.yaml"),
    Question("what a manifest would change", ("plan", "NEW"), 1, "+ host new.example"),
    Question(
        "undo it",
        ("rollback", "HEAD~1", "--dry-run"),
        0,
        "changing-2.example",
        "/changes/diff?from=HEAD~1&to=HEAD",
        "changing-2.example",
    ),
    Question("which replicas are behind", ("status",), 1, "published", "/fleet", "up to date"),
    Question(
        "which objects are broken", ("status",), 1, "Service default/gone not found", "/objects", "ServiceNotFound"
    ),
    Question("whether a cluster is healthy", ("clusters",), 0, "served", "/clusters", "<td>local</td>"),
    Question("what of the old controller is lost", ("audit", "OLD"), 0, "nginx.ingress.kubernetes.io/server-snippet"),
    Question(
        "which certificates end", ("certificates", "--expiring=30d"), 0, "", "/certificates", "The table has none"
    ),
    Question("most requests", ("top", "--once"), 0, HOST, "/", HOST),
    Question("what is slowest", ("top", "--once", "--by=p99"), 0, HOST, "/routes?by=p99", HOST),
    Question(
        "which endpoints are out",
        ("endpoints",),
        0,
        "endpoints get requests",
        "/endpoints",
        "All endpoints get requests",
    ),
    Question(
        "requests of one route", ("tail", f"--host={HOST}", "--limit=1"), 0, "/cart", f"/live?host={HOST}", "Listening"
    ),
    Question("a failing request", ("tail", "--status=5xx", "--limit=1"), 0, FAILING, "/live?status=5", "Listening"),
)


class Times(NamedTuple):
    """How long one answer took, in seconds."""

    command: float
    processor: float
    """Of the command alone, with its start."""
    page: float


async def ask(made: BusyConsole, question: Question, words: Sequence[str]) -> Times:
    began, used = time.perf_counter(), _processor_s()
    answer = await headgate(*words, code=None)
    took, used = time.perf_counter() - began, _processor_s() - used
    assert (answer.code, question.said in answer.out) == (question.code, True), (question.asked, answer)
    if question.page:
        assert question.shown in await made.page(question.page), question.asked
    return Times(took, used, made.took.get(question.page, 0.0))


def _processor_s() -> float:
    """Of all processes that were started here and have ended."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


async def answer(made: BusyConsole, question: Question, folder: Path) -> None:
    """Ask some times, and print a line of the table with the times in the middle."""
    paths = {"NEW": str(folder / "new.yaml"), "OLD": str(folder / "old.yaml")}
    words = [paths.get(word, word) for word in question.command]
    words += [] if words[0] == "audit" else [f"--data-dir={made.stack.data_dir}"]
    times = [await ask(made, question, words) for _ in range(ROUNDS)]
    command, processor, page = (median(each) for each in zip(*times, strict=True))
    shown = f"{1000 * page:.0f} ms" if question.page else ""
    asked = f"{question.asked} | `headgate {shlex.join(question.command)}`"
    print(f"| {asked} | {command:.2f} s | {processor:.2f} s | {shown} |")


@pytest.mark.slow
async def test_every_question_has_one_command_and_one_page(tmp_path: Path) -> None:
    served, others = tmp_path / "served", tmp_path / "others"
    served.mkdir()
    others.mkdir()
    write(others, "new.yaml", ingress("new", "new.example", "web"))
    old = ingress("old", "old.example", "web").replace(
        "metadata: {name: old}",
        "metadata: {name: old, annotations: {nginx.ingress.kubernetes.io/server-snippet: 'return 200;'}}",
    )
    write(others, "old.yaml", old)
    async with busy_console(served) as made:
        await made.change(1)
        await made.change(2)
        await made.until("/traffic", lambda said: said["workers"])
        print(f"\nload {os.getloadavg()[0]:.1f}\n\n| question | command | took | of it processor | page |")
        print("|---|---|---:|---:|---:|")
        for question in QUESTIONS:
            await answer(made, question, others)
