"""ApisixConsumers: by value and from Secrets, sealed on their way, with plugins of their own."""

import json
from typing import Any

import pytest
from nacl.public import PrivateKey

from fakes.translator.apisix import Translated, resource
from headgate.common.resources import APISIX_CONSUMER
from headgate.common.sealing import Purpose, Sealer, Unsealer
from headgate.common.table import Consumer, ConsumerGroup, PluginUse
from headgate.translator.world.settings import TranslationSettings
from headgate.watcher.objects.preparing import prepare

KEY = PrivateKey.generate()


def consumer(parameters: Any = None, **fields: Any) -> Any:
    written = {} if parameters is None else {"authParameter": parameters}
    manifest = prepare(
        APISIX_CONSUMER, resource("ApisixConsumer", "jack", {**written, **fields}), Sealer("a", [KEY.public_key])
    )
    assert manifest is not None
    return manifest


def secret(**values: str) -> Any:
    sealer = Sealer("a", [KEY.public_key])
    sealed = {key: sealer.seal(value.encode(), Purpose.VALUE).model_dump() for key, value in values.items()}
    metadata = {"name": "values", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata, "sealed": {"values": sealed}}


def found(table: Translated) -> Consumer:
    (one,) = (entry for entry in table.offline.entries if isinstance(entry, Consumer))
    return one


def opened(use: PluginUse) -> dict[str, Any]:
    """Return what a gateway makes of a credential."""
    unseal = Unsealer([KEY]).open
    secrets = {place: unseal(value, Purpose.CREDENTIAL).reveal().decode() for place, value in use.secrets.items()}
    return use.config | secrets


PARAMETERS = [
    ("keyAuth", "key-auth", {"key": "k"}),
    ("basicAuth", "basic-auth", {"username": "jack", "password": "p"}),
    ("jwtAuth", "jwt-auth", {"key": "k", "secret": "s"}),
    ("hmacAuth", "hmac-auth", {"key_id": "k", "secret_key": "s"}),
    ("ldapAuth", "ldap-auth", {"user_dn": "cn=jack,dc=a"}),
    ("wolfRBAC", "wolf-rbac", {"server": "http://wolf:12180", "appid": "app"}),
]


@pytest.mark.parametrize(("parameter", "plugin", "value"), PARAMETERS)
def test_a_consumer_by_value(parameter: str, plugin: str, value: Any) -> None:
    table = Translated(consumer({parameter: {"value": value}}))
    assert table.problems("jack") == []
    (credential,) = found(table).credentials
    assert (credential.use.name, opened(credential.use)) == (plugin, value)
    assert found(table).name == "default_jack"


@pytest.mark.parametrize(("parameter", "plugin", "value"), PARAMETERS)
def test_a_consumer_from_a_secret(parameter: str, plugin: str, value: Any) -> None:
    table = Translated(consumer({parameter: {"secretRef": {"name": "values"}}}), secret(**value, other="x"))
    assert table.problems("jack") == []
    (credential,) = found(table).credentials
    assert (credential.use.name, opened(credential.use)) == (plugin, value)


def test_no_secret_of_a_consumer_is_readable_on_its_way() -> None:
    parameters = {"keyAuth": {"value": {"key": "first-secret"}}}
    plugins = [{"name": "basic-auth", "enable": True, "config": {"username": "jack", "password": "other-secret"}}]
    text = json.dumps(consumer(parameters, plugins=plugins))
    assert "first-secret" not in text
    assert "other-secret" not in text
    assert "jack" in text


def test_the_first_of_several_parameters_counts() -> None:
    table = Translated(consumer({name: {"value": value} for name, _, value in reversed(PARAMETERS)}))
    assert [one.use.name for one in found(table).credentials] == ["key-auth"]


def test_the_older_names_of_hmac_are_read_and_what_is_said_on_the_route_is_said() -> None:
    value = {"access_key": "k", "secret_key": "s", "clock_skew": 10}
    table = Translated(consumer({"hmacAuth": {"value": value}}))
    assert opened(found(table).credentials[0].use) == {"key_id": "k", "secret_key": "s"}
    assert [one.field for one in table.problems("jack")] == ["spec.authParameter.hmacAuth.value.clock_skew"]


def test_plugins_hold_for_the_consumers_requests_and_those_that_recognise_are_credentials() -> None:
    limit = {"name": "limit-count", "enable": True, "config": {"count": 1, "time_window": 60}}
    key = {"name": "key-auth", "enable": True, "config": {"key": "mine"}}
    table = Translated(consumer(plugins=[limit, key]))
    assert table.problems("jack") == []
    assert [use.name for use in found(table).plugins] == ["limit-count"]
    assert opened(found(table).credentials[0].use) == {"key": "mine"}


@pytest.mark.parametrize(
    ("parameters", "field"),
    [
        ({}, "spec.authParameter"),
        ({"keyAuth": {}}, "spec.authParameter.keyAuth.value"),
        ({"keyAuth": {"value": {"key": ""}}}, "spec.authParameter.keyAuth.value.key"),
        ({"basicAuth": {"value": {"username": "jack"}}}, "spec.authParameter.basicAuth.value.password"),
        ({"jwtAuth": {"value": {"key": "k", "algorithm": "RS256"}}}, "spec.authParameter.jwtAuth.value"),
        ({"keyAuth": {"secretRef": {"name": "none"}}}, "spec.authParameter.keyAuth.secretRef.name"),
    ],
)
def test_a_consumer_that_nobody_could_be_is_refused_at_its_field(parameters: Any, field: str) -> None:
    table = Translated(consumer(parameters))
    assert table.errors("jack") == [field]
    assert not any(isinstance(entry, Consumer) for entry in table.offline.entries)


def test_a_consumer_without_credentials_is_one_that_routes_may_name() -> None:
    limit = {"name": "limit-count", "enable": True, "config": {"count": 1, "time_window": 60}}
    table = Translated(consumer(plugins=[limit]))
    assert table.problems("jack") == []
    assert (found(table).credentials, [use.name for use in found(table).plugins]) == ((), ["limit-count"])


def test_labels_say_of_which_group_a_consumer_is_and_which_plugins_are_the_groups() -> None:
    group = {"headgate.dev/consumer-group": "gold"}
    jack = {**consumer({"keyAuth": {"value": {"key": "k"}}})}
    jack["metadata"] = {**jack["metadata"], "labels": {**group, "custom_id": "7"}}
    limit = {"name": "limit-count", "enable": True, "config": {"count": 1, "time_window": 60}}
    gold = resource("ApisixPluginConfig", "gold", {"plugins": [limit]}, labels=group)
    other = resource("ApisixPluginConfig", "other", {"plugins": [limit]})
    table = Translated(jack, gold, other)
    assert (found(table).group, found(table).labels["custom_id"]) == ("default_gold", "7")
    (made,) = (entry for entry in table.offline.entries if isinstance(entry, ConsumerGroup))
    assert (made.name, [use.name for use in made.plugins]) == ("default_gold", ["limit-count"])


def test_a_plugin_of_a_consumer_or_group_that_cannot_be_followed_is_not_left_out() -> None:
    group = {"headgate.dev/consumer-group": "gold"}
    broken = {"name": "ip-restriction", "enable": True, "config": {"whitelist": ["nowhere"]}}
    jack = consumer({"keyAuth": {"value": {"key": "k"}}}, plugins=[broken])
    table = Translated(jack, resource("ApisixPluginConfig", "gold", {"plugins": [broken]}, labels=group))
    (gold,) = (entry for entry in table.offline.entries if isinstance(entry, ConsumerGroup))
    for entry in (found(table), gold):
        (use,) = entry.plugins
        assert (use.name, "nowhere" in use.fault) == ("ip-restriction", True)


def test_consumers_are_held_to_their_namespace_where_the_settings_say_so() -> None:
    key = {"authParameter": {"basicAuth": {"value": {"username": "jack", "password": "p"}}}}
    several = [resource("ApisixConsumer", "jack", key, namespace=namespace) for namespace in ("team-a", "team-b")]
    held = Translated(*several, settings=TranslationSettings(scoped_consumers=True))
    free = Translated(*several)
    scopes = [[one.is_scoped for one in table.offline.entries if isinstance(one, Consumer)] for table in (held, free)]
    assert scopes == [[True, True], [False, False]]
    reasons = [
        [problem.reason for problems in table.offline.problems.values() for problem in problems]
        for table in (held, free)
    ]
    assert ["CredentialConflict" in found for found in reasons] == [False, True]
