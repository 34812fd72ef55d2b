"""`history`, `diff`, `rollback`, `unpin` and `status` on a real NATS server with a translator at work."""

import asyncio
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fakes.gateway.served_history import History, empty_history, served_history
from fakes.service_process import running_service
from fakes.stores.nats import real_bus
from fakes.translator.deltas import applied, endpoint_slice, ingress, service
from fakes.translator.loop import fill, running
from headgate.common.heartbeats import Heartbeat
from headgate.common.service.tasks import cancel
from headgate.common.snapshot import Version
from headgate.common.stores.nats import NatsStores
from headgate.common.table import Upstream
from headgate.operations.changing import outcome
from headgate.operations.tables.history import changed_hosts

OLD, NEW = "a/default/old:80", "a/default/new:80"
BASE = (
    service("old"),
    service("new"),
    endpoint_slice("old", "10.0.0.1"),
    endpoint_slice("new", "10.0.0.2"),
    ingress("web", host="a.example", service="old"),
)


def to_new(name: str = "web", host: str = "a.example") -> Any:
    return ingress(name, host=host, service="new")


async def current(history: History) -> Version:
    return (await history.until(lambda _: True)).version


async def test_history_says_when_who_and_which_hosts() -> None:
    async with served_history(*BASE) as history:
        await history.say(to_new(), author="kubectl-edit")
        last = await history.say(to_new("more", "b.example"), author="argocd")
        shown = (await history.ask("history")).out.splitlines()
        assert re.search(rf"^{last} +\d+s +\d\S+ \S+ +b\.example +apply Ingress a/default/more by argocd$", shown[1])
        assert "a.example, 2 upstreams" in shown[2]
        assert shown[2].endswith("by kubectl-edit")
        assert re.search(r"^\d\S+ .* apply \w+ \S+$", shown[3])
        assert re.search(r"^ +apply \w+ \S+$", shown[4])  # a cause on each line


async def test_history_is_filtered_by_host_revision_time_and_number() -> None:
    async with served_history(*BASE) as history:
        first = await current(history)
        await history.say(to_new())
        last = await history.say(to_new("more", "b.example"))

        async def shown(*flags: str) -> list[int]:
            return [one["version"][1] for one in (await history.ask("history", "--json", *flags)).json]

        assert await shown("--host=b.example") == [last.revision]
        assert await shown(f"--since={first}") == [last.revision, last.revision - 1]
        assert await shown("--since=HEAD~1") == [last.revision]
        assert await shown("--since=1h", "--limit=1") == [last.revision]
        assert await shown("--since=2100-01-01") == []
        assert await shown("--until=HEAD~1") == [last.revision - 1, first.revision]
        assert await shown(f"--since={first}", "--until=HEAD~1") == [last.revision - 1]
        assert await shown("--until=1h") == []
        assert await shown("--at=0s") == [last.revision]
        assert await shown("--at=2000-01-01") == []
        await history.say(endpoint_slice("new", "10.0.0.7"))
        assert await shown("--no-endpoints", "--limit=1") == [last.revision]


async def test_json_lines_are_all_that_is_kept_oldest_first() -> None:
    async with served_history(*BASE) as history:
        await history.say(to_new(), author="kubectl-edit")
        lines = (await history.ask("history", "--json-lines")).json_lines
        assert [line["version"] for line in lines] == sorted(line["version"] for line in lines)
        [cause] = lines[-1]["causes"]
        assert (cause["by"], cause["operation"], cause["sequence"] > 0) == ("kubectl-edit", "apply", True)
        assert datetime.fromisoformat(cause["at"])
        assert lines[-1]["changed"]["hosts"]["names"] == ["a.example"]
        assert lines[-1]["revision"] == ".".join(map(str, lines[-1]["version"]))
        assert "chunks" not in lines[-1]


async def test_diff_says_what_the_last_revision_changed() -> None:
    async with served_history(*BASE) as history:
        await history.say(to_new())
        shown = (await history.ask("diff")).out
        assert "~ route / prefix  (Ingress a/default/web)" in shown
        assert f"backends: {OLD} -> {NEW}" in shown
        assert f"- upstream {OLD}" in shown
        assert shown.splitlines()[-1] == "1 route changed, 1 upstream added, 1 upstream removed"


async def test_diff_takes_revisions_by_number_and_from_the_end() -> None:
    async with served_history(*BASE) as history:
        first = await current(history)
        await history.say(to_new())
        last = await history.say(to_new("more", "b.example"))
        one = (await history.ask("diff", "1", "--json")).json
        other = (await history.ask("diff", str(first), str(last), "--json")).json
        assert one["changes"] == other["changes"]
        assert (one["before"]["revision"], one["after"]["revision"]) == (str(first), str(last))
        assert one["counts"]["host"] == {"added": 1}
        back = (await history.ask("diff", "HEAD", "HEAD~2", "--json")).json
        assert back["counts"]["host"] == {"removed": 1}
        await history.ask("diff", "HEAD", "HEAD", "--exit-code")
        await history.ask("diff", "HEAD~1", "HEAD", "--exit-code", code=1)


async def test_an_endpoint_is_a_line_below_its_upstream() -> None:
    async with served_history(*BASE) as history:
        await history.say(endpoint_slice("old", "10.0.0.1", "10.0.0.9"))
        shown = (await history.ask("diff")).out.splitlines()
        assert shown[1:] == [f"  upstream {OLD}", "  + endpoint 10.0.0.9:8080", "1 endpoint added"] or shown[1:-1] == [
            f"  upstream {OLD}",
            "  + endpoint 10.0.0.9:8080",
            "      cluster: a",
        ]


async def test_rollback_and_unpin_go_back_and_forward() -> None:
    async with served_history(*BASE) as history:
        await history.say(to_new())
        told = await history.ask("rollback", "HEAD~1", "--by=ann", "--reason=404s")
        assert "1 route changed" in told.out
        assert "no gateway is running" in told.out
        await history.until(lambda manifest: manifest.pin)
        assert OLD in await history.table()
        await history.say(to_new("more", "b.example"))
        assert "b.example" not in await history.table()
        waiting = (await history.ask("diff", "pinned", "live")).out
        assert "+ host b.example" in waiting
        assert f"backends: {OLD} -> {NEW}" in waiting
        assert (await history.ask("unpin", "--dry-run")).out.count("b.example") == waiting.count("b.example")
        await history.ask("unpin", "--by=bob")
        assert "b.example" in await history.table()
        shown = (await history.ask("history", "--limit=3")).out
        assert re.search(r"unpin from \S+ by bob", shown)
        assert "waits: b.example" in shown
        assert "headgate diff pinned live" not in shown


async def test_a_dry_run_changes_nothing_and_says_what_would_be() -> None:
    async with served_history(*BASE) as history:
        last = await history.say(to_new())
        shown = (await history.ask("rollback", "1", "--dry-run")).out
        assert f"backends: {NEW} -> {OLD}" in shown
        assert await current(history) == last


async def test_a_rollback_has_the_endpoints_of_today_unless_it_is_frozen() -> None:
    async with served_history(*BASE) as history:
        first = await current(history)
        await history.say(endpoint_slice("old", "10.0.0.9"))
        await history.ask("rollback", str(first))
        assert await addresses(history) == ["10.0.0.9"]
        await history.ask("rollback", str(first), "--frozen")
        assert await addresses(history) == ["10.0.0.1"]


async def addresses(history: History) -> list[str]:
    entry = (await history.table())[OLD]
    assert isinstance(entry, Upstream)
    return [endpoint.address for endpoint in entry.endpoints]


async def test_status_and_gateways_show_the_pin() -> None:
    async with served_history(*BASE) as history:
        last = await history.say(to_new())
        await history.ask("rollback", "HEAD~1", "--by=ann", "--reason=404s")
        manifest = await history.until(lambda found: found.pin)
        assert manifest.pin
        pinned = manifest.pin.version
        beat = Heartbeat(
            replica="g", worker=0, table="default", version=manifest.version, pinned=pinned, at=datetime.now(UTC)
        )
        await history.stores.heartbeats.beat(beat)
        shown = (await history.ask("status", code=None)).out
        assert re.search(rf"^pinned to {pinned} \d+s ago by ann: 404s$", shown, re.MULTILINE)
        assert f"(pinned to {pinned})" in shown
        document = (await history.ask("status", "--json", code=None)).json
        assert document["pin"]["by"] == "ann"
        assert [one["reason"] for one in document["problems"] if one["reason"] == "Pinned"] == ["Pinned"]
        assert pinned < last < manifest.version


async def test_a_rollback_waits_until_gateways_have_applied_it() -> None:
    async with served_history(*BASE) as history:
        await history.say(to_new())
        gateway = asyncio.create_task(_follow_slowly(history))
        try:
            await history.until_served()
            assert "applied by 1 gateway worker" in (await history.ask("rollback", "HEAD~1")).out
        finally:
            await cancel(gateway)


async def _follow_slowly(history: History) -> None:
    while True:
        version = await current(history)
        beat = Heartbeat(replica="g", worker=0, table="default", version=version, at=datetime.now(UTC))
        await asyncio.sleep(0.3)
        await history.stores.heartbeats.beat(beat)


async def test_a_gateway_that_does_not_follow_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcome, "APPLIED_S", 0.2)
    async with served_history(*BASE) as history:
        beat = Heartbeat(replica="g", worker=0, table="default", version=await current(history), at=datetime.now(UTC))
        await history.say(to_new())
        await history.stores.heartbeats.beat(beat)
        answer = await history.ask("rollback", "HEAD~1", code=1)
        assert "not applied within 0.2 s by g/0; `headgate status` says more" in answer.out


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["diff", "99"], 1, "there is no revision 99 yet; the newest is"),
        (["diff", "HEAD~9"], 1, "there are 0 revisions before"),
        (["diff", "pinned", "live"], 1, "is not pinned; `headgate rollback REVISION` pins it"),
        (["diff", "yesterday"], 2, "names no revision: give 57, 1767225600.57, HEAD, HEAD~2, live, next or pinned"),
        (["diff", "live~1"], 2, "names no revision"),
        (["diff", "5.1"], 1, "revision 5.1 is not kept; kept are 1"),
        (["rollback", "live"], 2, "is no revision; `headgate unpin` serves the live one again"),
        (["rollback"], 2, "Missing argument 'REVISION'"),
        (["unpin"], 1, "is not pinned"),
        (["history", "--since=soon"], 2, "--since 'soon': give a revision such as 57 or HEAD~5, or a time ago such as"),
        (["history", "--json", "--json-lines"], 2, "exclude each other"),
        (["history", "--until=soon"], 2, "--until 'soon': give a revision"),
        (["history", "--at=25:00"], 2, "--at '25:00': give a revision such as 57 or HEAD~5, or a time ago such as"),
        (["history", "--at=1h", "--since=2h"], 2, "--at asks for one revision"),
        (["history", "--limit=0"], 2, "--limit"),
        (["diff", "--table=none"], 1, "table 'none' was never published"),
        (["clusters", "--table=none"], 1, "table 'none' was never published: is --table right?"),
        (["rollback", "HEAD", "--table=none"], 1, "table 'none' was never published"),
    ],
)
async def test_wrong_input_is_one_line_with_a_remedy(arguments: list[str], code: int, told: str) -> None:
    async with served_history(*BASE) as history:
        answer = await history.ask(*arguments, code=code)
        assert answer.out == ""
        assert told in answer.err
        assert answer.err.count("\n") == 1


async def test_a_table_that_was_never_published_has_an_empty_history() -> None:
    async with empty_history() as history:
        assert (await history.ask("history", "--json")).json == []
        assert (await history.ask("diff", code=1)).err.count("\n") == 1


async def test_after_a_restart_a_revision_has_the_causes_that_are_new() -> None:
    async with empty_history() as history:
        await fill(history.stores, *BASE)
        async with running(history.stores):
            await history.until(lambda _: True)
        await history.append(applied(to_new("more", "b.example")))
        async with running(history.stores):
            await history.until(lambda manifest: "b.example" in changed_hosts(manifest))
        newest = (await history.ask("history", "--json")).json[0]
        assert [cause["name"] for cause in newest["causes"]] == ["more"]
        assert newest["changed"]["hosts"]["names"] == ["b.example"]


async def test_a_pin_survives_a_killed_translator_and_a_restarted_server(tmp_path: Path) -> None:
    async with real_bus() as (server, bus):
        history = History(await NatsStores.open(bus), server.url)
        await fill(history.stores, *BASE)
        flags = (f"--nats-url={server.url}", f"--data-dir={tmp_path}")
        async with running_service("translator", *flags, log=tmp_path / "log") as process:
            await history.until(lambda _: True)
            await history.say(to_new())
            await history.ask("rollback", "HEAD~1")
            process.kill()
            await process.wait()
        await server.kill()
        await server.start()
        async with running_service("translator", *flags, log=tmp_path / "log"):
            await history.insist(lambda: history.append(applied(endpoint_slice("old", "10.0.0.9"))))
            await history.insist(lambda: history.append(applied(to_new("more", "b.example"))))
            manifest = await history.until(lambda found: "b.example" in changed_hosts(found))
            assert manifest.pin
            assert await addresses(history) == ["10.0.0.9"]
            assert "b.example" not in await history.table()
            await history.ask("unpin")
            assert {"b.example", NEW} <= set(await history.table())
