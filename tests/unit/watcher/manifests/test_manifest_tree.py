"""What a walk through folders finds, whether or not a notice told of it."""

from pathlib import Path

from fakes.translator.manifest_folder import service
from headgate.watcher.sources.manifests.objects import Versioner
from headgate.watcher.sources.manifests.tree import ManifestTree


def test_a_walk_says_that_a_file_with_objects_cannot_be_read_any_more(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(service("x"))
    tree = ManifestTree([str(tmp_path)], Versioner("a", b"k" * 32))
    tree.rescan()
    path.unlink()
    path.symlink_to(path)  # a loop: an open fails even for root
    for _ in range(2):
        assert tree.rescan() == []
        assert [problem.problem.reason for problem in tree.problems()] == ["Unreadable"]
        assert len(list(tree.objects())) == 1
    path.unlink()
    path.write_text(service("x", 81))
    assert len(tree.rescan()) == 1
    assert tree.problems() == []
