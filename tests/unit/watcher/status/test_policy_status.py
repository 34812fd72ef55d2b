"""What is written into `status.ancestors` of a policy."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headgate.common.resources import ObjectRef
from headgate.common.status import CONTROLLER_NAME, AncestorRef, ConditionType, StatusCondition, StatusUpdate
from headgate.watcher.status.merging import merge
from headgate.watcher.status.parts import ancestors_status

SINCE = datetime(2026, 3, 1, 12, tzinfo=UTC)
WEB = AncestorRef("", "Service", "default", "web")
HTTP = WEB._replace(section="http")
FOREIGN = {
    "ancestorRef": {"group": "networking.k8s.io", "kind": "IngressClass", "name": "apisix"},
    "controllerName": "apisix.apache.org/apisix-ingress-controller",
    "conditions": [],
}


def said(ancestor: AncestorRef | None = WEB, status: Any = "True", **changes: Any) -> StatusCondition:
    values = {"reason": "Accepted", "since": SINCE, **changes}
    return StatusCondition(type=ConditionType.ACCEPTED, status=status, ancestor=ancestor, **values)


def update(*conditions: StatusCondition, **changes: Any) -> StatusUpdate:
    ref = ObjectRef("east", "apisix.apache.org", "backendtrafficpolicies", "default", "web")
    known = {"api_version": "apisix.apache.org/v1alpha1", "kind": "BackendTrafficPolicy", "uid": "1", "generation": 3}
    return StatusUpdate(**{"ref": ref, **known, "is_accepted": True, "at": SINCE, "conditions": conditions, **changes})


def test_each_ancestor_has_an_entry_with_its_conditions() -> None:
    refused = said(HTTP, "False", reason="Conflicted", message="older")
    written = ancestors_status(update(said(None), said(), refused), {})
    assert written == {
        "ancestors": [
            {
                "ancestorRef": {"group": "", "kind": "Service", "namespace": "default", "name": "web"},
                "controllerName": CONTROLLER_NAME,
                "conditions": [
                    {
                        "type": "Accepted",
                        "status": "True",
                        "observedGeneration": 3,
                        "lastTransitionTime": "2026-03-01T12:00:00Z",
                        "reason": "Accepted",
                        "message": "",
                    }
                ],
            },
            {
                "ancestorRef": {
                    "group": "",
                    "kind": "Service",
                    "namespace": "default",
                    "name": "web",
                    "sectionName": "http",
                },
                "controllerName": CONTROLLER_NAME,
                "conditions": [
                    {
                        "type": "Accepted",
                        "status": "False",
                        "observedGeneration": 3,
                        "lastTransitionTime": "2026-03-01T12:00:00Z",
                        "reason": "Conflicted",
                        "message": "older",
                    }
                ],
            },
        ]
    }


def test_nothing_is_written_when_it_is_there_already() -> None:
    written = ancestors_status(update(said()), {})
    assert ancestors_status(update(said()), {"status": written}) is None


def test_entries_of_another_controller_stay_and_ours_go_with_the_policy() -> None:
    written = ancestors_status(update(said()), {"status": {"ancestors": [FOREIGN]}})
    assert written is not None
    assert written["ancestors"][0] == FOREIGN
    assert ancestors_status(update(), {"status": written}) == {"ancestors": [FOREIGN]}


def test_an_ancestor_that_is_named_no_more_goes() -> None:
    written = ancestors_status(update(said(), said(HTTP)), {})
    after = ancestors_status(update(said(HTTP)), {"status": written})
    assert after is not None
    assert [entry["ancestorRef"].get("sectionName") for entry in after["ancestors"]] == ["http"]


def test_a_condition_that_says_what_it_said_keeps_its_time() -> None:
    written = ancestors_status(update(said()), {})
    later = said(since=SINCE + timedelta(hours=1), message="more")
    after = ancestors_status(update(later), {"status": written})
    assert after is not None
    assert after["ancestors"][0]["conditions"][0]["lastTransitionTime"] == "2026-03-01T12:00:00Z"


def test_no_more_entries_are_written_than_an_api_server_takes() -> None:
    conditions = [said(WEB._replace(name=f"web-{number}")) for number in range(16)]
    written = ancestors_status(update(*conditions), {"status": {"ancestors": [FOREIGN]}})
    assert written is not None
    assert len(written["ancestors"]) == 16
    assert written["ancestors"][0] == FOREIGN


@pytest.mark.parametrize("order", [1, -1])
def test_of_two_tables_the_worst_counts_for_each_ancestor(order: int) -> None:
    parts = [
        update(said(), said(HTTP), table="blue"),
        update(said(), said(HTTP, "False", reason="Conflicted"), table="green"),
    ]
    merged = merge(parts[::order])
    assert {one.ancestor: one.status for one in merged.conditions} == {WEB: "True", HTTP: "False"}
