"""What passes llhttp and our checks, h11 must take too, and must read in the same way."""

import h11
import httptools
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.gateway.proxied import Conversation, proxied
from headgate.gateway.proxy.errors import BadMessage
from headgate.gateway.proxy.heads.grammar import REQUEST_LINE
from headgate.gateway.proxy.heads.head import RequestFields
from headgate.gateway.proxy.heads.reading import read_answer_head, read_request_fields
from headgate.gateway.proxy.http1.parser import AnswerParser, RequestParser

_LINE = st.sampled_from(
    [
        b"Host: a\r\n",
        b"Content-Length: 5\r\n",
        b"content-length: 0\r\n",
        b"Content-Length: +5\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Transfer-Encoding:chunked\t\r\n",
        b"Transfer-Encoding: x, chunked\r\n",
        b"Connection: close\r\n",
        b"X: a\tb\xe9  \r\n",
        b"X:\r\n",
        b" folded\r\n",
        b"X : a\r\n",
        b"X: a\rb\r\n",
        b"X: a\n",
        b"X: a\0\r\n",
        b"!#$%&'*+-.^_`|~: a\r\n",
    ]
)
_BLOCK = st.lists(_LINE, max_size=5).map(b"".join)
_MUTATED = st.builds(
    lambda block, at, byte: block[: at % (len(block) + 1)] + byte + block[at % (len(block) + 1) :],
    _BLOCK,
    st.integers(0, 200),
    st.sampled_from(
        [b"", b"\r", b"\n", b"\0", b" ", b"\t", b":", b",", b"\x85", b"\xa0", b"\x7f", b"\x0b", b"0", b"_"]
    ),
)


def parsed(block: bytes) -> RequestFields | None:
    """Read a block as the proxy does; None if it is refused."""
    try:
        found = RequestParser().head(b"POST / HTTP/1.1\r\n" + block + b"\r\n")
        return read_request_fields(found, 100)
    except BadMessage:
        return None


@given(_MUTATED)
def test_request_fields_that_we_take_h11_reads_alike(block: bytes) -> None:
    fields = parsed(block)
    if fields is None or not fields.host_line:
        return
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(b"POST / HTTP/1.1\r\n" + block + b"\r\n")
    event = connection.next_event()
    assert isinstance(event, h11.Request)
    named = dict(event.headers)
    assert fields.content_length == int(named.get(b"content-length", b"-1"))
    assert fields.chunked == (b"transfer-encoding" in named)


@given(_MUTATED)
def test_answer_fields_that_we_take_h11_reads_alike(block: bytes) -> None:
    raw = b"HTTP/1.1 200 OK\r\n" + block + b"\r\n"
    try:
        answer = read_answer_head(raw, AnswerParser().head(raw), 100)
    except BadMessage:
        return
    connection = h11.Connection(h11.CLIENT)
    connection.send(h11.Request(method="GET", target="/", headers=[("Host", "a")]))
    connection.receive_data(raw)
    event = connection.next_event()
    assert isinstance(event, h11.Response)
    named = dict(event.headers)
    assert answer.content_length == int(named.get(b"content-length", b"-1"))
    assert answer.chunked == (b"transfer-encoding" in named)


@given(st.binary(max_size=30))
def test_target_that_we_take_llhttp_reads_alike(target: bytes) -> None:
    line = b"GET /" + target + b" HTTP/1.1\r\n"
    found = REQUEST_LINE.fullmatch(line)
    if found is None:
        return

    class Url:
        url = b""

        def on_url(self, url: bytes) -> None:
            self.url += url

    seen = Url()
    httptools.HttpRequestParser(seen).feed_data(line + b"\r\n")
    assert seen.url == found[2]


EVIL = b"GET /evil HTTP/1.1\r\nHost: evil\r\n\r\nabc"
FIRST = b"POST /0 HTTP/1.1\r\nHost: a\r\n"
SECOND = b"GET /1 HTTP/1.1\r\nHost: a\r\n\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
UPGRADE = b"Connection: upgrade\r\nUpgrade: h2c\r\n"
PIPELINES = {
    "lengths": (FIRST + b"Content-Length: 3\r\n\r\nabc" + SECOND, b"abc"),
    "chunks": (FIRST + CHUNKED + b"3;x=y\r\nabc\r\n0\r\nT: 1\r\n\r\n" + SECOND, b"abc"),
    "a request in a body": (FIRST + b"Content-Length: %d\r\n\r\n" % len(EVIL) + EVIL + SECOND, EVIL),
    "a request in a chunk": (FIRST + CHUNKED + b"%x\r\n%b\r\n0\r\n\r\n" % (len(EVIL), EVIL) + SECOND, EVIL),
    "upgrade with a body": (FIRST + UPGRADE + b"Content-Length: 3\r\n\r\nabc" + SECOND, b"abc"),
}


@pytest.mark.parametrize("bytewise", [False, True], ids=["whole", "bytewise"])
@pytest.mark.parametrize(("pipeline", "body"), PIPELINES.values(), ids=PIPELINES.keys())
async def test_origin_on_h11_sees_the_same_request_boundaries(pipeline: bytes, body: bytes, bytewise: bool) -> None:
    seen: list[tuple[bytes, bytes]] = []

    async def script(conversation: Conversation) -> None:
        connection = h11.Connection(h11.SERVER)
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                connection.receive_data(await conversation.reader.read(65536))
            elif isinstance(event, h11.Request):
                seen.append((event.target, b""))
            elif isinstance(event, h11.Data):
                seen[-1] = (seen[-1][0], seen[-1][1] + bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                answer = h11.Response(status_code=200, headers=[(b"Content-Length", b"2")])
                parts = [answer, h11.Data(data=b"ok"), h11.EndOfMessage()]
                await conversation.send(b"".join(connection.send(part) or b"" for part in parts))
                connection.start_next_cycle()
            else:
                return

    async with proxied(script) as proxy:
        client = await proxy.connect()
        await client.send(pipeline, bytewise=bytewise)
        for _ in range(2):
            assert (await client.answer())[1] == b"ok"
        assert seen == [(b"/0", body), (b"/1", b"")]
