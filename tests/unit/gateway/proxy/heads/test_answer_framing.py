"""Answers get the same strictness as requests: 502, and never is the connection used again."""

import pytest

from fakes.gateway.proxied import OK, answering, proxied
from fakes.waiting import until
from headgate.gateway.proxy.config import ProxyConfig

GET = b"GET / HTTP/1.1\r\nHost: a\r\n"
CLOSE = b"Connection: close\r\n\r\n"
HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"

REFUSED = {
    "CL and TE": HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "CL twice": HEAD + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\na",
    "CL list": HEAD + b"Content-Length: 1, 1\r\n\r\na",
    "CL empty": HEAD + b"Content-Length: \r\n\r\n",
    "CL signed": HEAD + b"Content-Length: +1\r\n\r\na",
    "CL with underscore": HEAD + b"Content-Length: 1_0\r\n\r\n0123456789",
    "TE gzip": HEAD + b"Transfer-Encoding: gzip\r\n\r\n",
    "TE gzip, chunked": HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "TE twice": HEAD + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "TE in HTTP/1.0": b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "TE in 204": b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "folded line": HEAD + b"X: a\r\n b\r\nContent-Length: 0\r\n\r\n",
    "bare CR": HEAD + b"X: a\rb\r\nContent-Length: 0\r\n\r\n",
    "bare LF": HEAD + b"X: a\nContent-Length: 0\r\n\r\n",
    "all lines with LF": b"HTTP/1.1 200 OK\nContent-Length: 0\n\n",
    "space before colon": HEAD + b"X : a\r\nContent-Length: 0\r\n\r\n",
    "NUL in a value": HEAD + b"X: a\0\r\nContent-Length: 0\r\n\r\n",
    "control in a value": HEAD + b"X: a\x01\r\nContent-Length: 0\r\n\r\n",
    "high byte in a name": HEAD + b"X\xe9: a\r\nContent-Length: 0\r\n\r\n",
    "empty name": HEAD + b": a\r\nContent-Length: 0\r\n\r\n",
    "version 2.0": b"HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n",
    "version 1.2": b"HTTP/1.2 200 OK\r\nContent-Length: 0\r\n\r\n",
    "status of two digits": b"HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n",
    "status of four digits": b"HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n",
    "status 600": b"HTTP/1.1 600 OK\r\nContent-Length: 0\r\n\r\n",
    "status signed": b"HTTP/1.1 +20 OK\r\nContent-Length: 0\r\n\r\n",
    "two spaces before the status": b"HTTP/1.1  200 OK\r\nContent-Length: 0\r\n\r\n",
    "control in the phrase": b"HTTP/1.1 200 O\x01\r\nContent-Length: 0\r\n\r\n",
    "no HTTP at all": b"hello\r\n\r\n",
    "101 that nobody asked for": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
    "CL in 1xx": b"HTTP/1.1 103 Early Hints\r\nContent-Length: 1\r\n\r\na" + OK,
    "seventeen informational answers": b"HTTP/1.1 100 Continue\r\n\r\n" * 17 + OK,
}

BROKEN_BODY = {
    "chunk size with plus": CHUNKED + b"2\r\nok\r\n+1\r\na\r\n0\r\n\r\n",
    "chunk size of 17 digits": CHUNKED + b"2\r\nok\r\n00000000000000001\r\na\r\n0\r\n\r\n",
    "chunk line with LF": CHUNKED + b"2\r\nok\r\n1\na\r\n0\r\n\r\n",
    "chunk data ended by LF": CHUNKED + b"2\r\nok\n0\r\n\r\n",
    "chunk extension with CR": CHUNKED + b"2\r\nok\r\n1;a\rb\r\na\r\n0\r\n\r\n",
    "trailer CL": CHUNKED + b"2\r\nok\r\n0\r\nContent-Length: 1\r\n\r\n",
    "trailer Set-Cookie": CHUNKED + b"2\r\nok\r\n0\r\nSet-Cookie: a\r\n\r\n",
}


@pytest.mark.parametrize("bytewise", [False, True], ids=["whole", "bytewise"])
@pytest.mark.parametrize("answer_bytes", REFUSED.values(), ids=REFUSED.keys())
async def test_ambiguous_answer_is_a_502(answer_bytes: bytes, bytewise: bool) -> None:
    async with proxied(answering(answer_bytes, bytewise=bytewise)) as proxy:
        answer = await proxy.talk(GET + CLOSE)
        head, _, _ = answer.rpartition(b"\r\n\r\n")
        assert b"HTTP/1.1 502 Bad Gateway\r\n" in head
        assert b"x-headgate-reason: invalid answer: " in head
        assert proxy.target.pools[0].idle_count == 0


@pytest.mark.parametrize("bytewise", [False, True], ids=["whole", "bytewise"])
@pytest.mark.parametrize("answer_bytes", BROKEN_BODY.values(), ids=BROKEN_BODY.keys())
async def test_answer_whose_body_breaks_never_ends_properly(answer_bytes: bytes, bytewise: bool) -> None:
    async with proxied(answering(answer_bytes, bytewise=bytewise)) as proxy:
        answer = await proxy.talk(GET + CLOSE)
        assert not answer.endswith(b"0\r\n\r\n")
        assert b"HTTP/1.1 502 " in answer or answer.startswith(b"HTTP/1.1 200 OK\r\n")
        assert proxy.target.pools[0].idle_count == 0


TAKEN = {
    "no phrase": b"HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\nok",
    "no space before no phrase": b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok",
    "high byte in the phrase": b"HTTP/1.1 200 \xe9\r\nContent-Length: 2\r\n\r\nok",
    "unknown status": b"HTTP/1.1 299 Odd\r\nContent-Length: 2\r\n\r\nok",
    "HTTP/1.0": b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "chunked": CHUNKED + b"1\r\no\r\n1\r\nk\r\n0\r\n\r\n",
    "chunk extension": CHUNKED + b"2;a=b\r\nok\r\n0\r\n\r\n",
    "odd white space": HEAD + b"X:a  \r\nContent-Length:  2 \r\n\r\nok",
}


@pytest.mark.parametrize("bytewise", [False, True], ids=["whole", "bytewise"])
@pytest.mark.parametrize("answer_bytes", TAKEN.values(), ids=TAKEN.keys())
async def test_right_answer_is_passed_on(answer_bytes: bytes, bytewise: bool) -> None:
    async with proxied(answering(answer_bytes, bytewise=bytewise)) as proxy:
        answer = await proxy.talk(GET + CLOSE)
        assert answer.startswith(b"HTTP/1.1 2")
        assert b"ok" in answer or b"o\r\n1\r\nk" in answer


async def test_answer_head_over_the_limit_is_a_502() -> None:
    long = HEAD + b"X: " + b"a" * 3000 + b"\r\nContent-Length: 0\r\n\r\n"
    async with proxied(answering(long), config=ProxyConfig(max_head=2000)) as proxy:
        assert (await proxy.talk(GET + CLOSE)).startswith(b"HTTP/1.1 502 ")


NOT_REUSABLE = {
    "Connection: close": HEAD + b"Connection: close\r\nContent-Length: 2\r\n\r\nok",
    "HTTP/1.0": b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "more than the length says": OK + b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
    "more than the last chunk": CHUNKED + b"2\r\nok\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
    "body in 304": b"HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\nok",
    "100 that nobody asked for": b"HTTP/1.1 100 Continue\r\n\r\n" + OK,
}


@pytest.mark.parametrize("answer_bytes", NOT_REUSABLE.values(), ids=NOT_REUSABLE.keys())
async def test_connection_about_which_there_is_doubt_is_not_used_again(answer_bytes: bytes) -> None:
    async with proxied(answering(answer_bytes)) as proxy:
        for _ in range(2):
            client = await proxy.connect()
            await client.send(GET + b"\r\n")
            head = await client.head()
            assert head.startswith((b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 304 "))
            assert b"evil" not in head
            client.close()
        assert len(proxy.origin.conversations) == 2


async def test_connection_that_speaks_while_idle_is_closed() -> None:
    async def script(conversation):
        await conversation.request()
        await conversation.send(OK)
        if conversation.index == 0:
            await conversation.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
            await conversation.reader.read()

    async with proxied(script) as proxy:
        client = await proxy.connect()
        await client.send(GET + b"\r\n")
        assert (await client.answer())[1] == b"ok"
        await until(proxy.origin.conversations[0].reader.at_eof)
        await client.send(GET + b"\r\n")
        assert (await client.answer())[1] == b"ok"
        assert len(proxy.origin.conversations) == 2


async def test_answer_to_head_and_what_follows_are_kept_apart() -> None:
    head_answer = HEAD + b"Content-Length: 1000\r\n\r\n"
    async with proxied(answering(head_answer, OK)) as proxy:
        client = await proxy.connect()
        await client.send(b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert b"Content-Length: 1000\r\n" in await client.head()
        await client.send(GET + b"\r\n")
        assert (await client.answer())[1] == b"ok"
        assert len(proxy.origin.conversations) == 1
