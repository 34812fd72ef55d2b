"""What a reader takes from notices, and when it has to read."""

from datetime import UTC, datetime
from itertools import pairwise

from headgate.common.snapshot import Chunk, ChunkName, Manifest, Pointer, Version, compress, digest_of
from headgate.common.stores.announced import CHANGES_KEPT, AnnouncedRevisions
from headgate.common.stores.name_pages import NamePages
from headgate.common.stores.pointers import pointer_to
from headgate.common.stores.revision_change import RevisionChange, encode_change

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def chunk(text: str) -> Chunk:
    content = f'["{text}"]'.encode()
    return Chunk("hosts", "", digest_of(content), content)


def manifest(revision: int, text: str) -> Manifest:
    made = chunk(text)
    name = ChunkName(kind=made.kind, prefix=made.prefix, digest=made.digest)
    return Manifest(table="default", version=Version(1, revision), created_at=NOW, chunks=(name,))


def hear(announced: AnnouncedRevisions, before: Manifest, after: Manifest, text: str) -> Pointer:
    pointer, made = pointer_to(after, after.encode()), chunk(text)
    carried = encode_change(after, RevisionChange(before, [made]), [compress(made.content)], NamePages())
    assert carried is not None
    announced.hear(pointer, carried)
    return pointer


def test_a_revision_and_its_chunk_come_with_the_notice() -> None:
    announced = AnnouncedRevisions()
    first, second = manifest(1, "a"), manifest(2, "b")
    announced.note(first)
    assert announced.manifest_of(hear(announced, first, second, "b")) == second
    assert announced.chunk(second.chunks[0]) == compress(b'["b"]')


def test_notices_build_on_each_other() -> None:
    announced = AnnouncedRevisions()
    revisions = [manifest(number, str(number)) for number in range(1, 5)]
    announced.note(revisions[0])
    for before, after in pairwise(revisions):
        pointer = hear(announced, before, after, str(after.version.revision))
    assert announced.manifest_of(pointer) == revisions[-1]


def test_without_the_revision_before_it_is_read() -> None:
    announced = AnnouncedRevisions()
    pointer = hear(announced, manifest(1, "a"), manifest(2, "b"), "b")
    assert announced.manifest_of(pointer) is None
    announced.note(manifest(3, "c"))
    assert announced.manifest_of(pointer) is None


def test_other_content_under_the_same_version_is_read() -> None:
    announced = AnnouncedRevisions()
    first = announced.note(manifest(1, "a"))
    hear(announced, first, manifest(2, "b"), "b")
    restored = manifest(2, "c")
    assert announced.manifest_of(pointer_to(restored, restored.encode())) is None


def test_only_the_latest_changes_are_kept() -> None:
    announced = AnnouncedRevisions()
    revisions = [manifest(number, str(number)) for number in range(1, CHANGES_KEPT + 3)]
    for before, after in pairwise(revisions):
        announced.manifest_of(hear(announced, before, after, str(after.version.revision)))
    assert announced.chunk(revisions[1].chunks[0]) is None
    assert announced.chunk(revisions[-1].chunks[0]) is not None


def test_damage_is_as_good_as_no_change() -> None:
    announced = AnnouncedRevisions()
    first = announced.note(manifest(1, "a"))
    second = manifest(2, "b")
    pointer = pointer_to(second, second.encode())
    announced.hear(pointer, b"damaged")
    assert announced.manifest_of(pointer) is None
    assert first.version == Version(1, 1)


def test_a_chunk_that_came_damaged_is_read() -> None:
    announced = AnnouncedRevisions()
    first, second = announced.note(manifest(1, "a")), manifest(2, "b")
    carried = encode_change(second, RevisionChange(first, [chunk("b")]), [compress(b"other")], NamePages())
    assert carried is not None
    pointer = pointer_to(second, second.encode())
    announced.hear(pointer, carried)
    assert announced.manifest_of(pointer) == second
    assert announced.chunk(second.chunks[0]) is None
