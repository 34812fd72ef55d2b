"""How objects stand, from what became of them."""

from typing import Any

import pytest

from fakes.translator import traefik
from fakes.translator.apisix import one_backend, route
from fakes.translator.deltas import applied, ref_of, service
from fakes.translator.traefik_streams import rule as tcp_rule
from fakes.translator.traefik_streams import tcp
from headgate.common.status import ConditionType
from headgate.translator.assembly.conditions import ObjectStatus
from headgate.translator.composition import DIALECTS
from headgate.translator.fragments.fragment import Identity
from headgate.translator.serving.fleet import Fleet
from headgate.translator.status.desired import Facts, report
from headgate.translator.translation import Translation

IDENTITY = Identity(ref_of(route()), "apisix.apache.org/v2", "ApisixRoute", "u", generation=1)
BROKEN = [{"name": "limit-count", "config": {"count": -3, "time_window": 60}}]
"""A plugin that cannot be followed: requests are answered 503."""


def condition(*rules: Any) -> ObjectStatus:
    return condition_of(route(*rules))


def condition_of(made: Any) -> ObjectStatus:
    translation = Translation(DIALECTS)
    translation.activate("a")
    for manifest in (service(), made):
        translation.apply(applied(manifest))
    for _ in translation.settle():
        pass
    found = translation.condition(ref_of(made))
    assert found is not None
    return found


def test_an_object_whose_every_route_refuses_requests_is_refused() -> None:
    assert condition(one_backend(plugins=BROKEN)).is_refused


def test_one_that_serves_a_part_is_not() -> None:
    assert not condition(one_backend("one", "/one", plugins=BROKEN), one_backend("two", "/two")).is_refused


def test_an_object_without_mistakes_is_not() -> None:
    assert not condition(one_backend()).is_refused


def test_a_refused_object_is_not_accepted_and_keeps_its_addresses() -> None:
    broken = condition(one_backend(plugins=BROKEN))
    known = Facts(IDENTITY, broken, stand_in=None, content="c", version=None, pinned=None, rollout=None, addresses=None)
    wanted = report(known, None, Fleet(()), None)
    (said,) = [one for one in wanted.conditions if one.type is ConditionType.ACCEPTED]
    assert (said.status, said.reason) == ("False", "Invalid")
    assert "count" in said.message
    assert broken.is_accepted


MISSING = [
    traefik.route(traefik.rule(traefik.ANY, middlewares=["lost"])),
    traefik.route(traefik.rule(traefik.ANY), spec={"entryPoints": ["websecure"], "tls": {"options": {"name": "lost"}}}),
    tcp(tcp_rule("HostSNI(`a.com`)", middlewares=[{"name": "lost"}]), entryPoints=["websecure"], tls={}),
    tcp(tcp_rule("HostSNI(`a.com`)"), entryPoints=["websecure"], tls={"options": {"name": "lost"}}),
]


@pytest.mark.parametrize("made", MISSING)
def test_references_of_traefiks_routes_that_are_missing_are_not_resolved_and_what_names_them_is_accepted(
    made: Any,
) -> None:
    found = condition_of(made)
    assert found.is_refused
    conditions = report(Facts(IDENTITY, found, None, "", None, None), None, Fleet({}), None).conditions
    said = {each.type: each.status for each in conditions}
    assert (said[ConditionType.ACCEPTED], said[ConditionType.RESOLVED_REFS]) == ("True", "False")
