"""Ingresses and Services with annotations of Traefik."""

from typing import Any

import pytest

from fakes.translator.deltas import ingress, service
from fakes.translator.traefik import middleware, resource
from fakes.translator.traefik_routes import Routes
from headgate.common.table import BackendTls

PREFIX = "traefik.ingress.kubernetes.io/"


def annotated(of_service: Any = None, *manifests: Any, path: Any = None, host: str = "a.test", **names: str) -> Routes:
    """Return what an Ingress makes; names of annotations have `__` for a dot."""
    said = {f"{PREFIX}router.{name.replace('__', '.')}": value for name, value in names.items()}
    at = service()
    at["metadata"]["annotations"] = {f"{PREFIX}service.{name}": value for name, value in (of_service or {}).items()}
    one = ingress("one", host=host, **({"path": path} if path is not None else {}))
    one["metadata"].setdefault("annotations", {}).update(said or {f"{PREFIX}router.entrypoints": "web"})
    return Routes(*manifests, at, one)


def test_a_route_may_be_left_out_of_logs_and_traces() -> None:
    made = annotated(observability__accesslogs="false", observability__tracing="false").route
    assert made.access_log_share == 0.0
    assert made.tracing is not None
    assert made.tracing.share == 0.0


def test_an_entry_point_that_there_is_not_serves_nothing_and_is_said() -> None:
    made = annotated(entrypoints="lost")
    assert made.all == []
    assert any(one.field and "router.entrypoints" in one.field for one in made.problems())


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        ({"middlewares": "default-lost@kubernetescrd"}, "MiddlewareNotFound"),
        ({"middlewares": "lost"}, "RefNotPermitted"),
    ],
)
def test_middlewares_that_cannot_be_followed_close_the_paths(names: Any, reason: str) -> None:
    assert reason in [each for each, _ in annotated(**names).refused()]


@pytest.mark.parametrize(
    ("of_service", "reason"),
    [
        ({"middlewares": "default-lost@kubernetescrd"}, "MiddlewareNotFound"),
        ({"serverstransport": "default-lost@kubernetescrd"}, "ServersTransportNotFound"),
        ({"serverstransport": "own"}, "RefNotPermitted"),
        ({"sticky.cookie": "true", "sticky.cookie.path": "/;"}, "InvalidValue"),
    ],
)
def test_what_a_service_says_wrongly_closes_its_paths(of_service: Any, reason: str) -> None:
    assert reason in [each for each, _ in annotated(of_service).refused()]


@pytest.mark.parametrize("backend", [{"name": "", "port": {"number": 80}}, {"name": "web", "port": {"number": 70000}}])
def test_a_backend_that_no_service_can_be_is_said_at_its_field(backend: Any) -> None:
    one = ingress("one", host="a.test", annotations={f"{PREFIX}router.priority": "7"})
    one["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"] = backend
    said = [field or "" for _, _, field in Routes(one, service()).said()]
    assert said
    assert all(field.startswith("spec.rules[0].http.paths[0].backend.service") for field in said)


def test_options_of_tls_that_are_not_there_let_no_client_in() -> None:
    made = annotated(entrypoints="websecure", tls="true", tls__options="default-lost@kubernetescrd")
    assert [reason for reason, _ in made.refused()] == ["TLSOptionNotFound"]


def test_a_scheme_that_there_is_not_is_warned_of_and_ignored() -> None:
    made = annotated({"serversscheme": "ftp"})
    assert [(severity, reason) for severity, reason, _ in made.said()] == [("warning", "InvalidAnnotation")]
    assert made.upstream.protocol == "http"


def test_a_transport_says_how_servers_of_a_service_are_spoken_to() -> None:
    spec = {"serverName": "b.test", "insecureSkipVerify": True, "forwardingTimeouts": {"dialTimeout": "2s"}}
    own = resource("ServersTransport", "own", spec, namespace="edge")
    made = annotated({"serversscheme": "https", "serverstransport": "edge-own@kubernetescrd"}, own)
    assert made.upstream.tls == BackendTls(verify=False, server_name="b.test")
    assert made.route.timeouts.connect_s == 2.0


def test_middlewares_of_a_service_come_after_those_of_the_ingress() -> None:
    both = middleware("a", addPrefix={"prefix": "/a"}), middleware("b", addPrefix={"prefix": "/b"})
    named = {"middlewares": "default-b@kubernetescrd"}
    made = annotated(named, *both, middlewares="default-a@kubernetescrd")
    assert [use.config["add_prefix"] for use in made.plugins] == ["/a", "/b"]


def test_a_wildcard_of_the_older_syntax_is_a_pattern() -> None:
    made = annotated(host="*.a.test", rulesyntax="v2")
    assert made.said() == []
    assert len(made.all) == 1
