"""What is written into `status.parents` of a route, and `status.listeners` of a Gateway."""

from datetime import UTC, datetime, timedelta
from typing import Any

from headgate.common.resources import ObjectRef
from headgate.common.status import (
    GATEWAY_CONTROLLER_NAME,
    ConditionType,
    ListenerRef,
    ListenerReport,
    LoadBalancerAddress,
    ParentRef,
    PartRef,
    RouteKind,
    StatusCondition,
    StatusUpdate,
)
from headgate.watcher.status.conditions import acceptance_status
from headgate.watcher.status.merging import merge
from headgate.watcher.status.parts import listeners_status, parents_status

GROUP = "gateway.networking.k8s.io"
SINCE = datetime(2026, 3, 1, 12, tzinfo=UTC)
HTTP = ParentRef(GROUP, "Gateway", "infra", "edge", "http", 8080)
FOREIGN = {"parentRef": {"group": GROUP, "kind": "Gateway", "name": "other"}, "controllerName": "example.com/gateway"}
REPORT = ListenerReport(name="http", supported_kinds=(RouteKind(GROUP, "HTTPRoute"),), attached_routes=2)


def said(part: PartRef | None, kind: ConditionType = ConditionType.ACCEPTED, **changes: Any) -> StatusCondition:
    return StatusCondition.of(part, **{"type": kind, "status": "True", "reason": "Accepted", "since": SINCE, **changes})


def update(*conditions: StatusCondition, **changes: Any) -> StatusUpdate:
    ref = ObjectRef("east", GROUP, "gateways", "infra", "edge")
    known = {"api_version": f"{GROUP}/v1", "kind": "Gateway", "uid": "1", "generation": 3}
    return StatusUpdate(**{"ref": ref, **known, "is_accepted": True, "at": SINCE, "conditions": conditions, **changes})


def written(kind: str = "Accepted", status: str = "True", reason: str = "Accepted") -> dict[str, Any]:
    return {
        "type": kind,
        "status": status,
        "observedGeneration": 3,
        "lastTransitionTime": "2026-03-01T12:00:00Z",
        "reason": reason,
        "message": "",
    }


def test_each_parent_has_an_entry_and_those_of_other_controllers_stay() -> None:
    status = parents_status(update(said(None), said(HTTP)), {"status": {"parents": [FOREIGN]}})
    ref = {"group": GROUP, "kind": "Gateway", "namespace": "infra", "name": "edge", "sectionName": "http", "port": 8080}
    ours = {"parentRef": ref, "controllerName": GATEWAY_CONTROLLER_NAME, "conditions": [written()]}
    assert status == {"parents": [FOREIGN, ours]}


def test_a_parent_that_stands_as_before_is_not_written_again_and_keeps_its_time() -> None:
    first = parents_status(update(said(HTTP)), {})
    assert first is not None
    later = said(HTTP, since=SINCE + timedelta(days=1))
    assert parents_status(update(later), {"status": first}) is None


def test_a_parent_that_is_gone_is_taken_out() -> None:
    first = parents_status(update(said(HTTP)), {"status": {"parents": [FOREIGN]}})
    assert parents_status(update(said(None)), {"status": first}) == {"parents": [FOREIGN]}


def test_a_gateway_has_its_listeners_addresses_and_conditions() -> None:
    conflict = said(ListenerRef("http"), ConditionType.CONFLICTED, status="False", reason="NoConflicts")
    addresses = (LoadBalancerAddress(ip="192.0.2.1"), LoadBalancerAddress(hostname="edge.example"))
    conditions = (said(None, reason="Invalid"), said(ListenerRef("http")), conflict)
    status = listeners_status(update(*conditions, addresses=addresses, listeners=(REPORT,)), {})
    assert status == {
        "conditions": [written(reason="Invalid")],
        "addresses": [{"type": "IPAddress", "value": "192.0.2.1"}, {"type": "Hostname", "value": "edge.example"}],
        "listeners": [
            {
                "name": "http",
                "supportedKinds": [{"group": GROUP, "kind": "HTTPRoute"}],
                "attachedRoutes": 2,
                "conditions": [written(), written("Conflicted", "False", "NoConflicts")],
            }
        ],
    }
    more = update(*conditions, addresses=addresses, listeners=(REPORT.model_copy(update={"attached_routes": 3}),))
    changed = listeners_status(more, {"status": status})
    assert changed is not None
    assert list(changed) == ["listeners"]


def test_conditions_of_other_types_stay_on_a_gateway_and_its_listeners() -> None:
    theirs = {"type": "example.com/Checked", "status": "True", "observedGeneration": 1}
    first = update(said(None), said(ListenerRef("http")), listeners=(REPORT,))
    status = listeners_status(first, {})
    assert status is not None
    for conditions in (status["conditions"], status["listeners"][0]["conditions"]):
        conditions.append(theirs)
    assert listeners_status(first, {"status": status}) is None
    changed = update(said(None), said(ListenerRef("http")), listeners=(REPORT,), generation=4)
    after = listeners_status(changed, {"status": status})
    assert after is not None
    for conditions in (after["conditions"], after["listeners"][0]["conditions"]):
        assert [one["observedGeneration"] for one in conditions] == [4, 1]
        assert conditions[1] == theirs


def test_a_gateway_shows_as_many_addresses_as_its_api_takes() -> None:
    addresses = tuple(LoadBalancerAddress(ip=f"192.0.2.{number}") for number in range(20))
    status = listeners_status(update(said(None), addresses=addresses), {})
    assert status is not None
    assert [one["value"] for one in status["addresses"]] == [f"192.0.2.{number}" for number in range(16)]


def test_a_gateway_class_lists_features_once() -> None:
    first = acceptance_status(update(said(None), features=("Gateway", "HTTPRoute")), {})
    assert first is not None
    assert first["supportedFeatures"] == [{"name": "Gateway"}, {"name": "HTTPRoute"}]
    assert acceptance_status(update(said(None), features=("Gateway", "HTTPRoute")), {"status": first}) is None
    changed = acceptance_status(update(said(None), features=("Gateway",)), {"status": first})
    assert changed == {"supportedFeatures": [{"name": "Gateway"}]}


def test_a_gateway_class_has_the_features_of_all_tables() -> None:
    one, other = update(said(None), features=("A", "B")), update(said(None), features=("B", "C"), table="edge")
    assert merge([one, other]).features == ("B",)


def test_a_gateway_class_has_accepted_and_keeps_conditions_of_other_types() -> None:
    theirs = {"type": "example.com/Checked", "status": "True"}
    both = update(said(None), said(None, ConditionType.PROGRAMMED))
    assert acceptance_status(both, {"status": {"conditions": [theirs]}}) == {"conditions": [written(), theirs]}
    assert acceptance_status(update(), {"status": {"conditions": [theirs]}}) is None


def test_nothing_is_taken_from_a_gateway_that_is_not_ours_any_more() -> None:
    assert listeners_status(update(), {"status": {"listeners": [{"name": "http"}]}}) is None


def test_conditions_of_another_type_stay_at_a_gateway() -> None:
    theirs = {"type": "example.com/Checked", "status": "True"}
    status = listeners_status(update(said(None)), {"status": {"conditions": [theirs]}})
    assert status == {"conditions": [written(), theirs]}


def test_of_two_tables_the_worst_counts_for_each_part_and_the_most_routes_for_a_listener() -> None:
    part = ListenerRef("http")
    pending = said(part, ConditionType.PROGRAMMED, status="False", reason="Pending", message="not yet")
    merged = merge(
        [
            update(said(None), said(part, ConditionType.PROGRAMMED), listeners=(REPORT,)),
            update(said(None), pending, table="edge", listeners=(REPORT.model_copy(update={"attached_routes": 5}),)),
        ]
    )
    assert [(one.part, one.status) for one in merged.conditions] == [(None, "True"), (part, "False")]
    assert [(each.name, each.attached_routes) for each in merged.listeners] == [("http", 5)]
