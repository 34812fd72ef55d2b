"""`headgate events` on a real log."""

import asyncio
import json
import re
import signal
import sys

import pytest

from fakes.gateway.served_history import History, empty_history
from fakes.stores.nats import lose_store, real_bus
from fakes.translator.deltas import applied, deleted, endpoint_slice, ingress, service
from headgate.common.deltas import Author, Delta, Operation
from headgate.common.stores.nats import NatsStores

INTERRUPTIBLE = """
import signal
from headgate.cli.__main__ import main
signal.signal(signal.SIGINT, signal.default_int_handler)
raise SystemExit(main())
"""
"""`python -m headgate.cli` as in a terminal: shells start what they put in the background with SIGINT ignored, and
children inherit that."""


async def fill(history: History) -> None:
    """A Service with four versions, an Ingress that is gone again, an EndpointSlice; in two clusters."""
    for port in (80, 81, 82, 83):
        await history.append(authored(applied(service(port=port)), "helm"))
    web = ingress("web", host="a.example", namespace="shop")
    await history.append(authored(applied(web), "kubectl-edit"))
    await history.append(applied(endpoint_slice("web", "10.0.0.1"), "b"))
    await history.append(deleted(web))


def authored(delta: Delta, name: str) -> Delta:
    return delta.model_copy(update={"author": Author(name)})


async def test_events_are_lines_with_what_happened_and_by_whom() -> None:
    async with empty_history() as history:
        await fill(history)
        shown = (await history.ask("events")).out.splitlines()
        assert len(shown) == 7
        assert re.search(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  apply   Service        a/default/web  by helm$", shown[0])
        assert re.search(r"  apply   Ingress        a/shop/web  by kubectl-edit$", shown[4])
        assert re.search(r"  delete  Ingress        a/shop/web$", shown[6])


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--kind=Ingress"], ["apply web", "delete web"]),
        (["--kind=ingresses", "--kind=endpointslice"], ["apply web", "apply web-1", "delete web"]),
        (["--cluster=b"], ["apply web-1"]),
        (["-n", "shop"], ["apply web", "delete web"]),
        (["--name=web-1"], ["apply web-1"]),
        (["--name=none"], []),
        (["--limit=1"], ["delete web"]),
        (["--limit=2", "--kind=Service"], ["apply web", "apply web"]),
        (["--since=1h", "--cluster=b"], ["apply web-1"]),
        (["--since=2100-01-01"], []),
        (["--limit=0"], []),
        (["--at=2s", "--cluster=b"], ["apply web-1"]),
        (["--at=1h"], []),
        (["--until=1h"], []),
        (["--since=1h", "--until=2100-01-01", "--cluster=b"], ["apply web-1"]),
    ],
)
async def test_events_are_filtered(flags: list[str], expected: list[str]) -> None:
    async with empty_history() as history:
        await fill(history)
        found = (await history.ask("events", "--json", *flags)).json_lines
        assert [f"{one['operation']} {one['name']}" for one in found] == expected


async def test_json_has_all_that_the_log_says_and_the_object_on_demand() -> None:
    async with empty_history() as history:
        await fill(history)
        [one] = (await history.ask("events", "--json", "--cluster=b")).json_lines
        assert {"sequence", "logged_at", "observed_at", "uid", "resource_version", "by"} <= one.keys()
        assert "object" not in one
        versions = (await history.ask("events", "--json", "--kind=Service", "--with-objects")).json_lines
        assert [one["object"]["spec"]["ports"][0]["port"] for one in versions] == [80, 81, 82, 83]


async def test_a_long_log_is_read_from_its_end() -> None:
    async with empty_history() as history:
        wanted = await history.append(applied(ingress("early", host="a.example")))
        await history.stores.log_writer.append_all([applied(service(f"s{number}")) for number in range(1500)])
        assert len((await history.ask("events", "--json")).json_lines) == 50
        [found] = (await history.ask("events", "--json", "--kind=Ingress")).json_lines
        assert found["sequence"] == wanted


async def test_following_shows_what_happens_until_it_is_interrupted() -> None:
    async with real_bus() as (server, bus):
        history = History(await NatsStores.open(bus), server.url)
        await fill(history)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", INTERRUPTIBLE, "events", "-f", "--limit=1", "--json", "--kind=Ingress"),
            f"--nats-url={server.url}",
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        assert json.loads(await process.stdout.readline())["operation"] == "delete"
        await history.append(applied(service("unwanted")))
        await history.append(applied(ingress("more", host="b.example")))
        assert json.loads(await process.stdout.readline())["name"] == "more"
        await server.kill()
        await server.start()
        await history.insist(lambda: history.append(applied(ingress("after", host="c.example"))))
        assert json.loads(await process.stdout.readline())["name"] == "after"
        await lose_store(server)
        await history.insist(lambda: history.append(applied(ingress("anew", host="d.example"))))
        assert json.loads(await process.stdout.readline())["name"] == "anew"
        process.send_signal(signal.SIGINT)
        _, told = await process.communicate()
        assert (process.returncode, told.strip()) == (130, b"")


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (
            ["--kind=Deployment"],
            "--kind 'Deployment' is not read by Headgate: give one of ",
        ),
        (["--since=soon"], "--since 'soon': give a time ago such as 90s"),
        (["--with-objects"], "--with-objects is for --json"),
    ],
)
async def test_wrong_input_is_one_line_with_a_remedy(flags: list[str], told: str) -> None:
    history = History(None, "nats://127.0.0.1:1")  # type: ignore[arg-type]
    answer = await history.ask("events", *flags, code=2)
    assert told in answer.err
    assert answer.err.count("\n") == 1


def test_operations_fit_their_column() -> None:
    assert max(len(operation) for operation in Operation) == 6
