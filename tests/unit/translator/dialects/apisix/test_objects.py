"""Which objects are ours, how older versions are read, and what is said of slips."""

from typing import Any

import pytest

from fakes.translator.apisix import BACKEND, Translated, one_backend, resource, route, rule
from fakes.translator.deltas import applied, deleted, endpoint_slice, ingress_class, service
from fakes.translator.translating import Follower, ListedLog
from headgate.common.problems import Severity
from headgate.common.selection import Selection
from headgate.common.snapshot import decode_chunk
from headgate.common.table import Upstream, VirtualHost
from headgate.translator.composition import DIALECTS
from headgate.translator.translation import Translation
from headgate.translator.world.settings import TranslationSettings

APISIX = "apisix.apache.org/apisix-ingress-controller"
ADOPTS = TranslationSettings(controller_names=frozenset({APISIX}))


def of_class(name: str) -> Any:
    made = route(rule())
    made["spec"]["ingressClassName"] = name
    return made


# Classes


@pytest.mark.parametrize(("settings", "is_ours"), [(ADOPTS, True), (TranslationSettings(), False)])
def test_a_class_of_apisix_is_ours_where_its_controller_is_adopted(
    settings: TranslationSettings, is_ours: bool
) -> None:
    table = Translated(of_class("apisix"), ingress_class("apisix", APISIX), settings=settings)
    assert (table.winner("a.com/") is not None) is is_ours


def test_an_object_without_a_class_is_of_the_default_class() -> None:
    default = {"annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}}
    assert Translated(route(rule()), ingress_class("x", APISIX, **default)).winner("a.com/") is None
    assert Translated(route(rule()), ingress_class("x", APISIX, **default), settings=ADOPTS).winner("a.com/")


def test_an_object_without_a_class_is_ours_in_a_cluster_without_classes() -> None:
    assert Translated(route(rule())).winner("a.com/") == "route rule"


KINDS = {
    "ApisixRoute": {"http": 5},
    "ApisixTls": {"hosts": 5},
    "ApisixConsumer": {"authParameter": 5},
    "ApisixPluginConfig": {"plugins": 5},
    "ApisixGlobalRule": {"plugins": 5},
    "ApisixUpstream": {"retries": "many"},
    "ApisixClusterConfig": {"monitoring": 5},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("named", [{}, {"ingressClassName": "apisix"}], ids=["no class", "our class"])
def test_an_object_of_our_class_or_of_none_is_read(kind: str, named: Any) -> None:
    default = {"annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}}
    broken = resource(kind, "ours", KINDS[kind] | named)
    table = Translated(broken, ingress_class("apisix", APISIX, **default), settings=ADOPTS)
    assert [field.removeprefix("spec.") for field in table.errors("ours")][:1] == [next(iter(KINDS[kind]))]


@pytest.mark.parametrize("kind", KINDS)
def test_an_object_of_another_class_is_told_nothing(kind: str) -> None:
    theirs = resource(kind, "theirs", KINDS[kind] | {"ingressClassName": "theirs"})
    table = Translated(theirs)
    assert table.problems("theirs") == []
    assert not table.is_accepted("theirs")


@pytest.mark.parametrize("kind", ["ApisixUpstream", "ApisixPluginConfig"])
def test_what_others_refer_to_is_ours_without_a_class_where_no_class_is_the_default(kind: str) -> None:
    wrong = resource(kind, "web", {"scheme": "ftp", "plugins": 5})
    ours = Translated(wrong, ingress_class("apisix", APISIX), settings=ADOPTS)
    assert ours.errors("web")
    assert Translated(wrong, ingress_class("theirs", "example.com/other"), settings=ADOPTS).problems("web") == []
    theirs = {"annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}}
    both = (ingress_class("apisix", APISIX), ingress_class("theirs", "example.com/other", **theirs))
    assert Translated(wrong, *both, settings=ADOPTS).problems("web") == []


# Changes


def follow() -> tuple[ListedLog, Follower]:
    log = ListedLog()
    return log, Follower(log)


def hosts(follower: Follower) -> set[str]:
    follower.settle()
    chunks = follower.translation.assembly.image.chunks()
    entries = (entry for chunk in chunks for entry in decode_chunk(chunk.kind, chunk.content))
    return {entry.host for entry in entries if isinstance(entry, VirtualHost)}


def test_a_route_that_is_deleted_is_gone_and_so_is_one_that_changes_its_class() -> None:
    made = route(rule(hosts=["a.com"]))
    other = route(rule(hosts=["b.com"]), name="other")
    log, follower = follow()
    for manifest in (service(), made, other):
        follower.take(log.append(applied(manifest)))
    assert hosts(follower) == {"a.com", "b.com"}
    follower.take(log.append(deleted(made)))
    assert hosts(follower) == {"b.com"}
    other["spec"]["ingressClassName"] = "theirs"
    follower.take(log.append(applied(other)))
    assert hosts(follower) == set()


def test_a_version_with_errors_leaves_the_last_good_one_in_force() -> None:
    good, bad = route(rule(hosts=["a.com"])), route(rule("bad", "nothing", hosts=["b.com"]))
    log, follower = follow()
    for manifest in (service(), good, bad):
        follower.take(log.append(applied(manifest)))
    assert hosts(follower) == {"a.com"}


# Older versions

OLD = {
    "rules": [
        {
            "host": "old.com",
            "http": {
                "paths": [
                    {
                        "path": "/x*",
                        "backend": BACKEND,
                        "timeout": {"connect": "5s", "read": 10},
                        "plugins": [{"name": "cors", "enable": True, "config_set": [{"max_age": 3}]}],
                    },
                    {"path": "/y", "backend": {"serviceName": "none", "servicePort": 80}},
                ]
            },
        }
    ]
}


def test_a_route_of_v1_is_served() -> None:
    table = Translated(resource("ApisixRoute", "route", OLD, "v1"))
    found = table.host("old.com")
    assert found is not None
    by_path = {one.path.value: one for one in found.routes}
    assert by_path.keys() == {"/x", "/y"}
    assert (by_path["/x"].timeouts.connect_s, by_path["/x"].timeouts.send_s) == (5, 60)
    assert [(use.name, use.config) for use in by_path["/x"].plugins] == [("cors", {"max_age": 3})]


def test_problems_of_a_route_of_v1_are_said_at_its_own_fields() -> None:
    spec: Any = {"rules": [{"host": "a b", "http": {"paths": [{"path": "x", "backend": {"serviceName": "web"}}]}}]}
    found = Translated(resource("ApisixRoute", "route", spec, "v1")).errors()
    assert found == ["spec.rules[0].http.paths[0].backend.servicePort"]
    spec["rules"][0]["http"]["paths"][0]["backend"] = BACKEND
    found = Translated(resource("ApisixRoute", "route", spec, "v1")).errors()
    assert found == ["spec.rules[0].host", "spec.rules[0].http.paths[0].path"]
    assert Translated(resource("ApisixRoute", "route", OLD, "v1")).errors() == [
        "spec.rules[0].http.paths[1].backend.serviceName"
    ]


def test_the_spelling_of_v2beta3_is_read() -> None:
    block = {"enable": True, "type": "keyAuth", "keyauth": {"header": "X-Key"}}
    table = Translated(route(rule(authentication=block), version="v2beta3"))
    assert table.problems() == []
    assert table.route().plugins[0].config == {"header": "X-Key"}


def test_the_older_spelling_of_wolf_is_read_and_problems_are_said_at_it() -> None:
    value = {"server": "http://wolf", "appid": "app"}
    consumer = resource("ApisixConsumer", "jack", {"authParameter": {"wolfRbac": {"value": value}}}, "v2beta3")
    table = Translated(consumer, route(rule(authentication={"enable": True, "type": "wolfRbac"}), version="v2beta2"))
    assert (table.problems("jack"), table.problems()) == ([], [])
    assert [use.name for use in table.route().plugins] == ["wolf-rbac"]
    consumer["spec"]["authParameter"]["wolfRbac"]["value"] = {"server": 5}
    assert all("wolfRbac" in field for field in Translated(consumer).errors("jack"))
    assert Translated(consumer).errors("jack")


@pytest.mark.parametrize("version", ["v2alpha1", "v2beta1", "v2beta2"])
def test_a_single_backend_of_older_versions_is_served(version: str) -> None:
    table = Translated(route(one_backend(), version=version))
    assert table.problems() == []
    assert [each.upstream for each in table.route().backends] == ["a/default/web:80/apisix"]


def test_a_single_backend_does_not_count_beside_several() -> None:
    table = Translated(route(rule(backend={"serviceName": "none", "servicePort": 1}), version="v2beta1"))
    assert [each.upstream for each in table.route().backends] == ["a/default/web:80/apisix"]
    assert table.errors() == []


def test_problems_of_a_single_backend_are_said_where_it_stands() -> None:
    gone = {"serviceName": "none", "servicePort": 80}
    assert Translated(route(one_backend(backends=[gone]))).errors() == ["spec.http[0].backend.serviceName"]
    assert Translated(route(one_backend(backends=[{"serviceName": "web"}]))).errors() == [
        "spec.http[0].backend.servicePort"
    ]


def test_rules_for_tcp_of_v2alpha1_are_served_and_their_problems_said_where_they_stand() -> None:
    tcp = [{"name": "a", "match": {"ingressPort": 9100}, "backend": BACKEND}]
    table = Translated(resource("ApisixRoute", "route", {"tcp": tcp}, "v2alpha1"))
    assert table.problems() == []
    assert [one.port for one in table.streams()] == [9100]
    tcp.append({"name": "b", "match": {"ingressPort": 9101}, "backend": {"serviceName": "none", "servicePort": 80}})
    found = Translated(resource("ApisixRoute", "route", {"tcp": tcp}, "v2alpha1")).errors()
    assert found == ["spec.tcp[1].backend.serviceName"]


@pytest.mark.parametrize("kind", ["active", "passive"])
def test_a_time_in_place_of_a_count_of_timeouts_is_read(kind: str) -> None:
    checks: Any = {"active": {"type": "http"}, "passive": {}}
    checks[kind]["unhealthy"] = {"httpFailures": 3, "timeout": "5s"}
    table = Translated(route(rule()), resource("ApisixUpstream", "web", {"healthCheck": checks}, "v1"))
    assert table.problems("web") == []
    checks[kind]["unhealthy"]["timeout"] = "soon"
    table = Translated(route(rule()), resource("ApisixUpstream", "web", {"healthCheck": checks}, "v1"))
    assert table.errors("web") == [f"spec.healthCheck.{kind}.unhealthy.timeout"]


@pytest.mark.parametrize("version", ["v1", "v2beta3", "v2"])
def test_upstreams_of_all_versions_are_read(version: str) -> None:
    spec = {
        "portLevelSettings": [{"port": 80, "scheme": "grpc", "timeout": {"connect": "5s", "read": "5s", "send": "5s"}}]
    }
    table = Translated(route(rule()), resource("ApisixUpstream", "web", spec, version))
    assert table.problems("web") == []
    assert table.upstream().protocol == "h2c"


# Slips


def test_a_field_that_there_is_not_is_said_with_the_one_that_was_meant() -> None:
    (problem,) = Translated(route(rule(timeouts={"read": "5s"}))).problems()
    assert (problem.severity, problem.field) == (Severity.WARNING, "spec.http[0].timeouts")
    assert "timeout" in problem.message


def test_fields_that_there_are_are_named_in_one_order() -> None:
    table = Translated(resource("ApisixUpstream", "web", {"keepalive_pool": {}}))
    (problem,) = table.problems("web")
    assert "there are loadbalancer, scheme, retries, timeout, " in problem.message


@pytest.mark.parametrize("spec", [None, [], "x"])
def test_a_spec_that_is_none_is_said(spec: Any) -> None:
    assert Translated(resource("ApisixRoute", "route", spec)).errors() == ["spec"]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": ""}, "name"),
        ({"priority": "high"}, "priority"),
        ({"timeout": {"read": "soon"}}, "timeout.read"),
        ({"match_paths": []}, "match.paths"),
        ({"match_methods": ["get"]}, "match.methods[0]"),
        ({"websocket": "maybe"}, "websocket"),
        ({"backends": [{"serviceName": "web"}]}, "backends[0].servicePort"),
        ({"backends": [{**BACKEND, "servicePort": 0}]}, "backends[0].servicePort"),
        ({"backends": [{**BACKEND, "weight": -1}]}, "backends[0].weight"),
        ({"backends": [{**BACKEND, "resolveGranularity": "pod"}]}, "backends[0].resolveGranularity"),
        ({"plugins": [{"enable": True}]}, "plugins[0].name"),
        ({"plugins": [{"name": "cors", "config": 5}]}, "plugins[0].config"),
    ],
)
def test_a_wrong_value_is_said_at_its_field(fields: Any, field: str) -> None:
    assert Translated(route(rule(**fields))).errors() == [f"spec.http[0].{field}"]


def test_websocket_is_let_through_unless_that_is_turned_off() -> None:
    assert Translated(route(rule())).route().websocket
    assert Translated(route(rule(websocket=True))).route().websocket
    assert not Translated(route(rule(websocket=False))).route().websocket


def test_two_rules_of_one_name_are_served_and_said() -> None:
    table = Translated(route(rule("one", "/x"), rule("one", "/y")))
    assert [one.reason for one in table.problems()] == ["DuplicateName"]
    assert table.winner("a.com/y") == "route one"


# Tables of some namespaces


def test_a_table_of_one_namespace_finds_what_its_routes_refer_to_elsewhere_and_serves_nothing_else() -> None:
    shared = resource("ApisixPluginConfig", "shared", {"plugins": [{"name": "cors"}]}, namespace="other")
    mine = route(rule(hosts=["a.com"], plugin_config_name="shared", plugin_config_namespace="other"))
    theirs = route(rule(hosts=["b.com"]), name="theirs", namespace="other")
    everywhere = resource("ApisixGlobalRule", "all", {"plugins": [{"name": "gzip"}]}, namespace="other")
    translation = Translation(DIALECTS, selection=Selection(namespaces=("default",)))
    translation.activate("a")
    for manifest in (service(), shared, mine, theirs, everywhere):
        translation.apply(applied(manifest))
    for _ in translation.settle():
        pass
    chunks = translation.assembly.image.chunks()
    entries = [entry for chunk in chunks for entry in decode_chunk(chunk.kind, chunk.content)]
    (host,) = (entry for entry in entries if isinstance(entry, VirtualHost))
    assert host.host == "a.com"
    assert [use.name for use in host.routes[0].plugins] == ["cors"]


# Only what changed


def test_labels_of_a_pod_and_settings_of_an_upstream_reach_the_table_and_nothing_else_runs() -> None:
    def pod(version: str) -> Any:
        metadata = {"name": "one", "namespace": "default", "labels": {"version": version}}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}

    addresses = endpoint_slice("web", "10.0.0.1")
    addresses["endpoints"][0]["targetRef"] = {"kind": "Pod", "name": "one"}
    subsets = {"subsets": [{"name": "v2", "labels": {"version": "v2"}}]}
    backends = [{**BACKEND, "subset": "v2"}]
    translation = Translation(DIALECTS)
    translation.activate("a")

    def endpoints() -> int:
        for _ in translation.settle():
            pass
        chunks = translation.assembly.image.chunks()
        entries = (entry for chunk in chunks for entry in decode_chunk(chunk.kind, chunk.content))
        return sum(len(entry.endpoints) for entry in entries if isinstance(entry, Upstream))

    for manifest in (service(), addresses, pod("v1"), resource("ApisixUpstream", "web", subsets)):
        translation.apply(applied(manifest))
    translation.apply(applied(route(rule(backends=backends))))
    assert endpoints() == 0
    runs = translation.graph.runs
    translation.apply(applied(pod("v2")))
    assert endpoints() == 1
    assert translation.graph.runs == runs + 1
