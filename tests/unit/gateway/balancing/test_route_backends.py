"""Splits, canaries and sessions: which backend of a route a request goes to, and whether it stays there."""

from collections import Counter
from random import Random

import pytest

from fakes.gateway.balanced import World, slot_of
from fakes.gateway.requests import AskedRequest, request
from fakes.gateway.table import ORIGIN, compiled, endpoint, host, route, upstream
from headgate.common.table import (
    Backend,
    Canary,
    Compare,
    Condition,
    Endpoint,
    Operator,
    Stickiness,
    Subject,
    Upstream,
)
from headgate.gateway.balancing.backends import CompiledBackend
from headgate.gateway.balancing.compile import compile_upstream
from headgate.gateway.balancing.sessions import parse_session
from headgate.gateway.balancing.upstream import UpstreamHolder
from headgate.gateway.errors import BadMatch
from headgate.gateway.proxy.endpoint_pool import EndpointPool
from headgate.gateway.table.backends import join_backends
from headgate.gateway.table.route import CompiledRoute

STICKY = Stickiness(cookie="ROUTE")
PERSISTENT = Stickiness(cookie="ROUTE", mode="persistent")


def header(name: str, value: str) -> Condition:
    return Compare(subject=Subject.HEADER, name=name, operator=Operator.EQUALS, values=(value,))


class Site:
    """A route and its upstreams, whose endpoints may change."""

    def __init__(self, *backends: tuple[str, int], seed: int = 1, **fields: object) -> None:
        self.world = World()
        entry = route("/").model_copy(
            update={"backends": tuple(Backend(upstream=k, weight=w) for k, w in backends), **fields}
        )
        names = {key for key, _ in backends} | {canary.upstream for canary in entry.canaries}
        self.holders = {name: UpstreamHolder(name) for name in names}
        self.route = CompiledRoute(
            "foo.com",
            entry,
            join_backends(
                entry,
                [(CompiledBackend(self.holders[key]), weight) for key, weight in backends],
                [CompiledBackend(self.holders[canary.upstream]) for canary in entry.canaries],
                Random(seed),
            ),
        )

    def serve(self, key: str, *endpoints: Endpoint) -> "Site":
        holder = self.holders[key]
        entry = Upstream(key=key, endpoints=endpoints, provenance=ORIGIN)
        previous = holder.balancer if holder.balancer.slots else None
        holder.balancer = compile_upstream(entry, self.world.directory, 0, previous=previous)
        return self

    def pool(self, source: AskedRequest, tried: tuple[EndpointPool, ...] = ()) -> EndpointPool:
        found = self.route.choose(tried, source)
        assert found is not None
        return found

    def visit(self, cookie: str = "", **headers: str) -> tuple[str, str]:
        """Where a request with this cookie goes, and the cookie that the client has then."""
        lines = dict(headers)
        if cookie:
            lines["Cookie"] = f"other=1; ROUTE={cookie}"
        source = request(headers=lines)
        pool = self.pool(source)
        line = self.route.answer_lines(source, pool).decode()
        if line:
            assert line.startswith("Set-Cookie: ROUTE=")
            cookie = line.removeprefix("Set-Cookie: ROUTE=").partition(";")[0]
        return str(pool), cookie


def test_a_plain_route_does_not_look_at_the_request_and_sets_nothing() -> None:
    site, source = Site(("main", 1)).serve("main", endpoint(1)), request()
    pool = site.pool(source)
    assert site.route.answer_lines(source, pool) == b""
    assert not source.looked_at


def test_a_split_gives_each_backend_its_weight() -> None:
    site = Site(("main", 9), ("next", 1)).serve("main", endpoint(1)).serve("next", endpoint(2))
    assert Counter(str(site.pool(request())) for _ in range(100)) == {"10.0.0.1:80": 90, "10.0.0.2:80": 10}


def test_a_split_without_sessions_sets_no_cookie() -> None:
    site, source = Site(("main", 1), ("next", 1)).serve("main", endpoint(1)).serve("next", endpoint(2)), request()
    assert site.route.answer_lines(source, site.pool(source)) == b""


def test_a_retry_stays_with_the_backend() -> None:
    site = (
        Site(("main", 1), ("next", 1)).serve("main", endpoint(1), endpoint(2)).serve("next", endpoint(3), endpoint(4))
    )
    for _ in range(8):
        source = request()
        first = site.pool(source)
        second = site.pool(source, (first,))
        assert {str(first), str(second)} in ({"10.0.0.1:80", "10.0.0.2:80"}, {"10.0.0.3:80", "10.0.0.4:80"})


def canary_site(**fields: object) -> Site:
    canary = Canary(upstream="canary", **fields)  # type: ignore[arg-type]
    return Site(("main", 1), canaries=(canary,)).serve("main", endpoint(1)).serve("canary", endpoint(2))


def test_a_canary_gets_its_share() -> None:
    site = canary_site(share=0.2)
    counts = Counter(str(site.pool(request())) for _ in range(2000))
    assert counts["10.0.0.2:80"] == pytest.approx(400, abs=60)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [({"X-Canary": "always"}, "10.0.0.2:80"), ({"X-Canary": "never"}, "10.0.0.1:80"), ({}, "10.0.0.2:80")],
)
def test_a_canary_decides_by_when_then_unless_then_share(headers: dict[str, str], expected: str) -> None:
    site = canary_site(when=header("x-canary", "always"), unless=header("x-canary", "never"), share=1.0)
    assert str(site.pool(request(headers=headers))) == expected


def test_when_goes_before_unless() -> None:
    site = canary_site(when=header("a", "1"), unless=header("b", "1"))
    assert str(site.pool(request(headers={"A": "1", "B": "1"}))) == "10.0.0.2:80"


def test_a_canary_without_share_gets_only_what_it_asks_for() -> None:
    site = canary_site(when=header("a", "1"))
    assert {str(site.pool(request())) for _ in range(50)} == {"10.0.0.1:80"}


def test_the_first_canary_that_takes_a_request_has_it() -> None:
    canaries = (Canary(upstream="a", when=header("x", "1")), Canary(upstream="b", share=1.0))
    site = Site(("main", 1), canaries=canaries)
    for number, key in enumerate(("main", "a", "b"), 1):
        site.serve(key, endpoint(number))
    assert str(site.pool(request(headers={"X": "1"}))) == "10.0.0.2:80"
    assert str(site.pool(request())) == "10.0.0.3:80"


def test_a_canary_alone_serves_its_share_and_refuses_the_rest() -> None:
    site = Site(canaries=(Canary(upstream="canary", when=header("x", "1")),)).serve("canary", endpoint(2))
    assert str(site.pool(request(headers={"X": "1"}))) == "10.0.0.2:80"
    assert site.route.choose((), request()) is None


def test_a_canary_that_looks_at_the_body_says_so() -> None:
    by_body = Compare(subject=Subject.BODY, name="a", operator=Operator.EQUALS, values=("1",))
    assert canary_site(unless=by_body).route.needs_body
    assert not canary_site(when=header("a", "1")).route.needs_body


def test_a_canary_condition_that_cannot_be_compiled_names_its_field() -> None:
    bad = Compare(subject=Subject.PATH, operator=Operator.REGEX, values=("(",))
    with pytest.raises(BadMatch, match=r"canaries\[0\]\.unless"):
        canary_site(unless=bad)


def sticky_site(stickiness: Stickiness = STICKY, count: int = 3) -> Site:
    return Site(("main", 1), stickiness=stickiness).serve("main", *(endpoint(n) for n in range(1, count + 1)))


@pytest.mark.parametrize("stickiness", [STICKY, PERSISTENT])
def test_a_client_gets_one_cookie_and_stays(stickiness: Stickiness) -> None:
    site = sticky_site(stickiness)
    where, cookie = site.visit()
    assert cookie
    assert [site.visit(cookie) for _ in range(6)] == [(where, cookie)] * 6


def test_new_clients_are_balanced() -> None:
    site = sticky_site()
    assert Counter(site.visit()[0] for _ in range(9)) == {f"10.0.0.{n}:80": 3 for n in (1, 2, 3)}


def test_another_worker_understands_the_cookie() -> None:
    where, cookie = sticky_site().visit()
    other = sticky_site()
    other.visit()
    assert other.visit(cookie) == (where, cookie)


def test_the_cookie_does_not_tell_the_address() -> None:
    _, cookie = sticky_site(count=1).visit()
    assert "10" not in cookie or "10.0.0.1" not in cookie
    assert "main" not in cookie
    session = parse_session(cookie.encode())
    assert session is not None
    assert (list(map(len, session.backends)), len(session.endpoint)) == ([8], 12)


@pytest.mark.parametrize("forged", ["x", "x.y", ".", "a.b.c", "main.10.0.0.1:80"])
def test_a_cookie_that_is_not_ours_is_replaced(forged: str) -> None:
    _, cookie = sticky_site().visit(forged)
    assert cookie != forged


@pytest.mark.parametrize("stickiness", [STICKY, PERSISTENT])
def test_a_client_whose_endpoint_is_gone_gets_another_and_a_new_cookie(stickiness: Stickiness) -> None:
    site = sticky_site(stickiness, 1)
    _, cookie = site.visit()
    site.serve("main", endpoint(2))
    where, renewed = site.visit(cookie)
    assert where == "10.0.0.2:80"
    assert renewed != cookie


def test_a_client_stays_when_endpoints_are_added() -> None:
    site = sticky_site()
    where, cookie = site.visit()
    site.serve("main", *(endpoint(n) for n in range(1, 9)))
    assert site.visit(cookie) == (where, cookie)


def test_existing_sessions_finish_on_a_terminating_endpoint_and_new_ones_do_not_begin() -> None:
    site = sticky_site(count=1)
    where, cookie = site.visit()
    site.serve("main", endpoint(1, ready=False, serving=True, terminating=True), endpoint(2))
    assert site.visit(cookie) == (where, cookie)
    assert {site.visit()[0] for _ in range(5)} == {"10.0.0.2:80"}


def test_existing_sessions_finish_on_an_endpoint_without_weight() -> None:
    site = sticky_site(count=1)
    where, cookie = site.visit()
    site.serve("main", endpoint(1, weight=0), endpoint(2))
    assert site.visit(cookie) == (where, cookie)


def test_a_balanced_session_leaves_an_endpoint_that_is_not_ready_and_a_persistent_one_does_not() -> None:
    for stickiness, expected in ((STICKY, "10.0.0.2:80"), (PERSISTENT, "10.0.0.1:80")):
        site = sticky_site(stickiness, 1)
        _, cookie = site.visit()
        site.serve("main", endpoint(1, ready=False, serving=False), endpoint(2))
        assert site.visit(cookie)[0] == expected


def test_a_balanced_session_leaves_an_unhealthy_endpoint_and_a_persistent_one_does_not() -> None:
    for stickiness, moves in ((STICKY, True), (PERSISTENT, False)):
        site = sticky_site(stickiness)
        where, cookie = site.visit()
        slot_of(site.holders["main"].balancer, 1).mark(is_healthy=False)
        assert where == "10.0.0.1:80"
        assert (site.visit(cookie) != (where, cookie)) is moves


def test_a_balanced_session_leaves_a_terminating_endpoint_that_is_unhealthy() -> None:
    site = sticky_site(count=1)
    _, cookie = site.visit()
    slot = slot_of(site.holders["main"].balancer, 1)
    site.serve("main", endpoint(1, ready=False, serving=True, terminating=True), endpoint(2))
    slot.mark(is_healthy=False)
    assert site.visit(cookie)[0] == "10.0.0.2:80"


def test_sessions_stay_where_they_are_while_health_is_ignored() -> None:
    site = sticky_site()
    where, cookie = site.visit()
    for slot in site.holders["main"].balancer.slots:
        slot.mark(is_healthy=False)
    assert site.visit(cookie) == (where, cookie)


def retried(stickiness: Stickiness) -> bytes:
    """The answer's lines after a session's endpoint failed and another answered."""
    site = sticky_site(stickiness)
    _, cookie = site.visit()
    source = request(headers={"Cookie": f"ROUTE={cookie}"})
    first = site.pool(source)
    second = site.pool(source, (first,))
    assert second is not first
    return site.route.answer_lines(source, second)


def test_a_balanced_session_moves_to_the_endpoint_that_answered_a_retry() -> None:
    assert retried(STICKY).startswith(b"Set-Cookie: ROUTE=")


def test_a_persistent_session_outlasts_a_retry() -> None:
    assert retried(PERSISTENT) == b""


def sticky_canary(share: float = 0.5) -> Site:
    canaries = (Canary(upstream="canary", share=share, when=header("x", "1")),)
    site = Site(("main", 1), canaries=canaries, stickiness=STICKY)
    return site.serve("main", endpoint(1), endpoint(2)).serve("canary", endpoint(3), endpoint(4))


def test_a_client_stays_in_or_out_of_a_canary() -> None:
    site = sticky_canary()
    clients = [site.visit() for _ in range(30)]
    assert len({where for where, _ in clients}) == 4
    assert [site.visit(cookie) for _, cookie in clients] == clients


def test_a_session_goes_before_the_canary_s_conditions() -> None:
    site = sticky_canary(share=0.0)
    where, cookie = site.visit()
    assert where in ("10.0.0.1:80", "10.0.0.2:80")
    assert site.visit(cookie, X="1") == (where, cookie)


def test_a_client_of_a_canary_stays_in_it_when_its_endpoint_is_gone() -> None:
    site = sticky_canary(share=0.0)
    _, cookie = site.visit(X="1")
    site.serve("canary", endpoint(5))
    assert site.visit(cookie)[0] == "10.0.0.5:80"


def test_a_client_of_a_canary_that_lost_all_endpoints_goes_back() -> None:
    site = sticky_canary(share=0.0)
    _, cookie = site.visit(X="1")
    site.serve("canary")
    assert site.visit(cookie)[0] in ("10.0.0.1:80", "10.0.0.2:80")


def test_sides_of_a_canary_that_share_endpoints_are_told_apart() -> None:
    site = sticky_canary(share=0.0).serve("main", endpoint(1)).serve("canary", endpoint(1))
    where, in_canary = site.visit(X="1")
    assert site.visit()[0] == where
    assert site.visit()[1] != in_canary
    site.serve("canary", endpoint(7))
    assert site.visit(in_canary)[0] == "10.0.0.7:80"


def cookie_line(stickiness: Stickiness, scheme: str = "http") -> str:
    site, source = sticky_site(stickiness, 1), request(scheme=scheme)
    return site.route.answer_lines(source, site.pool(source)).decode()


@pytest.mark.parametrize(
    ("fields", "scheme", "attributes"),
    [
        ({}, "http", "; Path=/; HttpOnly"),
        ({}, "https", "; Path=/; HttpOnly; Secure"),
        ({"secure": True}, "http", "; Path=/; HttpOnly; Secure"),
        ({"secure": False, "http_only": False}, "https", "; Path=/"),
        (
            {"path": "/app", "domain": "foo.com", "max_age_s": 60, "same_site": "Lax"},
            "http",
            "; Path=/app; Domain=foo.com; Max-Age=60; HttpOnly; SameSite=Lax",
        ),
    ],
)
def test_the_cookie_has_the_attributes_that_were_asked_for(
    fields: dict[str, object], scheme: str, attributes: str
) -> None:
    line = cookie_line(Stickiness(cookie="ROUTE", **fields), scheme)  # type: ignore[arg-type]
    assert line.endswith(attributes + "\r\n")


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"cookie": "a b"}, "stickiness.cookie"),
        ({"cookie": ""}, "stickiness.cookie"),
        ({"path": "/\r\nX: 1"}, "stickiness.path"),
        ({"domain": "foo.com; Secure"}, "stickiness.domain"),
    ],
)
def test_nothing_but_a_cookie_can_be_set(fields: dict[str, str], place: str) -> None:
    with pytest.raises(BadMatch, match=place):
        sticky_site(Stickiness(**{"cookie": "ROUTE", **fields}))  # type: ignore[arg-type]


def test_an_endpoint_that_left_while_it_answered_gets_no_cookie() -> None:
    site, source = sticky_site(count=1), request()
    pool = site.pool(source)
    site.serve("main", endpoint(2))
    assert site.route.answer_lines(source, pool) == b""


def test_unavailable_names_canaries_too() -> None:
    site = Site(("main", 1), canaries=(Canary(upstream="canary", share=1.0),)).serve("main", endpoint(1))
    assert site.route.choose((), request()) is None
    assert site.route.unavailable == "canary is not in the table"
    assert site.route.upstream_label == "canary,main"


def test_a_route_whose_cookie_cannot_be_set_answers_with_the_reason_and_costs_no_other() -> None:
    bad = route("/bad").model_copy(update={"stickiness": Stickiness(cookie="a b")})
    table = compiled([host("foo.com", bad, route("/", "prefix", "main")), upstream("main", endpoint(1))]).table
    assert table is not None
    broken, good = table.match(b"foo.com", b"/bad/x", request()), table.match(b"foo.com", b"/", request())
    assert isinstance(broken, CompiledRoute)
    assert isinstance(good, CompiledRoute)
    assert broken.choose((), request()) is None
    assert broken.policies is not None
    assert "stickiness.cookie" in broken.policies.fault
    assert good.choose((), request()) is not None
