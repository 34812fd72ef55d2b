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
from headgate.gateway.proxy.heads.reading import read_answer_head, read_request_head
from headgate.gateway.proxy.heads.shape import Shape
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
    raw = b"POST / HTTP/1.1\r\n" + block + b"\r\n"
    try:
        RequestParser().head(raw)
        return read_request_head(raw.split(b"\r\n")[:-1], None, 100)
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


class Noted:
    """Takes fields from llhttp."""

    def __init__(self) -> None:
        self.fields: list[tuple[bytes, bytes]] = []

    def on_header(self, name: bytes, value: bytes) -> None:
        self.fields.append((name, value))


@given(_MUTATED)
def test_fields_are_cut_where_llhttp_cuts_them(block: bytes) -> None:
    fields = parsed(block)
    if fields is not None:
        noted = Noted()
        httptools.HttpRequestParser(noted).feed_data(b"POST / HTTP/1.1\r\n" + block + b"\r\n")
        assert list(zip(*fields.found, strict=True)) == noted.fields


@given(_MUTATED, _MUTATED, st.binary(max_size=20))
def test_head_is_read_alike_with_and_without_the_shape_of_the_one_before(
    before: bytes, block: bytes, rest: bytes
) -> None:
    raw = b"POST / HTTP/1.1\r\n" + block + b"\r\n"
    for known in (parsed(before), parsed(block)):
        shape = known.shape if known is not None else None
        lines = shape.cut(raw + rest) if shape is not None else None
        if lines is not None and is_accepted(raw):
            assert lines.pop() == rest
            assert what_is_read(lines, shape) == what_is_read(raw.split(b"\r\n")[:-1], None)


def is_accepted(raw: bytes) -> bool:
    """Whether llhttp takes it for a head."""
    try:
        RequestParser().head(raw)
    except BadMessage:
        return False
    return True


def what_is_read(lines: list[bytes], shape: Shape | None) -> tuple[object, ...]:
    """Everything that a head says, or why it is refused."""
    try:
        fields = read_request_head(lines, shape, 100)
    except BadMessage as bad:
        return bad.status, bad.reason
    names = (
        *("lines", "content_length", "chunked", "options", "lists_fields", "upgrade", "shape"),
        *("host", "host_line", "found", "expects_continue", "request_id", "forwarded", "agent", "referer"),
    )
    return tuple(getattr(fields, name) for name in names)


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(b"GET / HTTP/1.1\r\nHost: b\r\nAccept: c\r\n\r\nrest", id="other values"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: \r\nAccept: \r\n\r\nrest", id="no values"),
    ],
)
def test_head_with_the_names_of_a_shape_is_cut_by_it(message: bytes) -> None:
    assert cut(message) == message.split(b"\r\n")


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(b"GET / HTTP/1.1\r\nHost: b\r\naccept: c\r\n\r\n", id="another case"),
        pytest.param(b"GET / HTTP/1.1\r\nAccept: c\r\nHost: b\r\n\r\n", id="another order"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: b\r\n\r\n", id="one less"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: b\r\n\r\nAccept: c\r\n\r\n", id="one behind the head"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: b\r\nAccept: c\r\nX: d\r\n\r\n", id="one more"),
        pytest.param(b"GET / HTTP/1.1\r\nHost:b\r\nAccept: c\r\n\r\n", id="no space"),
        pytest.param(b"GET / HTTP/1.1\r\nHost:  b\r\nAccept: c\r\n\r\n", id="two spaces"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: \tb\r\nAccept: c\r\n\r\n", id="a tab"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: b\r\nAccept: c\r\n", id="no empty line"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: b\r\nAccept: c\r\n\r", id="half of the empty line"),
        pytest.param(b"\r\nGET / HTTP/1.1\r\nHost: b\r\nAccept: c\r\n\r\n", id="an empty line before"),
    ],
)
def test_head_one_off_a_shape_is_not_cut_by_it(message: bytes) -> None:
    assert cut(message) is None


def cut(message: bytes) -> list[bytes] | None:
    """Cut a message by the shape of a head with Host and Accept."""
    fields = parsed(b"Host: a\r\nAccept: b\r\n")
    assert fields is not None
    assert fields.shape is not None
    return fields.shape.cut(message)


@given(_MUTATED)
def test_answer_fields_that_we_take_h11_reads_alike(block: bytes) -> None:
    raw = b"HTTP/1.1 200 OK\r\n" + block + b"\r\n"
    try:
        AnswerParser().head(raw)
        answer = read_answer_head(raw.split(b"\r\n")[:-1], None, 100)
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
