"""Hosts and paths as Ingress v1 and its conformance suite have them, on compiled tables."""

import re
from collections.abc import Collection

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fakes.gateway.requests import PLAIN, AskedRequest, request
from fakes.gateway.table import compiled, host, load, new_compiler, route
from fakes.gateway.tls import Authority
from headgate.common.table import (
    AllOf,
    Canary,
    ClientAuth,
    Compare,
    Operator,
    PathType,
    Rank,
    Route,
    Subject,
    TlsPolicy,
    VirtualHost,
)
from headgate.common.table_image import TableImage
from headgate.gateway.errors import BadMatch
from headgate.gateway.model.patterns import PatternSet, compile_pattern, literal_beginning
from headgate.gateway.proxy.seam import NEEDS_BODY
from headgate.gateway.table.compiler import TableCompiler
from headgate.gateway.table.hosts import find_host, host_candidates
from headgate.gateway.table.match import PATTERNS_AT_ONCE, compile_rule
from headgate.gateway.table.route import CompiledRoute

HOST = b"foo.com"


def winner(routes: list[Route], path: str, asked: AskedRequest = PLAIN) -> str | None:
    compiler = compiled([host("foo.com", *routes)])
    assert compiler.table is not None
    found = compiler.table.match(HOST, path.encode(), asked)
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
        (["prefix /a%2fb"], "/a%2Fb", "prefix /a%2fb"),
        (["prefix /a/%7euser"], "/a/~user", "prefix /a/%7euser"),
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


def falling(name: str, *paths: str) -> VirtualHost:
    made = host(name, *(route(path, "string-prefix") for path in paths))
    return made.model_copy(update={"unmatched": "next-host"})


def taken(compiler: TableCompiler, host_name: bytes, path: bytes) -> str | None:
    assert compiler.table is not None
    found = compiler.table.match(host_name, path, PLAIN)
    return found.name if isinstance(found, CompiledRoute) else None


def test_a_host_that_falls_through_leaves_what_it_does_not_take_to_the_next_ones() -> None:
    compiler = compiled([falling("a.foo.com", "/a"), falling("**.foo.com", "/b"), falling("*", "/c")])
    assert taken(compiler, b"a.foo.com", b"/a") == "a.foo.com|string-prefix /a"
    assert taken(compiler, b"a.foo.com", b"/b") == "**.foo.com|string-prefix /b"
    assert taken(compiler, b"a.foo.com", b"/c") == "*|string-prefix /c"
    assert taken(compiler, b"a.foo.com", b"/d") is None


def test_a_host_that_does_not_fall_through_keeps_what_came_to_it() -> None:
    compiler = compiled([falling("a.foo.com", "/a"), host("*.foo.com", route("/b")), host("*")])
    assert taken(compiler, b"a.foo.com", b"/b") == "*.foo.com|prefix /b"
    assert taken(compiler, b"a.foo.com", b"/c") is None


def test_what_a_host_asks_of_certificates_holds_for_requests_that_fall_through_it() -> None:
    asked = TlsPolicy(client_auth=ClientAuth(ca_pem=Authority().pem))
    guarded = falling("a.foo.com", "/a").model_copy(update={"tls": asked})
    compiler = compiled([guarded, falling("*", "/c")])
    assert compiler.table is not None
    found, elsewhere = (compiler.table.match(name, b"/c", PLAIN) for name in (b"a.foo.com", b"b.com"))
    assert isinstance(found, CompiledRoute)
    assert isinstance(elsewhere, CompiledRoute)
    assert found.policies is not None
    assert found.policies.guard is compiler.table.hosts[b"a.foo.com"].tls.guard  # type: ignore[union-attr]
    assert elsewhere.policies is None
    assert compiler.table.match(b"a.foo.com", b"/c", PLAIN) is found


def test_table_without_hosts_matches_nothing() -> None:
    compiler = new_compiler()
    load(compiler, TableImage())
    assert compiler.table is not None
    assert compiler.table.match(b"foo.com", b"/", PLAIN) is None


PATHS = st.lists(st.sampled_from(["", "a", "b", "ab", "%2F", "%20"]), max_size=4).map(
    lambda parts: "/" + "/".join(parts)
)
RULES = st.tuples(PATHS, st.sampled_from(["exact", "prefix"]))


def naive_takes(item: Route, path: str) -> bool:
    """Element by element, character by character, and with another engine for patterns."""

    def elements(text: str) -> list[str]:
        return text.removesuffix("/").split("/")

    value = item.path.value
    match item.path.type:
        case PathType.EXACT:
            return path == value
        case PathType.STRING_PREFIX:
            return path[: len(value)] == value
        case PathType.REGEX:
            text = path.replace("%20", " ") if item.path.decoded else path
            return re.match(value, text, re.IGNORECASE if item.path.ignore_case else 0) is not None
    wanted = elements(value)
    return elements(path)[: len(wanted)] == wanted or path.split("/")[: len(wanted)] == wanted


def naive_rank(rank: Rank) -> tuple[int, ...]:
    """What decides among routes for one path; the smallest wins."""
    return -rank.path_priority, -rank.has_method, -rank.headers, -rank.comparisons, int(rank.is_default)


def naive_winner(routes: list[Route], path: str, satisfied: Collection[str]) -> str | None:
    """All routes one by one, in the order that `Route` documents; `satisfied`: header names the request has."""
    classes = [PathType.EXACT, PathType.REGEX, PathType.PREFIX, PathType.PREFIX]
    order = sorted(
        routes,
        key=lambda item: (
            -item.rank.priority,
            classes.index(PathType.PREFIX if item.path.type is PathType.STRING_PREFIX else item.path.type),
            -len(item.path.value),
            *(() if item.path.type is PathType.REGEX else naive_rank(item.rank)),
        ),
    )
    for item in order:
        if naive_takes(item, path) and (item.when is None or item.when.name in satisfied):
            return item.name
    return None


@given(st.lists(RULES, min_size=1, max_size=8), PATHS)
def test_index_of_plain_routes_agrees_with_comparing_every_route(rules: list[tuple[str, str]], path: str) -> None:
    items = [route(value, kind, name=f"{index}") for index, (value, kind) in enumerate(rules)]
    assert winner(items, path) == naive_winner(items, path, ())


TEXTS = st.one_of(st.tuples(PATHS, st.sampled_from(["exact", "string-prefix"])), st.just(("/", "prefix")))


@given(st.lists(TEXTS, min_size=1, max_size=8), PATHS)
def test_index_of_plain_text_prefixes_agrees_with_comparing_every_route(
    rules: list[tuple[str, str]], path: str
) -> None:
    items = [route(value, kind, name=f"{index}") for index, (value, kind) in enumerate(rules)]
    assert winner(items, path) == naive_winner(items, path, ())


VALUES = {
    "exact": PATHS,
    "prefix": PATHS,
    "string-prefix": PATHS,
    "regex": st.sampled_from(["/", "/a", "/[ab]+$", "/.*/b", "/(a|b)/?", "/A", "/ab|/b", "^/b", "/a$|/b$", "/ ", ""]),
}


RANKS = st.builds(
    Rank,
    priority=st.sampled_from([0, 0, 1, -1]),
    path_priority=st.sampled_from([0, 0, 1, -1]),
    has_method=st.booleans(),
    headers=st.integers(0, 1),
    comparisons=st.integers(0, 1),
    is_default=st.booleans(),
)


@st.composite
def any_routes(draw: st.DrawFn) -> list[Route]:
    """Routes of all types, some with a condition on a header, priorities, in any case or for decoded paths."""
    items = []
    for index in range(draw(st.integers(1, 10))):
        kind = draw(st.sampled_from(sorted(VALUES)))
        item = route(draw(VALUES[kind]), kind, name=f"{index}")
        header = draw(st.sampled_from([None, None, "x-a", "x-b"]))
        when = Compare(subject=Subject.HEADER, name=header, operator=Operator.PRESENT) if header else None
        fold = kind == "regex" and draw(st.booleans())
        decoded = kind == "regex" and draw(st.booleans())
        path = item.path.model_copy(update={"ignore_case": fold, "decoded": decoded})
        items.append(item.model_copy(update={"when": when, "rank": draw(RANKS), "path": path}))
    return items


@given(any_routes(), PATHS, st.sets(st.sampled_from(["x-a", "x-b"])))
def test_index_agrees_with_asking_every_route_in_the_documented_order(
    items: list[Route], path: str, headers: set[str]
) -> None:
    asked = request(path, headers=dict.fromkeys(headers, "1"))
    assert winner(items, path, asked) == naive_winner(items, path, headers)


@given(any_routes(), PATHS)
def test_a_rule_alone_agrees_with_the_index(items: list[Route], path: str) -> None:
    item = items[0].model_copy(update={"when": None})
    assert compile_rule(item).takes(path.encode()) == (winner([item], path) is not None)


@given(
    st.lists(st.sampled_from(["*", "**.com", "*.com", "foo.com", "*.foo.com", "**.foo.com", "a.foo.com"]), unique=True)
)
@example(["*.foo.com", "**.foo.com", "**.com"])
def test_hosts_are_found_as_their_candidates_are_listed(names: list[str]) -> None:
    hosts = {name.encode(): name for name in names}
    for asked in ("foo.com", "a.foo.com", "b.foo.com", "x.b.foo.com", "bar.com", "y.bar.com", "com", "", "."):
        expected = next((name for name in host_candidates(asked) if name in names), None)
        assert find_host(hosts, asked.encode()) == expected


@pytest.mark.parametrize(
    ("request_host", "expected"),
    [
        ("x.foo.com", "*.foo.com"),
        ("y.x.foo.com", "**.foo.com"),
        ("z.y.x.foo.com", "**.foo.com"),
        ("foo.com", "**.com"),
        ("deep.sub.foo.com", "*.sub.foo.com"),
        ("very.deep.sub.foo.com", "**.foo.com"),
        ("foo.org", None),
        ("com", None),
    ],
)
def test_the_longest_wildcard_takes_a_host(request_host: str, expected: str | None) -> None:
    names = ["*.foo.com", "**.foo.com", "**.com", "*.sub.foo.com"]
    compiler = compiled([host(name) for name in names])
    assert compiler.table is not None
    found = compiler.table.match(request_host.encode(), b"/", PLAIN)
    assert (found.name.partition("|")[0] if found else None) == expected


def test_a_host_of_plain_routes_never_looks_at_the_request() -> None:
    asked = request("/foo/x")
    assert winner([route("/foo"), route("/foo/x", "exact")], "/foo/x", asked) == "exact /foo/x"
    assert not asked.looked_at


def conditional(path: str, kind: str, when: Compare | AllOf, name: str = "") -> Route:
    return route(path, kind, name=name or f"if {kind} {path}").model_copy(update={"when": when})


METHOD_POST = Compare(subject=Subject.METHOD, values=("POST",))
MODEL = Compare(subject=Subject.BODY, name="model", values=("large",))
JSON = {"content-type": "application/json"}


def test_a_route_whose_condition_fails_leaves_the_request_to_the_next() -> None:
    items = [conditional("/foo", "exact", METHOD_POST), route("/")]
    assert winner(items, "/foo") == "prefix /"
    assert winner(items, "/foo", request(method="POST")) == "if exact /foo"


def test_a_condition_on_the_body_asks_for_it_only_if_the_rest_holds() -> None:
    both = AllOf(all_of=(MODEL, METHOD_POST))
    table = compiled([host("foo.com", conditional("/", "prefix", both), route("/"))]).table
    assert table is not None
    assert table.match(HOST, b"/", request(method="POST", headers=JSON)) is NEEDS_BODY
    get = table.match(HOST, b"/", request(headers=JSON))
    assert get is not None
    assert get.name == "foo.com|prefix /"


def test_a_condition_on_the_body_decides_once_it_is_there() -> None:
    items = [conditional("/", "prefix", MODEL), route("/")]
    assert winner(items, "/", request(headers=JSON, body=b'{"model": "large"}')) == "if prefix /"
    assert winner(items, "/", request(headers=JSON, body=b'{"model": "small"}')) == "prefix /"


def test_a_body_is_not_asked_for_by_a_route_that_another_goes_before() -> None:
    table = compiled([host("foo.com", route("/a", "exact"), conditional("/", "prefix", MODEL))]).table
    assert table is not None
    found = table.match(HOST, b"/a", request())
    assert found is not NEEDS_BODY


def test_more_patterns_than_fit_one_automaton_keep_their_order() -> None:
    items = [route(f"/{number}[0-9]*$", "regex") for number in range(3 * PATTERNS_AT_ONCE)]
    assert winner(items, "/95") == "regex /95[0-9]*$"
    assert winner(items, "/9") == "regex /9[0-9]*$"
    assert winner(items, "/x") is None


@pytest.mark.parametrize(
    ("broken", "path", "field"),
    [
        (route("/api/(?=x)", "regex", name="broken"), "/api/x", "path.value: '/api/(?=x)' is no RE2 pattern: "),
        (
            conditional(
                "/api", "prefix", Compare(subject=Subject.CLIENT, operator=Operator.NETWORK, values=("x",)), "broken"
            ),
            "/api/x",
            "when.values[0]: 'x' is no network",
        ),
    ],
)
def test_a_route_that_cannot_be_compiled_answers_500_where_no_other_does(
    broken: Route, path: str, field: str, caplog: pytest.LogCaptureFixture
) -> None:
    table = compiled([host("foo.com", broken), host("bar.com", broken, route("/"))]).table
    assert table is not None
    found = table.match(HOST, path.encode(), PLAIN)
    assert found is not None
    assert found.policies is not None
    assert found.policies.fault.startswith(f"Ingress default/web spec.rules[0]: route broken: {field}")
    assert table.match(HOST, b"/other", PLAIN) is None
    other = table.match(b"bar.com", path.encode(), PLAIN)
    assert other is not None
    assert other.name == "bar.com|prefix /"
    assert [record.levelname for record in caplog.records] == ["ERROR"] * 2


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [("/api/(?=x)", "/api/"), ("/foo*(?!x)", "/fo"), ("/foo+(", "/foo"), ("/a|/b(", ""), ("(?<x", ""), ("/a?(", "/")],
)
def test_the_certain_beginning_of_a_broken_pattern_is_known(pattern: str, expected: str) -> None:
    assert literal_beginning(pattern) == expected


def test_a_pattern_too_large_is_refused() -> None:
    with pytest.raises(BadMatch, match=r"path.value: '\(a\{1000\}\)\{1,2\}' is "):
        compile_pattern("(a{1000}){1,2}", "path.value")


@given(st.lists(st.sampled_from(["/a", "/A", "", ".", "/[ab]*$", "^/b", "(?i)/B"]), max_size=6), st.booleans(), PATHS)
def test_a_set_of_patterns_agrees_with_each_alone(patterns: list[str], fold: bool, path: str) -> None:
    found = PatternSet([(pattern, fold) for pattern in patterns])
    assert found.match(path.encode()) == found.match_each(path.encode())


def test_bytes_that_are_no_utf_8_do_not_slip_past_a_pattern() -> None:
    assert PatternSet([("/.*/admin", False)]).match(b"/\xff\xfe/admin") == [0]


def test_a_canary_that_is_told_by_the_body_asks_for_it_where_its_route_wins() -> None:
    item = conditional("/", "prefix", METHOD_POST, "split")
    table = compiled(
        [host("foo.com", item.model_copy(update={"canaries": (Canary(upstream="new", when=MODEL),)}), route("/"))]
    ).table
    assert table is not None
    assert table.match(HOST, b"/", request(method="POST", headers=JSON)) is NEEDS_BODY
    for asked, expected in (
        (request(method="POST", headers=JSON, body=b"{}"), "foo.com|split"),
        (request(headers=JSON), "foo.com|prefix /"),
    ):
        found = table.match(HOST, b"/", asked)
        assert found is not None
        assert found.name == expected


def test_a_route_with_a_broken_canary_keeps_its_rank() -> None:
    bad = Compare(subject=Subject.PATH, operator=Operator.REGEX, values=("(",))
    item = route("/a").model_copy(update={"canaries": (Canary(upstream="new", when=bad),)})
    table = compiled([host("foo.com", item, route("/"))]).table
    assert table is not None
    found = table.match(HOST, b"/a", PLAIN)
    assert found is not None
    assert found.policies is not None
    assert "canaries[0].when.values[0]: '(' is no RE2 pattern" in found.policies.fault
