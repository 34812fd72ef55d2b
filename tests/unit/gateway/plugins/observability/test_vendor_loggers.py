"""What loggers of single products send, by the cases of Apache APISIX; servers of the test stand for the products."""

import asyncio
import base64
import json
import re
import time
from typing import Any
from urllib.parse import parse_qs

import jwt
import pytest
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from fakes.waiting import until
from headgate.common.plugins.checking import check_use
from headgate.common.plugins.errors import PluginFault
from headgate.common.plugins.metadata import METADATA
from headgate.common.table import PluginUse
from headgate.gateway.plugins.interface import Headers, Response
from headgate.gateway.plugins.interface.variables import HOSTNAME
from unit.gateway.plugins.observability.test_loggers import Closed
from unit.gateway.plugins.running import answered, asked, chain, request
from unit.gateway.plugins.service import Handler, Seen, running

FORMAT = {"log_format": {"uri": "$uri"}}
KEY = generate_private_key(65537, 2048)
PEM = KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


async def run(
    plugins: Any, target: str, headers: tuple[tuple[str, str], ...] = (), status: int = 200, **given: Any
) -> None:
    asking = request(target, headers, **given)
    await asked(plugins, asking)
    asking.upstream_status = status
    await answered(plugins, asking, Response(status, Headers([("X-B", "2")])), [b"hello"])
    asking.bytes_sent, asking.upstream_address = 5, "10.0.0.1:80"
    plugins.on_finish(asking, status, 0.25)


async def posted(
    name: str,
    config: dict[str, Any],
    *targets: str,
    answer: Handler | None = None,
    count: int = 1,
    headers: tuple[tuple[str, str], ...] = (),
) -> list[Seen]:
    """Return what a server gets of requests for targets, whose entries go in one batch; `URL` is its address."""
    async with running(answer or (lambda seen: web.json_response({}))) as service:
        closed = Closed(http=service.services.http)
        told = json.loads(json.dumps({"batch_max_size": len(targets), **config}).replace("URL", service.url))
        plugins = chain((name, told), services=closed.services)
        for target in targets:
            await run(plugins, target, headers)
        await closed.close()
        await until(lambda: len(service.seen) >= count)
        return list(service.seen)


async def test_skywalking_gets_entries_with_their_traces() -> None:
    ids = [base64.b64encode(text.encode()).decode().rstrip("=") for text in ("trace", "segment", "s", "i", "e", "p")]
    sw8 = "-".join(["1", ids[0], ids[1], "3", *ids[2:]])
    config = {"endpoint_addr": "URL", "service_instance_name": "$hostname", **FORMAT}
    (seen,) = await posted("skywalking-logger", config, "/one?a=1", "/two", headers=(("sw8", sw8),))
    assert (seen.method, seen.target, seen.headers["Content-Type"]) == ("POST", "/v3/logs", "application/json")
    one, two = json.loads(seen.body)
    assert json.loads(one["body"]["json"]["json"]) == {"uri": "/one", "route_id": "a|r"}
    assert (one["service"], one["serviceInstance"], one["endpoint"]) == ("APISIX", HOSTNAME, "/one")
    assert two["traceContext"] == {"traceId": "trace", "traceSegmentId": "segment", "spanId": 3}


@pytest.mark.parametrize("sw8", ["", "1-x", "1-%-%-a-b-c-d-e", "1-YQ-YQ-x-b-c-d-e"])
async def test_a_trace_that_cannot_be_read_is_left_out(sw8: str) -> None:
    (seen,) = await posted("skywalking-logger", {"endpoint_addr": "URL"}, "/one", headers=(("sw8", sw8),))
    assert "traceContext" not in json.loads(seen.body)[0]


SPLUNK = {"endpoint": {"uri": "URL/services/collector", "token": "geheim", "channel": "c1"}}


async def test_splunk_gets_events_one_behind_the_other() -> None:
    (seen,) = await posted("splunk-hec-logging", SPLUNK, "/one?a=1", "/two")
    assert seen.target == "/services/collector"
    assert seen.headers["Authorization"] == "Splunk geheim"
    assert seen.headers["X-Splunk-Request-Channel"] == "c1"
    one, end = json.JSONDecoder().raw_decode(seen.body.decode())
    assert json.loads(seen.body[end:])["event"]["request_url"] == "http://a.example:80/two"
    assert (one["host"], one["sourcetype"]) == (HOSTNAME, "_json")
    assert abs(one["time"] - time.time()) < 60
    assert one["event"] == {
        "request_url": "http://a.example:80/one?a=1",
        "request_method": "GET",
        "request_headers": {"host": "a.example"},
        "request_query": {"a": "1"},
        "request_size": 0,
        "response_headers": {"x-b": "2"},
        "response_status": 200,
        "response_size": 5,
        "latency": 250.0,
        "upstream": "10.0.0.1:80",
    }


async def test_splunk_gets_a_format_as_it_is() -> None:
    (seen,) = await posted("splunk-hec-logging", {**SPLUNK, **FORMAT}, "/one")
    assert json.loads(seen.body)["event"] == {"uri": "/one", "route_id": "a|r"}


CLICKHOUSE = {"user": "u", "password": "p", "database": "db", "logtable": "log", **FORMAT}


@pytest.mark.parametrize("place", [{"endpoint_addr": "URL/a?b=1"}, {"endpoint_addrs": ["URL/a?b=1"]}])
async def test_clickhouse_gets_rows(place) -> None:
    (seen,) = await posted("clickhouse-logger", {**CLICKHOUSE, **place}, "/one", "/two")
    assert (seen.method, seen.target) == ("POST", "/a?b=1")
    login = [seen.headers[f"X-ClickHouse-{name}"] for name in ("User", "Key", "Database")]
    assert login == ["u", "p", "db"]
    rows = b'{"uri":"/one","route_id":"a|r"} {"uri":"/two","route_id":"a|r"}'
    assert seen.body == b"INSERT INTO log FORMAT JSONEachRow " + rows


def google(seen: Seen) -> web.StreamResponse:
    if seen.target != "/token":
        return web.json_response({}, status=200 if seen.headers["Authorization"] == "Bearer t1" else 401)
    form = parse_qs(seen.body.decode())
    claims = jwt.decode(form["assertion"][0], KEY.public_key(), algorithms=["RS256"], options={"verify_aud": False})
    assert (claims["iss"], claims["scope"]) == ("me@x.example", "a b")
    return web.json_response({"access_token": "t1", "token_type": "Bearer", "expires_in": 3600})


ACCOUNT = {
    "client_email": "me@x.example",
    "private_key": PEM,
    "project_id": "p1",
    "token_uri": "URL/token",
    "entries_uri": "URL/entries",
    "scope": ["a", "b"],
}


async def test_google_gets_entries_of_a_service_account() -> None:
    config = {"auth_config": ACCOUNT, "resource": {"type": "global", "labels": {"a": "b"}}}
    token, seen = await posted("google-cloud-logging", config, "/one", answer=google, count=2)
    assert (token.target, seen.target) == ("/token", "/entries")
    said = json.loads(seen.body)
    (entry,) = said["entries"]
    assert said["partialSuccess"] is False
    assert entry["logName"] == "projects/p1/logs/apisix.apache.org%2Flogs"
    assert entry["labels"] == {"source": "apache-apisix-google-cloud-logging"}
    assert (entry["insertId"], entry["resource"]) == ("id-1", config["resource"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", entry["timestamp"])
    assert entry["jsonPayload"] == {"route_id": "a|r", "service_id": ""}
    assert entry["httpRequest"]["latency"] == "0.250s"
    assert entry["httpRequest"]["requestUrl"] == "http://a.example:80/one"


async def test_google_gets_a_format_as_it_is_and_one_token_serves_many_batches() -> None:
    config = {"auth_config": ACCOUNT, "batch_max_size": 1, **FORMAT}
    seen = await posted("google-cloud-logging", config, "/one", "/two", answer=google, count=3)
    assert [each.target for each in seen] == ["/token", "/entries", "/entries"]
    assert json.loads(seen[1].body)["entries"][0]["jsonPayload"] == {"uri": "/one", "route_id": "a|r"}


async def test_a_key_that_is_none_is_told_without_it(caplog: pytest.LogCaptureFixture) -> None:
    async with running(google) as service:
        closed = Closed(http=service.services.http)
        account = {**ACCOUNT, "private_key": "geheim"}
        plugins = chain(
            ("google-cloud-logging", {"auth_config": json.loads(json.dumps(account).replace("URL", service.url))}),
            services=closed.services,
        )
        await run(plugins, "/one")
        await closed.close()
    assert "no RSA key" in caplog.text
    assert "geheim" not in caplog.text


class Datagrams(asyncio.DatagramProtocol):
    """Stands for a server that takes datagrams."""

    def __init__(self) -> None:
        self.taken: list[bytes] = []

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self.taken.append(data)


async def datagrams(name: str, config: dict[str, Any], *targets: str, count: int, **given: Any) -> list[str]:
    loop = asyncio.get_running_loop()
    transport, server = await loop.create_datagram_endpoint(Datagrams, local_addr=("127.0.0.1", 0))
    try:
        closed = Closed()
        told = {"host": "127.0.0.1", "port": transport.get_extra_info("sockname")[1], "batch_max_size": 1, **config}
        plugins = chain((name, told), services=closed.services)
        for target in targets:
            await run(plugins, target, **given)
        await closed.close()
        await until(lambda: len(server.taken) >= count)
        return [taken.decode() for taken in server.taken]
    finally:
        transport.close()


async def test_loggly_gets_a_datagram_for_each_request() -> None:
    config = {"customer_token": "tok", "tags": ["apisix", 'a"]'], "severity": "notice", "severity_map": {"500": "ERR"}}
    (fine,) = await datagrams("loggly", {**config, **FORMAT}, "/one", count=1)
    assert re.match(r'<13>1 \S+Z a\.example apisix \d+ - \[tok@41058 tag="apisix" tag="a\\"\\]"\] \{', fine)
    assert fine.endswith('{"uri":"/one","route_id":"a|r"}')
    (wrong,) = await datagrams("loggly", config, "/one", count=1, status=500)
    assert wrong.startswith("<11>1 ")


async def test_loggly_gets_batches_over_http() -> None:
    config = {"customer_token": "tok", "host": "URL", "protocol": "http", "tags": ["a", "b"], **FORMAT}
    (seen,) = await posted("loggly", config, "/one", "/two")
    assert seen.target == "/bulk/tok/tag/bulk"
    assert seen.body.splitlines() == [b'{"uri":"/one","route_id":"a|r"}', b'{"uri":"/two","route_id":"a|r"}']


async def test_datadog_gets_metrics_with_tags() -> None:
    config = {"constant_tags": ["team:shop"], "include_method": True}
    (taken,) = await datagrams("datadog", config, "/one", count=1)
    tags = (
        "source:apisix,team:shop,route_name:a_r,method:GET,balancer_ip:10.0.0.1,response_status:200,"
        "response_status_class:2xx,scheme:http"
    )
    lines = taken.split("\n")
    assert lines[0] == f"apisix.request.counter:1|c|#{tags}"
    assert lines[1] == f"apisix.request.latency:250.0|h|#{tags}"
    assert [line.partition(":")[0] for line in lines[2:]] == [
        "apisix.upstream.latency",
        "apisix.apisix.latency",
        "apisix.ingress.size",
        "apisix.egress.size",
    ]
    assert lines[-1] == f"apisix.egress.size:5|ms|#{tags}"


async def test_long_metrics_go_in_a_datagram_each() -> None:
    tags = [f"t{number}:{'x' * 190}" for number in range(29)]
    taken = await datagrams("datadog", {"constant_tags": tags, "namespace": ""}, "/one", count=6)
    assert len(taken) == 6
    assert taken[0].startswith("request.counter:1|c|#source:apisix,t0:x")


def test_metadata_of_datadog_and_loggly_are_fields_of_theirs() -> None:
    datadog = METADATA["datadog"].model_validate({"constant_tags": ["a:b"], "host": "agent"})
    assert datadog.fill({"constant_tags": ["c:d"]}) == {
        "host": "agent",
        "common_tags": ["a:b"],
        "constant_tags": ["c:d"],
    }
    loggly = METADATA["loggly"].model_validate({"protocol": "https", "host": "logs"})
    assert loggly.fill({"customer_token": "t"}) == {"protocol": "https", "host": "logs", "customer_token": "t"}


@pytest.mark.parametrize(
    ("name", "config", "field"),
    [
        ("skywalking-logger", {"endpoint_addr": "x"}, "config.endpoint_addr"),
        ("splunk-hec-logging", {"endpoint": {"uri": "http://a"}}, "config.endpoint.token"),
        ("clickhouse-logger", CLICKHOUSE, "config"),
        ("clickhouse-logger", {**CLICKHOUSE, "endpoint_addrs": []}, "config"),
        ("google-cloud-logging", {"auth_file": "/x"}, "config.auth_config"),
        ("loggly", {}, "config.customer_token"),
        ("loggly", {"customer_token": "t", "severity": "bad"}, "config.severity"),
        ("loggly", {"customer_token": "t", "severity_map": {"601": "ERR"}}, "config.severity_map.601.[key]"),
        ("loggly", {"customer_token": "t", "tags": ["tag=a"]}, "config.tags.0"),
        ("datadog", {"constant_tags": ["a:"]}, "config.constant_tags.0"),
        ("datadog", {"constant_tags": ["1a"]}, "config.constant_tags.0"),
    ],
)
def test_a_wrong_configuration_is_refused_at_its_field(name, config, field) -> None:
    with pytest.raises(PluginFault) as fault:
        check_use(PluginUse(name=name, config=config))
    assert fault.value.field == field
