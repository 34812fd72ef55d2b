"""Which requests a rule of an ApisixRoute takes: hosts, paths, their order, and everything else of `match`."""

from typing import Any

import pytest

from fakes.translator.apisix import Translated, route, rule
from fakes.translator.deltas import ingress

# Paths


@pytest.mark.parametrize(
    ("path", "taken", "left"),
    [
        ("/foo", ["/foo"], ["/foo/", "/foobar", "/foo/x", "/Foo"]),
        ("/foo*", ["/foo", "/foobar", "/foo/x"], ["/fo", "/Foo"]),
        ("/foo/*", ["/foo/", "/foo/x", "/foo/x/y"], ["/foo", "/foobar"]),
        ("/*", ["/", "/x"], []),
        ("*", ["/", "/x"], []),
        ("/a/*/b", ["/a/x/b", "/a/x/y/b"], ["/a/b", "/a/x/bc", "/a/x/b/"]),
        ("/a+b/*/c.d", ["/a+b/x/c.d"], ["/aab/x/c.d", "/a+b/x/cxd"]),
        ("/a/*/b*", ["/a/x/b", "/a/x/bc"], ["/a/x/c"]),
        ("/:name", ["/:name"], ["/x"]),
        ("/naïve path", ["/na%C3%AFve%20path"], ["/naive"]),
    ],
)
def test_a_path_takes_what_it_says(path: str, taken: list[str], left: list[str]) -> None:
    table = Translated(route(rule("r", path)))
    assert table.problems() == []
    assert [one for one in taken if table.winner(f"a.com{one}") is None] == []
    assert [one for one in left if table.winner(f"a.com{one}") is not None] == []


@pytest.mark.parametrize("path", ["foo", "/foo*bar", "/a/b*c/d"])
def test_a_path_that_means_nothing_is_refused_at_its_field(path: str) -> None:
    assert Translated(route(rule("r", "/ok", path), rule("s", "/other"))).errors() == ["spec.http[0].match.paths[1]"]


def test_a_rule_that_cannot_be_read_costs_itself_alone() -> None:
    table = Translated(route(rule("bad", "nothing"), rule("good", "/x")))
    assert table.winner("a.com/x") == "route good"
    assert table.is_accepted()


def test_a_rule_that_asks_for_too_many_routes_is_refused_and_others_are_served() -> None:
    many = rule("many", *[f"/{n}" for n in range(101)], hosts=[f"h{n}.com" for n in range(100)])
    table = Translated(route(rule("first", "/x"), many, rule("last", "/y")))
    assert table.errors() == ["spec.http[1].match"]
    assert "asks for 10100 routes (hosts times paths), and an object has 10000 at most" in table.problems()[0].message
    assert table.winner("a.com/x") == "route first"
    assert table.winner("a.com/y") == "route last"


def test_conditions_and_plugins_times_routes_have_a_bound_over_the_object() -> None:
    paths = [f"/{n}" for n in range(500)]
    conditions = [{"subject": {"scope": "Header", "name": f"X-{n}"}, "op": "Equal", "value": "a"} for n in range(500)]
    rewrite = {"name": "response-rewrite", "enable": True, "config": {"body": "x" * 120_000}}
    conditional = rule("conditional", *paths, match_exprs=conditions)
    table = Translated(
        route(rule("first", "/x"), conditional, rule("large", *paths, plugins=[rewrite]), rule("last", "/y"))
    )
    assert table.errors() == ["spec.http[1].match", "spec.http[2].match"]
    assert "asks for 500 routes (hosts times paths), which is too much work" in table.problems()[0].message
    assert table.winner("a.com/x") == "route first"
    assert table.winner("a.com/y") == "route last"


def test_patterns_of_a_rule_have_a_bound_together() -> None:
    exprs = [
        {"subject": {"scope": "Path"}, "op": "RegexMatch", "value": f"[a-z]{{900}}{number}"} for number in range(50)
    ]
    (first, *_) = Translated(route(rule("r", "/x", match_exprs=exprs))).problems()
    assert first.field == "spec.http[0].match.exprs[42].value"
    assert "is one pattern too many" in first.message


# Order


def test_an_exact_path_goes_before_prefixes_whatever_their_priority() -> None:
    table = Translated(route(rule("all", "/*", priority=100), rule("exact", "/foo")))
    assert table.winner("a.com/foo") == "route exact"


def test_the_longer_prefix_goes_before_priority() -> None:
    table = Translated(route(rule("short", "/foo*", priority=100), rule("long", "/foo/bar*")))
    assert table.winner("a.com/foo/bar") == "route long"
    assert table.winner("a.com/foo/ba") == "route short"


def test_among_rules_for_one_path_the_higher_priority_goes_first_whatever_the_age() -> None:
    old = route(rule("low", "/foo*"), name="old", creationTimestamp="2020-01-01T00:00:00Z")
    new = route(rule("high", "/foo*", priority=1), name="new", creationTimestamp="2024-01-01T00:00:00Z")
    table = Translated(old, new)
    assert table.winner("a.com/foo") == "new high"
    assert [problem.reason for problem in table.problems("old")] == ["PathConflict"]


def test_a_candidate_that_fails_falls_to_the_next_one() -> None:
    header = {"subject": {"scope": "Header", "name": "X-A"}, "op": "Equal", "value": "1"}
    table = Translated(
        route(rule("exact", "/foo", match_exprs=[header]), rule("post", "/foo*", match_methods=["POST"]), rule("all"))
    )
    assert table.winner("a.com/foo", headers={"X-A": "1"}) == "route exact"
    assert table.winner("a.com/foo", "POST") == "route post"
    assert table.winner("a.com/foo") == "route all"


def test_a_path_with_a_star_inside_counts_as_its_beginning() -> None:
    table = Translated(route(rule("inside", "/a/*/b"), rule("prefix", "/a/*"), rule("longer", "/a/x/*")))
    assert table.winner("a.com/a/y/b") == "route inside"
    assert table.winner("a.com/a/x/b") == "route longer"
    assert table.winner("a.com/a/c") == "route prefix"


def test_rules_with_equal_names_paths_and_hosts_of_two_objects_are_a_conflict_that_the_older_wins() -> None:
    old = route(rule("one", "/x"), name="old", creationTimestamp="2020-01-01T00:00:00Z")
    new = route(rule("one", "/x"), name="new", creationTimestamp="2024-01-01T00:00:00Z")
    table = Translated(new, old)
    assert table.winner("a.com/x") == "old one"
    assert table.problems("new")[0].reason == "PathConflict"


# Hosts


def test_hosts_are_compared_in_any_case() -> None:
    assert Translated(route(rule(hosts=["API.Example.com"]))).winner("api.example.COM/") == "route rule"


def test_a_wildcard_takes_any_depth_and_not_the_domain_itself() -> None:
    table = Translated(route(rule(hosts=["*.example.com"])))
    assert table.winner("a.example.com/") == table.winner("a.b.example.com/") == "route rule"
    assert table.winner("example.com/") is None


def test_the_host_goes_first_then_the_longer_wildcard_then_rules_without_hosts() -> None:
    table = Translated(
        route(
            rule("none", "/foo/bar/baz"),
            rule("wide", "/foo/bar*", hosts=["*.com"]),
            rule("narrow", "/foo*", hosts=["*.example.com"]),
            rule("exact", "/*", hosts=["a.example.com"]),
        )
    )
    asked = ("a.example.com", "b.example.com", "b.com", "b.org")
    assert [table.winner(f"{host}/foo/bar/baz") for host in asked] == [
        "route exact",
        "route narrow",
        "route wide",
        "route none",
    ]


def test_a_request_that_no_rule_of_a_host_takes_falls_through_to_the_next_host() -> None:
    table = Translated(
        route(
            rule("exact", "/a", hosts=["a.example.com"]),
            rule("wide", "/b", hosts=["*.example.com"]),
            rule("none", "/c"),
        )
    )
    assert [table.winner(f"a.example.com{path}") for path in ("/a", "/b", "/c", "/d")] == [
        "route exact",
        "route wide",
        "route none",
        None,
    ]


def test_a_host_that_an_ingress_speaks_of_keeps_its_requests() -> None:
    table = Translated(route(rule("none", "/*")), ingress("web", host="a.com", path="/web"))
    assert table.ask("GET", "a.com/other").winner is None
    assert table.winner("b.com/other") == "route none"


def test_explaining_shows_the_rules_of_the_host_that_fell_through() -> None:
    table = Translated(route(rule("exact", "/a", hosts=["a.com"]), rule("none", "/c")))
    shown = [(each.host, each.wins) for each in table.ask("GET", "a.com/c").candidates]
    assert shown == [("*", True), ("a.com", False)]


@pytest.mark.parametrize("host", ["*example.com", "a_b c", "example.com:80", "a..b"])
def test_a_host_that_is_none_is_refused(host: str) -> None:
    assert Translated(route(rule(hosts=["ok.com", host]))).errors() == ["spec.http[0].match.hosts[1]"]


# Methods, addresses, expressions


def test_methods_and_addresses_of_clients_have_to_fit() -> None:
    table = Translated(
        route(rule(match_methods=["GET", "HEAD"], match_remoteAddrs=["10.0.0.0/8", "2001:db8::1", "192.0.2.7"]))
    )
    assert table.winner("a.com/", client="10.1.2.3") == "route rule"
    assert table.winner("a.com/", "HEAD", client="2001:db8::1") == "route rule"
    assert table.winner("a.com/", client="192.0.2.8") is None
    assert table.winner("a.com/", "POST", client="10.1.2.3") is None


def test_an_address_that_is_none_is_refused() -> None:
    assert Translated(route(rule(match_remoteAddrs=["10.0.0.0/33"]))).errors() == ["spec.http[0].match.remoteAddrs[0]"]


def takes(expr: Any, url: str = "a.com/", **request: Any) -> bool:
    table = Translated(route(rule(match_exprs=[expr])))
    assert table.problems() == []
    return table.winner(url, **request) is not None


def about_header(op: str, value: Any = None, **fields: Any) -> Any:
    written = {} if value is None else {"value": value}
    return {"subject": {"scope": "Header", "name": "X-A"}, "op": op, **written, **fields}


@pytest.mark.parametrize(
    ("op", "value", "fitting", "others", "absent"),
    [
        ("Equal", "b", ["b"], ["B", "bb"], False),
        ("NotEqual", "b", ["B"], ["b"], True),
        ("GreaterThan", "18", ["18.5", "100"], ["18", "9", "x"], False),
        ("GreaterThanEqual", "18", ["18", "18.0", "19"], ["17.9", "x"], False),
        ("LessThan", "18", ["9", "-1"], ["18", "100", "x"], False),
        ("LessThanEqual", "18", ["18", "18.0", "1"], ["18.1", "x"], False),
        ("RegexMatch", "b.c", ["abxcd"], ["aBxcd", "bc"], False),
        ("RegexNotMatch", "b.c", ["aBxcd"], ["abxcd"], True),
        ("RegexMatchCaseInsensitive", "b.c", ["aBxCd"], ["bc"], False),
        ("RegexNotMatchCaseInsensitive", "b.c", ["bc"], ["aBxCd"], True),
    ],
)
def test_an_expression_with_a_value(op: str, value: str, fitting: Any, others: Any, absent: bool) -> None:
    expr = about_header(op, value)
    assert all(takes(expr, headers={"X-A": one}) for one in fitting)
    assert not any(takes(expr, headers={"X-A": one}) for one in others)
    assert takes(expr) is absent


@pytest.mark.parametrize(("op", "inside", "absent"), [("In", True, False), ("NotIn", False, True)])
def test_an_expression_with_a_set(op: str, inside: bool, absent: bool) -> None:
    expr = about_header(op, set=["a", "b"])
    assert takes(expr, headers={"X-A": "b"}) is inside
    assert takes(expr, headers={"X-A": "c"}) is not inside
    assert takes(expr) is absent


JSON = {"Content-Type": "application/json"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.mark.parametrize(
    ("scope", "name", "url", "request_"),
    [
        ("Query", "id", "a.com/?id=1&id=2", {}),
        ("Header", "X-Id", "a.com/", {"headers": {"x-id": "1"}}),
        ("Cookie", "id", "a.com/", {"headers": {"Cookie": "x=2; id=1"}}),
        ("Body", "id", "a.com/", {"method": "POST", "headers": FORM, "body": b"id=1"}),
        ("Body", "a.ids[0]", "a.com/", {"method": "POST", "headers": JSON, "body": b'{"a": {"ids": [1]}}'}),
        (
            "Body",
            "items[*].id",
            "a.com/",
            {"method": "POST", "headers": JSON, "body": b'{"items": [{"id": 2}, {"id": 1}]}'},
        ),
        ("Variable", "arg_id", "a.com/?id=1", {}),
        ("Variable", "http_x_id", "a.com/", {"headers": {"X-Id": "1"}}),
        ("Variable", "cookie_id", "a.com/", {"headers": {"Cookie": "id=1"}}),
        ("Variable", "post_arg.id", "a.com/", {"method": "POST", "headers": FORM, "body": b"id=1"}),
    ],
)
def test_an_expression_looks_where_its_scope_says(scope: str, name: str, url: str, request_: Any) -> None:
    expr = {"subject": {"scope": scope, "name": name}, "op": "Equal", "value": 1}
    assert takes(expr, url, **request_)
    assert not takes(expr)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("request_method", "GET"),
        ("host", "a.com"),
        ("uri", "/x"),
        ("request_uri", "/x?q=1"),
        ("args", "q=1"),
        ("query_string", "q=1"),
        ("scheme", "http"),
        ("remote_addr", "10.0.0.1"),
    ],
)
def test_an_expression_looks_at_variables_of_the_request(variable: str, value: str) -> None:
    expr = {"subject": {"scope": "Variable", "name": variable}, "op": "Equal", "value": value}
    assert takes(expr, "a.com/x?q=1", client="10.0.0.1")
    assert not takes({**expr, "value": "other"}, "a.com/x?q=1", client="10.0.0.1")


def test_the_scope_path_needs_no_name() -> None:
    expr = {"subject": {"scope": "Path"}, "op": "RegexMatch", "value": "x.z$"}
    assert takes(expr, "a.com/xyz")
    assert not takes(expr, "a.com/xyzz")


def test_all_expressions_have_to_hold() -> None:
    exprs = [about_header("RegexMatch", "a"), about_header("RegexMatch", "b")]
    table = Translated(route(rule(match_exprs=exprs)))
    assert table.winner("a.com/", headers={"X-A": "ab"}) == "route rule"
    assert table.winner("a.com/", headers={"X-A": "a"}) is None


@pytest.mark.parametrize(
    ("expr", "field"),
    [
        (about_header("equal", "1"), "op"),
        (about_header("Equal"), "value"),
        (about_header("In"), "set"),
        (about_header("GreaterThan", "x"), "value"),
        (about_header("RegexMatch", "(?=x)"), "value"),
        ({"subject": {"scope": "header", "name": "a"}, "op": "Equal", "value": "1"}, "subject.scope"),
        ({"subject": {"scope": "Header"}, "op": "Equal", "value": "1"}, "subject.name"),
        ({"subject": {"scope": "Variable", "name": "nothing"}, "op": "Equal", "value": "1"}, "subject.name"),
        ({"subject": {"scope": "Body", "name": "a[?(@.b)].c"}, "op": "Equal", "value": "1"}, "subject.name"),
        ({"subject": {"scope": "Body", "name": "a..c"}, "op": "Equal", "value": "1"}, "subject.name"),
        ({"subject": {"scope": "Body", "name": "a.b*"}, "op": "Equal", "value": "1"}, "subject.name"),
    ],
)
def test_an_expression_that_means_nothing_is_refused_at_its_field(expr: Any, field: str) -> None:
    table = Translated(route(rule("bad", match_exprs=[expr]), rule("good", "/x")))
    assert table.errors() == [f"spec.http[0].match.exprs[0].{field}"]
    assert table.winner("a.com/") is None


def test_lua_is_refused_with_what_to_use_and_its_requests_are_not_served() -> None:
    table = Translated(route(rule(match_filter_func="function(vars) return true end")))
    (problem,) = table.problems()
    assert problem.field == "spec.http[0].match.filter_func"
    assert "exprs" in problem.message
    assert "filter_func" in table.ask("GET", "a.com/").verdict
