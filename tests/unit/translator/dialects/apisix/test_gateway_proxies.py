"""GatewayProxies: plugins of all routes, metadata of plugins, addresses for statuses, a provider that is not needed."""

import json
from typing import Any

import pytest

from fakes.translator.apisix import Translated, resource, route, rule
from fakes.translator.deltas import applied, deleted, ingress, ingress_class, ref_of, service
from headgate.common.problems import Severity
from headgate.common.resources import GATEWAY_PROXY
from headgate.common.sealing import Sealer
from headgate.common.status import LoadBalancerAddress
from headgate.common.table import PluginUse
from headgate.translator.composition import DIALECTS
from headgate.translator.translation import Translation
from headgate.translator.world.settings import TranslationSettings
from headgate.watcher.objects.preparing import prepare

GZIP = {"name": "gzip", "enabled": True}
AUTH = {"type": "AdminKey", "adminKey": {"value": "edd1c9f034335f136f87ad84b625c8f1"}}
CONTROL_PLANE = {"endpoints": ["http://apisix:9180"], "auth": AUTH}
PROVIDER = {"type": "ControlPlane", "controlPlane": CONTROL_PLANE}


def gateway_proxy(name: str = "proxy", **spec: Any) -> Any:
    return resource("GatewayProxy", name, {"provider": PROVIDER, **spec}, "v1alpha1", namespace="edge")


def class_with(namespace: str = "edge", name: str = "headgate", proxy: str = "proxy", **metadata: Any) -> Any:
    written = {"namespace": namespace} if namespace else {}
    made = ingress_class(name, **metadata)
    parameters = {"apiGroup": "apisix.apache.org", "kind": "GatewayProxy", "name": proxy, "scope": "Namespace"}
    return {**made, "spec": {**made["spec"], "parameters": {**parameters, **written}}}


def of_class(manifest: Any, name: str = "headgate") -> Any:
    return {**manifest, "spec": {**manifest["spec"], "ingressClassName": name}}


def uses(table: Translated, name: str = "rule") -> dict[str, PluginUse]:
    return {use.name: use for use in table.route(name).plugins}


def told(table: Translated, name: str = "proxy") -> list[tuple[str, str, str]]:
    found = (one for one in table.problems(name) if one.severity is not Severity.INFO)
    return [(one.severity, one.reason, one.field) for one in found]


# Plugins


@pytest.mark.parametrize(
    "named", [class_with(), class_with("", annotations={"apisix.apache.org/parameters-namespace": "edge"})]
)
def test_plugins_of_the_gateway_proxy_of_our_class_run_for_every_route(named: Any) -> None:
    table = Translated(of_class(route(rule())), gateway_proxy(plugins=[GZIP]), named)
    assert uses(table).keys() == {"gzip"}
    assert told(table) == []


def test_a_gateway_proxy_that_no_class_of_ours_names_does_nothing() -> None:
    proxy = gateway_proxy(plugins=[GZIP], statusAddress=["_"])
    table = Translated(ingress("web", class_name="headgate"), proxy, class_with("other"))
    assert table.problems("proxy") == []
    host = table.host("*")
    assert host is not None
    assert host.routes[0].plugins == ()


# Provider


def test_a_provider_is_said_not_to_be_needed_and_that_is_no_mistake() -> None:
    table = Translated(gateway_proxy(), class_with())
    assert [(one.severity, one.field) for one in table.problems("proxy")] == [(Severity.INFO, "spec.provider")]
    assert table.is_accepted("proxy")


@pytest.mark.parametrize(
    ("provider", "field", "message"),
    [
        ({"type": "Other"}, "spec.provider.type", "must be 'ControlPlane', but is \"Other\""),
        ({"type": "ControlPlane"}, "spec.provider", "controlPlane must be given with the type ControlPlane"),
        ({}, "spec.provider.type", "must be given"),
        (
            {"type": "ControlPlane", "controlPlane": {"auth": AUTH}},
            "spec.provider.controlPlane",
            "exactly one of endpoints and service must be given",
        ),
        (
            {"type": "ControlPlane", "controlPlane": {**CONTROL_PLANE, "service": {"name": "apisix"}}},
            "spec.provider.controlPlane",
            "exactly one of endpoints and service must be given",
        ),
        (
            {"type": "ControlPlane", "controlPlane": {"endpoints": [], "auth": AUTH}},
            "spec.provider.controlPlane.endpoints",
            "must have at least one element",
        ),
        (
            {"type": "ControlPlane", "controlPlane": {"service": {"name": "a", "port": 70000}, "auth": AUTH}},
            "spec.provider.controlPlane.service.port",
            "must be less than or equal to 65535, but is 70000",
        ),
        (
            {"type": "ControlPlane", "controlPlane": {**CONTROL_PLANE, "auth": {"type": "AdminKey"}}},
            "spec.provider.controlPlane.auth",
            "adminKey must be given with the type AdminKey",
        ),
        (
            {"type": "ControlPlane", "controlPlane": {**CONTROL_PLANE, "auth": {"type": "AdminKey", "adminKey": {}}}},
            "spec.provider.controlPlane.auth.adminKey",
            "exactly one of value and valueFrom must be given",
        ),
    ],
)
def test_a_provider_is_checked_as_its_schema_does(provider: Any, field: str, message: str) -> None:
    (problem,) = Translated(gateway_proxy(provider=provider), class_with()).problems("proxy")
    assert (problem.severity, problem.field, problem.message) == (Severity.ERROR, field, message)


def test_the_admin_key_of_another_gateway_never_reaches_the_log() -> None:
    prepared = prepare(GATEWAY_PROXY, gateway_proxy(), Sealer("a", []))
    assert prepared is not None
    assert AUTH["adminKey"]["value"] not in json.dumps(prepared)  # type: ignore[index]
    assert told(Translated(prepared, class_with())) == []


# Metadata

LOGGER = {"name": "http-logger", "enable": True, "config": {"uri": "http://logs.example"}}
FORMAT = {"host": "$host"}


def metadata(**plugins: Any) -> Any:
    return gateway_proxy(pluginMetadata={name.replace("_", "-"): value for name, value in plugins.items()})


def test_metadata_hold_for_all_uses_of_a_plugin_that_do_not_say_otherwise() -> None:
    own = {**LOGGER, "config": {**LOGGER["config"], "log_format": {"own": "$uri"}}}  # type: ignore[dict-item]
    rules = rule("plain", "/a", plugins=[LOGGER]), rule("own", "/b", plugins=[own])
    table = Translated(of_class(route(*rules)), metadata(http_logger={"log_format": FORMAT}), class_with())
    assert uses(table, "plain")["http-logger"].config["log_format"] == FORMAT
    assert uses(table, "own")["http-logger"].config["log_format"] == {"own": "$uri"}
    assert told(table) == []


def test_metadata_hold_for_the_plugins_of_the_class_alone() -> None:
    mine, other = of_class(route(rule(plugins=[LOGGER]))), of_class(route(rule("b", "/b", plugins=[LOGGER]), name="b"))
    classes = class_with(), class_with(name="plain", proxy="none")
    table = Translated(mine, of_class(other, "plain"), metadata(http_logger={"log_format": FORMAT}), *classes)
    assert "log_format" in uses(table)["http-logger"].config
    assert "log_format" not in uses(table, "b")["http-logger"].config


def test_metadata_hold_for_shared_plugins_by_the_class_of_whoever_names_them() -> None:
    shared = resource("ApisixPluginConfig", "shared", {"plugins": [LOGGER]})
    named = {"k8s.apisix.apache.org/plugin-config-name": "shared"}
    web = ingress("web", class_name="headgate", annotations=named, path="/web")
    table = Translated(
        shared,
        web,
        of_class(route(rule("rule", "/api", plugin_config_name="shared"))),
        metadata(http_logger={"log_format": FORMAT}),
        class_with(),
    )
    host = table.host("*")
    assert host is not None
    assert [one.plugins[0].config["log_format"] for one in host.routes] == [FORMAT, FORMAT]


def test_metadata_hold_for_the_plugins_of_the_gateway_proxy_itself() -> None:
    proxy = metadata(limit_count={"limit_header": "X-Limit"})
    limit = {"name": "limit-count", "enabled": True, "config": {"count": 1, "time_window": 60}}
    proxy["spec"]["plugins"] = [limit]
    table = Translated(of_class(route(rule())), proxy, class_with())
    assert uses(table)["limit-count"].config["limit_header"] == "X-Limit"


def test_model_and_policy_of_casbin_may_stand_in_the_metadata() -> None:
    matcher = "(g(r.sub, p.sub) || keyMatch(r.sub, p.sub)) && keyMatch(r.obj, p.obj) && keyMatch(r.act, p.act)"
    said = {
        "model": "[request_definition]\nr = sub, obj, act\n[policy_definition]\np = sub, obj, act\n"
        "[role_definition]\ng = _, _\n[policy_effect]\ne = some(where (p.eft == allow))\n[matchers]\nm = " + matcher,
        "policy": "p, *, /, GET\np, admin, *, *\ng, alice, admin",
    }
    use = {"name": "authz-casbin", "enable": True, "config": {"username": "user"}}
    table = Translated(of_class(route(rule(plugins=[use]))), metadata(authz_casbin=said), class_with())
    assert table.errors() == []
    assert uses(table)["authz-casbin"].config == {"username": "user", **said}


def test_metadata_may_say_what_a_plugin_requires() -> None:
    used = of_class(route(rule(plugins=[{"name": "file-logger", "enable": True}])))
    table = Translated(used, metadata(file_logger={"path": "a.log"}), class_with())
    assert uses(table)["file-logger"].config == {"path": "a.log"}
    without = Translated(used, metadata(), class_with())
    assert without.errors() == ["spec.http[0].plugins[0].config.path"]


@pytest.mark.parametrize(
    ("own", "allowed"),
    [
        ({}, "https://b.example"),
        ({"allow_origins": ["https://a.example", "null"]}, "https://a.example,null,https://b.example"),
        ({"allow_origins": "*"}, "*"),
    ],
)
def test_origins_of_metadata_are_added_to_whatever_the_route_says(own: Any, allowed: str) -> None:
    config = {**own, "allow_origins_by_metadata": ["shops"]}
    used = of_class(route(rule(plugins=[{"name": "cors", "enable": True, "config": config}])))
    table = Translated(used, metadata(cors={"allow_origins": {"shops": "https://b.example"}}), class_with())
    assert uses(table)["cors"].config["allow_origins"] == allowed
    assert table.problems() == []


def test_origins_of_metadata_are_allowed_beside_those_of_the_route() -> None:
    config = {"allow_origins": "https://a.example", "allow_origins_by_metadata": ["shops", "none"]}
    used = of_class(route(rule(plugins=[{"name": "cors", "enable": True, "config": config}])))
    lists = {"shops": "https://b.example,https://c.example"}
    table = Translated(used, metadata(cors={"allow_origins": lists}), class_with())
    assert uses(table)["cors"].config["allow_origins"] == "https://a.example,https://b.example,https://c.example"
    field = "spec.http[0].plugins[0].config.allow_origins_by_metadata"
    assert told(table, "route") == [("warning", "MetadataNotFound", field)]


@pytest.mark.parametrize(
    ("plugins", "problem"),
    [
        ({"http_loger": {}}, ("warning", "UnknownPlugin", "spec.pluginMetadata.http-loger")),
        ({"opentelemetry": {}}, ("warning", "UnsupportedField", "spec.pluginMetadata.opentelemetry")),
        ({"syslog": {"log_fromat": {}}}, ("error", "InvalidPlugin", "spec.pluginMetadata.syslog.log_fromat")),
        ({"syslog": {"log_format": "x"}}, ("error", "InvalidPlugin", "spec.pluginMetadata.syslog.log_format")),
        ({"syslog": "x"}, ("error", "WrongType", "spec.pluginMetadata.syslog")),
    ],
)
def test_metadata_that_cannot_be_followed_are_named(plugins: Any, problem: tuple[str, str, str]) -> None:
    assert told(Translated(metadata(**plugins), class_with())) == [problem]


def test_changed_metadata_are_followed() -> None:
    world = World(of_class(route(rule(plugins=[LOGGER]))), metadata(), class_with(), service())
    assert "http-logger" in str(world.image())
    assert "$host" not in str(world.image())
    world.apply(metadata(http_logger={"log_format": FORMAT}))
    assert "$host" in str(world.image())


# Addresses


class World:
    """A translation that goes on."""

    def __init__(self, *manifests: Any) -> None:
        self._translation = Translation(DIALECTS, TranslationSettings())
        self._translation.activate("a")
        self.apply(*manifests)

    def apply(self, *manifests: Any) -> None:
        for one in manifests:
            self._translation.apply(applied(one))
        self._settle()

    def delete(self, manifest: Any) -> None:
        self._translation.apply(deleted(manifest))
        self._settle()

    def _settle(self) -> None:
        for _ in self._translation.settle():
            pass

    def image(self) -> list[bytes]:
        return [chunk.content for chunk in self._translation.assembly.image.chunks()]

    def addresses(self, manifest: Any) -> tuple[str | None, ...] | None:
        found = self._translation.assembly.fragments[ref_of(manifest)].addresses
        return None if found is None else tuple(one.ip or one.hostname for one in found)

    def warnings(self, manifest: Any) -> list[tuple[str, str]]:
        condition = self._translation.condition(ref_of(manifest))
        assert condition is not None
        return [(one.reason, one.field) for one in condition.problems if one.severity is not Severity.INFO]


WEB = ingress("web", class_name="headgate")


def balancer(*addresses: dict[str, str], kind: str = "LoadBalancer") -> Any:
    made = service("entrance", namespace="edge", type=kind)
    return {**made, "status": {"loadBalancer": {"ingress": list(addresses)}}}


def test_status_addresses_are_those_of_the_ingresses_of_the_class_each_once() -> None:
    other = ingress("other", class_name="plain")
    proxy = gateway_proxy(statusAddress=["192.0.2.1", "edge.example", "192.0.2.1", ""])
    world = World(WEB, other, proxy, class_with(), class_with(name="plain", proxy="none"))
    assert world.addresses(WEB) == ("192.0.2.1", "edge.example")
    assert world.addresses(other) is None


def test_ingresses_without_a_class_have_the_addresses_of_the_default_one() -> None:
    default = class_with(annotations={"ingressclass.kubernetes.io/is-default-class": "true"})
    world = World(ingress("web"), gateway_proxy(statusAddress=["192.0.2.1"]), default)
    assert world.addresses(WEB) == ("192.0.2.1",)


def test_an_address_says_whether_it_is_a_name() -> None:
    translation = Translation(DIALECTS)
    translation.activate("a")
    for one in (WEB, gateway_proxy(statusAddress=["2001:db8::1", "edge.example"]), class_with()):
        translation.apply(applied(one))
    for _ in translation.settle():
        pass
    expected = LoadBalancerAddress(ip="2001:db8::1"), LoadBalancerAddress(hostname="edge.example")
    assert translation.assembly.fragments[ref_of(WEB)].addresses == expected


def test_an_address_that_is_none_is_named_and_left_out() -> None:
    proxy = gateway_proxy(statusAddress=["192.0.2.1", "Not A Name"])
    assert World(WEB, proxy, class_with()).addresses(WEB) == ("192.0.2.1",)
    assert told(Translated(proxy, class_with())) == [("error", "InvalidValue", "spec.statusAddress[1]")]


@pytest.mark.parametrize("written", ["edge/entrance", "entrance"])
def test_the_addresses_of_the_published_service_are_followed(written: str) -> None:
    world = World(WEB, gateway_proxy(publishService=written), class_with(), balancer())
    assert world.addresses(WEB) == ()
    world.apply(balancer({"ip": "192.0.2.7"}, {"hostname": "lb.example"}))
    assert world.addresses(WEB) == ("192.0.2.7", "lb.example")
    world.delete(balancer())
    assert world.addresses(WEB) == ()
    assert world.warnings(gateway_proxy()) == [("ServiceNotFound", "spec.publishService")]


def test_a_published_service_without_a_load_balancer_is_told() -> None:
    proxy = gateway_proxy(publishService="edge/entrance")
    world = World(WEB, proxy, class_with(), balancer(kind="ClusterIP"))
    assert world.addresses(WEB) == ()
    assert world.warnings(proxy) == [("NoAddresses", "spec.publishService")]


def test_status_addresses_go_before_the_published_service() -> None:
    proxy = gateway_proxy(publishService="edge/entrance", statusAddress=["192.0.2.1"])
    assert World(WEB, proxy, class_with(), balancer({"ip": "192.0.2.7"})).addresses(WEB) == ("192.0.2.1",)


def test_a_changed_status_address_is_followed() -> None:
    world = World(WEB, gateway_proxy(statusAddress=["192.0.2.1"]), class_with())
    world.apply(gateway_proxy(statusAddress=["192.0.2.2"]))
    assert world.addresses(WEB) == ("192.0.2.2",)
    world.apply(gateway_proxy())
    assert world.addresses(WEB) is None
