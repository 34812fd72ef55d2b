"""What loggers of single products post."""

import json
import time
from typing import Any

import pytest
from aiohttp import web

from fakes.waiting import until
from headgate.gateway.plugins.built_in.observability.log_entries import as_json
from headgate.gateway.plugins.interface.errors import PluginRefused
from unit.gateway.plugins.observability.test_loggers import Closed, logged
from unit.gateway.plugins.running import chain
from unit.gateway.plugins.service import Handler, Seen, running

FORMAT = {"log_format": {"uri": "$uri", "route_id": 0}}
ELASTIC = {"field": {"index": "requests-{%Y.%m.%d}-$host"}}
TAKEN = {"errors": False, "items": []}
FAULT = {"create": {"status": 400, "error": {"reason": "no such field"}}}


async def posted(name: str, config: dict[str, Any], *targets: str, answer: Handler | None = None) -> list[Seen]:
    """Return what a service gets of requests for targets, whose entries go in one batch."""
    async with running(answer or (lambda seen: web.json_response(TAKEN))) as service:
        closed = Closed(http=service.services.http)
        told = {"endpoint_addrs": [f"{service.url}/"], "batch_max_size": len(targets), **FORMAT, **config}
        plugins = chain((name, told), services=closed.services)
        for target in targets:
            await logged(name, told, closed, target, plugins=plugins)
        await closed.close()
        await until(lambda: bool(service.seen))
        return list(service.seen)


async def test_loki_gets_streams_by_labels() -> None:
    before = time.time_ns()
    labels = {"job": "edge", "path": "$uri"}
    (seen,) = await posted("loki-logger", {"log_labels": labels}, "/one", "/two", "/one")
    assert (seen.method, seen.target) == ("POST", "/loki/api/v1/push")
    assert (seen.headers["Content-Type"], seen.headers["X-Scope-OrgID"]) == ("application/json", "fake")
    one, two = json.loads(seen.body)["streams"]
    assert [one["stream"], two["stream"]] == [{"job": "edge", "path": "/one"}, {"job": "edge", "path": "/two"}]
    assert [line for _, line in one["values"]] == ['{"uri":"/one","route_id":0}'] * 2
    took_ns = 250_000_000
    assert all(before <= int(at) + took_ns <= time.time_ns() for at, _ in (*one["values"], *two["values"]))


async def test_loki_is_told_the_tenant_and_further_headers() -> None:
    config = {"tenant_id": "shop", "headers": {"Authorization": "Bearer t"}, "endpoint_uri": "/push"}
    (seen,) = await posted("loki-logger", config, "/one")
    assert seen.target == "/push"
    assert (seen.headers["X-Scope-OrgID"], seen.headers["Authorization"]) == ("shop", "Bearer t")
    assert json.loads(seen.body)["streams"][0]["stream"] == {"job": "apisix"}


async def test_elasticsearch_gets_documents_in_bulk() -> None:
    config = {**ELASTIC, "auth": {"username": "u", "password": "p"}}
    (seen,) = await posted("elasticsearch-logger", config, "/one", "/two")
    assert (seen.method, seen.target) == ("POST", "/_bulk?filter_path=errors,items.*.error")
    assert (seen.headers["Content-Type"], seen.headers["Authorization"]) == ("application/x-ndjson", "Basic dTpw")
    assert seen.body.endswith(b"\n")
    place, entry, _, other = map(json.loads, seen.body.splitlines())
    day = time.strftime("%Y.%m.%d", time.gmtime())
    assert place == {"create": {"_index": f"requests-{day}-a.example"}}
    assert (entry["uri"], other["uri"]) == ("/one", "/two")


async def test_elasticsearch_is_found_by_the_older_field_and_told_a_login_of_ones_own() -> None:
    async with running(lambda seen: web.json_response(TAKEN)) as service:
        closed = Closed(http=service.services.http)
        login = {"auth": {"username": "u", "password": "p"}, "headers": {"Authorization": "ApiKey k"}}
        config = {"endpoint_addr": service.url, "field": {"index": "a"}, "batch_max_size": 1, **login}
        await logged("elasticsearch-logger", config, closed)
        await until(lambda: bool(service.seen))
        await closed.close()
        assert service.seen[0].headers["Authorization"] == "ApiKey k"


def test_characters_that_utf8_lacks_keep_no_batch_back() -> None:
    assert as_json({"body": "\ud800é"}) == '{"body":"?é"}'.encode()


async def test_old_elasticsearch_is_told_the_type() -> None:
    (seen,) = await posted("elasticsearch-logger", {"field": {"index": "a", "type": "log"}}, "/one")
    assert json.loads(seen.body.splitlines()[0]) == {"create": {"_index": "a", "_type": "log"}}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"errors": True, "items": [FAULT]}, "dropped: it refused them: no such field"),
        ({"items": [{"index": {"status": 201}}, {"create": {"error": "full"}}]}, "dropped: it refused them: full"),
        ({"errors": True}, "it does not say why"),
    ],
)
async def test_documents_that_elasticsearch_refuses_are_said_and_not_sent_again(
    answer: Any, said: str, caplog: Any
) -> None:
    config = {**ELASTIC, "max_retry_count": 1, "retry_delay": 0}
    seen = await posted("elasticsearch-logger", config, "/one", answer=lambda seen: web.json_response(answer))
    assert len(seen) == 1
    assert said in caplog.text


@pytest.mark.parametrize("text", ["", "<html>", "[]", '{"items": 3}', " " * (2 << 20)])
async def test_whatever_else_is_answered_means_that_a_batch_was_taken(text: str) -> None:
    config = {**ELASTIC, "max_retry_count": 1, "retry_delay": 0}
    assert len(await posted("elasticsearch-logger", config, "/one", answer=lambda seen: web.Response(text=text))) == 1


@pytest.mark.parametrize("status", [301, 400, 500])
@pytest.mark.parametrize("name", ["loki-logger", "elasticsearch-logger"])
async def test_batches_that_were_not_taken_are_sent_again(name: str, status: int) -> None:
    answers = iter([status, 200, 200])
    config = {**(ELASTIC if name == "elasticsearch-logger" else {}), "max_retry_count": 1, "retry_delay": 0}
    seen = await posted(name, config, "/one", answer=lambda seen: web.json_response(TAKEN, status=next(answers)))
    assert len(seen) == 2
    assert seen[0].body == seen[1].body


@pytest.mark.parametrize(
    ("name", "config", "field"),
    [
        ("loki-logger", {}, "config.endpoint_addrs"),
        ("loki-logger", {"endpoint_addrs": []}, "config.endpoint_addrs"),
        ("loki-logger", {"endpoint_addrs": ["loki:3100"]}, "config.endpoint_addrs"),
        ("loki-logger", {"endpoint_addrs": ["http://loki"], "log_labels": {}}, "config.log_labels"),
        ("loki-logger", {"endpoint_addrs": ["http://loki"], "headers": {"a b": "c"}}, "config.headers"),
        ("loki-logger", {"endpoint_addrs": ["http://loki?a=b"]}, "config.endpoint_addrs"),
        ("loki-logger", {"endpoint_addrs": ["http://loki#a"]}, "config.endpoint_addrs"),
        ("loki-logger", {"endpoint_addrs": ["http://loki"], "headers": {"a": "b\nc"}}, "config.headers"),
        ("loki-logger", {"endpoint_addrs": ["http://loki"], "tenant_id": "b\nc"}, "config.tenant_id"),
        ("elasticsearch-logger", {"endpoint_addr": "e:9200", "field": {"index": "a"}}, "config.endpoint_addr"),
        ("elasticsearch-logger", {"endpoint_addr": "http://e", "endpoint_addrs": ["http://e"]}, "config"),
        ("elasticsearch-logger", {"field": {"index": "a"}}, "config"),
        ("elasticsearch-logger", {"endpoint_addrs": ["http://e"]}, "config.field"),
        ("elasticsearch-logger", {"endpoint_addrs": ["http://e"], "field": {"index": ""}}, "config.field.index"),
    ],
)
def test_bad_configurations_are_refused_with_their_place(name: str, config: dict[str, Any], field: str) -> None:
    with pytest.raises(PluginRefused) as caught:
        chain((name, config))
    assert caught.value.field.startswith(field)
