"""From a source to a log that was away or lost, or that others write to as well."""

import asyncio
import logging
from datetime import UTC, datetime

import pytest

from fakes.kubernetes.published_deltas import delta, logged, ref
from fakes.translator.leadership import Seat
from fakes.translator.publishing import ObservedLog, publishing, read_log, service
from fakes.virtual_time import in_virtual_time
from fakes.waiting import until
from headgate.common.deltas import ClusterAnnouncement, Delta, SyncMarker
from headgate.watcher.publishing import publisher as publisher_module
from headgate.watcher.publishing import signs_of_life


@in_virtual_time
async def test_what_happens_while_the_log_is_away_is_published_when_it_is_back() -> None:
    async with publishing() as one:
        one.source.list(service("x", "1"), service("z", "1"))
        await one.until_ready()
        one.log.is_away = True
        for version in range(2, 50):
            one.source.apply(service("x", str(version), port=version))
        one.source.delete(service("z", "60"))
        one.source.apply(service("w", "61"))
        one.source.delete(service("w", "62"))
        await asyncio.sleep(0.2)
        one.log.is_away = False
        await until(lambda: len(one.log.appended) == 4)
        await one.settle()
        assert sorted(one.log.shown()[2:]) == ["apply x 49", "delete z 60"]


@in_virtual_time
async def test_starting_without_a_log_loses_nothing() -> None:
    log = ObservedLog()
    log.is_away = True
    async with publishing(log) as one:
        one.source.list(service("x", "1"))
        await asyncio.sleep(0.2)
        assert one.publisher.readiness() is not None
        log.is_away = False
        await one.until_ready()
        assert log.shown() == ["apply x 1"]


@in_virtual_time
async def test_an_outage_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    log = ObservedLog()
    log.is_away = True
    async with publishing(log) as one:
        one.source.list(service("x", "1"))
        await asyncio.sleep(0.5)
        log.is_away = False
        await one.until_ready()
    assert caplog.text.count("the log takes no deltas") == 1
    assert caplog.text.count("the log takes deltas again") == 1


async def test_a_lost_answer_publishes_nothing_twice() -> None:
    async with publishing() as one:
        one.source.list()
        await one.until_ready()
        one.log.loses_answers = True
        one.source.apply(service("x", "1"))
        one.source.apply(service("z", "1"))
        await one.settle()
        assert sorted(one.log.shown()) == ["apply x 1", "apply z 1"]


async def test_a_log_that_was_lost_is_filled_again_after_reconnecting() -> None:
    async with publishing() as one:
        one.source.list(*(service(f"s{n}", "1") for n in range(30)))
        await one.until_ready()
        one.log.lose()
        one.log.said.clear()
        one.publisher.compare_with_log()
        await until(lambda: len(one.log.said) == 4)
        messages = await read_log(one.log)
        assert sum(isinstance(message, Delta) for message in messages) == 30
        assert isinstance(messages[0], ClusterAnnouncement)
        assert isinstance(messages[-1], SyncMarker)


@in_virtual_time
async def test_a_log_that_was_lost_without_a_sign_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publisher_module, "POSITION_S", 0.05)
    log = ObservedLog()
    async with publishing(log, log_reader=log) as one:
        one.source.list(service("x", "1"))
        await one.until_ready()
        await asyncio.sleep(0.1)
        log.lose()
        await until(lambda: len(log.appended) == 2)
        assert await logged(log) == {"x": ("1", False)}


async def test_a_log_that_was_lost_is_noticed_by_the_next_change() -> None:
    async with publishing() as one:
        one.source.list(service("x", "1"), service("z", "1"))
        await one.until_ready()
        one.log.lose()
        one.log.said.clear()
        one.source.apply(service("x", "2", port=81))
        await until(lambda: len(one.log.said) == 4)
        assert await logged(one.log) == {"x": ("2", False), "z": ("1", False)}


async def test_reconnecting_to_the_same_log_publishes_no_object_again() -> None:
    async with publishing() as one:
        one.source.list(service("x", "1"))
        await one.until_ready()
        reads = one.log.reads
        one.publisher.compare_with_log()
        await until(lambda: one.log.reads > reads)
        await one.settle()
        assert one.log.shown() == ["apply x 1"]


async def test_an_older_state_never_overwrites_a_newer_one() -> None:
    async with publishing() as one:
        one.source.list(service("x", "5"))
        await one.until_ready()
        await one.log.append(delta("x", "9"))  # the other watcher of the cluster is ahead
        one.log.appended.clear()
        one.source.apply(service("x", "7", port=81))
        await one.settle()
        assert (await logged(one.log))["x"] == ("9", False)
        one.source.apply(service("x", "12", port=82))

        async def is_ours() -> bool:
            return (await logged(one.log))["x"] == ("12", False)

        await until(is_ours)


async def test_a_newer_state_overwrites_what_another_watcher_wrote() -> None:
    async with publishing() as one:
        one.source.list(service("x", "5"))
        await one.until_ready()
        await one.log.append(delta("x", "7"))
        one.source.apply(service("x", "9", port=81))

        async def is_overwritten() -> bool:
            return (await logged(one.log))["x"] == ("9", False)

        await until(is_overwritten)


async def test_what_another_watcher_has_published_already_is_not_published_again() -> None:
    async with publishing() as one:
        one.source.list(service("x", "5"))
        await one.until_ready()
        sequence = await one.log.append(delta("x", "7"))
        one.source.apply(service("x", "7", port=81))
        await one.settle()
        assert (await one.log.read_state("a"))[ref("x")].sequence == sequence


async def test_an_older_deletion_does_not_remove_what_was_made_anew() -> None:
    async with publishing() as one:
        one.source.list(service("x", "5"))
        await one.until_ready()
        await one.log.append(delta("x", "9").model_copy(update={"uid": "another"}))
        one.source.delete(service("x", "7"))
        await one.settle()
        assert (await logged(one.log))["x"] == ("9", False)


async def test_versions_of_files_cannot_be_compared_so_ours_counts() -> None:
    async with publishing(origin="manifests") as one:
        one.source.list(service("x", "aa"))
        await one.until_ready()
        await one.log.append(delta("x", "ff"))
        one.source.apply(service("x", "bb", port=81))

        async def is_ours() -> bool:
            return (await logged(one.log))["x"] == ("bb", False)

        await until(is_ours)


async def test_signs_of_life_say_when_the_source_was_last_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signs_of_life, "SIGN_OF_LIFE_S", 0.02)
    monkeypatch.setattr(signs_of_life, "LOOK_S", 0.01)
    async with publishing() as one:
        one.source.list()
        await one.until_ready()
        one.source.heard_at = datetime(2026, 1, 1, tzinfo=UTC)
        await until(lambda: [each for each in one.log.said if getattr(each, "heard_at", None) == one.source.heard_at])
        (told,) = await one.log.announcements()
        assert told.heard_at == one.source.heard_at
        assert sum(isinstance(message, SyncMarker) for message in one.log.said) == len(one.source.kinds)


async def test_an_outage_of_the_api_server_is_announced_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signs_of_life, "LOOK_S", 0.01)
    async with publishing() as one:
        one.source.list()
        await one.until_ready()
        one.source.away_since = datetime(2026, 1, 1, tzinfo=UTC)
        await until(lambda: getattr(one.log.said[-1], "away_since", None) == one.source.away_since)


@in_virtual_time
async def test_one_that_follows_announces_an_outage_when_the_one_that_publishes_is_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(signs_of_life, "LOOK_S", 0.01)
    monkeypatch.setattr(signs_of_life, "SIGN_OF_LIFE_S", 0.5)
    log = ObservedLog()
    now = datetime.now(UTC)
    await log.announce(
        ClusterAnnouncement(cluster="a", source="kubernetes", instance="other", kinds=(), announced_at=now)
    )
    async with publishing(log, log_reader=log, leadership=Seat()) as one:
        one.source.away_since = datetime(2026, 1, 1, tzinfo=UTC)
        await asyncio.sleep(0.1)
        assert [each.instance for each in await log.announcements()] == ["other"]
        await until(lambda: getattr(log.said[-1], "instance", "") == "test")
        assert log.said[-1].away_since == one.source.away_since
