"""Deltas as messages, without a server."""

import json
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.common.deltas import (
    MAX_DEPTH,
    Author,
    ClusterAnnouncement,
    Delta,
    EncodedDelta,
    KindName,
    Operation,
    SyncMarker,
    SyncState,
    as_delta,
)
from headgate.common.errors import DecodeError
from headgate.common.resources import ObjectRef
from headgate.common.stores import LoggedObject
from headgate.common.stores.nats.encoding import (
    decode_delta,
    decode_last_good,
    decode_message,
    decode_state,
    encode_announcement,
    encode_delta,
    encode_marker,
)
from headgate.common.stores.nats.jetstream import Outgoing

NOW = datetime(2026, 3, 1, 12, 0, 0, 250, tzinfo=timezone(timedelta(hours=2)))
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def decode(message: Outgoing, sequence: int = 0) -> Any:
    return decode_message(message.subject, sequence, message.headers, message.payload)


@given(
    ref=st.builds(ObjectRef, *[st.text(max_size=12)] * 5),
    uid=st.text(max_size=12),
    resource_version=st.text(max_size=12),
    body=st.none() | st.dictionaries(st.text(), JSON, max_size=4),
    author=st.none() | st.builds(Author, st.text(min_size=1, max_size=12), st.none() | st.just(NOW)),
)
def test_any_delta_survives_the_way_through_a_message(
    ref: ObjectRef, uid: str, resource_version: str, body: dict[str, Any] | None, author: Author | None
) -> None:
    delta = Delta(
        ref=ref,
        operation=Operation.DELETE if body is None else Operation.APPLY,
        uid=uid,
        resource_version=resource_version,
        observed_at=NOW,
        object=body,
        digest="" if body is None else "0a1b",
        author=author,
        traceparent=f"00-{'a' * 32}-{'b' * 16}-01",
    )
    assert decode(encode_delta(delta), 9) == delta.model_copy(update={"sequence": 9})


def delta(**changes: Any) -> Delta:
    ref = ObjectRef("c1", "", "services", "default", "web")
    fields = {"ref": ref, "operation": "apply", "uid": "u.1", "resource_version": "7", "observed_at": NOW, "object": {}}
    return Delta.model_validate(fields | changes)


def test_headers_alone_tell_the_state() -> None:
    message = encode_delta(delta(operation="delete", object=None))
    assert decode_state(3, message.headers) == LoggedObject("u.1", "7", is_deleted=True, sequence=3)


def test_headers_alone_tell_the_content_apart() -> None:
    assert decode_state(3, encode_delta(delta(digest="0a1b")).headers).digest == "0a1b"
    assert decode_state(3, encode_delta(delta()).headers).digest == ""


def test_the_expected_sequence_is_part_of_the_message_id() -> None:
    assert encode_delta(delta()).headers["Nats-Msg-Id"] == "c1/u.1/7/apply"
    guarded = encode_delta(delta(), expected_last=0).headers
    assert guarded["Nats-Msg-Id"] == "c1/u.1/7/apply/after/0"
    assert guarded["Nats-Expected-Last-Subject-Sequence"] == "0"


@pytest.mark.parametrize(
    "change",
    [
        {"Headgate-Uid": None},
        {"Headgate-Operation": "explode"},
        {"Headgate-Observed-At": "yesterday"},
        {"Headgate-Observed-At": "2026-03-01T12:00:00"},
        {"Headgate-Author": "me", "Headgate-Authored-At": "2026-03-01T12:00:00"},
        {"Headgate-Resource-Version": "=FF"},
    ],
)
def test_headers_that_are_not_ours_are_refused(change: dict[str, str | None]) -> None:
    message = encode_delta(delta())
    headers = {key: value for key, value in ({**message.headers, **change}).items() if value is not None}
    with pytest.raises(DecodeError, match="message 5"):
        decode_delta(message.subject, 5, headers, message.payload)


DEEP = b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"


@pytest.mark.parametrize("body", [b"{", b"[]", b"\xff", b'"text"', DEEP], ids=["cut", "list", "bytes", "text", "deep"])
def test_a_body_that_is_no_object_is_refused(body: bytes) -> None:
    message = encode_delta(delta())
    with pytest.raises(DecodeError):
        decode_delta(message.subject, 5, message.headers, body)


@pytest.mark.parametrize(("depth", "is_taken"), [(MAX_DEPTH, True), (MAX_DEPTH + 1, False)])
def test_an_object_has_a_depth_that_everybody_can_follow(depth: int, is_taken: bool) -> None:
    message, lists = encode_delta(delta()), depth - 1
    body = b'{"a":' + b"[" * lists + b'"{["' + b"]" * lists + b"}"
    if is_taken:
        assert decode_delta(message.subject, 5, message.headers, body).object
        return
    with pytest.raises(DecodeError, match="nested deeper than 100"):
        decode_delta(message.subject, 5, message.headers, body)


def test_state_without_our_headers_is_refused() -> None:
    with pytest.raises(DecodeError):
        decode_state(1, {})


def test_announcements_and_markers_survive_with_their_sequence() -> None:
    kind = KindName(group="g", resource="things")
    announcement = ClusterAnnouncement(cluster="c", source="manifests", instance="i", kinds=(kind,), announced_at=NOW)
    marker = SyncMarker(cluster="c", kind=kind, state=SyncState.FORBIDDEN, message="no", at=NOW)
    assert decode(encode_announcement(announcement), 1) == announcement.model_copy(update={"sequence": 1})
    assert decode(encode_marker(marker), 2) == marker.model_copy(update={"sequence": 2})


@pytest.mark.parametrize("subject", ["headgate.synced.c.=-.s", "headgate.cluster.c", "headgate.other.x"])
def test_what_cannot_be_read_is_a_decode_error(subject: str) -> None:
    with pytest.raises(DecodeError):
        decode_message(subject, 1, {}, b"{}")


@pytest.mark.parametrize("body", [b'{"a":[1.5,"x"]}', b""])
def test_a_delta_whose_object_is_encoded_says_the_same_as_one_whose_object_is_not(body: bytes) -> None:
    ref = ObjectRef("c1", "", "services", "ns", "a.b")
    operation = Operation.APPLY if body else Operation.DELETE
    encoded = EncodedDelta(ref, operation, "u/1", "7", NOW, body, "d1", Author("kubectl", NOW), "00-1-2-01")
    delta = Delta(
        ref=ref,
        operation=operation,
        uid="u/1",
        resource_version="7",
        observed_at=NOW,
        object=json.loads(body) if body else None,
        digest="d1",
        author=Author("kubectl", NOW),
        traceparent="00-1-2-01",
    )
    assert as_delta(encoded) == delta
    ours, theirs = encode_delta(encoded, 3), encode_delta(delta, 3)
    assert (ours.subject, ours.headers, ours.payload) == (theirs.subject, theirs.headers, theirs.payload)


def test_the_size_of_a_message_counts_its_headers() -> None:
    wire = "NATS/1.0\r\nkey: välue\r\n\r\n".encode()
    assert Outgoing("s", b"12345", {"key": "välue"}).size == len(wire) + 5


def announcement(**changes: Any) -> dict[str, Any]:
    said = ClusterAnnouncement(cluster="c", source="manifests", instance="i", kinds=(), announced_at=NOW)
    return said.model_dump(mode="json") | changes


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (announcement(cluster="other"), "speaks for headgate.cluster.other"),
        (announcement(announced_at="2026-03-01T12:00:00"), "announced_at Input should have timezone info"),
        (announcement(kinds="all"), "kinds Input should be a valid array"),
    ],
    ids=["other", "naive", "kinds"],
)
def test_an_announcement_that_is_damaged_or_speaks_for_another_cluster_is_refused_in_one_line(
    content: dict[str, Any], told: str
) -> None:
    with pytest.raises(DecodeError, match=f"^message 4 on headgate.cluster.c .*{told}") as caught:
        decode_message("headgate.cluster.c", 4, {}, json.dumps(content).encode())
    assert "\n" not in str(caught.value)


def test_a_marker_of_another_cluster_or_kind_is_refused() -> None:
    marker = encode_marker(SyncMarker(cluster="c", kind=KindName(group="g", resource="things"), at=NOW))
    for subject in ("headgate.synced.d.g.things", "headgate.synced.c.g.others"):
        with pytest.raises(DecodeError, match=r"speaks for headgate\.synced\.c\.g\.things"):
            decode_message(subject, 4, {}, marker.payload)


@pytest.mark.parametrize("body", [b"{", DEEP], ids=["cut", "deep"])
def test_a_record_that_cannot_be_read_is_refused(body: bytes) -> None:
    with pytest.raises(DecodeError, match="is not a record"):
        decode_last_good("headgate.lastgood.default.c1.=-.services.ns.web", 4, body)
