"""What clients read in answers of the gateway's own: their own faults and the request's id, nothing of the inside."""

import pytest

from fakes.gateway.proxied import Proxied, answering, proxied
from fakes.peers.http2 import http2_client, request
from headgate.gateway.plugins.interface import Plugin, PluginConfig, PluginServices
from headgate.gateway.plugins.interface.messages import Request, Response
from headgate.gateway.plugins.runtime.chain import PluginChain
from headgate.gateway.plugins.runtime.run import RoutePlugins
from headgate.gateway.proxy.policies import RoutePolicies

CLOSE = b"Connection: close\r\n\r\n"
GET = b"GET / HTTP/1.1\r\nHost: a\r\n"
GRPC = ((b"content-type", b"application/grpc"), (b"te", b"trailers"))


def header(answer: bytes, name: bytes) -> bytes:
    """Give the one value of a header; fails where there is none or more than one."""
    lines = [line for line in answer.partition(b"\r\n\r\n")[0].split(b"\r\n") if line.lower().startswith(name + b":")]
    assert len(lines) == 1, answer
    return lines[0].partition(b":")[2].strip()


def logged_id(proxy: Proxied) -> bytes:
    return proxy.log.records[-1][9]


async def test_a_failure_behind_the_gateway_is_its_status_and_the_id_that_the_log_has() -> None:
    async with proxied(detailed=False) as proxy:
        proxy.target.pools = []
        answer = await proxy.talk(GET + CLOSE)
        assert answer.endswith(b"\r\n\r\n503 Service Unavailable\n")
        assert b"default/web" not in answer
        assert b"x-headgate-reason" not in answer
        assert header(answer, b"x-request-id") == logged_id(proxy)
        assert proxy.log.records[-1][14] == "Service default/web not found"


async def test_an_invalid_answer_of_an_endpoint_is_a_502_without_its_address() -> None:
    async with proxied(answering(b"nonsense\r\n\r\n"), detailed=False) as proxy:
        answer = await proxy.talk(GET + CLOSE)
        assert answer.endswith(b"\r\n\r\n502 Bad Gateway\n")
        assert b"127.0.0.1" not in answer


async def test_a_client_reads_what_is_wrong_with_its_own_request() -> None:
    async with proxied(detailed=False) as proxy:
        answer = await proxy.talk(b"GET / HTTP/1.1\r\nHost: unknown\r\n" + CLOSE)
        assert answer.endswith(b"404 Not Found: no route takes this host and path\n")
        assert header(answer, b"x-request-id") == logged_id(proxy)


async def test_a_request_that_cannot_be_read_has_an_id_too() -> None:
    async with proxied(detailed=False) as proxy:
        answer = await proxy.talk(b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n" + CLOSE)
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert header(answer, b"x-request-id") == logged_id(proxy)


async def test_the_id_that_the_client_chose_comes_back() -> None:
    async with proxied(detailed=False) as proxy:
        proxy.target.pools = []
        assert header(await proxy.talk(GET + b"X-Request-ID: mine\r\n" + CLOSE), b"x-request-id") == b"mine"


async def test_the_long_form_names_the_reason_in_body_and_header() -> None:
    async with proxied(detailed=True) as proxy:
        proxy.target.pools = []
        answer = await proxy.talk(GET + CLOSE)
        assert header(answer, b"x-headgate-reason") == b"Service default/web not found"
        assert answer.endswith(b"503 Service Unavailable: Service default/web not found\n")
        assert header(answer, b"x-request-id") == logged_id(proxy)


@pytest.mark.parametrize(
    ("detailed", "message"), [(False, b"Service Unavailable"), (True, b"Service default/web not found")]
)
async def test_calls_of_grpc_read_the_same_in_their_message(detailed: bool, message: bytes) -> None:
    async with proxied(detailed=detailed) as proxy, http2_client(proxy.port) as client:
        proxy.target.pools = []
        answer = await client.fetch(request(b"POST", b"/a.B/C", *GRPC))
        assert answer.headers[b"grpc-message"] == message
        assert answer.headers[b"x-request-id"] == logged_id(proxy)


class Answering(Plugin[PluginConfig]):
    name = "answering"
    order = 1
    config_type = PluginConfig

    def __init__(self, response: Response) -> None:
        super().__init__(PluginConfig(), PluginServices())
        self._response = response

    def on_request(self, request: Request) -> Response:
        return self._response


async def answered_by_plugin(response: Response, *, detailed: bool) -> tuple[bytes, Proxied]:
    async with proxied(detailed=detailed) as proxy:
        proxy.target.policies = RoutePolicies()
        proxy.target.policies.hooks = RoutePlugins(PluginChain([(1, Answering(response))], PluginServices()))
        return await proxy.talk(GET + CLOSE), proxy


@pytest.mark.parametrize(
    ("detailed", "end"), [(False, b"503 Service Unavailable\n"), (True, b": ldap.inside is away\n")]
)
async def test_a_plugins_failure_is_told_like_one_of_the_gateway(detailed: bool, end: bytes) -> None:
    answer, proxy = await answered_by_plugin(Response.refusal(503, "ldap.inside is away"), detailed=detailed)
    assert answer.endswith(end)
    assert (b"ldap.inside" in answer) is detailed
    assert header(answer, b"x-request-id") == logged_id(proxy)
    assert proxy.log.records[-1][14] == "ldap.inside is away"


async def test_an_id_that_a_plugin_gives_the_answer_stays() -> None:
    response = Response.text(418, "tea")
    response.headers.set("X-Request-Id", "chosen")
    answer, _ = await answered_by_plugin(response, detailed=False)
    assert header(answer, b"x-request-id") == b"chosen"


async def test_an_answer_of_an_upstream_has_no_id_of_ours() -> None:
    async with proxied(detailed=False) as proxy:
        assert b"x-request-id" not in (await proxy.talk(GET + CLOSE)).lower()
