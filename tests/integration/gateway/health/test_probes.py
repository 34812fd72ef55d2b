"""One check of an endpoint over real sockets."""

import asyncio
import ssl
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from cryptography import x509
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, RequestReceived, StreamEnded

from fakes.gateway.tls import Authority, SelfSigned
from headgate.common.table import ActiveCheck, BackendProtocol
from headgate.gateway.health.asking import MAX_ANSWER
from headgate.gateway.health.h2_asking import health_request
from headgate.gateway.health.probes import probe
from headgate.gateway.health.target import CheckTarget

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(serve: Serve, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the gateway hangs up when it knows enough
        finally:
            writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def server_tls(certificate: SelfSigned, *alpn: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pair.pem"
        path.write_bytes(certificate.certificate_pem + certificate.key_pem)
        context.load_cert_chain(path)
    context.set_alpn_protocols(list(alpn))
    return context


class Http:
    """Answers every request with the same bytes, and keeps what was asked."""

    def __init__(self, answer: bytes, *, bytewise: bool = False) -> None:
        self.asked = b""
        self._pieces = [answer[i : i + 1] for i in range(len(answer))] if bytewise else [answer]

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.asked += await reader.readuntil(b"\r\n\r\n")
        for piece in self._pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)


def status(code: int) -> bytes:
    return f"HTTP/1.1 {code} Whatever\r\nContent-Length: 0\r\n\r\n".encode()


def target(port: int, check: ActiveCheck, protocol: BackendProtocol = BackendProtocol.HTTP) -> CheckTarget:
    return CheckTarget("127.0.0.1", port, check, protocol)


@pytest.mark.parametrize("code", [200, 302, 399])
async def test_a_status_up_to_399_is_a_success(code: int) -> None:
    async with serving(Http(status(code), bytewise=True)) as port:
        assert await probe(target(port, ActiveCheck())) is None


@pytest.mark.parametrize("code", [400, 404, 503])
async def test_a_status_from_400_is_a_failure(code: int) -> None:
    async with serving(Http(status(code))) as port:
        assert await probe(target(port, ActiveCheck())) == f"status {code}"


async def test_listed_statuses_are_the_only_successes() -> None:
    async with serving(Http(status(404))) as port:
        assert await probe(target(port, ActiveCheck(statuses=(200, 404)))) is None
        assert await probe(target(port, ActiveCheck(statuses=(200,)))) == "status 404"


async def test_an_informational_answer_is_not_the_answer() -> None:
    async with serving(Http(b"HTTP/1.1 103 Early Hints\r\n\r\n" + status(500))) as port:
        assert await probe(target(port, ActiveCheck())) == "status 500"


async def test_the_request_has_path_host_and_headers_of_the_check() -> None:
    server = Http(status(200))
    check = ActiveCheck(path="/live?full=1", host="web.example.com", headers=(("User-Agent", "me"), ("X-Probe", "1")))
    async with serving(server) as port:
        assert await probe(target(port, check)) is None
    lines = server.asked.decode().split("\r\n")
    assert lines[:2] == ["GET /live?full=1 HTTP/1.1", "Host: web.example.com"]
    assert {"User-Agent: me", "X-Probe: 1", "Connection: close"} <= set(lines)


@pytest.mark.parametrize(
    "check",
    [
        ActiveCheck(path="/a b"),
        ActiveCheck(path="/\r\nX: 1"),
        ActiveCheck(host="a\r\nX: 1"),
        ActiveCheck(headers=(("X", "1\r\nY: 2"),)),
    ],
)
async def test_a_check_that_would_leave_its_line_sends_nothing_and_fails(check: ActiveCheck) -> None:
    server = Http(status(200))
    async with serving(server) as port:
        assert "characters" in (await probe(target(port, check)) or "")
    assert server.asked == b""


async def test_a_check_has_a_method_whose_answer_may_have_no_body() -> None:
    server = Http(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")
    async with serving(server) as port:
        assert await probe(target(port, ActiveCheck(method="HEAD"))) is None
    assert server.asked.startswith(b"HEAD / HTTP/1.1\r\n")


async def test_an_answer_that_does_not_come_fails_at_the_timeout() -> None:
    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with serving(never) as port:
        assert await probe(target(port, ActiveCheck(timeout_s=0.05))) == "no answer within 0.05 s"


@pytest.mark.parametrize(
    ("answer", "failure"),
    [
        (b"", "the connection was closed before the answer"),
        (b"HTTP/1.1 200 OK\r\n", "the connection was closed before the answer"),
        (b"SSH-2.0-OpenSSH_9.9\r\n", "the answer is not HTTP/1.1: "),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * (MAX_ANSWER + 10), f"the answer is over {MAX_ANSWER} bytes"),
    ],
)
async def test_what_is_no_answer_fails(answer: bytes, failure: str) -> None:
    async with serving(Http(answer)) as port:
        assert (await probe(target(port, ActiveCheck())) or "").startswith(failure)


@pytest.mark.parametrize("kind", ["http", "tcp", "grpc"])
async def test_a_refused_connection_fails(kind: str) -> None:
    async with serving(Http(b"")) as port:
        pass
    assert await probe(target(port, ActiveCheck.model_validate({"type": kind}))) == "Connection refused"


async def test_a_tcp_check_is_content_with_a_connection() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with serving(silent) as port:
        assert await probe(target(port, ActiveCheck(type="tcp"))) is None


async def test_a_certificate_is_checked_against_the_upstreams_authorities_and_name() -> None:
    certificate = SelfSigned("web.example.com")
    async with serving(Http(status(200)), server_tls(certificate, "http/1.1")) as port:
        plain = target(port, ActiveCheck(type="https", host="web.example.com"), BackendProtocol.HTTPS)
        trusting = plain._replace(ca_pem=certificate.certificate_pem.decode())
        assert await probe(trusting) is None
        assert "self-signed certificate" in (await probe(plain) or "")
        other = trusting._replace(check=ActiveCheck(type="https", host="other.example.com"))
        assert "other.example.com" in (await probe(other) or "")
        assert await probe(plain._replace(check=ActiveCheck(type="https", verify=False))) is None


async def test_a_certificate_that_does_not_name_its_signer_is_trusted_as_by_requests(tmp_path: Path) -> None:
    authority = Authority()
    issued = authority.issue("web.example.com", x509.DNSName("web.example.com"), names_signer=False)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*issued.write(tmp_path))
    async with serving(Http(status(200)), context) as port:
        checked = target(port, ActiveCheck(type="https", host="web.example.com"), BackendProtocol.HTTPS)
        assert await probe(checked._replace(ca_pem=authority.pem.decode())) is None


async def test_tls_on_a_plain_port_fails() -> None:
    async with serving(Http(status(200))) as port:
        assert await probe(target(port, ActiveCheck(type="https", timeout_s=0.5))) is not None


class Http2:
    """A server of one HTTP/2 answer per connection; the answer is written by the test."""

    def __init__(self, answer: Callable[[H2Connection], None]) -> None:
        self.headers: dict[bytes, bytes] = {}
        self.body = b""
        self._answer = answer

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = H2Connection(H2Configuration(client_side=False, header_encoding=None))
        connection.initiate_connection()
        while True:
            writer.write(connection.data_to_send())
            data = await reader.read(65536)
            if not data:
                return
            for event in connection.receive_data(data):
                if isinstance(event, RequestReceived):
                    self.headers = dict(event.headers or ())
                elif isinstance(event, DataReceived):
                    self.body += event.data or b""
                elif isinstance(event, StreamEnded):
                    self._answer(connection)


def grpc_answer(message: bytes, code: int = 0) -> Callable[[H2Connection], None]:
    def answer(connection: H2Connection) -> None:
        connection.send_headers(1, [(":status", "200"), ("content-type", "application/grpc")])
        connection.send_data(1, b"\0" + len(message).to_bytes(4, "big") + message)
        connection.send_headers(1, [("grpc-status", str(code))], end_stream=True)

    return answer


@pytest.mark.parametrize(
    ("message", "failure"),
    [
        (b"\x08\x01", None),
        (b"\x08\x02", "the service is NOT_SERVING"),
        (b"\x08\x03", "the service is SERVICE_UNKNOWN"),
        (b"", "the service is UNKNOWN"),
        (b"\x08\x09", "the service is 9"),
    ],
)
async def test_a_grpc_service_must_be_serving(message: bytes, failure: str | None) -> None:
    server = Http2(grpc_answer(message))
    async with serving(server) as port:
        assert await probe(target(port, ActiveCheck(type="grpc", service="shop.Cart"), BackendProtocol.H2C)) == failure
    assert server.headers[b":path"] == b"/grpc.health.v1.Health/Check"
    assert server.headers[b"te"] == b"trailers"
    assert server.body == b"\0\0\0\0\x0b\x0a\x09shop.Cart"


def trailers_only(connection: H2Connection) -> None:
    headers = [(":status", "200"), ("content-type", "application/grpc"), ("grpc-status", "12")]
    connection.send_headers(1, headers, end_stream=True)


async def test_a_server_without_the_health_service_fails_with_its_grpc_status() -> None:
    async with serving(Http2(trailers_only)) as port:
        assert await probe(target(port, ActiveCheck(type="grpc"))) == "gRPC status 12"


async def test_an_error_after_a_serving_message_fails() -> None:
    async with serving(Http2(grpc_answer(b"\x08\x01", 14))) as port:
        assert await probe(target(port, ActiveCheck(type="grpc"))) == "gRPC status 14"


async def test_a_reset_stream_and_a_goaway_fail() -> None:
    async with serving(Http2(lambda connection: connection.reset_stream(1, 8))) as port:
        assert await probe(target(port, ActiveCheck(type="grpc"))) == "the stream was reset with code 8"
    async with serving(Http2(lambda connection: connection.close_connection(11))) as port:
        assert await probe(target(port, ActiveCheck(type="grpc"))) == "GOAWAY with code 11"


async def test_a_server_that_speaks_no_http2_fails() -> None:
    async with serving(Http(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")) as port:
        assert await probe(target(port, ActiveCheck(type="grpc"))) is not None


async def test_grpc_is_checked_over_tls_where_requests_go_over_tls() -> None:
    async with serving(Http2(grpc_answer(b"\x08\x01")), server_tls(SelfSigned("localhost"), "h2")) as port:
        check = ActiveCheck(type="grpc", verify=False)
        assert await probe(target(port, check, BackendProtocol.H2)) is None


def plain_answer(code: int) -> Callable[[H2Connection], None]:
    return lambda connection: connection.send_headers(1, [(":status", str(code))], end_stream=True)


async def test_an_http_check_of_an_h2c_upstream_is_made_over_http2() -> None:
    server = Http2(plain_answer(204))
    check = ActiveCheck(path="/live", host="web.example.com", headers=(("X-Probe", "1"),))
    async with serving(server) as port:
        assert await probe(target(port, check, BackendProtocol.H2C)) is None
    assert server.headers[b":authority"] == b"web.example.com"
    assert server.headers[b"x-probe"] == b"1"
    async with serving(Http2(plain_answer(503))) as port:
        assert await probe(target(port, check, BackendProtocol.H2C)) == "status 503"


async def test_an_http_check_of_an_fcgi_upstream_is_content_with_a_connection() -> None:
    async with serving(Http2(plain_answer(503))) as port:
        assert await probe(target(port, ActiveCheck(), BackendProtocol.FCGI)) is None
    assert await probe(target(port, ActiveCheck(), BackendProtocol.FCGI)) is not None


def test_a_long_service_name_has_a_length_of_two_bytes() -> None:
    assert health_request("x" * 200)[:8] == b"\0\0\0\0\xcb\x0a\xc8\x01"


async def test_checks_leave_no_connection_and_no_task() -> None:
    tasks = len(asyncio.all_tasks())
    ended = asyncio.Event()

    async def note_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.read()
            await reader.read()
        finally:
            ended.set()

    async with serving(note_end) as port:
        await probe(target(port, ActiveCheck(timeout_s=0.05)))
        async with asyncio.timeout(30):
            await ended.wait()
    await asyncio.sleep(0)
    assert len(asyncio.all_tasks()) <= tasks + 1
