"""Deltas as messages of the log.

The subject names the object, headers say everything about the change, the body is the object itself in JSON (empty
for a deletion): so a reader that only wants to know what is there reads headers alone.
"""

import logging
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache

import msgspec
from pydantic import ValidationError

from headgate.common.deltas import (
    CLUSTER_PREFIX,
    DELTA_PREFIX,
    LAST_GOOD_PREFIX,
    MAX_DEPTH,
    SYNC_PREFIX,
    AnyDelta,
    Author,
    ClusterAnnouncement,
    Delta,
    LastGood,
    LogMessage,
    Operation,
    SyncMarker,
    cluster_subject,
    delta_subject,
    escape_token,
    is_too_deep,
    last_good_subject,
    parse_delta_subject,
    parse_last_good_subject,
    sync_subject,
    unescape_token,
)
from headgate.common.errors import DecodeError
from headgate.common.service.telemetry import TRACEPARENT
from headgate.common.stores import TOMBSTONE_AGE_S, LoggedObject
from headgate.common.stores.nats.jetstream import EXPECTED_LAST, MESSAGE_ID, Outgoing

_log = logging.getLogger(__name__)

_UID, _RESOURCE_VERSION = "Headgate-Uid", "Headgate-Resource-Version"
_OPERATION, _OBSERVED_AT = "Headgate-Operation", "Headgate-Observed-At"
_DIGEST = "Headgate-Digest"
_AUTHOR, _AUTHORED_AT = "Headgate-Author", "Headgate-Authored-At"
_TTL = "Nats-TTL"
_OPERATIONS: Mapping[str, Operation] = {operation.value: operation for operation in Operation}
_decode_object = msgspec.json.Decoder(dict[str, object]).decode


def encode_delta(delta: AnyDelta, expected_last: int | None = None, again_after: int | None = None) -> Outgoing:
    """Encode a delta.

    Args:
        delta: what to say.
        expected_last: sequence that the object's last message must have. It becomes part of the message id: a writer
            that knows the object's last delta means to follow that one, even with content that was there before.
        again_after: like `expected_last`, for a repetition that must not count as one.
    """
    after = expected_last if again_after is None else again_after
    headers = {
        MESSAGE_ID: delta.message_id if after is None else f"{delta.message_id}/after/{after}",
        _UID: escape_token(delta.uid),
        _RESOURCE_VERSION: escape_token(delta.resource_version),
        _OPERATION: delta.operation.value,
        _OBSERVED_AT: _encode_moment(delta.observed_at),
    }
    if after is not None:
        headers[EXPECTED_LAST] = str(after)
    if delta.digest:
        headers[_DIGEST] = delta.digest
    if delta.author:
        headers[_AUTHOR] = escape_token(delta.author.name)
        if delta.author.at:
            headers[_AUTHORED_AT] = delta.author.at.isoformat()
    if delta.traceparent:
        headers[TRACEPARENT] = delta.traceparent
    return Outgoing(delta_subject(delta.ref), delta.body, headers)


@lru_cache(maxsize=1024)
def _encode_moment(moment: datetime) -> str:
    """Write down when a change was seen; of a list, some hundred objects are seen at one moment."""
    return moment.isoformat()


def decode_delta(subject: str, sequence: int, headers: Mapping[str, str], data: bytes) -> Delta:
    """Decode a delta.

    Raises:
        DecodeError: not what `encode_delta` makes.
    """
    try:
        # Built without validation: each field was just made by hand, and a log of 300,000 objects is read at start.
        return Delta.trusted(
            ref=parse_delta_subject(subject),
            operation=_OPERATIONS[headers[_OPERATION]],
            uid=unescape_token(headers[_UID]),
            resource_version=unescape_token(headers[_RESOURCE_VERSION]),
            observed_at=_decode_moment(headers[_OBSERVED_AT]),
            object=_decode_body(data) if data else None,
            digest=headers.get(_DIGEST, ""),
            author=_decode_author(headers),
            sequence=sequence,
            traceparent=headers.get(TRACEPARENT),
        )
    except (KeyError, ValueError, DecodeError, RecursionError) as error:
        raise DecodeError(f"message {sequence} on {subject} is not a delta: {error!r}") from error


def _decode_author(headers: Mapping[str, str]) -> Author | None:
    name, at = headers.get(_AUTHOR), headers.get(_AUTHORED_AT)
    if not name:
        return None
    return Author(unescape_token(name), _decode_moment(at)) if at else _decode_undated(name)


@lru_cache(maxsize=1024)
def _decode_undated(name: str) -> Author:
    """Return the author of a whole folder or file, of which thousands of objects are."""
    return Author(unescape_token(name))


def _decode_body(data: bytes) -> dict[str, object]:
    body = _decode_object(data)
    if is_too_deep(body, data):
        raise ValueError(f"nested deeper than {MAX_DEPTH}")
    return body


def _decode_moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")  # and could be compared with no other
    return moment


def decode_state(sequence: int, headers: Mapping[str, str]) -> LoggedObject:
    """Decode what the headers of a delta say.

    Raises:
        DecodeError: not those of a delta.
    """
    try:
        return LoggedObject(
            uid=unescape_token(headers[_UID]),
            resource_version=unescape_token(headers[_RESOURCE_VERSION]),
            is_deleted=_OPERATIONS[headers[_OPERATION]] is Operation.DELETE,
            sequence=sequence,
            digest=headers.get(_DIGEST, ""),
        )
    except (KeyError, DecodeError) as error:
        raise DecodeError(f"message {sequence} has not the headers of a delta: {error!r}") from error


def encode_announcement(announcement: ClusterAnnouncement) -> Outgoing:
    """Encode a cluster's announcement."""
    return Outgoing(cluster_subject(announcement.cluster), announcement.model_dump_json(exclude={"sequence"}).encode())


def encode_marker(marker: SyncMarker) -> Outgoing:
    """Encode the marker of a complete list."""
    subject = sync_subject(marker.cluster, marker.kind.group, marker.kind.resource)
    return Outgoing(subject, marker.model_dump_json(exclude={"sequence"}).encode())


def encode_last_good(record: LastGood) -> Outgoing:
    """Encode a record."""
    good = record.good.sequence if record.good else 0
    headers = {MESSAGE_ID: f"{record.table}/{record.ref}/{record.refused}/{good}"}
    if not record.refused:
        # No message id: what is said again after something else is no repetition. It goes by itself later.
        headers = {_TTL: f"{TOMBSTONE_AGE_S:.0f}s"}
    payload = msgspec.json.encode(record.model_dump(exclude={"table", "ref", "sequence"}))
    return Outgoing(last_good_subject(record.ref, record.table), payload, headers)


def decode_last_good(subject: str, sequence: int, data: bytes) -> LastGood:
    """Decode a record.

    Raises:
        DecodeError: not what `encode_last_good` makes.
    """
    try:
        content = _decode_object(data)
        table, ref = parse_last_good_subject(subject)
        return LastGood.model_validate({**content, "table": table, "ref": ref, "sequence": sequence})
    except (ValueError, DecodeError, RecursionError) as error:
        raise DecodeError(f"message {sequence} on {subject} is not a record: {error}") from error


def decode_message(subject: str, sequence: int, headers: Mapping[str, str], data: bytes) -> LogMessage:
    """Decode any message of the log.

    Raises:
        DecodeError: of no kind that we know, or damaged.
    """
    if subject.startswith(DELTA_PREFIX):
        return decode_delta(subject, sequence, headers, data)
    if subject.startswith(LAST_GOOD_PREFIX):
        return decode_last_good(subject, sequence, data)
    if not subject.startswith((SYNC_PREFIX, CLUSTER_PREFIX)):
        raise DecodeError(f"message {sequence} on {subject} is of an unknown kind")
    said: SyncMarker | ClusterAnnouncement
    try:
        if subject.startswith(SYNC_PREFIX):
            said = SyncMarker.model_validate_json(data)
            own_subject = sync_subject(said.cluster, said.kind.group, said.kind.resource)
        else:
            said = ClusterAnnouncement.model_validate_json(data)
            own_subject = cluster_subject(said.cluster)
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, wrong["loc"]))
        raise DecodeError(f"message {sequence} on {subject} cannot be read: {field} {wrong['msg']}") from error
    # A right to speak for one cluster is none to speak for another.
    if subject != own_subject:
        raise DecodeError(f"message {sequence} on {subject} speaks for {own_subject}")
    return said.model_copy(update={"sequence": sequence})


def tell_unreadable(error: DecodeError) -> None:
    """Log that a message is passed over."""
    _log.error("a message of the log cannot be read", extra={"reason": str(error)})
