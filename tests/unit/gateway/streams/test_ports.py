"""Which route has a port or a server name."""

from fakes.gateway.streams import stream
from fakes.gateway.table import ORIGIN
from headgate.common.table import Listener
from headgate.common.table.hosts import MAX_HOST_PATTERNS
from headgate.gateway.balancing.upstream import UpstreamHolder
from headgate.gateway.net.port_set import PortKey
from headgate.gateway.streams.ports import HTTPS_PORT, MAX_LISTENER_PORTS, plan_ports
from headgate.gateway.streams.route import CompiledStream


def compiled(port: int, key: str, **fields: object) -> CompiledStream:
    return CompiledStream(stream(port, key=key, **fields), UpstreamHolder)


def tls(key: str, *names: str, port: int = 443, **fields: object) -> CompiledStream:
    return compiled(port, key, protocol="tls", server_names=names, **fields)


def test_tcp_and_udp_have_ports_of_their_own() -> None:
    plan = plan_ports([compiled(53, "t"), compiled(53, "u", protocol="udp")])
    assert {key: port.only.entry.key for key, port in plan.ports.items()} == {
        PortKey("tcp", 53): "t",
        PortKey("udp", 53): "u",
    }
    assert plan.problems == {}


def on_addresses(key: str, *addresses: str, port: int = 53) -> Listener:
    first, *further = addresses
    said = {"key": key, "protocol": "tcp", "port": port, "address": first, "further_addresses": further}
    return Listener.model_validate({**said, "provenance": ORIGIN})


def test_a_route_is_at_the_addresses_of_its_listener_and_nowhere_without_one() -> None:
    listeners = {"l": on_addresses("l", "192.0.2.1", "192.0.2.2"), "m": on_addresses("m", "192.0.2.3")}
    routes = [compiled(53, "a", listener="l"), compiled(53, "b", listener="m"), compiled(53, "c", listener="gone")]
    plan = plan_ports([*routes, compiled(53, "d")], listeners)
    assert {key.address: port.only.entry.key for key, port in plan.ports.items()} == {
        "192.0.2.1": "a",
        "192.0.2.2": "a",
        "192.0.2.3": "b",
        "": "d",
    }
    assert plan.problems == {}


def test_ports_of_listeners_are_bounded_and_others_are_not_counted() -> None:
    addresses = [f"192.0.2.{number}" for number in range(2)]
    count = MAX_LISTENER_PORTS // len(addresses)
    listeners = {f"{port:04}": on_addresses(f"{port:04}", *addresses, port=port) for port in range(1, count + 2)}
    routes = [compiled(int(key), key, listener=key) for key in listeners]
    plan = plan_ports([compiled(9999, "0"), *routes], listeners)
    assert len(plan.ports) == MAX_LISTENER_PORTS + 1
    assert [*plan.problems] == [f"{count + 1:04}"]


def test_the_least_key_has_a_port_that_several_want_whatever_their_order() -> None:
    routes = [compiled(1, "b"), compiled(1, "a")]
    for order in (routes, routes[::-1]):
        plan = plan_ports(order)
        assert plan.ports[PortKey("tcp", 1)].only is routes[1]
        assert plan.problems == {"b": "port 1 belongs to a"}


def test_tls_and_other_connections_share_a_port() -> None:
    routes = [compiled(1, "a"), tls("c", "x", port=1)]
    port = plan_ports(routes).ports[PortKey("tcp", 1)]
    assert (port.only, port.names.find("x"), port.names.find("y")) == (routes[0], routes[1], None)


def test_exact_names_go_before_wildcards_and_those_before_the_rest() -> None:
    exact, wildcard, rest = tls("e", "a.b.c"), tls("w", "*.b.c"), tls("r")
    names = plan_ports([rest, wildcard, exact]).ports[PortKey("tcp", 443)].names
    assert names.find("a.b.c") is exact
    assert names.find("x.b.c") is wildcard
    for other in ("b.c", "y.x.b.c", ".b.c", "d", ""):
        assert names.find(other) is rest


def test_without_a_route_for_the_rest_other_names_have_none() -> None:
    names = plan_ports([tls("e", "a.b")]).ports[PortKey("tcp", 443)].names
    assert names.find("b") is None
    assert names.find("") is None


def test_routes_of_one_name_differ_by_the_protocols_that_clients_offer() -> None:
    routes = tls("b", "x"), tls("a", "x", alpn=("h2", "h3")), tls("c", "x", alpn=("h2", "h3")), tls("r", alpn=("h2",))
    plan = plan_ports(routes)
    names = plan.ports[PortKey("tcp", 443)].names
    offers = (("x", ("h2",)), ("x", ("http/1.1",)), ("x", ()), ("other", ("h2",)), ("other", ()))
    found = [names.find(*offer) for offer in offers]
    assert [route and route.entry.key for route in found] == ["a", "b", "b", "r", None]
    assert plan.problems == {"c": "x on port 443 belongs to a"}


def test_a_name_and_the_rest_of_a_port_belong_to_one_route() -> None:
    plan = plan_ports([tls("a", "x", "y"), tls("b", "y", "z"), tls("c"), tls("d")])
    names = plan.ports[PortKey("tcp", 443)].names
    assert [names.find(name).entry.key for name in ("x", "y", "z", "other")] == ["a", "a", "b", "c"]
    assert plan.problems == {
        "b": "y on port 443 belongs to a",
        "d": "the rest of port 443 belongs to c",
    }


def test_the_rest_of_the_https_port_is_a_streams_but_for_names_that_https_has() -> None:
    rest = tls("a", port=HTTPS_PORT)
    names = plan_ports([rest, tls("b", "x", port=HTTPS_PORT)]).ports[PortKey("tcp", HTTPS_PORT)].names
    assert (names.find("other"), names.find("other", has_rest=False)) == (rest, None)


def test_one_route_that_expects_proxy_headers_asks_for_its_whole_port() -> None:
    plan = plan_ports([tls("a", "x"), tls("b", "y", accept_proxy_protocol=True)])
    assert plan.ports[PortKey("tcp", 443)].expects_proxy_header


def test_a_route_that_cannot_be_compiled_keeps_its_port_and_says_why() -> None:
    route = compiled(1, "a", allowed_networks=("nonsense",))
    plan = plan_ports([route])
    assert plan.ports[PortKey("tcp", 1)].only is route
    assert "allowed_networks: 'nonsense'" in plan.problems["a"]


def test_patterns_go_behind_names_and_wildcards_the_longer_first() -> None:
    exact, wildcard, rest = tls("e", "a.b.c"), tls("w", "*.b.c"), tls("r")
    short, long = tls("s", "~b"), tls("l", r"~^[xy]\.b")
    names = plan_ports([rest, short, long, wildcard, exact]).ports[PortKey("tcp", 443)].names
    assert [names.find(name).entry.key for name in ("a.b.c", "x.b.c", "x.b.d", "z.b.d", "d", "")] == list("ewlsrr")


def test_of_routes_that_take_a_name_the_one_with_the_highest_priority_wins() -> None:
    exact, wildcard = tls("e", "a.b.c", priority=20), tls("w", "*.b.c", priority=19)
    pattern, rest = tls("p", "~b", priority=21), tls("r", priority=-1)
    names = plan_ports([rest, pattern, wildcard, exact]).ports[PortKey("tcp", 443)].names
    assert [names.find(name).entry.key for name in ("a.b.c", "x.b.c", "x.c.c")] == ["p", "p", "r"]
    names = plan_ports([tls("r", priority=1), tls("e", "a.b.c", "x")]).ports[PortKey("tcp", 443)].names
    assert names.find("x").entry.key == "r"


def test_a_pattern_that_cannot_be_had_is_left_out_and_named() -> None:
    plan = plan_ports([tls("a", "~(", "x"), tls("b")])
    names = plan.ports[PortKey("tcp", 443)].names
    assert [names.find(name).entry.key for name in ("x", "y")] == ["a", "b"]
    assert "no RE2 pattern" in plan.problems["a"]


def test_a_port_has_a_bounded_number_of_patterns_the_longest() -> None:
    plan = plan_ports([tls(f"{number:03}", f"~^{'a' * number}$") for number in range(1, MAX_HOST_PATTERNS + 2)])
    assert list(plan.problems) == ["001"]
    assert "at most 256 patterns" in plan.problems["001"]


def test_a_wildcard_of_any_depth_goes_behind_one_of_one_label_and_longer_ones() -> None:
    names = ("**.foo.com", "**.com", "*.foo.com", "**.b.foo.com")
    port = plan_ports([tls(name, name) for name in names]).ports[PortKey("tcp", 443)]
    asked = {"a.foo.com": "*.foo.com", "x.a.foo.com": "**.foo.com", "x.b.foo.com": "**.b.foo.com", "foo.com": "**.com"}
    assert port.names is not None
    for name, key in asked.items():
        found = port.names.find(name)
        assert found is not None
        assert found.entry.key == key
    assert port.names.find("com") is None
