"""What `headgate explain` says."""

from typing import Any

import httptools
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.gateway.requests import PLAIN, request
from fakes.gateway.table import compiled, endpoint, host, route, upstream
from headgate.common.table import (
    AllOf,
    Compare,
    Endpoint,
    Mirror,
    Operator,
    PathType,
    Rank,
    Subject,
    TableEntry,
    VirtualHost,
)
from headgate.gateway.balancing.levels import Place
from headgate.gateway.table.explaining.explain import explain
from headgate.gateway.table.explaining.explanation import Explanation, HealthNote
from headgate.gateway.table.explaining.requests import KNOWN_METHODS, bare_host
from headgate.gateway.table.route import CompiledRoute
from headgate.gateway.table.view import CompilerView, EntryView

ENTRIES: list[TableEntry] = [
    host(
        "a.foo.com",
        route("/", name="root"),
        route("/foo", name="short"),
        route("/foo/bar", "prefix", ("up", 3), ("gone", 1), name="long"),
        route("/foo/bar", "exact", name="exact"),
        route("/foo/bar", name="late"),
        route("/down", "prefix", "gone", name="down"),
    ),
    host("*.foo.com", route("/", name="wild")),
    host("*", route("/", name="any")),
    upstream("up", endpoint(1), endpoint(2, ready=False, serving=True, terminating=True), endpoint(3, ready=False)),
    upstream("gone"),
]


def ask(path: str, host_name: str = "a.foo.com", **headers: str) -> Explanation:
    return explain(EntryView(ENTRIES), "get", host_name, path, headers)


def test_the_winner_comes_first_and_every_loser_says_why() -> None:
    reasons = {item.route or item.host: item.reason for item in ask("/foo/bar/x").candidates}
    assert next(iter(reasons)) == "long"
    assert reasons["short"] == "takes the path, but /foo/bar of long is longer"
    assert reasons["late"] == "takes the path, but long is the same match and comes first"
    assert reasons["exact"] == "the path is not equal to it"
    assert reasons["down"] == "the path is neither it nor below it, by elements between slashes"
    assert reasons["*.foo.com"] == "a.foo.com matches a.foo.com better, and hosts go first"


def test_exact_goes_before_an_equal_prefix() -> None:
    explanation = ask("/foo/bar")
    assert explanation.winner == "a.foo.com|exact"
    assert {item.reason for item in explanation.candidates if item.route == "long"} == {
        "takes the path, but exact matches it exactly"
    }


def test_backends_show_shares_and_what_is_down() -> None:
    explanation = ask("/foo/bar/x")
    assert [(item.upstream, item.share, item.unavailable) for item in explanation.backends] == [
        ("up", 0.75, ""),
        ("gone", 0.25, "gone has no endpoints"),
    ]
    assert explanation.verdict == "long sends it to up (75%), gone (25%); 503 for the share of gone"


def test_endpoints_show_their_state() -> None:
    (backend,) = ask("/").backends
    assert [(item.state, item.gets_requests) for item in backend.endpoints] == [
        ("ready", True),
        ("draining", False),
        ("not ready", False),
    ]


def test_endpoints_show_who_reaches_them() -> None:
    endpoints = [
        Endpoint(address="10.0.0.1", port=80, cluster="east"),
        Endpoint(address="10.0.0.1", port=80, cluster="west", is_local=True),
        Endpoint(address="192.0.2.1", port=80, cluster="west", hop="http"),
    ]
    entries = [host("*", route("/")), upstream("up", *endpoints)]
    seen = {
        cluster: explain(EntryView(entries), "GET", "x", "/", place=Place(cluster=cluster)).backends[0]
        for cluster in ("east", "west")
    }
    assert [(item.state, item.gets_requests) for item in seen["east"].endpoints] == [
        ("ready", True),
        ("reached from west only", False),
        ("ready", True),
    ]
    assert [(item.state, item.gets_requests) for item in seen["west"].endpoints] == [
        ("ready", True),
        ("ready", True),
        ("for other clusters", False),
    ]


def test_endpoints_that_only_another_cluster_reaches_are_no_endpoints_here() -> None:
    entries = [
        host("*", route("/")),
        upstream("up", Endpoint(address="10.0.0.1", port=80, cluster="west", is_local=True)),
    ]
    explanation = explain(EntryView(entries), "GET", "x", "/", place=Place(cluster="east"))
    assert explanation.verdict == "503: none of the 1 endpoints of up can be reached from here"


def test_a_route_without_endpoints_is_a_503_that_says_why() -> None:
    assert ask("/down/x").verdict == "503: gone has no endpoints"


def test_a_path_that_nobody_takes_is_a_404_of_that_host() -> None:
    explanation = explain(EntryView([host("foo.com", route("/a"))]), "GET", "foo.com", "/b")
    assert explanation.verdict == "404: foo.com takes the host, none of its 1 routes takes the path"
    assert explanation.winner is None


def test_a_host_that_nobody_takes_names_what_was_looked_for() -> None:
    explanation = explain(EntryView([]), "GET", "x.foo.com", "/b")
    assert (
        explanation.verdict
        == "404: no virtual host takes 'x.foo.com' (looked for x.foo.com, *.foo.com, **.foo.com, **.com, *)"
    )


@pytest.mark.parametrize(
    ("method", "verdict"),
    [("FOO", "501: the gateway knows no method FOO"), ("TRACE", "405: the gateway takes no TRACE")],
)
def test_a_method_that_is_refused_reaches_no_route(method: str, verdict: str) -> None:
    explanation = explain(EntryView(ENTRIES), method, "a.foo.com", "/")
    assert (explanation.verdict, explanation.winner) == (verdict, None)


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"])
def test_known_methods_reach_routes(method: str) -> None:
    assert explain(EntryView(ENTRIES), method, "a.foo.com", "/").virtual_host


def test_a_host_header_goes_before_the_urls_host() -> None:
    assert ask("/", "127.0.0.1:8080", Host="B.foo.com:8080").winner == "*.foo.com|wild"


@pytest.mark.parametrize(
    ("path", "mode", "read", "forwarded", "winner"),
    [
        ("/x/../foo/bar", "rewrite", "/foo/bar", "/foo/bar", "exact"),
        ("//foo//x", "rewrite", "/foo/x", "", "short"),
        ("/%66oo%2Fbar", "rewrite", "/foo/bar", "", "exact"),
        ("/x/../foo", "match", "/foo", "", "short"),
        ("/x/../foo", "off", "", "", "root"),
        ("/foo", "strict", "", "", "short"),
    ],
)
def test_a_path_is_read_as_the_gateway_reads_it(path: str, mode: str, read: str, forwarded: str, winner: str) -> None:
    told = explain(EntryView(ENTRIES), "GET", "a.foo.com", f"{path}?q", path_normalization=mode)
    assert (told.path, told.read_path, told.forwarded_path) == (path, read, forwarded)
    assert told.winner == f"a.foo.com|{winner}"


@pytest.mark.parametrize(
    ("path", "mode", "verdict"),
    [
        ("/a/..%2ffoo", "rewrite", "400: path that servers read in different ways (path_normalization rewrite)"),
        ("/../foo", "match", "400: path that servers read in different ways (path_normalization match)"),
        ("//foo", "strict", "400: path that servers read in different ways (path_normalization strict)"),
        ("/f oo", "off", "400: request line is not `method target version`"),
        ("/föö", "off", "400: target with a fragment, a control character or a byte outside ASCII"),
    ],
)
def test_a_path_that_the_gateway_refuses_reaches_no_route(path: str, mode: str, verdict: str) -> None:
    told = explain(EntryView(ENTRIES), "GET", "a.foo.com", path, path_normalization=mode)
    assert (told.verdict, told.winner, told.candidates) == (verdict, None, ())


def test_provenance_is_shown() -> None:
    assert str(ask("/").candidates[0].provenance) == "Ingress default/web spec.rules[0]"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Foo.COM:80", "foo.com"),
        ("foo.com.", "foo.com"),
        ("[::1]:80", "[::1]"),
        ("[::1]", "[::1]"),
        ("::1", "::1"),
        ("", ""),
    ],
)
def test_hosts_are_bared(text: str, expected: str) -> None:
    assert bare_host(text) == expected


@given(st.sampled_from(["/", "/foo", "/foo/", "/foo/bar", "/foo/bar/", "/foobar", "/down/", "/x/y"]))
def test_explanations_agree_with_the_gateway(path: str) -> None:
    compiler = compiled(ENTRIES)
    assert compiler.table is not None
    found = compiler.table.match(b"a.foo.com", path.encode(), PLAIN)
    offline, online = ask(path), explain(CompilerView(compiler), "GET", "a.foo.com", path)
    assert online == offline.model_copy(update={"version": "1.1"})
    assert offline.winner == (found.name if found else None)


def test_backends_without_weight_are_a_503() -> None:
    entries = [host("foo.com", route("/", "prefix", ("up", 0), name="off")), upstream("up", endpoint(1))]
    assert explain(EntryView(entries), "GET", "foo.com", "/").verdict == "503: all backends of off have weight 0"


def test_a_backend_that_the_table_lacks_is_named() -> None:
    explanation = explain(EntryView([host("foo.com", route("/", "prefix", "lost"))]), "GET", "foo.com", "/?q=1")
    assert explanation.verdict == "503: lost is not in the table"
    assert explanation.path == "/"


def test_both_views_list_the_same_hosts() -> None:
    hosts = {item.host: item for item in EntryView(ENTRIES).entries(VirtualHost)}
    assert {item.host: item for item in CompilerView(compiled(ENTRIES)).entries(VirtualHost)} == hosts


def test_methods_that_explain_knows_are_those_of_the_parser() -> None:
    for method in sorted(KNOWN_METHODS):
        httptools.HttpRequestParser(object()).feed_data(f"{method} / HTTP/1.1\r\nHost: a\r\n\r\n".encode())
    with pytest.raises(httptools.HttpParserInvalidMethodError):
        httptools.HttpRequestParser(object()).feed_data(b"FOO / HTTP/1.1\r\nHost: a\r\n\r\n")


CONDITIONAL: list[TableEntry] = [
    host(
        "foo.com",
        route("/", name="root"),
        route("/a", name="canary").model_copy(
            update={
                "when": AllOf(
                    all_of=(
                        Compare(subject=Subject.METHOD, values=("POST",)),
                        Compare(subject=Subject.QUERY, name="v", values=("2",)),
                        Compare(subject=Subject.COOKIE, name="c", values=("on",)),
                        Compare(subject=Subject.CLIENT, operator=Operator.NETWORK, values=("10.0.0.0/8",)),
                        Compare(subject=Subject.BODY, name="model", values=("x",)),
                    )
                )
            }
        ),
        route("/a/[0-9]+", "regex", name="pattern"),
        route("/a", "string-prefix", name="start"),
        route("/a/1", name="urgent").model_copy(update={"rank": Rank(priority=5)}),
        route("/a(", "regex", name="broken"),
    ),
    upstream("up", endpoint(1)),
]


def reasons_of(explanation: Explanation) -> dict[str, str]:
    return {item.route: item.reason for item in explanation.candidates}


def test_all_that_a_condition_looks_at_can_be_told() -> None:
    headers = [("Cookie", "c=on"), ("content-type", "application/x-www-form-urlencoded")]
    view = EntryView(CONDITIONAL)
    explanation = explain(view, "post", "foo.com", "/a?v=2", headers, client="10.1.1.1", body=b"model=x")
    assert explanation.winner == "foo.com|canary"
    without = explain(view, "post", "foo.com", "/a?v=2", headers, client="10.1.1.1")
    assert without.winner == "foo.com|start"
    assert reasons_of(without)["canary"] == "takes the path, but not the request: the request has no body field model"
    assert without.candidates[1].condition == ""
    told = "query parameter v is '1', asked for is one that is '2'"
    other = explain(view, "post", "foo.com", "/a?v=1", headers)
    assert reasons_of(other)["canary"] == f"takes the path, but not the request: {told}"


def test_priority_and_patterns_are_told() -> None:
    reasons = reasons_of(explain(EntryView(CONDITIONAL), "GET", "foo.com", "/a/1"))
    assert list(reasons) == ["urgent", "pattern", "start", "root", "broken", "canary"]
    assert reasons["pattern"] == "takes the path, but urgent has priority 5, this one 0"
    assert reasons["broken"].startswith("cannot be compiled, so it comes after all others: path.value: '/a(' is no RE2")
    reasons = reasons_of(explain(EntryView(CONDITIONAL), "GET", "foo.com", "/a/2"))
    assert reasons["start"] == "takes the path, but pattern is a pattern, and patterns go before prefixes"
    assert reasons["urgent"] == "the path is neither it nor below it, by elements between slashes"
    reasons = reasons_of(explain(EntryView(CONDITIONAL), "GET", "foo.com", "/"))
    assert reasons["start"] == "the path does not begin with it"
    assert reasons["pattern"] == "the path does not match it from its beginning"


@pytest.mark.parametrize(
    ("winner", "loser", "reason"),
    [
        ({"path_priority": 5}, {}, "winner has priority 5 among the routes for its path, this one 0"),
        ({"written_length": 9}, {"written_length": 2}, "is written with more characters (9, this one's with 2)"),
        ({"has_method": True}, {"headers": 3}, "winner asks for a method, this one does not"),
        ({"headers": 2}, {"headers": 1, "comparisons": 9}, "winner asks for 2 headers, this one for 1"),
        ({"query_parameters": 2}, {}, "winner asks for 2 query parameters, this one for 0"),
        ({"comparisons": 2}, {"comparisons": 1}, "winner makes 2 comparisons, this one 1"),
        ({}, {"is_default": True}, "this one gives way to winner"),
        ({"is_default": True}, {"is_unreadable": True}, "winner is the same match and comes first"),
    ],
)
def test_the_field_of_the_rank_that_decides_is_told(winner: dict[str, Any], loser: dict[str, Any], reason: str) -> None:
    ranked = {"winner": Rank(**winner), "loser": Rank(**loser)}
    routes = [route("/", name=name).model_copy(update={"rank": rank}) for name, rank in ranked.items()]
    behind = routes if winner.get("is_default") else routes[::-1]
    explanation = explain(EntryView([host("foo.com", *behind)]), "GET", "foo.com", "/")
    assert explanation.winner == "foo.com|winner"
    assert reason in reasons_of(explanation)["loser"]


def test_a_broken_route_that_answers_says_so() -> None:
    entries = [host("foo.com", route("/a(", "regex", name="broken"))]
    explanation = explain(EntryView(entries), "GET", "foo.com", "/a")
    assert explanation.verdict.startswith("500: broken cannot be compiled: path.value: '/a(' is no RE2 pattern")
    assert (explanation.winner, explanation.backends) == ("foo.com|broken", ())
    assert explanation.candidates[0].path_type is PathType.REGEX


def test_a_request_that_only_conditions_refuse_is_told_apart_from_a_path_that_nobody_takes() -> None:
    get = route("/").model_copy(update={"when": Compare(subject=Subject.METHOD, values=("GET",))})
    explanation = explain(EntryView([host("foo.com", get)]), "PUT", "foo.com", "/")
    assert explanation.verdict == "404: foo.com takes the host, none of its 1 routes takes the request"
    assert explanation.candidates[0].condition == "method is 'GET'"


@given(
    st.sampled_from(["/", "/a", "/a/1", "/a/2", "/ab", "/a/1/b", "/b"]),
    st.sampled_from(["GET", "POST"]),
    st.sampled_from(["", "?v=2"]),
    st.booleans(),
)
def test_explanations_of_conditions_agree_with_the_gateway(path: str, method: str, query: str, cookie: bool) -> None:
    headers = {"content-type": "application/x-www-form-urlencoded"} | ({"cookie": "c=on"} if cookie else {})
    table = compiled(CONDITIONAL).table
    assert table is not None
    asked = request(path + query, method=method, headers=headers, client="10.1.1.1", body=b"model=x")
    found = table.match(b"foo.com", path.encode(), asked)
    told = explain(EntryView(CONDITIONAL), method, "foo.com", path + query, headers, client="10.1.1.1", body=b"model=x")
    assert isinstance(found, CompiledRoute)
    assert told.winner == found.name


@pytest.mark.parametrize(
    ("note", "state"),
    [
        (HealthNote(is_unhealthy=True), "unhealthy by active checks"),
        (HealthNote(ejected_s=12.4), "ejected for 12 s more after failed requests"),
    ],
)
def test_an_endpoint_says_that_checks_or_ejection_took_it_out(note: HealthNote, state: str) -> None:
    known = {("10.0.0.1", 80): note}
    entries = [host("x", route("/")), upstream("up", endpoint(1), endpoint(2), endpoint(3))]
    shown = explain(EntryView(entries), "GET", "x", "/", health_of=lambda _: known).backends[0].endpoints
    assert [(one.state, one.gets_requests) for one in shown] == [(state, False), ("ready", True), ("ready", True)]


def test_with_too_few_endpoints_left_those_that_are_out_get_requests() -> None:
    known = {(f"10.0.0.{number}", 80): HealthNote(is_unhealthy=True) for number in (1, 2)}
    entries = [host("x", route("/")), upstream("up", endpoint(1), endpoint(2), endpoint(3))]
    shown = explain(EntryView(entries), "GET", "x", "/", health_of=lambda _: known).backends[0].endpoints
    assert all(one.gets_requests for one in shown)


def test_an_endpoint_that_gets_requests_says_which_of_them_failed() -> None:
    note = HealthNote(failures="3 failed, the last 2 s ago: connect")
    shown = explain(EntryView(ENTRIES), "GET", "a.foo.com", "/foo/bar/x", health_of=lambda _: {("10.0.0.1", 80): note})
    first = shown.backends[0].endpoints[0]
    assert (first.state, first.gets_requests, first.failures) == ("ready", True, note.failures)


def test_mirrors_say_where_copies_go_and_why_they_are_lost() -> None:
    mirrors = Mirror(upstream="up", share=0.5), Mirror(address="http://s:80"), Mirror(upstream="nothing")
    entries = host("x", route("/").model_copy(update={"mirrors": mirrors})), upstream("up", endpoint(1))
    assert [tuple(dict(one).values()) for one in explain(EntryView(entries), "GET", "x", "/").mirrors] == [
        ("up", 0.5, ""),
        ("http://s:80", 1.0, ""),
        ("nothing", 1.0, "nothing is not in the table"),
    ]
