"""`headgate top` beside workers that tell of their traffic."""

from datetime import UTC, datetime

from fakes.gateway.served_history import Answer, empty_history, told
from fakes.traffic import counts, of_endpoint, of_route, summary
from headgate.common.heartbeats import Heartbeat

BUSY = of_route("a.example|local/default/a", "local/default/a", counts(90, failed=9, sent=9_000_000))
SLOW = of_route("b.example|local/default/b", "local/default/b", counts(10, place=45))
NOWHERE = of_route("", "", counts(1))
ONE = of_endpoint("10.0.0.1:80", counts(7))


def first_words(said: Answer) -> list[str]:
    return [line.split("  ")[0] for line in said.out.splitlines()[2:]]


async def test_routes_are_listed_by_requests_or_by_what_is_asked() -> None:
    async with told(summary(BUSY, SLOW, NOWHERE, ONE), summary(BUSY, worker=1)) as history:
        said = await history.ask("top", "--for=1")
        assert "2 workers in 1 s" in said.out.splitlines()[0]
        assert first_words(said) == ["a.example|local/default/a", "b.example|local/default/b", "(no route)"]
        assert "10.0%" in said.out.splitlines()[2]
        assert first_words(await history.ask("top", "--for=1", "--by=p99"))[0] == "b.example|local/default/b"
        assert first_words(await history.ask("top", "--for=1", "--host"))[0] == "a.example"
        assert first_words(await history.ask("top", "--for=1", "--endpoint")) == ["10.0.0.1:80"]


async def test_programs_get_counts() -> None:
    async with told(summary(BUSY, SLOW, others=counts(5), folded=2)) as history:
        said = (await history.ask("top", "--for=1", "--json", "--limit=1")).json
        [line] = said["lines"]
        assert (said["table"], said["workers"], line["route"], line["upstream"]) == (
            "default",
            1,
            "a.example|local/default/a",
            "local/default/a",
        )
        assert line["answers"]["5xx"] * 10 == line["requests"]
        assert said["all"]["requests"] > said["others"]["requests"] > 0
        assert 0 < line["p50_ms"] <= 1


async def test_what_is_left_out_is_said() -> None:
    async with told(summary(BUSY, SLOW, others=counts(5), folded=2)) as history:
        said = (await history.ask("top", "--for=1", "--limit=1")).out
        assert "and 1 further lines: --limit N shows more" in said
        assert "requests/s of further routes, not told by name" in said


async def test_silence_is_explained() -> None:
    async with empty_history() as history:
        said = await history.ask("top", "--for=1")
        assert "no gateway serves the table 'default': `headgate status` says what runs" in said.out
        beat = Heartbeat(replica="gw", worker=0, table="default", version=None, at=datetime.now(UTC))
        await history.stores.heartbeats.beat(beat)
        assert "no requests in 1 s" in (await history.ask("top", "--for=1")).out
