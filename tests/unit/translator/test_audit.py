"""What becomes of each annotation and field of an object."""

from pathlib import Path
from typing import Any

import pytest

from fakes.translator.apisix import resource, route, rule
from fakes.translator.deltas import applied, ingress, service
from fakes.translator.gateway_api import plugins
from headgate.common.resources import ALL_KINDS, ObjectRef, ResourceKind, WatchMode
from headgate.translator.annotations import PREFIX
from headgate.translator.annotations.apisix import APISIX_ANNOTATIONS, APISIX_PREFIX
from headgate.translator.annotations.nginx import NGINX_PREFIX
from headgate.translator.audit import Audit, Said
from headgate.translator.dialects.apisix.fields import (
    BACKEND_POLICY_FIELDS,
    CONSUMER_FIELDS,
    GATEWAY_CONSUMER_FIELDS,
    GATEWAY_PROXY_FIELDS,
    ROUTE_FIELDS,
    ROUTE_POLICY_FIELDS,
    TLS_FIELDS,
    UPSTREAM_FIELDS,
)
from headgate.translator.dialects.gateway_api.features import FEATURES, feature_table
from headgate.translator.dialects.gateway_api.fields import (
    BACKEND_TLS_POLICY_FIELDS,
    GATEWAY_CLASS_FIELDS,
    GATEWAY_FIELDS,
    GRPC_ROUTE_FIELDS,
    HTTP_ROUTE_FIELDS,
    STREAM_ROUTE_FIELDS,
    TLS_ROUTE_FIELDS,
    TRAFFIC_POLICY_FIELDS,
)
from headgate.translator.manifests.verdicts import FieldVerdict, Verdict, field_table
from headgate.translator.world.settings import DEFAULT_SETTINGS, NginxSettings, TranslationSettings

DOCS = Path(__file__).parents[3] / "docs"


def audited(manifest: Any, settings: TranslationSettings = DEFAULT_SETTINGS) -> dict[str, Said]:
    delta = applied(manifest)
    assert delta.object is not None
    said = Audit(settings).look_at(delta.ref, delta.object)
    assert said is not None
    return {one.name: one for one in said}


def annotated(name: str, value: str) -> Said:
    return audited(ingress("web", annotations={name: value}))[name]


@pytest.mark.parametrize("kind", [kind for kind in ALL_KINDS if kind.dialect], ids=str)
def test_every_kind_that_a_dialect_translates_is_looked_at(kind: ResourceKind) -> None:
    manifest = {"apiVersion": f"{kind.group}/{kind.versions[0]}", "kind": kind.kind, "metadata": {"name": "a"}}
    place = ("ingress-nginx", "tcp-services") if kind.watch is WatchMode.NAMED else ("default", "a")
    assert Audit().look_at(ObjectRef("a", kind.group, kind.resource, *place), manifest) is not None


def test_a_plain_ingress_says_nothing() -> None:
    assert audited(ingress("web", host="a.com")) == {}


def test_an_annotation_of_ours_is_honoured() -> None:
    assert annotated(f"{PREFIX}max-body", "8m").verdict is Verdict.HONOURED


def test_the_annotation_that_shares_hosts_is_honoured_where_it_is_read() -> None:
    name = f"{PREFIX}host-sharing-namespaces"
    assert audited(route(rule(), annotations={name: "shop"}))[name].verdict is Verdict.HONOURED
    upstream = resource("ApisixUpstream", "web", {}, annotations={name: "shop"})
    assert audited(upstream)[name].verdict is Verdict.IGNORED


def test_one_that_cannot_be_read_is_ignored_with_what_would_be_right() -> None:
    said = annotated(f"{PREFIX}connect-timeout", "soon")
    assert said.verdict is Verdict.IGNORED
    assert "5s" in said.note
    assert said.field == "metadata.annotations[headgate.dev/connect-timeout]"


def test_a_guard_that_cannot_be_read_is_refused() -> None:
    assert annotated(f"{PREFIX}client-networks", "nonsense").verdict is Verdict.REFUSED
    assert annotated(f"{APISIX_PREFIX}allowlist-source-range", "nonsense").verdict is Verdict.REFUSED


def test_annotations_of_apache_apisix_are_honoured_or_approximated() -> None:
    assert annotated(f"{APISIX_PREFIX}enable-cors", "true").verdict is Verdict.HONOURED
    said = annotated(f"{APISIX_PREFIX}upstream-retries", "3")
    assert said.verdict is Verdict.APPROXIMATED
    assert "10 at most" in said.note


def test_unknown_annotations_are_named_with_the_nearest() -> None:
    for prefix, wrong, right in (
        (APISIX_PREFIX, "enable-corse", "enable-cors"),
        (NGINX_PREFIX, "proxy-body-sise", "proxy-body-size"),
        (PREFIX, "max-bodi", "max-body"),
    ):
        said = annotated(prefix + wrong, "1")
        assert said.verdict is Verdict.IGNORED
        assert f"the nearest is {prefix}{right}" in said.note


def test_annotations_of_ingress_nginx_are_known_by_the_prefix_of_the_setting() -> None:
    settings = TranslationSettings(nginx=NginxSettings(annotations_prefix="team.example"))
    names = ("team.example/proxy-body-sise", "team.example/auth-type", f"{NGINX_PREFIX}auth-type")
    said = audited(ingress("web", annotations=dict.fromkeys(names, "nonsense")), settings)
    assert said.keys() >= set(names[:2])
    assert names[2] not in said
    assert "the nearest is team.example/proxy-body-size" in said[names[0]].note
    assert said[names[1]].verdict is Verdict.REFUSED
    assert said[names[1]].field == "metadata.annotations[team.example/auth-type]"


def test_annotations_of_ingress_nginx_are_honoured_approximated_ignored_or_refused_by_their_rows() -> None:
    assert annotated(f"{NGINX_PREFIX}proxy-body-size", "8m").verdict is Verdict.HONOURED
    assert annotated(f"{NGINX_PREFIX}affinity-mode", "balanced").verdict is Verdict.APPROXIMATED
    assert annotated(f"{NGINX_PREFIX}proxy-buffer-size", "8k").verdict is Verdict.IGNORED
    refused = annotated(f"{NGINX_PREFIX}enable-modsecurity", "true")
    assert (refused.verdict, refused.lets_in) == (Verdict.REFUSED, False)
    assert "requests are refused" in refused.note


def test_an_unknown_plugin_is_refused_and_one_that_the_operator_ignores_is_marked() -> None:
    lua = route(rule(plugins=[{"name": "serverless-pre-function", "enable": True}]))
    (refused,) = (said for name, said in audited(lua).items() if "serverless" in name)
    assert (refused.verdict, refused.lets_in) == (Verdict.REFUSED, False)
    settings = TranslationSettings(ignored_plugins=frozenset({"serverless-pre-function"}))
    (ignored,) = (said for name, said in audited(lua, settings).items() if "serverless" in name)
    assert (ignored.verdict, ignored.lets_in) == (Verdict.IGNORED, True)


def test_annotations_of_anybody_else_are_passed_over() -> None:
    assert audited(ingress("web", annotations={"example.com/owner": "ada"})) == {}


def test_annotations_that_an_apisixroute_has_fields_for_are_ignored_on_it() -> None:
    names = {f"{APISIX_PREFIX}upstream-scheme": "http", f"{APISIX_PREFIX}enable-cors": "true"}
    said = audited(route(rule(), annotations=names))
    assert [said[name].verdict for name in names] == [Verdict.IGNORED, Verdict.HONOURED]


def test_a_path_whose_type_is_up_to_the_implementation_is_approximated_unless_an_annotation_says_it() -> None:
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    paths = [{"path": "/a", "pathType": "ImplementationSpecific", "backend": backend}]
    spec = {"rules": [{"http": {"paths": paths}}]}
    (said,) = audited(ingress("web", spec=spec)).values()
    assert said.verdict is Verdict.APPROXIMATED
    assert said.field == "spec.rules[0].http.paths[0].pathType"
    plain = audited(ingress("web", spec=spec, annotations={f"{PREFIX}path-type": "regex"}))
    assert [*plain] == [f"{PREFIX}path-type"]


def test_a_field_that_does_not_exist_is_ignored() -> None:
    said = audited(ingress("web", spec={"tsl": [{"hosts": ["a.com"]}], "rules": [{"host": "a.com"}]}))["tsl"]
    assert said.verdict is Verdict.IGNORED
    assert "did you mean tls?" in said.note


def test_a_certificate_is_not_judged_by_a_secret_that_nobody_looks_at() -> None:
    spec = {"tls": [{"hosts": ["a.com"], "secretName": "web"}], "rules": [{"host": "a.com"}]}
    assert audited(ingress("web", spec=spec))["tls"].verdict is Verdict.HONOURED


def test_fields_of_an_apisixroute_are_said_by_its_table() -> None:
    exprs = [{"subject": {"scope": "Body", "name": "a"}, "op": "Equal", "value": "1"}]
    said = audited(route(rule(match_exprs=exprs, match_filter_func="return true", websocket=True)))
    assert said["http[].websocket"].verdict is Verdict.HONOURED
    assert said["http[].match.exprs"].verdict is Verdict.HONOURED
    assert said["http[].match.exprs[].subject.scope=Body"].verdict is Verdict.APPROXIMATED
    assert said["http[].match.filter_func"].verdict is Verdict.REFUSED


def test_each_plugin_is_said_by_its_name() -> None:
    plugins = [
        {"name": "cors", "enable": True},
        {"name": "limit-count", "enable": True, "config": {"count": "many"}},
        {"name": "nonsense", "enable": True},
    ]
    said = audited(route(rule(plugins=plugins)))
    verdicts = [said[f"http[].plugins[{name}]"].verdict for name in ("cors", "limit-count", "nonsense")]
    assert verdicts == [Verdict.HONOURED, Verdict.REFUSED, Verdict.REFUSED]


def test_what_is_wrong_with_a_field_leaves_those_beside_it_alone() -> None:
    balancer = {"type": "chash", "hashOn": "vars", "key": "server_addr"}
    said = audited(resource("ApisixUpstream", "web", {"loadbalancer": balancer}))
    assert said["loadbalancer.key"].verdict is Verdict.REFUSED
    assert said["loadbalancer"].verdict is Verdict.HONOURED


def test_a_field_that_is_missing_is_refused() -> None:
    said = audited(resource("ApisixTls", "web", {"hosts": ["a.com"]}))
    assert said["secret"].verdict is Verdict.REFUSED


def test_a_plugin_without_what_it_needs_is_refused() -> None:
    said = audited(route(rule(plugins=[{"name": "limit-count", "config": {"time_window": 60}}])))
    assert said["http[].plugins[limit-count]"].verdict is Verdict.REFUSED


def test_what_is_wrong_with_the_whole_is_said_apart() -> None:
    said = audited(ingress("web", spec={"tls": [{"hosts": ["a.com"], "secretName": "web"}]}))
    assert (said["spec"].verdict, said["tls"].verdict) == (Verdict.REFUSED, Verdict.HONOURED)


def test_the_worst_of_several_places_counts_and_comes_first() -> None:
    rules = [
        rule("one", plugins=[{"name": "cors"}]),
        rule("two", plugins=[{"name": "cors", "config": {"max_age": "x"}}]),
    ]
    said = audited(route(*rules))
    assert next(iter(said)) == "http[].plugins[cors]"
    assert said["http[].plugins[cors]"].field.startswith("spec.http[1].plugins[0]")


def test_what_a_gatewayproxy_says_of_the_data_plane_is_ignored() -> None:
    auth = {"type": "AdminKey", "adminKey": {"value": "k"}}
    provider = {"type": "ControlPlane", "controlPlane": {"endpoints": ["http://apisix:9180"], "auth": auth}}
    spec = {"provider": provider, "plugins": [{"name": "cors", "enabled": True}]}
    said = audited(resource("GatewayProxy", "web", spec, version="v1alpha1"))
    assert said["plugins[cors]"].verdict is Verdict.HONOURED
    assert said["provider"].verdict is Verdict.IGNORED


def test_plugins_of_an_l4_route_policy_are_honoured_and_those_that_streams_lack_refused() -> None:
    target = {"group": "gateway.networking.k8s.io", "kind": "TCPRoute", "name": "db"}
    plugins = [{"name": "ip-restriction", "config": {"whitelist": ["10.0.0.0/8"]}}, {"name": "cors"}]
    said = audited(resource("L4RoutePolicy", "db", {"targetRefs": [target], "plugins": plugins}, version="v1alpha1"))
    assert said["plugins[ip-restriction]"].verdict is Verdict.HONOURED
    assert said["plugins[cors]"].verdict is Verdict.REFUSED


def test_metadata_are_told_of_plugin_by_plugin() -> None:
    metadata = {"syslog": {"log_format": {"host": "$host"}}, "zipkin": {"host": "a"}}
    said = audited(resource("GatewayProxy", "web", {"pluginMetadata": metadata}, version="v1alpha1"))
    assert said["pluginMetadata.syslog"].verdict is Verdict.HONOURED
    assert said["pluginMetadata.zipkin"].verdict is Verdict.IGNORED


def test_plugins_of_a_plugin_config_are_honoured_and_a_wrong_one_is_refused() -> None:
    plugins = [{"name": "cors"}, {"name": "limit-count", "config": {"count": -1}}]
    said = audited(resource("PluginConfig", "web", {"plugins": plugins}, version="v1alpha1"))
    assert said["plugins[cors]"].verdict is Verdict.HONOURED
    assert said["plugins[limit-count]"].verdict is Verdict.REFUSED


def test_a_policy_for_an_http_route_is_honoured() -> None:
    target = {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "web"}
    spec = {"targetRefs": [target], "priority": 1, "vars": [["arg_a", "==", "1"]]}
    said = audited(resource("HTTPRoutePolicy", "web", spec, version="v1alpha1"))
    assert said["priority"].verdict is Verdict.HONOURED
    assert said["vars"].verdict is Verdict.HONOURED


def test_plugins_of_a_plugin_are_honoured_and_a_wrong_one_is_refused() -> None:
    written = plugins("named", ("cors", {}), ("limit-count", {"count": -1}))
    said = audited(written)
    assert said["plugins[cors]"].verdict is Verdict.HONOURED
    assert said["plugins[limit-count]"].verdict is Verdict.REFUSED


def test_what_is_wrong_with_a_policy_is_refused() -> None:
    spec = {"targetRefs": [{"group": "", "kind": "Service", "name": "web"}], "scheme": "ws", "retries": 1}
    said = audited(resource("BackendTrafficPolicy", "web", spec, version="v1alpha1"))
    assert said["scheme"].verdict is Verdict.REFUSED
    assert said["retries"].verdict is Verdict.APPROXIMATED


def test_an_annotation_of_ours_elsewhere_than_on_ingresses_and_services_is_ignored() -> None:
    said = audited(route(rule(), annotations={f"{PREFIX}max-body": "8m"}))
    assert said[f"{PREFIX}max-body"].verdict is Verdict.IGNORED


def test_objects_of_other_kinds_are_not_looked_at() -> None:
    delta = applied({**service(), "kind": "Endpoints"})
    assert delta.object is not None
    assert Audit().look_at(delta.ref, delta.object) is None


def test_the_page_of_apache_apisix_says_how_annotations_are_approximated() -> None:
    page = (DOCS / "apisix.md").read_text()
    told = {row.name: f"| `{row.name}` | {row.approximation} |\n" for row in APISIX_ANNOTATIONS.rows.values()}
    approximated = [row.name for row in APISIX_ANNOTATIONS.rows.values() if row.approximation]
    assert approximated
    assert [name for name in approximated if told[name] not in page] == []


@pytest.mark.parametrize(
    "rows",
    [
        ROUTE_FIELDS,
        UPSTREAM_FIELDS,
        TLS_FIELDS,
        CONSUMER_FIELDS,
        GATEWAY_CONSUMER_FIELDS,
        GATEWAY_PROXY_FIELDS,
        BACKEND_POLICY_FIELDS,
        ROUTE_POLICY_FIELDS,
    ],
)
def test_the_page_of_apache_apisix_has_the_tables_of_fields(rows: tuple[FieldVerdict, ...]) -> None:
    assert field_table(rows) in (DOCS / "apisix.md").read_text()


@pytest.mark.parametrize(
    "rows",
    [
        GATEWAY_CLASS_FIELDS,
        GATEWAY_FIELDS,
        HTTP_ROUTE_FIELDS,
        GRPC_ROUTE_FIELDS,
        TLS_ROUTE_FIELDS,
        STREAM_ROUTE_FIELDS,
        BACKEND_TLS_POLICY_FIELDS,
        TRAFFIC_POLICY_FIELDS,
    ],
)
def test_the_page_of_gateway_api_has_the_tables_of_fields(rows: tuple[FieldVerdict, ...]) -> None:
    assert field_table(rows) in (DOCS / "gateway-api.md").read_text()


def test_the_page_of_gateway_api_has_the_table_of_features() -> None:
    assert feature_table(FEATURES) in (DOCS / "gateway-api.md").read_text()


def config_map(namespace: str, **data: str) -> Any:
    named = {key.replace("_", "-"): value for key, value in data.items()}
    metadata = {"name": "ingress-nginx-controller", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": named}


def test_keys_of_the_config_map_of_ingress_nginx_are_judged() -> None:
    told = config_map(
        "ingress-nginx", hsts="true", worker_processes="4", use_geoip2="true", proxy_body_size="much", misspelt="x"
    )
    said = audited(told)
    assert {name: one.verdict for name, one in said.items()} == {
        "hsts": Verdict.HONOURED,
        "worker-processes": Verdict.IGNORED,
        "use-geoip2": Verdict.IGNORED,
        "proxy-body-size": Verdict.IGNORED,
        "data[misspelt]": Verdict.IGNORED,
    }
    assert "must be a size" in said["proxy-body-size"].note
    delta = applied(config_map("default", hsts="true"))
    assert delta.object is not None
    assert Audit().look_at(delta.ref, delta.object) is None
