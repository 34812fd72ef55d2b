"""Which route has a port or a server name."""

from fakes.gateway.streams import stream
from headgate.gateway.balancing.upstream import UpstreamHolder
from headgate.gateway.net.port_set import PortKey
from headgate.gateway.streams.ports import HTTPS_PORT, plan_ports
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


def test_the_least_key_has_a_port_that_several_want_whatever_their_order() -> None:
    routes = [compiled(1, "b"), compiled(1, "a"), tls("c", "x", port=1)]
    for order in (routes, routes[::-1]):
        plan = plan_ports(order)
        assert plan.ports[PortKey("tcp", 1)].only is routes[1]
        assert plan.problems == {"b": "port 1 belongs to a", "c": "port 1 belongs to a"}


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


def test_a_name_and_the_rest_of_a_port_belong_to_one_route() -> None:
    plan = plan_ports([tls("a", "x", "y"), tls("b", "y", "z"), tls("c"), tls("d"), compiled(443, "e")])
    names = plan.ports[PortKey("tcp", 443)].names
    assert [names.find(name).entry.key for name in ("x", "y", "z", "other")] == ["a", "a", "b", "c"]
    assert plan.problems == {
        "b": "y on port 443 belongs to a",
        "d": "the rest of port 443 belongs to c",
        "e": "port 443 belongs to a, which is for TLS",
    }


def test_the_rest_of_the_https_port_is_never_a_streams() -> None:
    plan = plan_ports([tls("a", port=HTTPS_PORT), tls("b", "x", port=HTTPS_PORT)])
    assert plan.ports[PortKey("tcp", HTTPS_PORT)].names.find("other") is None
    assert "HTTP" in plan.problems["a"]


def test_one_route_that_expects_proxy_headers_asks_for_its_whole_port() -> None:
    plan = plan_ports([tls("a", "x"), tls("b", "y", accept_proxy_protocol=True)])
    assert plan.ports[PortKey("tcp", 443)].expects_proxy_header


def test_a_route_that_cannot_be_compiled_keeps_its_port_and_says_why() -> None:
    route = compiled(1, "a", allowed_networks=("nonsense",))
    plan = plan_ports([route])
    assert plan.ports[PortKey("tcp", 1)].only is route
    assert "allowed_networks: 'nonsense'" in plan.problems["a"]


def test_a_udp_route_that_expects_proxy_headers_takes_no_datagram_and_says_why() -> None:
    route = compiled(53, "dns", protocol="udp", accept_proxy_protocol=True)
    assert plan_ports([route]).problems == {
        "dns": "Ingress default/web spec.rules[0]: accept_proxy_protocol: "
        "the PROXY protocol is for TCP, datagrams have no header"
    }
    assert compiled(53, "dns", protocol="tcp", accept_proxy_protocol=True).problem == ""
