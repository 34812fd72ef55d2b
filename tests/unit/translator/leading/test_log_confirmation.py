"""A log that may be an older copy is not published before the watchers have confirmed it."""

import asyncio
import copy
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from prometheus_client import Counter

from fakes.translator.deltas import applied, ingress, service
from fakes.translator.loop import KINDS, announce, fill, idle, mark, running, snapshots_of, table_of, version_of
from fakes.virtual_time import in_virtual_time
from fakes.waiting import until
from headgate.common.deltas import LogPlace
from headgate.common.errors import StoreError
from headgate.common.heartbeats import Heartbeat
from headgate.common.snapshot import Manifest, Version
from headgate.common.status import StatusUpdate
from headgate.common.stores import LogPosition, LogReplay
from headgate.common.stores.memory.stores import MemoryStores
from headgate.translator import metrics
from headgate.translator.leading import feeds
from headgate.translator.loop import TranslatorLoop
from headgate.translator.status import poster as status_poster

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "LOOK_AROUND_S", 0.02)
    monkeypatch.setattr(status_poster, "QUIET_S", 0.01)


class Watchers:
    """Notes that they are asked; the test answers in their place."""

    def __init__(self) -> None:
        self.asked = 0

    async def ask(self) -> None:
        self.asked += 1


async def commit(stores: MemoryStores, version: Version) -> None:
    """A revision of an earlier translator, as a store has it that was restored."""
    await stores.snapshots.commit(
        Manifest(table="default", version=version, created_at=NOW, chunks=()),
        await stores.snapshots.read_pointer("default"),
    )


async def serve(stores: MemoryStores, version: Version | None) -> None:
    beat = Heartbeat(replica="gw", worker=0, table="default", version=version, at=NOW)
    await stores.heartbeats.beat(beat)


async def restored() -> MemoryStores:
    """Log and store of an hour ago, beside a gateway that serves a later revision."""
    stores = MemoryStores()
    await fill(stores, ingress("web", host="old.example"), service())
    await commit(stores, Version(5, 1))
    await serve(stores, Version(5, 9))
    return stores


@in_virtual_time
async def test_nothing_is_committed_before_the_watchers_confirm_the_log() -> None:
    stores, watchers = await restored(), Watchers()
    async with running(stores, ask_watchers=watchers.ask, recovery_wait_s=0) as translator:
        await until(lambda: watchers.asked)
        await stores.log_writer.append(applied(ingress("web", host="new.example")))
        await mark(stores, KINDS[0])
        await asyncio.sleep(0.05)
        assert version_of(stores) == Version(5, 1)
        assert "has not been confirmed by the watchers of a" in (translator.readiness() or "")
        await mark(stores, KINDS[1])
        version = await until(lambda: version_of(stores) != Version(5, 1) and version_of(stores))
        assert version > Version(5, 9)
        assert "new.example" in await table_of(stores)
        assert "old.example" not in await table_of(stores)
        await idle(stores, translator)


async def test_watchers_that_do_not_answer_are_asked_again() -> None:
    stores, watchers = await restored(), Watchers()
    async with running(stores, ask_watchers=watchers.ask, recovery_wait_s=0):
        await until(lambda: watchers.asked >= 3)
        await mark(stores, *KINDS)
        await until(lambda: version_of(stores) != Version(5, 1))


async def test_a_cluster_that_is_gone_for_good_is_not_waited_for() -> None:
    stores, watchers = await restored(), Watchers()
    await fill(stores, ingress("other", host="b.example"), cluster="b")
    async with running(stores, ask_watchers=watchers.ask, recovery_wait_s=0, forget_clusters=["b"]):
        await until(lambda: watchers.asked)
        await mark(stores, *KINDS)
        await until(lambda: version_of(stores) != Version(5, 1))


@in_virtual_time
async def test_clusters_that_the_copy_does_not_know_get_time_to_come() -> None:
    stores, watchers = await restored(), Watchers()
    async with running(stores, ask_watchers=watchers.ask, recovery_wait_s=0.3):
        await until(lambda: watchers.asked)
        await mark(stores, *KINDS)
        await asyncio.sleep(0.05)
        assert version_of(stores) == Version(5, 1)
        await fill(stores, ingress("other", host="b.example"), cluster="b")
        await until(lambda: version_of(stores) != Version(5, 1))
        assert "b.example" in await table_of(stores)


@in_virtual_time
async def test_a_store_that_lost_what_this_translator_committed_needs_no_watcher() -> None:
    stores, watchers = MemoryStores(), Watchers()
    await fill(stores, ingress("web", host="a.example"), service())
    async with running(stores, ask_watchers=watchers.ask) as translator:
        await idle(stores, translator)
        before = version_of(stores)
        assert before is not None
        await serve(stores, before)
        snapshots_of(stores).lose()
        await commit(stores, Version(before.epoch, 0))
        await until(lambda: version_of(stores) not in (None, Version(before.epoch, 0)))
        await asyncio.sleep(0.05)
    assert watchers.asked == 0


async def test_gateways_that_serve_what_the_store_has_raise_no_doubt() -> None:
    stores, watchers = await restored(), Watchers()
    await serve(stores, Version(5, 1))
    async with running(stores, ask_watchers=watchers.ask) as translator:
        await idle(stores, translator)
    assert watchers.asked == 0
    assert version_of(stores) == Version(5, 2)


def count_of(counter: Counter) -> float:
    return next(iter(counter.collect())).samples[0].value


class RewoundLog:
    """A log that is followed anew as an older copy, whenever the test says so."""

    def __init__(self, stores: MemoryStores) -> None:
        self._reader = stores.log_reader
        self.rewind = asyncio.Event()

    async def position(self) -> LogPosition:
        return await self._reader.position()

    async def went_back(self, place: LogPlace) -> bool:
        return await self._reader.went_back(place)

    async def follow(self, known: LogPlace | None = None) -> AsyncIterator[object]:
        went_back = False
        while True:
            async for item in self._reader.follow():
                yield LogReplay(item.position, went_back) if isinstance(item, LogReplay) else item
                if self.rewind.is_set():
                    break
            self.rewind.clear()
            went_back = True


async def test_a_log_that_went_back_is_confirmed_and_its_statuses_are_posted_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stores, watchers = MemoryStores(), Watchers()
    log = RewoundLog(stores)
    monkeypatch.setattr(stores, "log_reader", log)
    posted: list[StatusUpdate] = []
    post = stores.statuses.post

    async def note(*updates: StatusUpdate) -> Sequence[bytes | StoreError]:
        posted.extend(updates)
        return await post(*updates)

    monkeypatch.setattr(stores.statuses, "post", note)
    await fill(stores, ingress("web", host="a.example", service="gone"))
    async with running(stores, ask_watchers=watchers.ask) as translator:
        await idle(stores, translator)
        await until(lambda: posted)
        told, before = posted[-1], version_of(stores)
        posted.clear()
        log.rewind.set()
        await stores.log_writer.append(applied(service("other")))
        await until(lambda: watchers.asked >= 3)  # they take their time, and gateways are looked at meanwhile
        assert not posted
        await announce(stores)
        await mark(stores, *KINDS)
        await idle(stores, translator)
        await until(lambda: posted)
        assert version_of(stores) > before  # so that whoever starts next knows that this log is good
    assert {(update.ref, update.problems, update.events) for update in posted} == {
        (told.ref, told.problems, told.events)  # with the same notes: who tells Kubernetes of them knows them by now
    }


class Backup:
    """A copy of what the log holds, and of the tables if they are in the same place."""

    def __init__(self, stores: MemoryStores, *, with_tables: bool) -> None:
        self._parts: list[Any] = [stores.log, *([stores.snapshots] if with_tables else [])]
        self._copies = [copy.deepcopy(self._content(part)) for part in self._parts]

    def _content(self, part: Any) -> dict[str, Any]:
        return {name: value for name, value in vars(part).items() if name not in {"_changes", "_clock"}}

    def restore(self) -> None:
        """Bring it back; followers, who saw a greater sequence, have not noticed."""
        for part, content in zip(self._parts, self._copies, strict=True):
            vars(part).update(copy.deepcopy(content))


async def served_now(stores: MemoryStores, translator: TranslatorLoop) -> Version:
    """Wait until all is published, and have a gateway serve it."""
    await idle(stores, translator)
    version = version_of(stores)
    assert version is not None
    await serve(stores, version)
    return version


async def older_copy(*, with_tables: bool) -> tuple[MemoryStores, Backup]:
    """Stores from which `new.example` is served, and a backup of them with `old.example`."""
    stores = MemoryStores()
    await fill(stores, ingress("web", host="old.example"), service())
    async with running(stores) as translator:
        await served_now(stores, translator)
        backup = Backup(stores, with_tables=with_tables)
        await stores.log_writer.append(applied(ingress("web", host="new.example")))
        await served_now(stores, translator)
    return stores, backup


@pytest.mark.parametrize("news", [0, 3], ids=["a shorter log", "a log that went on"])
async def test_a_translator_that_starts_on_an_older_log_beside_a_newer_table_has_it_confirmed(news: int) -> None:
    stores, backup = await older_copy(with_tables=False)
    before, watchers = version_of(stores), Watchers()
    backup.restore()
    for number in range(news):
        await stores.log_writer.append(applied(ingress(f"i{number}", host=f"h{number}.example")))
    for _ in range(2):  # what is known against the log is known to each that starts
        watchers.asked = 0
        async with running(stores, ask_watchers=watchers.ask) as translator:
            await until(lambda: watchers.asked >= 2)
            assert "has not been confirmed by the watchers of a" in (translator.readiness() or "")
    assert version_of(stores) == before
    watchers.asked = 0
    async with running(stores, ask_watchers=watchers.ask) as translator:
        await until(lambda: watchers.asked)
        await stores.log_writer.append(applied(ingress("web", host="new.example")))
        await mark(stores, *KINDS)
        await until(lambda: version_of(stores) != before)
        await idle(stores, translator)
    assert {"new.example", *(f"h{number}.example" for number in range(news))} <= (await table_of(stores)).keys()


async def test_a_log_that_was_confirmed_is_not_doubted_by_the_next_translator() -> None:
    stores, backup = await older_copy(with_tables=False)
    before, watchers = version_of(stores), Watchers()
    backup.restore()
    async with running(stores, ask_watchers=watchers.ask) as translator:
        await until(lambda: watchers.asked)
        await stores.log_writer.append(applied(ingress("web", host="new.example")))
        await mark(stores, *KINDS)
        await until(lambda: version_of(stores) != before)  # though the table is the same
        await served_now(stores, translator)
    watchers.asked = 0
    async with running(stores, ask_watchers=watchers.ask) as translator:
        await idle(stores, translator)
    assert watchers.asked == 0


async def test_a_store_that_went_back_with_its_log_is_left_as_the_sign_of_that() -> None:
    stores, watchers = MemoryStores(), Watchers()
    await fill(stores, ingress("web", host="old.example"), service())
    async with running(stores, ask_watchers=watchers.ask) as translator:
        old = await served_now(stores, translator)
        backup = Backup(stores, with_tables=True)
        await stores.log_writer.append(applied(ingress("web", host="new.example")))
        new = await served_now(stores, translator)
        failures = count_of(metrics.STORE_FAILURES)
        backup.restore()
        await until(lambda: count_of(metrics.STORE_FAILURES) > failures)
        assert version_of(stores) == old
    async with running(stores, ask_watchers=watchers.ask, recovery_wait_s=0):
        await until(lambda: watchers.asked)
        await stores.log_writer.append(applied(ingress("web", host="new.example")))
        await mark(stores, *KINDS)
        await until(lambda: version_of(stores) != old)
    assert version_of(stores) > new
    assert "new.example" in await table_of(stores)
