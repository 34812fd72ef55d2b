"""Patches are put together by one rule, and have no field that the table's entries lack."""

import pytest

from headgate.common.table import Compare, PluginUse, Route, Subject, Timeouts, Upstream
from headgate.common.table.rank import Rank
from headgate.translator.manifests.patches import NO_ROUTE_PATCH, Patch, RoutePatch, UpstreamPatch

TRACED = Compare(subject=Subject.HEADER, name="x-trace", values=("1",))
INTERNAL = Compare(subject=Subject.HEADER, name="x-internal", values=("1",))


def test_the_fields_of_the_first_patch_go_before_those_of_the_second() -> None:
    patch = RoutePatch(websocket=False, max_body=1).over(RoutePatch(websocket=True, buffer_request=True))
    assert patch.said == {"websocket": False, "max_body": 1, "buffer_request": True}


def test_a_part_is_taken_whole_from_the_patch_that_goes_first() -> None:
    ours, theirs = RoutePatch(timeouts=Timeouts(connect_s=1)), RoutePatch(timeouts=Timeouts(read_s=2))
    assert ours.over(theirs).timeouts == Timeouts(connect_s=1)


def test_plugins_and_conditions_of_both_hold() -> None:
    cors, mocking = PluginUse(name="cors"), PluginUse(name="mocking")
    ours = RoutePatch(plugins=(cors,), conditions=(TRACED,))
    patch = ours.over(RoutePatch(plugins=(mocking,), conditions=(INTERNAL,)))
    assert patch.plugins == (cors, mocking)
    assert patch.conditions == (TRACED, INTERNAL)


@pytest.mark.parametrize("patch", [NO_ROUTE_PATCH, RoutePatch(max_body=0, websocket=False)])
def test_a_patch_that_says_nothing_changes_nothing(patch: RoutePatch) -> None:
    assert patch.over(NO_ROUTE_PATCH) == NO_ROUTE_PATCH.over(patch) == patch


def test_a_value_that_is_false_or_zero_is_said() -> None:
    assert RoutePatch(max_body=0, websocket=False).said == {"max_body": 0, "websocket": False}


@pytest.mark.parametrize(("patch", "entry"), [(RoutePatch, Route), (UpstreamPatch, Upstream)])
def test_each_field_of_a_patch_is_one_of_the_entry_or_of_its_rank(patch: type[Patch], entry: type) -> None:
    known = {*entry.model_fields, *Rank.model_fields, "conditions"}  # type: ignore[attr-defined]
    assert patch.model_fields.keys() <= known
