"""Gateways that hold one shard of a table: each holds what it needs of it, and together they serve what one would."""

from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.gateway.requests import PLAIN
from fakes.gateway.table import (
    ORIGIN,
    FakePools,
    certificate,
    endpoint,
    host,
    listener,
    load,
    new_compiler,
    publish,
    route,
    upstream,
)
from headgate.common import trie
from headgate.common.sealing import ClusterValue, Unsealer
from headgate.common.table import (
    ENTRIES,
    OTHER_NAMES,
    Backend,
    BackendGroup,
    Canary,
    Certificate,
    Challenge,
    Consumer,
    EntryKind,
    Mirror,
    PluginUse,
    StreamRoute,
    TableEntry,
    VirtualHost,
    Weighted,
    WeightedUpstream,
    entry_key,
    entry_kind,
)
from headgate.common.table.backend_group import upstreams_within
from headgate.common.table.shards import Shard
from headgate.common.table_image import TableImage
from headgate.gateway.balancing.endpoints import EndpointDirectory
from headgate.gateway.table.compiler import TableCompiler
from headgate.gateway.table.route import CompiledRoute
from headgate.gateway.table.shards.elsewhere import MISDIRECTED
from headgate.gateway.table.shards.part import ShardPart

SHARDS = [Shard(number, 4) for number in range(4)]
NAMES = [f"h{number}.a.example" for number in range(12)]
HOSTS = [*NAMES, "*.a.example", "**.example", "~^h[0-5]", "*"]
UPSTREAMS = [f"up{number}" for number in range(10)]
GROUPS = [f"group{number}" for number in range(5)]
SEALED = ClusterValue(boxes={"r": "sealed"})


def for_shard(shard: Shard, certificate_key: str = "") -> TableCompiler:
    return TableCompiler(EndpointDirectory(FakePools()), Unsealer([]).open, part=ShardPart(shard, certificate_key))


def group(key: str, *backends: Backend) -> BackendGroup:
    return BackendGroup(key=key, weighted=Weighted(backends=backends), provenance=ORIGIN)


def stream(key: str, port: int, to: str, **fields: object) -> StreamRoute:
    split = (WeightedUpstream(upstream=to),)
    return StreamRoute.model_validate({"key": key, "port": port, "backends": split, "provenance": ORIGIN, **fields})


def certified(key: str, *names: str) -> Certificate:
    return certificate(key, SEALED, *names)


BACKENDS = st.one_of(
    st.sampled_from(UPSTREAMS).map(lambda key: Backend(upstream=key)),
    st.sampled_from(GROUPS).map(lambda key: Backend(group=key)),
)


@st.composite
def virtual_hosts(draw: st.DrawFn) -> VirtualHost:
    more = draw(st.sampled_from(["", "canary", "mirror", "plugin", "group plugin"]))
    key = draw(st.sampled_from(UPSTREAMS))
    fields: dict[str, object] = {"backends": (draw(BACKENDS),)}
    if more == "canary":
        fields["canaries"] = (Canary(upstream=key, share=0.5),)
    elif more == "mirror":
        fields["mirrors"] = (Mirror(upstream=key),)
    elif more == "plugin":
        fields["plugins"] = (PluginUse(name="forward-auth", config={"uri": "/", "upstream": key}),)
    elif more == "group plugin":
        config = {"statuses": ["500"], "group": draw(st.sampled_from(GROUPS))}
        fields["plugins"] = (PluginUse.model_validate({"name": "error-page", "config": config}),)
    on = draw(st.sampled_from([(), ("gw/a",), ("gw/b",)]))
    return host(draw(st.sampled_from(HOSTS)), route("/").model_copy(update=fields), on=on)


ENTRY = st.one_of(
    virtual_hosts(),
    virtual_hosts(),
    st.builds(lambda key, number: upstream(key, endpoint(number)), st.sampled_from(UPSTREAMS), st.integers(1, 3)),
    st.builds(
        lambda key, backends: group(key, *backends), st.sampled_from(GROUPS), st.lists(BACKENDS, min_size=1, max_size=2)
    ),
    st.builds(certified, st.sampled_from(["c/1", "c/2", "c/3"]), st.sampled_from([*NAMES, "*.a.example", OTHER_NAMES])),
    st.builds(
        lambda key, keys: listener(key, port=8000, protocol="https", certificates=tuple(keys)),
        st.sampled_from(["gw/a", "gw/b"]),
        st.lists(st.sampled_from(["c/1", "c/2", "c/3"]), unique=True, max_size=2),
    ),
    st.builds(
        lambda name, to, ends: stream("s/1", 9000, to, protocol="tls", server_names=(name,), terminate=ends),
        st.sampled_from([*NAMES, "*.a.example"]),
        st.sampled_from(UPSTREAMS),
        st.booleans(),
    ),
    st.builds(
        lambda key: Consumer(
            key="c/jack",
            name="jack",
            plugins=(PluginUse(name="forward-auth", config={"uri": "/", "upstream": key}),),
            provenance=ORIGIN,
        ),
        st.sampled_from(UPSTREAMS),
    ),
    st.just(Challenge(key="a.example/token", host="a.example", token="token", answer="token.key")),
)
STEPS = st.lists(st.lists(st.tuples(ENTRY, st.booleans()), min_size=1, max_size=12), min_size=1, max_size=4)
Table = dict[tuple[EntryKind, str], TableEntry]


def _upstreams_of(entry: TableEntry, table: Table) -> Iterator[str]:
    """Keys of all upstreams that an entry leads to, by its fields and not by its text."""
    if isinstance(entry, StreamRoute):
        yield from (each.upstream for each in entry.backends)
    uses: Iterable[PluginUse] = entry.plugins if isinstance(entry, Consumer) else ()
    if isinstance(entry, VirtualHost):
        for each in entry.routes:
            yield from (one.upstream or one.group for one in each.backends)
            yield from (one.upstream for one in (*each.canaries, *each.mirrors))
            uses = (*uses, *each.plugins)
    for use in uses:
        yield from (str(use.config[name]) for name in ("upstream", "group") if name in use.config)


def _groups_of(keys: Iterable[str], table: Table) -> set[str]:
    found: set[str] = set()
    waiting = [key for key in keys if ("backend_groups", key) in table]
    while waiting:
        key = waiting.pop()
        entry = table.get(("backend_groups", key))
        if key not in found and isinstance(entry, BackendGroup):
            found.add(key)
            waiting += [backend.group for backend in entry.backends if backend.group]
    return found


def expected(table: Table, shard: Shard) -> Table:
    """What a gateway of a shard is to hold, found by looking at everything."""
    kept = {
        place: entry
        for place, entry in table.items()
        if place[0] not in ("hosts", "upstreams", "backend_groups", "certificates")
        or (isinstance(entry, VirtualHost) and shard.has_host(entry.host))
    }
    led_to = [key for entry in kept.values() for key in _upstreams_of(entry, table)]
    groups = _groups_of(led_to, table)

    def find(key: str) -> BackendGroup | None:
        entry = table.get(("backend_groups", key))
        return entry if isinstance(entry, BackendGroup) else None

    upstreams = {*led_to, *(one for key in groups for one in upstreams_within(key, find))}
    named = {key for entry in kept.values() if isinstance(entry, type(listener("x"))) for key in entry.certificates}
    ended = [entry.server_names[0] for entry in kept.values() if isinstance(entry, StreamRoute) and entry.terminate]
    for (kind, key), entry in table.items():
        if (kind == "backend_groups" and key in groups) or (kind == "upstreams" and key in upstreams):
            kept[kind, key] = entry
        if isinstance(entry, Certificate):
            [name] = entry.server_names
            is_ended = name in ended or any(each.startswith("*") for each in ended)
            if key in named or is_ended or name in ("", "*.a.example") or shard.has_name(name.encode()):
                kept[kind, key] = entry
    return kept


def held(compiler: TableCompiler) -> Table:
    return {(kind, entry_key(entry)): entry for kind in ENTRIES for entry in compiler.chunk_sets[kind].entries()}


def drop_cyclic(table: Table) -> None:
    """Groups that nest themselves keep each other, and are none that a translator makes."""
    for key in GROUPS:
        entry = table.get(("backend_groups", key))
        if isinstance(entry, BackendGroup) and any(one.group and one.group <= key for one in entry.backends):
            del table["backend_groups", key]


@settings(max_examples=150, deadline=None)
@given(STEPS, st.booleans())
def test_each_shard_holds_what_its_hosts_need_through_all_changes(
    steps: list[list[tuple[TableEntry, bool]]], is_for_shards: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trie, "LEAF_ENTRIES", 3)
        table: Table = {}
        shards = {shard: for_shard(shard) for shard in SHARDS}
        for revision, step in enumerate(steps, 1):
            for entry, is_put in step:
                if is_put:
                    table[entry_kind(entry), entry_key(entry)] = entry
                else:
                    table.pop((entry_kind(entry), entry_key(entry)), None)
            drop_cyclic(table)
            image = TableImage(table.values(), is_for_shards=is_for_shards)
            for shard, compiler in shards.items():
                load(compiler, image, (1, revision))
                fresh = for_shard(shard)
                load(fresh, image, (1, revision))
                wanted = expected(table, shard)
                assert held(fresh) == wanted
                kept = held(compiler)
                # Nothing asks to give up a certificate at once: it goes with the next change of its chunk.
                extra = {place for place in kept.keys() - wanted.keys() if place[0] != "certificates"}
                assert extra == set()
                assert {place: kept[place] for place in wanted} == wanted
                assert compiler.part is not None
                assert fresh.part is not None
                assert +compiler.part.counts == +fresh.part.counts


TURNS = 24
REQUESTS = [*NAMES, "new.a.example", "deep.new.a.example", "other.example", "h3", "elsewhere.test"]


@settings(max_examples=100, deadline=None)
@given(st.lists(ENTRY, max_size=40), st.booleans())
def test_shards_together_answer_as_a_gateway_of_the_whole_table(entries: list[TableEntry], is_for_shards: bool) -> None:
    table: Table = {(entry_kind(entry), entry_key(entry)): entry for entry in entries}
    drop_cyclic(table)
    image = TableImage(table.values(), is_for_shards=is_for_shards)
    whole, shards = new_compiler(), {shard: for_shard(shard) for shard in SHARDS}
    load(whole, image)
    for compiler in shards.values():
        load(compiler, image)
    for name in REQUESTS:
        answers = {shard: answer(compiler, name) for shard, compiler in shards.items()}
        own = [shard for shard in SHARDS if shard.has_name(name.encode())]
        assert [shard for shard, given in answers.items() if given != MISDIRECTED] == own
        assert answers[own[0]] == answer(whole, name)
    assert {answer(compiler, "") == answer(whole, "") for compiler in shards.values()} == {True}


def answer(compiler: TableCompiler, name: str) -> object:
    """The route, its endpoints, and the reason why it has none; a status if it is refused; None: 404."""
    assert compiler.table is not None
    found = compiler.table.match(name.encode(), b"/", PLAIN)
    if not isinstance(found, CompiledRoute):
        return found
    if found.policies is not None and found.policies.fault_status == MISDIRECTED:
        return MISDIRECTED
    # Canaries draw lots, and backends take turns.
    return found.name, {str(found.choose((), PLAIN)) for _ in range(TURNS)}, found.unavailable


def of_shard(shard: Shard, *, after: int = 0) -> str:
    """A name of a shard."""
    return next(f"n{number}.example" for number in range(after, 1000) if shard.has_name(b"n%d.example" % number))


def test_a_name_of_another_shard_is_misdirected_though_a_wildcard_here_takes_it() -> None:
    mine, other = of_shard(SHARDS[0]), of_shard(SHARDS[1])
    image = TableImage([host("*.example"), host(other), upstream("up", endpoint(1))])
    compilers = [for_shard(shard) for shard in SHARDS[:2]]
    for compiler in compilers:
        load(compiler, image)
    assert [answer(each, other) == MISDIRECTED for each in compilers] == [True, False]
    assert answer(compilers[0], mine) == ("*.example|prefix /", {"10.0.0.1:80"}, "")
    assert answer(compilers[1], mine) == MISDIRECTED


def test_challenges_are_answered_whatever_shard_the_host_is_of() -> None:
    other = of_shard(SHARDS[1])
    asked = Challenge(key=f"{other}/token", host=other, token="token", answer="token.key")
    compiler = for_shard(SHARDS[0])
    load(compiler, TableImage([asked, host("*")]))
    assert compiler.table is not None
    found = compiler.table.match(other.encode(), b"/.well-known/acme-challenge/token", PLAIN)
    assert isinstance(found, CompiledRoute)
    assert answer(compiler, other) == MISDIRECTED


def test_chunks_of_other_shards_are_not_asked_for() -> None:
    entries = [host(f"n{number}.example", route("/", "prefix", f"up{number}")) for number in range(1000)]
    image = TableImage([*entries, host("*.example")], is_for_shards=True)
    manifest, _ = publish(image, (1, 1))
    compiler = for_shard(SHARDS[2])
    update = compiler.stage(manifest.version, manifest.chunks)
    asked = [name for name in update.needed if name.kind == "hosts"]
    assert 0 < len(asked) < len([name for name in manifest.chunks if name.kind == "hosts"]) / 2
    assert load(compiler, image) == len(asked)
    assert compiler.table is not None
    own = {entry.key for entry in entries if SHARDS[2].has_host(entry.host)}
    assert {key.decode() for key in compiler.table.hosts} == {*own, "*.example"}


def test_an_upstream_is_fetched_again_when_a_host_here_comes_to_need_it() -> None:
    mine = of_shard(SHARDS[0])
    ups = [upstream(f"up{number}", endpoint(number)) for number in range(1, 4)]
    image = TableImage([host(mine, route("/", "prefix", "up1")), *ups])
    compiler = for_shard(SHARDS[0])
    load(compiler, image)
    assert [key for key, _ in compiler.upstreams.compiled()] == ["up1"]
    before = compiler.find_endpoints("up1")
    image.put(host(mine, route("/", "prefix", "up1", "up2")))
    load(compiler, image, (1, 2))
    assert sorted(key for key, _ in compiler.upstreams.compiled()) == ["up1", "up2"]
    assert compiler.find_endpoints("up1") is before
    image.put(host(mine, route("/", "prefix", "up2")))
    assert load(compiler, image, (1, 3)) == 1  # that of the host: what is given up needs no fetching
    assert [key for key, _ in compiler.upstreams.compiled()] == ["up2"]


def test_the_certificate_for_names_without_one_is_held_by_all() -> None:
    other = of_shard(SHARDS[1])
    image = TableImage([certified("c/default", other), certified("c/other", other)])
    compiler = for_shard(SHARDS[0], "c/default")
    load(compiler, image)
    assert [key for key, _ in compiler.certificates.compiled()] == ["c/default"]
