"""Subjects and messages of the delta log."""

import json
import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from headgate.common.deltas import (
    ClusterAnnouncement,
    Delta,
    KindName,
    Operation,
    SyncMarker,
    cluster_subject,
    delta_subject,
    escape_token,
    parse_delta_subject,
    sync_subject,
    unescape_token,
)
from headgate.common.errors import DecodeError
from headgate.common.resources import ObjectRef

NOW = datetime(2026, 3, 1, tzinfo=UTC)
TEXT = st.text(max_size=40) | st.from_regex(r"[a-z0-9.=*> -]{0,30}", fullmatch=True)


@given(TEXT)
def test_escaping_is_reversible(text: str) -> None:
    assert unescape_token(escape_token(text)) == text


@given(TEXT)
def test_an_escaped_token_is_legal_in_subjects_and_keys(text: str) -> None:
    assert re.fullmatch(r"[-/_=A-Za-z0-9]+", escape_token(text))


@given(TEXT, TEXT)
def test_different_texts_have_different_tokens(one: str, other: str) -> None:
    assert (escape_token(one) == escape_token(other)) == (one == other)


@pytest.mark.parametrize(
    ("text", "token"), [("", "=-"), ("a.b", "a=2Eb"), ("=-", "=3D-"), ("x*>", "x=2A=3E"), ("é", "=C3=A9")]
)
def test_tokens_are_as_documented(text: str, token: str) -> None:
    assert escape_token(text) == token


@pytest.mark.parametrize("token", ["=FF", "=C3", "a=80"])
def test_a_token_that_is_no_utf8_is_refused(token: str) -> None:
    with pytest.raises(DecodeError):
        unescape_token(token)


@given(st.builds(ObjectRef, TEXT, TEXT, TEXT, TEXT, TEXT))
def test_a_subject_names_its_object(ref: ObjectRef) -> None:
    assert parse_delta_subject(delta_subject(ref)) == ref


@pytest.mark.parametrize(
    "subject",
    [
        "",
        "headgate.delta",
        "headgate.delta.a.b.c.d",
        "headgate.delta.a.b.c.d.e.f",
        "headgate.deltas.a.b.c.d.e",
        "x.a.b.c.d.e",
        "headgate.delta.a.b.c.d.=FF",
        "headgate.delta.=FF.b.c.d.e",
        "headgate.delta..b.c.d",
        "headgate.delta_a.b.c.d.e",
    ],
)
def test_other_subjects_are_refused(subject: str) -> None:
    with pytest.raises(DecodeError):
        parse_delta_subject(subject)


def test_an_empty_namespace_has_a_token_of_its_own() -> None:
    ref = ObjectRef("c1", "networking.k8s.io", "ingressclasses", "", "nginx")
    assert delta_subject(ref) == "headgate.delta.c1.networking=2Ek8s=2Eio.ingressclasses.=-.nginx"


def test_markers_and_announcements_have_subjects_of_their_own() -> None:
    assert sync_subject("c.1", "", "services") == "headgate.synced.c=2E1.=-.services"
    assert cluster_subject("c.1") == "headgate.cluster.c=2E1"


def test_a_delta_of_trusted_values_is_one_like_any_other() -> None:
    trusted = Delta.trusted(
        ref=ObjectRef("c1", "", "services", "default", "web"),
        operation=Operation.APPLY,
        uid="u",
        resource_version="7",
        observed_at=NOW,
        object={"a": 1},
        digest="d",
        author=None,
        traceparent=None,
        sequence=3,
    )
    built = make_delta(object={"a": 1}, digest="d", sequence=3)
    assert trusted == built
    assert trusted.model_dump_json() == built.model_dump_json()
    assert trusted.model_copy(update={"uid": "v"}) == built.model_copy(update={"uid": "v"}) != trusted
    assert trusted.model_fields_set == set(Delta.model_fields)
    with pytest.raises(ValidationError, match="frozen"):
        trusted.uid = "v"  # type: ignore[misc]


def make_delta(**changes: object) -> Delta:
    fields: dict[str, object] = {
        "ref": ObjectRef("c1", "", "services", "default", "web"),
        "operation": "apply",
        "uid": "u",
        "resource_version": "7",
        "observed_at": datetime(2026, 3, 1, tzinfo=UTC),
    }
    return Delta.model_validate(fields | changes)


def test_a_message_id_tells_operation_and_version_apart() -> None:
    ids = {make_delta(**change).message_id for change in ({}, {"operation": "delete"}, {"resource_version": "8"})}
    assert len(ids) == 3
    assert make_delta().message_id == "c1/u/7/apply"


def test_a_delta_is_frozen_and_knows_its_fields() -> None:
    delta = make_delta()
    assert delta.operation is Operation.APPLY
    with pytest.raises(ValidationError):
        delta.uid = "other"  # type: ignore[misc]
    with pytest.raises(ValidationError):
        make_delta(colour="red")


def test_what_a_later_release_says_of_a_cluster_besides_hides_nothing() -> None:
    kind = KindName(group="", resource="services")
    announcement = ClusterAnnouncement(cluster="a", source="kubernetes", instance="w", kinds=(kind,), announced_at=NOW)
    said = announcement.model_dump(mode="json") | {"mood": "calm"}
    said["kinds"][0]["scope"] = "namespaced"
    assert ClusterAnnouncement.model_validate_json(json.dumps(said)) == announcement
    marker = SyncMarker(cluster="a", kind=kind, at=NOW)
    assert SyncMarker.model_validate_json(json.dumps(marker.model_dump(mode="json") | {"count": 3})) == marker
