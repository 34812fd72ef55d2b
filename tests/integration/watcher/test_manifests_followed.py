"""Folders of manifests on a real disk, followed by the kernel's notifications."""

import asyncio
import logging
import os
import shutil
import stat
from contextlib import aclosing
from pathlib import Path

import pytest

from fakes.translator.manifest_folder import FollowedFolder, following, service
from fakes.waiting import until
from headgate.common.deltas import Author
from headgate.common.errors import SettingsError
from headgate.common.resources import SERVICE, ObjectRef
from headgate.watcher.sources import Applied, Deleted, Listed
from headgate.watcher.sources.manifests import source as manifests_module
from headgate.watcher.sources.manifests.source import VERSION_KEY_FILE, ManifestSource, load_or_create_version_key

BROKEN = "kind: [\n"


async def test_every_kind_is_listed_first(tmp_path: Path) -> None:
    async with following(tmp_path, {"a.yaml": service("x"), "deep/er/b.json": "", "c.txt": BROKEN}) as folder:
        assert all(isinstance(event, Listed) for event in folder.events)
        assert [event.kind for event in folder.events] == list(folder.source.kinds)
        assert folder.ports == {"x": 80}


async def test_new_changed_and_deleted_files_are_reported(tmp_path: Path) -> None:
    async with following(tmp_path) as folder:
        folder.write("a.yaml", service("x"))
        await folder.until({"x": 80})
        folder.write("a.yaml", service("x", 81) + service("w"))
        await folder.until({"x": 81, "w": 80})
        (folder.path / "a.yaml").unlink()
        await folder.until({})
        changes = folder.events[len(folder.source.kinds) :]
        assert [type(event) for event in changes] == [Applied, Applied, Applied, Deleted, Deleted]
        assert all(event.kind == SERVICE for event in changes)


async def test_a_change_of_one_object_is_one_event(tmp_path: Path) -> None:
    async with following(tmp_path, {"a.yaml": service("x") + service("w")}) as folder:
        folder.write("a.yaml", service("x") + service("w", 81))
        await folder.until({"x": 80, "w": 81})
        assert len(folder.events) == len(folder.source.kinds) + 1


async def test_the_author_of_an_object_is_its_file(tmp_path: Path) -> None:
    async with following(tmp_path, {"a.yaml": service("x")}) as folder:
        ref = ObjectRef("a", "", "services", "default", "x")
        assert folder.source.author_of(ref, {}) == Author(str(folder.path / "a.yaml"))
        assert folder.source.author_of(ref._replace(name="none"), {}) is None


async def test_a_renamed_draft_replaces_the_file(tmp_path: Path) -> None:
    async with following(tmp_path, {"a.yaml": service("x")}) as folder:
        folder.replace("a.yaml", service("x", 81))
        await folder.until({"x": 81})
        assert len(folder.events) == len(folder.source.kinds) + 1


async def test_renaming_a_file_changes_nothing(tmp_path: Path) -> None:
    async with following(tmp_path, {"a.yaml": service("x")}) as folder:
        (folder.path / "a.yaml").rename(folder.path / "b.yaml")
        await folder.settle()
        assert folder.ports == {"x": 80}
        assert not any(
            isinstance(event, Deleted) and event.object["metadata"]["name"] == "x" for event in folder.events
        )


async def test_hidden_and_editors_files_are_passed_over(tmp_path: Path) -> None:
    async with following(tmp_path, {".a.yaml": BROKEN, ".git/b.yaml": BROKEN}) as folder:
        for name in (".#c.yaml", "#d.yaml#", "e.yaml~", ".f.yaml.swp", "4913", ".git/g.yaml", "h.yml.tmp"):
            folder.write(name, BROKEN)
        await folder.settle()
        assert folder.source.problems == ()


async def test_a_broken_file_keeps_its_content_and_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with following(tmp_path, {"a.yaml": service("x") + service("w")}) as folder:
        folder.write("a.yaml", service("x", 81) + "---\n" + BROKEN)
        await folder.until_reasons("InvalidSyntax")
        await folder.settle()
        assert folder.ports == {"x": 80, "w": 80}
        (told,) = [record for record in caplog.records if "not YAML" in record.getMessage()]
        assert f"{folder.path}/a.yaml:8: document" in told.getMessage()
        folder.write("a.yaml", service("x", 82))
        await folder.until({"x": 82})
        await folder.until_reasons()
        assert "no longer wrong" in caplog.text


async def test_an_unusable_object_keeps_the_whole_file_and_is_named(tmp_path: Path) -> None:
    async with following(tmp_path, {"a.yaml": service("x")}) as folder:
        folder.write("a.yaml", service("x", 81) + service("W"))
        await folder.until_reasons("InvalidName")
        assert folder.ports == {"x": 80}
        assert "a.yaml:7: Service W: metadata.name" in str(folder.source.problems[0])


async def test_a_file_that_is_broken_from_the_start_gives_its_good_documents(tmp_path: Path) -> None:
    async with following(tmp_path, {"a.yaml": service("x") + "---\n" + BROKEN + service("w")}) as folder:
        assert folder.ports == {"x": 80, "w": 80}
        assert folder.reasons == ["InvalidSyntax"]


async def test_bytes_that_are_no_text_keep_the_content(tmp_path: Path) -> None:
    async with following(tmp_path, {"a.yaml": service("x")}) as folder:
        folder.write("a.yaml", b"a: \xff\n")
        await folder.until_reasons("NotUtf8")
        assert folder.ports == {"x": 80}


async def test_a_file_that_cannot_be_opened_keeps_its_content(tmp_path: Path) -> None:
    async with following(tmp_path, {"a.yaml": service("x")}) as folder:
        path = folder.path / "a.yaml"
        path.unlink()
        path.symlink_to(path)  # a loop: an open fails even for root
        await until(lambda: "Unreadable" in folder.reasons or not folder.ports)
        if folder.ports:  # the moment between the two calls may have been seen
            assert folder.ports == {"x": 80}
        path.unlink()
        folder.write("a.yaml", service("x", 81))
        await folder.until({"x": 81})
        await folder.until_reasons()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
async def test_a_file_without_permission_keeps_its_content(tmp_path: Path) -> None:
    async with following(tmp_path, {"a.yaml": service("x")}) as folder:
        (folder.path / "a.yaml").chmod(0)
        folder.replace("b.yaml", service("w"))
        await folder.until({"x": 80, "w": 80})
        folder.write("c.yaml", service("z"))
        await folder.until_reasons("Unreadable")


async def test_a_file_that_became_a_folder_keeps_its_content(tmp_path: Path) -> None:
    async with following(tmp_path, {"a.yaml": service("x")}) as folder:
        draft = tmp_path / "draft"
        draft.mkdir()
        (draft / "b.yaml").write_text(service("w"))
        (folder.path / "a.yaml").rename(tmp_path / "old")
        draft.rename(folder.path / "a.yaml")
        await until(lambda: "w" in folder.ports)
        await folder.settle()
        shutil.rmtree(folder.path / "a.yaml")
        await folder.until({})
        folder.write("a.yaml", service("x", 81))
        await folder.until({"x": 81})
        await folder.until_reasons()


async def test_an_emptied_file_is_believed_only_when_it_stays_empty(tmp_path: Path) -> None:
    async with following(tmp_path, {"a.yaml": service("x")}) as folder:
        folder.write("a.yaml", "")
        await folder.until({})


async def test_a_file_written_in_two_goes_takes_nothing_away(tmp_path: Path) -> None:
    async with following(tmp_path, {"a.yaml": service("x") + service("w")}) as folder:
        text = service("x", 81) + service("w", 81)
        with (folder.path / "a.yaml").open("w") as file:
            file.write(text[: len(service("x")) - 5])
            file.flush()
            await asyncio.sleep(0.03)  # long enough to be seen half written
            file.write(text[len(service("x")) - 5 :])
        await folder.until({"x": 81, "w": 81})
        assert not any(isinstance(event, Deleted) for event in folder.events)


async def test_a_folder_that_is_made_later_is_followed(tmp_path: Path) -> None:
    async with following(tmp_path) as folder:
        folder.write("deep/er/a.yaml", service("x"))
        await folder.until({"x": 80})
        folder.write("deep/er/a.yaml", service("x", 81))
        await folder.until({"x": 81})
        folder.write("deep/b.yaml", service("w"))
        await folder.until({"x": 81, "w": 80})


async def test_a_folder_that_is_moved_away_takes_its_objects_along(tmp_path: Path) -> None:
    async with following(tmp_path, {"deep/er/a.yaml": service("x"), "b.yaml": service("w")}) as folder:
        (folder.path / "deep").rename(tmp_path / "elsewhere")
        await folder.until({"w": 80})
        (tmp_path / "elsewhere").rename(folder.path / "back")
        await folder.until({"x": 80, "w": 80})


async def test_the_whole_folder_may_vanish_and_return(tmp_path: Path) -> None:
    async with following(tmp_path, {"a.yaml": service("x"), "b.yaml": service("w")}) as folder:
        folder.path.rename(tmp_path / "elsewhere")
        await folder.until_reasons("Unreadable")
        assert folder.ports == {"x": 80, "w": 80}
        folder.path.mkdir()
        folder.write("a.yaml", service("x", 81))
        await folder.until({"x": 81})
        await folder.until_reasons()
        folder.write("a.yaml", service("x", 82))
        await folder.until({"x": 82})


async def test_a_folder_replaced_by_another_is_read_anew(tmp_path: Path) -> None:
    """As git-sync does: the folder is a link that is moved to a new worktree."""
    for number in (1, 2):
        (tmp_path / f"tree{number}").mkdir()
        (tmp_path / f"tree{number}" / "a.yaml").write_text(service("x", 80 + number))
    (tmp_path / "manifests").symlink_to("tree1")
    async with following(tmp_path) as folder:
        assert folder.ports == {"x": 81}
        (tmp_path / "next").symlink_to("tree2")
        os.replace(tmp_path / "next", tmp_path / "manifests")
        await folder.until({"x": 82})
        (tmp_path / "tree2" / "a.yaml").write_text(service("x", 83))
        await folder.until({"x": 83})


async def test_a_mounted_config_map_is_followed(tmp_path: Path) -> None:
    """The kubelet writes a new folder and swaps the link `..data`; the visible links never change."""
    mount = tmp_path / "manifests"
    _mount(mount, "..1", {"a.yaml": service("x")})
    (mount / "a.yaml").symlink_to("..data/a.yaml")
    async with following(tmp_path) as folder:
        assert folder.ports == {"x": 80}
        _mount(mount, "..2", {"a.yaml": service("x", 81)})
        shutil.rmtree(mount / "..1")
        await folder.until({"x": 81})
        assert folder.source.problems == ()


def _mount(mount: Path, generation: str, files: dict[str, str]) -> None:
    (mount / generation).mkdir(parents=True)
    for name, text in files.items():
        (mount / generation / name).write_text(text)
    (mount / "..data_tmp").symlink_to(generation)
    os.replace(mount / "..data_tmp", mount / "..data")


async def test_links_that_loop_are_followed_once(tmp_path: Path) -> None:
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "again").symlink_to(tmp_path / "manifests")
    async with following(tmp_path, {"a.yaml": service("x")}) as folder:
        assert folder.ports == {"x": 80}
        assert folder.source.problems == ()


async def test_a_pipe_named_like_a_manifest_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "manifests").mkdir()
    os.mkfifo(tmp_path / "manifests" / "pipe.yaml")
    async with following(tmp_path, {"a.yaml": service("x")}) as folder:
        assert folder.ports == {"x": 80}
        assert folder.reasons == ["Unreadable"]


async def test_only_what_changed_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with following(tmp_path, {f"{n}.yaml": service(f"s{n}") for n in range(50)}) as folder:
        await folder.settle()
        reads = _count_reads(monkeypatch)
        folder.write("7.yaml", service("s7", 81))
        await until(lambda: folder.ports["s7"] == 81)
        assert {os.path.basename(path) for path in reads} == {"7.yaml"}


def _count_reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    from headgate.watcher.sources.manifests import tree as manifest_tree

    reads: list[str] = []
    original = manifest_tree.read_bytes

    def counting(path: str) -> object:
        reads.append(path)
        return original(path)

    monkeypatch.setattr(manifest_tree, "read_bytes", counting)
    return reads


async def test_what_the_kernel_does_not_tell_is_found_by_walking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deaf(*_: object, **__: object) -> object:
        raise OSError(28, "inotify watch limit reached")

    monkeypatch.setattr(manifests_module, "awatch", deaf)
    async with following(tmp_path, {"a.yaml": service("x")}) as folder:
        folder.write("a.yaml", service("x", 81))
        await folder.until({"x": 81})
        (folder.path / "a.yaml").unlink()
        await folder.until({})


async def test_a_linked_file_that_changes_elsewhere_is_found_by_walking(tmp_path: Path) -> None:
    (tmp_path / "manifests").mkdir()
    (tmp_path / "elsewhere.yaml").write_text(service("x"))
    (tmp_path / "manifests" / "a.yaml").symlink_to(tmp_path / "elsewhere.yaml")
    async with following(tmp_path, rescan_s=0.3) as folder:
        assert folder.ports == {"x": 80}
        (tmp_path / "elsewhere.yaml").write_text(service("x", 8081))
        await folder.until({"x": 8081})


async def test_nothing_is_listed_before_the_folder_is_there(tmp_path: Path) -> None:
    source = ManifestSource([tmp_path / "manifests"], "a", tmp_path)
    async with aclosing(source.events()) as events:  # type: ignore[type-var]
        first = asyncio.ensure_future(anext(events))
        await until(lambda: bool(source.problems))
        assert [problem.problem.reason for problem in source.problems] == ["FolderMissing"]
        (tmp_path / "manifests").mkdir()
        assert isinstance(await first, Listed)
        assert source.problems == ()


async def test_what_refers_comes_after_what_it_refers_to(tmp_path: Path) -> None:
    ingress = "---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: i}\n"
    async with following(tmp_path) as folder:
        folder.replace("a.yaml", ingress + service("x"))
        await until(lambda: len(folder.events) == len(folder.source.kinds) + 2)
        (folder.path / "a.yaml").unlink()
        await until(lambda: len(folder.events) == len(folder.source.kinds) + 4)
        assert [event.kind.kind for event in folder.events[-4:]] == ["Service", "Ingress", "Ingress", "Service"]


async def test_objects_can_be_located(tmp_path: Path) -> None:
    async with following(tmp_path, {"a.yaml": service("x")}) as folder:
        (listed,) = [event for event in folder.events if isinstance(event, Listed) and event.objects]
        ref = _ref_of(folder, listed.objects[0]["metadata"]["name"])
        assert folder.source.locate(ref) == f"{folder.path}/a.yaml:2"
        assert folder.source.locate(ref._replace(name="w")) == ""


def _ref_of(folder: FollowedFolder, name: str):  # type: ignore[no-untyped-def]
    from headgate.common.resources import ObjectRef

    return ObjectRef("a", "", "services", "default", name)


def test_the_version_key_is_kept_and_private(tmp_path: Path) -> None:
    key = load_or_create_version_key(tmp_path / "data")
    assert load_or_create_version_key(tmp_path / "data") == key
    assert len(key) == 32
    assert stat.S_IMODE((tmp_path / "data" / VERSION_KEY_FILE).stat().st_mode) == 0o600


def test_an_empty_version_key_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / VERSION_KEY_FILE).touch(0o600)
    assert load_or_create_version_key(tmp_path) == load_or_create_version_key(tmp_path) != b""


def test_an_unusable_data_directory_is_a_mistake_in_settings(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SettingsError, match="data_dir"):
        load_or_create_version_key(tmp_path / "file")


async def test_a_file_that_was_named_is_followed_whatever_its_suffix(tmp_path: Path) -> None:
    async with following(tmp_path, {"routes": service("x"), "other.yaml": service("w")}, only="routes") as folder:
        await folder.until({"x": 80})
        folder.write("routes", service("x", 81))
        await folder.until({"x": 81})
        folder.replace("routes", service("x", 82))
        await folder.until({"x": 82})
        folder.write("routes", service("x", 83))
        await folder.until({"x": 83})


async def test_a_file_that_was_named_and_is_gone_keeps_its_content(tmp_path: Path) -> None:
    async with following(tmp_path, {"a.yaml": service("x")}, only="a.yaml") as folder:
        (folder.path / "a.yaml").unlink()
        await folder.until_reasons("Unreadable")
        assert folder.ports == {"x": 80}
        folder.write("a.yaml", service("x", 81))
        await folder.until({"x": 81})
        await folder.until_reasons()
