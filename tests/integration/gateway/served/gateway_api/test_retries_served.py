"""Retries of HTTPRoutes from manifests to the wire, within the time that a request and each attempt have."""

import asyncio
from typing import Any

import pytest

from fakes.gateway.proxied import Conversation
from fakes.translator.applied import World, world
from fakes.translator.deltas import endpoint_slice
from fakes.translator.gateway_api import gateway, gateway_class, route, to
from fakes.virtual_time import in_virtual_time


def installed(made: World, *objects: Any) -> World:
    made.proxy.apply(gateway_class(), gateway(), *objects)
    return made


class Failing:
    """A server that answers with a status so many times, and then well."""

    def __init__(self, status: int, times: int) -> None:
        self._status, self._left = status, times

    async def __call__(self, conversation: Conversation) -> None:
        while True:
            await conversation.request()
            self._left -= 1
            status = self._status if self._left >= 0 else 200
            await conversation.send(b"HTTP/1.1 %d X\r\nContent-Length: 0\r\n\r\n" % status)


@pytest.mark.parametrize(
    ("retry", "method", "status"),
    [
        ({"codes": [503], "attempts": 3}, "GET", 200),
        ({"codes": [503], "attempts": 1}, "GET", 503),
        ({"codes": [500], "attempts": 3}, "GET", 503),
        ({"codes": [503], "attempts": 3}, "POST", 503),
        ({"attempts": 3}, "GET", 503),
    ],
)
async def test_a_request_is_sent_again_after_the_statuses_of_its_rule(retry: Any, method: str, status: int) -> None:
    async with world(failing=Failing(503, 2)) as made:
        installed(made, route(to("failing", retry=retry)))
        assert await made.proxy.status(method=method) == status


class Hesitating:
    """A server that answers with 503 after some time, so many times, and then well."""

    def __init__(self, times: int, wait_s: float) -> None:
        self._left, self._wait_s = times, wait_s

    async def __call__(self, conversation: Conversation) -> None:
        while True:
            await conversation.request()
            self._left -= 1
            await asyncio.sleep(self._wait_s if self._left >= 0 else 0)
            status = 503 if self._left >= 0 else 200
            await conversation.send(b"HTTP/1.1 %d X\r\nContent-Length: 0\r\n\r\n" % status)


@pytest.mark.parametrize(
    ("timeouts", "wait_s", "status"),
    [
        ({"request": "5s"}, 0.0, 200),
        ({"request": "500ms"}, 0.9, 504),
        ({"backendRequest": "300ms"}, 0.2, 200),
        ({"backendRequest": "50ms"}, 2.0, 504),
    ],
)
async def test_a_request_is_sent_again_within_the_time_that_it_and_each_attempt_have(
    timeouts: Any, wait_s: float, status: int
) -> None:
    async with world(hesitating=Hesitating(2, wait_s)) as made:
        installed(made, route(to("hesitating", timeouts=timeouts, retry={"codes": [503], "attempts": 3})))
        assert await made.proxy.status() == status


@pytest.mark.parametrize(("wait_s", "attempts"), [(0.2, 3), (0.3, 2), (0.9, 1)])
@in_virtual_time
async def test_the_time_of_a_request_ends_all_of_its_attempts_precisely(wait_s: float, attempts: int) -> None:
    async with world(hesitating=Hesitating(9, wait_s)) as made:
        rule = to("hesitating", timeouts={"request": "500ms"}, retry={"codes": [503], "attempts": 8})
        installed(made, route(rule))
        loop = asyncio.get_running_loop()
        began = loop.time()
        assert await made.proxy.status() == 504
        assert 0.5 <= loop.time() - began < 0.55
        assert len(made.servers["hesitating"].heads) == attempts


async def test_a_request_is_sent_again_after_a_connection_that_fails() -> None:
    async def closing(conversation: Conversation) -> None:
        await conversation.request()

    async with world("web", closing=closing) as made:
        both = endpoint_slice("web", "127.0.0.1", port=made.port("closing"))
        both["metadata"]["name"] = "web-closing"
        installed(made, both, route(to("web", retry={"attempts": 2})))
        assert {(await made.proxy.get()).body for _ in range(6)} == {b"web"}
        assert made.servers["closing"].heads
