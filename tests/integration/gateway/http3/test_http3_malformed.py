"""What is no HTTP/3: malformed requests reset their stream, broken connections are closed, each by its code."""

import pytest

from fakes.gateway.proxied import OK, answering
from fakes.gateway.served import at, origins, served, site
from fakes.peers.http3 import head_of, http3_client
from headgate.gateway.proxy.http3.numbers import frame, integer
from headgate.gateway.proxy.http3.qpack import PREFIX, compress_field

DATA, HEADERS, SETTINGS, GOAWAY, MAX_PUSH_ID = 0, 1, 4, 7, 13
REQUEST = [(b":method", b"GET"), (b":scheme", b"https"), (b":authority", b"a.example"), (b":path", b"/")]


def block(*fields: tuple[bytes, bytes]) -> bytes:
    """A HEADERS frame."""
    return frame(HEADERS, PREFIX + b"".join(compress_field(name, value) for name, value in fields))


def without(name: bytes) -> list[tuple[bytes, bytes]]:
    return [field for field in REQUEST if field[0] != name]


def instead(name: bytes, value: bytes) -> list[tuple[bytes, bytes]]:
    return [(each, value if each == name else before) for each, before in REQUEST]


MALFORMED = {
    "no method": without(b":method"),
    "no scheme": without(b":scheme"),
    "no path": without(b":path"),
    "no authority": without(b":authority"),
    "path empty": instead(b":path", b""),
    "path without slash": instead(b":path", b"a"),
    "path with a space": instead(b":path", b"/a b"),
    "path with a fragment": instead(b":path", b"/#a"),
    "method with a space": instead(b":method", b"GET /"),
    "scheme of another kind": instead(b":scheme", b"ftp"),
    "method twice": [*REQUEST, (b":method", b"GET")],
    "unknown pseudo-header": [*REQUEST, (b":status", b"200")],
    "pseudo-header behind a field": [*without(b":path"), (b"x", b"y"), (b":path", b"/")],
    "host that differs": [*REQUEST, (b"host", b"b.example")],
    "host twice": [*without(b":authority"), (b"host", b"a.example"), (b"host", b"a.example")],
    "upper case": [*REQUEST, (b"X-Own", b"y")],
    "empty name": [*REQUEST, (b"", b"y")],
    "name with a colon": [*REQUEST, (b"a:b", b"y")],
    "line feed": [*REQUEST, (b"x", b"a\nb: c")],
    "carriage return": [*REQUEST, (b"x", b"a\rb")],
    "zero": [*REQUEST, (b"x", b"a\0b")],
    "space before a value": [*REQUEST, (b"x", b" a")],
    "connection": [*REQUEST, (b"connection", b"close")],
    "transfer-encoding": [*REQUEST, (b"transfer-encoding", b"chunked")],
    "keep-alive": [*REQUEST, (b"keep-alive", b"timeout=5")],
    "upgrade": [*REQUEST, (b"upgrade", b"h2c")],
    "proxy-connection": [*REQUEST, (b"proxy-connection", b"close")],
    "te other than trailers": [*REQUEST, (b"te", b"gzip")],
    "content-length twice": [*REQUEST, (b"content-length", b"0"), (b"content-length", b"1")],
    "content-length with a sign": [*REQUEST, (b"content-length", b"+1")],
    "content-length without a body": [*REQUEST, (b"content-length", b"1")],
    "plain CONNECT with a path": instead(b":method", b"CONNECT"),
    "protocol without CONNECT": [(b":protocol", b"websocket"), *REQUEST],
}


@pytest.mark.parametrize("fields", MALFORMED.values(), ids=MALFORMED.keys())
async def test_a_malformed_request_resets_its_stream_alone(fields: list[tuple[bytes, bytes]]) -> None:
    async with (
        origins(answering(OK)) as (origin,),
        served(at(origin.port), site(), http3=True) as proxy,
        http3_client(proxy.https_port) as client,
    ):
        answer = await client.answers[client.raw(block(*fields), end=True)].until_over()
        assert answer.reset == 0x10E or answer.status in (400, 431)
        assert origin.heads == []
        assert (await client.ask()).status == 200


BODIES = {
    "more than was said": (b"content-length", b"3", frame(DATA, b"abcd")),
    "less than was said": (b"content-length", b"5", frame(DATA, b"abcd")),
    "a forbidden trailer": (b"x", b"y", frame(DATA, b"ab") + block((b"content-length", b"2"))),
    "a pseudo-header in trailers": (b"x", b"y", frame(DATA, b"ab") + block((b":path", b"/"))),
}


@pytest.mark.parametrize(("name", "value", "body"), BODIES.values(), ids=BODIES.keys())
async def test_a_malformed_body_ends_its_request_alone(name: bytes, value: bytes, body: bytes) -> None:
    async with (
        origins(answering(OK)) as (origin,),
        served(at(origin.port), site(), http3=True) as proxy,
        http3_client(proxy.https_port) as client,
    ):
        head = block(*instead(b":method", b"POST"), (name, value))
        answer = await client.answers[client.raw(head + body, end=True)].until_over()
        assert answer.reset == 0x10E or answer.status == 400
        assert (await client.ask()).status == 200


async def test_a_stream_that_ends_without_a_request_is_incomplete() -> None:
    async with served(site(), http3=True) as proxy, http3_client(proxy.https_port) as client:
        answer = await client.answers[client.raw(b"", end=True)].until_over()
        assert answer.reset == 0x10D


BROKEN = {
    "DATA before a head": (0x105, frame(DATA, b"x"), True),
    "DATA behind trailers": (0x105, block(*REQUEST) + block((b"a", b"b")) + frame(DATA, b"x"), True),
    "a third head": (0x105, block(*REQUEST) + block((b"a", b"b")) + block((b"a", b"b")), True),
    "SETTINGS on a request": (0x105, frame(SETTINGS, b""), True),
    "GOAWAY on a request": (0x105, frame(GOAWAY, b"\0"), True),
    "PUSH_PROMISE": (0x105, frame(5, b"\0\0\0"), True),
    "PRIORITY of HTTP/2": (0x105, frame(2, b"\0\0\0\0\0"), True),
    "half a frame": (0x106, block(*REQUEST)[:-3], True),
    "half the header of a frame": (0x106, b"\x01", True),
    "a body shorter than its frame": (0x106, block(*REQUEST) + integer(DATA) + integer(10) + b"abc", True),
    "a block of a dynamic table": (0x200, frame(HEADERS, b"\x02\0\x80"), True),
    "a second control stream": (0x103, b"\0" + frame(SETTINGS, b""), False),
    "a push stream": (0x103, b"\x01\0", False),
    "an entry for the table": (0x201, b"\x02\x41a\x01b", False),
    "an acknowledgement of nothing": (0x202, b"\x03\x80", False),
}


@pytest.mark.parametrize(("code", "data", "is_request"), BROKEN.values(), ids=BROKEN.keys())
async def test_what_breaks_the_protocol_closes_the_connection(code: int, data: bytes, is_request: bool) -> None:
    async with (
        origins(answering(OK)) as (origin,),
        served(at(origin.port), site(), http3=True) as proxy,
        http3_client(proxy.https_port, quiet=data[:1] in (b"\2", b"\3") and not is_request) as client,
    ):
        client.raw(data, end=is_request, one_way=not is_request)
        assert (await client.until_closed()).error_code == code
        assert proxy.stats.client_errors.get("http3 protocol") == 1
        async with http3_client(proxy.https_port) as other:
            assert (await other.ask()).status == 200


CONTROL = {
    "no SETTINGS first": (0x10A, frame(GOAWAY, b"\0")),
    "SETTINGS twice": (0x105, frame(SETTINGS, b"") * 2),
    "a head": (0x105, frame(SETTINGS, b"") + block(*REQUEST)),
    "a setting of HTTP/2": (0x109, frame(SETTINGS, b"\x02\x01")),
    "a setting twice": (0x109, frame(SETTINGS, b"\x06\x01\x06\x01")),
    "half a setting": (0x106, frame(SETTINGS, b"\x06")),
    "a GOAWAY of another length": (0x106, frame(SETTINGS, b"") + frame(GOAWAY, b"\0\0")),
    "a smaller MAX_PUSH_ID": (0x108, frame(SETTINGS, b"") + frame(MAX_PUSH_ID, b"\2") + frame(MAX_PUSH_ID, b"\1")),
    "a CANCEL_PUSH": (0x108, frame(SETTINGS, b"") + frame(3, b"\0")),
    "very long SETTINGS": (0x107, integer(SETTINGS) + integer(5000)),
    "many settings": (0x107, frame(SETTINGS, b"".join(integer(0x21 + 31 * n) + b"\0" for n in range(40)))),
}


@pytest.mark.parametrize(("code", "data"), CONTROL.values(), ids=CONTROL.keys())
async def test_what_breaks_the_control_stream_closes_the_connection(code: int, data: bytes) -> None:
    async with served(site(), http3=True) as proxy, http3_client(proxy.https_port, quiet=True) as client:
        client.raw(b"\0" + data, one_way=True)
        assert (await client.until_closed()).error_code == code


@pytest.mark.parametrize("how", ["end", "reset"])
async def test_a_control_stream_that_ends_closes_the_connection(how: str) -> None:
    async with served(site(), http3=True) as proxy, http3_client(proxy.https_port, quiet=True) as client:
        stream_id = client.raw(b"\0" + frame(SETTINGS, b""), one_way=True, end=how == "end")
        if how == "reset":
            client.quic.reset_stream(stream_id, 0x100)
            client.transmit()
        assert (await client.until_closed()).error_code == 0x104


async def test_unknown_frames_streams_and_settings_are_passed_over() -> None:
    async with (
        origins(answering(OK, OK)) as (origin,),
        served(at(origin.port), site(), http3=True) as proxy,
        http3_client(proxy.https_port, quiet=True) as client,
    ):
        grease = frame(0x21, b"whatever")
        client.raw(b"\0" + frame(SETTINGS, b"\x21\x00") + grease * 3, one_way=True)
        client.raw(b"\x21" + b"anything", one_way=True)
        client.raw(b"\x02\x20", one_way=True)
        client.raw(b"\x03\x44", one_way=True)
        fields = head_of(method="POST")
        stream_id = client.raw(grease + block(*fields) + grease + frame(DATA, b"ab") + grease, end=True)
        assert (await client.answers[stream_id].until_over()).status == 200


async def test_requests_that_come_byte_by_byte_are_the_same() -> None:
    async with (
        origins(answering(OK)) as (origin,),
        served(at(origin.port), site(), http3=True) as proxy,
        http3_client(proxy.https_port) as client,
    ):
        data = block(*head_of(method="POST", content_length=4)) + frame(DATA, b"ab") + frame(DATA, b"cd")
        stream_id = client.raw(data[:1])
        for at_byte in range(1, len(data)):
            client.raw(data[at_byte : at_byte + 1], stream_id=stream_id, end=at_byte == len(data) - 1)
        assert (await client.answers[stream_id].until_over()).status == 200
        assert b"content-length: 4" in origin.heads[0].lower()
