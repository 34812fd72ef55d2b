"""How much work one Ingress may make for translators and gateways."""

from typing import Any

import pytest

from fakes.translator.deltas import applied, ingress, service, tls_secret
from headgate.common.resources import INGRESS
from headgate.common.table import ClientAuth, Route, TlsPolicy, VirtualHost
from headgate.translator.offline import Offline, translate_all

BACKEND = {"service": {"name": "web", "port": {"number": 80}}}
CONDITIONS = "\n".join(f"x-{number}=1" for number in range(9000))


def large(hosts: int, paths: int, pattern: str = "", **annotations: str) -> Any:
    """An Ingress with so many paths for each of so many hosts."""
    rules = [
        {
            "host": f"h{host}.example",
            "http": {
                "paths": [
                    {"path": f"/{path}{pattern}", "pathType": "ImplementationSpecific", "backend": BACKEND}
                    for path in range(paths)
                ]
            },
        }
        for host in range(hosts)
    ]
    given = {name.replace("__", "/").replace("_", "-"): value for name, value in annotations.items()}
    return ingress("large", spec={"rules": rules}, annotations=given)


def translated(*manifests: Any) -> Offline:
    return translate_all([applied(one) for one in (service(), *manifests)])


def reasons(offline: Offline) -> list[str]:
    [found] = [problems for ref, problems in offline.problems.items() if ref.resource == INGRESS.resource]
    return [problem.reason for problem in found if problem.severity == "error"]


def routes(offline: Offline, host: str = "h0.example") -> tuple[Route, ...]:
    [found] = [entry for entry in offline.entries if isinstance(entry, VirtualHost) and entry.host == host]
    return found.routes


@pytest.mark.parametrize(
    "annotations",
    [
        {"headgate.dev__match_headers": "\n".join(f"x-{number}~^v{number}" for number in range(20))},
        {
            "k8s.apisix.apache.org__enable_response_rewrite": "true",
            "k8s.apisix.apache.org__response_rewrite_set_header": "Content-Security-Policy:" + "x" * 4000,
        },
        {"k8s.apisix.apache.org__use_regex": "true"},
    ],
    ids=["conditions", "plugins", "patterns"],
)
def test_an_object_of_hundreds_of_paths_with_long_annotations_is_served(annotations: dict[str, str]) -> None:
    offline = translated(large(50, 10, **annotations))
    assert "TooMuchWork" not in reasons(offline)
    assert len(routes(offline)) == 10
    assert any(route.when or route.plugins or route.path.type == "regex" for route in routes(offline))


def test_conditions_times_paths_are_bounded_and_all_requests_of_the_object_refused_beyond() -> None:
    offline = translated(large(100, 1, **{"headgate.dev__match_headers": CONDITIONS}))
    [problem] = [one for one in next(iter(offline.problems.values())) if one.reason == "TooMuchWork"]
    assert problem.field == "metadata.annotations"
    assert problem.message.startswith("what the annotations say of 100 rules with 100 paths is too much work")
    [route] = routes(offline)
    assert route.when is None
    assert [backend.upstream for backend in route.backends] == ["a/default/Ingress/large/refused"]


def test_plugins_times_paths_are_bounded() -> None:
    body = {
        "k8s.apisix.apache.org__enable_response_rewrite": "true",
        "k8s.apisix.apache.org__response_rewrite_body": "x" * 120_000,
    }
    assert "TooMuchWork" not in reasons(translated(large(20, 1, **body)))
    assert "TooMuchWork" in reasons(translated(large(500, 1, **body)))


def test_tls_times_hosts_is_bounded_and_lets_nobody_in_beyond() -> None:
    authorities = tls_secret("clients", authorities_pem="x" * 500_000)
    offline = translated(authorities, large(200, 1, **{"headgate.dev__client_auth_secret": "clients"}))
    assert "TooMuchWork" in reasons(offline)
    tls = {entry.tls for entry in offline.entries if isinstance(entry, VirtualHost)}
    assert tls == {TlsPolicy(client_auth=ClientAuth(ca_pem=""))}


def test_patterns_of_paths_are_bounded_over_the_object() -> None:
    offline = translated(large(50, 100, "[a-z]{900}", **{"k8s.apisix.apache.org__use_regex": "true"}))
    assert "InvalidPath" in reasons(offline)
    assert 0 < sum(len(entry.routes) for entry in offline.entries if isinstance(entry, VirtualHost)) < 5000


def test_the_canary_of_an_object_that_makes_too_much_work_takes_nothing() -> None:
    main = ingress("main", host="h0.example", created="2025-01-01T00:00:00Z")
    canary = {"headgate.dev__canary": "true", "headgate.dev__canary_weight": "50"}
    offline = translated(main, large(100, 1, **canary, **{"headgate.dev__match_headers": CONDITIONS}))
    assert [route.canaries for route in routes(offline)] == [()]
