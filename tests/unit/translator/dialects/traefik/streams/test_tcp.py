"""IngressRouteTCPs as routes of streams."""

from dataclasses import replace
from typing import Any

import pytest

from fakes.translator.deltas import applied, endpoint_slice, ref_of, service
from fakes.translator.traefik import route as http_route
from fakes.translator.traefik import rule as http_rule
from fakes.translator.traefik_streams import ENTRY_POINTS, Streams, resource, rule, tcp
from headgate.common.table import AllOf, BackendTls, Compare, Operator, Subject
from headgate.translator.assembly.entry_listeners import EntryListeners
from headgate.translator.composition import DIALECTS
from headgate.translator.fragments.fragment import StreamPort
from headgate.translator.translation import Translation
from headgate.translator.world.settings import DEFAULT_SETTINGS

DB = ["db"]
FROM_TEN = Compare(subject=Subject.PEER, operator=Operator.NETWORK, values=("10.0.0.0/8",))
TLS: dict[str, Any] = {"secretName": "cert"}


def test_without_tls_a_port_goes_to_a_service() -> None:
    made = Streams(tcp(rule(), entryPoints=DB))
    assert (made.route.protocol, made.route.port, made.route.server_names) == ("tcp", 5432, ())
    (upstream,) = made.upstreams(made.route)
    assert upstream.protocol == "tcp"
    assert [(one.address, one.port) for one in upstream.endpoints] == [("10.0.0.1", 8080)]


def test_tls_ends_here_and_its_certificate_is_presented_for_all_its_names() -> None:
    made = Streams(tcp(rule("HostSNI(`db.a.com`)"), entryPoints=DB, tls=TLS))
    assert (made.route.protocol, made.route.terminate, made.route.server_names) == ("tls", True, ("db.a.com",))
    assert made.presented == {"a/default/cert": ("a.com",)}


def test_tls_may_be_left_to_the_servers() -> None:
    made = Streams(tcp(rule("HostSNI(`db.a.com`)"), entryPoints=DB, tls={**TLS, "passthrough": True}))
    assert (made.route.protocol, made.route.terminate) == ("tls", False)
    assert made.presented == {}


def test_a_missing_certificate_is_said_and_the_route_is_served() -> None:
    made = Streams(tcp(rule("HostSNI(`db.a.com`)"), entryPoints=DB, tls={"secretName": "absent"}))
    assert made.said() == [("error", "SecretNotFound", "spec.tls.secretName")]
    assert [route.server_names for route in made.routes] == [("db.a.com",)]


def test_alternatives_of_a_rule_are_names_of_one_route() -> None:
    made = Streams(tcp(rule("HostSNI(`A.com`) || HostSNI(`*.b.com`)"), entryPoints=DB, tls=TLS))
    assert set(made.route.server_names) == {"a.com", "*.b.com"}


def test_a_pattern_of_names_is_a_server_name() -> None:
    made = Streams(tcp(rule("HostSNIRegexp(`^db[0-9]`)"), entryPoints=DB, tls=TLS))
    assert made.route.server_names == ("~^db[0-9]",)


def test_the_priority_is_the_length_of_the_rule_if_none_is_given() -> None:
    rules = rule("HostSNI(`a.com`)"), rule("HostSNIRegexp(`a`)", priority=9), rule("HostSNI(`*`)")
    made = Streams(tcp(*rules, entryPoints=DB, tls=TLS))
    assert {route.server_names: route.priority for route in made.routes} == {("a.com",): 16, ("~a",): 9, (): -1}


@pytest.mark.parametrize("match", ["HostSNI(`*`) && ClientIP(`10.0.0.0/8`)", "ClientIP(`10.0.0.0/8`)"])
def test_connections_of_other_networks_are_for_other_routes(match: str) -> None:
    made = Streams(tcp(rule(match), rule(), entryPoints=DB))
    assert made.said() == []
    assert [(route.when, route.priority > 0) for route in made.routes] == [(FROM_TEN, True), (None, False)]


def test_two_objects_of_one_namespace_share_a_port_by_networks() -> None:
    one = tcp(rule("ClientIP(`10.0.0.0/8`)"), entryPoints=DB)
    assert Streams(one, tcp(rule(), name="two", entryPoints=DB)).said() == []


def test_an_object_of_another_namespace_takes_no_part_of_a_port() -> None:
    two = tcp(rule("ClientIP(`10.0.0.0/8`)", {"name": "web", "port": 80}), name="two", entryPoints=DB)
    two["metadata"]["namespace"] = "other"
    made = Streams(tcp(rule(), entryPoints=DB), two)
    assert [route.provenance.namespace for route in made.routes] == ["default"]


def test_rules_of_the_older_syntax() -> None:
    made = Streams(tcp(rule("HostSNI(`a.com`, `b.com`)", syntax="v2"), entryPoints=DB, tls=TLS))
    assert made.route.server_names == ("a.com", "b.com")


@pytest.mark.parametrize("is_secure", [True, False])
def test_a_transport_says_how_servers_are_spoken_to_and_the_service_whether_over_tls(is_secure: bool) -> None:
    spec = {"tls": {"serverName": "db.test", "insecureSkipVerify": True}, "proxyProtocol": {"version": 1}}
    written = {"name": "web", "port": 80, "tls": is_secure, "serversTransport": "own"}
    made = Streams(resource("ServersTransportTCP", "own", **spec), tcp(rule("HostSNI(`*`)", written), entryPoints=DB))
    assert made.said() == []
    (upstream,) = made.upstreams(made.route)
    assert upstream.tls == (BackendTls(verify=False, server_name="db.test") if is_secure else None)
    assert upstream.proxy_protocol == 1


def test_a_transport_that_cannot_be_followed_refuses_the_share() -> None:
    spec = {"tls": {"rootCAs": [{"secret": "missing"}]}}
    written = {"name": "web", "port": 80, "tls": True, "serversTransport": "own"}
    made = Streams(resource("ServersTransportTCP", "own", **spec), tcp(rule("HostSNI(`*`)", written), entryPoints=DB))
    at = "spec.routes[0].services[0].serversTransport"
    assert set(made.said()) == {
        ("error", "InvalidServersTransport", at),
        ("error", "SecretNotFound", "spec.tls.rootCAs[0]"),
    }


def test_connections_are_shared_by_weight() -> None:
    services = [{"name": "web", "port": 80, "weight": 3}, {"name": "other", "port": 80}]
    made = Streams(
        service("other"), endpoint_slice("other", "10.0.0.2"), tcp(rule("HostSNI(`*`)", *services), entryPoints=DB)
    )
    assert [backend.weight for backend in made.route.backends] == [3, 1]
    assert [one.provenance.name for one in made.upstreams(made.route)] == ["web", "other"]


def test_a_missing_service_costs_its_own_share() -> None:
    services = [{"name": "absent", "port": 80}, {"name": "web", "port": 80}]
    made = Streams(tcp(rule("HostSNI(`*`)", *services), entryPoints=DB))
    assert ("ServiceNotFound", "spec.routes[0].services[0].name") in [(one[1], one[2]) for one in made.said()]
    absent, web = made.upstreams(made.routes[0])
    assert absent.unavailable == "Service default/absent not found"
    assert web.provenance.name == "web"


def test_tls_towards_servers_is_verified() -> None:
    made = Streams(tcp(rule("HostSNI(`*`)", {"name": "web", "port": 80, "tls": True}), entryPoints=DB))
    (upstream,) = made.upstreams(made.route)
    assert (upstream.protocol, upstream.tls) == ("tls", BackendTls(verify=True))


@pytest.mark.parametrize(("written", "version"), [({}, 2), ({"version": 1}, 1)])
def test_servers_may_get_the_proxy_protocol(written: Any, version: int) -> None:
    made = Streams(tcp(rule("HostSNI(`*`)", {"name": "web", "port": 80, "proxyProtocol": written}), entryPoints=DB))
    (upstream,) = made.upstreams(made.route)
    assert (upstream.protocol, upstream.proxy_protocol) == ("tcp", version)


def test_the_services_own_address_may_be_used() -> None:
    own = service()
    own["spec"]["clusterIP"] = "10.96.0.7"
    made = Streams(own, tcp(rule("HostSNI(`*`)", {"name": "web", "port": 80, "nativeLB": True}), entryPoints=DB))
    (upstream,) = made.upstreams(made.route)
    assert [(one.address, one.port) for one in upstream.endpoints] == [("10.96.0.7", 80)]


@pytest.mark.parametrize(
    ("written", "field"), [({"terminationDelay": 100}, "terminationDelay"), ({"nodePortLB": True}, "nodePortLB")]
)
def test_what_has_no_effect_is_warned_of(written: Any, field: str) -> None:
    made = Streams(tcp(rule("HostSNI(`*`)", {"name": "web", "port": 80, **written}), entryPoints=DB))
    assert made.said() == [("warning", "UnsupportedField", f"spec.routes[0].services[0].{field}")]
    assert len(made.routes) == 1


@pytest.mark.parametrize(
    ("written", "reason", "field"),
    [
        ({"namespace": "other"}, "RefNotPermitted", "namespace"),
        ({"name": "web@file"}, "UnsupportedBackend", "name"),
        ({"serversTransport": "one"}, "ServersTransportTCPNotFound", "serversTransport"),
    ],
)
def test_a_service_that_cannot_be_followed_has_its_share_refused(written: Any, reason: str, field: str) -> None:
    services = [{"name": "web", "port": 80, **written}, {"name": "web", "port": 80}]
    made = Streams(tcp(rule("HostSNI(`*`)", *services), entryPoints=DB))
    assert made.said() == [("error", reason, f"spec.routes[0].services[0].{field}")]
    refused, web = made.upstreams(made.routes[0])
    refusal = "IngressRouteTCP default/one refuses connections of spec.routes[0].services[0]: "
    assert (refused.unavailable or "").startswith(refusal)
    assert web.provenance.name == "web"


def test_services_of_other_namespaces_are_found_where_that_is_allowed() -> None:
    elsewhere = (service(namespace="other"), endpoint_slice("web", "10.0.0.2", namespace="other"))
    one = tcp(rule("HostSNI(`*`)", {"name": "web", "namespace": "other", "port": 80}), entryPoints=DB)
    made = Streams(*elsewhere, one, allow_cross_namespace=True)
    assert [upstream.provenance.namespace for upstream in made.upstreams(made.route)] == ["other"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"services": []}, "services"),
        ({"middlewares": [{"name": "allowed"}]}, "middlewares[0].name"),
    ],
)
def test_connections_of_a_route_that_cannot_be_followed_are_refused(changes: Any, field: str) -> None:
    made = Streams(tcp(rule("HostSNI(`a.com`)") | changes, entryPoints=DB, tls=TLS))
    assert [one[2] for one in made.said()] == [f"spec.routes[0].{field}"]
    (route,) = made.routes
    (upstream,) = made.upstreams(route)
    assert route.server_names == ("a.com",)
    assert upstream.unavailable


def test_an_option_is_the_policy_of_the_routes_that_end_tls() -> None:
    modern = resource("TLSOption", "modern", minVersion="VersionTLS13")
    tls = {"options": {"name": "modern"}}
    made = Streams(modern, tcp(rule("HostSNI(`a.com`)"), entryPoints=DB, tls=tls))
    assert made.said() == []
    assert made.route.tls is not None
    assert made.route.tls.min_version == "1.3"
    assert (
        Streams(modern, tcp(rule("HostSNI(`a.com`)"), entryPoints=DB, tls={**tls, "passthrough": True})).route.tls
        is None
    )


def test_an_option_that_is_missing_refuses_all_connections() -> None:
    made = Streams(tcp(rule("HostSNI(`a.com`)"), entryPoints=DB, tls={**TLS, "options": {"name": "strict"}}))
    assert made.said() == [("error", "TLSOptionNotFound", "spec.tls.options.name")]
    assert [one.unavailable is not None for one in made.upstreams(made.routes[0])] == [True]


@pytest.mark.parametrize(
    ("name", "spec", "expected"),
    [
        ("default", {"clientAuth": {"clientAuthType": "RequireAnyClientCert"}}, "required-any"),
        ("default", {"minVersion": "VersionTLS13"}, "1.3"),
        ("other", {"clientAuth": {"clientAuthType": "RequireAnyClientCert"}}, None),
    ],
)
def test_the_option_named_default_holds_where_no_other_is_named(name: str, spec: Any, expected: str | None) -> None:
    option = resource("TLSOption", name, **spec)
    option["metadata"]["namespace"] = "elsewhere"
    made = Streams(option, tcp(rule("HostSNI(`a.com`)"), entryPoints=DB, tls=TLS))
    policy = made.routes[0].tls
    said = policy and (policy.min_version or (policy.client_auth and policy.client_auth.mode))
    assert (said, made.said()) == (expected, [])
    assert Streams(option, tcp(rule("HostSNI(`a.com`)"), entryPoints=DB, tls={"passthrough": True})).said() == []


def test_of_several_options_named_default_the_oldest_holds() -> None:
    older, newer = (resource("TLSOption", "default", minVersion=f"VersionTLS1{minor}") for minor in (3, 2))
    for option, namespace, year in ((older, "z", 2020), (newer, "a", 2021)):
        option["metadata"] |= {"namespace": namespace, "creationTimestamp": f"{year}-01-01T00:00:00Z"}
    (route,) = Streams(older, newer, tcp(rule("HostSNI(`a.com`)"), entryPoints=DB, tls=TLS)).routes
    assert route.tls is not None
    assert route.tls.min_version == "1.3"


def test_an_option_named_default_that_cannot_be_followed_refuses_connections() -> None:
    option = resource("TLSOption", "default", cipherSuites=["NONE"])
    made = Streams(option, tcp(rule("HostSNI(`a.com`)"), entryPoints=DB, tls=TLS))
    assert ("error", "InvalidTLSOption", "spec.tls") in made.said()
    assert [one.unavailable is not None for one in made.upstreams(made.routes[0])] == [True]


@pytest.mark.parametrize(
    ("match", "tls"),
    [
        ("HostSNI(`a.com`)", None),
        ("HostSNI(`a.com`", TLS),
        ("HostSNI(`*`) && ALPN(`h2`)", None),
        ("HostSNIRegexp(`^[a-z]+$`)", None),
        ("ClientIP(`10.0.0.0/8`) || HostSNI(`a.com`)", None),
        ("Host(`a.com`)", TLS),
    ],
)
def test_a_rule_that_cannot_be_followed_is_said_and_costs_no_other(match: str, tls: Any) -> None:
    spec = {} if tls is None else {"tls": tls}
    made = Streams(tcp(rule(match), rule(), entryPoints=DB, **spec))
    assert made.said() == [("error", "InvalidRule", "spec.routes[0].match")]
    assert [route.server_names for route in made.routes] == [()]


def test_an_object_of_which_no_connection_satisfies_a_rule_is_not_accepted() -> None:
    made = Streams(tcp(rule("HostSNI(`*`) && ALPN(`h2`)"), entryPoints=DB))
    assert made.said() == [("error", "InvalidRule", "spec.routes[0].match")]
    assert made.routes == []
    assert not made.accepted


@pytest.mark.parametrize(
    ("match", "when"),
    [
        ("!HostSNI(`a.com`)", None),
        ("HostSNIRegexp(`.*`)", None),
        ("HostSNI(`*`) && !ALPN(`h2`)", None),
        ("!HostSNI(`a.com`) && ClientIP(`10.0.0.0/8`)", ("10.0.0.0/8",)),
        ("(HostSNIRegexp(`a`) || ClientIP(`10.0.0.0/8`)) && HostSNI(`*`)", ("10.0.0.0/8",)),
    ],
)
def test_without_tls_there_is_no_server_name_and_no_protocol(match: str, when: tuple[str, ...] | None) -> None:
    (route,) = Streams(tcp(rule(match), entryPoints=DB)).routes
    assert (route.protocol, route.server_names, route.alpn) == ("tcp", (), ())
    of_networks = Compare(subject=Subject.PEER, operator=Operator.NETWORK, values=when or ("::/0",))
    assert route.when == (AllOf(all_of=()) if when is None else of_networks)
    assert route.priority == len(match)


def test_of_two_routes_for_a_name_the_one_of_the_higher_priority_is_used() -> None:
    first, second = rule("HostSNI(`a.com`)"), rule("HostSNI(`a.com`) || HostSNI(`b.com`)", priority=1000)
    made = Streams(tcp(first, second, entryPoints=DB, tls=TLS))
    assert made.said() == [("error", "StreamConflict", "spec.routes[0].match")]
    assert [(route.server_names, route.provenance.rule) for route in made.routes] == [
        (("a.com", "b.com"), "spec.routes[1]")
    ]


def test_the_priority_is_the_length_of_the_rule_unless_one_is_given() -> None:
    made = Streams(tcp(rule("HostSNI(`a.com`)"), rule("HostSNI(`b.com`)", priority=7), rule(), entryPoints=DB, tls=TLS))
    assert [route.priority for route in made.routes] == [-1, 16, 7]
    assert Streams(tcp(rule(), entryPoints=DB)).route.priority == 0


def test_a_route_keeps_the_names_that_no_other_has() -> None:
    first, second = rule("HostSNI(`a.com`)", priority=1000), rule("HostSNI(`a.com`) || HostSNI(`b.com`)")
    made = Streams(tcp(first, second, entryPoints=DB, tls=TLS))
    assert [route.server_names for route in made.routes] == [("a.com",), ("b.com",)]


def test_one_name_may_be_for_several_networks() -> None:
    match = "(HostSNI(`a.com`) && ClientIP(`10.0.0.1`)) || (HostSNI(`a.com`) && ClientIP(`10.0.0.2`))"
    made = Streams(tcp(rule(match), entryPoints=DB, tls=TLS))
    assert made.said() == []
    assert [route.server_names for route in made.routes] == [("a.com",), ("a.com",)]


# Entry points


def test_without_entry_points_the_default_ones_are_meant() -> None:
    made = Streams(tcp(rule("HostSNI(`a.com`)"), tls=TLS))
    assert made.said() == []
    assert [(route.port, route.server_names) for route in made.routes] == [(0, ("a.com",)), (5432, ("a.com",))]


def test_streams_without_tls_are_not_on_the_ports_of_http() -> None:
    assert Streams(tcp(rule())).route.port == 5432
    made = Streams(tcp(rule(), entryPoints=["web", "websecure"]))
    assert (made.said(), made.routes) == ([("error", "EntryPointNotFound", "spec.entryPoints")], [])


def test_the_rest_of_the_https_port_may_be_a_streams() -> None:
    made = Streams(tcp(rule("HostSNI(`*`)"), entryPoints=["websecure"], tls=TLS))
    assert (made.route.port, made.route.server_names) == (0, ())


@pytest.mark.parametrize("name", ["absent", "dns"])
def test_entry_points_that_do_not_serve_are_said_and_left_out(name: str) -> None:
    made = Streams(tcp(rule(), entryPoints=[name, "db", "db"]))
    assert made.said() == [("warning", "EntryPointNotFound", "spec.entryPoints[0]")]
    assert [route.port for route in made.routes] == [5432]
    alone = Streams(tcp(rule(), entryPoints=[name]))
    assert ([one[0] for one in alone.said()], alone.routes) == (["warning", "error"], [])


def test_a_spec_that_cannot_be_read_says_where() -> None:
    assert [one[2] for one in Streams(tcp(rule(), tls=1)).said()] == ["spec.tls"]
    made = Streams(tcp({"match": 1}, rule(), entryPoints=DB))
    assert [one[2] for one in made.said()] == ["spec.routes[0].match"]
    assert [route.provenance.rule for route in made.routes] == ["spec.routes[1]"]


@pytest.mark.parametrize(("others", "is_refused"), [([], True), ([rule("HostSNI(`b.com`)")], False)])
def test_an_object_is_refused_if_all_its_connections_are(others: list[Any], is_refused: bool) -> None:
    closed = tcp(rule("HostSNI(`a.com`)", middlewares=[{"name": "gone"}]), *others, entryPoints=DB, tls=TLS)
    settings = replace(DEFAULT_SETTINGS, entry_points=ENTRY_POINTS)
    translation = Translation(DIALECTS, settings)
    translation.activate("a")
    translation.apply(applied(closed))
    for _ in translation.settle():
        pass
    condition = translation.condition(ref_of(closed))
    assert condition is not None
    assert condition.is_refused is is_refused


@pytest.mark.parametrize(("names", "left"), [(["a.com"], []), (["a.com", "b.com"], ["b.com"])])
def test_names_of_hosts_over_tls_are_left_to_these(names: list[str], left: list[str]) -> None:
    match = " || ".join(f"HostSNI(`{name}`)" for name in names)
    host = http_route(http_rule("Host(`a.com`)"), spec={"entryPoints": ["db"], "tls": {}})
    made = Streams(tcp(rule(match), entryPoints=["db"], tls={}), host)
    assert [name for each in made.routes for name in each.server_names] == left
    assert ("warning", "StreamConflict", "spec.routes[0].match") in made.said()


WEB_OF_OTHERS = (service(namespace="other"), endpoint_slice("web", "10.0.0.2", namespace="other"))


def stream_of(year: int) -> Any:
    """Return an IngressRouteTCP for `a.com` that was made in a year."""
    made = tcp(rule("HostSNI(`a.com`)"), entryPoints=["db"], tls={})
    made["metadata"]["creationTimestamp"] = f"{year}-01-01T00:00:00Z"
    return made


def host_of(year: int, namespace: str = "other", entry_point: str = "db") -> Any:
    """Return an IngressRoute for `a.com` over TLS."""
    created, spec = f"{year}-01-01T00:00:00Z", {"entryPoints": [entry_point], "tls": {}}
    made = http_rule("Host(`a.com`)")
    return http_route(made, name=f"of-{entry_point}", spec=spec, namespace=namespace, creationTimestamp=created)


@pytest.mark.parametrize(
    ("hosts", "left"),
    [
        ([host_of(2025)], ["a.com"]),
        ([host_of(2023)], []),
        ([host_of(2025), host_of(2023, "default", "websecure")], ["a.com"]),
        ([host_of(2025, "default")], []),
    ],
)
def test_hosts_of_other_namespaces_take_no_name_of_an_older_stream(hosts: list[Any], left: list[str]) -> None:
    """Else everybody who may write an IngressRoute could have the connections of a stream."""
    made = Streams(stream_of(2024), *hosts, *WEB_OF_OTHERS)
    assert [name for each in made.routes for name in each.server_names] == left


def test_a_stream_is_judged_again_when_its_host_has_another_owner_elsewhere() -> None:
    translation = Translation(DIALECTS, replace(DEFAULT_SETTINGS, entry_points=ENTRY_POINTS))
    translation.activate("a")
    stream = stream_of(2024)
    for made in (service(), endpoint_slice("web", "10.0.0.1"), *WEB_OF_OTHERS, stream, host_of(2025)):
        translation.apply(applied(made))
    served = []
    for change in (None, host_of(2023, entry_point="websecure")):
        if change is not None:
            translation.apply(applied(change))
        for _ in translation.settle():
            pass
        condition = translation.condition(ref_of(stream))
        assert condition is not None
        served.append(condition.is_accepted)
    assert served == [True, False]


def test_hosts_of_a_port_are_looked_up_once_for_all_of_its_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    """With hundreds of streams beside thousands of hosts each change would take many seconds."""
    look_up, counts = EntryListeners.on_port, []

    def counting(self: EntryListeners, port: StreamPort, *, is_tls: bool) -> frozenset[str]:
        counts[-1] += 1
        return look_up(self, port, is_tls=is_tls)

    monkeypatch.setattr(EntryListeners, "on_port", counting)
    for number in (1, 9):
        counts.append(0)
        Streams(
            *(tcp(rule(f"HostSNI(`{each}.com`)"), name=f"s{each}", entryPoints=DB, tls=TLS) for each in range(number))
        )
    assert counts[0] == counts[1]
