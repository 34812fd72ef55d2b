"""What `explain` says of backends with something of their own, and of groups of backends."""

from typing import Any

import pytest

from fakes.gateway.table import ORIGIN, endpoint, host, route, upstream
from headgate.common.table import (
    Backend,
    BackendGroup,
    Choice,
    Compare,
    Failover,
    FirstMatch,
    Hashed,
    Mirror,
    Mirroring,
    PluginUse,
    Subject,
    Weighted,
)
from headgate.gateway.plugins.runtime.preview import preview_plugins
from headgate.gateway.table.explaining.explain import explain
from headgate.gateway.table.explaining.explanation import Explanation, HealthNote
from headgate.gateway.table.view import EntryView

CORS = (PluginUse(name="cors"),)


def group(key: str, **fields: Any) -> BackendGroup:
    return BackendGroup(key=key, provenance=ORIGIN, **fields)


def explained(*groups: BackendGroup, backends: tuple[Backend, ...] = (Backend(group="g"),)) -> Explanation:
    upstreams = [upstream(name, endpoint(number)) for number, name in enumerate("abc", 1)]
    site = host("x", route("/", name="r").model_copy(update={"backends": backends}))
    return explain(EntryView([site, *upstreams, *groups, upstream("down")]), "GET", "x", "/", preview=preview_plugins)


def shares(explanation: Explanation) -> list[tuple[str, float, str]]:
    return [(one.upstream, one.share, one.role) for one in explanation.backends]


def test_shares_of_nested_groups_are_those_of_the_way() -> None:
    inner = group("inner", weighted=Weighted(backends=(Backend(upstream="b", weight=3), Backend(upstream="c"))))
    outer = group("g", weighted=Weighted(backends=(Backend(upstream="a"), Backend(group="inner"))))
    found = explained(outer, inner)
    assert shares(found) == [("a", 0.5, ""), ("b", 0.375, ""), ("c", 0.125, "")]
    assert [one.groups for one in found.backends] == [("g",), ("g", "inner"), ("g", "inner")]
    assert found.verdict == "r sends it to a (50%), b (38%), c (12%)"


def test_plugins_of_all_levels_are_named_in_their_order() -> None:
    redirecting = (PluginUse(name="redirect", config={"uri": "/new", "ret_code": 302}),)
    inner = group("g", weighted=Weighted(backends=(Backend(upstream="a", plugins=redirecting),)))
    (found,) = explained(inner, backends=(Backend(group="g", plugins=CORS),)).backends
    assert [(one.name, one.verdict, one.status) for one in found.plugins] == [
        ("cors", "passes", 0),
        ("redirect", "answers", 302),
    ]


def test_hashed_backends_say_so() -> None:
    hashed = group("g", hashed=Hashed(backends=(Backend(upstream="a"), Backend(upstream="b"))))
    assert shares(explained(hashed)) == [("a", 0.5, "by hash"), ("b", 0.5, "by hash")]


@pytest.mark.parametrize(
    ("main", "expected", "verdict"),
    [
        ("a", [("a", 1.0, "main"), ("b", 0.0, "fallback")], "r sends it to a (100%)"),
        ("down", [("down", 0.0, "main"), ("b", 1.0, "fallback")], "r sends it to b (100%)"),
    ],
)
def test_failover_goes_by_what_is_there(main: str, expected: list[tuple[str, float, str]], verdict: str) -> None:
    failover = group("g", failover=Failover(main=Backend(upstream=main), fallback=Backend(upstream="b")))
    found = explained(failover)
    assert (shares(found), found.verdict) == (expected, verdict)


@pytest.mark.parametrize(
    ("paths", "expected", "verdict"),
    [
        (["/other", "/", "/"], [0.0, 1.0, 0.0], "r sends it to b (100%)"),
        (["/other"], [0.0], "404: r takes it, and no route behind its middlewares does, if they leave it as it is"),
    ],
)
def test_of_conditions_the_first_that_holds_decides(paths: list[str], expected: list[float], verdict: str) -> None:
    conditions = [Compare(subject=Subject.PATH, values=(path,)) for path in paths]
    backends = [Backend(upstream=name) for name in "abc"]
    choices = tuple(Choice(when=when, backend=each) for when, each in zip(conditions, backends, strict=False))
    found = explained(group("g", first_match=FirstMatch(choices=choices)))
    assert [one.share for one in found.backends] == expected
    assert {one.role for one in found.backends} == {"by rule"}
    assert found.verdict == verdict


def test_mirrors_of_backends_and_groups_have_their_part_of_the_share() -> None:
    copied = Backend(upstream="a", mirrors=(Mirror(upstream="b", share=0.5),))
    mirroring = group("g", mirroring=Mirroring(main=copied, mirrors=(Mirror(upstream="down"),)))
    found = explained(mirroring, backends=(Backend(group="g"), Backend(upstream="c")))
    assert [(one.target, one.share, one.unavailable) for one in found.mirrors] == [
        ("down", 0.5, "down has no endpoints"),
        ("b", 0.25, ""),
    ]


@pytest.mark.parametrize(
    ("backends", "lost"),
    [((Backend(upstream="down"), Backend(upstream="a")), ""), ((Backend(upstream="down"),), "down has no endpoints")],
)
def test_copies_to_a_group_are_lost_if_none_of_its_backends_is_there(backends: tuple[Backend, ...], lost: str) -> None:
    copied = Backend(upstream="a", mirrors=(Mirror(group="g"),))
    (mirror,) = explained(group("g", weighted=Weighted(backends=backends)), backends=(copied,)).mirrors
    assert (mirror.target, mirror.unavailable) == ("g", lost)


def test_a_group_that_cannot_be_served_is_named_with_its_fault() -> None:
    circle = group("g", weighted=Weighted(backends=(Backend(upstream="a"), Backend(group="g"))))
    found = explained(circle, backends=(Backend(group="g"), Backend(upstream="b"), Backend(group="gone")))
    assert [one.unavailable for one in found.backends] == [
        "backend group g nests itself: g -> g",
        "",
        "backend group gone is not in the table",
    ]
    assert found.verdict == "r sends it to g (33%), b (33%), gone (33%); 503 for the share of g, gone"


def test_a_main_backend_whose_endpoints_are_all_unhealthy_leaves_its_requests_to_the_fallback() -> None:
    failover = group("g", failover=Failover(main=Backend(upstream="a"), fallback=Backend(upstream="b")))
    site = host("x", route("/", name="r").model_copy(update={"backends": (Backend(group="g"),)}))
    entries = site, upstream("a", endpoint(1)), upstream("b", endpoint(2)), failover
    notes = {"a": {("10.0.0.1", 80): HealthNote(is_unhealthy=True)}}
    found = explain(EntryView(entries), "GET", "x", "/", health_of=lambda key: notes.get(key, {}))
    assert found.verdict == "r sends it to b (100%)"


def test_a_backend_that_answers_by_a_plugin_is_said_to_answer_that_whatever_it_lacks() -> None:
    answering = (PluginUse(name="fault-injection", config={"abort": {"http_status": 500}}),)
    gone = Backend(upstream="down", plugins=answering)
    assert explained(backends=(gone,)).verdict == "500: down has no endpoints"
    half = explained(backends=(gone, Backend(upstream="a"))).verdict
    assert half.endswith("; 500 for the share of down")
