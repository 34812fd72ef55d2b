"""Consumers of v1alpha1: whose they are by their Gateway, and what recognises them."""

import json
from typing import Any

import pytest
from nacl.public import PrivateKey

from fakes.translator.apisix import Translated, resource
from fakes.translator.deltas import applied, deleted
from headgate.common.deltas import Delta
from headgate.common.resources import APISIX_CONSUMER, GATEWAY_CONSUMER
from headgate.common.sealing import Purpose, Sealer, Unsealer
from headgate.common.snapshot import decode_chunk
from headgate.common.table import Consumer, Credential
from headgate.translator.composition import DIALECTS
from headgate.translator.offline import translate_all
from headgate.translator.translation import Translation
from headgate.translator.world.settings import TranslationSettings
from headgate.watcher.objects.preparing import prepare

KEY = PrivateKey.generate()
GATEWAY_REF = {"name": "entrance"}
APISIX = "apisix.apache.org/apisix-ingress-controller"
KEY_AUTH = {"type": "key-auth", "name": "first", "config": {"key": "mine"}}


def of_gateway_api(kind: str, name: str, spec: Any, version: str = "v1", namespace: str = "default") -> Any:
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{kind}-{name}"}
    return {"apiVersion": f"gateway.networking.k8s.io/{version}", "kind": kind, "metadata": metadata, "spec": spec}


def gateway(name: str = "entrance", class_name: str = "edge", namespace: str = "default") -> Any:
    return of_gateway_api("Gateway", name, {"gatewayClassName": class_name}, namespace=namespace)


def gateway_class(controller: str = "headgate.dev/gateway-controller", name: str = "edge") -> Any:
    return of_gateway_api("GatewayClass", name, {"controllerName": controller})


OURS = (gateway(), gateway_class())


def consumer(*credentials: Any, name: str = "jack", gateway_ref: Any = GATEWAY_REF, **spec: Any) -> Any:
    written = {"gatewayRef": gateway_ref, "credentials": list(credentials), **spec}
    manifest = prepare(GATEWAY_CONSUMER, resource("Consumer", name, written, "v1alpha1"), Sealer("a", [KEY.public_key]))
    assert manifest is not None
    return manifest


def secret(namespace: str = "default", **values: str) -> Any:
    sealer = Sealer("a", [KEY.public_key])
    sealed = {key: sealer.seal(value.encode(), Purpose.VALUE).model_dump() for key, value in values.items()}
    metadata = {"name": "values", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata, "sealed": {"values": sealed}}


def consumers(table: Translated) -> list[Consumer]:
    return [entry for entry in table.offline.entries if isinstance(entry, Consumer)]


def opened(credential: Credential) -> tuple[str, str, dict[str, Any]]:
    """Return the name, the plugin, and what a gateway makes of the values."""
    use = credential.use
    unseal = Unsealer([KEY]).open
    secrets = {place: unseal(value, Purpose.CREDENTIAL).reveal().decode() for place, value in use.secrets.items()}
    return credential.name, use.name, use.config | secrets


CREDENTIALS = [
    ("key-auth", {"key": "k"}),
    ("basic-auth", {"username": "jack", "password": "p"}),
    ("jwt-auth", {"key": "k", "secret": "s"}),
    ("hmac-auth", {"key_id": "k", "secret_key": "s"}),
]


# What recognises them


@pytest.mark.parametrize(("plugin", "values"), CREDENTIALS)
def test_a_credential_by_value(plugin: str, values: Any) -> None:
    table = Translated(consumer({"type": plugin, "name": "one", "config": values}), *OURS)
    assert table.problems("jack") == []
    (found,) = consumers(table)
    assert found.name == "default_jack"
    assert [opened(one) for one in found.credentials] == [("one", plugin, values)]


@pytest.mark.parametrize(("plugin", "values"), CREDENTIALS)
def test_a_credential_from_a_secret(plugin: str, values: Any) -> None:
    by_secret = {"type": plugin, "name": "one", "secretRef": {"name": "values"}}
    table = Translated(consumer(by_secret), secret(**values, other="x"), *OURS)
    assert table.problems("jack") == []
    assert [opened(one) for one in consumers(table)[0].credentials] == [("one", plugin, values)]


def test_a_consumer_may_have_several_credentials_of_one_type() -> None:
    second = {"type": "key-auth", "name": "second", "config": {"key": "other"}}
    (found,) = consumers(Translated(consumer(KEY_AUTH, second), *OURS))
    assert [opened(one)[2] for one in found.credentials] == [{"key": "mine"}, {"key": "other"}]


def test_no_secret_of_a_consumer_is_readable_on_its_way() -> None:
    mistyped = {"type": "key-auht", "config": {"key": "second-secret"}}
    plugins = [{"name": "basic-auth", "config": {"username": "jack", "password": "third-secret"}}]
    first = {"type": "key-auth", "config": {"key": "first-secret"}}
    text = json.dumps(consumer(first, mistyped, {"type": "key-auth", "config": "fourth-secret"}, plugins=plugins))
    assert "jack" in text
    assert "-secret" not in text.replace("basic-auth", "")


def test_plugins_hold_for_the_consumers_requests_and_those_that_recognise_are_credentials() -> None:
    limit = {"name": "limit-count", "config": {"count": 1, "time_window": 60}}
    table = Translated(consumer(plugins=[limit, {"name": "key-auth", "config": {"key": "mine"}}]), *OURS)
    assert table.problems("jack") == []
    (found,) = consumers(table)
    assert [use.name for use in found.plugins] == ["limit-count"]
    assert [opened(one)[1:] for one in found.credentials] == [("key-auth", {"key": "mine"})]


def test_labels_are_the_consumers() -> None:
    jack = consumer(KEY_AUTH)
    jack["metadata"]["labels"] = {"custom_id": "7", "headgate.dev/consumer-group": "gold"}
    (found,) = consumers(Translated(jack, *OURS))
    assert found.labels["custom_id"] == "7"
    assert found.group == "default_gold"


def test_an_apisix_consumer_of_the_same_name_is_beside_it() -> None:
    other = {"authParameter": {"keyAuth": {"value": {"key": "other"}}}}
    prepared = prepare(APISIX_CONSUMER, resource("ApisixConsumer", "jack", other), Sealer("a", [KEY.public_key]))
    assert prepared is not None
    table = Translated(consumer(KEY_AUTH), prepared, *OURS)
    assert {(one.key, one.provenance.kind) for one in consumers(table)} == {
        ("a/default/jack", "ApisixConsumer"),
        ("a/default/Consumer/jack", "Consumer"),
    }


@pytest.mark.parametrize(
    ("credential", "field", "told"),
    [
        ({"type": "ldap-auth", "config": {}}, "spec.credentials[0].type", "must be 'jwt-auth', 'basic-auth'"),
        ({"type": "key-auth", "config": {}}, "spec.credentials[0].config.key", "key-auth: is required"),
        ({"type": "key-auth"}, "spec.credentials[0]", "needs exactly one of config and secretRef"),
        ({**KEY_AUTH, "secretRef": {"name": "values"}}, "spec.credentials[0]", "needs exactly one of config"),
        ({"type": "key-auth", "secretRef": {"name": "none"}}, "spec.credentials[0].secretRef.name", "default/none"),
        (
            {"type": "jwt-auth", "config": {"key": "k", "secret": "s", "algorithm": "X"}},
            "spec.credentials[0].config.algorithm",
            "jwt-auth: must be",
        ),
    ],
)
def test_a_credential_that_cannot_be_followed_is_named_and_costs_itself(credential: Any, field: str, told: str) -> None:
    table = Translated(consumer(credential, {**KEY_AUTH, "name": "good"}), *OURS)
    (problem,) = table.problems("jack")
    assert problem.field == field
    assert told in problem.message
    assert [one.name for one in consumers(table)[0].credentials] == ["good"]


def test_a_wrong_plugin_is_named_with_what_is_allowed() -> None:
    table = Translated(consumer(KEY_AUTH, plugins=[{"name": "limit-count", "config": {"count": -1}}]), *OURS)
    (problem,) = table.problems("jack")
    assert problem.field.startswith("spec.plugins[0].config")
    assert "limit-count" in problem.message


def test_a_consumer_without_credentials_is_one_that_routes_may_name() -> None:
    table = Translated(consumer(), *OURS)
    assert table.problems("jack") == []
    assert consumers(table)[0].credentials == ()


def test_a_consumer_whose_only_credential_is_wrong_is_not_made() -> None:
    table = Translated(consumer({**KEY_AUTH, "config": {"key": ""}}), *OURS)
    assert table.errors("jack") == ["spec.credentials[0].config.key"]
    assert consumers(table) == []


# Secrets of other namespaces


def grant(namespace: str = "vault", source: str = "default", name: str = "") -> Any:
    spec = {
        "from": [{"group": "apisix.apache.org", "kind": "Consumer", "namespace": source}],
        "to": [{"group": "", "kind": "Secret", **({"name": name} if name else {})}],
    }
    return of_gateway_api("ReferenceGrant", "grant", spec, "v1beta1", namespace)


ELSEWHERE = {"type": "key-auth", "secretRef": {"name": "values", "namespace": "vault"}}


@pytest.mark.parametrize("granted", [grant(), grant(name="values")])
def test_a_secret_of_another_namespace_is_read_where_that_is_granted(granted: Any) -> None:
    table = Translated(consumer(ELSEWHERE), secret("vault", key="k"), granted, *OURS)
    assert table.problems("jack") == []
    assert len(consumers(table)) == 1


@pytest.mark.parametrize("others", [(), (grant("default"),), (grant(source="other"),), (grant(name="another"),)])
def test_a_secret_of_another_namespace_is_not_read_without_a_grant(others: Any) -> None:
    table = Translated(consumer(ELSEWHERE), secret("vault", key="k"), *others, *OURS)
    assert table.errors("jack") == ["spec.credentials[0].secretRef.namespace"]
    assert consumers(table) == []


# Whose they are


def test_a_consumer_of_another_controllers_gateway_is_left_alone() -> None:
    manifests = consumer(KEY_AUTH), gateway(), gateway_class(APISIX)
    table = Translated(*manifests)
    assert consumers(table) == []
    assert table.problems("jack") == []
    (why,) = (text for ref, text in table.offline.foreign.items() if ref.name == "jack")
    assert "--controller-names" in why
    adopted = TranslationSettings(controller_names=frozenset({APISIX}))
    assert len(consumers(Translated(*manifests, settings=adopted))) == 1


def test_a_gateway_is_known_by_the_name_of_its_class_where_that_cannot_be_seen() -> None:
    assert len(consumers(Translated(consumer(KEY_AUTH), gateway(class_name="headgate")))) == 1
    assert consumers(Translated(consumer(KEY_AUTH), gateway(class_name="other"))) == []


def test_a_gateway_may_be_in_another_namespace() -> None:
    there = consumer(KEY_AUTH, gateway_ref={"name": "entrance", "namespace": "edge"})
    assert len(consumers(Translated(there, gateway(namespace="edge"), gateway_class()))) == 1


def test_a_consumer_whose_gateway_is_not_there_recognises_nobody_and_is_told() -> None:
    table = Translated(consumer(KEY_AUTH), gateway("other"), gateway_class())
    assert [(one.reason, one.field) for one in table.problems("jack")] == [("GatewayNotFound", "spec.gatewayRef.name")]
    assert consumers(table) == []
    assert not table.is_accepted("jack")


@pytest.mark.parametrize(
    ("gateway_ref", "field"),
    [
        ({}, "spec.gatewayRef.name"),
        (None, "spec.gatewayRef"),
        ({"name": "entrance", "kind": "Service"}, "spec.gatewayRef.kind"),
        ({"name": "entrance", "group": "apps"}, "spec.gatewayRef.group"),
    ],
)
def test_what_names_no_gateway_is_told(gateway_ref: Any, field: str) -> None:
    table = Translated(consumer(KEY_AUTH, gateway_ref=gateway_ref), *OURS)
    assert table.errors("jack") == [field]
    assert consumers(table) == []


def test_one_consumer_without_its_gateway_touches_no_other() -> None:
    lost = consumer(KEY_AUTH, name="lost", gateway_ref={"name": "none"})
    offline = translate_all([applied(one) for one in (lost, consumer(KEY_AUTH), *OURS)])
    assert [entry.name for entry in offline.entries if isinstance(entry, Consumer)] == ["default_jack"]


# As they change


class World:
    """A translation that goes on."""

    def __init__(self, *manifests: Any) -> None:
        self._translation = Translation(DIALECTS)
        self._translation.activate("a")
        self.take(*map(applied, manifests))

    def take(self, *deltas: Delta) -> None:
        for delta in deltas:
            self._translation.apply(delta)
        for _ in self._translation.settle():
            pass

    def keys(self) -> list[str]:
        """Return the keys by which somebody is recognised."""
        chunks = self._translation.assembly.image.chunks()
        entries = [one for chunk in chunks for one in decode_chunk(chunk.kind, chunk.content)]
        found = [one for one in entries if isinstance(one, Consumer)]
        return [opened(one)[2]["key"] for each in found for one in each.credentials]


def test_a_consumer_is_followed_as_it_is_made_changed_and_deleted() -> None:
    world = World(*OURS)
    assert world.keys() == []
    world.take(applied(consumer(KEY_AUTH)))
    assert world.keys() == ["mine"]
    world.take(applied(consumer({**KEY_AUTH, "config": {"key": "new"}})))
    assert world.keys() == ["new"]
    world.take(deleted(consumer(KEY_AUTH)))
    assert world.keys() == []


def test_a_consumer_follows_its_gateway_and_the_class_of_that() -> None:
    world = World(consumer(KEY_AUTH))
    assert world.keys() == []
    world.take(applied(gateway(class_name="headgate")))
    assert world.keys() == ["mine"]
    world.take(applied(gateway_class(APISIX, "headgate")))
    assert world.keys() == []
    world.take(applied(gateway_class(name="headgate")))
    assert world.keys() == ["mine"]
    world.take(deleted(gateway()))
    assert world.keys() == []


def test_a_consumer_follows_its_secret_and_the_grant_for_it() -> None:
    world = World(consumer(ELSEWHERE), secret("vault", key="old"), *OURS)
    assert world.keys() == []
    world.take(applied(grant()))
    assert world.keys() == ["old"]
    world.take(applied(secret("vault", key="new")))
    assert world.keys() == ["new"]
    world.take(deleted(grant()))
    assert world.keys() == []
