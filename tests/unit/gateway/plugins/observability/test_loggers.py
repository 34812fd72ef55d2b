"""What loggers write, and how it gets there."""

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from fakes.virtual_time import in_virtual_time
from fakes.waiting import until
from headgate.gateway.plugins.built_in.observability.batches import MAX_PENDING, Batches, BatchLimits
from headgate.gateway.plugins.built_in.observability.file_logger import log_file
from headgate.gateway.plugins.interface import Closing, Headers, PluginServices, Response
from headgate.gateway.plugins.kit.memory import Allocation, plugin_budget
from headgate.gateway.plugins.runtime.chain import PluginChain
from unit.gateway.plugins.running import Clock, answered, asked, chain, request
from unit.gateway.plugins.service import running


class Closed:
    """Takes what is to be closed, and closes it."""

    def __init__(self, **services: Any) -> None:
        self._closing: list[Closing] = []
        self.services = PluginServices(close_later=self._closing.append, **services)

    async def close(self) -> None:
        for each in self._closing:
            await each.close()


async def logged(
    name: str,
    config: dict[str, Any],
    closed: Closed,
    target="/a?b=1",
    status=200,
    plugins: PluginChain | None = None,
    **given: Any,
) -> None:
    """Send a request through a route with a logger, or through these plugins."""
    plugins = plugins or chain((name, config), services=closed.services)
    asking = request(target, [("X-A", "1")], **given)
    await asked(plugins, asking)
    await answered(plugins, asking, Response(status, Headers([("X-B", "2")])), [b"he", b"llo"])
    asking.bytes_sent, asking.upstream_address, asking.upstream_status = 5, "10.0.0.1:80", status
    plugins.on_finish(asking, status, 0.25)


async def entries(tmp_path: Path, config: dict[str, Any], **given: Any) -> list[dict[str, Any]]:
    """What a file gets of one request."""
    closed = Closed(log_dir=tmp_path)
    await logged("file-logger", {"path": "logs/access.log", **config}, closed, **given)
    await closed.close()
    written = tmp_path / "logs" / "access.log"
    return [json.loads(line) for line in written.read_text().splitlines()] if written.exists() else []


EXTRA = {"log_format_extra": {"agent": "edge-$host", "route_id": "mine", "within": {"uri": "$uri"}}}


async def test_members_are_added_to_an_entry_that_lacks_them(tmp_path) -> None:
    (entry,) = await entries(tmp_path, EXTRA)
    assert (entry["agent"], entry["within"], entry["route_id"]) == ("edge-a.example", {"uri": "/a"}, "a|r")


async def test_no_members_are_added_to_a_format(tmp_path) -> None:
    assert await entries(tmp_path, {**EXTRA, "log_format": {"a": "b"}}) == [{"a": "b", "route_id": "a|r"}]


async def test_entry_says_all_that_is_known(tmp_path) -> None:
    (entry,) = await entries(tmp_path, {})
    assert entry["client_ip"] == "192.0.2.1"
    assert entry["route_id"] == "a|r"
    assert entry["latency"] == 250
    assert entry["upstream"] == "10.0.0.1:80"
    assert entry["request"] == {
        "method": "GET",
        "uri": "/a?b=1",
        "url": "http://a.example:80/a?b=1",
        "querystring": {"b": "1"},
        "headers": {"host": "a.example", "x-a": "1"},
        "size": 0,
    }
    assert entry["response"] == {"status": 200, "headers": {"x-b": "2"}, "size": 5}


async def timed(tmp_path: Path, config: dict[str, Any], *, upstream_status: int = 200) -> dict[str, Any]:
    """What is logged of a request whose answer began after 0.1 s, ended after 0.3 s and was passed on in 0.5 s."""
    clock = Clock()
    closed = Closed(log_dir=tmp_path, clock=clock)
    plugins = chain(("file-logger", {"path": "a.log", **config}), services=closed.services)
    asking = request("/a?b=1", upstreams="c/d/web:80")
    await asked(plugins, asking)
    clock.now += 0.1
    asking.upstream_status = upstream_status
    answer = Response(200, Headers([("X-B", "2")]), None, from_upstream=bool(upstream_status))
    plugins.on_response(asking, answer)
    passing = plugins.response_filter(asking, answer)
    clock.now += 0.2
    if passing is not None:
        assert passing.feed(b"hello") + passing.finish() == b"hello"
    asking.upstream_address = "10.0.0.1:80" if upstream_status else ""
    plugins.on_finish(asking, 200, 0.5)
    await closed.close()
    entry: dict[str, Any] = json.loads((tmp_path / "a.log").read_text())
    return entry


async def test_entry_says_how_long_the_upstream_took_and_how_long_the_gateway(tmp_path) -> None:
    entry = await timed(tmp_path, {})
    assert (entry["latency"], entry["upstream_latency"], entry["apisix_latency"]) == (500, 300, 200)
    assert entry["service_id"] == "c/d/web:80"


async def test_entry_of_a_request_that_no_upstream_was_asked_says_so(tmp_path) -> None:
    entry = await timed(tmp_path, {}, upstream_status=0)
    assert "upstream_latency" not in entry
    assert entry["apisix_latency"] == 500
    assert "consumer" not in entry


async def test_format_may_ask_for_what_is_known_of_the_upstream_and_the_answer(tmp_path) -> None:
    names = ["upstream_response_time", "upstream_header_time", "balancer_ip", "balancer_port", "sent_http_x_b"]
    names += ["request", "route_id", "service_id", "server_protocol"]
    entry = await timed(tmp_path, {"log_format": {name: f"${name}" for name in names}})
    assert [entry[name] for name in names] == [
        *("0.300", "0.100", "10.0.0.1", "80", "2"),
        *("GET /a?b=1 HTTP/1.1", "a|r", "c/d/web:80", "HTTP/1.1"),
    ]


async def test_body_of_the_answer_can_stand_in_a_format(tmp_path) -> None:
    (entry,) = await entries(tmp_path, {"log_format": {"is": "$resp_body"}, "include_resp_body": True})
    assert entry["is"] == "hello"


async def test_format_says_what_an_entry_has(tmp_path) -> None:
    wanted = {"host": "$host", "took": "$request_time", "nested": {"status": "$status", "up": "$upstream_addr"}, "n": 1}
    (entry,) = await entries(tmp_path, {"log_format": wanted}, status=404)
    nested = {"status": "404", "up": "10.0.0.1:80"}
    assert entry == {"host": "a.example", "took": "0.250", "nested": nested, "n": 1, "route_id": "a|r"}


async def test_bodies_are_logged_if_asked_for(tmp_path) -> None:
    config = {"include_req_body": True, "include_resp_body": True, "max_resp_body_bytes": 3, "max_req_body_bytes": 2}
    (entry,) = await entries(tmp_path, config, method="POST", body=b"body", content_length=4)
    assert (entry["request"]["body"], entry["response"]["body"]) == ("bo", "hel")


async def test_bodies_are_logged_for_some_requests(tmp_path) -> None:
    never = [["arg_b", "==", "2"]]
    config = {"include_req_body": True, "include_req_body_expr": never}
    config |= {"include_resp_body": True, "include_resp_body_expr": [["status", "==", 500]]}
    (entry,) = await entries(tmp_path, config, method="POST", body=b"body", content_length=4)
    assert ("body" in entry["request"], "body" in entry["response"]) == (False, False)


async def test_request_with_a_body_that_is_too_long_is_logged_without_it(tmp_path) -> None:
    given = {"method": "POST", "body": b"x" * (2 << 20), "content_length": 2 << 20}
    (entry,) = await entries(tmp_path, {"include_req_body": True}, **given)
    assert "body" not in entry["request"]


async def test_only_requests_that_match_are_logged(tmp_path) -> None:
    assert await entries(tmp_path, {"match": [["arg_b", "==", "2"]]}) == []
    assert len(await entries(tmp_path, {"match": [["arg_b", "==", "1"]]})) == 1


@pytest.mark.parametrize("path", ["../x.log", "/etc/x.log", "a/../../x.log", ""])
def test_files_elsewhere_are_not_written(tmp_path, path) -> None:
    with pytest.raises(ValueError, match="is not below"):
        log_file(path, tmp_path / "logs")
    assert log_file("/dev/stdout", None) == 1


def test_links_lead_nowhere_else(tmp_path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "out").symlink_to("/tmp")
    with pytest.raises(ValueError, match="is not below"):
        log_file("out/x.log", tmp_path / "logs")


async def test_route_is_served_though_its_log_cannot_be_written(caplog) -> None:
    closed = Closed()
    await logged("file-logger", {"path": "x.log"}, closed)
    await closed.close()
    assert "plugin_log_dir" in caplog.text


async def test_entries_are_posted_in_batches() -> None:
    async with running(lambda seen: web.Response()) as service:
        closed = Closed(http=service.services.http)
        config = {
            "uri": f"{service.url}/logs?x=1",
            "auth_header": "Bearer t",
            "log_format": {"uri": "$uri", "route_id": 0},
        }
        for target in ("/one", "/two"):
            await logged("http-logger", {**config, "batch_max_size": 1}, closed, target)
        await until(lambda: len(service.seen) == 2)
        await logged("http-logger", {**config, "concat_method": "new_line"}, closed, "/three")
        await closed.close()
        await until(lambda: len(service.seen) == 3)
    one, _, three = sorted(service.seen, key=lambda seen: (seen.headers["Content-Type"], seen.body))
    assert (one.method, one.target, one.body) == ("POST", "/logs?x=1", b'{"uri":"/one","route_id":0}')
    assert one.headers["Authorization"] == "Bearer t"
    assert (three.headers["Content-Type"], three.body) == ("text/plain", b'{"uri":"/three","route_id":0}')


async def test_messages_of_syslog_arrive_over_tcp_and_udp() -> None:
    got: list[bytes] = []

    class Datagrams(asyncio.DatagramProtocol):
        def datagram_received(self, data, addr) -> None:
            got.append(data)

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        got.append(await reader.read())
        writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(Datagrams, local_addr=("127.0.0.1", port))
    closed = Closed()
    for kind in ("tcp", "udp"):
        config = {"host": "127.0.0.1", "port": port, "sock_type": kind, "log_format": {"uri": "$uri", "route_id": 0}}
        await logged("syslog", config, closed)
    config = {"host": "127.0.0.1", "port": port, "log_format": {"uri": "$uri", "route_id": 0}}
    await logged("udp-logger", config, closed)
    await closed.close()
    await until(lambda: len(got) == 3)
    transport.close()
    server.close()
    messages = [one for one in got if one.startswith(b"<46>1 ")]
    assert len(messages) == 2
    assert all(one.endswith(b' - - {"uri":"/a","route_id":0}\n') for one in messages)
    assert b'{"uri":"/a","route_id":0}' in got


class Sent:
    """Takes batches, the first of them badly."""

    def __init__(self, failures: int = 0) -> None:
        self.batches: list[list[bytes]] = []
        self.tried_at: list[float] = []
        self.failures = failures

    async def __call__(self, batch) -> None:
        self.tried_at.append(asyncio.get_running_loop().time())
        if len(self.tried_at) <= self.failures:
            raise ConnectionRefusedError("down")
        self.batches.append(list(batch))


def collecting(sent: Sent, **limits: Any) -> Batches:
    given = {"size": 3, "idle_s": 5, "age_s": 60, **limits}
    return Batches(sent, BatchLimits(**given), "test", logging.getLogger("test"), Allocation(plugin_budget(), "test"))


@in_virtual_time
async def test_batch_goes_out_when_it_is_full_or_nothing_more_comes() -> None:
    sent = Sent()
    batches = collecting(sent)
    for number in range(4):
        batches.add(b"%d" % number)
    await asyncio.sleep(0.1)
    assert sent.batches == [[b"0", b"1", b"2"]]
    await asyncio.sleep(5)
    assert sent.batches[1:] == [[b"3"]]


@in_virtual_time
async def test_batch_goes_out_when_it_is_old() -> None:
    sent = Sent()
    batches = collecting(sent, size=1000)
    for _ in range(16):
        batches.add(b"x")
        await asyncio.sleep(4)
    assert [round(at) for at in sent.tried_at] == [60]


@in_virtual_time
async def test_batch_is_sent_again_as_often_as_told() -> None:
    sent = Sent(failures=2)
    batches = collecting(sent, size=1, retries=2, retry_s=3)
    batches.add(b"x")
    await asyncio.sleep(10)
    assert [round(at) for at in sent.tried_at] == [0, 3, 6]
    assert sent.batches == [[b"x"]]


@in_virtual_time
async def test_batch_is_not_sent_again_in_a_circle() -> None:
    sent = Sent(failures=1000)
    batches = collecting(sent, size=1, retries=1000, retry_s=0)
    batches.add(b"x")
    await asyncio.sleep(1)
    assert len(sent.tried_at) <= 11


@in_virtual_time
async def test_batch_that_cannot_be_sent_is_dropped_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    sent = Sent(failures=1)
    batches = collecting(sent, size=1)
    batches.add(b"x")
    batches.add(b"y")
    await asyncio.sleep(1)
    assert (sent.batches, batches.dropped) == ([[b"y"]], 1)
    assert "1 log entries to test were dropped: down" in caplog.text


@in_virtual_time
async def test_log_of_a_service_that_is_down_does_not_fill_ours(caplog: pytest.LogCaptureFixture) -> None:
    batches = collecting(Sent(failures=100), size=3)
    for _ in range(300):
        batches.add(b"x")
    await asyncio.sleep(1)
    assert batches.dropped == 300
    assert [record.args[0] for record in caplog.records if record.args] == [3, 6, 12, 24, 48, 96, 192]


async def test_memory_of_entries_that_wait_is_bounded() -> None:
    stuck = asyncio.Event()

    async def send(batch) -> None:
        await stuck.wait()

    memory = plugin_budget()
    batches = Batches(send, BatchLimits(1, 5, 60), "test", logging.getLogger("test"), Allocation(memory, "test"))
    entry = b"x" * (MAX_PENDING // 4)
    for _ in range(6):
        batches.add(entry)
    assert batches.dropped == 2
    stuck.set()
    await batches.close()
    assert memory.used == 0
    batches.add(entry)
    assert batches.dropped == 2
    await batches.close()


async def test_entries_of_all_loggers_are_bounded_together(caplog: pytest.LogCaptureFixture) -> None:
    stuck = asyncio.Event()

    async def send(batch) -> None:
        await stuck.wait()

    memory = plugin_budget(1000)
    limits, log = BatchLimits(1, 5, 60), logging.getLogger("test")
    loggers = [Batches(send, limits, str(number), log, Allocation(memory, "http-logger")) for number in range(20)]
    for each in loggers:
        each.add(b"x" * 100)
    assert memory.used <= memory.limit
    assert 5 <= [each.dropped for each in loggers].count(0) < 20
    assert "plugins keep as many bytes as they may" in caplog.text
    stuck.set()
    for each in loggers:
        await each.close()
    assert memory.used == 0


async def test_a_client_library_that_fails_oddly_holds_no_further_entries_up(caplog: pytest.LogCaptureFixture) -> None:
    sent = []

    async def send(batch) -> None:
        if not sent:
            sent.append("failed")
            raise ValueError("malformed answer")
        sent.append(batch)

    memory = plugin_budget()
    batches = Batches(send, BatchLimits(1, 5, 60), "test", logging.getLogger("test"), Allocation(memory, "test"))
    batches.add(b"first")
    batches.add(b"second")
    await batches.close()
    assert sent == ["failed", [b"second"]]
    assert memory.used == 0
    assert "1 log entries to test were dropped: malformed answer" in caplog.text
