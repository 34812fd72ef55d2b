"""What a notice of a revision carries, and what a reader makes of it."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.common.errors import DecodeError
from headgate.common.snapshot import SCHEMA, Chunk, ChunkName, Manifest, Pin, Version, compress, decompress
from headgate.common.stores.name_pages import NamePages
from headgate.common.stores.revision_change import (
    CHANGE_LIMIT,
    CarriedChange,
    RevisionChange,
    decode_change,
    encode_change,
)
from headgate.common.table_image import TableImage

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def image(*names: str) -> TableImage:
    made = TableImage()
    for name in names:
        made.put_encoded("hosts", name, f'{{"host":"{name}"}}'.encode())
    return made


def manifest(revision: int, chunks: list[Chunk], pin: Pin | None = None) -> Manifest:
    names = tuple(ChunkName(kind=chunk.kind, prefix=chunk.prefix, digest=chunk.digest) for chunk in chunks)
    return Manifest(table="default", version=Version(1, revision), created_at=NOW, chunks=names, pin=pin)


def carried(parent: Manifest, after: Manifest, chunks: list[Chunk]) -> CarriedChange | None:
    named = {name.digest for name in parent.chunks}
    new = [chunk for chunk in chunks if chunk.digest not in named]
    encoded = encode_change(after, RevisionChange(parent, new), [compress(chunk.content) for chunk in new], NamePages())
    return decode_change(encoded) if encoded else None


names = st.sets(st.integers(0, 400).map(str), max_size=200)


@given(names, names)
def test_the_parent_and_the_change_make_the_revision(before: set[str], after: set[str]) -> None:
    chunks = image(*after).chunks()
    parent, wanted = manifest(1, image(*before).chunks()), manifest(2, chunks)
    change = carried(parent, wanted, chunks)
    if change is None:  # a chunk that is the same under another prefix: it is stored, and not sent again
        assert {name.digest for name in wanted.chunks} & {name.digest for name in parent.chunks}
    else:
        assert change.apply_to(parent, NamePages()) == wanted


def test_another_parent_makes_nothing() -> None:
    chunks = image("a", "b").chunks()
    change = carried(manifest(1, image("a").chunks()), manifest(2, chunks), chunks)
    assert change is not None
    other = manifest(1, image(*map(str, range(200))).chunks())
    assert change.apply_to(other, NamePages()) is None


def test_of_what_is_large_the_name_travels() -> None:
    small, large = Chunk("hosts", "0", "0" * 64, b"[]"), Chunk("hosts", "1", "1" * 64, bytes(CHANGE_LIMIT + 1))
    parent, after = manifest(1, []), manifest(2, [small, large])
    encoded = encode_change(after, RevisionChange(parent, [small, large]), [b"small", large.content], NamePages())
    assert encoded is not None
    assert len(encoded) < 1000
    change = decode_change(encoded)
    assert [chunk.stored for chunk in change.new] == [b"small", b""]
    assert change.apply_to(parent, NamePages()) == after


def test_of_what_is_stored_already_the_name_travels() -> None:
    chunks = image("a").chunks()
    parent, after = manifest(1, []), manifest(2, chunks)
    encoded = encode_change(after, RevisionChange(parent, [], after.chunks), [], NamePages())
    assert encoded is not None
    change = decode_change(encoded)
    assert [chunk.stored for chunk in change.new] == [b""]
    assert change.apply_to(parent, NamePages()) == after


def test_more_names_than_a_notice_takes_do_not_travel() -> None:
    chunks = [Chunk("hosts", f"{number:012b}", f"{number:064x}", b"") for number in range(4000)]
    after = manifest(2, chunks)
    assert encode_change(after, RevisionChange(manifest(1, []), [], after.chunks), [], NamePages()) is None


def test_a_chunk_that_the_writer_does_not_name_has_to_be_fetched() -> None:
    chunks = image("a").chunks()
    assert encode_change(manifest(2, chunks), RevisionChange(manifest(1, []), []), [], NamePages()) is None


def test_a_pinned_table_is_fetched() -> None:
    chunks = image("a").chunks()
    pinned = manifest(2, chunks, Pin(version=Version(1, 1), since=NOW))
    assert carried(manifest(1, []), pinned, chunks) is None


@pytest.mark.parametrize("data", [b"", b"{}", compress(b"{}"), compress(b"\x95\x92\x01\x01\xc4\x02{}\x90\x90\xa0")])
def test_damage_is_an_error(data: bytes) -> None:
    with pytest.raises(DecodeError, match=r"cannot be read|damaged|bytes"):
        decode_change(data)


def test_a_later_schema_is_refused_as_its_manifest_is() -> None:
    chunks = image("a").chunks()
    later = manifest(2, chunks).model_copy(update={"schema_version": SCHEMA + 1})
    with pytest.raises(DecodeError, match=f"schema {SCHEMA + 1}"):
        Manifest.decode(later.encode())
    with pytest.raises(DecodeError, match=f"schema {SCHEMA + 1}"):
        carried(manifest(1, []), later, chunks)


def test_a_revision_that_does_not_follow_its_parent_is_an_error() -> None:
    encoded = encode_change(manifest(1, []), RevisionChange(manifest(1, []), []), [], NamePages())
    assert encoded is not None
    with pytest.raises(DecodeError, match=r"1\.1 does not follow 1\.1"):
        decode_change(encoded)


@given(names)
def test_an_encoded_manifest_is_its_json(present: set[str]) -> None:
    made = manifest(3, image(*present).chunks())
    assert decompress(made.encode(), 1 << 20) == made.model_dump_json().encode()
    assert Manifest.decode(made.encode()) == made


def test_names_that_the_writer_knows_to_be_gone_are_not_looked_for() -> None:
    before, chunks = image(*map(str, range(300))), image(*map(str, range(299))).chunks()
    parent, after = manifest(1, before.chunks()), manifest(2, chunks)
    named = {name.digest for name in parent.chunks}
    new, left = [chunk for chunk in chunks if chunk.digest not in named], {chunk.digest for chunk in chunks}
    gone = [name for name in parent.chunks if name.digest not in left]
    encoded = encode_change(after, RevisionChange(parent, new, gone=gone), [b"" for _ in new], NamePages())
    assert encoded == encode_change(after, RevisionChange(parent, new), [b"" for _ in new], NamePages())
