"""GatewayClasses and Gateways: whose they are, and how they and their listeners stand."""

from typing import Any

import pytest

from fakes.translator.apisix import resource as apisix
from fakes.translator.deltas import tls_secret
from fakes.translator.gateway_api import (
    Cluster,
    definition,
    gateway,
    gateway_class,
    grant,
    https,
    listener,
    resource,
    route,
    to,
)
from headgate.common.snapshot import decode_chunk
from headgate.common.table import Listener
from headgate.translator.world.entry_points import EntryPoint
from headgate.translator.world.settings import TranslationSettings

GOOD = {
    "Accepted": "True Accepted",
    "Programmed": "True Programmed",
    "ResolvedRefs": "True ResolvedRefs",
    "Conflicted": "False NoConflicts",
}
UNCHECKED = {"SupportedVersion": "Unknown NotChecked"}
INVALID_CERTIFICATE = {**GOOD, "Programmed": "False Invalid", "ResolvedRefs": "False InvalidCertificateRef"}


def secret_of(namespace: str, name: str = "cert", *names: str) -> Any:
    made = tls_secret(name, *(names or ("a.example",)))
    made["metadata"]["namespace"] = namespace
    return made


# GatewayClasses


def test_addresses_of_the_parameters_are_shown_and_those_of_the_gateway_go_first() -> None:
    proxy = {"group": "apisix.apache.org", "kind": "GatewayProxy", "name": "proxy"}
    above = gateway_class(parametersRef={**proxy, "namespace": "default"})
    written = gateway(spec={"infrastructure": {"parametersRef": {"group": "", "kind": "ConfigMap", "name": "own"}}})
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "own", "namespace": "default"}}
    of_class = apisix("GatewayProxy", "proxy", {"statusAddress": ["192.0.2.1"]}, "v1alpha1")
    cluster = Cluster(above, of_class, written, {**config_map, "data": {"addresses": "192.0.2.7 a.example"}})
    assert cluster.conditions(above)["Accepted"] == "True Accepted"
    assert sorted(cluster.addresses(written)) == ["192.0.2.7", "a.example"]
    cluster.apply(gateway())
    assert cluster.addresses(written) == ["192.0.2.1"]


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({"plugin": "a"}, "data.plugin: is no parameter"),
        ({"addresses": "a b_c"}, "b_c is neither an address"),
        ({"plugins": "gone"}, "Plugin default/gone not found"),
        ({"addresses": " ".join(f"10.0.0.{number}" for number in range(17))}, "has 17 elements"),
    ],
)
def test_a_config_map_that_cannot_be_followed_is_told(data: Any, told: str) -> None:
    written = gateway(spec={"infrastructure": {"parametersRef": {"group": "", "kind": "ConfigMap", "name": "own"}}})
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "own", "namespace": "default"}}
    cluster = Cluster(written, {**config_map, "data": data})
    assert cluster.conditions(written)["Accepted"] == "False InvalidParameters"
    status = cluster.status(written)
    assert status is not None
    assert told in next(one["message"] for one in status["conditions"] if one["type"] == "Accepted")


def test_a_class_of_ours_is_accepted_and_does_not_know_the_version_of_the_definitions() -> None:
    assert Cluster().conditions(gateway_class()) == {"Accepted": "True Accepted", **UNCHECKED}


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("v1.6.3", "True SupportedVersion"),
        ("v1.0.0", "True SupportedVersion"),
        ("v1.6.0-rc.2", "True SupportedVersion"),
        ("v1.7.0", "False UnsupportedVersion"),
        ("v0.8.1", "False UnsupportedVersion"),
        ("v2.0.0", "False UnsupportedVersion"),
        ("monthly-2026.01", "False UnsupportedVersion"),
        ("", "Unknown NotChecked"),
    ],
)
def test_a_class_says_whether_the_installed_definitions_are_of_a_known_version(version: str, said: str) -> None:
    conditions = Cluster(definition(version)).conditions(gateway_class())
    assert conditions == {"Accepted": "True Accepted", "SupportedVersion": said}


def test_a_class_follows_the_definitions_while_they_are_upgraded_and_other_definitions_say_nothing() -> None:
    cluster = Cluster(definition("v1.6.3"), definition("v1.7.0", "httproutes.gateway.networking.k8s.io"))
    assert cluster.conditions(gateway_class())["SupportedVersion"] == "True SupportedVersion"
    cluster.apply(definition("v1.7.0"))
    status = cluster.status(gateway_class())
    assert status is not None
    said = next(one for one in status["conditions"] if one["type"] == "SupportedVersion")
    assert (said["status"], "v1.7.0" in said["message"], "1.6" in said["message"]) == ("False", True, True)


def test_a_class_lists_the_features_that_are_served_in_order() -> None:
    status = Cluster().status(gateway_class())
    assert status is not None
    names = [feature["name"] for feature in status["supportedFeatures"]]
    assert names == sorted(names)
    assert {"Gateway", "HTTPRoute", "HTTPRouteCORS", "ReferenceGrant"} <= set(names)
    assert "Mesh" not in names


@pytest.mark.parametrize("is_made", [False, True])
def test_infrastructure_is_claimed_where_an_account_is_made_and_else_warned_of(is_made: bool) -> None:
    written = gateway(spec={"infrastructure": {"labels": {"team": "shop"}}})
    cluster = Cluster(written, settings=TranslationSettings(have_infrastructure=is_made))
    of_class = cluster.status(gateway_class())
    assert of_class is not None
    assert ({"name": "GatewayInfrastructure"} in of_class["supportedFeatures"]) is is_made
    ref = next(ref for ref in cluster.translation.assembly.fragments if ref.resource == "gateways")
    condition = cluster.translation.condition(ref)
    assert condition is not None
    assert ("spec.infrastructure" not in [one.field for one in condition.problems]) is is_made


def test_a_class_of_another_controller_gets_no_status_and_nor_do_its_gateways() -> None:
    foreign = gateway_class("other", "example.com/gateway")
    theirs = gateway(spec={"gatewayClassName": "other"})
    cluster = Cluster(foreign, theirs)
    assert cluster.status(foreign) is None
    assert cluster.status(theirs) is None


def test_a_controller_that_is_adopted_counts_as_ours() -> None:
    settings = TranslationSettings(controller_names=frozenset(("example.com/gateway",)))
    cluster = Cluster(gateway_class("edge", "example.com/gateway"), gateway(), settings=settings)
    assert cluster.conditions(gateway())["Accepted"] == "True Accepted"


def test_a_class_with_parameters_is_not_accepted() -> None:
    written = gateway_class(parametersRef={"group": "example.com", "kind": "Config", "name": "c"})
    assert Cluster(written).conditions(written) == {"Accepted": "False InvalidParameters", **UNCHECKED}


def test_objects_of_v1beta1_are_read_the_same() -> None:
    written = [
        {**one, "apiVersion": "gateway.networking.k8s.io/v1beta1"} for one in (gateway_class(), gateway(), route(to()))
    ]
    cluster = Cluster(*written)
    assert [cluster.conditions(one).get("Accepted") for one in written[:2]] == ["True Accepted"] * 2
    assert cluster.parents(written[2])[0]["Accepted"] == "True Accepted"


# Gateways


def test_a_gateway_and_its_listener_are_accepted_and_programmed() -> None:
    cluster = Cluster(gateway())
    assert cluster.conditions(gateway()) == {name: GOOD[name] for name in ("Accepted", "ResolvedRefs", "Programmed")}
    assert cluster.listeners(gateway()) == {"http": GOOD}


def test_conditions_have_the_generation_that_they_are_about() -> None:
    written = gateway(generation=7)
    status = Cluster(written).status(written)
    assert status is not None
    conditions = [*status["conditions"], *status["listeners"][0]["conditions"]]
    assert {one["observedGeneration"] for one in conditions} == {7}


def test_a_listener_of_a_protocol_that_is_not_served_costs_itself() -> None:
    written = gateway(listener(), listener("db", 5432, "example.com/DB"))
    cluster = Cluster(written)
    found = cluster.listeners(written)
    assert found["http"] == GOOD
    assert found["db"]["Accepted"] == "False UnsupportedProtocol"
    assert found["db"]["Programmed"] == "False Invalid"
    assert cluster.conditions(written)["Accepted"] == "True ListenersNotValid"


def test_a_gateway_without_a_listener_that_is_accepted_is_not_accepted() -> None:
    written = gateway(listener("db", 5432, "example.com/DB"))
    found = Cluster(written).conditions(written)
    assert found["Accepted"] == "False ListenersNotValid"
    assert found["Programmed"] == "False Invalid"


def test_an_update_with_a_bad_listener_leaves_the_good_ones_as_they_are_now() -> None:
    cluster = Cluster(gateway(listener(hostname="old.example")))
    changed = gateway(listener(hostname="new.example"), listener("db", 5432, "example.com/DB"))
    cluster.apply(changed)
    assert cluster.listeners(changed)["http"] == GOOD
    assert cluster.translation.assembly.image.get("hosts", "new.example@http") is not None


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"infrastructure": {"parametersRef": {"group": "a", "kind": "B", "name": "c"}}}, "InvalidParameters"),
        ({"addresses": [{"type": "IPAddress", "value": "192.0.2.1"}]}, "UnsupportedAddress"),
        ({"tls": {"frontend": {"default": {"validation": {}}}}}, "UnsupportedValue"),
    ],
)
def test_a_gateway_that_asks_for_what_there_is_not_is_not_accepted_and_serves_nothing(spec: Any, reason: str) -> None:
    written = gateway(spec=spec)
    cluster = Cluster(written, route(to()))
    assert cluster.conditions(written)["Accepted"] == f"False {reason}"
    assert cluster.conditions(written)["Programmed"] == "False Invalid"
    assert cluster.listeners(written)["http"]["Accepted"] == "Unknown Pending"
    assert cluster.parents(route(to()))[0]["Accepted"] == "False Pending"
    assert list(cluster.translation.assembly.image.chunks()) == []


def test_an_address_of_a_type_without_a_value_is_any_and_served() -> None:
    written = gateway(spec={"addresses": [{"type": "IPAddress"}]})
    assert Cluster(written).conditions(written)["Accepted"] == "True Accepted"


# Conflicts and ports


def test_listeners_of_one_port_and_hostname_are_in_conflict() -> None:
    written = gateway(listener("one"), listener("two"), listener("three", hostname="a.example"))
    found = Cluster(written).listeners(written)
    for name in ("one", "two"):
        assert found[name]["Conflicted"] == "True HostnameConflict"
        assert found[name]["Accepted"] == "False HostnameConflict"
    assert found["three"] == GOOD


def test_listeners_of_one_port_and_two_protocols_are_in_conflict() -> None:
    written = gateway(listener("plain", 8080), https("tls", port=8080, hostname="a.example"))
    found = Cluster(written).listeners(written)
    assert {found[name]["Conflicted"] for name in found} == {"True ProtocolConflict"}


@pytest.mark.parametrize("one", [listener("tls", 443), https("plain", "cert", port=80)])
def test_the_ports_of_the_gateways_speak_what_they_speak(one: Any) -> None:
    written = gateway(one)
    assert Cluster(written).listeners(written)[one["name"]]["Accepted"] == "False PortUnavailable"


def test_the_port_of_an_entry_point_is_not_to_be_had() -> None:
    settings = TranslationSettings(entry_points=(EntryPoint("metrics", "tcp", 9100),))
    written = gateway(listener(port=9100))
    assert Cluster(written, settings=settings).listeners(written)["http"]["Accepted"] == "False PortUnavailable"


def listeners_of(cluster: Cluster) -> list[Listener]:
    chunks = (chunk for chunk in cluster.translation.assembly.image.chunks() if chunk.kind == "listeners")
    entries = (entry for chunk in chunks for entry in decode_chunk(chunk.kind, chunk.content))
    return [entry for entry in entries if isinstance(entry, Listener)]


def test_a_port_of_two_gateways_is_one_listener_that_stays_while_one_of_them_has_it() -> None:
    first, second = gateway(listener(port=8081), name="one"), gateway(listener(port=8081), name="two")
    cluster = Cluster(first, second)
    assert [(each.key, each.port) for each in listeners_of(cluster)] == [("gateway-api/http:8081", 8081)]
    cluster.delete(first)
    assert len(listeners_of(cluster)) == 1
    assert cluster.conditions(second)["Accepted"] == "True Accepted"
    cluster.delete(second)
    assert listeners_of(cluster) == []


# Kinds of routes


def test_kinds_that_are_not_served_are_left_out_of_those_that_a_listener_supports() -> None:
    kinds = [{"kind": "HTTPRoute"}, {"kind": "TLSRoute"}]
    written = gateway(listener(allowedRoutes={"kinds": kinds}), listener("odd", 81, allowedRoutes={"kinds": kinds[1:]}))
    cluster = Cluster(written)
    status = cluster.status(written)
    assert status is not None
    assert [[kind["kind"] for kind in one["supportedKinds"]] for one in status["listeners"]] == [["HTTPRoute"], []]
    found = cluster.listeners(written)
    assert found["http"]["ResolvedRefs"] == found["odd"]["ResolvedRefs"] == "False InvalidRouteKinds"
    assert found["http"]["Programmed"] == "True Programmed"
    assert found["odd"]["Programmed"] == "False Invalid"


# Certificates


def test_a_certificate_is_presented_for_the_hostname_of_its_listener() -> None:
    written = gateway(https("https", "cert", hostname="*.example.com"))
    cluster = Cluster(secret_of("default", "cert", "b.example.com", "other.example"), written)
    assert cluster.listeners(written)["https"] == GOOD
    assert presented(cluster) == {"a/default/cert": ("*.example.com", "b.example.com")}


def test_a_listener_for_all_hosts_has_its_certificate_for_all_names() -> None:
    cluster = Cluster(secret_of("default"), gateway(https("https", "cert")))
    assert presented(cluster) == {"a/default/cert": ("", "a.example")}


def test_of_several_certificates_the_first_is_for_names_that_none_has() -> None:
    one, two = secret_of("default", "one", "a.example"), secret_of("default", "two", "a.example", "b.example")
    cluster = Cluster(one, two, gateway(https("https", "one", "two")))
    assert presented(cluster) == {"a/default/one": ("", "a.example"), "a/default/two": ("b.example",)}


def presented(cluster: Cluster) -> dict[str, tuple[str, ...]]:
    chunks = (chunk for chunk in cluster.translation.assembly.image.chunks() if chunk.kind == "certificates")
    entries = (entry for chunk in chunks for entry in decode_chunk(chunk.kind, chunk.content))
    return {entry.key: entry.server_names for entry in entries}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "named", ["missing", {"name": "cert", "kind": "ConfigMap"}, {"name": "cert", "group": "example.com"}]
)
def test_a_certificate_that_cannot_be_had_is_said_of_its_listener(named: Any) -> None:
    written = gateway(https("https", named))
    cluster = Cluster(secret_of("default"), written, route(to()))
    assert cluster.listeners(written) == {"https": INVALID_CERTIFICATE}
    assert cluster.attached(written) == {"https": 1}
    assert cluster.conditions(written)["Accepted"] == "True ListenersNotValid"


def test_a_secret_without_a_usable_certificate_and_a_listener_without_any_are_as_bad() -> None:
    bad = tls_secret("bad", problem="tls.key does not fit the certificate")
    written = gateway(https("https", "bad"), https("none", port=8443))
    found = Cluster(bad, written).listeners(written)
    assert found == {"https": INVALID_CERTIFICATE, "none": INVALID_CERTIFICATE}


def test_a_secret_that_comes_later_mends_its_listener() -> None:
    written = gateway(https("https", "cert"))
    cluster = Cluster(written)
    cluster.apply(secret_of("default"))
    assert cluster.listeners(written) == {"https": GOOD}


@pytest.mark.parametrize(
    ("granted", "reason"),
    [
        ([], "False RefNotPermitted"),
        ([grant("Gateway", "default", "Secret", namespace="certs")], "True ResolvedRefs"),
        ([grant("Gateway", "default", "Secret", "cert", namespace="certs")], "True ResolvedRefs"),
        ([grant("Gateway", "default", "Secret", "other", namespace="certs")], "False RefNotPermitted"),
        ([grant("Gateway", "other", "Secret", namespace="certs")], "False RefNotPermitted"),
        ([grant("HTTPRoute", "default", "Secret", namespace="certs")], "False RefNotPermitted"),
        ([grant("Gateway", "default", "Service", namespace="certs")], "False RefNotPermitted"),
        ([grant("Gateway", "default", "Secret", namespace="default")], "False RefNotPermitted"),
    ],
)
def test_a_secret_of_another_namespace_needs_a_grant(granted: Any, reason: str) -> None:
    written = gateway(https("https", {"name": "cert", "namespace": "certs"}))
    cluster = Cluster(secret_of("certs"), written, *granted)
    assert cluster.listeners(written)["https"]["ResolvedRefs"] == reason


def test_a_grant_that_goes_takes_the_certificate_with_it() -> None:
    written = gateway(https("https", {"name": "cert", "namespace": "certs"}))
    permission = grant("Gateway", "default", "Secret", namespace="certs")
    cluster = Cluster(secret_of("certs"), written, permission)
    cluster.delete(permission)
    assert presented(cluster) == {}


# What is wrong


def test_what_is_ignored_is_warned_of() -> None:
    infrastructure = {"labels": {"a": "b"}}
    written = gateway(spec={"infrastructure": infrastructure, "defaultScope": "All"})
    cluster = Cluster(written)
    ref = next(ref for ref in cluster.translation.assembly.fragments if ref.resource == "gateways")
    condition = cluster.translation.condition(ref)
    assert condition is not None
    assert [one.field for one in condition.problems] == ["spec.infrastructure", "spec.defaultScope"]
    assert cluster.conditions(written)["Accepted"] == "True Accepted"


def test_a_spec_that_is_none_costs_the_gateway_alone() -> None:
    broken = resource("Gateway", "broken", {"gatewayClassName": "edge", "listeners": [{"name": "http", "port": "x"}]})
    cluster = Cluster(broken, gateway())
    assert cluster.conditions(broken)["Accepted"].startswith("False")
    assert cluster.conditions(gateway())["Accepted"] == "True Accepted"
