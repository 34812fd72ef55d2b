"""Which file each object comes from, and what a changed file changes."""

from headgate.watcher.sources.manifests.index import Change, ManifestIndex
from headgate.watcher.sources.manifests.objects import Versioner
from headgate.watcher.sources.manifests.reader import ManifestRead, read_manifest

VERSIONER = Versioner("a", b"")
BROKEN = "kind: [\n"


def service(name: str, port: int = 80) -> str:
    return f"---\napiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\nspec: {{ports: [{{port: {port}}}]}}\n"


def read(file: str, text: str) -> tuple[str, ManifestRead]:
    return file, read_manifest(text.encode(), file, VERSIONER)


def shown(changes: list[Change]) -> list[tuple[str | None, str | None]]:
    return [(before and before.ref.name, after and after.ref.name) for before, after in changes]


def names(index: ManifestIndex) -> set[tuple[str, str]]:
    return {(one.file, one.ref.name) for one in index.objects()}


def test_a_new_file_brings_its_objects() -> None:
    index = ManifestIndex()
    assert shown(index.update([read("a", service("x") + service("w"))])) == [(None, "x"), (None, "w")]


def test_the_same_content_again_changes_nothing() -> None:
    index = ManifestIndex()
    index.update([read("a", service("x"))])
    assert index.update([read("a", "# comment\n" + service("x"))]) == []


def test_only_what_differs_is_a_change() -> None:
    index = ManifestIndex()
    index.update([read("a", service("x") + service("w") + service("z"))])
    changes = index.update([read("a", service("x") + service("w", 81))])
    assert sorted(shown(changes), key=str) == [("w", "w"), ("z", None)]


def test_a_file_that_is_gone_takes_its_objects_along() -> None:
    index = ManifestIndex()
    index.update([read("a", service("x"))])
    assert shown(index.update([], ["a"])) == [("x", None)]
    assert names(index) == set()


def test_a_broken_file_keeps_its_last_good_content() -> None:
    index = ManifestIndex()
    index.update([read("a", service("x") + service("w"))])
    assert index.update([read("a", service("x", 81) + "---\n" + BROKEN)]) == []
    assert names(index) == {("a", "x"), ("a", "w")}
    assert [problem.line for problem in index.problems()] == [8]


def test_a_mended_file_is_taken_again() -> None:
    index = ManifestIndex()
    index.update([read("a", service("x"))])
    index.update([read("a", BROKEN)])
    assert len(index.update([read("a", service("x", 81))])) == 1
    assert index.problems() == []


def test_a_file_that_was_never_good_gives_its_good_documents() -> None:
    index = ManifestIndex()
    index.update([read("a", service("x") + "---\n" + BROKEN)])
    assert names(index) == {("a", "x")}
    index.update([read("a", service("x") + service("w") + "---\n" + BROKEN)])
    assert names(index) == {("a", "x"), ("a", "w")}
    index.update([read("a", service("x") + service("w"))])
    index.update([read("a", BROKEN)])
    assert names(index) == {("a", "x"), ("a", "w")}


def test_of_two_files_the_first_by_path_wins_and_the_other_is_told_of_both() -> None:
    index = ManifestIndex()
    index.update([read("b", service("x")), read("a", service("x", 81))])
    assert names(index) == {("a", "x")}
    (problem,) = index.problems()
    assert problem.file == "b"
    assert str(problem).startswith("b:2: Service default/x: stands in a:2 too")


def test_the_other_file_takes_over_when_the_winner_goes() -> None:
    index = ManifestIndex()
    index.update([read("b", service("x")), read("a", service("x", 81))])
    ((before, after),) = index.update([], ["a"])
    assert before is not None
    assert after is not None
    assert (before.file, after.file) == ("a", "b")
    assert index.problems() == []


def test_moving_an_object_to_another_file_is_no_change() -> None:
    index = ManifestIndex()
    index.update([read("a", service("x"))])
    assert index.update([read("b", service("x"))], ["a"]) == []
    assert names(index) == {("b", "x")}


def test_files_are_found_by_folder() -> None:
    index = ManifestIndex()
    index.update([read("m/a/x", service("x")), read("m/ab/y", service("w"))])
    assert index.files_under("m/a") == ["m/a/x"]
    assert "m/a/x" in index
    assert index.has_objects("m/a/x")
    assert not index.has_objects("m/a/z")
