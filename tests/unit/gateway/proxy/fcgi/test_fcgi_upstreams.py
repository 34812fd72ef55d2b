"""Conversations with applications by FastCGI: parameters, bodies, answers, errors, and what ends them."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator

import pytest

from fakes.gateway.proxied import Conversation, Proxied, Script, proxied
from fakes.peers.fastcgi import STDERR, STDOUT, FcgiRequest, application, end, output, read_request, record
from fakes.virtual_time import in_virtual_time
from fakes.waiting import until
from headgate.common.table import CircuitBreaker
from headgate.common.table.fastcgi import VARIABLES
from headgate.gateway.health.circuit import Circuit
from headgate.gateway.model.connection import ConnectionSpec, FastCgiSettings
from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.fcgi.params import READERS
from headgate.gateway.proxy.peer import Peer
from headgate.gateway.proxy.policies import RetryPolicy, RoutePolicies

GET = b"GET /x?a=1&b=2 HTTP/1.1\r\nHost: A.example:81\r\n\r\n"
NOTHING = FastCgiSettings()
POST = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx"
HEAD = b"Content-Type: text/plain\r\nX-A: b\r\n\r\n"
OK = output(HEAD + b"ok")
PADDED = output(HEAD[:11], HEAD[11:] + b"o", b"k", padding=3)


@contextlib.asynccontextmanager
async def before(
    *scripts: Script, config: ProxyConfig | None = None, settings: FastCgiSettings = NOTHING
) -> AsyncIterator[Proxied]:
    async with proxied(*scripts, config=config) as proxy:
        spec = ConnectionSpec("fcgi", fastcgi=settings)
        proxy.target.pools = [proxy.pools.get("127.0.0.1", origin.port, spec) for origin in proxy.origins]
        yield proxy


async def ask(proxy: Proxied, data: bytes = GET) -> bytes:
    """Send a request, and give all that comes back."""
    return await proxy.talk(data.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1))


async def sent(data: bytes, settings: FastCgiSettings = NOTHING, config: ProxyConfig | None = None) -> FcgiRequest:
    """Return what an application gets of a request."""
    asked: list[FcgiRequest] = []
    async with before(application(OK, asked), settings=settings, config=config) as proxy:
        answer = await ask(proxy, data)
        assert answer.startswith(b"HTTP/1.1 200 "), answer
    (request,) = asked
    return request


# Requests


async def test_a_request_has_the_parameters_of_cgi() -> None:
    request = await sent(GET)
    assert request.role == 1
    assert not request.keeps_connection
    found = {name: value for name, value in request.params if not name.startswith(("HTTP_", "REMOTE_PORT", "SERVER_P"))}
    assert found == {
        "QUERY_STRING": "a=1&b=2",
        "REQUEST_METHOD": "GET",
        "CONTENT_TYPE": "",
        "CONTENT_LENGTH": "",
        "SCRIPT_NAME": "/x",
        "REQUEST_URI": "/x?a=1&b=2",
        "DOCUMENT_URI": "/x",
        "DOCUMENT_ROOT": "/usr/local/nginx/html",
        "REQUEST_SCHEME": "http",
        "GATEWAY_INTERFACE": "CGI/1.1",
        "SERVER_SOFTWARE": "headgate",
        "REMOTE_ADDR": "127.0.0.1",
        "REMOTE_USER": "",
        "SERVER_ADDR": "127.0.0.1",
        "SERVER_NAME": "a.example",
        "REDIRECT_STATUS": "200",
    }
    assert request["SERVER_PROTOCOL"] == "HTTP/1.1"
    assert request["HTTP_HOST"] == "A.example:81"
    assert request["HTTP_X_FORWARDED_FOR"] == "127.0.0.1"


async def test_header_fields_become_parameters() -> None:
    lines = b"X-One: 1\r\nx-two: 2\r\nX-Two: 3\r\nCookie: a=b\r\nCookie: c=d\r\nAuthorization: Basic dXNlcjpw\r\n"
    request = await sent(GET.replace(b"\r\n\r\n", b"\r\n" + lines + b"\r\n"))
    assert (request["HTTP_X_ONE"], request["HTTP_X_TWO"]) == ("1", "2, 3")
    assert request["HTTP_COOKIE"] == "a=b; c=d"
    assert request["REMOTE_USER"] == "user"


@pytest.mark.parametrize("name", ["Proxy", "proxy", "X_Forwarded_For", "Ssl_Client_Verify", "X.Y", "X!"])
async def test_names_that_cgi_takes_for_others_are_left_out(name: str) -> None:
    config = ProxyConfig(underscore_names="allow")
    request = await sent(GET.replace(b"\r\n\r\n", f"\r\n{name}: evil\r\n\r\n".encode()), config=config)
    assert "evil" not in {value for _, value in request.params}


@pytest.mark.parametrize(
    ("target", "script", "document"),
    [
        ("/", "/index.php", "/"),
        ("/a/?q=/", "/a/index.php", "/a/"),
        ("/a.php/b", "/a.php/b", "/a.php/b"),
        ("/%61%20b", "/a b", "/a b"),
        ("//a///b", "/a/b", "/a/b"),
        ("/a/../b", "/b", "/b"),
    ],
)
async def test_paths_are_decoded_and_resolved(target: str, script: str, document: str) -> None:
    data = GET.replace(b"/x?a=1&b=2", target.encode())
    request = await sent(data, FastCgiSettings("index.php"), ProxyConfig(path_normalization="off"))
    assert (request["SCRIPT_NAME"], request["DOCUMENT_URI"], request["REQUEST_URI"]) == (script, document, target)


async def test_a_path_that_leads_above_the_root_is_sent_nowhere() -> None:
    asked: list[FcgiRequest] = []
    async with before(application(OK, asked), config=ProxyConfig(path_normalization="off")) as proxy:
        answer = await ask(proxy, GET.replace(b"/x?", b"/%2e%2e/etc?"))
        assert answer.startswith(b"HTTP/1.1 502 ")
        assert not asked


async def test_parameters_of_the_upstream_go_first_and_have_variables() -> None:
    templates = (
        ("SCRIPT_FILENAME", "/app$fastcgi_script_name"),
        ("ALL", "${request_method}-$host-$arg_b.$arg_c/$http_x_one"),
        ("SERVER_NAME", "fixed"),
        ("HTTP_X_ONE", ""),
        ("HTTP_HOST", "$host"),
        ("HTTPS", "$https"),
    )
    data = GET.replace(b"\r\n\r\n", b"\r\nX-One: 1\r\n\r\n")
    request = await sent(data, FastCgiSettings("", templates))
    assert request["SCRIPT_FILENAME"] == "/app/x"
    assert request["ALL"] == "GET-a.example-2./1"
    assert (request["SERVER_NAME"], request["HTTP_X_ONE"], request["HTTP_HOST"]) == ("fixed", "", "a.example")
    assert "HTTPS" not in request.names()


def test_all_variables_that_a_table_may_have_are_known() -> None:
    assert READERS.keys() == VARIABLES


async def test_a_body_passes_with_its_length() -> None:
    body = bytes(range(256)) * 1000
    request = await sent(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
    assert request.body == body
    assert request["CONTENT_LENGTH"] == request["HTTP_CONTENT_LENGTH"] == str(len(body))


@pytest.mark.parametrize("at_once", [True, False])
async def test_a_body_of_unknown_length_is_read_before_its_length_is_told(at_once: bool) -> None:
    asked: list[FcgiRequest] = []
    async with before(application(OK, asked)) as proxy:
        proxy.target.policies = RoutePolicies()
        proxy.target.policies.needs_length = True
        client = await proxy.connect()
        head = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        await client.send(head + b"3\r\nabc\r\n" if not at_once else head + b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
        if not at_once:
            await until(lambda: proxy.stats.buffers.used == 3)
            await client.send(b"2\r\nde\r\n0\r\n\r\n")
        assert (await client.rest()).startswith(b"HTTP/1.1 200 ")
    assert asked[0].body == b"abcde"
    assert asked[0]["CONTENT_LENGTH"] == "5"


# Answers


@pytest.mark.parametrize("bytewise", [False, True])
@pytest.mark.parametrize("records", [OK, PADDED])
async def test_an_answer_is_passed_on(records: bytes, bytewise: bool) -> None:
    async with before(application(records, bytewise=bytewise)) as proxy:
        head, _, body = (await ask(proxy)).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-A: b\r\n")
        assert body in (b"2\r\nok\r\n0\r\n\r\n", b"1\r\no\r\n1\r\nk\r\n0\r\n\r\n")
        assert proxy.target.pools[0].in_flight == 0


async def test_each_request_has_a_connection_of_its_own() -> None:
    async with before(application(OK)) as proxy:
        client = await proxy.connect()
        for _ in range(3):
            await client.send(GET)
            await client.head()
            assert await client.exactly(12) == b"2\r\nok\r\n0\r\n\r\n"
        assert len(proxy.origin.conversations) == 3
        assert proxy.target.pools[0].connection_count == 0


async def test_a_body_of_known_length_ends_there() -> None:
    records = record(STDOUT, b"Content-Length: 2\r\n\r\nok and more")
    async with before(application(records)) as proxy:
        client = await proxy.connect()
        await client.send(GET)
        assert (await client.answer())[1] == b"ok"


@pytest.mark.parametrize(
    ("method", "head"), [(b"HEAD", b"Content-Length: 9"), (b"GET", b"Status: 304"), (b"GET", b"Status: 204")]
)
async def test_answers_without_body(method: bytes, head: bytes) -> None:
    async with before(application(output(head + b"\r\n\r\nunwanted"))) as proxy:
        answer = await ask(proxy, GET.replace(b"GET", method))
        assert answer.endswith(b"\r\n\r\n")
        assert b"unwanted" not in answer


async def test_the_connection_may_end_the_answer_once_its_output_has_ended() -> None:
    async with before(application(record(STDOUT, HEAD + b"ok") + record(STDOUT))) as proxy:
        assert (await ask(proxy)).endswith(b"2\r\nok\r\n0\r\n\r\n")


async def test_an_offer_of_websockets_is_a_plain_request() -> None:
    offer = b"\r\nUpgrade: websocket\r\nSec-WebSocket-Key: a\r\nSec-WebSocket-Version: 13\r\n"
    async with before(application(OK)) as proxy:
        client = await proxy.connect()
        await client.send(GET.replace(b"\r\n\r\n", offer + b"Connection: Upgrade\r\n\r\n"))
        assert (await client.head()).startswith(b"HTTP/1.1 200 ")


async def test_a_slow_client_holds_the_application_back() -> None:
    size, sent_to = 32 << 20, [0]

    async def much(conversation: Conversation) -> None:
        await read_request(conversation)
        await conversation.send(record(STDOUT, HEAD))
        while sent_to[0] < size:
            conversation.writer.write(record(STDOUT, bytes(1 << 15)))
            await conversation.writer.drain()
            sent_to[0] += 1 << 15
        await conversation.send(record(STDOUT) + end())

    async with before(much) as proxy:
        client = await proxy.connect()
        await client.send(GET.replace(b"HTTP/1.1", b"HTTP/1.0"))
        await client.head()
        held = -1
        while held != sent_to[0]:
            held = sent_to[0]
            await asyncio.sleep(0.1)
        assert held < size
        assert len(await client.rest()) == size


# Errors


async def test_what_the_application_says_of_errors_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    records = record(STDERR, b"PHP Warning:\n in x\x1b") + record(STDERR, b"y" * 5000) + OK
    async with before(application(records)) as proxy:
        with caplog.at_level(logging.WARNING):
            assert (await ask(proxy)).startswith(b"HTTP/1.1 200 ")
    (line,) = [each.getMessage() for each in caplog.records]
    assert "says: PHP Warning:\\n in x\\x1byyy" in line
    assert len(line) < 2200


@pytest.mark.parametrize(
    "records",
    [
        end(),
        output(b"A: b\r\n"),
        output(b"no head\r\n\r\n"),
        output(HEAD[:-4] + b"\x00\r\n\r\n"),
        output(b"Content-Length: 5\r\n\r\nabc"),
        output(HEAD) + b"\x01",
        record(STDOUT, HEAD, version=9),
        record(STDOUT, b"A: " + b"b" * 65000) + record(STDOUT, b"c" * 65000),
        end(3),
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    ],
)
async def test_an_answer_that_is_none_is_a_502(records: bytes) -> None:
    async with before(application(records)) as proxy:
        assert (await ask(proxy)).startswith(b"HTTP/1.1 502 ")
        assert proxy.target.pools[0].in_flight == 0


@pytest.mark.parametrize(
    "records", [record(STDOUT, HEAD + b"ok"), record(STDOUT, HEAD + b"ok") + record(STDOUT, b"a", request=2)]
)
async def test_an_answer_that_breaks_off_is_cut_off(records: bytes) -> None:
    async with before(application(records)) as proxy:
        assert not (await ask(proxy)).endswith(b"0\r\n\r\n")


async def hang_up(conversation: Conversation) -> None:
    await read_request(conversation)


@pytest.mark.parametrize(("data", "attempts", "status"), [(GET, 1, 200), (GET, 0, 502), (POST, 1, 502)])
async def test_a_request_goes_to_another_endpoint_by_the_rules_of_the_route(
    data: bytes, attempts: int, status: int
) -> None:
    async with before(hang_up, application(OK)) as proxy:
        proxy.target.policies = RoutePolicies(retries=RetryPolicy(attempts))
        assert (await ask(proxy, data)).startswith(b"HTTP/1.1 %d " % status)


@pytest.mark.parametrize("status", [1, 2])
async def test_an_application_that_has_no_room_is_asked_again(status: int) -> None:
    answers = [end(status), OK]
    async with before(application(lambda _: answers.pop(0))) as proxy:
        assert (await ask(proxy, POST)).startswith(b"HTTP/1.1 200 ")


async def silent(conversation: Conversation) -> None:
    await read_request(conversation)
    await conversation.send(record(STDERR, b"still here"))
    await conversation.reader.read()


@in_virtual_time
async def test_an_application_that_does_not_answer_is_a_504() -> None:
    async with before(silent, config=ProxyConfig(read_timeout_s=2)) as proxy:
        assert (await ask(proxy)).startswith(b"HTTP/1.1 504 ")


async def test_a_client_that_leaves_ends_the_request() -> None:
    async with before(silent) as proxy:
        client = await proxy.connect()
        await client.send(GET)
        await until(lambda: proxy.target.pools[0].in_flight == 1)
        client.reset()
        await until(lambda: proxy.target.pools[0].in_flight == 0)


async def test_connections_are_counted_by_the_bounds_of_the_upstream() -> None:
    circuit = Circuit(CircuitBreaker(max_connections=1))
    async with before(application(OK)) as proxy:
        pool = proxy.target.pools[0]
        assert circuit.acquire_connection()
        side = await pool.connect(Peer(b"127.0.0.1", b"http", b"80"))
        side.count_by(circuit)
        side.discard()
        await until(lambda: circuit.connections == 0)
        assert pool.acquire(certain=True) is None
        assert pool.idle_count == 0
