"""The last good table on disk."""

import asyncio
import os
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fakes.gateway.table import endpoint, host, publish, upstream
from fakes.gateway.table_on_disk import content_on_disk
from fakes.translator.rolled_out import rolled_out
from fakes.waiting import until
from headgate.common.service.tasks import cancel
from headgate.common.snapshot import compress
from headgate.common.table_image import TableImage
from headgate.gateway.errors import DamagedFile
from headgate.gateway.following.last_good import LastGoodWriter, StoredTable, read_last_good, write_last_good


def stored(revision: int = 1) -> StoredTable:
    manifest, chunks = publish(TableImage([host("foo.com"), upstream("up", endpoint(revision))]), (1, revision))
    return StoredTable(manifest, {chunk.digest: compress(chunk.content) for chunk in chunks}, manifest.chunks)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    table = stored()
    write_last_good(tmp_path / "new folder" / "table", table)
    read = read_last_good(tmp_path / "new folder" / "table")
    assert read == table
    assert all(content_on_disk(read, name) for name in read.manifest.chunks)


def written(tmp_path: Path, replica: str) -> StoredTable:
    """What a replica writes of a table that `g1` serves before the others."""
    old, new = TableImage([host("old.example")]), TableImage([host("new.example")])
    manifest, chunks = rolled_out(old, new, "g1")
    contents = {chunk.digest: compress(chunk.content) for chunk in chunks}
    table = StoredTable(manifest, contents, manifest.served_by(replica))
    write_last_good(tmp_path / "table", table)
    return table


@pytest.mark.parametrize("replica", ["g1", "g2"])
def test_of_a_table_that_is_rolled_out_a_replica_reads_what_it_served(tmp_path: Path, replica: str) -> None:
    table = written(tmp_path, replica)
    read = read_last_good(tmp_path / "table", replica)
    assert read is not None
    assert (read.manifest, read.served) == (table.manifest, table.served)
    assert all(content_on_disk(read, name) for name in read.served)


@pytest.mark.parametrize(("writer", "reader"), [("g1", "g2"), ("g2", "g1")])
def test_a_replica_of_another_name_reads_what_was_served_on_its_disk(tmp_path: Path, writer: str, reader: str) -> None:
    table = written(tmp_path, writer)
    read = read_last_good(tmp_path / "table", reader)
    assert read is not None
    assert read.manifest.served_by(reader) == read.served == table.served
    assert all(content_on_disk(read, name) for name in read.served)


def test_no_file_is_no_table(tmp_path: Path) -> None:
    assert read_last_good(tmp_path / "table") is None


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_flipped_byte_is_detected(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "table"
    write_last_good(path, stored())
    content = bytearray(path.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(content)
    with pytest.raises(DamagedFile):
        read_last_good(path)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_cut_file_is_detected(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "table"
    write_last_good(path, stored())
    content = path.read_bytes()
    path.write_bytes(content[: data.draw(st.integers(0, len(content) - 1))])
    with pytest.raises(DamagedFile):
        read_last_good(path)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "table"
    write_last_good(path, stored(1))
    broken = stored(2)._replace(chunks={})
    with pytest.raises(KeyError):
        write_last_good(path, broken)
    assert read_last_good(path) == stored(1)._replace(manifest=read_last_good(path).manifest)  # type: ignore[union-attr]
    assert [item.name for item in tmp_path.iterdir()] == ["table"]


async def test_the_newest_table_is_written_soon_after_a_change(tmp_path: Path) -> None:
    path, tables = tmp_path / "table", [stored(1)]
    writer = LastGoodWriter(path, lambda: tables[-1])
    task = asyncio.create_task(writer.run())
    try:
        tables.append(stored(2))
        writer.note_change()
        await until(lambda: read_last_good(path) == tables[-1])
    finally:
        await cancel(task)


async def test_a_disk_that_refuses_is_logged_once_and_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("not a folder")
    writer = LastGoodWriter(tmp_path / "file" / "table", stored)
    await writer.flush()
    await writer.flush()
    assert len(caplog.records) == 1


def test_only_the_owner_may_read_the_file_and_a_folder_that_is_made_for_it(tmp_path: Path) -> None:
    path = tmp_path / "made" / "table"
    stale = path.with_name(f"{path.name}.{os.getpid()}.new")
    path.parent.mkdir(mode=0o700)
    stale.touch(mode=0o644)
    path.parent.chmod(0o755)
    write_last_good(path, stored())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o755, "as it was found"
    write_last_good(tmp_path / "new" / "table", stored())
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


def test_the_file_is_never_readable_for_others_while_it_is_written(tmp_path: Path, monkeypatch) -> None:
    modes = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: modes.append(stat.S_IMODE(os.fstat(descriptor).st_mode)))
    old = os.umask(0)
    try:
        write_last_good(tmp_path / "table", stored())
    finally:
        os.umask(old)
    assert modes[0] == 0o600


def part(revision: int = 1) -> StoredTable:
    """What is kept of a table by a gateway that needs none of its hosts."""
    manifest, chunks = publish(TableImage([host("foo.com"), upstream("up", endpoint(revision))]), (1, revision))
    kept = {chunk.digest: compress(b"[]" if chunk.kind == "hosts" else b'[{"kept":1}]') for chunk in chunks}
    return StoredTable(manifest, kept, manifest.chunks, is_part=True)


def test_of_a_part_what_was_kept_is_read_and_nothing_of_the_rest(tmp_path: Path) -> None:
    write_last_good(tmp_path / "table", part())
    read = read_last_good(tmp_path / "table")
    assert read is not None
    assert (read.manifest, read.served, read.is_part) == (part().manifest, part().served, True)
    assert {name.kind: content_on_disk(read, name) for name in read.served} == {
        "hosts": b"[]",
        "upstreams": b'[{"kept":1}]',
    }


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_flipped_byte_of_a_part_is_detected(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "table"
    write_last_good(path, part())
    content = bytearray(path.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(content)
    with pytest.raises(DamagedFile):
        read_last_good(path)


@pytest.mark.parametrize(("writer", "reader"), [("g1", "g1"), ("g1", "g2"), ("g2", "g1"), ("g2", "g2")])
def test_of_a_part_of_a_table_that_is_rolled_out_a_replica_reads_what_was_served_on_its_disk(
    tmp_path: Path, writer: str, reader: str
) -> None:
    old, new = TableImage([host("old.example")]), TableImage([host("new.example")])
    manifest, chunks = rolled_out(old, new, "g1")
    served = manifest.served_by(writer)
    kept = {chunk.digest: compress(chunk.content) for chunk in chunks if chunk.name in served}
    write_last_good(tmp_path / "table", StoredTable(manifest, kept, served, is_part=True))
    read = read_last_good(tmp_path / "table", reader)
    assert read is not None
    assert read.manifest.served_by(reader) == read.served == served
    assert all(content_on_disk(read, name) != b"[]" for name in read.served)
