"""The quickstart as a newcomer does it: what `make up` starts, the line that it prints, and the questions after it."""

import asyncio
import json
import os
import re
import shlex
import shutil
import ssl
import sys
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest
import pytest_asyncio

from fakes.gateway.ports import free_ports
from fakes.stack import Stack

ROOT = Path(__file__).parents[2]
HOST = "demo.localhost"
BOUND_S = 30.0
pytestmark = pytest.mark.asyncio(loop_scope="module")


class Quickstart(NamedTuple):
    stack: Stack
    folder: Path


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def quickstart(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Quickstart]:
    """The quickstart's manifests with the demo backends on free ports."""
    folder = tmp_path_factory.mktemp("quickstart")
    ports = dict(zip(("9101", "9102"), map(str, free_ports(2)), strict=True))
    for source in sorted((ROOT / "examples" / "quickstart").glob("*.yaml")):
        if not source.name.endswith(".secret.yaml"):
            text = re.sub("9101|9102", lambda found: ports[found[0]], source.read_text())
            (folder / source.name).write_text(text)
    await run(sys.executable, str(ROOT / "examples" / "make_certificate.py"), str(folder), "secure.localhost")
    backends = [f"--demo-backend=red={ports['9101']}", f"--demo-backend=blue={ports['9102']}"]
    async with Stack(manifests=folder, extra=backends) as stack:
        await stack.wait_for_answer(HOST, "/")
        yield Quickstart(stack, folder)


async def run(*command: str, expected: int | None = 0) -> str:
    """What a command prints; `expected` None takes any exit code."""
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, env=os.environ
    )
    async with asyncio.timeout(BOUND_S):
        printed, _ = await process.communicate()
    assert expected in (None, process.returncode), printed.decode()
    return printed.decode()


async def headgate(*arguments: str, expected: int | None = 0) -> str:
    return await run(sys.executable, "-m", "headgate.cli", *arguments, expected=expected)


async def test_the_line_that_is_printed_works(quickstart: Quickstart) -> None:
    await quickstart.stack.wait_for_log(f"curl -H 'Host: {HOST}'")  # printed once `up` knows what the gateway serves
    found = re.search(r"try +(curl .*)", quickstart.stack.log)
    assert found
    words = shlex.split(found[1])
    assert words[:3] == ["curl", "-H", f"Host: {HOST}"]
    if shutil.which("curl"):
        assert json.loads(await run(*words, "--silent"))["host"] == HOST
    else:
        assert words[3] == f"http://127.0.0.1:{quickstart.stack.http_port}/"


async def test_red_and_blue_take_turns(quickstart: Quickstart) -> None:
    names = [(await quickstart.stack.get(HOST, "/")).json["name"] for _ in range(20)]
    assert Counter(names) == {"red": 10, "blue": 10}


async def test_the_path_of_red_is_always_red(quickstart: Quickstart) -> None:
    assert {(await quickstart.stack.get(HOST, "/red/x")).json["name"] for _ in range(6)} == {"red"}


async def test_an_unknown_host_is_a_404(quickstart: Quickstart) -> None:
    assert (await quickstart.stack.get("nobody.example", "/")).status == 404


async def test_tls_has_the_certificate_of_the_secret(quickstart: Quickstart) -> None:
    context = ssl.create_default_context(cafile=str(quickstart.folder / "demo-tls.crt"))
    url = f"https://127.0.0.1:{quickstart.stack.https_port}/"
    async with (
        aiohttp.ClientSession() as session,
        session.get(url, headers={"Host": "secure.localhost"}, ssl=context, server_hostname="secure.localhost") as got,
    ):
        assert got.status == 200
        assert (await got.json())["headers"]["X-Forwarded-Proto"] == "https"


async def test_an_endpoint_that_is_not_ready_gets_nothing(quickstart: Quickstart) -> None:
    path = quickstart.folder / "demo.yaml"
    before = path.read_text()
    path.write_text(before.replace("conditions: { ready: true } # Try: false", "conditions: { ready: false } #"))
    await until_names_are(quickstart.stack, {"blue"})
    path.write_text(before)
    await until_names_are(quickstart.stack, {"red", "blue"})


async def until_names_are(stack: Stack, expected: set[str]) -> None:
    async with asyncio.timeout(BOUND_S):
        while {(await stack.get(HOST, "/")).json["name"] for _ in range(4)} != expected:  # noqa: ASYNC110 - a process
            await asyncio.sleep(0.02)


class TestQuestions:
    """The commands that ask a running Headgate."""

    async def test_explain_names_the_winner(self, quickstart: Quickstart) -> None:
        admin = f"--admin-url=http://127.0.0.1:{quickstart.stack.admin_port}"
        shown = await headgate("explain", "GET", f"http://{HOST}/red", admin)
        assert re.search(r"wins +demo\.localhost +prefix +/red", shown)

    async def test_routes_lists_every_path_with_its_ready_endpoints(self, quickstart: Quickstart) -> None:
        shown = await headgate("routes", f"--data-dir={quickstart.stack.data_dir}")
        assert re.search(r"demo\.localhost +/red +prefix +\S+ +1/1 +Ingress default/demo", shown)
        assert re.search(r"demo\.localhost +/ +prefix +\S+ +2/2 +Ingress default/demo", shown)

    async def test_history_lists_revisions_newest_first(self, quickstart: Quickstart) -> None:
        answer: list[dict[str, Any]] = json.loads(
            await headgate("history", f"--data-dir={quickstart.stack.data_dir}", "--json")
        )
        versions = [tuple(each["version"]) for each in answer]
        assert versions == sorted(versions, reverse=True)
        assert versions

    async def test_status_says_that_all_is_well(self, quickstart: Quickstart) -> None:
        shown = ""
        async with asyncio.timeout(BOUND_S):
            while "problems: none" not in shown:  # the change of another test may be on its way
                shown = await headgate("status", f"--data-dir={quickstart.stack.data_dir}", expected=None)
        assert "clusters: local" in shown
        for service in ("nats", "watcher", "translator", "gateway", "red", "blue"):
            assert re.search(rf"^{service} +\d+ +0$", shown, re.MULTILINE)

    async def test_status_reports_an_object_with_an_error_and_exits_with_1(self, quickstart: Quickstart) -> None:
        path = quickstart.folder / "broken.yaml"
        path.write_text(
            (quickstart.folder / "secure.yaml").read_text().replace("demo-tls", "gone").replace("secure", "b")
        )
        flags = (f"--data-dir={quickstart.stack.data_dir}", "--json")
        objects: list[Any] = []
        async with asyncio.timeout(BOUND_S):
            while not objects:
                objects = json.loads(await headgate("status", *flags, expected=None))["objects"]
        assert objects[0]["problems"][0]["reason"] == "SecretNotFound"
        await headgate("status", *flags, expected=1)
        path.unlink()

    async def test_the_quickstart_has_no_mistakes(self, quickstart: Quickstart) -> None:
        assert "0 errors, 0 warnings" in await headgate("check", str(quickstart.folder))
