"""Virtual hosts on listeners: host patterns, isolation on one port, and which host order a listener has."""

import gc
import logging
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from fakes.gateway.requests import PLAIN
from fakes.gateway.table import ORIGIN, compiled, host, listener, load, new_compiler, route
from fakes.gateway.winners import explained, table_of, winner
from headgate.common.table import (
    HostKey,
    Listener,
    ListenerDefaults,
    TableEntry,
    Timeouts,
    VirtualHost,
)
from headgate.common.table.hosts import MAX_HOST_PATTERN, MAX_HOST_PATTERNS
from headgate.common.table_image import TableImage
from headgate.gateway.table.compiler import TableCompiler
from headgate.gateway.table.explaining.explain import explain
from headgate.gateway.table.listener_ports import (
    MAX_PORTS,
    OWN_HTTP,
    OWN_HTTPS,
    ListenerPort,
    own_ports,
    plan_listeners,
)
from headgate.gateway.table.route import CompiledRoute
from headgate.gateway.table.view import CompilerView, EntryView

SHOPS = r"~^shop-[0-9]+\.foo\.com$"


# Keys


@given(
    st.sampled_from(["foo.com", "*.foo.com", "*", SHOPS, "~^(a|b)$", "~|"]),
    st.lists(st.sampled_from("ab/c"), unique=True),
)
def test_a_key_of_a_virtual_host_says_host_and_listeners(name: str, keys: list[str]) -> None:
    found = VirtualHost(host=name, routes=(), listeners=tuple(sorted(keys)))
    assert HostKey.read(found.key) == (found.host, found.listeners)
    assert "|" not in found.key


def test_a_virtual_host_without_listeners_is_encoded_as_before_there_were_any() -> None:
    encoded = host("foo.com").model_dump(mode="json", exclude_defaults=True)
    assert encoded.keys() == {"host", "routes"}
    assert host("foo.com").key == "foo.com"


@pytest.mark.parametrize(
    "fields",
    [
        {"key": "a b"},
        {"key": "a@b"},
        {"key": "http", "protocol": "https"},
        {"key": "http", "port": 80},
        {"protocol": "tcp"},
        {"address": "127.0.0.1"},
        {"host": "~" + "a" * MAX_HOST_PATTERN},
        {"host": "user@foo.com"},
    ],
)
def test_a_listener_that_cannot_be_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Listener.model_validate({"key": "web", "protocol": "http", "provenance": ORIGIN, **fields})


# Host patterns


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("shop-1.foo.com", SHOPS),
        ("shop-x.foo.com", "**.foo.com"),
        ("shop-2.foo.com", "shop-2.foo.com"),
        ("myshop.org", "~shop"),
        ("other.org", "*"),
    ],
)
def test_hosts_go_before_patterns_and_patterns_before_any(asked: str, expected: str) -> None:
    entries = [host(name) for name in (SHOPS, "~shop", "shop-2.foo.com", "*")]
    if expected == "**.foo.com":
        entries.append(host("**.foo.com"))
    assert winner(table_of(*entries), asked) == f"{HostKey(expected, ())}|prefix /"
    assert explained(entries, asked).winner == f"{HostKey(expected, ())}|prefix /"


def test_of_several_patterns_the_longer_one_takes_a_host() -> None:
    entries = [host("~shop"), host("~^shop-[0-9]"), host("~^sho")]
    assert winner(table_of(*entries), "shop-1.org") == "~^shop-[0-9]|prefix /"
    assert explained(entries, "shop-1.org").winner == "~^shop-[0-9]|prefix /"


def test_wildcards_go_before_patterns() -> None:
    assert winner(table_of(host("*.foo.com"), host("~^a[.]foo[.]com$")), "a.foo.com") == "*.foo.com|prefix /"


def test_a_pattern_with_a_bar_has_a_name_without_one() -> None:
    assert winner(table_of(host("~^(a|b)[.]com$")), "b.com") == "~^(a%7Cb)[.]com$|prefix /"


def test_a_pattern_that_is_none_costs_its_own_host_only(caplog: pytest.LogCaptureFixture) -> None:
    entries = [host("~("), host("~^a"), host("*")]
    with caplog.at_level(logging.ERROR):
        table = table_of(*entries)
    assert "a host pattern is not served" in caplog.text
    assert (winner(table, "a.com"), winner(table, "(")) == ("~^a|prefix /", "*|prefix /")
    assert explained(entries, "x.com").winner == "*|prefix /"


def test_patterns_beyond_the_bound_are_not_served() -> None:
    entries = [host(f"~^{number:05}x") for number in range(MAX_HOST_PATTERNS + 1)]
    table = table_of(*entries)
    assert winner(table, f"{MAX_HOST_PATTERNS - 1:05}x") is not None
    assert winner(table, f"{MAX_HOST_PATTERNS:05}x") is None
    assert explained(entries, f"{MAX_HOST_PATTERNS:05}x").winner is None


def test_patterns_come_and_go_with_revisions() -> None:
    compiler, image = new_compiler(), TableImage([host("*"), host("**.a.com")])
    load(compiler, image, (1, 1))
    image.put(host("~b"))
    load(compiler, image, (1, 2))
    assert compiler.table is not None
    assert winner(compiler.table, "b.org") == "~b|prefix /"
    patterns = compiler.table.hosts_of("http").patterns
    image.put(host("~b", route("/new")))
    load(compiler, image, (1, 3))
    assert winner(compiler.table, "b.org", "/new") == "~b|prefix /new"
    assert compiler.table.hosts_of("http").patterns is patterns
    image.discard("hosts", "~b")
    image.discard("hosts", "**.a.com")
    load(compiler, image, (1, 4))
    assert winner(compiler.table, "b.org") == winner(compiler.table, "x.a.com") == "*|prefix /"


# Listeners on the gateway's own ports

ISOLATED: tuple[TableEntry, ...] = (
    listener("gw/any", protocol="http", host="*.foo.com"),
    listener("gw/one", host="a.foo.com"),
    host("foo.com", on=("http",)),
    host("**.foo.com", on=("gw/any",)),
    host("a.foo.com", route("/a"), on=("gw/one",)),
)


@pytest.mark.parametrize(
    ("asked", "path", "expected"),
    [
        ("a.foo.com", "/a", "a.foo.com@gw/one|prefix /a"),
        ("a.foo.com", "/b", None),
        ("b.foo.com", "/b", "**.foo.com@gw/any|prefix /"),
        ("c.b.foo.com", "/b", None),
        ("foo.com", "/", "foo.com@http|prefix /"),
    ],
)
def test_a_request_is_taken_by_routes_of_the_most_specific_listener_only(
    asked: str, path: str, expected: str | None
) -> None:
    assert winner(table_of(*ISOLATED), asked, path) == expected
    assert explained(ISOLATED, asked, path).winner == expected


def test_explaining_asks_the_listeners_of_the_address_that_a_url_names() -> None:
    entries = [
        *(listener(f"gw/{last}", address=f"10.0.0.{last}", port=80) for last in (1, 2)),
        listener("gw/v6", address="fd00::1", further_addresses=("10.0.0.3",), port=8080),
        *(host("foo.com", on=(f"gw/{name}",)) for name in ("1", "2", "v6")),
    ]

    def found(asked: str) -> str:
        return explain(EntryView(entries), "GET", asked, "/", {"Host": "foo.com"}).listener

    asked = ("10.0.0.1", "10.0.0.2:80", "[fd00::1]:8080", "10.0.0.3:8080", "foo.com", "10.0.0.9")
    assert [found(each) for each in asked] == ["gw/1", "gw/2", "gw/v6", "gw/v6", "http", "http"]
    assert not found("10.0.0.1:8080")
    told = explain(EntryView(entries), "GET", "foo.com", "/").verdict
    assert "; listeners at 10.0.0.1, 10.0.0.2, fd00::1 do: name the address in the URL" in told


def test_a_listener_with_several_addresses_has_the_port_at_each() -> None:
    table = table_of(listener("gw/a", address="10.0.0.1", further_addresses=("10.0.0.2",), port=80))
    assert {(each.address, each.port) for each in table.plan.ports if not each.is_own} == {
        ("10.0.0.1", 80),
        ("10.0.0.2", 80),
    }


def test_further_addresses_need_a_first_one() -> None:
    with pytest.raises(ValidationError, match="further_addresses are besides an address"):
        listener("gw/a", port=80, further_addresses=("10.0.0.2",))


def test_explaining_names_the_listener() -> None:
    assert explained(ISOLATED, "a.foo.com").listener == "gw/one"
    assert explained(ISOLATED, "c.b.foo.com").listener == "http"


def test_a_host_without_listeners_is_on_both_ports_of_the_gateway() -> None:
    table = table_of(host("foo.com"))
    assert winner(table, "foo.com", port=OWN_HTTP) == winner(table, "foo.com", port=OWN_HTTPS) == "foo.com|prefix /"
    assert table.hosts_of("http") is table.hosts_of("https")


def test_one_host_has_different_routes_on_different_listeners() -> None:
    entries = [
        listener("gw/a", port=8001),
        listener("gw/b", port=8002),
        host("foo.com", route("/a"), on=("gw/a",)),
        host("foo.com", route("/b"), on=("gw/b",)),
    ]
    table = table_of(*entries)
    at_a, at_b = ListenerPort("", 8001), ListenerPort("", 8002)
    assert winner(table, "foo.com", "/a", at_a) == "foo.com@gw/a|prefix /a"
    assert winner(table, "foo.com", "/a", at_b) is winner(table, "foo.com", "/a", OWN_HTTP) is None
    assert winner(table, "foo.com", "/b", at_b) == "foo.com@gw/b|prefix /b"
    assert explained(entries, "foo.com:8001", "/a").winner == "foo.com@gw/a|prefix /a"
    assert explained(entries, "foo.com:8002", "/a").winner is None


def test_a_route_in_several_listeners_is_compiled_once() -> None:
    table = table_of(
        listener("gw/a", port=8001), listener("gw/b", port=8002), host("foo.com", on=("gw/a", "gw/b", "https"))
    )
    found = [
        router.match(b"foo.com", b"/", PLAIN)
        for port in (ListenerPort("", 8001), ListenerPort("", 8002), OWN_HTTPS)
        if (router := table.router(port))
    ]
    assert len(found) == 3
    assert found[0] is found[1] is found[2]
    assert winner(table, "foo.com", port=OWN_HTTP) is None


def test_several_virtual_hosts_of_one_host_on_a_listener_are_asked_as_one() -> None:
    compiler = new_compiler()
    image = TableImage(
        [
            listener("gw/a"),
            listener("gw/b", port=8002),
            host("foo.com", route("/long/path"), route("/same"), on=("gw/a", "gw/b")),
            host("foo.com", route("/"), route("/same"), on=("gw/b", "gw/c")),
        ]
    )
    load(compiler, image, (1, 1))
    at = ListenerPort("", 8002)

    def taken() -> list[str | None]:
        assert compiler.table is not None
        return [winner(compiler.table, "foo.com", path, at) for path in ("/long/path", "/x", "/same")]

    first, second = "foo.com@gw/a,gw/b", "foo.com@gw/b,gw/c"
    assert taken() == [f"{first}|prefix /long/path", f"{second}|prefix /", f"{first}|prefix /same"]
    image.discard("hosts", first)
    load(compiler, image, (1, 2))
    assert taken() == [f"{second}|prefix /", f"{second}|prefix /", f"{second}|prefix /same"]


def test_a_port_number_of_the_gateways_own_is_its_own_port() -> None:
    compiler = TableCompiler(new_compiler().directory, lambda *_: None, own_ports=own_ports([8080, 80], [0]))  # type: ignore[arg-type,return-value]
    load(compiler, TableImage([listener("gw/a", port=80, host="a.com"), host("a.com", on=("gw/a",))]))
    assert compiler.table is not None
    assert winner(compiler.table, "a.com") == "a.com@gw/a|prefix /"
    assert compiler.table.router(ListenerPort("", 80)) is None


@pytest.mark.parametrize(
    ("second", "problem"),
    [
        (listener("gw/b", port=8001, host="*"), "host * on this port belongs to listener gw/a"),
        (listener("gw/b", port=8001, host="~("), "host: '(' is no RE2 pattern: missing ): ("),
    ],
)
def test_a_listener_that_cannot_share_its_port_is_left_out_and_logged(
    second: Listener, problem: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        table = table_of(listener("gw/a", port=8001), second)
    assert table.plan.problems == {"gw/b": problem}
    assert table.plan.refused == {ListenerPort("", 8001): problem}
    assert "a listener is not served as it asks" in caplog.text


def test_a_table_opens_a_bounded_number_of_ports_and_the_own_ones_besides() -> None:
    many = [listener(f"gw/{number:04}", port=10_000 + number) for number in range(MAX_PORTS + 1)]
    more = [listener("gw/a", host="a.com"), listener("gw/same", port=10_000, host="b.com")]
    plan = table_of(*many, *more).plan
    assert len(plan.ports) == MAX_PORTS + 2
    last = 10_000 + MAX_PORTS
    assert plan.problems == {
        f"gw/{MAX_PORTS:04}": f"port {last} is one too many: {MAX_PORTS} besides the gateway's own are opened"
    }


def test_ten_thousand_listeners_of_one_port_are_planned_in_steps_that_traffic_can_wait_for() -> None:
    many = [listener(f"gw/{number:05}", port=8001, host=f"h{number}.com") for number in range(10_000)]
    steps, count = plan_listeners(many, {}), 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            plan = end.value
            break
        count += 1
    assert count > 600
    assert plan.problems == {}


# Views


def test_both_views_explain_alike_with_listeners() -> None:
    compiler = compiled(ISOLATED)
    for asked in ("a.foo.com", "b.foo.com", "foo.com"):
        by_table = explain(CompilerView(compiler), "GET", asked, "/a")
        assert by_table.model_copy(update={"version": ""}) == explained(ISOLATED, asked, "/a")


# Defaults


def test_of_a_listener_with_defaults_only_what_changed_is_compiled_again() -> None:
    on_it = listener("a", port=80, defaults=ListenerDefaults(timeouts=Timeouts(read_s=7.0)))
    image = TableImage([on_it, *(host(f"{number}.com", on=("a",)) for number in range(60))])
    compiler = new_compiler()
    load(compiler, image, (1, 1))
    before = {name: found_at(compiler, name) for name in ("1.com", "2.com", "3.com")}
    image.put(host("1.com", route("/new"), on=("a",)))
    image.discard("hosts", str(HostKey("2.com", ("a",))))
    image.put(host("new.com", on=("a",)))
    load(compiler, image, (1, 2))
    assert found_at(compiler, "3.com") is before["3.com"]
    assert found_at(compiler, "1.com", "/old") is found_at(compiler, "2.com") is None
    changed = (found_at(compiler, "1.com", "/new"), found_at(compiler, "3.com"), found_at(compiler, "new.com"))
    assert [found.read_timeout_s for found in changed if found is not None] == [7.0] * 3


def test_a_route_that_a_listener_leaves_as_it_is_goes_with_its_host() -> None:
    defaults = ListenerDefaults(timeouts=Timeouts(read_s=7.0))
    own = route("/").model_copy(update={"timeouts": Timeouts(read_s=1.0)})
    image = TableImage([listener("a", port=80, defaults=defaults), host("1.com", own, on=("a",))])
    compiler = new_compiler()
    load(compiler, image, (1, 1))
    found = found_at(compiler, "1.com")
    assert found is found_at(compiler, "1.com")
    assert found is not None
    gone = weakref.ref(found)
    image.discard("hosts", str(HostKey("1.com", ("a",))))
    load(compiler, image, (1, 2))
    del found
    gc.collect()
    assert gone() is None


def found_at(compiler: TableCompiler, name: str, path: str = "/") -> CompiledRoute | None:
    """Return the route of a request on port 80."""
    assert compiler.table is not None
    router = compiler.table.router(ListenerPort("", 80, "http"))
    found = router.match(name.encode(), path.encode(), PLAIN) if router is not None else None
    assert found is None or isinstance(found, CompiledRoute)
    return found
