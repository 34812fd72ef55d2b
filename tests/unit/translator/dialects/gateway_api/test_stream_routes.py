"""TLSRoutes, TCPRoutes and UDPRoutes: their listeners, how they stand, and what is wrong with one."""

from typing import Any

import pytest

from fakes.translator.deltas import applied, endpoint_slice, service
from fakes.translator.gateway_api import Cluster, gateway, grant, https, listener, route, stream_route, to
from headgate.common.problems import Problem
from headgate.common.snapshot import decode_chunk
from headgate.common.table import StreamRoute
from headgate.translator.offline import translate_all
from headgate.translator.world.entry_points import EntryPoint
from headgate.translator.world.settings import TranslationSettings

WEB = (service("web"), endpoint_slice("web", "10.0.0.1"))
GOOD = {"Accepted": "True Accepted", "ResolvedRefs": "True ResolvedRefs", "Programmed": "True Programmed"}
LISTENERS = {
    "TLSRoute": listener("one", 6443, "TLS", tls={"mode": "Passthrough"}),
    "TCPRoute": listener("one", 5432, "TCP"),
    "UDPRoute": listener("one", 53, "UDP"),
}
KINDS = pytest.mark.parametrize("kind", LISTENERS)


def udp_service(name: str = "web", namespace: str = "default") -> Any:
    made = service(name, namespace=namespace)
    made["spec"]["ports"][0]["protocol"] = "UDP"
    return made


def services_of(kind: str) -> tuple[Any, ...]:
    slices = endpoint_slice("web", "10.0.0.1")
    slices["ports"][0]["protocol"] = "UDP"
    return (udp_service(), slices) if kind == "UDPRoute" else WEB


def streams(cluster: Cluster) -> dict[tuple[str, ...], StreamRoute]:
    """Return the stream routes of the table, by port and server names."""
    chunks = (chunk for chunk in cluster.translation.assembly.image.chunks() if chunk.kind == "streams")
    entries = [entry for chunk in chunks for entry in decode_chunk(chunk.kind, chunk.content)]
    return {(str(one.port), *one.server_names): one for one in entries if isinstance(one, StreamRoute)}


def tls(name: str = "tls", port: int = 443, mode: str = "Passthrough", **fields: Any) -> Any:
    return listener(name, port, "TLS", tls={"mode": mode}, **fields)


def tls_route(*hostnames: str, name: str = "stream", **fields: Any) -> Any:
    return stream_route("TLSRoute", "web", name=name, hostnames=list(hostnames), **fields)


@KINDS
def test_a_route_is_attached_to_a_listener_of_its_protocol(kind: str) -> None:
    written = stream_route(kind, "web")
    cluster = Cluster(gateway(LISTENERS[kind]), written, *services_of(kind))
    assert cluster.parents(written) == [GOOD]
    assert cluster.attached(gateway(LISTENERS[kind])) == {"one": 1}
    status = cluster.status(gateway(LISTENERS[kind]))
    assert status is not None
    assert [each["kind"] for each in status["listeners"][0]["supportedKinds"]] == [kind]
    assert cluster.conditions(gateway(LISTENERS[kind]))["Programmed"] == "True Programmed"
    assert len(streams(cluster)) == 1


@KINDS
def test_a_route_is_not_allowed_on_a_listener_for_http(kind: str) -> None:
    written = stream_route(kind, "web")
    cluster = Cluster(gateway(), written, *services_of(kind))
    assert cluster.parents(written)[0]["Accepted"] == "False NotAllowedByListeners"
    assert cluster.attached(gateway()) == {"http": 0}
    assert streams(cluster) == {}


@KINDS
def test_of_two_routes_on_one_listener_both_are_accepted_and_the_older_is_served(kind: str) -> None:
    older, newer = stream_route(kind, "web", name="older"), stream_route(kind, "web", name="newer")
    for day, one in enumerate((older, newer), start=1):
        one["metadata"]["creationTimestamp"] = f"2024-01-0{day}T00:00:00Z"
    written = gateway(LISTENERS[kind])
    cluster = Cluster(written, newer, older, *services_of(kind))
    assert cluster.parents(older) == [GOOD]
    assert cluster.parents(newer) == [{**GOOD, "Programmed": "False StreamConflict"}]
    assert cluster.attached(written) == {"one": 2}
    assert [one.provenance.name for one in streams(cluster).values()] == ["older"]


def test_an_older_route_with_a_wider_hostname_hears_why_it_is_not_served() -> None:
    wide, exact = tls_route("*.example", name="wide"), tls_route("a.example", name="exact")
    for day, one in enumerate((wide, exact), start=1):
        one["metadata"]["creationTimestamp"] = f"2024-01-0{day}T00:00:00Z"
    passing = listener("one", 443, "TLS", hostname="a.example", tls={"mode": "Passthrough"})
    cluster = Cluster(gateway(passing), wide, exact, *services_of("TLSRoute"))
    assert cluster.parents(exact) == [GOOD]
    assert cluster.parents(wide) == [{**GOOD, "Programmed": "False StreamConflict"}]
    status = cluster.status(wide)
    assert status is not None
    assert "hostname is the more specific one" in str(status)


@KINDS
def test_a_service_of_another_namespace_needs_a_grant(kind: str) -> None:
    far = udp_service(namespace="far") if kind == "UDPRoute" else service("web", namespace="far")
    written = stream_route(kind, {"name": "web", "namespace": "far", "port": 80})
    cluster = Cluster(gateway(LISTENERS[kind]), written, far)
    assert cluster.parents(written)[0]["ResolvedRefs"] == "False RefNotPermitted"
    assert cluster.parents(written)[0]["Accepted"] == "True Accepted"
    cluster.apply(grant(kind, "default", "Service", namespace="far"))
    assert cluster.parents(written)[0]["ResolvedRefs"] == "True ResolvedRefs"


@KINDS
def test_a_service_that_is_missing_keeps_its_share(kind: str) -> None:
    written = stream_route(kind, ("web", 3), ("missing", 1))
    cluster = Cluster(gateway(LISTENERS[kind]), written, *services_of(kind))
    assert cluster.parents(written)[0]["ResolvedRefs"] == "False BackendNotFound"
    (only,) = streams(cluster).values()
    assert [one.weight for one in only.backends] == [3, 1]
    assert only.backends[1].upstream.endswith("/refused")


def test_datagrams_need_a_port_of_udp() -> None:
    written = stream_route("UDPRoute", "web")
    cluster = Cluster(gateway(LISTENERS["UDPRoute"]), written, *WEB)
    assert cluster.parents(written)[0]["ResolvedRefs"] == "False BackendNotFound"


def test_a_route_of_a_gateway_is_on_all_of_its_listeners_and_one_of_a_port_on_that() -> None:
    both = gateway(listener("one", 9001, "TCP"), listener("two", 9002, "TCP"))
    everywhere, second = stream_route("TCPRoute", "web"), stream_route("TCPRoute", "web", name="second")
    second["spec"]["parentRefs"] = [{"name": "gw", "port": 9002, "sectionName": "two"}]
    assert set(streams(Cluster(both, everywhere, *WEB))) == {("9001",), ("9002",)}
    assert set(streams(Cluster(both, second, *WEB))) == {("9002",)}


# Server names


def test_server_names_are_those_that_route_and_listener_have_in_common() -> None:
    cluster = Cluster(gateway(tls(hostname="*.example.com")), tls_route("a.example.com", "*.com", "b.test"), *WEB)
    assert set(streams(cluster)) == {("0", "a.example.com"), ("0", "**.example.com")}


def test_a_route_without_a_name_in_common_is_told_so() -> None:
    written = tls_route("b.test")
    cluster = Cluster(gateway(tls(hostname="*.example.com")), written, *WEB)
    assert cluster.parents(written)[0]["Accepted"] == "False NoMatchingListenerHostname"


def test_connections_of_more_specific_listeners_are_not_those_of_wider_ones() -> None:
    secret = https("https", "cert", hostname="a.example.com")
    wide = gateway(tls(hostname="*.example.com"), secret, tls("deep", hostname="*.b.example.com"))
    parents = [{"name": "gw", "sectionName": "tls"}]
    cluster = Cluster(wide, tls_route("*.example.com", "a.example.com", parents=parents), *WEB)
    found = streams(cluster)
    assert set(found) == {("0", "**.example.com")}
    when = found["0", "**.example.com"].when
    assert when is not None
    assert when.model_dump()["negated"]["values"] == ("^.+[.]b[.]example[.]com$", "^a[.]example[.]com$")


def test_https_and_tls_with_one_hostname_on_one_port_are_in_conflict_and_tcp_with_tls_too() -> None:
    same = gateway(tls(hostname="a.test"), https("https", "cert", hostname="a.test"))
    assert {one["Conflicted"] for one in Cluster(same).listeners(same).values()} == {"True HostnameConflict"}
    mixed = gateway(tls("tls", 9000), listener("tcp", 9000, "TCP"))
    assert {one["Conflicted"] for one in Cluster(mixed).listeners(mixed).values()} == {"True ProtocolConflict"}


def test_a_listener_that_ends_tls_needs_a_certificate_and_one_that_passes_it_on_none() -> None:
    written = gateway(tls("ends", 9001, "Terminate"), tls("passes", 9002))
    found = Cluster(written).listeners(written)
    assert found["ends"]["ResolvedRefs"] == "False InvalidCertificateRef"
    assert found["passes"]["Programmed"] == "True Programmed"


@pytest.mark.parametrize(
    ("one", "reason"),
    [
        (listener("one", 443, "TCP"), "False PortUnavailable"),
        (listener("one", 80, "TCP"), "False PortUnavailable"),
        (listener("one", 80, "TLS", tls={"mode": "Passthrough"}), "False PortUnavailable"),
        (listener("one", 443, "UDP"), "True Accepted"),
        (listener("one", 9053, "UDP"), "False PortUnavailable"),
        (listener("one", 9053, "TCP"), "True Accepted"),
    ],
)
def test_ports_of_the_gateways_and_of_entry_points_are_taken(one: Any, reason: str) -> None:
    settings = TranslationSettings(entry_points=(EntryPoint("dns", "udp", 9053),))
    assert Cluster(gateway(one), settings=settings).listeners(gateway(one))["one"]["Accepted"] == reason


# Others' connections


def test_a_route_takes_no_connections_of_an_older_https_listener_of_others_on_its_port() -> None:
    theirs = gateway(https("https", "cert", port=9443, hostname="a.test"), name="theirs", namespace="theirs")
    theirs["metadata"]["creationTimestamp"] = "2023-01-01T00:00:00Z"
    ours, written = gateway(tls(port=9443)), tls_route("a.test")
    for one in (ours, written):
        one["metadata"]["creationTimestamp"] = "2024-01-01T00:00:00Z"
    cluster = Cluster(theirs, ours, written, *WEB)
    assert streams(cluster) == {}
    cluster.delete(theirs)
    assert set(streams(cluster)) == {("9443", "a.test")}
    cluster.apply(theirs)
    assert streams(cluster) == {}


def test_a_plain_stream_takes_no_port_of_an_older_listener_for_http_of_others() -> None:
    theirs = gateway(listener(port=9080), name="theirs", namespace="theirs")
    theirs["metadata"]["creationTimestamp"] = "2023-01-01T00:00:00Z"
    written = stream_route("TCPRoute", "web")
    written["metadata"]["creationTimestamp"] = "2024-01-01T00:00:00Z"
    cluster = Cluster(gateway(listener("tcp", 9080, "TCP")), written, theirs, *WEB)
    assert streams(cluster) == {}


# What is wrong


def problems_of(written: Any) -> list[Problem]:
    at = [{**one, "name": f"l{index}"} for index, one in enumerate(LISTENERS.values())]
    manifests = [*WEB, gateway(*at, spec={"gatewayClassName": "headgate"}), written]
    found = translate_all(map(applied, manifests)).problems
    return [problem for ref, problems in found.items() if ref.name == "stream" for problem in problems]


def test_a_second_rule_and_a_rule_without_services_are_named() -> None:
    twice = stream_route("TCPRoute", rules=[to("web"), to("web")])
    assert [problem.field for problem in problems_of(twice)] == ["spec.rules[1]"]
    problems = problems_of(stream_route("TCPRoute"))
    assert problems[0].field == "spec.rules[0].backendRefs"


def test_a_route_whose_hostnames_cannot_be_read_takes_no_connections() -> None:
    written = tls_route("a b")
    cluster = Cluster(gateway(tls()), written, *WEB)
    assert streams(cluster) == {}
    assert cluster.parents(written)[0]["Accepted"] == "False UnsupportedValue"


def test_one_object_makes_a_bounded_number_of_stream_routes() -> None:
    written = tls_route(*(f"h{number}.test" for number in range(1001)), parents=[{"name": "gw", "port": 6443}])
    (problem,) = problems_of(written)
    assert (problem.reason, problem.field) == ("TooMuchWork", "spec.parentRefs")


def test_http_routes_are_not_allowed_on_listeners_of_streams() -> None:
    written = route(to("web"))
    cluster = Cluster(gateway(LISTENERS["TCPRoute"]), written, *WEB)
    assert cluster.parents(written)[0]["Accepted"] == "False NotAllowedByListeners"
