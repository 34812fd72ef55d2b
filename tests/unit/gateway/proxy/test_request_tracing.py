"""Traces of requests through the proxy, with an exporter in memory."""

import re
from collections.abc import Iterator, Sequence

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from fakes.gateway.proxied import OK, Proxied, answering, proxied
from fakes.peers.http2 import http2_client
from fakes.peers.http2 import request as h2_request
from headgate.common.service.telemetry import configure_telemetry
from headgate.gateway.observability.trace_context import Propagation
from headgate.gateway.observability.tracing import Tracing
from headgate.gateway.proxy.policies import RetryPolicy, RoutePolicies

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN_ID = "00f067aa0ba902b7"
SAMPLED = f"00-{TRACE_ID}-{SPAN_ID}-01".encode()
UNSAMPLED = f"00-{TRACE_ID}-{SPAN_ID}-00".encode()
CLOSE = b"Connection: close\r\n\r\n"


@pytest.fixture
def exported() -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    configure_telemetry("gateway", processor=SimpleSpanProcessor(exporter))
    yield exporter
    configure_telemetry("headgate")


def request(*lines: bytes, path: bytes = b"/x?y=1") -> bytes:
    return b"GET %b HTTP/1.1\r\nHost: a\r\nUser-Agent: it\r\n%b%b" % (path, b"".join(lines), CLOSE)


def trace(proxy: Proxied, share: float = 0.0, *formats: str) -> None:
    propagation = Propagation(formats) if formats else None
    proxy.server.context.tracing = Tracing(share, propagation, lambda: 0.5)


def traceparent(head: bytes) -> bytes:
    [value] = re.findall(rb"(?im)^traceparent: (.*)\r$", head)
    return value


def spans(exporter: InMemorySpanExporter) -> tuple[ReadableSpan, Sequence[ReadableSpan]]:
    """The server span, and the client spans in their order."""
    done = exporter.get_finished_spans()
    [server] = [span for span in done if span.kind is SpanKind.SERVER]
    return server, [span for span in done if span.kind is SpanKind.CLIENT]


async def test_a_sampled_trace_goes_on_through_both_spans_to_the_upstream(exported: InMemorySpanExporter) -> None:
    async with proxied(answering(OK)) as proxy:
        trace(proxy)
        await proxy.talk(request(b"traceparent: %b\r\ntracestate: v=1\r\n" % SAMPLED))
        [head] = proxy.origin.heads
    server, [client] = spans(exported)
    assert server.parent is not None
    assert client.parent is not None
    assert format(server.parent.span_id, "016x") == SPAN_ID
    assert client.parent.span_id == server.context.span_id
    assert traceparent(head) == f"00-{TRACE_ID}-{client.context.span_id:016x}-01".encode()
    assert b"tracestate: v=1\r\n" in head


async def test_spans_say_what_the_conventions_for_http_want(exported: InMemorySpanExporter) -> None:
    async with proxied(answering(OK)) as proxy:
        trace(proxy)
        await proxy.talk(request(b"traceparent: %b\r\n" % SAMPLED))
        port = proxy.origin.port
    server, [client] = spans(exported)
    assert server.name == "GET test|all"
    assert server.attributes is not None
    expected = {
        "http.request.method": "GET",
        "url.path": "/x",
        "url.query": "y=1",
        "url.scheme": "http",
        "server.address": "a",
        "client.address": "127.0.0.1",
        "network.protocol.version": "1.1",
        "user_agent.original": "it",
        "http.response.status_code": 200,
        "http.response.body.size": 2,
        "headgate.route": "test|all",
        "headgate.upstream": "test",
    }
    assert expected.items() <= server.attributes.items()
    assert client.attributes is not None
    assert client.attributes["url.full"] == f"http://127.0.0.1:{port}/x?y=1"
    assert (client.attributes["server.address"], client.attributes["server.port"]) == ("127.0.0.1", port)
    assert client.attributes["http.response.status_code"] == 200


async def test_an_unsampled_trace_passes_untouched_whatever_the_share(exported: InMemorySpanExporter) -> None:
    async with proxied(answering(OK)) as proxy:
        trace(proxy, share=1.0)
        await proxy.talk(request(b"traceparent: %b\r\n" % UNSAMPLED))
        assert traceparent(proxy.origin.heads[0]) == UNSAMPLED
    assert exported.get_finished_spans() == ()


@pytest.mark.parametrize(("share", "count"), [(0.4, 0), (0.6, 2)])
async def test_a_share_of_the_requests_without_a_trace_begins_one(
    exported: InMemorySpanExporter, share: float, count: int
) -> None:
    async with proxied(answering(OK)) as proxy:
        trace(proxy, share)
        await proxy.talk(request())
        assert (b"traceparent" in proxy.origin.heads[0]) is (count > 0)
    assert len(exported.get_finished_spans()) == count


async def test_the_share_of_the_route_goes_before_the_gateways(exported: InMemorySpanExporter) -> None:
    async with proxied(answering(OK)) as proxy:
        trace(proxy, share=1.0)
        proxy.target.policies = RoutePolicies()
        proxy.target.policies.trace_share = 0.0
        await proxy.talk(request())
        assert exported.get_finished_spans() == ()
        proxy.target.policies.trace_share = 1.0
        await proxy.talk(request())
    assert len(exported.get_finished_spans()) == 2


@pytest.mark.parametrize(
    ("header", "share", "count"),
    [
        (UNSAMPLED, 1.0, 2),
        (SAMPLED, 0.0, 0),
        # The lower half of the trace id is 0.639 of what it could be.
        (UNSAMPLED, 0.7, 2),
        (SAMPLED, 0.6, 0),
    ],
)
async def test_a_route_may_decide_by_its_share_whatever_the_context_says(
    exported: InMemorySpanExporter, header: bytes, share: float, count: int
) -> None:
    async with proxied(answering(OK)) as proxy:
        trace(proxy, share=0.5)
        proxy.target.policies = RoutePolicies()
        proxy.target.policies.trace_share = share
        proxy.target.policies.trace_heeds_parent = False
        await proxy.talk(request(b"traceparent: %b\r\n" % header))
        passed = traceparent(proxy.origin.heads[0])
    done = exported.get_finished_spans()
    assert len(done) == count
    assert {format(span.context.trace_id, "032x") for span in done} <= {TRACE_ID}
    assert passed.endswith(b"-01") if count else passed == header


async def test_a_span_has_the_variables_and_headers_that_its_route_wants(exported: InMemorySpanExporter) -> None:
    async with proxied(answering(OK)) as proxy:
        trace(proxy, share=1.0)
        proxy.target.policies = policies = RoutePolicies()
        policies.trace_attributes = ("request_method", "arg_y", "http_user_agent", "arg_absent", "no_such")
        policies.trace_headers = ("x-one", "x-my-*", "x-two*", "x-on")
        await proxy.talk(request(b"X-One: 1\r\nX-My-A: a\r\nX-My-B: b\r\nx-my-a: c\r\nX-Other: 3\r\n"))
    server, _ = spans(exported)
    wanted = {"request_method": "GET", "arg_y": "1", "http_user_agent": "it"}
    wanted |= {"x-one": "1", "x-my-a": "a, c", "x-my-b": "b"}
    assert wanted.items() <= server.attributes.items()
    assert not {"arg_absent", "no_such", "x-other", "x-on", "x-two"} & server.attributes.keys()


async def test_without_tracing_the_clients_header_passes_as_it_is(exported: InMemorySpanExporter) -> None:
    async with proxied(answering(OK)) as proxy:
        await proxy.talk(request(b"Traceparent: %b\r\n" % SAMPLED))
        assert traceparent(proxy.origin.heads[0]) == SAMPLED
    assert exported.get_finished_spans() == ()


async def test_a_context_that_cannot_be_read_is_replaced_with_its_state(exported: InMemorySpanExporter) -> None:
    async with proxied(answering(OK)) as proxy:
        trace(proxy, share=1.0)
        await proxy.talk(request(b"traceparent: nonsense\r\ntracestate: v=1\r\n"))
        assert re.fullmatch(rb"00-[0-9a-f]{32}-[0-9a-f]{16}-0[13]", traceparent(proxy.origin.heads[0]))
        assert b"tracestate" not in proxy.origin.heads[0]


async def test_each_attempt_has_a_span_and_the_upstream_gets_its_own(exported: InMemorySpanExporter) -> None:
    async with proxied(answering(b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"), answering(OK)) as proxy:
        trace(proxy)
        proxy.target.policies = RoutePolicies()
        proxy.target.policies.retries = RetryPolicy(statuses=frozenset({503}))
        await proxy.talk(request(b"traceparent: %b\r\n" % SAMPLED))
        heads = [origin.heads[0] for origin in proxy.origins]
    server, [first, second] = spans(exported)
    assert [span.attributes["http.response.status_code"] for span in (first, second)] == [503, 200]
    assert [span.status.status_code for span in (server, first, second)] == [
        StatusCode.UNSET,
        StatusCode.ERROR,
        StatusCode.UNSET,
    ]
    assert second.attributes["http.request.resend_count"] == 1
    assert [traceparent(head).split(b"-")[2].decode() for head in heads] == [
        f"{span.context.span_id:016x}" for span in (first, second)
    ]


async def test_an_endpoint_that_cannot_be_reached_is_an_attempt_that_failed(exported: InMemorySpanExporter) -> None:
    async with proxied(answering(OK)) as proxy:
        trace(proxy)
        await proxy.origin.stop()
        await proxy.talk(request(b"traceparent: %b\r\n" % SAMPLED))
    server, [client] = spans(exported)
    assert client.attributes["error.type"] == "connect"
    assert server.attributes["http.response.status_code"] == 502
    assert server.attributes["headgate.reason"].startswith("cannot connect")
    assert {span.status.status_code for span in (server, client)} == {StatusCode.ERROR}


async def test_a_request_that_no_route_takes_has_a_server_span_alone(exported: InMemorySpanExporter) -> None:
    async with proxied(answering(OK)) as proxy:
        trace(proxy)
        await proxy.talk(b"GET / HTTP/1.1\r\nHost: unknown\r\ntraceparent: %b\r\n%b" % (SAMPLED, CLOSE))
    server, clients = spans(exported)
    assert (server.name, server.attributes["http.response.status_code"], clients) == ("GET", 404, [])


async def test_each_request_of_a_connection_is_traced_for_itself(exported: InMemorySpanExporter) -> None:
    async with proxied(answering(OK)) as proxy:
        trace(proxy)
        client = await proxy.connect()
        for line in (b"traceparent: %b\r\n" % SAMPLED, b""):
            await client.send(b"GET / HTTP/1.1\r\nHost: a\r\n%b\r\n" % line)
            await client.answer()
        assert b"traceparent" not in proxy.origin.heads[1]
    assert len(exported.get_finished_spans()) == 2


async def test_a_request_over_http2_is_traced_alike(exported: InMemorySpanExporter) -> None:
    async with proxied() as proxy, http2_client(proxy.port) as client:
        trace(proxy)
        await client.fetch(h2_request(b"GET", b"/x", (b"traceparent", SAMPLED)))
        [head] = proxy.origin.heads
    server, [attempt] = spans(exported)
    assert server.attributes["network.protocol.version"] == "2"
    assert traceparent(head) == f"00-{TRACE_ID}-{attempt.context.span_id:016x}-01".encode()


async def test_an_unknown_method_does_not_become_the_name_of_a_span(exported: InMemorySpanExporter) -> None:
    async with proxied(answering(OK)) as proxy:
        trace(proxy)
        await proxy.talk(b"PURGE / HTTP/1.1\r\nHost: a\r\ntraceparent: %b\r\n%b" % (SAMPLED, CLOSE))
    server, _ = spans(exported)
    assert server.name == "HTTP test|all"
    assert server.attributes["http.request.method"] == "_OTHER"
    assert server.attributes["http.request.method_original"] == "PURGE"


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"00-%b-%b-01" % (b"0" * 32, SPAN_ID.encode()),
        b"00-%b-%b-01" % (TRACE_ID.encode(), b"0" * 16),
        b"ff-" + SAMPLED[3:],
        SAMPLED + b"-more",
        SAMPLED.upper(),
        SAMPLED[:-1],
    ],
)
def test_a_malformed_parent_is_none(value: bytes) -> None:
    assert Propagation().read(b"traceparent: %b\r\n" % value) is None


def test_two_parents_are_none() -> None:
    assert Propagation().read(b"traceparent: %b\r\n" % SAMPLED * 2) is None


def test_a_later_version_is_read_as_far_as_it_is_known() -> None:
    parent = Propagation().read(b"TraceParent:  01%b-more \r\n" % SAMPLED[2:])
    assert parent is not None
    assert format(parent.trace_id, "032x") == TRACE_ID
    assert parent.trace_flags.sampled


@pytest.mark.parametrize(
    ("lines", "is_traced"),
    [
        (f"b3: {TRACE_ID}-{SPAN_ID}-1-0000000000000001\r\n", True),
        (f"B3: {TRACE_ID[16:]}-{SPAN_ID}-d\r\n", True),
        (f"X-B3-TraceId: {TRACE_ID}\r\nX-B3-SpanId: {SPAN_ID}\r\nX-B3-Sampled: 1\r\n", True),
        (f"X-B3-TraceId: {TRACE_ID}\r\nX-B3-SpanId: {SPAN_ID}\r\nX-B3-Flags: 1\r\n", True),
        (f"b3: {TRACE_ID}-{SPAN_ID}-0\r\n", False),
        (f"b3: {TRACE_ID}-{SPAN_ID}\r\n", False),
        ("b3: 0\r\n", False),
        ("X-B3-Sampled: 0\r\n", False),
        (f"X-B3-TraceId: {TRACE_ID}\r\nX-B3-SpanId: {SPAN_ID}\r\nX-B3-Sampled: 0\r\n", False),
    ],
)
async def test_b3_goes_on_in_the_formats_that_are_wanted(
    exported: InMemorySpanExporter, lines: str, is_traced: bool
) -> None:
    async with proxied(answering(OK)) as proxy:
        trace(proxy, 1.0, "tracecontext", "b3", "b3multi")
        await proxy.talk(request(lines.encode()))
        [head] = proxy.origin.heads
    if not is_traced:
        assert exported.get_finished_spans() == ()
        assert all(line in head for line in lines.encode().splitlines())
        return
    server, [client] = spans(exported)
    assert server.parent is not None
    assert format(server.parent.span_id, "016x") == SPAN_ID
    assert format(client.context.trace_id, "032x").endswith(TRACE_ID[16:])
    trace_id, span_id = f"{client.context.trace_id:032x}".encode(), f"{client.context.span_id:016x}".encode()
    assert traceparent(head) == b"00-%b-%b-01" % (trace_id, span_id)
    written = head.lower()
    for line in (
        b"b3: %b-%b-1" % (trace_id, span_id),
        b"x-b3-traceid: " + trace_id,
        b"x-b3-spanid: " + span_id,
        b"x-b3-sampled: 1",
    ):
        assert written.count(b"\r\n%b\r\n" % line) == 1
    assert written.count(b"\r\nb3:") == 1
    assert b"x-b3-flags" not in written


@pytest.mark.parametrize(("share", "count"), [(0.4, 0), (0.6, 2)])
async def test_requests_that_are_not_sampled_and_name_no_trace_join_none(
    exported: InMemorySpanExporter, share: float, count: int
) -> None:
    async with proxied(answering(OK)) as proxy:
        trace(proxy, 1.0, "b3")
        proxy.target.policies = RoutePolicies()
        proxy.target.policies.trace_share = share
        proxy.target.policies.trace_heeds_parent = False
        await proxy.talk(request(b"b3: 0\r\n"))
    done = exported.get_finished_spans()
    assert len(done) == count
    assert all(span.context.trace_id > 1 << 64 for span in done)


@pytest.mark.parametrize("name", ["traceparent", "tracestate", "b3", "x-b3-traceid"])
def test_many_blanks_within_a_value_take_no_more_than_one_look_at_each(name: str) -> None:
    """The square of their number, which a pattern may take, is more than anyone waits for."""
    lines = f"traceparent: {SAMPLED.decode()}\r\n{name}: a{' ' * 1024 * 1024}b\r\n".encode()
    found = Propagation(("b3", "b3multi", "tracecontext")).read(lines)
    assert (found is None) is (name == "traceparent")


@pytest.mark.parametrize(
    ("states", "kept"),
    [
        (["v=1, w@t=a b"], {"v": "1", "w@t": "a b"}),
        (["v=1", "", " ,w=2,"], {"v": "1", "w": "2"}),
        (["v=1,v=2"], {}),
        (["V=1"], {}),
        (["v"], {}),
        (["v=" + "1" * 257], {}),
        (["v=1=2"], {}),
        ([",".join(f"v{number}=1" for number in range(33))], {}),
    ],
)
def test_state_that_is_wrong_is_left_out_and_not_logged(
    states: list[str], kept: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    """Else a client writes what it likes to the log of the gateway."""
    lines = "".join(f"tracestate: {each}\r\n" for each in states)
    found = Propagation().read(f"traceparent: {SAMPLED.decode()}\r\n{lines}".encode())
    assert found is not None
    assert (dict(found.trace_state), caplog.records) == (kept, [])


@pytest.mark.parametrize(
    "lines",
    [
        "b3: nonsense\r\n",
        f"b3: {TRACE_ID}-{SPAN_ID}-1\r\nb3: {TRACE_ID}-{SPAN_ID}-1\r\n",
        f"b3: {'0' * 32}-{SPAN_ID}-1\r\n",
        f"X-B3-TraceId: {TRACE_ID}\r\nX-B3-Sampled: 1\r\n",
        f"X-B3-TraceId: {TRACE_ID[:-1]}\r\nX-B3-SpanId: {SPAN_ID}\r\nX-B3-Sampled: 1\r\n",
        f"traceparent: {SAMPLED.decode()}\r\n",
    ],
)
def test_what_is_no_b3_is_none(lines: str) -> None:
    assert Propagation(("b3", "b3multi")).read(lines.encode()) is None


def test_the_first_format_that_is_there_counts() -> None:
    lines = f"b3: {'1' * 32}-{'2' * 16}-1\r\ntraceparent: {SAMPLED.decode()}\r\n".encode()
    w3c, b3 = Propagation(("tracecontext", "b3")).read(lines), Propagation(("b3", "tracecontext")).read(lines)
    assert w3c is not None
    assert b3 is not None
    assert (format(w3c.trace_id, "032x"), format(b3.trace_id, "032x")) == (TRACE_ID, "1" * 32)
