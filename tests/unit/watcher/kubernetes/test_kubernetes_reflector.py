"""The reflector against the fake API server, in virtual time: what it reports, and how often it asks."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
from aiohttp import web

from fakes.kubernetes.api import FakeKubernetes
from fakes.kubernetes.following import Following
from fakes.kubernetes.objects import ingress
from fakes.virtual_time import in_virtual_time
from fakes.waiting import until
from headgate.common.resources import INGRESS
from headgate.watcher.sources import Listed
from headgate.watcher.sources.kubernetes.source import KubernetesSource


@asynccontextmanager
async def following(api: FakeKubernetes, tmp_path: Path) -> AsyncIterator[Following]:
    source = KubernetesSource(kubeconfig=api.write_kubeconfig(tmp_path / "config"), choices=[(INGRESS,)], rng=Random(7))
    async with Following(source) as seen:
        yield seen


async def seconds(count: float) -> None:
    await asyncio.sleep(count)


# Lists


@pytest.mark.parametrize("streams_lists", [False, True])
@in_virtual_time
async def test_a_list_and_then_every_change_is_reported(streams_lists: bool, tmp_path: Path) -> None:
    async with FakeKubernetes(streams_lists=streams_lists) as api:
        api.apply(ingress("a"))
        async with following(api, tmp_path) as seen:
            await seen.until(lambda: seen.names(INGRESS) == {"a"})
            api.apply(ingress("b"))
            await seen.until(lambda: seen.names(INGRESS) == {"a", "b"})
            api.apply(ingress("a", "other.test"))
            api.delete("ingresses", "b")
            await seen.until(lambda: seen.names(INGRESS) == {"a"})
            assert seen.state[INGRESS]["default", "a"]["spec"]["rules"][0]["host"] == "other.test"
            assert [type(event) for event in seen.log].count(Listed) == 1


@pytest.mark.parametrize("streams_lists", [False, True])
@in_virtual_time
async def test_every_object_says_what_it_is(streams_lists: bool, tmp_path: Path) -> None:
    async with FakeKubernetes(streams_lists=streams_lists) as api:
        api.apply(ingress("a"))
        async with following(api, tmp_path) as seen:
            await seen.until(lambda: bool(seen.log))
            (listed,) = seen.listed(INGRESS)
            assert [(item["apiVersion"], item["kind"]) for item in listed.objects] == [
                ("networking.k8s.io/v1", "Ingress")
            ]


@in_virtual_time
async def test_a_streaming_list_needs_no_other_list(tmp_path: Path) -> None:
    async with FakeKubernetes(streams_lists=True) as api:
        async with following(api, tmp_path) as seen:
            await seen.until(lambda: bool(seen.log))
        assert api.seen("list") == []
        assert len(api.seen("watch")) == 1


@pytest.mark.parametrize("code", [400, 404, 422, 500])
@in_virtual_time
async def test_a_refused_streaming_list_falls_back_to_pages_at_once(code: int, tmp_path: Path) -> None:
    async with FakeKubernetes(streams_lists=True) as api:
        api.apply(ingress("a"))
        api.faults.status(code, verb="watch")
        async with following(api, tmp_path) as seen:
            await seen.until(lambda: seen.names(INGRESS) == {"a"}, within_s=0.5)
        assert len(api.seen("list")) == 1


@in_virtual_time
async def test_a_server_that_ignores_streaming_lists_is_listed_after_ten_seconds(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        api.apply(ingress("a"))

        async def watch_plainly(request: web.Request) -> web.StreamResponse:
            answer = web.StreamResponse()
            await answer.prepare(request)
            await answer.write(json.dumps({"type": "ADDED", "object": ingress("old")}).encode() + b"\n")
            await asyncio.sleep(3600)
            return answer

        api.faults.add(watch_plainly, verb="watch")
        async with following(api, tmp_path) as seen:
            await seen.until(lambda: seen.names(INGRESS) == {"a"})
            assert 10 <= api.seen("list")[0].at <= 11


@in_virtual_time
async def test_half_of_a_streaming_list_is_not_reported(tmp_path: Path) -> None:
    async with FakeKubernetes(streams_lists=True) as api:
        api.apply(ingress("a"))
        api.apply(ingress("b"))
        half = json.dumps({"type": "ADDED", "object": ingress("a")}).encode() + b"\n"
        api.faults.reset(half, verb="watch")
        async with following(api, tmp_path) as seen:
            await seen.until(lambda: bool(seen.log))
            assert [len(listed.objects) for listed in seen.listed(INGRESS)] == [2]


@in_virtual_time
async def test_a_long_list_comes_in_pages_and_is_reported_once(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        for number in range(1201):
            api.apply(ingress(f"i{number}"))
        async with following(api, tmp_path) as seen:
            await seen.until(lambda: bool(seen.log))
            assert [len(listed.objects) for listed in seen.listed(INGRESS)] == [1201]
        assert [one.query.get("limit") for one in api.seen("list")] == ["500"] * 3


@in_virtual_time
async def test_an_expired_continue_token_leads_to_one_list_without_pages(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        api.expires_continue = True
        for number in range(600):
            api.apply(ingress(f"i{number}"))

        async def compact_meanwhile(request: web.Request) -> web.StreamResponse:
            api.apply(ingress("late"))
            api.compact()
            return await api.serve(request, api.requests[-1])

        async with following(api, tmp_path) as seen:
            api.faults.add(_pass_on(api), verb="list")
            api.faults.add(compact_meanwhile, verb="list")
            await seen.until(lambda: "late" in seen.names(INGRESS))
            assert len(seen.names(INGRESS)) == 601
        lists = api.seen("list")
        assert [("limit" in one.query, "continue" in one.query) for one in lists] == [
            (True, False),
            (True, True),
            (False, False),
        ]


# Watches


@in_virtual_time
async def test_bookmarks_keep_a_quiet_watch_alive(tmp_path: Path) -> None:
    async with FakeKubernetes() as api, following(api, tmp_path) as seen:
        await seen.until(lambda: bool(seen.log))
        await seconds(280)
        assert len(api.seen("watch")) == 2  # the first was the refused streaming list
        assert 300 <= int(api.seen("watch")[1].query["timeoutSeconds"]) <= 600


@in_virtual_time
async def test_a_watch_that_ends_in_time_goes_on_from_the_last_bookmark(tmp_path: Path) -> None:
    async with FakeKubernetes() as api, following(api, tmp_path) as seen:
        await seen.until(lambda: bool(seen.log))
        api.apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "another"}})
        await seconds(1300)
        watches = api.seen("watch")[1:]
        assert len(watches) in (3, 4, 5)
        assert watches[-1].query["resourceVersion"] > watches[0].query["resourceVersion"]
        assert len(api.seen("list")) == 1
        api.apply(ingress("a"))
        await seen.until(lambda: seen.names(INGRESS) == {"a"}, within_s=1)


@in_virtual_time
async def test_an_expired_watch_lists_again_and_tells_what_is_gone(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        api.apply(ingress("a"))
        api.apply(ingress("b"))
        async with following(api, tmp_path) as seen:
            await seen.until(lambda: seen.names(INGRESS) == {"a", "b"} and api.open_watches == 1)
            api.faults.status(503, verb="watch")
            api.break_watches("reset")
            await asyncio.sleep(0)
            api.delete("ingresses", "a")
            api.compact()
            await seen.until(lambda: seen.names(INGRESS) == {"b"})
            assert len(seen.listed(INGRESS)) == 2


@in_virtual_time
async def test_an_expired_version_as_a_status_lists_again(tmp_path: Path) -> None:
    async with FakeKubernetes() as api, following(api, tmp_path) as seen:
        await seen.until(lambda: api.open_watches == 1)
        api.faults.status(410, verb="watch")
        api.break_watches("end")
        await seen.until(lambda: len(seen.listed(INGRESS)) == 2)


@in_virtual_time
async def test_an_invalid_version_lists_again(tmp_path: Path) -> None:
    async with FakeKubernetes() as api, following(api, tmp_path) as seen:
        await seen.until(lambda: api.open_watches == 1)
        api.faults.status(500, verb="watch")
        api.break_watches("end")
        await seen.until(lambda: len(seen.listed(INGRESS)) == 2)


@in_virtual_time
async def test_a_store_that_was_restored_is_listed_after_the_silence(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        api.apply(ingress("a"))
        backup = api.backup()
        async with following(api, tmp_path) as seen:
            api.apply(ingress("b"))
            await seen.until(lambda: seen.names(INGRESS) == {"a", "b"} and api.open_watches == 1)
            api.break_watches("end")
            await until(lambda: api.open_watches == 0)
            api.restore(backup)
            restored_at = asyncio.get_running_loop().time()
            await seen.until(lambda: seen.names(INGRESS) == {"a"}, within_s=75)
            assert asyncio.get_running_loop().time() - restored_at >= 70


@in_virtual_time
async def test_a_dead_connection_is_left_after_seventy_seconds(tmp_path: Path) -> None:
    async with FakeKubernetes() as api, following(api, tmp_path) as seen:
        await seen.until(lambda: api.open_watches == 1)
        api.break_watches("silence")
        api.apply(ingress("a"))
        await seen.until(lambda: seen.names(INGRESS) == {"a"}, within_s=75)


@in_virtual_time
async def test_a_kind_without_bookmarks_as_nothing_happens_is_no_trouble(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As Kubernetes 1.34 with etcd 3.4 has it: for kinds of which it has seen no event since it started."""
    async with FakeKubernetes() as api:
        api.bookmarks_quiet_kinds = False
        async with following(api, tmp_path) as seen:
            await seen.until(lambda: len(seen.listed(INGRESS)) == 3, within_s=200)
    assert [one.getMessage() for one in caplog.records if one.levelname == "WARNING"] == []


@in_virtual_time
async def test_a_server_that_takes_requests_and_says_nothing_is_outwaited(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        api.faults.hang(verb="list")
        api.apply(ingress("a"))
        async with following(api, tmp_path) as seen:
            await seen.until(lambda: seen.names(INGRESS) == {"a"}, within_s=80)


@in_virtual_time
async def test_half_a_line_before_a_reset_loses_nothing(tmp_path: Path) -> None:
    async with FakeKubernetes() as api, following(api, tmp_path) as seen:
        await seen.until(lambda: api.open_watches == 1)
        api.break_watches("half")
        api.apply(ingress("a"))
        await seen.until(lambda: seen.names(INGRESS) == {"a"})


@in_virtual_time
async def test_an_object_of_more_than_a_megabyte_comes_through(tmp_path: Path) -> None:
    async with FakeKubernetes() as api, following(api, tmp_path) as seen:
        await seen.until(lambda: api.open_watches == 1)
        api.apply(ingress("large", annotations={"blob": "x" * 1_400_000}))
        await seen.until(lambda: seen.names(INGRESS) == {"large"})
        assert len(seen.state[INGRESS]["default", "large"]["metadata"]["annotations"]["blob"]) == 1_400_000


@pytest.mark.parametrize("line", [b"nonsense\n", b'{"type":"NEW","object":{}}\n', b'{"type":"ADDED"}\n'])
@in_virtual_time
async def test_a_line_that_is_no_event_leads_to_a_new_list(line: bytes, tmp_path: Path) -> None:
    async with FakeKubernetes() as api, following(api, tmp_path) as seen:
        await seen.until(lambda: api.open_watches == 1)
        api.faults.body(line, verb="watch")
        api.break_watches("end")
        await seen.until(lambda: len(seen.listed(INGRESS)) == 2)


@in_virtual_time
async def test_a_list_is_forced_within_half_a_day(tmp_path: Path) -> None:
    async with FakeKubernetes() as api, following(api, tmp_path) as seen:
        await seen.until(lambda: api.open_watches == 1)
        await seconds(13 * 3600)
        assert 2 <= len(seen.listed(INGRESS)) <= 3


@in_virtual_time
async def test_a_server_that_was_away_is_listed_anew(tmp_path: Path) -> None:
    async with FakeKubernetes() as api, following(api, tmp_path) as seen:
        await seen.until(lambda: api.open_watches == 1)
        await api.stop()
        await seconds(5)
        await api.start()
        await seen.until(lambda: len(seen.listed(INGRESS)) == 2, within_s=40)


# Patience: whatever the server says, it is not asked in a hot loop


@in_virtual_time
async def test_a_thousand_empty_answers_to_a_watch_make_no_hot_loop(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        api.faults.body(b"", verb="watch", times=None)
        async with following(api, tmp_path):
            await seconds(600)
        assert 15 <= len(api.requests) <= 160


@in_virtual_time
async def test_watches_that_end_at_once_do_not_list_each_time(tmp_path: Path) -> None:
    async with FakeKubernetes() as api, following(api, tmp_path) as seen:
        await seen.until(lambda: api.open_watches == 1)
        api.faults.body(b"", verb="watch", times=1000)
        api.break_watches("end")
        await seconds(600)
        assert len(api.seen("list")) == 1
        assert 15 <= len(api.seen("watch")) <= 80


@pytest.mark.parametrize("verb", ["discover", "list", "watch"])
@pytest.mark.parametrize("code", [401, 410, 429, 500, 503])
@in_virtual_time
async def test_an_error_for_ever_is_asked_about_ever_more_slowly(verb: str, code: int, tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        api.faults.status(code, verb=verb, times=None)
        async with following(api, tmp_path):
            await seconds(600)
        assert 15 <= len(api.requests) <= 200


@pytest.mark.parametrize("body", [b"", b"<html>busy</html>", b"[]", b'{"items":null}'])
@in_virtual_time
async def test_a_list_that_is_none_is_asked_for_again(body: bytes, tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        api.apply(ingress("a"))
        api.faults.body(body, verb="list", times=3)
        async with following(api, tmp_path) as seen:
            await seen.until(lambda: seen.names(INGRESS) == {"a"}, within_s=10)
            assert len(seen.listed(INGRESS)) == 1


@in_virtual_time
async def test_a_server_that_asks_for_patience_gets_it(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        api.faults.status(429, verb="list", retry_after=17)
        async with following(api, tmp_path) as seen:
            await seen.until(lambda: bool(seen.log), within_s=30)
        first, second = (one.at for one in api.seen("list"))
        assert 17 <= second - first <= 19


@in_virtual_time
async def test_nobody_puts_the_reflector_to_sleep_for_an_hour(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        api.faults.status(429, verb="list", retry_after=3600)
        async with following(api, tmp_path) as seen:
            await seen.until(lambda: bool(seen.log), within_s=130)


@in_virtual_time
async def test_an_unreachable_server_is_waited_for_and_the_log_says_what_to_check(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    api = FakeKubernetes()
    await api.start()
    await api.stop()
    async with following(api, tmp_path) as seen:
        await seconds(600)
        assert [record.levelname for record in caplog.records] == ["WARNING"] * len(caplog.records)
        assert 1 <= len(caplog.records) <= 11  # at most one a minute
        assert f"no answer from the API server {api.url}" in caplog.text
        assert "check that it runs" in caplog.text
        assert seen.source.heard_at is None
        await api.start()
        await seen.until(lambda: bool(seen.listed(INGRESS)), within_s=35)
        assert seen.source.heard_at is not None
    await api.stop()


def _pass_on(api: FakeKubernetes) -> Any:
    async def act(request: web.Request) -> web.StreamResponse:
        return await api.serve(request, api.requests[-1])

    return act
