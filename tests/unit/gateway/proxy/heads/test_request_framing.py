"""Every line of the framing checklist, fed at once and byte by byte, with a right request one byte beside it."""

import pytest

from fakes.gateway.proxied import OK, answering, proxied
from headgate.gateway.proxy.config import ProxyConfig

GET = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
POST = b"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"

REFUSED = {
    "CL and TE": POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "TE and CL": POST + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "CL twice, equal": POST + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\na",
    "CL twice, different": POST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\naa",
    "CL twice, one line": POST + b"Content-Length: 1, 1\r\n\r\na",
    "CL empty": POST + b"Content-Length:\r\n\r\n",
    "CL blank": POST + b"Content-Length: \r\n\r\n",
    "CL with plus": POST + b"Content-Length: +1\r\n\r\na",
    "CL with minus": POST + b"Content-Length: -1\r\n\r\na",
    "CL with underscore": POST + b"Content-Length: 1_0\r\n\r\n0123456789",
    "CL hexadecimal": POST + b"Content-Length: 0x1\r\n\r\na",
    "CL with letters": POST + b"Content-Length: 1a\r\n\r\na",
    "CL with inner space": POST + b"Content-Length: 1 0\r\n\r\n0123456789",
    "CL with NBSP": POST + b"Content-Length: 1\xa0\r\n\r\na",
    "CL with NEL": POST + b"Content-Length: \x851\r\n\r\na",
    "CL beyond 64 bit": POST + b"Content-Length: 99999999999999999999\r\n\r\na",
    "CL under another name": POST + b"Content_Length: 1\r\n\r\n",
    "TE under another name": POST + b"Transfer_Encoding: chunked\r\n\r\n",
    "TE empty": POST + b"Transfer-Encoding:\r\n\r\n",
    "TE identity": POST + b"Transfer-Encoding: identity\r\n\r\n",
    "TE gzip, chunked": POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "TE chunked, identity": POST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "TE chunked twice": POST + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    "TE in two lines": POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "TE with leading comma": POST + b"Transfer-Encoding: ,chunked\r\n\r\n0\r\n\r\n",
    "TE with trailing comma": POST + b"Transfer-Encoding: chunked,\r\n\r\n0\r\n\r\n",
    "TE with parameter": POST + b"Transfer-Encoding: chunked;a=b\r\n\r\n0\r\n\r\n",
    "TE quoted": POST + b'Transfer-Encoding: "chunked"\r\n\r\n0\r\n\r\n',
    "TE with a tab behind": POST + b"Transfer-Encoding: chunked\t\r\n\r\n0\r\n\r\n",
    "CL with a tab behind": POST + b"Content-Length: 1\t\r\n\r\na",
    "TE with vertical tab": POST + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
    "TE in HTTP/1.0": b"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "folded line": GET + b"X: a\r\n b\r\n\r\n",
    "folded line with tab": GET + b"X: a\r\n\tb\r\n\r\n",
    "fold before the first header": b"GET / HTTP/1.1\r\n Host: a\r\n\r\n",
    "bare CR in a value": GET + b"X: a\rb\r\n\r\n",
    "bare CR before CRLF": GET + b"X: a\r\r\n\r\n",
    "bare CR in the request line": b"GET / HTTP/1.1\rHost: a\r\n\r\n",
    "bare LF after the request line": b"GET / HTTP/1.1\nHost: a\r\n\r\n",
    "bare LF after a header": b"GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n",
    "bare LF at the end": b"GET / HTTP/1.1\r\nHost: a\r\n\n",
    "all lines with LF": b"GET / HTTP/1.1\nHost: a\n\n",
    "space before colon": GET + b"X : a\r\n\r\n",
    "tab before colon": GET + b"X\t: a\r\n\r\n",
    "space before colon of CL": POST + b"Content-Length : 1\r\n\r\na",
    "space in a name": GET + b"X Y: a\r\n\r\n",
    "no colon": GET + b"XY\r\n\r\n",
    "empty name": GET + b": a\r\n\r\n",
    "NUL in a value": GET + b"X: a\0b\r\n\r\n",
    "NUL in a name": GET + b"X\0: a\r\n\r\n",
    "control in a value": GET + b"X: a\x01b\r\n\r\n",
    "DEL in a value": GET + b"X: a\x7fb\r\n\r\n",
    "control in a name": GET + b"X\x01: a\r\n\r\n",
    "high byte in a name": GET + b"X\xe9: a\r\n\r\n",
    "separator in a name": GET + b"X(a): a\r\n\r\n",
    "no Host": b"GET / HTTP/1.1\r\n\r\n",
    "empty Host": b"GET / HTTP/1.1\r\nHost:\r\n\r\n",
    "Host twice": b"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
    "Host with a path": b"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n",
    "Host with user": b"GET / HTTP/1.1\r\nHost: u@a\r\n\r\n",
    "Host list": b"GET / HTTP/1.1\r\nHost: a, b\r\n\r\n",
    "Host with a space": b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
    "Host with a wrong port": b"GET / HTTP/1.1\r\nHost: a:b\r\n\r\n",
    "Host with a large port": b"GET / HTTP/1.1\r\nHost: a:65536\r\n\r\n",
    "Host with a high byte": b"GET / HTTP/1.1\r\nHost: \xe9\r\n\r\n",
    "Host without closing bracket": b"GET / HTTP/1.1\r\nHost: [::1\r\n\r\n",
    "version 1.2": b"GET / HTTP/1.2\r\nHost: a\r\n\r\n",
    "version 2.0": b"GET / HTTP/2.0\r\nHost: a\r\n\r\n",
    "version 1.10": b"GET / HTTP/1.10\r\nHost: a\r\n\r\n",
    "version 01.1": b"GET / HTTP/01.1\r\nHost: a\r\n\r\n",
    "version in lower case": b"GET / http/1.1\r\nHost: a\r\n\r\n",
    "version of something else": b"GET / HTTQ/1.1\r\nHost: a\r\n\r\n",
    "no version": b"GET /\r\nHost: a\r\n\r\n",
    "no HTTP/2 preface": b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n",
    "two spaces before the target": b"GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
    "two spaces before the version": b"GET /  HTTP/1.1\r\nHost: a\r\n\r\n",
    "space after the version": b"GET / HTTP/1.1 \r\nHost: a\r\n\r\n",
    "tab for a space": b"GET\t/\tHTTP/1.1\r\nHost: a\r\n\r\n",
    "space in the target": b"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n",
    "control in the target": b"GET /a\x01 HTTP/1.1\r\nHost: a\r\n\r\n",
    "high byte in the target": b"GET /\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\n",
    "fragment": b"GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n",
    "relative target": b"GET a HTTP/1.1\r\nHost: a\r\n\r\n",
    "asterisk without OPTIONS": b"GET * HTTP/1.1\r\nHost: a\r\n\r\n",
    "URL with user": b"GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n",
    "URL without host": b"GET http:/// HTTP/1.1\r\nHost: a\r\n\r\n",
    "URL of another scheme": b"GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
    "method with a colon": b"GE:T / HTTP/1.1\r\nHost: a\r\n\r\n",
    "leading space": b" GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "two empty lines first": b"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "LF first": b"\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "TLS hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "malformed Connection": b"GET / HTTP/1.1\r\nHost: a\r\nConnection: a b\r\n\r\n",
    "two request ids": GET + b"X-Request-ID: 1\r\nX-Request-ID: 2\r\n\r\n",
    "Trailer announcing CL": POST + b"Transfer-Encoding: chunked\r\nTrailer: Content-Length\r\n\r\n0\r\n\r\n",
    "chunk size empty": CHUNKED + b"\r\n\r\n",
    "chunk size with plus": CHUNKED + b"+1\r\na\r\n0\r\n\r\n",
    "chunk size with minus": CHUNKED + b"-1\r\na\r\n0\r\n\r\n",
    "chunk size with 0x": CHUNKED + b"0x1\r\na\r\n0\r\n\r\n",
    "chunk size with underscore": CHUNKED + b"1_0\r\n0123456789abcdef\r\n0\r\n\r\n",
    "chunk size with space before": CHUNKED + b" 1\r\na\r\n0\r\n\r\n",
    "chunk size with space behind": CHUNKED + b"1 \r\na\r\n0\r\n\r\n",
    "chunk size of 17 digits": CHUNKED + b"00000000000000001\r\na\r\n0\r\n\r\n",
    "chunk line with LF": CHUNKED + b"1\na\r\n0\r\n\r\n",
    "chunk line with CR": CHUNKED + b"1\ra\r\n0\r\n\r\n",
    "chunk data too long": CHUNKED + b"1\r\nab\r\n0\r\n\r\n",
    "chunk data ended by LF": CHUNKED + b"1\r\na\n0\r\n\r\n",
    "chunk data ended by CR": CHUNKED + b"1\r\na\r0\r\n\r\n",
    "chunk data not ended": CHUNKED + b"1\r\na0\r\n\r\n",
    "chunk size with space before the extension": CHUNKED + b"1 ;a\r\na\r\n0\r\n\r\n",
    "chunk extension with LF": CHUNKED + b"1;a\nb\r\na\r\n0\r\n\r\n",
    "chunk extension with CR": CHUNKED + b"1;a\rb\r\na\r\n0\r\n\r\n",
    "chunk extension with NUL": CHUNKED + b"1;a\0\r\na\r\n0\r\n\r\n",
    "last chunk with LF": CHUNKED + b"0\n\n",
    "trailer CL": CHUNKED + b"0\r\nContent-Length: 1\r\n\r\n",
    "trailer TE": CHUNKED + b"0\r\nTransfer-Encoding: chunked\r\n\r\n",
    "trailer Host": CHUNKED + b"0\r\nHost: a\r\n\r\n",
    "trailer Authorization": CHUNKED + b"0\r\nAuthorization: a\r\n\r\n",
    "trailer Cookie": CHUNKED + b"0\r\nCookie: a\r\n\r\n",
    "trailer CL with underscore": CHUNKED + b"0\r\nContent_Length: 1\r\n\r\n",
    "trailer X-Forwarded-For": CHUNKED + b"0\r\nX-Forwarded-For: a\r\n\r\n",
    "trailer folded": CHUNKED + b"0\r\nX: a\r\n b\r\n\r\n",
    "trailer with bare LF": CHUNKED + b"0\r\nX: a\nY: b\r\n\r\n",
    "trailer without colon": CHUNKED + b"0\r\nX\r\n\r\n",
    "trailer with space before colon": CHUNKED + b"0\r\nX : a\r\n\r\n",
}

TAKEN = {
    "plain": GET + b"\r\n",
    "CL once": POST + b"Content-Length: 1\r\n\r\na",
    "CL zero": POST + b"Content-Length: 0\r\n\r\n",
    "CL with spaces around": POST + b"Content-Length:   1  \r\n\r\na",
    "CL with leading zeros": POST + b"Content-Length: 0001\r\n\r\na",
    "TE chunked": CHUNKED + b"1\r\na\r\n0\r\n\r\n",
    "TE in other case": POST + b"transfer-encoding: Chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
    "no space after colon": GET + b"X:a\r\n\r\n",
    "tab in a value": GET + b"X: a\tb\r\n\r\n",
    "high byte in a value": GET + b"X: \xe9\r\n\r\n",
    "empty value": GET + b"X:\r\n\r\n",
    "all token characters in a name": GET + b"!#$%&'*+-.^_`|~0aZ: a\r\n\r\n",
    "Host with port": b"GET / HTTP/1.1\r\nHost: a:80\r\nConnection: close\r\n\r\n",
    "Host with address": b"GET / HTTP/1.1\r\nHost: [::1]:80\r\nConnection: close\r\n\r\n",
    "HTTP/1.0 without Host": b"GET / HTTP/1.0\r\n\r\n",
    "URL as target": b"GET http://a/ HTTP/1.1\r\nHost: b\r\nConnection: close\r\n\r\n",
    "one empty line first": b"\r\n" + GET + b"\r\n",
    "chunk size of 16 digits": CHUNKED + b"0000000000000001\r\na\r\n0\r\n\r\n",
    "chunk size in both cases": CHUNKED + b"A\r\n0123456789\r\nb\r\n0123456789a\r\n0\r\n\r\n",
    "chunk extension": CHUNKED + b'1;a="b"\r\na\r\n0;c\r\n\r\n',
    "harmless trailer": CHUNKED + b"0\r\nX-Checksum: a\r\n\r\n",
}


@pytest.mark.parametrize("bytewise", [False, True], ids=["whole", "bytewise"])
@pytest.mark.parametrize("request_bytes", REFUSED.values(), ids=REFUSED.keys())
async def test_ambiguous_request_is_refused_and_the_connection_closed(request_bytes: bytes, bytewise: bool) -> None:
    async with proxied() as proxy:
        answer = await proxy.talk(request_bytes + GET + b"\r\n", bytewise=bytewise)
        assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")
        assert answer.count(b"HTTP/1.1 ") == 1
        assert b"\r\nConnection: close\r\n" in answer
        assert b"\r\nx-headgate-reason: " in answer


@pytest.mark.parametrize("request_bytes", REFUSED.values(), ids=REFUSED.keys())
async def test_no_origin_sees_a_whole_request_that_was_refused(request_bytes: bytes) -> None:
    async with proxied() as proxy:
        await proxy.talk(request_bytes)
        # A body may turn out wrong after its head was sent; then the upstream connection breaks off in it.
        assert not any(b"transfer-encoding" not in head.lower() for head in proxy.origin.heads)


@pytest.mark.parametrize("bytewise", [False, True], ids=["whole", "bytewise"])
@pytest.mark.parametrize("request_bytes", TAKEN.values(), ids=TAKEN.keys())
async def test_right_request_is_passed_on(request_bytes: bytes, bytewise: bool) -> None:
    async def script(conversation):
        head = await conversation.head()
        if b"chunked" in head:
            while (await conversation.reader.readline()) != b"0\r\n":
                pass
            while (await conversation.reader.readline()) != b"\r\n":
                pass
        await conversation.send(OK)

    async with proxied(script) as proxy:
        answer = await proxy.talk(request_bytes, bytewise=bytewise)
        assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
        assert len(proxy.origin.heads) == 1


LIMITS = {
    "431 long head": (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 3000 + b"\r\n\r\n", 431),
    "431 long head without end": (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 3000, 431),
    "431 many fields": (b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: a\r\n" * 20 + b"\r\n", 431),
    "414 long target": (b"GET /" + b"a" * 600 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 414),
    "414 long target without end": (b"GET /" + b"a" * 600, 414),
    "413 long body": (POST + b"Content-Length: 101\r\n\r\n", 413),
    "413 long chunked body": (CHUNKED + b"64\r\n" + b"a" * 100 + b"\r\n1\r\na\r\n0\r\n\r\n", 413),
    "501 unknown method": (b"BREW / HTTP/1.1\r\nHost: a\r\n\r\n", 501),
    "417 unknown expectation": (POST + b"Expect: magic\r\nContent-Length: 1\r\n\r\na", 417),
}


@pytest.mark.parametrize(("request_bytes", "status"), LIMITS.values(), ids=LIMITS.keys())
async def test_request_over_a_limit_is_refused_with_its_status(request_bytes: bytes, status: int) -> None:
    config = ProxyConfig(max_head=2000, max_target=500, max_header_count=16, max_body=100)
    async with proxied(config=config) as proxy:
        answer = await proxy.talk(request_bytes)
        assert answer.startswith(b"HTTP/1.1 %d " % status)
        assert b"\r\nConnection: close\r\n" in answer


async def test_request_at_every_limit_is_taken() -> None:
    config = ProxyConfig(max_head=2000, max_target=500, max_header_count=16, max_body=100)
    target = b"/" + b"a" * 499
    head = (
        b"POST " + target + b" HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 100\r\n" + b"X: a\r\n" * 13
    )
    async with proxied(answering(OK), config=config) as proxy:
        answer = await proxy.talk(head + b"\r\n" + b"b" * 100)
        assert answer.startswith(b"HTTP/1.1 200 ")
