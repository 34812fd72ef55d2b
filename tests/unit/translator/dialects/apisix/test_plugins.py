"""Plugins of rules: merged, with secrets, from shared configurations, and what becomes of those that cannot be run."""

from typing import Any

import pytest
from nacl.public import PrivateKey

from fakes.translator.apisix import Translated, resource, route, rule
from headgate.common.errors import SealingError
from headgate.common.sealing import Purpose, Sealer, Unsealer
from headgate.common.table import PluginUse
from headgate.translator.world.settings import TranslationSettings

KEY = PrivateKey.generate()
CORS = {"name": "cors", "enable": True, "config": {"max_age": 5}}


def plugin(name: str, enable: bool = True, **config: Any) -> Any:
    return {"name": name, "enable": enable, "config": config}


def shared(*plugins: Any, name: str = "shared", **metadata: Any) -> Any:
    return resource("ApisixPluginConfig", name, {"plugins": list(plugins)}, **metadata)


def secret(name: str = "values", *, sealed_by: str = "a", **values: str) -> Any:
    sealer = Sealer(sealed_by, [KEY.public_key])
    sealed = {key: sealer.seal(value.encode(), Purpose.VALUE).model_dump() for key, value in values.items()}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata, "sealed": {"values": sealed}}


def uses(table: Translated, name: str = "rule") -> dict[str, PluginUse]:
    return {use.name: use for use in table.route(name).plugins}


def test_plugins_are_those_that_are_enabled() -> None:
    table = Translated(route(rule(plugins=[CORS, plugin("gzip", enable=False), {"name": "request-id"}])))
    assert table.problems() == []
    assert {name: use.config for name, use in uses(table).items()} == {"cors": {"max_age": 5}, "request-id": {}}


# Shared configurations


def test_a_rules_own_plugin_stands_in_the_place_of_the_shared_one() -> None:
    theirs = shared(plugin("cors", max_age=9), plugin("request-id"))
    table = Translated(route(rule(plugin_config_name="shared", plugins=[CORS])), theirs)
    assert {name: use.config for name, use in uses(table).items()} == {"request-id": {}, "cors": {"max_age": 5}}


def test_the_authentication_block_stands_in_the_place_of_plugins_of_its_name() -> None:
    block = {"enable": True, "type": "keyAuth", "keyAuth": {"header": "X-Key"}}
    table = Translated(route(rule(plugins=[plugin("key-auth", hide_credentials=True)], authentication=block)))
    assert uses(table)["key-auth"].config == {"header": "X-Key"}


def test_a_shared_configuration_may_be_in_another_namespace() -> None:
    fields = {"plugin_config_name": "shared", "plugin_config_namespace": "other"}
    table = Translated(route(rule(**fields)), shared(CORS, namespace="other"))
    assert uses(table).keys() == {"cors"}


def test_a_shared_configuration_that_there_is_not_has_the_rules_requests_refused() -> None:
    table = Translated(route(rule("bad", "/bad", plugin_config_name="none"), rule("good", "/good")))
    assert table.errors() == ["spec.http[0].plugin_config_name"]
    assert "default/none" in table.ask("GET", "a.com/bad").verdict
    assert table.winner("a.com/good") == "route good"


def test_a_shared_configuration_of_another_controller_counts_as_absent() -> None:
    theirs = resource("ApisixPluginConfig", "shared", {"ingressClassName": "theirs", "plugins": [CORS]})
    assert Translated(route(rule(plugin_config_name="shared")), theirs).errors() == ["spec.http[0].plugin_config_name"]


def test_what_is_wrong_in_a_shared_configuration_is_said_to_both_objects() -> None:
    table = Translated(route(rule(plugin_config_name="shared")), shared(plugin("cors", max_age="x")))
    assert table.errors("shared") == ["spec.plugins[0].config.max_age"]
    assert table.errors("route") == ["spec.http[0].plugin_config_name"]
    assert table.route().plugins == ()


# Secrets


def test_the_keys_of_a_secret_are_merged_into_the_configuration_and_stay_sealed() -> None:
    written = {**plugin("response-rewrite", status_code=200), "secretRef": "values"}
    table = Translated(route(rule(plugins=[written])), secret(body="hello", **{"headers.set.X-A": "nested"}))
    assert table.problems() == []
    use = uses(table)["response-rewrite"]
    opened = {place: Unsealer([KEY]).open(value, Purpose.VALUE).reveal() for place, value in use.secrets.items()}
    assert opened == {"body": b"hello", "headers.set.X-A": b"nested"}
    assert use.config == {"status_code": 200}


def test_a_value_that_was_copied_from_the_log_of_another_cluster_is_not_opened() -> None:
    written = {**plugin("response-rewrite"), "secretRef": "values"}
    table = Translated(route(rule(plugins=[written])), secret(body="hello", sealed_by="b"))
    (copied,) = uses(table)["response-rewrite"].secrets.values()
    with pytest.raises(SealingError, match="sealed by cluster 'b'"):
        Unsealer([KEY]).open(copied, Purpose.VALUE)


def test_a_log_cannot_say_of_which_cluster_a_value_is() -> None:
    copied = secret(body="hello", sealed_by="b")
    copied["sealed"]["values"]["body"]["cluster"] = "b"
    table = Translated(route(rule(plugins=[{**plugin("response-rewrite"), "secretRef": "values"}])), copied)
    assert table.errors() == ["spec.http[0].plugins[0].secretRef"]


def test_a_secret_that_is_not_there_is_said_and_the_rules_requests_are_refused() -> None:
    table = Translated(route(rule(plugins=[{**CORS, "secretRef": "none"}])))
    assert table.errors() == ["spec.http[0].plugins[0].secretRef"]
    assert "default/none" in table.ask("GET", "a.com/").verdict


# What cannot be run


def test_a_wrong_configuration_names_plugin_field_value_and_what_is_allowed() -> None:
    table = Translated(route(rule("bad", "/bad", plugins=[plugin("limit-count", count=-1, time_window=1)])))
    (problem,) = table.problems()
    assert problem.field == "spec.http[0].plugins[0].config.count"
    assert problem.message.startswith("plugin limit-count: must be a whole number above 0")
    assert problem.message.endswith("but is -1")
    assert "limit-count" in table.ask("GET", "a.com/bad").verdict


@pytest.mark.parametrize("name", ["skywalking", "sls-logger", "server-info"])
def test_an_unknown_logger_or_tracer_is_left_out_and_said(name: str) -> None:
    table = Translated(route(rule(plugins=[CORS, plugin(name)])))
    assert [(one.severity, one.field) for one in table.problems()] == [("warning", "spec.http[0].plugins[1].name")]
    assert uses(table).keys() == {"cors"}


@pytest.mark.parametrize(
    "name",
    [
        "saml-auth",
        "exit-transformer",
        "serverless-pre-function",
        "ai-lakera-guard",
        "data-mask",
        "ext-plugin-pre-req",
        "keyauth",
    ],
)
def test_any_other_unknown_plugin_has_requests_refused(name: str) -> None:
    table = Translated(route(rule(plugins=[plugin(name)])))
    assert table.errors() == ["spec.http[0].plugins[0].name"]
    assert "HEADGATE_IGNORED_PLUGINS" in table.problems()[0].message
    assert table.route().plugins == ()
    assert table.ask("GET", "a.com/").verdict.startswith("503")


def test_an_unknown_plugin_that_the_operator_ignores_is_left_out_as_one_that_lets_requests_in() -> None:
    settings = TranslationSettings(ignored_plugins=frozenset({"serverless-pre-function"}))
    table = Translated(route(rule(plugins=[CORS, plugin("serverless-pre-function")])), settings=settings)
    assert [(one.severity, one.reason) for one in table.problems()] == [("warning", "GuardIgnored")]
    assert uses(table).keys() == {"cors"}


def test_real_ip_that_believes_everybody_is_a_warning() -> None:
    table = Translated(route(rule(plugins=[plugin("real-ip", source="http_x_real_ip")])))
    fields = [(one.severity, one.field) for one in table.problems()]
    assert fields == [("warning", "spec.http[0].plugins[0].config.trusted_addresses")]
    trusting = plugin("real-ip", source="http_x_real_ip", trusted_addresses=["10.0.0.0/8"])
    assert Translated(route(rule(plugins=[trusting]))).problems() == []


def test_a_third_partys_plugin_is_passed_on() -> None:
    table = Translated(
        route(rule(plugins=[plugin("ours", a=1)])), settings=TranslationSettings(plugin_names=frozenset({"ours"}))
    )
    assert uses(table)["ours"].config == {"a": 1}


# Authentication


@pytest.mark.parametrize(
    ("block", "name", "config"),
    [
        ({"type": "keyAuth"}, "key-auth", {}),
        ({"type": "basicAuth"}, "basic-auth", {}),
        (
            {"type": "jwtAuth", "jwtAuth": {"header": "X-T", "cookie": "t"}},
            "jwt-auth",
            {"header": "X-T", "cookie": "t"},
        ),
        ({"type": "hmacAuth"}, "hmac-auth", {}),
        (
            {"type": "ldapAuth", "ldapAuth": {"base_dn": "dc=a", "ldap_uri": "ldap:389", "uid": "cn"}},
            "ldap-auth",
            {"base_dn": "dc=a", "ldap_uri": "ldap:389", "uid": "cn"},
        ),
    ],
)
def test_an_authentication_block_is_a_plugin(block: Any, name: str, config: Any) -> None:
    table = Translated(route(rule(authentication={"enable": True, **block})))
    assert table.problems() == []
    assert uses(table)[name].config == config


def test_an_authentication_block_that_is_not_enabled_asks_for_nothing() -> None:
    assert uses(Translated(route(rule(authentication={"enable": False, "type": "keyAuth"})))) == {}


def test_a_type_of_authentication_that_there_is_not_is_refused() -> None:
    table = Translated(route(rule(authentication={"enable": True, "type": "keyauth"})))
    assert table.errors() == ["spec.http[0].authentication.type"]
    assert table.winner("a.com/") is None


# Global rules


def global_rule(name: str, *plugins: Any, created: str = "2024-01-01T00:00:00Z") -> Any:
    return resource("ApisixGlobalRule", name, {"plugins": list(plugins)}, creationTimestamp=created)


def test_plugins_of_global_rules_run_for_every_route_before_its_own() -> None:
    table = Translated(route(rule(plugins=[CORS])), global_rule("all", plugin("request-id"), plugin("gzip")))
    assert [use.name for use in table.route().plugins] == ["request-id", "gzip", "cors"]


def test_a_guard_of_every_route_that_cannot_be_followed_refuses_and_does_not_open_them() -> None:
    guards = [plugin("saml-auth"), plugin("ip-restriction", whitelist=["nowhere"]), plugin("cors", max_age="x")]
    keyed = {**plugin("openid-connect"), "secretRef": "gone"}
    table = Translated(route(rule()), global_rule("all", *guards, keyed))
    found = uses(table)
    assert found.keys() == {"saml-auth", "ip-restriction", "openid-connect"}
    assert "requests are refused" in found["saml-auth"].fault
    assert "Secret default/gone is not there" in found["openid-connect"].fault


def test_a_cluster_config_turns_metrics_on_and_says_what_is_not_needed() -> None:
    monitoring = {"prometheus": {"enable": True, "prefer_name": True}, "skywalking": {"enable": True}}
    config = resource("ApisixClusterConfig", "default", {"monitoring": monitoring, "admin": {"baseURL": "http://a"}})
    table = Translated(route(rule()), config)
    assert uses(table)["prometheus"].config == {"prefer_name": True}
    fields = [(one.severity, one.field) for one in table.problems("default")]
    assert fields == [("warning", "spec.monitoring.skywalking"), ("warning", "spec.admin")]


def test_of_one_plugin_in_two_global_rules_that_of_the_older_counts_and_the_other_is_told() -> None:
    old = global_rule("old", plugin("cors", max_age=1), created="2020-01-01T00:00:00Z")
    table = Translated(route(rule()), global_rule("new", plugin("cors", max_age=2)), old)
    assert uses(table)["cors"].config == {"max_age": 1}
    assert [problem.reason for problem in table.problems("new")] == ["PluginConflict"]
    assert table.problems("old") == []


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("uri-blocker", {"block_rules": [f"[a-z]{{900}}{number}" for number in range(40)]}),
        ("degraphql", {"query": "{" + "a " * 1400 + "}"}),
        ("body-transformer", {"request": {"template": "{{a}}" * 1900}}),
        ("request-validation", {"body_schema": {"properties": {str(n): {"pattern": "a"} for n in range(100)}}}),
    ],
)
def test_what_an_object_would_have_everybody_compile_has_a_bound(name: str, config: Any) -> None:
    plugin = {"name": name, "enable": True, "config": config}
    rules = [rule(f"r{number}", f"/{number}", plugins=[plugin]) for number in range(150)]
    table = Translated(route(*rules))
    told = [problem.message for problem in table.problems() if "is too much together" in problem.message]
    assert 1 <= len(told) < 150
    assert table.winner("a.com/0") == "route r0"
