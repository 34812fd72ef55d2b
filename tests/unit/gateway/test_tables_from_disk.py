"""A table from disk, until the store has another one."""

import gc
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from fakes.gateway.following import Gateway, Shakable, commit, small_image
from fakes.gateway.table import endpoint, host, publish, route, upstream
from fakes.stores.chunks import StoredChunks
from fakes.waiting import until
from headgate.common.errors import StoreUnavailable
from headgate.common.snapshot import ChunkName, decompress
from headgate.common.table.shards import Shard
from headgate.common.table_image import TableImage
from headgate.gateway.following.last_good import StoredTable, read_last_good, write_last_good

NAMES = [f"n{number}.example" for number in range(100)]


async def test_a_table_from_disk_is_served_until_the_store_has_a_greater_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store, first = Shakable(), Gateway(Shakable())
    manifest, chunks = publish(small_image(1), (3, 7))
    await first.applier.apply(manifest, StoredChunks(chunks).get_chunks)
    stored = first.applier.stored_table()
    assert stored is not None
    write_last_good(tmp_path / "table", stored)
    second = Gateway(store)
    read = read_last_good(tmp_path / "table")
    assert read is not None

    await second.applier.apply(read.manifest, read.get_chunks, read.open_chunk)
    assert second.reaches() == "10.0.0.1:80"
    await commit(store, small_image(2), (3, 6))
    async with second.following():
        await until(lambda: "store is behind" in caplog.text)
        assert second.served() == "3.7"
        await commit(store, small_image(2), (4, 1))
        await until(lambda: second.served() == "4.1")


async def begin_with(gateway: Gateway, image: TableImage, version: tuple[int, int]) -> None:
    """Serve a table of which the store has said nothing yet, as one from disk."""
    manifest, chunks = publish(image, version)
    await gateway.applier.apply(manifest, StoredChunks(chunks).get_chunks)


async def test_a_version_that_was_given_again_after_a_loss_is_served_as_the_store_has_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = Shakable()
    gateway = Gateway(store)
    await begin_with(gateway, small_image(1), (1, 5))
    await commit(store, small_image(2), (1, 5))
    async with gateway.following():
        await until(lambda: gateway.reaches() == "10.0.0.2:80")
        await until(lambda: gateway.metric("headgate_table_in_sync") == 1)
    assert gateway.served() == "1.5"
    assert caplog.text.count("other content under the version that is served") == 1


async def test_a_table_from_disk_that_the_store_has_too_is_in_sync_and_nothing_of_it_is_fetched(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = Shakable()
    gateway = Gateway(store)
    await begin_with(gateway, small_image(1), (1, 5))
    await commit(store, small_image(1), (1, 5))
    async with gateway.following():
        await until(lambda: gateway.metric("headgate_table_in_sync") == 1)
    assert store.fetched == []
    assert "other content" not in caplog.text
    assert gateway.metric("headgate_table_swaps_total") == 1


async def test_a_shard_from_disk_fetches_what_it_comes_to_need(tmp_path: Path) -> None:
    """The file has what the hosts of the shard needed when it was written, and nothing of the rest."""
    shard, store = Shard(0, 2), Shakable()
    mine, other = (next(name for name in NAMES if Shard(number, 2).has_name(name.encode())) for number in range(2))
    image = TableImage(
        [
            host(mine, route("/", "prefix", "up1")),
            host(other, route("/", "prefix", "up2")),
            *(upstream(f"up{number}", endpoint(number)) for number in (1, 2)),
        ]
    )
    await commit(store, image, (1, 1))
    first = Gateway(store, shard=shard)
    async with first.following():
        await until(lambda: first.served() == "1.1")
    stored = first.applier.stored_table()
    assert stored is not None
    write_last_good(tmp_path / "table", stored)
    assert other.encode() not in b"".join(decompress(chunk, 1 << 20) for chunk in stored.chunks.values())

    read = read_last_good(tmp_path / "table")
    assert read is not None

    second = Gateway(store, shard=shard)
    await second.applier.apply(read.manifest, read.get_chunks, read.open_chunk)
    assert second.reaches(mine.encode()) == "10.0.0.1:80"
    store.fetched.clear()
    async with second.following():
        await until(lambda: second.metric("headgate_table_in_sync") == 1)
        assert store.fetched == []  # the store names the table that is served
        image.put(host(mine, route("/", "prefix", "up2")))
        await commit(store, image, (1, 2))
        await until(lambda: second.served() == "1.2")
        assert second.reaches(mine.encode()) == "10.0.0.2:80"
    assert sorted(name.kind for name in store.fetched) == ["hosts", "upstreams"]


async def test_chunks_from_disk_are_kept_as_they_stand_there(tmp_path: Path) -> None:
    manifest, chunks = publish(small_image(1), (1, 1))
    # Other bytes than this release makes of the same content.
    stored = StoredChunks(chunks, level=19).stored
    write_last_good(tmp_path / "table", StoredTable(manifest, stored, manifest.chunks))
    read = read_last_good(tmp_path / "table")
    assert read is not None
    gateway = Gateway(Shakable())
    await gateway.applier.apply(read.manifest, read.get_chunks, read.open_chunk)
    kept = gateway.applier.stored_table()
    assert kept is not None
    assert kept.chunks == stored
    assert all(kept.chunks[digest] is read.chunks[digest] for digest in stored)


async def test_chunks_from_the_store_are_kept_as_it_gave_them() -> None:
    manifest, chunks = publish(small_image(1), (1, 1))
    given, gateway = StoredChunks(chunks, level=19), Gateway(Shakable())
    await gateway.applier.apply(manifest, given.get_chunks)
    kept = gateway.applier.stored_table()
    assert kept is not None
    assert all(kept.chunks[digest] is stored for digest, stored in given.stored.items())


async def test_a_shard_keeps_its_part_of_chunks_from_the_store() -> None:
    image = TableImage((host(name, route("/", "prefix", f"up-{name}")) for name in NAMES), is_for_shards=True)
    manifest, chunks = publish(image, (1, 1))
    gateway, given = Gateway(Shakable(), shard=Shard(0, 4)), StoredChunks(chunks)
    await gateway.applier.apply(manifest, given.get_chunks)
    kept = gateway.applier.stored_table()
    assert kept is not None
    hosts = {each["host"] for stored in kept.chunks.values() for each in json.loads(decompress(stored, 1 << 20))}
    assert hosts == {name for name in NAMES if Shard(0, 4).has_name(name.encode())}
    assert kept.chunks != given.stored


async def test_cycles_are_not_looked_for_while_the_first_table_is_read() -> None:
    gateway, seen = Gateway(Shakable()), list[bool]()

    for revision, bad in ((1, True), (2, False), (3, False)):
        manifest, chunks = publish(small_image(revision), (1, revision))
        given = StoredChunks(chunks)

        async def fetch(names: Sequence[ChunkName], bad: bool = bad, given: StoredChunks = given) -> Sequence[bytes]:
            seen.append(gc.isenabled())
            if bad:
                raise StoreUnavailable("away")
            return await given.get_chunks(names)

        if bad:
            with pytest.raises(StoreUnavailable):
                await gateway.applier.apply(manifest, fetch)
        else:
            await gateway.applier.apply(manifest, fetch)
        assert gc.isenabled()
    assert seen == sorted(seen)
    assert set(seen) == {False, True}
