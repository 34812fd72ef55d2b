"""The annotations of Apache APISIX, on an Ingress and on an ApisixRoute."""

from typing import Any

import pytest

from fakes.translator.apisix import Translated, resource, route, rule
from fakes.translator.deltas import ingress, service
from headgate.common.problems import Problem, Severity
from headgate.common.table import BackendProtocol, PathType, Route

PREFIX = "k8s.apisix.apache.org/"


def prefixed(**annotations: str) -> dict[str, str]:
    return {PREFIX + name.replace("_", "-"): value for name, value in annotations.items()}


def annotated(*manifests: Any, **annotations: str) -> Translated:
    return Translated(ingress("web", host="a.com", annotations=prefixed(**annotations)), *manifests)


def found(table: Translated) -> Route:
    host = table.host("a.com")
    assert host is not None
    return host.routes[0]


def told(table: Translated) -> list[Problem]:
    (ref,) = (ref for ref in table.offline.problems if ref.resource == "ingresses")
    return [one for one in table.offline.problems[ref] if one.reason != "NoReadyEndpoints"]


def plugins(table: Translated) -> dict[str, Any]:
    assert told(table) == []
    return {use.name: use.config for use in found(table).plugins}


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({"enable_cors": "true"}, {"cors": {}}),
        (
            {"enable_cors": "true", "cors_allow_origin": "https://b.com", "cors_allow_methods": "GET,POST"},
            {"cors": {"allow_origins": "https://b.com", "allow_methods": "GET,POST"}},
        ),
        ({"enable_cors": "false", "cors_allow_origin": "https://b.com"}, {}),
        ({"enable_csrf": "true", "csrf_key": "k"}, {"csrf": {"key": "k"}}),
        ({"http_to_https": "true", "http_redirect": "/x"}, {"redirect": {"http_to_https": True}}),
        ({"http_redirect": "/x"}, {"redirect": {"uri": "/x", "ret_code": 301}}),
        ({"http_redirect": "/x", "http_redirect_code": "308"}, {"redirect": {"uri": "/x", "ret_code": 308}}),
        ({"http_redirect": "/x", "http_redirect_code": "500"}, {"redirect": {"uri": "/x", "ret_code": 301}}),
        ({"rewrite_target": "/sample"}, {"proxy-rewrite": {"uri": "/sample"}}),
        (
            {"rewrite_target_regex": "/app/(.*)", "rewrite_target_regex_template": "/$1"},
            {"proxy-rewrite": {"regex_uri": ["/app/(.*)", "/$1"]}},
        ),
        (
            {
                "enable_response_rewrite": "true",
                "response_rewrite_status_code": "201",
                "response_rewrite_body": "b",
                "response_rewrite_add_header": "X-A:1",
                "response_rewrite_set_header": "X-B:2,X-C:3",
                "response_rewrite_remove_header": "X-D",
            },
            {
                "response-rewrite": {
                    "status_code": 201,
                    "body": "b",
                    "headers": {"add": ["X-A: 1"], "set": {"X-B": "2", "X-C": "3"}, "remove": ["X-D"]},
                }
            },
        ),
        (
            {"enable_response_rewrite": "true", "response_rewrite_body_base64": "aGVsbG8="},
            {"response-rewrite": {"body": "aGVsbG8=", "body_base64": True}},
        ),
        (
            {"auth_uri": "http://auth.example/check", "auth_ssl_verify": "false", "auth_request_headers": "A,B"},
            {"forward-auth": {"uri": "http://auth.example/check", "ssl_verify": False, "request_headers": ["A", "B"]}},
        ),
        ({"allowlist_source_range": "10.0.0.0/8"}, {"ip-restriction": {"whitelist": ["10.0.0.0/8"]}}),
        ({"whitelist_source_range": "10.0.0.0/8"}, {"ip-restriction": {"whitelist": ["10.0.0.0/8"]}}),
        ({"blocklist_source_range": "10.0.0.0/8"}, {"ip-restriction": {"blacklist": ["10.0.0.0/8"]}}),
        (
            {"http_allow_methods": "GET,put", "http_block_methods": "GET"},
            {
                "fault-injection": {
                    "abort": {"http_status": 405, "vars": [[["request_method", "!", "in", ["GET", "PUT"]]]]}
                }
            },
        ),
        (
            {"http_block_methods": "POST"},
            {"fault-injection": {"abort": {"http_status": 405, "vars": [[["request_method", "in", ["POST"]]]]}}},
        ),
        ({"auth_type": "keyAuth"}, {"key-auth": {}}),
        ({"auth_type": "basicAuth"}, {"basic-auth": {}}),
    ],
)
def test_annotations_become_plugins(annotations: dict[str, str], expected: Any) -> None:
    assert plugins(annotated(**annotations)) == expected


def test_a_scheme_holds_for_this_ingress_alone() -> None:
    plain = ingress("plain", host="b.com")
    table = annotated(plain, upstream_scheme="grpcs")
    assert table.upstream("a/default/web:80/as=h2").protocol is BackendProtocol.H2
    assert table.upstream("a/default/web:80").protocol is BackendProtocol.HTTP


def test_retries_and_timeouts_are_those_of_the_route_and_what_is_not_written_is_60_seconds() -> None:
    table = annotated(upstream_retries="2", upstream_read_timeout="5s", upstream_send_timeout="7")
    assert told(table) == []
    assert found(table).retries.attempts == 2
    timeouts = found(table).timeouts
    assert (timeouts.connect_s, timeouts.send_s, timeouts.read_s) == (60, 7, 5)


def test_services_may_be_in_another_namespace() -> None:
    table = annotated(service("web", namespace="other"), svc_namespace="other")
    assert [one.upstream for one in found(table).backends] == ["a/other/web:80"]


@pytest.mark.parametrize(("value", "is_let_through"), [("true", True), ("false", False)])
def test_websocket_is_let_through_as_it_is_written(value: str, is_let_through: bool) -> None:
    assert found(annotated(enable_websocket=value)).websocket is is_let_through


def test_paths_up_to_the_implementation_may_be_patterns() -> None:
    made = ingress("web", host="a.com", annotations=prefixed(use_regex="true"))
    (path,) = made["spec"]["rules"][0]["http"]["paths"]
    path |= {"path": "/[a-z]+/x", "pathType": "ImplementationSpecific"}
    assert found(Translated(made)).path.type is PathType.REGEX


def test_a_plugin_configuration_is_merged_under_the_annotations() -> None:
    shared = [{"name": "cors", "config": {"max_age": 9}}, {"name": "request-id"}]
    config = resource("ApisixPluginConfig", "shared", {"plugins": shared})
    table = annotated(config, plugin_config_name="shared", enable_cors="true")
    assert plugins(table) == {"request-id": {}, "cors": {}}


def test_a_plugin_configuration_that_is_not_there_has_requests_refused() -> None:
    table = annotated(plugin_config_name="none")
    assert [one.field for one in told(table)] == [f"metadata.annotations[{PREFIX}plugin-config-name]"]
    assert table.ask("GET", "a.com/").verdict.startswith("503")


@pytest.mark.parametrize(
    ("annotations", "name"),
    [
        ({"allowlist_source_range": "nonsense"}, "allowlist-source-range"),
        ({"auth_type": "magic"}, "auth-type"),
        ({"http_allow_methods": "G T"}, "http-allow-methods"),
        ({"enable_csrf": "true"}, "enable-csrf"),
        ({"auth_uri": "not a url"}, "auth-uri"),
    ],
)
def test_an_annotation_that_keeps_requests_out_and_cannot_be_read_has_them_refused(annotations: Any, name: str) -> None:
    table = annotated(**annotations)
    (problem,) = told(table)
    assert (problem.severity, problem.field) == (Severity.ERROR, f"metadata.annotations[{PREFIX}{name}]")
    assert PREFIX + name in table.ask("GET", "a.com/").verdict


@pytest.mark.parametrize(
    ("annotations", "name"),
    [
        ({"upstream_retries": "many"}, "upstream-retries"),
        ({"upstream_read_timeout": "soon"}, "upstream-read-timeout"),
        ({"upstream_scheme": "ftp"}, "upstream-scheme"),
        ({"rewrite_target_regex": "/x"}, "rewrite-target-regex"),
        ({"response_rewrite_set_header": "no colon", "enable_response_rewrite": "true"}, "response-rewrite-set-header"),
        ({"made_up": "x"}, "made-up"),
    ],
)
def test_any_other_annotation_that_cannot_be_read_is_said_and_ignored(annotations: Any, name: str) -> None:
    table = annotated(**annotations)
    (problem,) = told(table)
    assert (problem.severity, problem.field) == (Severity.WARNING, f"metadata.annotations[{PREFIX}{name}]")
    assert not table.ask("GET", "a.com/").verdict.startswith("503: Ingress")


def test_an_apisix_route_may_have_them_too() -> None:
    table = Translated(route(rule(), annotations=prefixed(whitelist_source_range="10.0.0.0/8"), version="v2beta3"))
    assert table.problems() == []
    assert {use.name: use.config for use in table.route().plugins} == {"ip-restriction": {"whitelist": ["10.0.0.0/8"]}}


@pytest.mark.parametrize(("text", "redirects"), [("true", True), ("false", False)])
def test_ssl_redirect_is_an_older_name_of_http_to_https(text: str, redirects: bool) -> None:
    table = Translated(route(rule(), annotations=prefixed(ssl_redirect=text), version="v2beta3"))
    assert table.problems() == []
    assert ("redirect" in {use.name for use in table.route().plugins}) is redirects


def test_http_to_https_goes_before_its_older_name() -> None:
    table = Translated(route(rule(), annotations=prefixed(ssl_redirect="true", http_to_https="false")))
    assert not table.route().plugins


def test_an_annotation_of_an_apisix_route_that_cannot_be_read_has_its_requests_refused() -> None:
    table = Translated(route(rule(), annotations=prefixed(whitelist_source_range="nonsense")))
    assert table.errors() == [f"metadata.annotations[{PREFIX}whitelist-source-range]"]
    assert "whitelist-source-range" in table.ask("GET", "a.com/").verdict
