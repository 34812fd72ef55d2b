"""What is asked of the translator, and what is let pass without asking."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from fakes.gateway.tls import SelfSigned
from fakes.kubernetes.admission_reviews import review
from fakes.kubernetes.objects import ingress, secret, service
from headgate.common.admission import Outcome
from headgate.common.resources import SECRET, ObjectRef
from headgate.common.sealing import Sealer
from headgate.watcher.admission.question import Question, Scope, pose, with_named
from headgate.watcher.admission.review import parse_review
from headgate.watcher.admission.selector import parse_selector
from headgate.watcher.objects.preparing import MAX_OBJECT_BYTES
from headgate.watcher.objects.secrets import throwaway_recipients

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def scope(*namespaces: str, selector: str = "") -> Scope:
    return Scope("paris", frozenset(namespaces), parse_selector(selector), Sealer("paris", throwaway_recipients()))


def ask(sent: dict[str, Any], within: Scope | None = None) -> Question | None:
    return pose(parse_review(json.dumps(sent).encode()), within or scope(), NOW)


def asked(sent: dict[str, Any], within: Scope | None = None) -> Question:
    question = ask(sent, within)
    assert question is not None
    return question


def test_a_new_object_is_asked_about_as_a_delta_would_have_it() -> None:
    manifest = ingress("web", managedFields=[{"manager": "kubectl"}], creationTimestamp="2026-01-01T00:00:00Z")
    proposal = asked(review(manifest)).proposal
    assert proposal.ref == ObjectRef("paris", "networking.k8s.io", "ingresses", "default", "web")
    assert "managedFields" not in proposal.object["metadata"]
    assert proposal.object["spec"] == manifest["spec"]
    assert not proposal.is_update
    assert str(asked(review(manifest))) == "Ingress default/web"


def test_what_the_object_would_be_the_first_to_name_goes_along_as_far_as_there_is_room() -> None:
    question = asked(review(ingress("web")))
    large = {**secret("large", "Opaque"), "data": {"auth": "YWFh" * (MAX_OBJECT_BYTES // 3)}}
    found = [(SECRET, large), (SECRET, secret("users", "Opaque")), (SECRET, secret("token", "example.com/token"))]
    (named,) = with_named(question, found, scope()).proposal.named
    assert named.ref == ObjectRef("paris", "", "secrets", "default", "users")
    assert "sealed" in named.object
    assert "data" not in named.object


def test_an_update_is_asked_about_with_the_object_as_it_is() -> None:
    proposal = asked(review(ingress("web", host="b.test"), ingress("web", host="a.test"))).proposal
    assert proposal.is_update
    assert proposal.before is not None
    assert proposal.before["spec"]["rules"][0]["host"] == "a.test"


def test_an_object_without_a_creation_time_is_not_taken_for_the_oldest() -> None:
    assert asked(review(ingress("web"))).proposal.object["metadata"]["creationTimestamp"] == "2026-11-20T12:00:00Z"


@pytest.mark.parametrize(
    "sent",
    [
        review(None, ingress("web"), operation="DELETE"),
        review(ingress("web"), operation="CONNECT"),
        review(ingress("web", host="b.test"), ingress("web", host="a.test"), subResource="status"),
        review({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}),
        review(secret("opaque", "Opaque")),
    ],
    ids=["delete", "connect", "status", "other kind", "other secret"],
)
def test_what_cannot_be_refused_is_not_asked_about(sent: dict[str, Any]) -> None:
    assert ask(sent) is None


def test_an_object_that_is_being_deleted_may_change_in_any_way() -> None:
    before = ingress("web", deletionTimestamp="2026-11-20T11:00:00Z", finalizers=["x.test/y"])
    after = ingress("web", host="Bad_Host", deletionTimestamp="2026-11-20T11:00:00Z")
    assert ask(review(after, before)) is None


@pytest.mark.parametrize(
    "metadata",
    [
        {"labels": {"a": "b"}},
        {"finalizers": ["x.test/y"]},
        {"ownerReferences": []},
        {"resourceVersion": "7", "generation": 2, "managedFields": [{"manager": "x"}]},
        {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}},
    ],
    ids=["labels", "finalizers", "owners", "versions", "last applied"],
)
def test_a_change_of_bookkeeping_is_not_asked_about(metadata: dict[str, Any]) -> None:
    assert ask(review(ingress("web", **metadata), ingress("web"))) is None


def test_a_status_that_comes_with_an_update_is_no_change() -> None:
    assert ask(review(ingress("web") | {"status": {"loadBalancer": {}}}, ingress("web"))) is None


def test_a_changed_annotation_is_asked_about() -> None:
    after = ingress("web", annotations={"headgate.dev/retries": "2"})
    assert asked(review(after, ingress("web"))).proposal.is_update


def test_namespaces_that_are_not_watched_are_none_of_ours() -> None:
    assert ask(review(ingress("web", namespace="shop")), scope("blog")) is None
    assert ask(review(ingress("web", namespace="shop")), scope("blog", "shop")) is not None


def test_ingresses_that_are_not_selected_are_none_of_ours() -> None:
    within = scope(selector="team=web")
    assert ask(review(ingress("web")), within) is None
    assert ask(review(ingress("web", labels={"team": "web"})), within) is not None
    assert ask(review(service("web")), within) is not None


def test_an_object_that_becomes_selected_is_new_to_us() -> None:
    proposal = asked(
        review(ingress("web", labels={"team": "web"}), ingress("web")), scope(selector="team=web")
    ).proposal
    assert not proposal.is_update


def test_a_secret_is_asked_about_sealed() -> None:
    manifest = SelfSigned("a.test").secret("default", "cert")
    proposal = asked(review(manifest)).proposal
    assert "data" not in proposal.object
    assert set(proposal.object["sealed"]["values"]) == {"tls.crt", "tls.key"}
    assert manifest["data"]["tls.key"] not in proposal.model_dump_json()


def test_a_secret_with_the_same_content_is_not_asked_about_again() -> None:
    assert ask(review(secret("cert"), secret("cert"))) is None


def test_only_what_may_be_meant_for_us_can_be_held_back() -> None:
    ours = service("web")
    ours["metadata"]["annotations"] = {"headgate.dev/stream-port": "9000"}
    speak = [asked(review(each)).speaks_to_us for each in (ingress("web"), ours, service("web"), secret("cert"))]
    assert speak == [True, True, False, False]


def test_an_object_that_the_bus_cannot_carry_is_let_in_with_a_warning() -> None:
    large = ingress("web", annotations={"x.test/large": "x" * MAX_OBJECT_BYTES})
    answer = asked(review(large)).answer
    assert answer is not None
    assert answer.outcome is Outcome.JUDGED
    assert answer.findings[0].problem.reason == "TooLarge"


def test_an_update_too_large_for_both_versions_is_asked_about_without_the_one_before() -> None:
    half = ingress("web", annotations={"x.test/large": "x" * (MAX_OBJECT_BYTES * 2 // 3)})
    before = ingress("web", host="a.test", annotations=half["metadata"]["annotations"])
    proposal = asked(review(half, before)).proposal
    assert proposal.is_update
    assert proposal.before is None


def test_a_generated_name_stands_for_the_name() -> None:
    manifest = ingress("x", generateName="web-")
    del manifest["metadata"]["name"]
    assert asked(review(manifest, name="")).proposal.ref.name == "web-"
