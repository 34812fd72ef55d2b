"""Rules for many routes: on all of the table, or held to their namespace."""

from typing import Any

from fakes.translator.apisix import resource, route, rule
from fakes.translator.deltas import applied, ingress_class, ref_of, service
from headgate.common.table import Mirror, Tracing, VirtualHost
from headgate.translator.assembly.boundaries import Boundaries
from headgate.translator.offline import Offline, translate_all

OLD, NEW = "2020-01-01T00:00:00Z", "2026-01-01T00:00:00Z"


def global_rule(namespace: str, value: str = "1", created: str = NEW) -> Any:
    plugins = [{"name": "response-rewrite", "enable": True, "config": {"headers": {"set": {"X-Owned": value}}}}]
    spec = {"plugins": plugins}
    return resource("ApisixGlobalRule", "rule", spec, namespace=namespace, creationTimestamp=created)


def table(*manifests: Any, namespaces: tuple[str, ...] = ("*",)) -> Offline:
    own = [route(rule("r", hosts=[f"{one}.test"]), namespace=one) for one in ("team-a", "team-b")]
    services = [service(namespace=one) for one in ("team-a", "team-b")]
    deltas = [applied(one) for one in (*services, *own, *manifests)]
    return translate_all(deltas, boundaries=Boundaries(global_rule_namespaces=namespaces))


def owned(offline: Offline) -> dict[str, list[Any]]:
    """Return what each host's plugins set, by host."""
    hosts = [one for one in offline.entries if isinstance(one, VirtualHost)]
    found: dict[str, list[Any]] = {}
    for host in hosts:
        for use in host.routes[0].plugins:
            headers: Any = use.config["headers"]
            found.setdefault(host.host, []).append(headers["set"]["X-Owned"])
            assert use.is_global
    return found


def test_a_rule_runs_for_all_routes_by_default() -> None:
    assert owned(table(global_rule("team-b"))) == {"team-a.test": ["1"], "team-b.test": ["1"]}


def test_a_rule_of_a_namespace_that_is_not_named_is_held_to_its_routes() -> None:
    made = global_rule("team-b")
    offline = table(made, namespaces=("platform",))
    assert owned(offline) == {"team-b.test": ["1"]}
    (problem,) = offline.problems[ref_of(made)]
    assert (problem.severity, problem.reason) == ("info", "HeldToNamespace")
    assert ref_of(made) in offline.accepted


def test_a_rule_of_a_named_namespace_goes_before_an_older_one_of_others() -> None:
    made = global_rule("team-b", "theirs", OLD)
    offline = table(global_rule("infra-one", "ours"), made, namespaces=("infra-*",))
    assert owned(offline) == {"team-a.test": ["ours"], "team-b.test": ["ours"]}
    assert [problem.reason for problem in offline.problems[ref_of(made)]] == ["HeldToNamespace", "PluginConflict"]


def test_plugins_of_a_class_are_for_all_routes_whatever_namespace_its_proxy_is_in() -> None:
    proxy = resource("GatewayProxy", "proxy", global_rule("team-b")["spec"], version="v1alpha1", namespace="team-b")
    reference = {"apiGroup": "apisix.apache.org", "kind": "GatewayProxy", "name": "proxy", "namespace": "team-b"}
    made = ingress_class("headgate", annotations={"ingressclass.kubernetes.io/is-default-class": "true"})
    made["spec"]["parameters"] = reference | {"scope": "Namespace"}
    assert owned(table(proxy, made, namespaces=("platform",))).keys() == {"team-a.test", "team-b.test"}


def test_two_held_rules_do_not_meet() -> None:
    offline = table(global_rule("team-a", "a"), global_rule("team-b", "b"), namespaces=("platform",))
    assert owned(offline) == {"team-a.test": ["a"], "team-b.test": ["b"]}


def test_plugins_that_routes_have_fields_for_are_fields_wherever_they_come_from() -> None:
    traces = {"name": "opentelemetry", "enable": True, "config": {"sampler": {"name": "always_on"}}}
    everywhere = resource("ApisixGlobalRule", "traces", {"plugins": [traces]}, namespace="team-a")
    mirror = {"name": "proxy-mirror", "enable": True, "config": {"host": "http://shadow:80"}}
    mirrored = route(rule("m", hosts=["m.test"], plugins=[mirror]), namespace="team-a", name="mirrored")
    found = {one.host: one.routes[0] for one in table(everywhere, mirrored).entries if isinstance(one, VirtualHost)}
    assert [one.plugins for one in found.values()] == [()] * 3
    assert {one.tracing for one in found.values()} == {Tracing(share=1.0, heeds_parent=False)}
    assert [found[name].mirrors for name in ("m.test", "team-a.test")] == [(Mirror(address="http://shadow:80"),), ()]
