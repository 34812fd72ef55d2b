"""IngressRoutes as routes of the table: rules, what is observed, and what cannot be followed."""

from typing import Any

import pytest

from fakes.translator.traefik import resource, route, rule
from fakes.translator.traefik_routes import Routes
from headgate.translator.dialects.traefik.routes import matched

A = "Host(`a.test`)"


@pytest.mark.parametrize(
    ("written", "reason", "field"),
    [
        (rule(A, syntax="v4"), "InvalidRule", "match"),
        (rule("Hots(`a.test`)"), "InvalidRule", "match"),
        (rule("Host(`a.test`"), "InvalidRule", "match"),
    ],
)
def test_a_rule_that_cannot_be_read_is_no_route_and_is_said(written: Any, reason: str, field: str) -> None:
    made = Routes(route(written))
    assert made.all == []
    assert made.said() == [("error", reason, f"spec.routes[0].{field}")]


def test_an_object_whose_fields_cannot_be_read_makes_no_route() -> None:
    made = Routes(route(rule(A), spec={"entryPoints": 5}))
    assert made.all == []
    assert [(one.severity, one.field) for one in made.problems()] == [("error", "spec.entryPoints")]


def test_a_route_without_services_is_refused() -> None:
    assert Routes(route({"match": A})).refused() == [("NoBackends", "spec.routes[0].services")]


def test_a_rule_that_no_request_satisfies_is_warned_of() -> None:
    made = Routes(route(rule("Host(`*.a.test`)", syntax="v2")))
    assert made.all == []
    assert made.said() == [("warning", "InvalidRule", "spec.routes[0].match")]


def test_of_two_routes_of_one_rule_that_of_higher_priority_is_served() -> None:
    made = Routes(route(rule(A), rule(A, priority=99)))
    assert made.said() == [("warning", "ShadowedRoute", "spec.routes[1].match")]
    assert [one.provenance.rule for one in made.all] == ["spec.routes[1]"]


def test_more_routes_than_an_object_may_make_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matched, "MAX_ROUTES", 1)
    made = Routes(route(rule("Host(`a.test`) || Host(`b.test`)"), rule("Host(`c.test`)")))
    assert made.said() == [("error", "TooMuchWork", "spec.routes[0].match")]
    assert [one.provenance.rule for one in made.all] == ["spec.routes[1]"]


@pytest.mark.parametrize(
    ("written", "access_log_share", "trace_share"),
    [
        ({}, None, None),
        ({"accessLogs": True, "tracing": True, "metrics": False}, None, None),
        ({"accessLogs": False}, 0.0, None),
        ({"tracing": False}, None, 0.0),
    ],
)
def test_a_route_may_be_left_out_of_logs_and_traces(
    written: Any, access_log_share: float | None, trace_share: float | None
) -> None:
    made = Routes(route(rule(A, observability=written))).route
    assert made.access_log_share == access_log_share
    assert (made.tracing.share if made.tracing else None) == trace_share


def test_a_route_behind_a_tls_option_that_cannot_be_followed_is_refused() -> None:
    option = resource("TLSOption", "strict", {"clientAuth": {"secretNames": ["lost"]}})
    tls = {"options": {"name": "strict"}}
    made = Routes(option, route(rule(A), spec={"entryPoints": ["websecure"], "tls": tls}))
    (backend,) = made.all[0].backends
    (refusing,) = [each for each in made.upstreams if each.key == backend.upstream]
    assert "its TLSOption cannot be followed" in (refusing.unavailable or "")


def test_a_resolver_that_is_not_set_is_warned_of() -> None:
    made = Routes(route(rule(A), spec={"entryPoints": ["websecure"], "tls": {"certResolver": "le"}}))
    assert ("warning", "ResolverNotFound", "spec.tls.certResolver") in made.said()
