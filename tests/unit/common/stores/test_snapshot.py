"""Chunks, manifests and the image of a table."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.common import snapshot, trie
from headgate.common.deltas import LogPlace
from headgate.common.errors import DecodeError
from headgate.common.snapshot import (
    MAX_NAMES,
    TABLE_KIND,
    THIS_REVISION,
    ChangedEntries,
    ChunkName,
    Manifest,
    Pin,
    Rollout,
    RolloutMove,
    Version,
    compress,
    decode_chunk,
    decompress,
    digest_of,
    open_chunk,
)
from headgate.common.stores.chunk_entries import changed_entries, entry_contents
from headgate.common.stores.collecting import named_by
from headgate.common.table import Endpoint, Provenance, Rank, TableEntry, Upstream, VirtualHost
from headgate.common.table_image import TableImage, encode_entry

FROM = Provenance(cluster="c", kind="Service", namespace="d", name="n")
NOW = datetime(2026, 3, 1, tzinfo=UTC)


def host(name: str) -> VirtualHost:
    return VirtualHost(host=name, routes=())


def upstream(key: str, endpoints: int = 0) -> Upstream:
    members = tuple(Endpoint(address=f"10.0.0.{number}", port=80) for number in range(endpoints))
    return Upstream(key=key, endpoints=members, provenance=FROM)


@pytest.fixture
def small_leaves() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trie, "LEAF_ENTRIES", 4)
        patch.setattr(trie, "CHUNK_LIMIT", 1200)
        yield


KEYS = st.integers(0, 25).map(lambda number: f"k{number}")
STEPS = st.lists(st.tuples(st.sampled_from(["put", "discard"]), KEYS, st.integers(0, 12)), max_size=120)


@pytest.mark.usefixtures("small_leaves")
@settings(max_examples=150)
@given(STEPS)
def test_any_history_gives_the_chunks_of_a_fresh_build(steps: list[tuple[str, str, int]]) -> None:
    image, model = TableImage(), dict[str, TableEntry]()
    for action, key, size in steps:
        if action == "put":
            entry = upstream(key, size)
            assert image.put(entry) == (model.get(key) != entry)
            model[key] = entry
        else:
            assert image.discard("upstreams", key) == (model.pop(key, None) is not None)
    assert image.chunks() == TableImage(model.values()).chunks()
    assert {e for c in image.chunks() for e in decode_chunk(c.kind, c.content)} == set(model.values())


def test_one_change_changes_one_chunk() -> None:
    image = TableImage(upstream(f"k{number}", 2) for number in range(1000))
    before = {chunk.digest for chunk in image.chunks()}
    image.put(upstream("k500", 3))
    after = {chunk.digest for chunk in image.chunks()}
    assert len(after - before) == len(before - after) == 1
    assert len(before) > 10


def test_kinds_are_in_chunks_of_their_own() -> None:
    image = TableImage([host("a.com"), upstream("a")])
    assert [(chunk.kind, chunk.prefix) for chunk in image.chunks()] == [("hosts", ""), ("upstreams", "")]


def test_an_empty_table_has_no_chunks() -> None:
    image = TableImage([host("a.com")])
    image.discard("hosts", "a.com")
    assert image.chunks() == []


def test_a_chunk_is_named_by_its_content() -> None:
    [chunk] = TableImage([host("b.com"), host("a.com")]).chunks()
    assert chunk.digest == digest_of(chunk.content)
    assert [entry["host"] for entry in json.loads(chunk.content)] == ["a.com", "b.com"]
    name = ChunkName(kind=chunk.kind, prefix=chunk.prefix, digest=chunk.digest)
    assert open_chunk(name, compress(chunk.content)) == chunk.content


def test_a_chunk_with_other_content_is_refused() -> None:
    name = ChunkName(kind="hosts", prefix="", digest="0" * 64)
    with pytest.raises(DecodeError, match="other content"):
        open_chunk(name, compress(b"[]"))


def test_entries_that_break_the_vocabulary_are_refused() -> None:
    with pytest.raises(DecodeError, match="hosts"):
        decode_chunk("hosts", b'[{"host": 1}]')


def test_defaults_are_left_out_of_an_encoded_entry() -> None:
    assert b"endpoints" not in encode_entry(upstream("k"))


@given(st.binary(max_size=500))
def test_compression_is_reversible(content: bytes) -> None:
    assert decompress(compress(content), 500) == content


def test_content_above_the_limit_is_refused_before_it_fills_the_memory() -> None:
    with pytest.raises(DecodeError, match="at most 1000"):
        decompress(compress(b"x" * 1_000_000), 1000)


@pytest.mark.parametrize("data", [b"", b"junk", compress(b"x" * 100)[:-4], b"\x28\xb5\x2f\xfd"])
def test_damaged_content_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decompress(data, 1000)


def manifest(**changes: object) -> Manifest:
    fields: dict[str, object] = {"table": "default", "version": (1, 2), "created_at": NOW, "chunks": ()}
    return Manifest.model_validate(fields | changes)


def test_a_manifest_survives_encoding() -> None:
    written = manifest(inputs={"c1": 9}, parent=(1, 1), chunks=({"kind": "hosts", "prefix": "01", "digest": "d"},))
    assert Manifest.decode(written.encode()) == written
    assert written.encode() == manifest(**written.model_dump()).encode()


def test_a_manifest_of_a_later_schema_is_refused_with_advice() -> None:
    later = manifest(schema_version=snapshot.SCHEMA + 1)
    with pytest.raises(DecodeError, match="upgrade the gateways"):
        Manifest.decode(later.encode())


def test_a_manifest_of_endless_depth_is_refused() -> None:
    with pytest.raises(DecodeError, match="a manifest cannot be read"):
        Manifest.decode(compress(b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"))


@pytest.mark.parametrize(
    "content", [b"{", b"{}", b"[1]", b"[" * 100_000 + b"]" * 100_000], ids=["cut", "object", "number", "deep"]
)
def test_a_chunk_that_is_no_list_of_entries_is_refused(content: bytes) -> None:
    with pytest.raises(DecodeError, match="a chunk cannot be read"):
        entry_contents(content)


def test_what_a_later_schema_added_does_not_hide_the_advice() -> None:
    content = json.dumps({"schema_version": snapshot.SCHEMA + 1, "shards": [1]}).encode()
    with pytest.raises(DecodeError, match="upgrade the gateways"):
        Manifest.decode(compress(content))


@pytest.mark.usefixtures("small_leaves")
@settings(max_examples=100)
@given(st.dictionaries(KEYS, st.integers(0, 3)), st.dictionaries(KEYS, st.integers(0, 3)))
def test_changed_entries_are_those_that_a_comparison_of_all_finds(
    before: dict[str, int], after: dict[str, int]
) -> None:
    one, other = (TableImage(upstream(*item) for item in each.items()).chunks() for each in (before, after))
    changed = changed_entries(one, other)
    expected = tuple(sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key)))
    assert changed == ({"upstreams": ChangedEntries(count=len(expected), names=expected)} if expected else {})


def test_of_many_changed_entries_the_first_hundred_are_named() -> None:
    changed = changed_entries([], TableImage(host(f"h{number:03}") for number in range(150)).chunks())["hosts"]
    assert (changed.count, len(changed.names), changed.names[:2]) == (150, MAX_NAMES, ("h000", "h001"))


def test_a_pinned_manifest_keeps_the_chunks_of_the_live_table() -> None:
    served, live = (ChunkName(kind="hosts", prefix="", digest=digest) for digest in ("served", "live"))
    pinned = manifest().model_copy(
        update={"chunks": (served,), "pin": Pin(version=Version(1, 1), since=NOW, live=(live,))}
    )
    assert pinned.digests == set(named_by(pinned.encode()).chunks) == {"served", "live"}
    assert (pinned.live, manifest().model_copy(update={"chunks": (served,)}).live) == ((live,), (served,))
    assert Manifest.decode(pinned.encode()) == pinned


def test_a_pin_is_the_same_however_far_the_live_table_got() -> None:
    pin = Pin(version=Version(1, 1), since=NOW, by="ann")
    went_on = pin.model_copy(update={"live": (ChunkName(kind="hosts", prefix="", digest="d"),)})
    assert pin.is_same(went_on)
    assert not pin.is_same(pin.model_copy(update={"is_frozen": True}))
    assert not pin.is_same(None)


def rolled(**changes: Any) -> Manifest:
    """A manifest in which `g1` serves the next table."""
    served, following, live = (ChunkName(kind="hosts", prefix="", digest=name) for name in ("served", "next", "live"))
    values: dict[str, Any] = {"base": (1, 1), "target": (1, 2), "begun": (1, 2), "shares": (10.0,), "since": NOW}
    rollout = Rollout(replicas=("g1",), next=(following,), live=(live,), **values | changes)
    return manifest().model_copy(update={"chunks": (served,), "rollout": rollout})


def test_names_are_not_read_of_what_is_damaged_or_of_a_later_release() -> None:
    with pytest.raises(DecodeError, match="cannot be read"):
        named_by(compress(b'{"chunks": 7}'))
    with pytest.raises(DecodeError, match="reads up to"):
        named_by(compress(b'{"chunks": [], "schema_version": 99999}'))


def test_a_manifest_of_a_rollout_names_three_tables_and_keeps_all_of_them() -> None:
    written = rolled()
    assert written.digests == set(named_by(written.encode()).chunks) == {"served", "next", "live"}
    assert [name.digest for name in written.live] == ["live"]
    assert written.older == {Version(1, 1)}
    assert Manifest.decode(written.encode()) == written


def test_a_replica_serves_what_the_rollout_has_for_it() -> None:
    written = rolled()
    assert [[name.digest for name in written.served_by(replica)] for replica in ("g1", "g2")] == [["next"], ["served"]]
    assert [written.routes_of(replica) for replica in ("g1", "g2")] == [Version(1, 2), Version(1, 1)]
    assert manifest().routes_of("g1") == Version(1, 2)


def test_a_manifest_of_the_schema_before_rollouts_is_read() -> None:
    earlier = {"schema_version": 3, "table": "default", "version": [1, 2], "created_at": NOW.isoformat(), "chunks": []}
    found = Manifest.decode(compress(json.dumps(earlier).encode()))
    assert (found.rollout, found.schema_version, found.version) == (None, 3, Version(1, 2))


def test_a_manifest_of_the_schema_before_the_last_message_read_is_read() -> None:
    written = json.loads(manifest(log="1").model_dump_json(exclude={"last_read"})) | {"schema_version": 4}
    found = Manifest.decode(compress(json.dumps(written).encode()))
    assert (found.last_read, found.log, found.schema_version) == (None, "1", 4)


def test_a_chunk_of_schema_6_is_read() -> None:
    source = {"cluster": "a", "kind": "Ingress", "namespace": "d", "name": "n"}
    route = {"name": "n", "path": {"type": "prefix", "value": "/"}, "priority": 7, "provenance": source}
    [found] = decode_chunk("hosts", json.dumps([{"host": "a.com", "routes": [route], "falls_through": True}]).encode())
    assert isinstance(found, VirtualHost)
    assert (found.routes[0].rank, found.unmatched) == (Rank(priority=7), "next-host")


def test_the_last_message_read_comes_back_as_it_was() -> None:
    written = manifest(last_read=LogPlace("2026-03-01T12:00:00.123456789Z", 57, 1_772_366_400_123_456))
    assert Manifest.decode(written.encode()) == written


def test_a_rollout_is_the_same_however_far_its_tables_got() -> None:
    rollout = rolled().rollout
    assert rollout is not None
    assert rollout.is_same(rollout.model_copy(update={"next": (), "live": (), "waiting": {}}))
    assert not rollout.is_same(rollout.model_copy(update={"step": 1}))


def test_what_a_draft_leaves_open_is_the_revision_that_it_is_committed_as() -> None:
    begun = rolled(target=THIS_REVISION, begun=THIS_REVISION).rollout
    later = rolled(begun=THIS_REVISION).rollout
    assert begun is not None
    assert later is not None
    placed, moved = begun.placed(Version(1, 7)), later.placed(Version(1, 7))
    assert (placed.target, placed.begun) == (Version(1, 7), Version(1, 7))
    assert (moved.target, moved.begun) == (Version(1, 2), Version(1, 7))


@pytest.mark.parametrize(
    ("kind", "operation", "is_routine"),
    [
        ("EndpointSlice", "apply", True),
        (TABLE_KIND, RolloutMove.STEPPED, True),
        (TABLE_KIND, RolloutMove.WENT_BACK, False),
        (TABLE_KIND, RolloutMove.DONE, False),
        ("Ingress", "apply", False),
    ],
)
def test_steps_and_endpoints_are_routine_and_nothing_else_is(kind: str, operation: str, is_routine: bool) -> None:
    cause = {"cluster": "", "kind": kind, "namespace": "", "name": "n", "operation": operation, "sequence": 0}
    assert manifest(causes=(cause,), cause_count=1).is_routine is is_routine


@given(st.dictionaries(KEYS, st.integers(0, 3)), KEYS)
def test_a_copy_of_an_image_changes_by_itself(entries: dict[str, int], key: str) -> None:
    image = TableImage(upstream(*item) for item in entries.items())
    before, copy = image.chunks(), image.copy()
    assert copy.chunks() == before
    copy.put(upstream(key, 9))
    assert image.chunks() == before
    assert sorted(copy.keys("upstreams")) == sorted({*entries, key})
    assert copy.get("upstreams", key) == encode_entry(upstream(key, 9))


def test_a_damaged_manifest_is_refused() -> None:
    with pytest.raises(DecodeError, match="manifest"):
        Manifest.decode(compress(b'{"table": "default"}'))


def test_versions_compare_by_epoch_first() -> None:
    assert Version(2, 1) > Version(1, 99) > Version(1, 9)
    assert str(Version(2, 1)) == "2.1"
