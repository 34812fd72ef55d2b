"""Last good versions over restarts and takeovers of the translator."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from fakes.translator.deltas import applied, deleted, ingress, ref_of
from fakes.translator.loop import digests_of, fill, idle, manifest_of, running, table_of, version_of
from fakes.virtual_time import in_virtual_time
from fakes.waiting import until
from headgate.common.deltas import Delta, LastGood, last_good_subject
from headgate.common.errors import StoreUnavailable
from headgate.common.resources import ObjectRef
from headgate.common.stores.memory.stores import MemoryStores
from headgate.common.table import VirtualHost
from headgate.translator.leading import feeds
from headgate.translator.leading import last_good_recorder as keeping
from headgate.translator.loop import TranslatorLoop
from headgate.translator.status import poster as status_poster


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "LOOK_AROUND_S", 0.02)
    monkeypatch.setattr(status_poster, "QUIET_S", 0.01)


def web(path: str) -> Any:
    return ingress("web", host="a.example", path=path)


REF = ref_of(web("/"))


async def tell(stores: MemoryStores, *manifests: Any) -> None:
    for manifest in manifests:
        await stores.log_writer.append(applied(manifest))


async def paths(stores: MemoryStores) -> list[str]:
    entry = (await table_of(stores)).get("a.example")
    return [route.path.value for route in entry.routes] if isinstance(entry, VirtualHost) else []


def record(stores: MemoryStores) -> LastGood | None:
    _, message, _ = stores.log.messages.get(last_good_subject(REF, "default"), (0, None, 0.0))
    assert message is None or isinstance(message, LastGood)
    return message


async def settled(stores: MemoryStores, *translators: TranslatorLoop) -> None:
    """Wait until everything is published and written down."""
    await idle(stores, *translators)
    await until(lambda: not any(each.translation.world.tracker.unwritten for each in translators))
    await idle(stores, *translators)


async def test_a_restart_keeps_the_last_good_version() -> None:
    stores = MemoryStores()
    await fill(stores, web("/old"))
    async with running(stores) as translator:
        await tell(stores, web("wrong"))
        await settled(stores, translator)
        before = version_of(stores)
    async with running(stores) as translator:
        await settled(stores, translator)
        assert version_of(stores) == before
        assert await paths(stores) == ["/old"]


async def test_an_update_that_came_while_nobody_translated_leaves_it_in_force() -> None:
    stores = MemoryStores()
    await fill(stores, web("/old"))
    async with running(stores) as translator:
        await settled(stores, translator)
    await tell(stores, web("/newer"), web("wrong"), web("worse"))
    async with running(stores) as translator:
        await settled(stores, translator)
        assert await paths(stores) == ["/newer"]


async def test_it_outlives_the_history_that_the_log_keeps() -> None:
    stores = MemoryStores()
    await fill(stores, web("/old"))
    async with running(stores) as translator:
        await idle(stores, translator)
        await tell(stores, *(web(f"wrong{number}") for number in range(20)))
        await settled(stores, translator)
    await tell(stores, *(web(f"worse{number}") for number in range(10)))
    async with running(stores) as translator:
        await settled(stores, translator)
        assert await paths(stores) == ["/old"]


async def test_a_second_translator_comes_to_the_same_table() -> None:
    stores = MemoryStores()
    await fill(stores, web("/old"))
    async with running(stores) as first:
        await tell(stores, web("wrong"))
        await settled(stores, first)
        manifest = await manifest_of(stores)
        async with running(stores) as second:
            await settled(stores, first, second)
            assert digests_of(second) == [chunk.digest for chunk in manifest.chunks]
            assert version_of(stores) == manifest.version


async def test_an_object_that_is_mended_leaves_no_record() -> None:
    stores = MemoryStores()
    await fill(stores, web("/old"))
    async with running(stores) as translator:
        await tell(stores, web("wrong"))
        await settled(stores, translator)
        written = record(stores)
        assert written is not None
        assert written.good is not None
        await tell(stores, web("/mended"))
        await settled(stores, translator)
        assert await paths(stores) == ["/mended"]
    assert record(stores) == LastGood(ref=REF, refused=0, sequence=record(stores).sequence)  # type: ignore[union-attr]


async def test_an_object_that_is_deleted_and_made_again_has_no_past_for_a_later_translator() -> None:
    stores = MemoryStores()
    await fill(stores, web("/old"))
    async with running(stores) as translator:
        await tell(stores, web("wrong"))
        await settled(stores, translator)
    await stores.log_writer.append(deleted(web("/old")))
    await tell(stores, web("wrong"))
    async with running(stores) as translator:
        await settled(stores, translator)
        assert await paths(stores) == []


async def test_no_table_is_published_before_it_is_known_what_stands_in(monkeypatch: pytest.MonkeyPatch) -> None:
    stores, reads = MemoryStores(), 0
    histories = stores.last_good.histories

    async def fail_at_first(refs: Sequence[ObjectRef]) -> Mapping[ObjectRef, Sequence[Delta]]:
        nonlocal reads
        reads += 1
        if reads < 3:
            raise StoreUnavailable("away")
        return await histories(refs)

    monkeypatch.setattr(stores.last_good, "histories", fail_at_first)
    await fill(stores, web("/old"), web("wrong"))
    async with running(stores) as translator:
        await settled(stores, translator)
        assert await paths(stores) == ["/old"]
    assert version_of(stores).revision == 1  # type: ignore[union-attr]


@in_virtual_time
async def test_a_history_that_cannot_be_read_holds_the_table_back_for_some_seconds_only(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stores = MemoryStores()

    async def fail(refs: Sequence[ObjectRef]) -> Mapping[ObjectRef, Sequence[Delta]]:
        raise StoreUnavailable("not allowed")

    monkeypatch.setattr(stores.last_good, "histories", fail)
    await fill(stores, ingress("other", host="b.example"), web("wrong"))
    async with running(stores):
        await until(lambda: version_of(stores))
        assert "b.example" in await table_of(stores)
        began_s = asyncio.get_running_loop().time()
        await tell(stores, ingress("new", host="new.example", path="wrong"), ingress("newer", host="newer.example"))
        await until(lambda: version_of(stores).revision == 2)  # type: ignore[union-attr]
        assert "newer.example" in await table_of(stores)
        assert began_s >= keeping.PATIENCE_S
        assert asyncio.get_running_loop().time() - began_s < keeping.PATIENCE_S / 2
    assert "going on without earlier versions" in caplog.text


async def test_records_wait_for_a_log_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    stores, failures = MemoryStores(), iter(range(3))
    write = stores.last_good.write

    async def fail_at_first(said: LastGood) -> None:
        if next(failures, None) is not None:
            raise StoreUnavailable("away")
        await write(said)

    monkeypatch.setattr(stores.last_good, "write", fail_at_first)
    monkeypatch.setattr(keeping, "FIRST_PAUSE_S", 0.01)
    await fill(stores, web("/old"))
    async with running(stores) as translator:
        await tell(stores, web("wrong"))
        await settled(stores, translator)
    assert record(stores) is not None
