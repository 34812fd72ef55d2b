"""Who changed an object, where the webhook heard of it."""

import copy
from typing import Any

from fakes.kubernetes.objects import ingress
from headgate.common.resources import ObjectRef
from headgate.watcher.publishing.requesters import KEPT, KEPT_S, Requesters

REF = ObjectRef("a", "networking.k8s.io", "ingresses", "default", "web")


def stored(manifest: Any) -> Any:
    """An object as a watch brings it after the webhook let it pass."""
    found = copy.deepcopy(manifest)
    found["metadata"] |= {"uid": "u", "resourceVersion": "7", "generation": 2, "namespace": "default"}
    found["metadata"]["managedFields"] = [{"manager": "kubectl-edit", "time": "2026-01-01T00:00:00Z"}]
    return {**found, "status": {"loadBalancer": {}}}


def asked(manifest: Any, user: str, requesters: Requesters) -> None:
    requesters.note(REF.group, REF.resource, manifest, user)


def who(requesters: Requesters, manifest: Any) -> str:
    author = requesters.author_of(REF, manifest)
    return author.name if author else ""


def web(host: str = "a.example") -> Any:
    made = ingress("web", host=host)
    made["metadata"]["namespace"] = "default"
    return made


def test_the_user_of_the_review_is_the_author_at_the_time_of_the_api_server() -> None:
    requesters = Requesters()
    asked(web(), "ada@example.com", requesters)
    author = requesters.author_of(REF, stored(web()))
    assert author is not None
    assert author.name == "ada@example.com"
    assert author.at is not None
    assert author.at.year == 2026


def test_without_a_review_of_this_content_it_is_the_field_manager() -> None:
    requesters = Requesters()
    assert who(requesters, stored(web())) == "kubectl-edit"
    asked(web("b.example"), "ada", requesters)
    assert who(requesters, stored(web())) == "kubectl-edit"


def test_of_two_that_ask_for_the_same_it_is_the_later() -> None:
    requesters = Requesters()
    asked(web(), "ada", requesters)
    asked(web(), "bob", requesters)
    assert who(requesters, stored(web())) == "bob"


def test_what_was_asked_for_is_forgotten_after_a_while() -> None:
    now = 0.0
    requesters = Requesters(lambda: now)
    asked(web(), "ada", requesters)
    now = KEPT_S + 1
    assert who(requesters, stored(web())) == "kubectl-edit"


def test_only_so_many_changes_are_remembered() -> None:
    requesters = Requesters()
    asked(web(), "ada", requesters)
    for number in range(KEPT):
        asked(web(f"h{number}.example"), "bob", requesters)
    assert who(requesters, stored(web())) == "kubectl-edit"
