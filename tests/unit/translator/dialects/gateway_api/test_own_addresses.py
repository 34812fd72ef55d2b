"""Gateways with addresses of their own: what goes into the table, what is held apart, and what statuses say."""

from dataclasses import replace
from typing import Any

import pytest

from fakes.translator.deltas import applied, tls_secret
from fakes.translator.gateway_api import Cluster, gateway, gateway_class, https, listener, route, to
from headgate.common.resources import JsonObject
from headgate.common.selection import Selection
from headgate.common.snapshot import decode_chunk
from headgate.common.table import Certificate, Listener, VirtualHost
from headgate.translator.composition import DIALECTS
from headgate.translator.translation import Translation
from headgate.translator.world.address_pool import read_pool
from headgate.translator.world.entry_points import EntryPoint
from headgate.translator.world.settings import TranslationSettings

SETTINGS = TranslationSettings(gateway_addresses=read_pool(["10.0.0.0/29"]))
ONE, TWO = gateway(name="one"), gateway(name="two")
OLD, YOUNG = "2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z"


def cluster(*manifests: Any, pool: tuple[str, ...] = ("10.0.0.0/29",)) -> Cluster:
    return Cluster(*manifests, settings=TranslationSettings(gateway_addresses=read_pool(pool)))


def table(of: Cluster | Translation, kind: str) -> list[Any]:
    translation = of if isinstance(of, Translation) else of.translation
    chunks = (each for each in translation.assembly.image.chunks() if each.kind == kind)
    return [entry for chunk in chunks for entry in decode_chunk(chunk.kind, chunk.content)]


def listeners(of: Cluster | Translation) -> dict[str, Listener]:
    return {each.key: each for each in table(of, "listeners")}


def hosts(of: Cluster) -> dict[str, VirtualHost]:
    return {each.key: each for each in table(of, "hosts")}


def asking(name: str, *values: str, **more: Any) -> JsonObject:
    addresses = [{"type": "IPAddress", **({"value": value} if value else {})} for value in values]
    found: JsonObject = gateway(name=name, spec={"addresses": addresses}, **more)
    return found


# The table


def test_a_gateway_without_a_pool_has_the_addresses_of_the_gateways() -> None:
    found = Cluster(ONE, TWO)
    assert found.addresses(ONE) == []
    assert listeners(found) == {}


def test_every_gateway_has_an_address_which_its_status_shows_and_its_listeners_are_on() -> None:
    found = cluster(ONE, TWO)
    (one,), (two,) = found.addresses(ONE), found.addresses(TWO)
    assert one != two
    assert {key: (each.address, each.port) for key, each in listeners(found).items()} == {
        "gateway-api/a/default/one//http": (one, 80),
        "gateway-api/a/default/two//http": (two, 80),
    }


def test_a_port_has_a_listener_for_each_hostname_with_its_certificates() -> None:
    made = [https("one", "cert", hostname="a.example"), https("two", "cert", "other", hostname="*.b.example")]
    found = cluster(tls_secret("cert", "a.example"), tls_secret("other", "x.b.example"), gateway(*made))
    listed = listeners(found)
    assert {each.host for each in listed.values()} == {"a.example", "**.b.example"}
    assert listed["gateway-api/a/default/gw//two"].certificates == ("a/default/cert", "a/default/other")


def test_a_certificate_of_an_own_address_is_presented_at_no_other_one() -> None:
    found = cluster(tls_secret("cert", "a.example"), gateway(https("https", "cert")))
    (certificate,) = (each for each in table(found, "certificates") if isinstance(each, Certificate))
    assert (certificate.key, certificate.server_names) == ("a/default/cert", ())


def test_a_certificate_leaves_the_table_with_its_listener() -> None:
    found = cluster(tls_secret("cert", "a.example"), gateway(https("https", "cert")))
    found.apply(gateway())
    assert table(found, "certificates") == []
    found.apply(gateway(https("https", "cert")))
    assert len(table(found, "certificates")) == 1


def test_any_port_speaks_any_protocol_and_none_is_the_gateways_own() -> None:
    pool = read_pool(["10.0.0.0/29"])
    settings = TranslationSettings(gateway_addresses=pool, entry_points=(EntryPoint("metrics", "tcp", 9100),))
    written = gateway(listener("tls", 443), https("plain", "cert", port=80), listener("own", 9100))
    found = Cluster(tls_secret("cert", "a.example"), written, settings=settings)
    assert {each["Accepted"] for each in found.listeners(written).values()} == {"True Accepted"}


def test_two_gateways_with_equal_ports_and_hostnames_hold_their_routes_apart() -> None:
    routes = [
        route(to("web"), name="of-one", parents=[{"name": "one"}]),
        route(to("web"), name="of-two", parents=[{"name": "two"}]),
    ]
    found = hosts(cluster(ONE, TWO, *routes))
    assert set(found) == {"*@gateway-api/a/default/one//http", "*@gateway-api/a/default/two//http"}
    assert [len(each.routes) for each in found.values()] == [1, 1]


def test_a_route_of_two_gateways_is_at_the_addresses_of_both() -> None:
    both = route(to("web"), parents=[{"name": "one"}, {"name": "two"}], hostnames=["a.example"])
    found = hosts(cluster(ONE, TWO, both))
    assert {key for key, each in found.items() if each.routes} == {
        "a.example@gateway-api/a/default/one//http",
        "a.example@gateway-api/a/default/two//http",
    }


def test_a_host_has_an_owner_for_each_address() -> None:
    theirs = [gateway(name="two", namespace="other"), route(to("web"), parents=[{"name": "two"}], namespace="other")]
    mine = [ONE, route(to("web"), parents=[{"name": "one"}])]
    found = cluster(*mine, *theirs)
    assert found.parents(mine[1])[0]["Accepted"] == "True Accepted"
    assert found.parents(theirs[1])[0]["Accepted"] == "True Accepted"
    assert sorted(len(each.routes) for each in hosts(found).values()) == [1, 1]


def test_routes_of_namespaces_that_a_gateway_lets_in_share_its_hosts_at_its_address() -> None:
    open_to_all = gateway(listener(allowedRoutes={"namespaces": {"from": "All"}}), name="one")
    parents = [{"name": "one", "namespace": "default"}]
    guests = [
        route(to("web", matches=[{"path": {"value": f"/{each}"}}]), parents=parents, namespace=each) for each in "xy"
    ]
    found = cluster(open_to_all, *guests)
    (host,) = hosts(found).values()
    assert len(host.routes) == 2


# Addresses that stay


def test_a_gateway_keeps_the_address_that_its_status_shows_when_an_older_one_goes() -> None:
    old, young = gateway(name="old", creationTimestamp=OLD), asking("young", "", creationTimestamp=YOUNG)
    found = cluster(old, young, pool=("10.0.0.4/31",))
    before = found.addresses(young)
    found.keep(old, young)
    found.delete(old)
    assert found.addresses(young) == before
    found.apply(gateway(name="aged", creationTimestamp="2020-01-01T00:00:00Z"))
    assert found.addresses(young) == before


def test_an_address_is_released_with_its_gateway() -> None:
    found = cluster(ONE, pool=("10.0.0.4",))
    found.apply(TWO)
    assert found.addresses(TWO) == []
    found.delete(ONE)
    assert found.addresses(TWO) == ["10.0.0.4"]
    assert [each.address for each in listeners(found).values()] == ["10.0.0.4"]


def test_a_bad_version_keeps_the_addresses_of_the_last_good_one() -> None:
    found = cluster(gateway(name="old", creationTimestamp=OLD), ONE)
    (kept,) = found.keep(ONE)
    before = found.addresses(ONE)
    found.apply({**kept, "spec": {"gatewayClassName": "edge", "listeners": [{"name": "http", "port": "x"}]}})
    found.delete(gateway(name="old"))
    assert [each.address for each in listeners(found).values()] == before


def test_a_status_that_shows_addresses_translates_no_route_again() -> None:
    found = cluster(ONE, *(route(to("web"), name=f"r{n}", parents=[{"name": "one"}]) for n in range(20)))
    before = found.translation.graph.runs
    found.keep(ONE)
    assert found.translation.graph.runs - before < 10


def test_a_gateway_that_comes_translates_no_other_one() -> None:
    names = [f"g{number}" for number in range(5)]
    found = cluster(
        *(gateway(name=name, creationTimestamp=OLD) for name in names), route(to(), parents=[{"name": "g1"}])
    )
    addresses = [found.addresses(gateway(name=name)) for name in names]
    fragments = dict(found.translation.assembly.fragments)
    found.apply(gateway(name="new", creationTimestamp=YOUNG))
    assert [found.addresses(gateway(name=name)) for name in names] == addresses
    now = found.translation.assembly.fragments
    assert all(now[ref] is fragment for ref, fragment in fragments.items())


def test_gateways_of_several_clusters_share_the_pool() -> None:
    translation = Translation(DIALECTS, SETTINGS)
    for name in ("a", "b"):
        translation.activate(name)
        for each in (gateway_class(), ONE):
            translation.apply(applied(each, name))
    for _ in translation.settle():
        pass
    assert len({each.address for each in listeners(translation).values()}) == 2


def test_gateways_that_are_none_of_ours_or_not_of_the_table_take_no_address() -> None:
    pool = replace(SETTINGS, gateway_addresses=read_pool(["10.0.0.4"]))
    translation = Translation(DIALECTS, pool, selection=Selection(namespaces=("shop",)))
    translation.activate("a")
    foreign = gateway(name="foreign", spec={"gatewayClassName": "other"}, namespace="shop")
    for each in (gateway_class(), foreign, ONE, gateway(name="z", namespace="shop", creationTimestamp=YOUNG)):
        translation.apply(applied(each))
    for _ in translation.settle():
        pass
    assert {key: each.address for key, each in listeners(translation).items()} == {
        "gateway-api/a/shop/z//http": "10.0.0.4"
    }


# What a Gateway asks for


def test_an_address_of_the_pool_is_had() -> None:
    written = asking("gw", "10.0.0.5")
    found = cluster(written)
    assert found.addresses(written) == ["10.0.0.5"]
    assert found.conditions(written)["Programmed"] == "True Programmed"


def test_an_address_without_a_value_is_any_of_the_pool() -> None:
    found = cluster(asking("gw", ""))
    assert len(found.addresses(asking("gw", ""))) == 1


@pytest.mark.parametrize("value", ["192.0.2.1", "10.0.0.0", "10.0.0.256", "fd00::1"])
def test_an_address_outside_of_the_pool_is_not_usable_and_not_served(value: str) -> None:
    written = asking("gw", value)
    found = cluster(written, route(to()))
    conditions = found.conditions(written)
    assert (conditions["Accepted"], conditions["Programmed"]) == ("True Accepted", "False AddressNotUsable")
    assert found.listeners(written)["http"]["Programmed"] == "False Pending"
    assert found.addresses(written) == []
    assert listeners(found) == {}


def test_of_two_gateways_that_ask_for_an_address_the_older_has_it() -> None:
    old = asking("old", "10.0.0.5", creationTimestamp=OLD)
    young = asking("a-young", "10.0.0.5", creationTimestamp=YOUNG)
    found = cluster(young, old)
    assert (found.addresses(old), found.addresses(young)) == (["10.0.0.5"], [])
    assert found.conditions(young)["Programmed"] == "False AddressNotUsable"


def test_an_address_that_cannot_be_had_leaves_the_others_in_service() -> None:
    written = asking("gw", "192.0.2.1", "10.0.0.5")
    found = cluster(written)
    assert found.addresses(written) == ["10.0.0.5"]
    assert found.conditions(written)["Programmed"] == "False AddressNotUsable"
    assert [each.address for each in listeners(found).values()] == ["10.0.0.5"]


def test_a_gateway_with_several_addresses_listens_on_all_of_them() -> None:
    written = asking("gw", "10.0.0.5", "10.0.0.2")
    (found,) = listeners(cluster(written)).values()
    assert (found.address, found.further_addresses) == ("10.0.0.5", ("10.0.0.2",))


@pytest.mark.parametrize("kind", ["Hostname", "example.com/Pool"])
def test_an_address_of_another_type_is_not_supported(kind: str) -> None:
    written = gateway(spec={"addresses": [{"type": kind, "value": "a.example"}]})
    found = cluster(written, route(to()))
    assert found.conditions(written)["Accepted"] == "False UnsupportedAddress"
    assert found.addresses(written) == []
    assert found.parents(route(to()))[0]["Accepted"] == "False Pending"


def test_a_gateway_is_told_step_by_step_which_of_its_addresses_it_cannot_have() -> None:
    unknown, outside, usable = {"type": "test/fake", "value": "x"}, {"value": "192.0.2.1"}, {"value": "10.0.0.5"}
    found = cluster()
    said = []
    for addresses in ([unknown, outside, usable], [outside, usable], [usable]):
        written = gateway(spec={"addresses": addresses})
        found.apply(written)
        conditions = found.conditions(written)
        said.append((conditions["Accepted"], conditions["Programmed"]))
    assert said == [
        ("False UnsupportedAddress", "False Invalid"),
        ("True Accepted", "False AddressNotUsable"),
        ("True Accepted", "True Programmed"),
    ]
    assert found.addresses(written) == ["10.0.0.5"]


def test_a_pool_that_is_used_up_is_said() -> None:
    found = cluster(ONE, TWO, pool=("10.0.0.4",))
    assert found.conditions(TWO)["Accepted"] == "True Accepted"
    assert found.conditions(TWO)["Programmed"] == "False AddressNotAssigned"
    status = found.status(TWO)
    assert status is not None
    (said,) = (one["message"] for one in status["conditions"] if one["type"] == "Programmed")
    assert "all addresses of the pool are taken: 10.0.0.4" in said
    assert "HEADGATE_GATEWAY_ADDRESSES" in said


def test_a_gateway_with_an_error_of_its_own_shows_no_address() -> None:
    written = gateway(spec={"infrastructure": {"parametersRef": {"group": "a", "kind": "B", "name": "c"}}})
    assert cluster(written).addresses(written) == []


def test_names_of_any_characters_are_names_of_listeners() -> None:
    written = gateway(listener("a b,c@d"))
    found = cluster(written)
    assert list(listeners(found)) == ["gateway-api/a/default/gw//a%20b%2Cc%40d"]
