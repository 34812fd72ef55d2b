"""Keep-alive, pipelining, interim answers, and refusals of our own."""

import asyncio

import pytest

from fakes.gateway.proxied import OK, Conversation, answering, proxied
from fakes.waiting import until, until_still
from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.http1.server import ClientConnection

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"

POST = b"POST / HTTP/1.1\r\nHost: a\r\n"

CLOSE = b"Connection: close\r\n\r\n"


async def test_connections_on_both_sides_are_kept() -> None:
    async with proxied() as proxy:
        client = await proxy.connect()
        for _ in range(3):
            await client.send(GET)
            assert b"Connection" not in (await client.answer())[0]
        assert len(proxy.origin.conversations) == 1


async def test_connection_to_an_upstream_is_shared_by_clients() -> None:
    async with proxied() as proxy:
        for _ in range(3):
            assert (await proxy.talk(b"GET / HTTP/1.1\r\nHost: a\r\n" + CLOSE)).endswith(b"ok")
        assert len(proxy.origin.conversations) == 1


async def test_http_1_0_client_is_kept_only_if_it_asks() -> None:
    async with proxied() as proxy:
        assert b"\r\nConnection: close\r\n" in await proxy.talk(b"GET / HTTP/1.0\r\nHost: a\r\n\r\n")
        client = await proxy.connect()
        for _ in range(2):
            await client.send(b"GET / HTTP/1.0\r\nHost: a\r\nConnection: Keep-Alive\r\n\r\n")
            assert b"\r\nConnection: keep-alive\r\n" in (await client.answer())[0]


async def test_connection_ends_after_its_number_of_requests() -> None:
    async with proxied(config=ProxyConfig(keep_alive_requests=2)) as proxy:
        answer = await proxy.talk(GET * 3)
        assert answer.count(b"HTTP/1.1 200 OK") == 2
        assert answer.count(b"Connection: close") == 1


async def test_connection_ends_behind_the_first_answer_when_it_is_old() -> None:
    async with proxied(config=ProxyConfig(keep_alive_time_s=0.3)) as proxy:
        client = await proxy.connect()
        await client.send(GET)
        assert b"Connection: close" not in (await client.answer())[0]
        async with asyncio.timeout(5):
            head = b""
            while b"Connection: close" not in head:
                await asyncio.sleep(0.1)
                await client.send(GET)
                head = (await client.answer())[0]
        assert await client.reader.read() == b""


@pytest.mark.parametrize("bytewise", [False, True], ids=["whole", "bytewise"])
async def test_pipelined_requests_are_answered_in_order(bytewise: bool) -> None:
    async def script(conversation: Conversation) -> None:
        while True:
            head, body = await conversation.request()
            path = head.split(b" ")[1]
            await conversation.send(
                b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(path + body), path + body)
            )

    async with proxied(script) as proxy:
        pipeline = b"".join(
            (b"GET /%d HTTP/1.1\r\nHost: a\r\n\r\n" % n)
            if n % 2
            else (b"POST /%d HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n-" % n)
            for n in range(60)
        )
        client = await proxy.connect()
        sending = asyncio.create_task(client.send(pipeline, bytewise=bytewise))
        bodies = [(await client.answer())[1] for _ in range(60)]
        await sending
        assert bodies == [b"/%d" % n if n % 2 else b"/%d-" % n for n in range(60)]
        assert len(proxy.origin.conversations) == 1


async def test_thousands_of_pipelined_requests_for_an_unknown_host_are_answered() -> None:
    async with proxied() as proxy:
        client = await proxy.connect()
        sending = asyncio.create_task(client.send(b"GET / HTTP/1.1\r\nHost: unknown\r\n\r\n" * 3000))
        for _ in range(3000):
            assert (await client.answer())[0].startswith(b"HTTP/1.1 404 ")
        await sending


async def test_pipelined_requests_let_others_have_their_turn_however_often_the_loop_reads() -> None:
    async with proxied() as proxy:
        client = await proxy.connect()
        await until(lambda: proxy.server.connections == 1)
        (connection,) = proxy.server.context.connections
        assert isinstance(connection, ClientConnection)
        for _ in range(5):
            connection.data_received(b"GET / HTTP/1.1\r\nHost: unknown\r\n\r\n" * 20)
        assert sum(proxy.stats.refusals.values()) == 32
        await asyncio.sleep(0)
        assert sum(proxy.stats.refusals.values()) in (32, 64)
        for _ in range(100):
            assert (await client.answer())[0].startswith(b"HTTP/1.1 404 ")


async def test_half_closed_client_gets_the_answers_that_wait_for_their_turn() -> None:
    async with proxied() as proxy:
        client = await proxy.connect()
        await client.send(b"GET / HTTP/1.1\r\nHost: unknown\r\n\r\n" * 100)
        client.writer.write_eof()
        assert (await client.rest()).count(b"HTTP/1.1 404 ") == 100


async def test_good_request_before_a_bad_one_is_answered() -> None:
    async with proxied() as proxy:
        answer = await proxy.talk(GET + b"GET / HTTP/1.1\r\nHost: a\r\nX : b\r\n\r\n" + GET)
        assert answer.count(b"HTTP/1.1 200 OK") == 1
        assert answer.count(b"HTTP/1.1 400 ") == 1
        assert answer.index(b" 200 ") < answer.index(b" 400 ")


async def test_client_that_pipelines_without_reading_is_not_read_without_bound() -> None:
    gate = asyncio.Event()

    async def script(conversation: Conversation) -> None:
        await conversation.head()
        await gate.wait()

    async with proxied(script, config=ProxyConfig(max_pipelined=10_000)) as proxy:
        client = await proxy.connect()
        sending = asyncio.create_task(client.send(GET * 1_000_000))
        unread = await until_still(client.writer.transport.get_write_buffer_size)
        assert unread > 16 << 20  # the kernel's buffers hold the rest
        sending.cancel()


async def test_half_closed_client_gets_its_answer() -> None:
    async with proxied() as proxy:
        client = await proxy.connect()
        await client.send(GET + GET)
        client.writer.write_eof()
        assert (await client.rest()).count(b"HTTP/1.1 200 OK") == 2


# Unavailable


async def test_unknown_host_is_a_404_on_a_connection_that_stays() -> None:
    async with proxied() as proxy:
        client = await proxy.connect()
        await client.send(b"GET / HTTP/1.1\r\nHost: unknown\r\n\r\n" + GET)
        head, _ = await client.answer()
        assert head.startswith(b"HTTP/1.1 404 Not Found\r\n")
        assert b"\r\nServer: headgate\r\n" in head
        assert (await client.answer())[1] == b"ok"


async def test_404_to_head_has_no_body() -> None:
    async with proxied() as proxy:
        client = await proxy.connect()
        await client.send(b"HEAD / HTTP/1.1\r\nHost: unknown\r\n\r\n" + GET)
        assert (await client.head()).startswith(b"HTTP/1.1 404 ")
        assert (await client.answer())[1] == b"ok"


async def test_missing_service_is_a_503_that_names_it() -> None:
    async with proxied() as proxy:
        proxy.target.pools = []
        answer = await proxy.talk(b"GET / HTTP/1.1\r\nHost: a\r\n" + CLOSE)
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"\r\nx-headgate-reason: Service default/web not found\r\n" in answer


async def test_no_table_yet_is_a_503() -> None:
    async with proxied() as proxy:
        proxy.holder.router = None
        assert (await proxy.talk(b"GET / HTTP/1.1\r\nHost: a\r\n" + CLOSE)).startswith(b"HTTP/1.1 503 ")


async def test_reason_with_odd_characters_cannot_split_the_head() -> None:
    async with proxied() as proxy:
        proxy.target.pools = []
        proxy.target.unavailable = "Service a\r\nSet-Cookie: b not found \u2603"
        answer = await proxy.talk(b"GET / HTTP/1.1\r\nHost: a\r\n" + CLOSE)
        assert b"\r\nSet-Cookie" not in answer


async def test_refused_connection_is_a_502() -> None:
    async with proxied() as proxy:
        await proxy.origin.stop()
        answer = await proxy.talk(b"GET / HTTP/1.1\r\nHost: a\r\n" + CLOSE)
        assert answer.startswith(b"HTTP/1.1 502 ")


async def test_address_that_is_no_name_is_a_502() -> None:
    async with proxied() as proxy:
        proxy.target.pools = [proxy.pools.get("no name..at all", 80)]
        answer = await proxy.talk(b"GET / HTTP/1.1\r\nHost: a\r\n" + CLOSE)
        assert answer.startswith(b"HTTP/1.1 502 ")


@pytest.mark.parametrize("method", [b"GET", b"POST"])
async def test_another_endpoint_takes_over_when_one_refuses_connections(method: bytes) -> None:
    async with proxied(answering(OK), answering(OK)) as proxy:
        await proxy.origins[0].stop()
        answer = await proxy.talk(method + b" / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n" + CLOSE + b"hi")
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert proxy.stats.retries == 1


async def test_connecting_is_tried_twice_at_most() -> None:
    async with proxied(answering(OK), answering(OK), answering(OK)) as proxy:
        await proxy.origins[0].stop()
        await proxy.origins[1].stop()
        assert (await proxy.talk(b"GET / HTTP/1.1\r\nHost: a\r\n" + CLOSE)).startswith(b"HTTP/1.1 502 ")


# Interim answers and early answers


async def test_100_continue_is_answered_here_and_not_forwarded() -> None:
    async with proxied() as proxy:
        client = await proxy.connect()
        await client.send(POST + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n")
        assert await client.head() == b"HTTP/1.1 100 Continue\r\n\r\n"
        await client.send(b"hi")
        assert (await client.answer())[1] == b"ok"
        assert b"expect" not in proxy.origin.heads[0].lower()


async def test_no_100_continue_for_a_body_that_is_on_its_way() -> None:
    async with proxied() as proxy:
        answer = await proxy.talk(POST + b"Expect: 100-continue\r\nContent-Length: 2\r\n" + CLOSE + b"hi")
        assert b"100 Continue" not in answer


async def test_no_100_continue_for_a_body_that_has_begun() -> None:
    async with proxied() as proxy:
        client = await proxy.connect()
        await client.send(POST + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\nh")
        await until(lambda: len(proxy.origin.heads) == 1)
        await client.send(b"i")
        assert (await client.head()).startswith(b"HTTP/1.1 200 ")


async def test_no_100_continue_before_a_final_refusal() -> None:
    async with proxied() as proxy:
        request = b"POST / HTTP/1.1\r\nHost: unknown\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
        answer = await proxy.talk(request)
        assert answer.startswith(b"HTTP/1.1 404 ")
        assert b"\r\nConnection: close\r\n" in answer


async def test_no_100_continue_for_http_1_0() -> None:
    async with proxied() as proxy:
        client = await proxy.connect()
        await client.send(b"POST / HTTP/1.0\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
        await until(lambda: len(proxy.origin.heads) == 1)
        await client.send(b"hi")
        assert (await client.head()).startswith(b"HTTP/1.1 200 ")


EARLY_HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n"


@pytest.mark.parametrize("bytewise", [False, True], ids=["whole", "bytewise"])
async def test_early_hints_are_passed_on_and_the_connection_is_kept(bytewise: bool) -> None:
    async with proxied(answering(EARLY_HINTS + OK, bytewise=bytewise)) as proxy:
        client = await proxy.connect()
        for _ in range(2):
            await client.send(GET)
            assert await client.head() == EARLY_HINTS
            assert (await client.answer())[1] == b"ok"
        assert len(proxy.origin.conversations) == 1


async def test_early_hints_are_not_for_http_1_0() -> None:
    async with proxied(answering(EARLY_HINTS + OK)) as proxy:
        assert (await proxy.talk(b"GET / HTTP/1.0\r\nHost: a\r\n\r\n")).startswith(b"HTTP/1.1 200 ")


async def test_answer_before_the_body_is_passed_on_and_ends_both_connections() -> None:
    async def script(conversation: Conversation) -> None:
        await conversation.head()
        await conversation.send(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno")
        await conversation.reader.read()

    async with proxied(script) as proxy:
        answer = await proxy.talk(POST + b"Content-Length: 1000000\r\n\r\nabc" + GET)
        assert answer.startswith(b"HTTP/1.1 413 ")
        assert b"\r\nConnection: close\r\n" in answer
        assert answer.count(b"HTTP/1.1") == 1
        assert proxy.target.pools[0].idle_count == 0
        assert proxy.target.pools[0].in_flight == 0


async def test_client_that_leaves_ends_its_upstream_request() -> None:
    ended = asyncio.Event()

    async def script(conversation: Conversation) -> None:
        await conversation.request()
        await conversation.reader.read()
        ended.set()

    async with proxied(script) as proxy:
        client = await proxy.connect()
        await client.send(POST + b"Content-Length: 9\r\n\r\nabc")
        await until(lambda: len(proxy.origin.heads) == 1)
        client.close()
        await until(lambda: proxy.target.pools[0].in_flight == 0)
        assert proxy.log.records[0][5] == 499
