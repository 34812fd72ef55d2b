"""What routes may ask beyond the plain way: retries, limits, whole bodies, a time for the whole request."""

import asyncio
from collections.abc import Collection

import pytest

from fakes.gateway.proxied import OK, Conversation, Script, Target, answering, proxied
from fakes.virtual_time import in_virtual_time
from fakes.waiting import until, until_still
from headgate.common.traffic import Attempt
from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.endpoint_pool import EndpointPool
from headgate.gateway.proxy.policies import RetryPolicy, RoutePolicies
from headgate.gateway.proxy.request_source import RequestSource
from headgate.gateway.proxy.seam import NEEDS_BODY, NeedsBody

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody"
UNAVAILABLE = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy"


async def hang_up(conversation: Conversation) -> None:
    await conversation.request()


async def stay_silent(conversation: Conversation) -> None:
    await conversation.request()
    await asyncio.sleep(30)


def retrying(**asked: object) -> RoutePolicies:
    policies = RoutePolicies()
    policies.retries = RetryPolicy(**asked)  # type: ignore[arg-type]
    return policies


async def test_what_is_known_of_a_request_stays_known_when_its_lines_change() -> None:
    known: list[tuple[bytes | None, bytes, bytes | None]] = []
    async with proxied() as proxy:

        def match(host: bytes, path: bytes, source: RequestSource) -> Target | NeedsBody:
            return proxy.target if source.facts().body is not None else NEEDS_BODY

        class Looking(Target):
            def choose(self, tried: Collection[EndpointPool], source: RequestSource) -> EndpointPool | None:
                facts = source.facts()
                known.append((facts.body, facts.client, facts.header(b"x-scheme")))
                return super().choose(tried, source)

        proxy.router.match = match  # type: ignore[method-assign]
        proxy.target = Looking(proxy.target.pools, policies=RoutePolicies(nginx_headers=True))
        client = await proxy.connect()
        await client.send(POST)
        assert (await client.answer())[0][9:12] == b"200"
    assert known == [(b"body", b"127.0.0.1", b"http")]


async def first_status(script: Script, request: bytes, policies: RoutePolicies | None) -> tuple[bytes, int]:
    """Status of a request of which the first endpoint follows a script and the second answers; and who was asked."""
    async with proxied(script, answering(OK)) as proxy:
        proxy.target.policies = policies
        client = await proxy.connect()
        await client.send(request)
        head, _ = await client.answer()
        return head[9:12], sum(len(origin.heads) for origin in proxy.origins)


@pytest.mark.parametrize(
    ("script", "request_bytes", "policies", "expected"),
    [
        (hang_up, GET, None, (b"200", 2)),
        (hang_up, POST, None, (b"502", 1)),
        (hang_up, POST, retrying(unsafe=True), (b"200", 2)),
        (hang_up, GET, retrying(attempts=0), (b"502", 1)),
        (hang_up, GET, retrying(reasons=frozenset({"connect"})), (b"502", 1)),
        (stay_silent, GET, retrying(reasons=frozenset({"timeout"}), per_try_s=0.2), (b"200", 2)),
        (stay_silent, GET, retrying(per_try_s=0.2), (b"504", 1)),
        (stay_silent, POST, retrying(reasons=frozenset({"timeout"}), per_try_s=0.2), (b"504", 1)),
        (answering(UNAVAILABLE), GET, None, (b"503", 1)),
        (answering(UNAVAILABLE), GET, retrying(statuses=frozenset({503})), (b"200", 2)),
        (answering(UNAVAILABLE), GET, retrying(statuses=frozenset({502})), (b"503", 1)),
        (answering(UNAVAILABLE), POST, retrying(statuses=frozenset({503})), (b"503", 1)),
        (answering(UNAVAILABLE), POST, retrying(statuses=frozenset({503}), unsafe=True), (b"200", 2)),
    ],
)
@in_virtual_time
async def test_a_failed_attempt_is_repeated_only_where_that_is_allowed_and_safe(
    script: Script, request_bytes: bytes, policies: RoutePolicies | None, expected: tuple[bytes, int]
) -> None:
    assert await first_status(script, request_bytes, policies) == expected


@pytest.mark.parametrize(
    ("script", "policies", "status", "outcomes"),
    [
        (hang_up, retrying(), 200, ["closed"]),
        (hang_up, retrying(attempts=0), 502, ["closed"]),
        (stay_silent, retrying(reasons=frozenset({"timeout"}), per_try_s=0.2), 200, ["timeout"]),
        (answering(UNAVAILABLE), retrying(statuses=frozenset({503})), 200, ["503"]),
        (answering(UNAVAILABLE), retrying(attempts=0), 503, []),
        (answering(b"nonsense\r\n\r\n"), retrying(attempts=0), 502, ["invalid"]),
    ],
)
@in_virtual_time
async def test_attempts_that_brought_no_answer_are_noted(
    script: Script, policies: RoutePolicies, status: int, outcomes: list[str]
) -> None:
    noted: list[Attempt] = []
    async with proxied(script, answering(OK)) as proxy:
        proxy.target.policies = policies
        proxy.server.context.stats.failures = lambda record, host: noted.extend(record[13].attempts or ())
        client = await proxy.connect()
        await client.send(GET)
        assert int((await client.answer())[0][9:12]) == status
        if status < 500:
            (record,) = proxy.log.records
            noted += record[13].attempts or ()
    assert [one.outcome for one in noted] == outcomes
    assert {one.endpoint for one in noted} <= {pool.label for pool in proxy.target.pools}
    assert [one.after_s for one in noted] == [pytest.approx(0, abs=3)] * len(outcomes)


async def test_no_more_attempts_than_the_route_allows() -> None:
    async with proxied(hang_up, hang_up, hang_up, answering(OK)) as proxy:
        proxy.target.policies = retrying(attempts=2)
        client = await proxy.connect()
        await client.send(GET)
        assert (await client.head()).startswith(b"HTTP/1.1 502 ")
        assert [len(origin.heads) for origin in proxy.origins] == [1, 1, 1, 0]
        assert proxy.stats.retries == 2


@in_virtual_time
async def test_attempts_begin_within_the_time_that_the_route_allows() -> None:
    async with proxied(stay_silent, stay_silent, answering(OK)) as proxy:
        proxy.target.policies = retrying(attempts=5, reasons=frozenset({"timeout"}), per_try_s=0.3, total_s=0.1)
        client = await proxy.connect()
        await client.send(GET)
        assert (await client.head()).startswith(b"HTTP/1.1 504 ")
        assert len(proxy.origins[1].heads) == 0


async def test_an_answer_that_began_is_never_repeated() -> None:
    async def half(conversation: Conversation) -> None:
        await conversation.request()
        await conversation.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")

    async with proxied(half, answering(OK)) as proxy:
        proxy.target.policies = retrying(unsafe=True)
        assert (await proxy.talk(GET)).endswith(b"\r\n\r\nhalf")
        assert len(proxy.origins[1].heads) == 0


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (POST, b"200"),
        (POST.replace(b"4\r\n\r\nbody", b"5\r\n\r\nbody!"), b"413"),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbody!\r\n0\r\n\r\n", b"413"),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n", b"200"),
    ],
)
async def test_a_route_bounds_the_body(request_bytes: bytes, status: bytes) -> None:
    async with proxied(answering(OK)) as proxy:
        proxy.target.policies = RoutePolicies()
        proxy.target.policies.max_body = 4
        client = await proxy.connect()
        await client.send(request_bytes, bytewise=True)
        assert (await client.head())[9:12] == status


@in_virtual_time
async def test_a_body_that_is_held_back_reaches_the_upstream_whole_and_with_its_length() -> None:
    async with proxied(answering(OK)) as proxy:
        proxy.target.policies = RoutePolicies()
        proxy.target.policies.buffer_request = True
        client = await proxy.connect()
        await client.send(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
        await asyncio.sleep(0.05)
        assert proxy.origin.conversations == []
        await client.send(b"2\r\nde\r\n0\r\n\r\n")
        await client.answer()
        assert b"\r\nContent-Length: 5\r\n" in proxy.origin.heads[0]
        assert b"chunked" not in proxy.origin.heads[0]


@in_virtual_time
async def test_a_body_that_is_held_back_can_be_sent_again() -> None:
    bodies = []

    async def reading(conversation: Conversation) -> None:
        _, body = await conversation.request()
        bodies.append(body)
        if len(bodies) == 2:
            await conversation.send(OK)

    async with proxied(reading, reading) as proxy:
        proxy.target.policies = retrying(unsafe=True)
        proxy.target.policies.buffer_request = True
        client = await proxy.connect()
        await client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\nfirst")
        await asyncio.sleep(0.05)
        await client.send(b"end")
        await client.answer()
        assert bodies == [b"firstend"] * 2


async def test_a_body_longer_than_can_be_held_back_is_a_413() -> None:
    async with proxied(answering(OK), config=ProxyConfig(max_buffered=8)) as proxy:
        proxy.target.policies = RoutePolicies()
        proxy.target.policies.buffer_request = True
        client = await proxy.connect()
        await client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n", bytewise=False)
        await client.send(b"123456789", bytewise=True)
        assert (await client.head()).startswith(b"HTTP/1.1 413 ")


async def test_a_client_is_asked_for_a_body_that_is_held_back() -> None:
    async with proxied(answering(OK)) as proxy:
        proxy.target.policies = RoutePolicies()
        proxy.target.policies.buffer_request = True
        client = await proxy.connect()
        await client.send(POST.replace(b"\r\n\r\nbody", b"\r\nExpect: 100-continue\r\n\r\n"))
        assert await client.head() == b"HTTP/1.1 100 Continue\r\n\r\n"
        await client.send(b"body")
        assert (await client.answer())[0].startswith(b"HTTP/1.1 200 ")


async def test_a_router_that_needs_the_body_is_asked_again_with_it() -> None:
    async with proxied(answering(OK)) as proxy:
        match = proxy.router.match
        seen: list[bytes | None] = []

        class Choosy:
            version_label = "1.1"

            def match(self, host: bytes, path: bytes, source: object) -> object:
                seen.append(source.facts().body)  # type: ignore[attr-defined]
                return NEEDS_BODY if seen[-1] is None else match(host, path, source)  # type: ignore[arg-type]

        proxy.holder.router = Choosy()  # type: ignore[assignment]
        client = await proxy.connect()
        await client.send(POST.removesuffix(b"dy"))
        await client.send(b"dy")
        await client.answer()
        assert seen == [None, b"body"]


@pytest.mark.parametrize("trickles", [False, True])
@in_virtual_time
async def test_a_request_gets_the_time_that_its_route_gives_however_much_moves(trickles: bool) -> None:
    async def slow(conversation: Conversation) -> None:
        await conversation.request()
        if trickles:
            await conversation.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        while True:
            await asyncio.sleep(0.02)
            if trickles:
                await conversation.send(b".")

    async with proxied(slow) as proxy:
        proxy.target.policies = RoutePolicies()
        proxy.target.policies.request_s = 0.2
        client = await proxy.connect()
        await client.send(GET)
        answer = await client.rest() if trickles else await client.head()
        assert answer.startswith(b"HTTP/1.1 200 " if trickles else b"HTTP/1.1 504 ")
        assert proxy.log.records[0][-1] == "the request took longer than its route allows"


@pytest.mark.parametrize(
    ("policies", "ends_s"),
    [
        (RoutePolicies(request_s=0.001), 0.001),
        (RoutePolicies(request_s=0.5), 0.5),
        (RoutePolicies(request_s=1.234), 1.234),
        (retrying(per_try_s=0.3), 0.3),
        (retrying(attempts=1, reasons=frozenset({"timeout"}), per_try_s=0.2), 0.4),
        (RoutePolicies(request_s=0.25, retries=RetryPolicy(reasons=frozenset({"timeout"}), per_try_s=0.2)), 0.25),
    ],
)
@in_virtual_time
async def test_short_times_end_within_two_hundredths_of_a_second(policies: RoutePolicies, ends_s: float) -> None:
    async with proxied(stay_silent, stay_silent) as proxy:
        proxy.target.policies = policies
        client = await proxy.connect()
        began = asyncio.get_running_loop().time()
        await client.send(GET)
        assert (await client.head()).startswith(b"HTTP/1.1 504 ")
        assert 0 <= asyncio.get_running_loop().time() - began - ends_s < 0.03


@in_virtual_time
async def test_a_short_wait_for_the_upstream_ends_precisely_too() -> None:
    async with proxied(stay_silent, config=ProxyConfig(read_timeout_s=60)) as proxy:
        proxy.target.read_timeout_s = 1.0
        client = await proxy.connect()
        began = asyncio.get_running_loop().time()
        await client.send(GET)
        assert (await client.head()).startswith(b"HTTP/1.1 504 ")
        assert 0 <= asyncio.get_running_loop().time() - began - 1.0 < 0.03


@in_virtual_time
async def test_short_times_that_a_request_does_not_need_end_nothing() -> None:
    async with proxied(answering(OK)) as proxy:
        proxy.target.policies = RoutePolicies(request_s=0.5)
        client = await proxy.connect()
        for _ in range(3):
            await client.send(GET)
            assert (await client.answer())[0].startswith(b"HTTP/1.1 200 ")
            await asyncio.sleep(0.4)
        assert len(proxy.server.context.short_deadlines) == 0


@pytest.mark.parametrize(("request_s", "waiting"), [(None, 0), (60.0, 0), (4.0, 1)])
@in_virtual_time
async def test_only_requests_with_short_times_have_them_watched(request_s: float | None, waiting: int) -> None:
    async with proxied(stay_silent) as proxy:
        proxy.target.policies = RoutePolicies(request_s=request_s)
        client = await proxy.connect()
        await client.send(GET)
        await until(lambda: proxy.origin.heads)
        assert len(proxy.server.context.short_deadlines) == waiting
        client.writer.close()
        await until(lambda: not len(proxy.server.context.short_deadlines))


async def test_a_route_that_cannot_be_served_as_written_says_so() -> None:
    async with proxied(answering(OK)) as proxy:
        proxy.target.policies = RoutePolicies()
        proxy.target.policies.fault = "Ingress d/web: metadata.annotations: no such plugin"
        client = await proxy.connect()
        await client.send(GET)
        head, body = await client.answer()
        assert head.startswith(b"HTTP/1.1 500 ")
        assert b"no such plugin" in body
        assert proxy.origin.conversations == []


@pytest.mark.parametrize("kept", [0, 64 << 20])
async def test_an_answer_is_kept_for_a_slow_client_so_that_its_upstream_is_free(kept: int) -> None:
    size = 32 << 20
    sent = asyncio.Event()

    async def large(conversation: Conversation) -> None:
        await conversation.request()
        await conversation.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + b"a" * size)
        sent.set()
        await conversation.request()

    async with proxied(large) as proxy:
        proxy.target.policies = RoutePolicies()
        proxy.target.policies.buffer_response = kept
        client = await proxy.connect()
        client.writer.transport.pause_reading()
        await client.send(GET)
        if kept:
            await asyncio.wait_for(sent.wait(), 10)
            assert proxy.target.pools[0].idle_count == 1
        else:
            await until(lambda: bool(proxy.origin.heads))
            waiting = proxy.origin.conversations[0].writer.transport
            assert await until_still(waiting.get_write_buffer_size) > 0  # behind full buffers of the kernel
            assert not sent.is_set()
        client.writer.transport.resume_reading()
        await client.head()
        assert len(await client.exactly(size)) == size


async def test_a_client_that_still_reads_what_was_kept_for_it_is_not_idle() -> None:
    size = 24 << 20
    config = ProxyConfig(idle_timeout_s=0.8, body_timeout_s=0.8)
    async with proxied(
        answering(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + b"a" * size), config=config
    ) as proxy:
        proxy.target.policies = RoutePolicies()
        proxy.target.policies.buffer_response = 64 << 20
        client = await proxy.connect()
        await client.send(GET)
        await client.head()
        read = 0
        while read < size:
            read += len(await client.reader.read(1 << 20))
            await asyncio.sleep(0.01)  # slower than the kernel's buffers, in real time
        assert read == size
