"""The hosts and paths that objects ask for, read from their text."""

from typing import Any

import pytest

from fakes.translator.apisix import resource, route, rule
from fakes.translator.deltas import ingress
from headgate.cli.offline.claims import Claim, concerned, find_claims
from headgate.common.problems import Problem, Severity

REGEX = {"headgate.dev/path-type": "regex"}


def exact(path: str) -> Any:
    """Return an Ingress with a path of type Exact."""
    made = ingress("web", host="a.example", path=path)
    made["spec"]["rules"][0]["http"]["paths"][0]["pathType"] = "Exact"
    return made


@pytest.mark.parametrize(
    ("manifest", "taken", "left"),
    [
        (
            ingress("web", host="a.example", path="/api"),
            ["a.example/api", "a.example/api/x"],
            ["a.example/apis", "b.example/api"],
        ),
        (ingress("web", host="a.example", path="/api/"), ["a.example/api", "a.example/api/x"], ["a.example/"]),
        (exact("/api"), ["a.example/api"], ["a.example/api/x"]),
        (ingress("web", path="/api"), ["a.example/api"], ["a.example/"]),
        (ingress("web", host="*.example", path="/"), ["a.example/x"], ["b.a.example/x", "example/x"]),
        (ingress("web", host="a.example", path="/v[0-9]+/x", annotations=REGEX), ["a.example/v1/x"], ["a.example/w"]),
        (ingress("web", host="a.example", path="/ab*", annotations=REGEX), ["a.example/a"], ["a.example/b"]),
        (ingress("web", host="a.example", path="no-slash"), ["a.example/any"], ["b.example/any"]),
        (ingress("web", spec={"defaultBackend": {"service": {}}}), ["b.example/any"], []),
        (ingress("web", spec={"rules": [{"host": "a.example"}]}), ["a.example/any"], ["b.example/any"]),
        (ingress("web", spec={"rules": [3, {"host": 4}]}), [], ["a.example/"]),
        (ingress("web", spec={"tls": [{"hosts": ["A.example"]}]}), ["a.example/any"], ["b.example/"]),
        (route(rule("r", "/api", hosts=["a.example"])), ["a.example/api"], ["a.example/api/x", "b.example/api"]),
        (route(rule("r", "/api*", hosts=["*.example"])), ["b.a.example/apis"], ["b.a.example/b", "example/api"]),
        (route(rule("r", "/api/*/x")), ["a.example/api/1/x"], ["a.example/b"]),
        (route(rule("r", "*")), ["a.example/any"], []),
        (resource("ApisixTls", "t", {"hosts": ["*.example"]}), ["b.a.example/any"], ["example/any"]),
        (resource("ApisixGlobalRule", "g", {"plugins": []}), ["a.example/any"], []),
        (resource("ApisixConsumer", "c", {}), [], ["a.example/any"]),
        (None, [], ["a.example/any"]),
    ],
)
def test_an_object_asks_for_hosts_and_paths(manifest: Any, taken: list[str], left: list[str]) -> None:
    def claims(url: str) -> tuple[Claim, ...]:
        host, slash, path = url.partition("/")
        return find_claims(manifest, host, slash + path)

    assert all(map(claims, taken))
    assert not any(map(claims, left))


def test_a_problem_is_about_the_path_that_its_field_names() -> None:
    both = ingress("web", host="a.example", path="/api")
    paths = both["spec"]["rules"][0]["http"]["paths"]
    paths.append({**paths[0], "path": "/other"})
    claims = find_claims(both, "a.example", "/api")

    def about(field: str, severity: Severity = Severity.ERROR) -> Claim | None:
        return concerned(claims, Problem(severity=severity, reason="X", field=field, message="wrong"))

    for field in (
        "spec.rules[0].http.paths[0].backend",
        "spec.rules[0].host",
        "spec.rules",
        "metadata.annotations",
        "",
    ):
        assert about(field) == claims[0]
    for field in ("spec.rules[0].http.paths[1].backend", "spec.rules[1]", "spec.tls[0].secretName"):
        assert about(field) is None
    assert about("spec.rules[0].host", Severity.INFO) is None
