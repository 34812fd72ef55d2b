"""Every kind of entries is compiled, and can be asked for."""

from fakes.gateway.table import ORIGIN, certificate, endpoint, host, load, new_compiler, upstream
from headgate.common.sealing import ClusterValue
from headgate.common.table import (
    ENTRIES,
    Backend,
    BackendGroup,
    Challenge,
    Consumer,
    ConsumerGroup,
    Listener,
    StreamRoute,
    TableEntry,
    Weighted,
    WeightedUpstream,
    entry_key,
)
from headgate.common.table_image import TableImage
from headgate.gateway.table.view import CompilerView, EntryView

TABLE: tuple[TableEntry, ...] = (
    host("foo.com"),
    upstream("up", endpoint(1)),
    certificate("c1/ns/a", ClusterValue(boxes={"r": "sealed"}), "foo.com"),
    StreamRoute(
        key="c1/ns/dns", port=53, protocol="udp", backends=(WeightedUpstream(upstream="up"),), provenance=ORIGIN
    ),
    Consumer(key="c1/ns/jack", name="ns_jack", provenance=ORIGIN),
    ConsumerGroup(key="c1/ns/gold", name="gold", provenance=ORIGIN),
    Listener(key="c1/ns/web", port=8000, protocol="http", provenance=ORIGIN),
    BackendGroup(key="c1/ns/all", weighted=Weighted(backends=(Backend(upstream="up"),)), provenance=ORIGIN),
    Challenge(key="foo.com/token", host="foo.com", token="token", answer="token.key"),
)


def test_every_kind_has_a_set_of_chunks_for_its_model() -> None:
    found = {kind: chunks.entry_type for kind, chunks in new_compiler().chunk_sets.items()}
    assert found == {kind: row.model for kind, row in ENTRIES.items()}


def test_entries_of_every_kind_are_found_by_their_keys() -> None:
    compiler = new_compiler()
    load(compiler, TableImage(TABLE))
    assert {type(entry) for entry in TABLE} == {row.model for row in ENTRIES.values()}
    for view in (EntryView(TABLE), CompilerView(compiler)):
        for entry in TABLE:
            assert view.entry(type(entry), entry_key(entry)) == entry
            assert view.entry(type(entry), "other") is None
            assert list(view.entries(type(entry))) == [entry]


def test_all_chunks_are_stored() -> None:
    compiler, image = new_compiler(), TableImage(TABLE)
    load(compiler, image)
    assert {name.digest for name, _ in compiler.stored_chunks()} == {chunk.digest for chunk in image.chunks()}
