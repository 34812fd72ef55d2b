"""Plugins on real connections: what they change is what the other side gets."""

import asyncio
import gc
import gzip
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any

import pytest

from fakes.gateway.proxied import OK, Conversation, Proxied, Script, Target, answering, proxied
from fakes.virtual_time import in_virtual_time
from fakes.waiting import until
from headgate.common.table import PluginUse
from headgate.gateway.plugins.interface import Asked, Plugin, PluginConfig, PluginServices, Request, Response
from headgate.gateway.plugins.runtime.chain import PluginChain
from headgate.gateway.plugins.runtime.run import PluginRun, RoutePlugins
from headgate.gateway.proxy.endpoint_pool import EndpointPool
from headgate.gateway.proxy.heads.body_fields import MAX_PARSED_BODY
from headgate.gateway.proxy.policies import RoutePolicies
from headgate.gateway.proxy.request_source import RequestSource
from unit.gateway.plugins.people import chain_for, consumer, directory
from unit.gateway.plugins.running import REGISTRY, chain, unsealed

GET = b"GET /a/b?q=1 HTTP/1.1\r\nHost: a.example\r\nAccept-Encoding: gzip\r\nX-Old: 1\r\n\r\n"
HTML = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
TEXT = b"all work and no play " * 100


@asynccontextmanager
async def plugged(script: Script, *uses: tuple[str, dict[str, Any]]) -> AsyncIterator[Proxied]:
    """Run a proxy whose only route has these plugins."""
    async with proxied(script) as proxy:
        policies = RoutePolicies()
        policies.hooks = RoutePlugins(chain(*uses))
        proxy.target.policies = policies
        yield proxy


class Split(Plugin[PluginConfig]):
    """Sets a method that would be two lines."""

    name = "split"

    def on_request(self, request: Request) -> None:
        request.method = "GET / HTTP/1.1\r\nX: 1"


async def unchunked(client) -> bytes:
    parts = []
    while size := int(await client.reader.readline(), 16):
        parts.append(await client.exactly(size))
        await client.exactly(2)
    await client.exactly(2)
    return b"".join(parts)


async def test_routes_choose_by_the_request_as_the_client_sent_it(monkeypatch: pytest.MonkeyPatch) -> None:
    config = {"uri": "/new?user=$http_x_old", "method": "PUT", "host": "other.example"}
    async with plugged(answering(OK), ("proxy-rewrite", config)) as proxy:
        seen = []

        def choose(tried: Collection[EndpointPool], source: RequestSource) -> EndpointPool | None:
            facts = source.facts()
            seen.append((facts.method, facts.target, facts.path, facts.query, facts.header(b"x-forwarded-host")))
            return Target.choose(proxy.target, tried, source)

        monkeypatch.setattr(proxy.target, "choose", choose)
        client = await proxy.connect()
        await client.send(GET)
        await client.answer()
        head = proxy.origin.heads[0]
    assert seen == [(b"GET", b"/a/b?q=1", b"/a/b", b"q=1", b"a.example")]
    assert head.startswith(b"PUT /new?user=1&q=1 HTTP/1.1\r\nHost: other.example\r\n")


class Asking(Plugin[PluginConfig]):
    """Has another request served, and says why it was not."""

    name = "asking"

    async def on_request(self, request: Request) -> Response:
        asked = Asked("GET / HTTP/1.1\r\nX: 1", "/", (), b"")
        try:
            await request.dispatch(asked, timeout_s=1.0, max_body=10)
        except ConnectionRefusedError as error:
            return Response.text(200, str(error))
        return Response.text(200, "it was sent")


@asynccontextmanager
async def run_by(plugin: Plugin[PluginConfig]) -> AsyncIterator[Proxied]:
    """Run a proxy whose only route has this plugin."""
    async with plugged(answering(OK), ("request-id", {})) as proxy:
        assert proxy.target.policies is not None
        proxy.target.policies.hooks = RoutePlugins(PluginChain([(0, plugin)], plugin.services))
        yield proxy


async def test_a_request_of_a_plugin_has_a_method() -> None:
    async with run_by(Asking(PluginConfig(), PluginServices())) as proxy:
        client = await proxy.connect()
        await client.send(GET)
        _, body = await client.answer()
    assert body == b"a request that cannot be sent: its method is none"
    assert proxy.origin.heads == []


@pytest.mark.parametrize("given", [b"PURGE", b"GET"])
async def test_a_method_that_plugins_set_is_one(given: bytes) -> None:
    async with run_by(Split(PluginConfig(), PluginServices())) as proxy:
        client = await proxy.connect()
        await client.send(GET.replace(b"GET", given, 1))
        head, _ = await client.answer()
    assert head.startswith(b"HTTP/1.1 500 ")
    assert proxy.origin.heads == []


async def test_rewritten_request_reaches_the_origin() -> None:
    config = {
        "regex_uri": ["^/a/(.*)", "/$1"],
        "host": "other:81",
        "method": "PUT",
        "headers": {"set": {"X-New": "$remote_addr"}, "remove": ["X-Old"]},
    }
    async with plugged(answering(OK), ("proxy-rewrite", config)) as proxy:
        client = await proxy.connect()
        await client.send(GET)
        await client.answer()
        head = proxy.origin.heads[0]
    assert head.startswith(b"PUT /b?q=1 HTTP/1.1\r\nHost: other:81\r\n")
    assert b"X-New: 127.0.0.1\r\n" in head
    assert b"X-Old" not in head


async def test_a_request_that_is_over_leaves_nothing_to_the_collector() -> None:
    def kept() -> int:
        return sum(type(each) is PluginRun for each in gc.get_objects())

    async with plugged(answering(OK), ("cors", {}), ("request-id", {})) as proxy:
        client = await proxy.connect()
        gc.collect()
        gc.disable()
        try:
            for _ in range(5):
                await client.send(GET)
                await client.answer()
            assert kept() <= 1  # that of the connection's last request
        finally:
            gc.enable()


async def test_request_id_of_a_plugin_is_the_one_that_is_sent() -> None:
    config = {"algorithm": "range_id", "range_id": {"length": 6, "char_set": "zzzzzz"}}
    async with plugged(answering(OK), ("request-id", config)) as proxy:
        client = await proxy.connect()
        await client.send(GET)
        head, _ = await client.answer()
        sent = proxy.origin.heads[0]
    assert b"X-Request-ID: zzzzzz\r\n" in sent
    assert sent.lower().count(b"x-request-id") == 1
    assert b"X-Request-Id: zzzzzz\r\n" in head


@pytest.mark.parametrize("bytewise", [False, True])
@pytest.mark.parametrize(
    "framing",
    [
        b"Content-Length: %d\r\n\r\n%b" % (len(TEXT), TEXT),
        b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(TEXT), TEXT),
    ],
)
async def test_answer_is_compressed_and_the_connection_goes_on(framing, bytewise) -> None:
    async with plugged(answering(HTML + framing, bytewise=bytewise), ("gzip", {})) as proxy:
        client = await proxy.connect()
        for _ in range(2):
            await client.send(GET)
            head = await client.head()
            assert b"Content-Encoding: gzip\r\n" in head
            if b"chunked" in head:
                body = await unchunked(client)
            else:
                body = await client.exactly(int(head.lower().split(b"content-length: ")[1].split(b"\r")[0]))
            assert gzip.decompress(body) == TEXT


async def test_answer_of_a_plugin_reaches_the_client_and_not_the_origin() -> None:
    async with plugged(answering(OK), ("ip-restriction", {"whitelist": ["10.0.0.0/8"]}), ("cors", {})) as proxy:
        client = await proxy.connect()
        for _ in range(2):
            await client.send(b"GET / HTTP/1.1\r\nHost: a\r\nOrigin: http://b\r\n\r\n")
            head, body = await client.answer()
            assert head.startswith(b"HTTP/1.1 403 ")
            assert b"Access-Control-Allow-Origin: *\r\n" in head
            assert b"not allowed" in body
        assert proxy.origin.heads == []


async def test_delayed_request_holds_no_other_up() -> None:
    delay = {"delay": {"duration": 2, "vars": [["arg_q", "==", "1"]]}}
    async with plugged(answering(OK), ("fault-injection", delay)) as proxy:
        slow, fast = await proxy.connect(), await proxy.connect()
        await slow.send(GET)
        await fast.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        await fast.answer()
        assert len(proxy.origin.heads) == 1
        assert (await slow.answer())[1] == b"ok"


async def test_client_that_leaves_while_a_plugin_waits_gives_its_place_back() -> None:
    async with plugged(answering(OK), ("limit-conn", {"conn": 1})) as proxy:
        # Behind the other, so that the place is taken before the wait.
        delayed = {"delay": {"duration": 60, "vars": [["arg_q", "==", "1"]]}}
        delay = PluginUse(name="fault-injection", config=delayed, order=1)
        uses = [PluginUse(name="limit-conn", config={"conn": 1}), delay]
        plugins = REGISTRY.chain(uses, PluginServices(), unsealed)
        assert plugins is not None
        assert proxy.target.policies is not None
        proxy.target.policies.hooks = RoutePlugins(plugins)
        client, other = await proxy.connect(), await proxy.connect()
        await client.send(GET)

        async def answers(status: bytes) -> bool:
            await other.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            return (await other.answer())[0].startswith(b"HTTP/1.1 " + status)

        await until(lambda: answers(b"503 "))
        client.reset()
        await until(lambda: answers(b"200 "))


async def test_trailers_pass_plugins_that_look_at_answers() -> None:
    answer = b"HTTP/1.1 200 OK\r\nTrailer: X-End\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-End: 1\r\n\r\n"
    async with plugged(answering(answer), ("response-rewrite", {"headers": {"set": {"A": "1"}}})) as proxy:
        client = await proxy.connect()
        await client.send(GET)
        assert b"A: 1\r\n" in await client.head()
        assert await client.exactly(len(b"2\r\nok\r\n0\r\nX-End: 1\r\n\r\n")) == b"2\r\nok\r\n0\r\nX-End: 1\r\n\r\n"


@in_virtual_time
async def test_body_over_the_limit_of_a_plugin_is_refused_as_it_comes() -> None:
    async with plugged(answering(OK), ("client-control", {"max_body_size": 3})) as proxy:
        client = await proxy.connect()
        await client.send(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n")
        await asyncio.sleep(0.05)
        await client.send(b"2\r\ncd\r\n0\r\n\r\n")
        assert (await client.head()).startswith(b"HTTP/1.1 413 ")


async def test_address_that_a_plugin_found_is_the_one_that_is_logged_and_sent() -> None:
    async with plugged(answering(OK), ("real-ip", {"source": "http_x_forwarded_for"})) as proxy:
        client = await proxy.connect()
        await client.send(b"GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 203.0.113.7\r\n\r\n")
        await client.answer()
        await until(lambda: len(proxy.log.records) == 1)
        assert b"X-Real-IP: 203.0.113.7\r\n" in proxy.origin.heads[0]
    assert proxy.log.records[0][1] == b"203.0.113.7"


@pytest.mark.parametrize("waits", [False, True])
async def test_upstream_that_a_plugin_chose_gets_the_request(waits) -> None:
    async with proxied(answering(OK), answering(OK.replace(b"ok", b"no"))) as proxy:
        other = Target([proxy.pools.get("127.0.0.1", proxy.origins[1].port)])
        services = PluginServices(find_upstream=lambda key: OtherUpstream(key, other))
        split = ("traffic-split", {"rules": [{"weighted_upstreams": [{"upstream_id": "other"}]}]})
        delay = ("fault-injection", {"delay": {"duration": 0.01}})
        policies = RoutePolicies()
        policies.hooks = RoutePlugins(chain(split, *([delay] if waits else []), services=services))
        proxy.target.policies = policies
        client = await proxy.connect()
        await client.send(GET)
        assert (await client.answer())[1] == b"no"
        client.close()
        await until(lambda: len(proxy.log.records) == 1)
    assert proxy.origin.heads == []
    assert proxy.log.records[0][11] == "other"


class OtherUpstream:
    """An upstream of one endpoint."""

    unavailable = ""

    def __init__(self, key: str, target: Target) -> None:
        self.key = key
        self._target = target

    def choose(self, tried, source):
        return self._target.choose(tried, source)


async def test_circuit_opens_for_an_upstream_that_is_gone() -> None:
    breaker = {"break_response_code": 599, "unhealthy": {"http_statuses": [502], "failures": 2}}
    async with plugged(answering(OK), ("api-breaker", breaker)) as proxy:
        proxy.origin.stop_listening()
        client = await proxy.connect()
        heads = []
        for _ in range(3):
            await client.send(GET)
            heads.append((await client.answer())[0].split(b" ")[1])
    assert heads == [b"502", b"502", b"599"]


async def test_the_choice_of_an_endpoint_knows_who_the_plugins_recognised() -> None:
    known: list[bytes] = []

    class Noting(Target):
        def choose(self, tried: Any, source: Any) -> Any:
            known.append(source.facts().consumer)
            return super().choose(tried, source)

    async with proxied(answering(OK)) as proxy:
        policies = RoutePolicies()
        policies.hooks = RoutePlugins(
            chain_for(directory(consumer("jack", ("key-auth", {"key": "one"}))), ("key-auth", {}))
        )
        proxy.router.target = Noting(proxy.target.pools, policies=policies)
        client = await proxy.connect()
        await client.send(GET.replace(b"X-Old: 1", b"apikey: one"))
        await client.answer()
    assert known == [b"jack"]


BODY = {"case": [["post_arg.items[*].sku", "has", "gold"]], "actions": [["return", {"code": 403}]]}
LONG = b'{"items": [{"sku": "gold"}], "x": "' + b"x" * MAX_PARSED_BODY + b'"}'
POST = b"POST / HTTP/1.1\r\nHost: a.example\r\nContent-Type: application/json\r\n"


def framed(body: bytes, framing: str) -> bytes:
    if framing == "length":
        return b"Content-Length: %d\r\n\r\n" % len(body) + body
    return b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n"


class Received:
    """An origin that keeps what it got behind the head, and answers once it has the end of the body."""

    def __init__(self) -> None:
        self.data = b""

    async def __call__(self, conversation: Conversation) -> None:
        await conversation.head()
        while b"}" not in self.data[-8:] and (part := await conversation.reader.read(65536)):
            self.data += part
        await conversation.send(OK)


@pytest.mark.parametrize(
    ("body", "status"), [(b'{"items": [{"sku": "tin"}, {"sku": "gold"}]}', b"403"), (b'{"items": [1]}', b"200")]
)
@pytest.mark.parametrize("framing", ["length", "chunked"])
async def test_a_condition_on_the_body_waits_for_it(body: bytes, status: bytes, framing: str) -> None:
    received = Received()
    async with plugged(received, ("workflow", {"rules": [BODY]})) as proxy:
        client = await proxy.connect()
        await client.send(POST + framed(body, framing), bytewise=True)
        assert (await client.head())[9:12] == status
    assert (body in received.data) is (status == b"200")


@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize(
    ("use", "status"),
    [
        (("workflow", {"rules": [BODY]}), b"413"),
        (("ip-restriction", {"whitelist": ["10.0.0.1"], "_meta": {"filter": BODY["case"]}}), b"413"),
        (("traffic-split", {"rules": [{"match": [{"vars": BODY["case"]}]}]}), b"200"),
        (("fault-injection", {"abort": {"http_status": 500, "vars": [BODY["case"]]}}), b"200"),
    ],
)
async def test_a_body_is_not_padded_past_a_guard(use: Any, status: bytes, framing: str) -> None:
    received = Received()
    async with plugged(received, use) as proxy:
        client = await proxy.connect()
        await client.send(POST + framed(LONG, framing))
        assert (await client.head())[9:12] == status
    assert bool(received.data) is (status == b"200")
    assert received.data.count(b"x" * 1000) in (0, MAX_PARSED_BODY // 1000)


async def test_a_body_without_fields_is_not_waited_for() -> None:
    async with plugged(answering(OK), ("workflow", {"rules": [BODY]})) as proxy:
        client = await proxy.connect()
        head = b"POST / HTTP/1.1\r\nHost: a.example\r\nContent-Type: video/mp4\r\nContent-Length: 2\r\n\r\n"
        await client.send(head + b"a")
        await until(lambda: bool(proxy.origin.heads))
