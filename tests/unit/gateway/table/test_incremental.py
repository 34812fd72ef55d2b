"""From one revision to the next: only what changed is compiled, and the result is that of compiling everything."""

import gc
import weakref

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nacl.public import PrivateKey

from fakes.gateway.requests import PLAIN
from fakes.gateway.table import (
    FakePools,
    certificate,
    compiled,
    endpoint,
    host,
    load,
    new_compiler,
    publish,
    route,
    upstream,
)
from fakes.translator.sealing import seal
from headgate.common.errors import DecodeError
from headgate.common.sealing import Unsealer
from headgate.common.snapshot import ChunkName, Version
from headgate.common.table import PluginUse, TableEntry
from headgate.common.table_image import TableImage
from headgate.gateway.balancing.endpoints import EndpointDirectory
from headgate.gateway.model.connection import ConnectionSpec
from headgate.gateway.plugins.interface import PluginServices
from headgate.gateway.plugins.runtime.host import PluginHost
from headgate.gateway.table.compiler import TableCompiler
from unit.gateway.plugins.running import unsealed


def entry(kind: str, number: int, variant: int) -> TableEntry:
    if kind == "upstream":
        return upstream(f"up{number}", *(endpoint(n) for n in range(1, variant + 1)))
    return host(f"h{number}.com", route("/", "prefix", f"up{variant}"))


def behaviour(compiler: TableCompiler, hosts: int) -> list[object]:
    """Where each host's requests go: all that a client can tell tables apart by."""
    assert compiler.table is not None
    result: list[object] = []
    for number in range(hosts):
        found = compiler.table.match(f"h{number}.com".encode(), b"/x", PLAIN)
        result.append(found and (found.name, found.unavailable, {str(found.choose((), PLAIN)) for _ in range(5)}))
    return result


CHANGES = st.lists(
    st.tuples(st.sampled_from(["upstream", "host"]), st.integers(0, 9), st.integers(0, 4), st.booleans()), max_size=12
)


@settings(max_examples=60)
@given(st.lists(CHANGES, min_size=1, max_size=4))
def test_incremental_compilation_equals_full_compilation(revisions: list[list[tuple[str, int, int, bool]]]) -> None:
    image, compiler = TableImage(), new_compiler()
    for revision, changes in enumerate(revisions, 1):
        for kind, number, variant, is_removed in changes:
            if is_removed:
                image.discard("upstreams" if kind == "upstream" else "hosts", f"up{number}")
                image.discard("hosts", f"h{number}.com")
            else:
                image.put(entry(kind, number, variant))
        load(compiler, image, (1, revision))
    fresh = new_compiler()
    load(fresh, image)
    assert behaviour(compiler, 10) == behaviour(fresh, 10)


def test_incremental_compilation_survives_chunks_that_split_and_merge() -> None:
    image = TableImage(entry(kind, number, 1) for kind in ("upstream", "host") for number in range(40))
    compiler = new_compiler()
    load(compiler, image, (1, 1))
    for number in range(40, 200):
        image.put(entry("host", number, 2))
    load(compiler, image, (1, 2))
    for number in range(20, 190):
        image.discard("hosts", f"h{number}.com")
    load(compiler, image, (1, 3))
    fresh = new_compiler()
    load(fresh, image)
    assert behaviour(compiler, 200) == behaviour(fresh, 200)


def test_an_endpoint_change_compiles_one_upstream_and_no_host() -> None:
    image = TableImage([entry("host", 1, 1), entry("host", 2, 2), entry("upstream", 1, 1), entry("upstream", 2, 1)])
    compiler = new_compiler()
    load(compiler, image, (1, 1))
    before = dict(compiler.upstreams.compiled())
    assert compiler.table is not None
    hosts = compiler.table.hosts
    image.put(entry("upstream", 2, 3))
    assert load(compiler, image, (1, 2)) == 1
    after = dict(compiler.upstreams.compiled())
    assert after["up1"] is before["up1"]
    assert after["up2"].balancer is not before["up2"].balancer
    assert compiler.table.hosts is hosts


def test_the_table_before_goes_on_finding_what_it_had() -> None:
    image, compiler = TableImage(entry("host", number, 1) for number in range(3000)), new_compiler()
    load(compiler, image, (1, 1))
    before = compiler.table
    assert before is not None
    image.put(host("h1.com", route("/new")))
    image.discard("hosts", "h2.com")
    image.put(entry("host", 3000, 1))
    load(compiler, image, (1, 2))
    after = compiler.table
    assert after is not None
    for table, expected in ((before, [True, True, False]), (after, [False, False, True])):
        asked = [(b"h1.com", b"/old"), (b"h2.com", b"/"), (b"h3000.com", b"/")]
        assert [table.match(*request, PLAIN) is not None for request in asked] == expected
    assert (len(before.hosts), len(after.hosts)) == (3000, 3000)


def test_an_update_that_is_dropped_leaves_the_table_as_it_was() -> None:
    image, compiler = TableImage([entry("host", 1, 1)]), new_compiler()
    load(compiler, image, (1, 1))
    image.put(host("h1.com", route("/new")))
    image.put(entry("host", 2, 1))
    manifest, chunks = publish(image, (1, 2))
    update = compiler.stage(manifest.version, manifest.chunks)
    for name in update.needed:
        list(update.add(name, {chunk.digest: chunk.content for chunk in chunks}[name.digest]))
    list(update.prepare())
    assert compiler.table is not None
    assert [compiler.table.match(host_name, b"/x", PLAIN) is not None for host_name in (b"h1.com", b"h2.com")] == [
        True,
        False,
    ]


def test_of_two_any_depth_hosts_the_one_that_stays_takes_requests() -> None:
    image, compiler = TableImage([host("**.one.com"), host("**.two.com")]), new_compiler()
    load(compiler, image, (1, 1))
    image.discard("hosts", "**.one.com")
    image.put(host("**.two.com", route("/new")))
    load(compiler, image, (1, 2))
    assert compiler.table is not None
    asked = [(b"a.b.one.com", b"/"), (b"a.b.two.com", b"/new"), (b"a.b.two.com", b"/old")]
    assert [compiler.table.match(*request, PLAIN) is not None for request in asked] == [False, True, False]


def test_a_request_that_holds_a_route_sees_new_endpoints() -> None:
    image = TableImage([entry("host", 1, 1), entry("upstream", 1, 1)])
    compiler = new_compiler()
    load(compiler, image, (1, 1))
    assert compiler.table is not None
    held = compiler.table.match(b"h1.com", b"/", PLAIN)
    assert held is not None
    image.put(upstream("up1", endpoint(9)))
    load(compiler, image, (1, 2))
    assert str(held.choose((), PLAIN)) == "10.0.0.9:80"


def test_a_changed_host_keeps_the_compiled_hosts_beside_it() -> None:
    image = TableImage([entry("host", 1, 1), entry("host", 2, 1)])
    compiler = new_compiler()
    load(compiler, image, (1, 1))
    before = dict(compiler.hosts.compiled())
    image.put(host("h1.com", route("/new")))
    load(compiler, image, (1, 2))
    after = dict(compiler.hosts.compiled())
    assert after["h2.com"] is before["h2.com"]
    assert after["h1.com"] is not before["h1.com"]


def test_unchanged_routes_of_a_changed_host_keep_their_compiled_object() -> None:
    image = TableImage([host("h1.com", route("/a"), route("/b"), route("/c"))])
    compiler = new_compiler()
    load(compiler, image, (1, 1))
    before = {rule.value: item for rule, item in dict(compiler.hosts.compiled())["h1.com"].routes}
    image.put(host("h1.com", route("/new"), route("/c"), route("/b", "exact"), route("/a")))
    load(compiler, image, (1, 2))
    after = {rule.value: item for rule, item in dict(compiler.hosts.compiled())["h1.com"].routes}
    assert list(after) == [b"/new", b"/c", b"/b", b"/a"]
    assert after[b"/a"] is before[b"/a"]
    assert after[b"/c"] is before[b"/c"]
    assert after[b"/b"] is not before[b"/b"]


def test_a_host_with_many_routes_is_compiled_in_many_steps() -> None:
    image = TableImage([host("h1.com", *(route(f"/{number}") for number in range(1000)))])
    compiler = new_compiler()
    manifest, chunks = publish(image, (1, 1))
    update = compiler.stage(manifest.version, manifest.chunks)
    assert len(list(update.add(update.needed[0], chunks[0].content))) >= 10
    assert update.commit().match(b"h1.com", b"/999/x", PLAIN) is not None


def test_routes_with_plugins_are_compiled_in_more_steps_than_plain_ones() -> None:
    def steps(**more: object) -> int:
        routes = (route(f"/{number}").model_copy(update=more) for number in range(100))
        compiler = new_compiler()
        manifest, chunks = publish(TableImage([host("h1.com", *routes)]), (1, 1))
        update = compiler.stage(manifest.version, manifest.chunks)
        return len(list(update.add(update.needed[0], chunks[0].content)))

    use = PluginUse(name="uri-blocker", config={"block_rules": ["[a-z]{200}"] * 10})
    assert steps() <= 10
    assert steps(plugins=(use,)) >= 20


def test_one_route_with_large_plugins_is_compiled_in_a_step_for_each_of_them() -> None:
    def steps(*uses: PluginUse) -> int:
        plugins = PluginHost(unsealed, PluginServices().send_to)
        compiler = TableCompiler(EndpointDirectory(FakePools()), Unsealer([]).open, make_hooks=plugins.make_plugins)
        image = TableImage([host("h1.com", route("/a").model_copy(update={"plugins": uses}))])
        manifest, chunks = publish(image, (1, 1))
        update = compiler.stage(manifest.version, manifest.chunks)
        found = len(list(update.add(update.needed[0], chunks[0].content)))
        assert update.commit().match(b"h1.com", b"/a", PLAIN) is not None
        return found

    small = [PluginUse(name="uri-blocker", config={"block_rules": [f"{n}"]}) for n in range(10)]
    large = [PluginUse(name="uri-blocker", config={"block_rules": [f"{n}" * 500] * 4}) for n in range(10)]
    one_for_each_route = PluginUse(name="limit-count", config={"count": 1, "time_window": 1})
    assert steps(*large) - steps(*small) >= 9
    assert steps(*large, one_for_each_route) - steps(*small, one_for_each_route) >= 9


def test_a_chunk_of_many_entries_is_compiled_in_some_steps_and_its_unchanged_entries_in_none() -> None:
    image = TableImage(upstream(f"up{number}", endpoint(number)) for number in range(60))
    compiler = new_compiler()
    (name,), (chunk,) = publish(image, (1, 1))[0].chunks, publish(image, (1, 1))[1]
    update = compiler.stage(Version(1, 1), [name])
    assert 3 <= len(list(update.add(name, chunk.content))) <= 12
    update.commit()
    image.put(upstream("up1", endpoint(61)))
    (name,), (chunk,) = publish(image, (1, 2))[0].chunks, publish(image, (1, 2))[1]
    assert list(compiler.stage(Version(1, 2), [name]).add(name, chunk.content)) == []


@pytest.mark.parametrize(
    "content",
    [
        b"not json",
        b'[{"host":"a.com","routes":[{"name":"r"}]}]',
        b"{}",
        b"[1]",
        b'[{"host":"a.com"}]',
        b'[{"host":"a.com","routes":[],"more":1}]',
        b"[{]",
    ],
)
def test_chunks_that_break_the_contract_are_refused(content: bytes) -> None:
    update = new_compiler().stage(Version(1, 1), [ChunkName(kind="hosts", prefix="", digest="d")])
    with pytest.raises(DecodeError):
        list(update.add(update.needed[0], content))


def test_balancing_goes_on_over_a_swap() -> None:
    image = TableImage([entry("host", 1, 1), entry("upstream", 1, 4)])
    compiler = new_compiler()
    load(compiler, image, (1, 1))
    assert compiler.table is not None
    held = compiler.table.match(b"h1.com", b"/", PLAIN)
    assert held is not None
    before = [str(held.choose((), PLAIN)) for _ in range(2)]
    image.put(upstream("up1", *(endpoint(n) for n in range(1, 6))))
    load(compiler, image, (1, 2))
    after = [str(held.choose((), PLAIN)) for _ in range(3)]
    assert before + after == [f"10.0.0.{n}:80" for n in range(1, 6)]


def test_nothing_is_served_before_the_commit() -> None:
    image = TableImage([entry("host", 1, 1), entry("upstream", 1, 1)])
    compiler = new_compiler()
    load(compiler, image, (1, 1))
    before = behaviour(compiler, 1)
    image.put(upstream("up1"))
    image.discard("hosts", "h1.com")
    manifest, chunks = publish(image, (1, 2))
    update = compiler.stage(manifest.version, manifest.chunks)
    for name in update.needed:
        list(update.add(name, next(chunk.content for chunk in chunks if chunk.digest == name.digest)))
    assert behaviour(compiler, 1) == before
    assert compiler.table is not None
    assert compiler.table.version == Version(1, 1)


def test_upstreams_are_placed_before_the_commit_of_the_first_table_alone() -> None:
    compiler = new_compiler()
    names = [f"up{number}" for number in range(2500)]
    image = TableImage(upstream(name, endpoint(1)) for name in names)
    manifest, chunks = publish(image, (1, 1))
    update = compiler.stage(manifest.version, manifest.chunks)
    for chunk in chunks:
        list(update.add(chunk.name, chunk.content))
    placed = [compiler.endpoint_count for _ in update.prepare()]
    assert placed == [0, 1000, 2000] or placed == [1000, 2000]
    assert compiler.endpoint_count == 2500
    update.commit()
    assert compiler.endpoint_count == 2500
    again = TableImage(upstream(name, endpoint(1), endpoint(2)) for name in names)
    load(compiler, again, (1, 2), before_commit=lambda: placed.append(compiler.endpoint_count))
    assert placed[-1] == 2500
    assert compiler.endpoint_count == 5000


def test_an_incomplete_update_changes_nothing() -> None:
    image = TableImage([entry("host", 1, 1), entry("upstream", 1, 1)])
    compiler = new_compiler()
    load(compiler, image, (1, 1))
    before = behaviour(compiler, 2)
    image.put(upstream("up1"))
    image.put(entry("host", 0, 1))
    manifest, chunks = publish(image, (1, 2))
    update = compiler.stage(manifest.version, manifest.chunks)
    name = next(name for name in update.needed if name.kind == "upstreams")
    list(update.add(name, next(chunk.content for chunk in chunks if chunk.digest == name.digest)))
    with pytest.raises(LookupError):
        update.commit()
    assert behaviour(compiler, 2) == before


def test_a_chunk_with_a_bad_entry_is_refused() -> None:
    image = TableImage([entry("host", 1, 1)])
    compiler = new_compiler()
    manifest, chunks = publish(image, (1, 1))
    update = compiler.stage(manifest.version, manifest.chunks)
    with pytest.raises(DecodeError):
        list(update.add(update.needed[0], chunks[0].content.replace(b'"prefix"', b'"glob"')))


def test_the_old_table_and_its_endpoints_are_freed_after_a_swap() -> None:
    pools = FakePools()
    image = TableImage([entry("host", 1, 1), entry("upstream", 1, 3)])
    compiler = new_compiler(pools)
    load(compiler, image, (1, 1))
    assert compiler.table is not None
    old = weakref.ref(compiler.table)
    old_route = weakref.ref(compiler.table.match(b"h1.com", b"/", PLAIN))
    gc.disable()
    try:
        image.put(host("h1.com", route("/new", "prefix", "up2")))
        image.discard("upstreams", "up1")
        load(compiler, image, (1, 2))
        assert old() is None
        assert old_route() is None
    finally:
        gc.enable()


def test_pools_of_endpoints_that_are_gone_are_named_once() -> None:
    image = TableImage([entry("host", 1, 1), entry("upstream", 1, 3)])
    compiler = new_compiler()
    load(compiler, image, (1, 1))
    assert compiler.table is not None
    held = compiler.table.match(b"h1.com", b"/", PLAIN)
    assert held is not None
    for _ in range(2):
        held.choose((), PLAIN)
    image.put(upstream("up1", endpoint(2)))
    load(compiler, image, (1, 2))
    assert compiler.directory.take_orphans() == [("10.0.0.1", 80, ConnectionSpec())]
    assert compiler.directory.take_orphans() == []


def test_a_pool_whose_endpoint_came_back_is_not_named() -> None:
    directory = EndpointDirectory(FakePools())
    first = directory.slot("10.0.0.1", 80, ConnectionSpec())
    pool = first.open_pool()
    del first
    second = directory.slot("10.0.0.1", 80, ConnectionSpec())
    assert directory.take_orphans() == []
    assert second.open_pool() is pool
    del second
    assert len(directory.take_orphans()) == 1


def test_certificates_are_opened_and_kept() -> None:
    key = PrivateKey.generate()
    compiler = new_compiler(unsealer=Unsealer([key]))
    image = TableImage([certificate("c1/ns/a", seal(b"secret key", [key.public_key]), "a.com")])
    load(compiler, image, (1, 1))
    opened = dict(compiler.certificates.compiled())["c1/ns/a"]
    assert opened.private_key is not None
    assert opened.private_key.reveal() == b"secret key"
    image.put(certificate("c1/ns/b", seal(b"other", [key.public_key]), "b.com"))
    load(compiler, image, (1, 2))
    assert dict(compiler.certificates.compiled())["c1/ns/a"] is opened


def test_a_certificate_that_cannot_be_opened_leaves_its_last_good_version() -> None:
    ours, theirs = PrivateKey.generate(), PrivateKey.generate()
    compiler = new_compiler(unsealer=Unsealer([ours]))
    image = TableImage([certificate("a", seal(b"good", [ours.public_key]), "a.com", fingerprint="old")])
    load(compiler, image, (1, 1))
    image.put(certificate("a", seal(b"bad", [theirs.public_key]), "a.com", fingerprint="new"))
    image.put(certificate("b", seal(b"fine", [ours.public_key]), "b.com"))
    load(compiler, image, (1, 2))
    opened = dict(compiler.certificates.compiled())
    assert opened["a"].fingerprint == "old"
    assert "cannot be opened" in opened["a"].problem
    assert opened["b"].problem == ""


def test_a_certificate_that_was_never_good_is_left_out() -> None:
    sealed = seal(b"bad", [PrivateKey.generate().public_key])
    opened = dict(compiled([certificate("a", sealed, "a.com")]).certificates.compiled())["a"]
    assert opened.private_key is None
    assert "this gateway holds no key" in opened.problem


def test_an_any_depth_host_of_a_later_revision_takes_requests_until_it_goes() -> None:
    image = TableImage([entry("host", 1, 1), entry("upstream", 1, 1)])
    compiler = new_compiler()
    for revision in (1, 2):
        load(compiler, image, (1, revision))
        assert compiler.table is not None
        assert compiler.table.match(b"a.b.deep.com", b"/", PLAIN) is None
        image.put(host("**.deep.com", route("/", "prefix", "up1")))
        load(compiler, image, (2, revision))
        image.put(entry("upstream", 1, 2))
        load(compiler, image, (3, revision))
        assert compiler.table.match(b"a.b.deep.com", b"/", PLAIN) is not None
        image.discard("hosts", "**.deep.com")
