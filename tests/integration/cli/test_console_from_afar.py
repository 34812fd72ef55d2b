"""`headgate top` and `headgate endpoints` by a console: at once, and from afar."""

import asyncio
from pathlib import Path

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from fakes.command import headgate
from fakes.console import VIEWER, console, people_file
from fakes.traffic import counts, of_endpoint, of_route, summary
from fakes.translator.deltas import endpoint_slice, ingress, service
from headgate.common.traffic import UnfitEndpoint

OBJECTS = (ingress("web", host="a.example"), service(), endpoint_slice("web", "10.0.0.1", "10.0.0.2"))
BUSY = of_route("a.example|a/default/web prefix /", "a/default/web:80", counts(90, failed=9))
UNFIT = UnfitEndpoint("a/default/web:80", "10.0.0.2:8080", "ejected", 1.0, 2e9, "502")
TOLD = msgspec.structs.replace(summary(BUSY, of_endpoint("10.0.0.1:8080", counts(7)), unfit=(UNFIT,)), at=4e9)


async def test_traffic_is_what_the_console_has_heard() -> None:
    async with console(*OBJECTS, summaries=[TOLD]) as made:
        await made.until("/traffic", lambda said: said["workers"])
        said = await headgate("top", f"--server={made.url}", "--once")
        assert "1 workers in" in said.out.splitlines()[0]
        assert said.out.splitlines()[2].split()[0].startswith("a.example|")
        assert "10.0%" in said.out.splitlines()[2]
        document = (await headgate("top", f"--server={made.url}", "--endpoint", "--json")).json
        assert document["lines"][0]["endpoint"] == "10.0.0.1:8080"
        assert document["table"] == "default"


async def test_endpoints_are_what_the_console_knows() -> None:
    async with console(*OBJECTS, summaries=[TOLD]) as made:
        await made.until("/endpoints", lambda said: said["items"][0]["state"] == "ejected")
        said = await headgate("endpoints", f"--server={made.url}", code=1)
        assert "10.0.0.2:8080" in said.out
        assert "1 of 2 endpoints get requests" in said.out
        all_of_it = (await headgate("endpoints", "a/default/web:80", f"--server={made.url}", "--json", code=1)).json
        assert len(all_of_it["endpoints"]) == 2
        await headgate("endpoints", "a/default/none:80", f"--server={made.url}", code=2)


async def test_a_token_lets_the_command_in(tmp_path: Path) -> None:
    async with console(*OBJECTS, flags=[f"--console-people-file={people_file(tmp_path)}"]) as made:
        refused = await headgate("top", f"--server={made.url}", "--once", code=2)
        assert "is HEADGATE_CONSOLE_TOKEN right?" in refused.err
        await headgate("top", f"--server={made.url}", "--once", environment={"HEADGATE_CONSOLE_TOKEN": VIEWER})


async def test_no_token_is_sent_where_a_redirect_leads(tmp_path: Path) -> None:
    async with console(*OBJECTS, flags=[f"--console-people-file={people_file(tmp_path)}"]) as made:

        async def lead_on(request: web.Request) -> web.Response:
            raise web.HTTPFound(f"{made.url}{request.path_qs}")

        leading = web.Application()
        leading.router.add_get("/{path:.*}", lead_on)
        async with TestServer(leading) as server:
            asked = ("top", f"--server=http://127.0.0.1:{server.port}", "--once")
            refused = await headgate(*asked, code=2, environment={"HEADGATE_CONSOLE_TOKEN": VIEWER})
        assert "does not let us in" in refused.err


@pytest.mark.parametrize(
    ("flags", "code", "said"),
    [
        (["--server=console:9090"], 2, "is not a URL"),
        (["--server=http://127.0.0.1:9", "--nats-url=nats://127.0.0.1:9"], 2, "exclude each other"),
        (["--server=http://127.0.0.1:9"], 3, "no console answers at http://127.0.0.1:9"),
    ],
)
async def test_a_console_that_cannot_be_asked_says_why(flags: list[str], code: int, said: str) -> None:
    answers = await asyncio.gather(
        headgate("top", "--once", *flags, code=code), headgate("endpoints", *flags, code=code)
    )
    assert all(said in answer.err for answer in answers)
