"""Hosts and paths as Ingress v1 and its conformance suite have them, on compiled tables."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.gateway_table import compiled, host, load, new_compiler, route
from fakes.requests import PLAIN
from headgate.common.snapshot import TableImage
from headgate.common.table import PathType, Route, VirtualHost
from headgate.gateway.table.match import compile_rule

HOST = b"foo.com"


def winner(routes: list[Route], path: str) -> str | None:
    compiler = compiled([host("foo.com", *routes)])
    assert compiler.table is not None
    found = compiler.table.match(HOST, path.encode(), PLAIN)
    return found.name.removeprefix("foo.com|") if found else None


@pytest.mark.parametrize(
    ("routes", "path", "expected"),
    [
        # kubernetes.io/docs/concepts/services-networking/ingress, table "Examples".
        (["prefix /"], "/any/path", "prefix /"),
        (["exact /foo"], "/foo", "exact /foo"),
        (["exact /foo"], "/bar", None),
        (["exact /foo"], "/foo/", None),
        (["exact /foo/"], "/foo", None),
        (["prefix /foo"], "/foo", "prefix /foo"),
        (["prefix /foo"], "/foo/", "prefix /foo"),
        (["prefix /foo/"], "/foo", "prefix /foo/"),
        (["prefix /foo/"], "/foo/", "prefix /foo/"),
        (["prefix /aaa/bb"], "/aaa/bbb", None),
        (["prefix /aaa/bbb"], "/aaa/bbb", "prefix /aaa/bbb"),
        (["prefix /aaa/bbb/"], "/aaa/bbb", "prefix /aaa/bbb/"),
        (["prefix /aaa/bbb"], "/aaa/bbb/", "prefix /aaa/bbb"),
        (["prefix /aaa/bbb"], "/aaa/bbb/ccc", "prefix /aaa/bbb"),
        (["prefix /aaa/bbb"], "/aaa/bbbxyz", None),
        (["prefix /", "prefix /aaa"], "/aaa/ccc", "prefix /aaa"),
        (["prefix /", "prefix /aaa", "prefix /aaa/bbb"], "/aaa/bbb", "prefix /aaa/bbb"),
        (["prefix /", "prefix /aaa", "prefix /aaa/bbb"], "/ccc", "prefix /"),
        (["prefix /aaa"], "/ccc", None),
        (["prefix /foo", "exact /foo"], "/foo", "exact /foo"),
        (["prefix /foo", "prefix /foo/"], "/foo", "prefix /foo/"),
        (["prefix /foo", "prefix /foo/"], "/foo/x", "prefix /foo/"),
        # ingress-controller-conformance, path_rules.feature, what the table above lacks.
        (["exact /foo"], "/FOO", None),
        (["prefix /foo"], "/FOO", None),
        (["prefix /aaa/bbb", "prefix /aaa"], "/aaa/bbb/ccc", "prefix /aaa/bbb"),
        (["prefix /aaa/bbb", "prefix /aaa"], "/aaa/ccc", "prefix /aaa"),
        (["prefix /aaa/bbb", "prefix /aaa"], "/aaaccc", None),
        # Ours.
        (["prefix /"], "*", "prefix /"),
        (["prefix /foo", "exact /foo/"], "/foo/", "exact /foo/"),
        (["prefix /foo/", "exact /foo"], "/foo", "exact /foo"),
        (["prefix /a%2Fb"], "/a%2fb", None),
        (["prefix /foo"], "/foo//", "prefix /foo"),
    ],
)
def test_path_is_taken_by(routes: list[str], path: str, expected: str | None) -> None:
    assert winner([route(text.split()[1], text.split()[0]) for text in routes], path) == expected


def test_of_equal_routes_the_first_position_wins() -> None:
    assert winner([route("/foo", name="first"), route("/foo", name="second")], "/foo/x") == "first"


@pytest.mark.parametrize(
    ("request_host", "expected"),
    [
        ("foo.bar.com", "foo.bar.com"),
        ("bar.foo.com", "*.foo.com"),
        ("special.foo.com", "special.foo.com"),
        ("baz.bar.foo.com", None),
        ("foo.com", None),
        ("subdomain.bar.com", None),
        (".foo.com", None),
        ("", None),
        ("[::1]", None),
    ],
)
def test_host_is_taken_by(request_host: str, expected: str | None) -> None:
    compiler = compiled([host("foo.bar.com"), host("*.foo.com"), host("special.foo.com")])
    assert compiler.table is not None
    found = compiler.table.match(request_host.encode(), b"/", PLAIN)
    assert (found.name.partition("|")[0] if found else None) == expected


@pytest.mark.parametrize("request_host", ["unknown.org", "", "baz.bar.foo.com", "127.0.0.1"])
def test_any_host_takes_what_no_other_host_takes(request_host: str) -> None:
    compiler = compiled([host("*"), host("*.foo.com")])
    assert compiler.table is not None
    found = compiler.table.match(request_host.encode(), b"/x", PLAIN)
    assert found is not None
    assert found.name.startswith("*|")


def test_unmatched_path_of_a_matched_host_is_not_another_hosts_business() -> None:
    compiler = compiled([host("a.foo.com", route("/only")), host("*.foo.com"), host("*")])
    assert compiler.table is not None
    assert compiler.table.match(b"a.foo.com", b"/other", PLAIN) is None


def test_table_without_hosts_matches_nothing() -> None:
    compiler = new_compiler()
    load(compiler, TableImage())
    assert compiler.table is not None
    assert compiler.table.match(b"foo.com", b"/", PLAIN) is None


PATHS = st.lists(st.sampled_from(["", "a", "b", "ab", "%2f"]), max_size=4).map(lambda parts: "/" + "/".join(parts))
ROUTES = st.lists(st.tuples(PATHS, st.sampled_from(["exact", "prefix"])), min_size=1, max_size=8)


def naive_match(virtual_host: VirtualHost, path: bytes) -> str | None:
    """Element by element, without any index."""

    def elements(text: bytes) -> list[bytes]:
        return text.removesuffix(b"/").split(b"/")

    def takes(item: Route) -> bool:
        value = item.path.value.encode()
        if item.path.type is PathType.EXACT:
            return path == value
        wanted = elements(value)
        return elements(path)[: len(wanted)] == wanted or path.split(b"/")[: len(wanted)] == wanted

    order = sorted(
        (item for item in virtual_host.routes if takes(item)),
        key=lambda item: (-len(item.path.value), item.path.type is not PathType.EXACT),
    )
    return order[0].name if order else None


@given(ROUTES, PATHS)
def test_index_agrees_with_comparing_every_route(routes: list[tuple[str, str]], path: str) -> None:
    items = [route(value, kind, name=f"{index}") for index, (value, kind) in enumerate(routes)]
    assert winner(items, path) == naive_match(VirtualHost(host="foo.com", routes=tuple(items)), path.encode())


@given(PATHS, st.sampled_from(["exact", "prefix"]), PATHS)
def test_a_rule_alone_agrees_with_the_index(value: str, kind: str, path: str) -> None:
    item = route(value, kind)
    assert compile_rule(item).takes(path.encode()) == (winner([item], path) is not None)
