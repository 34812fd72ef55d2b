"""Recorded answers of a real API server, and lines cut anywhere."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.common.deltas import is_too_deep
from headgate.watcher.api import wire
from headgate.watcher.errors import (
    Absent,
    ApiStatusError,
    ApiUnreachable,
    Expired,
    Forbidden,
    Throttled,
    Unauthorized,
    WriteConflict,
)

RECORDED = Path(__file__).parents[3] / "fixtures" / "kubernetes"


def recorded(name: str) -> tuple[int, bytes, dict[str, Any]]:
    answer = json.loads((RECORDED / f"{name}.json").read_text())
    return answer["status"], answer["body"].encode(), answer["headers"]


@pytest.mark.parametrize(
    ("name", "error", "reason"),
    [
        ("crd-absent", Absent, ""),
        ("status-not-found", Absent, "NotFound"),
        ("forbidden", Forbidden, "Forbidden"),
        ("unauthorized", Unauthorized, "Unauthorized"),
        ("status-conflict", WriteConflict, "Conflict"),
        ("list-exact-expired", Expired, "Expired"),
        ("list-future", ApiStatusError, "Timeout"),
        ("watch-invalid-rv", ApiStatusError, ""),
        ("endpointslice-loopback", ApiStatusError, "Invalid"),
    ],
)
def test_a_recorded_refusal_is_the_error_that_it_says(name: str, error: type[ApiStatusError], reason: str) -> None:
    status, body, headers = recorded(name)
    found = wire.status_error(status, body, headers.get("Retry-After"))
    assert type(found) is error
    assert (found.status, found.reason) == (status, reason)
    assert found.message


def test_a_hint_to_wait_is_read_from_header_and_body() -> None:
    _, body, headers = recorded("list-future")
    assert wire.status_error(504, body, headers["Retry-After"]).retry_after_s == 1
    assert wire.status_error(504, body).retry_after_s == 1
    assert wire.status_error(429, b"busy", "7").retry_after_s == 7
    assert wire.status_error(429, b"busy", "Fri, 20 Nov 2026 15:00:00 GMT").retry_after_s is None
    assert wire.status_error(429, b"busy", "86400").retry_after_s == wire.LONGEST_RETRY_AFTER_S
    assert isinstance(wire.status_error(429, b"busy"), Throttled)


def test_a_recorded_list_has_items_and_a_version() -> None:
    page = wire.decode_list(recorded("list-page-1")[1])
    assert [item["metadata"]["name"] for item in page.items or ()] == ["web-0", "web-1"]
    assert page.metadata.resource_version == "229"
    assert page.metadata.continue_token
    assert wire.decode_list(recorded("list-empty")[1]).items == []


def test_a_recorded_watch_is_added_modified_deleted() -> None:
    events = [wire.decode_event(line) for line in wire.LineSplitter().feed(recorded("watch-added-modified-deleted")[1])]
    assert [event.type for event in events][:3] == ["MODIFIED", "ADDED", "DELETED"]
    assert [event.resource_version for event in events][:3] == ["230", "231", "232"]


def test_recorded_bookmarks_have_a_version_and_do_not_end_a_list() -> None:
    lines = wire.LineSplitter().feed(recorded("watch-bookmarks")[1])
    bookmarks = [event for line in lines if (event := wire.decode_event(line)).type == "BOOKMARK"]
    assert bookmarks
    assert all(event.resource_version and not event.ends_initial_events for event in bookmarks)


@pytest.mark.parametrize(("name", "error"), [("watch-expired", Expired), ("watchlist", ApiStatusError)])
def test_a_recorded_error_event_is_the_error_that_it_says(name: str, error: type[ApiStatusError]) -> None:
    (line,) = wire.LineSplitter().feed(recorded(name)[1])
    event = wire.decode_event(line)
    assert event.type == "ERROR"
    assert type(wire.event_error(event)) is error


def test_recorded_discovery_names_the_kinds() -> None:
    assert {"ingresses", "ingressclasses"} <= wire.decode_resources(recorded("api-groups")[1])


@pytest.mark.parametrize("levels", [9990, 50_000])
def test_an_object_as_deep_as_api_servers_take_hides_no_other(levels: int) -> None:
    deep = b"[" * levels + b'"]}"' + b"]" * levels
    page = wire.decode_list(b'{"metadata":{},"items":[{"a":' + deep + b',"c":"[{\\""},{"b":' + deep + b'},{"d":1}]}')
    first, second, third = page.items or ()
    assert first["c"] == '[{"'
    assert third == {"d": 1}
    assert is_too_deep(first)
    assert is_too_deep(second)
    assert is_too_deep(wire.decode_event(b'{"type":"ADDED","object":{"a":' + deep + b"}}").object)


@pytest.mark.parametrize("end", [b"", b"]" * 4999, b"]" * 5000])
def test_a_deep_event_that_is_cut_off_is_none(end: bytes) -> None:
    with pytest.raises(ApiUnreachable, match="the answer is not a watch event"):
        wire.decode_event(b'{"type":"ADDED","object":{"a":' + b"[" * 5000 + end)


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b"<html>", b'{"metadata":{},"items":{}}', b'{"metadata":{},"i'])
def test_what_is_no_list_is_no_answer(body: bytes) -> None:
    with pytest.raises(ApiUnreachable, match="the answer is not a list"):
        wire.decode_list(body)


@given(st.lists(st.binary().filter(lambda line: b"\n" not in line)), st.lists(st.integers(1, 9)))
def test_lines_are_the_same_however_they_are_cut(lines: list[bytes], cuts: list[int]) -> None:
    content = b"".join(line + b"\n" for line in lines)
    splitter = wire.LineSplitter()
    found = []
    for size in [*cuts, len(content)]:
        found += list(splitter.feed(content[:size]))
        content = content[size:]
    assert found == [line for line in lines if line.strip()]


def test_a_line_that_does_not_end_is_given_up() -> None:
    splitter = wire.LineSplitter()
    megabyte = b"x" * (1 << 20)
    for _ in range(64):
        assert list(splitter.feed(megabyte)) == []
    with pytest.raises(ApiUnreachable, match="longer than 64 MiB"):
        list(splitter.feed(megabyte))
