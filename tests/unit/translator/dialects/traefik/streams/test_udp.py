"""IngressRouteUDPs as routes of streams."""

from typing import Any

import pytest

from fakes.translator.deltas import endpoint_slice, service
from fakes.translator.traefik_streams import Streams, udp
from headgate.translator.world.entry_points import OWN_ENTRY_POINTS


def dns() -> Any:
    made = service("dns")
    made["spec"]["ports"] = [
        {"name": "tcp", "port": 53, "protocol": "TCP"},
        {"name": "udp", "port": 53, "protocol": "UDP"},
    ]
    made["spec"]["clusterIP"] = "10.96.0.10"
    return made


def slices() -> Any:
    made = endpoint_slice("dns", "10.0.0.3")
    made["ports"] = [{"name": "udp", "port": 5353, "protocol": "UDP"}]
    return made


def to(*services: Any) -> Any:
    return {"services": list(services) or [{"name": "dns", "port": 53}]}


@pytest.mark.parametrize("spec", [{}, {"entryPoints": ["dns"]}])
def test_datagrams_go_to_the_udp_port_of_a_service(spec: Any) -> None:
    made = Streams(dns(), slices(), udp(to({"name": "dns", "port": 53, "nativeLB": True}), **spec))
    assert (made.route.protocol, made.route.port, made.route.idle_timeout_s) == ("udp", 5353, 3.0)
    (upstream,) = made.upstreams(made.route)
    assert upstream.protocol == "udp"
    assert [(one.address, one.port) for one in upstream.endpoints] == [("10.96.0.10", 53)]


@pytest.mark.parametrize("native", [False, True])
def test_a_port_that_is_declared_for_tcp_takes_datagrams_all_the_same(native: bool) -> None:
    web = service("web")
    web["spec"]["clusterIP"] = "10.96.0.10"
    to_web = {"name": "web", "port": 80, "nativeLB": native}
    made = Streams(web, endpoint_slice("web", "10.0.0.3", port=8080), udp(to(to_web)))
    assert made.said() == [("warning", "PortNotFound", "spec.routes[0].services[0].port")]
    (upstream,) = made.upstreams(made.routes[0])
    assert (upstream.protocol, upstream.unavailable) == ("udp", None)
    expected = ("10.96.0.10", 80) if native else ("10.0.0.3", 8080)
    assert [(one.address, one.port) for one in upstream.endpoints] == [expected]


def test_a_port_that_a_service_lacks_takes_nothing() -> None:
    made = Streams(dns(), slices(), udp(to({"name": "dns", "port": 99})))
    assert made.said() == [("error", "PortNotFound", "spec.routes[0].services[0].port")]


def test_sessions_are_shared_by_weight() -> None:
    made = Streams(dns(), slices(), udp(to({"name": "dns", "port": 53, "weight": 2}, {"name": "dns", "port": "udp"})))
    assert [backend.weight for backend in made.route.backends] == [2, 1]


def test_an_entry_point_has_one_route() -> None:
    made = Streams(dns(), slices(), udp(to(), to()))
    assert made.said() == [("error", "StreamConflict", "spec.routes[1]")]
    assert [route.provenance.rule for route in made.routes] == ["spec.routes[0]"]


def test_an_entry_point_of_tcp_is_none_for_datagrams() -> None:
    made = Streams(dns(), slices(), udp(to(), entryPoints=["db"]))
    assert [field for _, _, field in made.said()] == ["spec.entryPoints[0]", "spec.entryPoints"]
    assert made.routes == []


def test_without_an_entry_point_for_udp_there_is_nothing_to_serve() -> None:
    made = Streams(dns(), slices(), udp(to()), entry_points=OWN_ENTRY_POINTS)
    assert (made.said(), made.routes) == ([("error", "EntryPointNotFound", "spec.entryPoints")], [])


def test_a_route_without_services_refuses_its_datagrams() -> None:
    made = Streams(udp({"services": []}))
    assert [field for _, _, field in made.said()] == ["spec.routes[0].services"]
    assert [one.unavailable is not None for one in made.upstreams(made.routes[0])] == [True]
