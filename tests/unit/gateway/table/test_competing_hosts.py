"""Routes of many hosts that compete by rank: on listeners that are rank first, and where hosts pass requests on."""

import sys
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from fakes.gateway.requests import request
from fakes.gateway.table import host, listener, route
from fakes.gateway.winners import explained, ranked, table_of, winner
from headgate.common.table import (
    Compare,
    Rank,
    Route,
    Subject,
    TableEntry,
    VirtualHost,
)
from headgate.gateway.proxy.seam import NEEDS_BODY
from headgate.gateway.table.listener_ports import (
    OWN_HTTPS,
)

SHOPS = r"~^shop-[0-9]+\.foo\.com$"


# Rank first


def test_the_best_rank_of_all_hosts_wins_on_a_listener_that_is_rank_first() -> None:
    entries = [
        listener("http", host_order="rank-first"),
        host("a.com", ranked("/", 10, "host"), ranked("/own", 40, "own")),
        host("*", ranked("/api", 30, "api"), ranked("/", 1, "rest")),
    ]
    table = table_of(*entries)
    expected = {"/api/x": "*|api", "/x": "a.com|host", "/own": "a.com|own"}
    assert {path: winner(table, "a.com", path) for path in expected} == expected
    assert {path: explained(entries, "a.com", path).winner for path in expected} == expected
    assert winner(table, "b.com", "/x") == "*|rest"
    assert winner(table, "a.com", "/api/x", OWN_HTTPS) == "a.com|host"


def test_explaining_says_what_a_route_of_another_host_lost_by() -> None:
    entries = [
        listener("http", host_order="rank-first"),
        host("a.com", ranked("/", 10, "host"), route("/same", name="exact")),
        host("*", ranked("/", 30, "rest"), route("/same", name="other")),
    ]
    told = explained(entries, "a.com", "/")
    assert [(each.host, each.route) for each in told.candidates if each.wins] == [("*", "rest")]
    reasons = {f"{each.host}|{each.route}": each.reason for each in told.candidates}
    assert reasons["a.com|host"] == "takes the path, but rest has priority 30, this one 10"


def test_of_equal_ranks_the_route_of_the_better_host_wins() -> None:
    entries = [listener("http", host_order="rank-first"), host("*", route("/", name="any")), host("a.com")]
    assert winner(table_of(*entries), "a.com") == "a.com|prefix /"
    told = explained(entries, "a.com")
    assert told.winner == "a.com|prefix /"
    assert told.candidates[1].reason.endswith("has the same rank, and its host a.com goes first")


def test_a_route_that_needs_the_body_is_waited_for_only_if_it_could_win() -> None:
    asks = Compare(subject=Subject.BODY, name="kind", values=("x",))
    entries = [
        listener("http", host_order="rank-first"),
        host("a.com", ranked("/", 20, "first", when=None), ranked("/late", 40, "late", when=asks)),
        host("*", ranked("/", 10, "body", when=asks), ranked("/own", 30, "body2", when=asks)),
    ]
    table = table_of(*entries)
    assert winner(table, "a.com", "/", asked=request("/")) == "a.com|first"
    assert winner(table, "a.com", "/own", asked=request("/own")) is NEEDS_BODY
    assert winner(table, "a.com", "/late", asked=request("/late")) is NEEDS_BODY


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a.x.com", "*.x.com", "**.com", "~^a", "~x", "*"]),
            st.sampled_from(["prefix /", "prefix /a", "exact /a", "string-prefix /a", "regex /a.*"]),
            st.integers(0, 2),
        ),
        max_size=12,
    )
)
def test_the_index_agrees_with_asking_every_route_in_order_of_rank(items: list[tuple[str, str, int]]) -> None:
    hosts: dict[str, list[Route]] = {}
    for number, (name, match, priority) in enumerate(items):
        kind, path = match.split()
        made = route(path, kind, name=str(number)).model_copy(update={"rank": Rank(priority=priority)})
        hosts.setdefault(name, []).append(made)
    entries: list[TableEntry] = [host(name, *routes) for name, routes in hosts.items()]
    entries.append(listener("http", host_order="rank-first"))
    table = table_of(*entries)
    for asked in ("a.x.com", "b.x.com", "c.b.x.com", "a.org", "org"):
        for path in ("/", "/a", "/ab", "/a/b"):
            assert winner(table, asked, path) == explained(entries, asked, path).winner


def test_five_thousand_routes_cost_a_request_what_five_do() -> None:
    def steps(count: int) -> int:
        many = [host(f"h{number}.com", ranked("/", number, "r")) for number in range(count)]
        paths = [ranked(f"/p{number:04}", number, f"p{number}") for number in range(count)]
        table = table_of(*many, host("*", *paths), listener("http", host_order="rank-first"))
        assert winner(table, "h1.com", "/p0002") == "*|p2"
        return lines_run(lambda: winner(table, "h1.com", "/p0002"))

    assert steps(5) == steps(5000) > 20


def lines_run(function: Callable[[], object]) -> int:
    """Count the lines of Python that a call runs."""
    count = 0

    def trace(frame: object, event: str, argument: object) -> object:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)  # type: ignore[arg-type]
    try:
        function()
    finally:
        sys.settrace(before)
    return count


# Hosts that compete


def passing_on(name: str, *routes: Route) -> VirtualHost:
    return host(name, *routes).model_copy(update={"unmatched": "next-host"})


def test_a_route_of_a_lesser_host_goes_first_by_its_priority_if_hosts_pass_requests_on() -> None:
    entries = [
        passing_on("a.com", ranked("/", 10, "short"), ranked("/own", 40, "own")),
        passing_on("~^a.*", ranked("/", 30, "pattern")),
        passing_on("*", ranked("/api", 35, "api"), ranked("/", 20, "rest")),
    ]
    table = table_of(*entries)
    expected = {"/x": "~^a.*|pattern", "/api": "*|api", "/own": "a.com|own"}
    assert {path: winner(table, "a.com", path) for path in expected} == expected
    assert {path: explained(entries, "a.com", path).winner for path in expected} == expected


def test_hosts_compete_up_to_one_that_keeps_its_requests() -> None:
    entries = [
        passing_on("a.com", ranked("/", 10, "first")),
        host("*.com", ranked("/", 5, "kept"), ranked("/up", 20, "up")),
        passing_on("*", ranked("/", 30, "never")),
    ]
    table = table_of(*entries)
    for asked, path, expected in (
        ("a.com", "/", "a.com|first"),
        ("a.com", "/up", "*.com|up"),
        ("b.com", "/", "*.com|kept"),
    ):
        assert winner(table, asked, path) == expected
        assert explained(entries, asked, path).winner == expected


def test_hosts_without_priorities_do_not_compete() -> None:
    entries = [passing_on("a.com", route("/", name="first")), passing_on("*", ranked("/", 30, "rest"))]
    table = table_of(*entries)
    assert winner(table, "a.com") == explained(entries, "a.com").winner == "a.com|first"


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a.x.com", "*.x.com", "**.com", "~^a", "~x", "*"]),
            st.sampled_from(["prefix /", "prefix /a", "exact /a", "string-prefix /a", "regex /a.*"]),
            st.integers(1, 3),
        ),
        max_size=12,
    )
)
def test_hosts_that_all_compete_are_as_on_a_listener_that_is_rank_first(items: list[tuple[str, str, int]]) -> None:
    hosts: dict[str, list[Route]] = {}
    for number, (name, match, priority) in enumerate(items):
        kind, path = match.split()
        made = route(path, kind, name=str(number)).model_copy(update={"rank": Rank(priority=priority)})
        hosts.setdefault(name, []).append(made)
    entries: list[TableEntry] = [passing_on(name, *routes) for name, routes in hosts.items()]
    competing, ranking = table_of(*entries), table_of(*entries, listener("http", host_order="rank-first"))
    for asked in ("a.x.com", "b.x.com", "c.b.x.com", "a.org", "org"):
        for path in ("/", "/a", "/ab", "/a/b"):
            found = winner(competing, asked, path)
            assert found == winner(ranking, asked, path) == explained(entries, asked, path).winner


def test_five_thousand_routes_that_compete_cost_a_request_what_five_do() -> None:
    def steps(count: int) -> int:
        many = [passing_on(f"h{number}.com", ranked("/", number + 1, "r")) for number in range(count)]
        paths = [ranked(f"/p{number:04}", number + 9, f"p{number}") for number in range(count)]
        table = table_of(*many, passing_on("*", *paths))
        assert winner(table, "h1.com", "/p0002") == "*|p2"
        return lines_run(lambda: winner(table, "h1.com", "/p0002"))

    assert steps(5) == steps(5000) > 20
