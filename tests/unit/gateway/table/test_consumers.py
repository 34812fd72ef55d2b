"""Consumers of a table, revision by revision."""

from fakes.gateway.table import host, load, new_compiler
from headgate.common.snapshot import ChunkName, Version
from headgate.common.table import Consumer
from headgate.common.table_image import TableImage
from headgate.gateway.table.view import CompilerView
from unit.gateway.plugins.people import consumer, group


def test_a_revision_brings_and_takes_consumers_and_groups() -> None:
    compiler, image = new_compiler(), TableImage([host("a.example")])
    jack = consumer("jack", ("key-auth", {"key": "sesame"}), group="gold")
    image.put(jack)
    image.put(group("gold"))
    assert load(compiler, image, (1, 1)) == 3
    found = compiler.consumer_directory.find("key-auth", b"sesame")
    assert found is not None
    assert compiler.consumer_directory.group("gold") is not None
    assert [each.name for each in CompilerView(compiler).entries(Consumer)] == ["jack"]

    image.put(consumer("jill", ("key-auth", {"key": "open"})))
    assert load(compiler, image, (1, 2)) == 1
    assert compiler.consumer_directory.find("key-auth", b"sesame") is found, "one that did not change is not read again"

    image.discard("consumers", jack.key)
    image.discard("consumer_groups", "c1/default/gold")
    load(compiler, image, (1, 3))
    assert compiler.consumer_directory.find("key-auth", b"sesame") is None
    assert compiler.consumer_directory.group("gold") is None
    assert compiler.consumer_directory.count == 1


def test_an_update_that_is_dropped_changes_nobody() -> None:
    compiler, image = new_compiler(), TableImage()
    image.put(consumer("jack", ("key-auth", {"key": "sesame"})))
    load(compiler, image, (1, 1))
    other = TableImage([consumer("jack", ("key-auth", {"key": "open"}))])
    [chunk] = other.chunks()
    name = ChunkName(kind=chunk.kind, prefix=chunk.prefix, digest=chunk.digest)
    update = compiler.stage(Version(1, 2), [name])
    list(update.add(name, chunk.content))
    assert compiler.consumer_directory.find("key-auth", b"open") is None
    assert compiler.consumer_directory.find("key-auth", b"sesame") is not None
