"""Virtual hosts that are read without their models become what they would be by way of these."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fakes.gateway.requests import PLAIN
from fakes.gateway.table import host, load, new_compiler, route
from headgate.common.errors import DecodeError
from headgate.common.table import Backend, PathMatch, PathType, Route, VirtualHost
from headgate.common.table_image import TableImage, encode_entry
from headgate.gateway.model.steps import finish
from headgate.gateway.table.backends import Holders
from headgate.gateway.table.compile import CompiledHost, compile_host, no_plugins
from headgate.gateway.table.encoded.host import read_plain_host
from headgate.gateway.tls.policy import TlsPolicies

PATHS = ("/", "/a", "/a/", "/a/b", "/%41", "/%c3%bc", "", "/ä")
texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
values = st.one_of(texts, st.integers(), st.none())
provenances = st.fixed_dictionaries(
    dict.fromkeys(("cluster", "kind", "namespace", "name"), texts), optional={"rule": values, "other": texts}
)
backends = st.fixed_dictionaries({"upstream": st.sampled_from(("", "a/b/c:80", "ü"))}, optional={"weight": values})
routes = st.fixed_dictionaries(
    {
        "name": texts,
        "path": st.fixed_dictionaries(
            {
                "type": st.sampled_from((*PathType, "other")),
                "value": st.sampled_from(PATHS),
            },
            optional={"ignore_case": st.booleans()},
        ),
        "backends": st.lists(backends, max_size=2),
        "provenance": provenances,
    },
    optional={"websocket": st.booleans(), "rank": st.integers(0, 2)},
)
plain_routes = st.fixed_dictionaries(
    {
        "name": texts,
        "path": st.fixed_dictionaries(
            {"type": st.sampled_from(("exact", "prefix", "string-prefix")), "value": st.sampled_from(PATHS)}
        ),
        "backends": st.just([{"upstream": "a/b/c:80"}]),
        "provenance": st.just({"cluster": "a", "kind": "b", "namespace": "c", "name": "d"}),
    }
)
PLAIN_ROUTE: dict[str, object] = {
    "name": "r",
    "path": {"type": "prefix", "value": "/"},
    "backends": [{"upstream": "a/b/c:80"}],
    "provenance": {"cluster": "a", "kind": "b", "namespace": "c", "name": "d"},
}
names = st.sampled_from(("a.example", "*.a.example", "*", "~a|b", "a@b", "", "x" * 1024, "x" * 1025))

listeners = st.lists(st.one_of(st.sampled_from(("http", "a/b/c", "ü", "a|b", "")), texts), max_size=2)
others = st.fixed_dictionaries(
    {}, optional={"listeners": listeners, "unmatched": st.sampled_from(("404", "next-host", "other", True))}
)


def compiled(raw: bytes) -> tuple[str, CompiledHost, Holders] | None:
    holders = Holders()
    try:
        key, made = finish(compile_host(raw, lambda key: None, holders, TlsPolicies(), no_plugins))
    except DecodeError:
        return None
    return key, made, holders


def look_at(found: tuple[str, CompiledHost, Holders] | None) -> Any:
    """All that there is of a host, to be compared."""
    if found is None:
        return None
    key, made, holders = found
    parts: list[Any] = [key, made.key, made.tls, made.unmatched, made.competes, len(holders), made.parts == (made,)]
    for rule, each in made.routes:
        kept = {name: getattr(each, name) for name in type(each).__slots__ if name != "__weakref__"}
        upstream, among = kept.pop("_only"), kept.pop("_among")
        policies = kept.pop("policies")
        parts += [
            rule,
            kept,
            policies and policies.fault,
            upstream is not None and upstream is holders.find(upstream.key),
            among is None,
        ]
    for path in PATHS:
        taken = made.match(path.encode(), PLAIN)
        parts.append(taken and taken.name)
    return parts


def written(entry: object) -> bytes:
    return json.dumps(entry, ensure_ascii=False).encode()


@given(names, st.lists(st.one_of(plain_routes, routes), max_size=3), others)
@example("a.example", [], {})
@example("a@b", [], {})
@example("x" * 1025, [], {})
@example("~a|b", [PLAIN_ROUTE], {})
@example("a.example", [PLAIN_ROUTE | {"backends": [{"upstream": ""}]}], {})
@example("a.example", [PLAIN_ROUTE | {"backends": []}], {})
@example("a.example", [PLAIN_ROUTE | {"path": {"type": "regex", "value": "/%61("}}], {})
@example("a.example", [], {"listeners": ["a\n"]})
def test_both_ways_lead_to_the_same(name: str, each: list[dict[str, object]], other: dict[str, object]) -> None:
    entry = {"host": name, "routes": each, **other}
    # A field with its default, which no entry is encoded with, is not read as plain.
    at_length = written(entry | {"tls": None})
    assert read_plain_host(at_length) is None
    assert look_at(compiled(written(entry))) == look_at(compiled(at_length))


@given(st.lists(plain_routes, max_size=3))
def test_those_that_say_nothing_else_are_read_as_plain(each: list[dict[str, Any]]) -> None:
    found = read_plain_host(written({"host": "a.example", "routes": each}))
    assert found is not None
    assert [(route.name, route.path) for route in found.routes] == [(one["name"], one["path"]["value"]) for one in each]


def test_entries_of_ingresses_are_plain() -> None:
    assert read_plain_host(encode_entry(host("foo.com", route("/"), route("/x", "exact"))))


def test_what_else_hosts_and_routes_may_say_is_left_to_the_models() -> None:
    entry = json.loads(encode_entry(host("foo.com")))
    only_route = entry["routes"][0]
    models = (
        (VirtualHost, entry, {"listeners", "unmatched"}),
        (Route, only_route, set()),
        (PathMatch, only_route["path"], set()),
        (Backend, only_route["backends"][0], set()),
    )
    for model, fields, plain in models:
        for field in model.model_fields.keys() - fields.keys() - plain:
            fields[field] = None
            assert read_plain_host(written(entry)) is None
            del fields[field]
    assert read_plain_host(written(entry))


@pytest.mark.parametrize("bad", [b"", b"[]", b'{"host": "\xff", "routes": []}', b'{"host":' + b"[" * 100_000])
def test_what_is_no_entry_is_refused(bad: bytes) -> None:
    assert read_plain_host(bad) is None
    assert compiled(bad) is None


def test_a_route_that_did_not_change_keeps_its_object_when_others_do() -> None:
    compiler = new_compiler()
    load(compiler, TableImage([host("foo.com", route("/"), route("/x"))]))
    assert compiler.table is not None
    before = compiler.table.match(b"foo.com", b"/", PLAIN)
    load(compiler, TableImage([host("foo.com", route("/"), route("/y"))]), (1, 2))
    assert compiler.table.match(b"foo.com", b"/", PLAIN) is before is not None
