"""The manifests in deploy/admission fit what the webhook does."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from fakes.kubernetes.admission_reviews import NAME
from headgate.common.resources import ALL_KINDS
from headgate.watcher.admission.server import PATH

ASKED = {(kind.group, kind.resource) for kind in ALL_KINDS if kind.is_asked}
FOLDER = Path(__file__).parents[4] / "deploy" / "admission"
DOCUMENTS = [each for file in sorted(FOLDER.glob("*.yaml")) for each in yaml.safe_load_all(file.read_text())]


def only(kind: str, name: str = "") -> Any:
    (found,) = [each for each in DOCUMENTS if each["kind"] == kind and name in ("", each["metadata"]["name"])]
    return found


WEBHOOKS = only("ValidatingWebhookConfiguration")["webhooks"]


@pytest.mark.parametrize("webhook", WEBHOOKS, ids=lambda webhook: webhook["name"])
def test_webhooks_lead_to_the_service_and_have_no_side_effects(webhook: Any) -> None:
    service, target = only("Service"), webhook["clientConfig"]["service"]
    assert (target["namespace"], target["name"]) == (service["metadata"]["namespace"], service["metadata"]["name"])
    assert target["path"] == PATH
    assert webhook["sideEffects"] == "None"
    assert webhook["admissionReviewVersions"] == ["v1"]
    assert webhook["failurePolicy"] == "Ignore"
    for rule in webhook["rules"]:
        assert rule["operations"] == ["CREATE", "UPDATE"]
        assert {(group, each) for group in rule["apiGroups"] for each in rule["resources"]} <= ASKED


def test_secrets_are_sent_only_if_they_hold_certificates() -> None:
    (secrets,) = [each for each in WEBHOOKS if each["rules"][0]["resources"] == ["secrets"]]
    assert "kubernetes.io/tls" in secrets["matchConditions"][0]["expression"]


def test_the_certificate_is_for_the_service() -> None:
    service = only("Service")["metadata"]
    names = only("Certificate", "headgate-admission")["spec"]["dnsNames"]
    assert f"{service['name']}.{service['namespace']}.svc" in names
    assert NAME in names


def test_rights_are_for_single_objects() -> None:
    secret, configuration = only("Secret"), only("ValidatingWebhookConfiguration")
    for kind, named in (("Role", secret), ("ClusterRole", configuration)):
        (rule,) = only(kind)["rules"]
        assert rule["resourceNames"] == [named["metadata"]["name"]]
        assert rule["verbs"] == ["get", "patch"]


def test_the_secret_is_empty_and_the_configuration_left_to_the_watchers() -> None:
    assert not only("Secret").keys() & {"data", "stringData"}
    assert "annotations" not in only("ValidatingWebhookConfiguration")["metadata"]
