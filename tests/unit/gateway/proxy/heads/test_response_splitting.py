"""Nothing that anybody puts into a head can add a line to it, and nothing passes that was not written anew.

Texts are made of what separates lines and fields somewhere: CR, LF, the line ends of Unicode, NUL, colons.
"""

import contextlib
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from fakes.gateway.proxied import answering, proxied
from fakes.peers.http2 import http2_client, request
from headgate.common.table import ClientAuth, Provenance, Stickiness, Upstream
from headgate.gateway.balancing.sessions import StickySession
from headgate.gateway.balancing.stickiness import StickyCookie
from headgate.gateway.errors import BadMatch
from headgate.gateway.plugins.interface import BadHeader, Response
from headgate.gateway.plugins.interface.errors import PluginRefused
from headgate.gateway.plugins.interface.headers import Headers
from headgate.gateway.proxy.errors import BadMessage
from headgate.gateway.proxy.heads.facts import RequestFacts
from headgate.gateway.proxy.heads.own import own_answer
from headgate.gateway.proxy.heads.reading import read_answer_head, read_request_head
from headgate.gateway.proxy.http1.parser import AnswerParser, RequestParser
from headgate.gateway.proxy.http2.heads import grpc_answer, read_answer, read_request
from headgate.gateway.table.connections import connection_spec
from headgate.gateway.tls.backend import BackendContexts
from headgate.gateway.tls.errors import TlsConfigError
from headgate.gateway.tls.identity import identity_lines, read_identity
from headgate.gateway.tls.policy import ClientGuard
from unit.gateway.plugins.running import answered, asked, chain
from unit.gateway.plugins.running import request as plugin_request

EVIL = [
    "\r\n",
    "\n",
    "\r",
    "\0",
    "\x0b",
    "\x0c",
    "\x85",
    "\u2028",
    "\u010a",
    "\u560a",
    " ",
    ":",
    "a",
    "Set-Cookie: x=y",
]
TEXTS = st.lists(st.sampled_from(EVIL), max_size=6).map("".join) | st.text(max_size=8)
OCTETS = TEXTS.map(lambda text: text.encode("utf-8", "surrogatepass"))


def lines_in(raw: bytes) -> int:
    """Count lines as the most credulous reader would: at every CR and every LF; NUL is none at all."""
    assert b"\0" not in raw
    return len(raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")) - 1


@given(TEXTS, TEXTS)
def test_header_that_a_plugin_sets_is_one_line_or_refused(name: str, value: str) -> None:
    headers = Headers([("A", "1")])
    for change in (headers.set, headers.add):
        before = lines_in(headers.to_lines())
        with contextlib.suppress(BadHeader):
            change(name, value)
        assert lines_in(headers.to_lines()) <= before + 1


@given(TEXTS)
async def test_redirect_is_one_line_whatever_the_client_sent(text: str) -> None:
    octets = text.encode("utf-8", "surrogatepass").decode("latin-1")
    for config in (
        {"uri": "/$arg_x$http_x"},
        {"uri": "https://$host/$cookie_x"},
        {"regex_uri": ["^/(.*)$", "/z/${1}"]},
    ):
        asking = plugin_request(f"/{octets}?x={octets}")
        with contextlib.suppress(BadHeader):
            asking.headers.set("X", octets)
            asking.headers.set("Cookie", f"x={octets}")
        response = await asked(chain(("redirect", config)), asking)
        if response is not None and "Location" in response.headers:
            assert lines_in(response.headers.to_lines()) == len(response.headers.to_lines().splitlines())
            assert lines_in(response.headers.to_lines()) <= 2


@given(TEXTS, TEXTS)
async def test_what_plugins_are_configured_with_cannot_split(name: str, value: str) -> None:
    uses: list[tuple[str, dict[str, Any]]] = [
        ("response-rewrite", {"headers": {"set": {name: value}}}),
        ("cors", {"allow_origins": value}),
        ("redirect", {"uri": value}),
    ]
    for use in uses:
        try:
            plugins = chain(use)
        except PluginRefused:
            continue
        asking = plugin_request("/", [("Origin", "https://a")])
        answer = await asked(plugins, asking)
        if answer is None:
            answer = Response(200, Headers())
            await answered(plugins, asking, answer, b"")
        raw = answer.headers.to_lines()
        assert lines_in(raw) == raw.count(b"\r\n")
        assert all(b":" in line for line in raw.split(b"\r\n")[:-1])


@given(TEXTS, TEXTS, TEXTS)
def test_cookie_of_a_route_is_one_line_or_refused(name: str, path: str, domain: str) -> None:
    try:
        cookie = StickyCookie(Stickiness(cookie=name, path=path, domain=domain))
    except BadMatch:
        return
    facts = RequestFacts(b"GET", b"https", b"a", b"/", b"", b"1.1.1.1")
    assert lines_in(cookie.line(facts, StickySession((b"a",), b"b"))) == 1


def lines_of_own(status: int, reason: str) -> int:
    return lines_in(own_answer(status, reason, b"id", detailed=True)[0].lines)


@given(TEXTS, st.sampled_from([400, 404, 502, 503]))
def test_reason_of_an_answer_of_ours_stays_in_its_line(reason: str, status: int) -> None:
    assert lines_of_own(status, reason) == lines_of_own(status, "a")
    assert lines_in(grpc_answer(status, reason).lines) == lines_in(grpc_answer(status, "a").lines)


@given(TEXTS)
def test_host_of_an_upstream_is_a_host_or_refused(host: str) -> None:
    upstream = Upstream(
        key="c/d/s:80", host=host, provenance=Provenance(cluster="c", kind="Service", namespace="d", name="s")
    )
    with contextlib.suppress(BadMatch):
        assert lines_in((connection_spec(upstream, BackendContexts(lambda _: None)).host or "").encode()) == 0


@given(TEXTS)
def test_error_page_of_client_certificates_is_a_url_or_refused(url: str) -> None:
    with contextlib.suppress(TlsConfigError):
        assert lines_in(ClientGuard(ClientAuth(ca_pem="", mode="required", error_page=url)).error_page.encode()) == 0


KEY = ec.generate_private_key(ec.SECP256R1())


@given(
    TEXTS.filter(lambda text: 0 < len(text) <= 60 and text.isprintable() is False and text.encode("utf-8", "ignore"))
)
def test_names_in_a_certificate_stay_in_their_lines(name: str) -> None:
    now = datetime.now(UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, name.encode("utf-8", "ignore").decode())])
    certificate = (
        x509.CertificateBuilder(subject, subject, KEY.public_key(), 1, now, now + timedelta(1))
        .sign(KEY, hashes.SHA256())
        .public_bytes(serialization.Encoding.DER)
    )

    class Shown:
        asked = "a"
        identity = read_identity(certificate)

        def version(self) -> str | None:
            return None

    guard = ClientGuard(ClientAuth(ca_pem="", mode="required", pass_certificate=True))
    assert lines_in(identity_lines(guard, Shown())) == 4


@given(OCTETS, OCTETS)
def test_answer_of_an_upstream_is_written_anew_or_refused(name: bytes, value: bytes) -> None:
    raw = b"HTTP/1.1 200 OK\r\nA: b\r\n" + name + b": " + value + b"\r\n\r\n"
    end = raw.index(b"\r\n\r\n") + 4
    with contextlib.suppress(BadMessage):
        AnswerParser().head(raw[:end])
        answer = read_answer_head(raw[:end].split(b"\r\n")[:-1], None, 100)
        assert lines_in(answer.status_line) == 1
        assert lines_in(answer.lines) == answer.lines.count(b"\r\n") < raw.count(b"\r\n")
        # What came in as one line is one line for every reader, and has a name.
        assert all(b":" in line for line in answer.lines.split(b"\r\n")[:-1])


@given(OCTETS, OCTETS)
def test_request_is_written_anew_or_refused(name: bytes, value: bytes) -> None:
    raw = b"GET / HTTP/1.1\r\nHost: a\r\n" + name + b": " + value + b"\r\n\r\n"
    end = raw.index(b"\r\n\r\n") + 4
    with contextlib.suppress(BadMessage):
        RequestParser().head(raw[:end])
        fields = read_request_head(raw[:end].split(b"\r\n")[:-1], None, 100)
        assert lines_in(fields.lines) == fields.lines.count(b"\r\n")
        assert all(b":" in line for line in fields.lines.split(b"\r\n")[:-1])


@given(OCTETS, OCTETS)
def test_field_of_http2_is_one_line_of_http1_or_refused(name: bytes, value: bytes) -> None:
    pseudo = [(b":method", b"GET"), (b":scheme", b"http"), (b":authority", b"a"), (b":path", b"/")]
    with contextlib.suppress(BadMessage):
        assert lines_in(read_request([*pseudo, (name, value)], ended=True, max_count=100).fields.lines) <= 1
    with contextlib.suppress(BadMessage):
        assert lines_in(read_answer([(b":status", b"200"), (name, value)], 100).lines) <= 1
    with contextlib.suppress(BadMessage):
        head = read_request([*pseudo[:3], (b":path", b"/" + value)], ended=True, max_count=100)
        assert not set(b"\r\n \0") & set(head.target)


# Nothing raw

ODD = (
    b"GET /a HTTP/1.1\r\nhOST:a\r\nx-Odd:\t 1\t\r\nX-E:\r\nAccept:*/*\r\nConnection: X-Drop ,close\r\nx-drop: 1\r\n"
    b"TE: trailers\r\nX_Under: 1\r\nx-request-id: id\r\n\r\n"
)


async def test_head_of_a_request_reaches_the_upstream_only_as_it_is_written_anew() -> None:
    async with proxied() as proxy:
        await proxy.talk(ODD)
        assert proxy.origin.heads == [
            b"GET /a HTTP/1.1\r\nHost: a\r\nx-Odd: 1\t\r\nX-E: \r\nAccept: */*\r\nX-Forwarded-Host: a\r\n"
            b"X-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Port: %d\r\n"
            b"X-Real-IP: 127.0.0.1\r\nX-Request-ID: id\r\n\r\n" % proxy.port
        ]


async def test_body_reaches_the_upstream_in_chunks_of_ours() -> None:
    bodies: list[bytes] = []

    async def script(conversation: Any) -> None:
        _, body = await conversation.request()
        bodies.append(body)
        await conversation.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    async with proxied(script) as proxy:
        client = await proxy.connect()
        await client.send(
            b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
            b'0003;ext="x\r\r"\r\nabc\r\n0\r\n\r\n'.replace(b"\r\r", b"y")
        )
        await client.answer()
        assert bodies == [b"3\r\nabc\r\n0\r\n\r\n"]


HOP_BY_HOP = [b"keep-alive", b"proxy-connection", b"upgrade", b"connection", b"te", b"transfer-encoding", b"x-listed"]


async def test_hop_by_hop_fields_of_http1_answers_do_not_reach_http2() -> None:
    raw = (
        b"HTTP/1.1 200 OK\r\nConnection: X-Listed, keep-alive\r\nX-Listed: 1\r\nKeep-Alive: a\r\nUpgrade: h2c\r\n"
        b"Proxy-Connection: x\r\nTE: gzip\r\nTransfer-Encoding: chunked\r\nX-Kept: 1\r\n\r\n2\r\nok\r\n0\r\n\r\n"
    )
    async with proxied(answering(raw)) as proxy, http2_client(proxy.port) as client:
        answer = await client.fetch(request())
        assert (answer.status, bytes(answer.body)) == (200, b"ok")
        assert not set(HOP_BY_HOP) & set(answer.headers)
        assert answer.headers[b"x-kept"] == b"1"


@pytest.mark.parametrize("name", [b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"])
async def test_hop_by_hop_field_of_an_http2_request_is_refused(name: bytes) -> None:
    async with proxied() as proxy, http2_client(proxy.port) as client:
        stream_id = client.open(request(b"GET", b"/", (name, b"x")))
        await client.until(lambda: client.is_over(stream_id))
        assert proxy.origin.heads == []
