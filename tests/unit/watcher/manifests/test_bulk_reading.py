"""Files read by processes of their own are read as the watcher itself reads them."""

from contextlib import aclosing
from pathlib import Path

import pytest

from headgate.common.resources import ALL_KINDS, ObjectRef
from headgate.watcher.publishing.intake import Intake
from headgate.watcher.sources import Applied, Listed, ReadyPage
from headgate.watcher.sources.manifests import bulk, tree
from headgate.watcher.sources.manifests.bulk import BulkReader
from headgate.watcher.sources.manifests.objects import Versioner
from headgate.watcher.sources.manifests.source import ManifestSource
from headgate.watcher.sources.manifests.tree import ManifestTree

VERSIONER = Versioner("a", b"k" * 32)
SECRET = "---\napiVersion: v1\nkind: Secret\ntype: kubernetes.io/tls\nmetadata: {name: s}\nstringData: {tls.crt: x}\n"
FILES = {
    "a.yaml": "".join(f"---\napiVersion: v1\nkind: Service\nmetadata: {{name: s{n}}}\n" for n in range(30)),
    "b.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: s1, labels: {is: second}}\n",
    "broken.yaml": "a: [",
    "c.json": '{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "on", "labels": {"yes": "0777"}}}',
    "nameless.yaml": "apiVersion: v1\nkind: Service\nmetadata: {}\n",
    "no.yaml": "apiVersion: v1\nkind: Unheard\nmetadata: {name: x}\n",
    "secret.yaml": SECRET,
    "text.yaml": b"\xff",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    monkeypatch.setattr(bulk, "BULK_BYTES", 0)
    monkeypatch.setattr(bulk, "TASK_BYTES", 100)
    return tmp_path


def read_alone(folder: Path) -> ManifestTree:
    alone = ManifestTree([str(folder)], VERSIONER)
    alone.rescan()
    return alone


def test_objects_and_problems_are_the_same(folder: Path) -> None:
    read = ManifestTree([str(folder)], VERSIONER)
    batches = list(read.read_first())
    assert len([batch for batch in batches if batch]) > 2
    assert batches[-1] == []  # the walk that comes after finds nothing new
    alone = read_alone(folder)
    assert list(read.objects()) == list(alone.objects())
    assert read.problems() == alone.problems()
    assert {change.after for batch in batches for change in batch} == set(alone.objects())


async def test_what_is_read_in_bulk_is_published_as_what_is_read_alone(folder: Path, tmp_path: Path) -> None:
    source = ManifestSource([folder], "a", tmp_path / "data")
    bulk_read = Intake(ALL_KINDS.readable, "a", (), source.author_of, lambda: None)
    async with aclosing(source.events()) as events:  # type: ignore[type-var]
        async for event in events:
            await bulk_read.note(event)
            if isinstance(event, Listed):
                break
    alone = Intake(ALL_KINDS.readable, "a", (), source.author_of, lambda: None)
    for one in read_alone(folder).objects():
        await alone.note(Applied(one.kind, one.object))
    refs = alone.ledger.take()
    assert sorted(bulk_read.ledger.take()) == sorted(refs)
    for ref in refs:
        ours, theirs = bulk_read.ledger.delta(ref), alone.ledger.delta(ref)
        assert ours is not None
        assert theirs is not None
        changing = {"observed_at": theirs.observed_at, "digest": theirs.digest}
        assert ours._replace(**changing) == theirs
        assert ours.digest == ours.resource_version


def test_a_file_that_cannot_be_read_says_so_itself(folder: Path) -> None:
    (folder / "dangling.yaml").symlink_to("loop.yaml")
    (folder / "loop.yaml").symlink_to("dangling.yaml")
    read = ManifestTree([str(folder)], VERSIONER)
    list(read.read_first())
    assert read.problems() == read_alone(folder).problems()


def test_a_process_that_ends_costs_no_object(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Dying(BulkReader):
        def __init__(self, versioner: Versioner) -> None:
            super().__init__(versioner)
            self.kill()

    monkeypatch.setattr(tree, "BulkReader", Dying)
    read = ManifestTree([str(folder)], VERSIONER)
    list(read.read_first())
    assert list(read.objects()) == list(read_alone(folder).objects())


def test_reading_can_be_given_up(folder: Path) -> None:
    read = ManifestTree([str(folder)], VERSIONER)
    reading = read.read_first()
    next(reading)
    read.abort()
    rest = [change for batch in reading for change in batch]
    assert len(rest) < len(list(read_alone(folder).objects()))


def test_little_is_read_by_the_watcher_itself() -> None:
    assert not bulk.is_bulk([bulk.BULK_BYTES])


async def test_what_is_deleted_during_the_first_read_is_gone(folder: Path, tmp_path: Path) -> None:
    source = ManifestSource([folder], "a", tmp_path / "data")
    intake = Intake(ALL_KINDS.readable, "a", (), None, lambda: None)
    first, lists = ObjectRef("a", "", "services", "default", "s1"), 0
    async with aclosing(source.events()) as events:  # type: ignore[type-var]
        async for event in events:
            await intake.note(event)
            if isinstance(event, ReadyPage) and (folder / "a.yaml").exists():
                assert intake.ledger.wanted(first) is not None
                (folder / "a.yaml").unlink()
                (folder / "b.yaml").unlink()
            lists += isinstance(event, Listed)
            if lists == len(source.kinds):
                break
    kept = {ref.name for ref in intake.ledger.take() if intake.ledger.wanted(ref) is not None}
    assert "on" in kept
    assert not kept & {f"s{number}" for number in range(30)}
