"""How names of chunks are spread over pages, and manifests that name those."""

import asyncio
import random
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.common.errors import DecodeError, NotFound
from headgate.common.snapshot import (
    SCHEMA,
    Chunk,
    ChunkName,
    Manifest,
    Pin,
    Version,
    compress,
    decompress,
    digest_of,
)
from headgate.common.stores.collecting import named_by
from headgate.common.stores.found import all_found
from headgate.common.stores.name_pages import PAGE_NAMES, PAGED_FROM, NamePages, read_page
from headgate.common.stores.paged_manifests import PagedManifests, StoredManifest, read_head
from headgate.common.table_image import TableImage

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
KINDS = ("hosts", "upstreams")
MANY = 20_000
"""Entries of a table whose names of chunks take some pages."""


def image(names: Iterable[str]) -> TableImage:
    made = TableImage()
    for name in names:
        made.put_encoded("hosts", f"{name}.example", f'{{"host":"{name}.example"}}'.encode())
        made.put_encoded("upstreams", name, f'{{"key":"{name}"}}'.encode())
    return made


@pytest.fixture(scope="module")
def large() -> TableImage:
    return image(map(str, range(MANY)))


def names_of(chunks: Iterable[Chunk]) -> tuple[ChunkName, ...]:
    return tuple(chunk.name for chunk in chunks)


def manifest(revision: int, chunks: Iterable[Chunk], pin: Pin | None = None) -> Manifest:
    return Manifest(table="default", version=Version(1, revision), created_at=NOW, chunks=names_of(chunks), pin=pin)


class Stored:
    """Pages on a dictionary."""

    def __init__(self) -> None:
        self.pages: dict[str, bytes] = {}
        self.fetched = 0
        self.manifests = PagedManifests(self.fetch)

    async def fetch(self, digests: Sequence[str]) -> Sequence[bytes]:
        self.fetched += len(digests)
        return all_found("page {}", digests, map(self.pages.get, digests))

    def put(self, written: Manifest) -> StoredManifest:
        made = self.manifests.encode(written)
        self.pages |= {page.digest: compress(page.content) for page in made.pages}
        return made


small_or_large = st.lists(st.integers(0, 1 << 16), max_size=300).map(lambda each: {str(number) for number in each})
prefixes = st.integers(0, 9).flatmap(
    lambda bits: st.sets(st.integers(0, (1 << bits) - 1).map(lambda number: f"{number:0{bits}b}" if bits else ""))
)


def names_below(kind: str, present: set[str]) -> list[ChunkName]:
    return [ChunkName(kind=kind, prefix=each, digest=digest_of(each.encode())) for each in sorted(present)]  # type: ignore[arg-type]


@settings(max_examples=200)
@given(prefixes, prefixes, prefixes)
def test_pages_have_all_names_in_order_and_depend_on_nothing_else(
    hosts: set[str], upstreams: set[str], before: set[str]
) -> None:
    names = (*names_below("hosts", hosts), *names_below("upstreams", upstreams))
    used = NamePages()
    used.split(tuple(names_below("hosts", before)))
    pages = used.split(names)
    assert [name for page in pages for name in page.names] == list(names)
    assert pages == NamePages().split(names)
    assert all(read_page(page.digest, compress(page.content)) == page for page in pages)
    assert used.digest(names) == NamePages().digest(names)


def test_names_that_are_not_in_order_are_refused() -> None:
    hosts, upstreams = (tuple(names_below(kind, {f"{number:08b}" for number in range(256)})) for kind in KINDS)
    with pytest.raises(ValueError, match="not in the order"):
        NamePages().split((*upstreams, *hosts))


def test_pages_have_about_as_many_names_as_they_are_to_have(large: TableImage) -> None:
    pages = NamePages().split(names_of(large.chunks()))
    sizes = [len(page.names) for page in pages]
    assert len(pages) > 8
    assert PAGE_NAMES / 4 <= sum(sizes) / len(sizes) <= PAGE_NAMES
    assert max(sizes) <= 4 * PAGE_NAMES


def test_one_changed_entry_changes_one_page(large: TableImage) -> None:
    pages = NamePages()
    before = pages.split(names_of(large.chunks()))
    changed = large.copy()
    changed.put_encoded("upstreams", "7", b'{"key":"7","more":1}')
    after = pages.split(names_of(changed.chunks()))
    new = [page for page in after if all(page is not other for other in before)]
    assert len(after) == len(before)
    assert [page.digest for page in new] == [page.digest for page in after if page not in before]
    assert len(new) == 1
    assert pages.digest(names_of(changed.chunks())) != pages.digest(names_of(large.chunks()))


async def test_a_manifest_of_many_chunks_is_read_from_its_pages(large: TableImage) -> None:
    stored = Stored()
    written = manifest(1, large.chunks(), Pin(version=Version(1, 1), since=NOW, live=names_of(image(["a"]).chunks())))
    made = stored.put(written)
    assert len(written.chunks) > PAGED_FROM
    assert len(made.content) < len(written.encode()) / 4
    reader = PagedManifests(stored.fetch)
    assert await reader.decode(made.content) == written
    head, pages = read_head(made.content)
    assert (head.version, list(pages)) == (written.version, [page.digest for page in made.pages])
    named = named_by(made.content)
    assert list(named.pages) == list(pages)
    assert set(named.chunks) == {name.digest for name in written.live}


async def test_what_two_manifests_have_in_common_is_fetched_once(large: TableImage) -> None:
    stored, changed = Stored(), large.copy()
    changed.put_encoded("upstreams", "7", b'{"key":"7","more":1}')
    first, second = stored.put(manifest(1, large.chunks())), stored.put(manifest(2, changed.chunks()))
    one = await stored.manifests.decode(first.content)
    fetched = stored.fetched
    other = await stored.manifests.decode(second.content)
    assert stored.fetched - fetched == 1
    assert sum(name is not old for name, old in zip(other.chunks, one.chunks, strict=True)) <= 2 * PAGE_NAMES


@pytest.mark.parametrize("seed", range(4))
async def test_manifests_that_are_read_at_once_do_not_take_each_others_pages(large: TableImage, seed: int) -> None:
    stored, image, chance = Stored(), large, random.Random(seed)
    written = []
    for number in range(24):
        image = image.copy()
        image.put_encoded("upstreams", str(number * 97), f'{{"key":"{number * 97}","more":1}}'.encode())
        written.append(manifest(number, image.chunks()))
    made = [stored.put(each) for each in written]

    async def fetch(digests: Sequence[str]) -> Sequence[bytes]:
        await asyncio.sleep(chance.random() / 500)
        return await stored.fetch(digests)

    reader = PagedManifests(fetch)
    await reader.decode(made[0].content)
    found = await asyncio.gather(*(reader.decode(each.content) for each in made))
    assert list(found) == written


async def test_a_manifest_of_few_chunks_has_no_pages() -> None:
    stored, written = Stored(), manifest(1, image("abc").chunks())
    made = stored.put(written)
    assert (made.content, list(made.pages)) == (written.encode(), [])
    assert await stored.manifests.decode(made.content) == written
    assert read_head(made.content) == (written, [])


async def test_a_missing_page_is_not_found(large: TableImage) -> None:
    stored = Stored()
    made = stored.put(manifest(1, large.chunks()))
    del stored.pages[made.pages[3].digest]
    with pytest.raises(NotFound, match=made.pages[3].digest[:12]):
        await stored.manifests.decode(made.content)


@pytest.mark.parametrize("content", [b"", b"{}", b'["hosts",7]', b'["nothing",[["0","1"]]]'])
def test_a_damaged_page_is_an_error(content: bytes) -> None:
    with pytest.raises(DecodeError, match=r"page 0{12} of a manifest holds other content"):
        read_page("0" * 64, compress(content))
    with pytest.raises(DecodeError, match=r"page \w{12} of a manifest cannot be read"):
        read_page(digest_of(content), compress(content))


def test_a_later_schema_of_a_manifest_with_pages_is_refused(large: TableImage) -> None:
    made = Stored().put(manifest(1, large.chunks()).model_copy(update={"schema_version": SCHEMA + 1}))
    with pytest.raises(DecodeError, match=f"schema {SCHEMA + 1}"):
        read_head(made.content)
    with pytest.raises(DecodeError, match=f"schema {SCHEMA + 1}"):
        named_by(made.content)


def test_a_damaged_manifest_is_an_error(large: TableImage) -> None:
    made = Stored().put(manifest(1, large.chunks()))
    plain = decompress(made.content, 1 << 20)
    damages = (plain[:-5], plain.replace(b'"head":', b'"heap":'), b'{"pages":7}', b'{"pages":["\xff"]}', b"[" * 100_000)
    for damaged in damages:
        with pytest.raises(DecodeError, match="cannot be read"):
            read_head(compress(damaged))
        with pytest.raises(DecodeError, match="cannot be read"):
            named_by(compress(damaged))
