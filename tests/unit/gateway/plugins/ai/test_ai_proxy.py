"""Requests to models, by the cases of Apache APISIX (t/plugin/ai-proxy*.t); the provider is a server of the test."""

import asyncio
import json
from typing import Any

import pytest
from aiohttp import web

from fakes.gateway.proxied import OK, answering
from fakes.gateway.proxied import proxied as proxied_origin
from fakes.virtual_time import in_virtual_time
from headgate.common.plugins.checking import check_use
from headgate.common.plugins.errors import PluginFault
from headgate.common.table import PluginUse
from headgate.gateway.plugins.built_in.observability.file_logger import FileLogger
from headgate.gateway.plugins.interface import Request, Response
from headgate.gateway.plugins.runtime.run import RoutePlugins
from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.policies import RoutePolicies
from unit.gateway.plugins.ai.provider import CHAT, Answer, Asked, FakeProvider, fake_provider, in_events, says
from unit.gateway.plugins.running import asked, chain, request

CHAT_REQUEST = {"model": "gpt-4", "messages": [{"role": "user", "content": "What is 1+1?"}]}
AUTH = {"header": {"Authorization": "Bearer token"}}


def asking(body: Any, path: str = "/anything", headers: tuple[tuple[str, str], ...] = (), **given: Any) -> Request:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return request(path, headers, body=raw, content_length=len(raw), **{"method": "POST", **given})


async def proxied(server: FakeProvider, given: Request, **config: Any) -> tuple[Response, bytes]:
    """Ask the provider by the plugin; return the answer and its whole body."""
    override = {"endpoint": server.url, **config.pop("override", {})}
    config = {"provider": "openai", "auth": AUTH, "override": override, **config}
    plugins = chain(("ai-proxy", config), services=server.services)
    answer = await asked(plugins, given)
    assert answer is not None
    try:
        return answer, await answer.read_body(1 << 20)
    finally:
        if answer.stream is not None:
            answer.stream.close()


async def test_the_provider_is_asked_with_its_own_key_and_the_headers_of_the_client() -> None:
    async with fake_provider(says(CHAT)) as provider:
        sent = (
            ("Authorization", "mine"),
            ("X-Test", "1"),
            ("Accept-Encoding", "gzip"),
            ("X-Forwarded-For", "192.0.2.9"),
            ("X-Real-IP", "a"),
        )
        given = asking(CHAT_REQUEST, headers=sent)
        answer, body = await proxied(provider, given)
        (seen,) = provider.asked
    assert (answer.status, json.loads(body)) == (200, CHAT)
    assert (seen.method, seen.target) == ("POST", "/v1/chat/completions")
    assert seen.headers["Authorization"] == "Bearer token"
    assert seen.headers["X-Test"] == "1"
    assert seen.headers["Content-Type"] == "application/json"
    assert not {"Accept-Encoding", "X-Forwarded-For", "X-Real-IP"} & seen.headers.keys()
    assert seen.raw == json.dumps(CHAT_REQUEST).encode()  # byte for byte, as nothing is changed
    told = {name: value for name, value in given.variables.items() if name.startswith("llm_")}
    assert told.pop("llm_time_to_first_token")
    assert told == {
        "llm_model": "gpt-4",
        "llm_stream": "false",
        "llm_prompt_tokens": "8",
        "llm_completion_tokens": "2",
        "llm_total_tokens": "10",
    }
    assert given.upstream_status == 200


@pytest.mark.parametrize(
    ("provider_name", "path", "expected"),
    [
        ("openai", "/a", "/v1/chat/completions"),
        ("openai-compatible", "/a", "/v1/chat/completions"),
        ("azure-openai", "/a", "/completions"),
        ("deepseek", "/a", "/chat/completions"),
        ("aimlapi", "/a", "/chat/completions"),
        ("openrouter", "/a", "/api/v1/chat/completions"),
        ("gemini", "/a", "/v1beta/openai/chat/completions"),
        ("anthropic", "/a", "/v1/chat/completions"),
        ("anthropic", "/v1/messages", "/v1/messages"),
    ],
)
async def test_each_provider_has_paths_of_its_own(provider_name, path, expected) -> None:
    async with fake_provider(says(CHAT)) as provider:
        answer, _ = await proxied(provider, asking(CHAT_REQUEST, path), provider=provider_name)
        assert [seen.target for seen in provider.asked] == [expected]
        assert ("model" in provider.asked[0].body) == (provider_name != "azure-openai")
    assert answer.status == 200


async def test_other_forms_go_to_their_own_paths() -> None:
    async with fake_provider(says({"object": "list"})) as provider:
        await proxied(provider, asking({"input": "x"}, "/v1/responses"))
        await proxied(provider, asking({"input": "x"}, "/e"))
        given = asking({"prompt": "x"}, "/v1/images?size=1&key=mine", method="PUT")
        await proxied(provider, given, auth={"query": {"key": "secret"}})
    assert [(seen.method, seen.target) for seen in provider.asked] == [
        ("POST", "/v1/responses"),
        ("POST", "/v1/embeddings"),
        ("PUT", "/v1/images?key=secret&size=1"),
    ]


async def test_an_endpoint_may_have_path_and_query() -> None:
    async with fake_provider(says(CHAT)) as provider:
        override = {"endpoint": f"{provider.url}/random?api-version=2"}
        await proxied(provider, asking(CHAT_REQUEST, "/a?x=1"), override=override, auth={"query": {"api_key": "k&y"}})
    assert [seen.target for seen in provider.asked] == ["/random?api_key=k%26y&api-version=2"]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"options": {"model": "other", "temperature": 1.0}}, {"model": "other", "temperature": 1.0}),
        ({"override": {"llm_options": {"max_tokens": 5}}}, {"max_completion_tokens": 5}),
        ({"override": {"llm_options": {"max_tokens": 5}}, "provider": "deepseek"}, {"max_tokens": 5}),
        ({"override": {"request_body": {"openai-chat": {"top_p": 1, "model": "x"}}}}, {"top_p": 1}),
        (
            {"override": {"request_body": {"openai-chat": {"model": "x"}}, "request_body_force_override": True}},
            {"model": "x"},
        ),
        ({"override": {"request_body": {"openai-chat": {"meta": {"a": 1, "b": 2}}}}}, {"meta": {"a": 0, "b": 2}}),
        ({"override": {"request_body": {"openai-responses": {"top_p": 1}}}}, {}),
    ],
)
async def test_fields_are_set_as_configured(config, expected) -> None:
    own = {**CHAT_REQUEST, "max_tokens": 7, "meta": {"a": 0}} if "meta" in str(config) else CHAT_REQUEST
    if "llm_options" in str(config):
        own = {**CHAT_REQUEST, "max_tokens": 7}
    async with fake_provider(says(CHAT)) as provider:
        await proxied(provider, asking(own), **config)
        got = provider.asked[0].body
    dropped = {"max_tokens"} if "max_completion_tokens" in expected else set()
    assert got == {name: value for name, value in {**own, **expected}.items() if name not in dropped}


@pytest.mark.parametrize(
    ("given", "status", "body"),
    [
        (asking(b""), 400, b'{"message": "could not get body: request body is empty"}\n'),
        (asking(b"{}x"), 400, b'{"message": "could not parse JSON request body: it is no JSON"}\n'),
        (asking({}), 400, b"no matching AI protocol for the request"),
        (
            asking(CHAT_REQUEST, headers=(("Content-Type", "text/plain"),)),
            400,
            b"unsupported content-type: text/plain, only application/json is supported",
        ),
        (
            asking({**CHAT_REQUEST, "input": "x"}, "/v1/converse"),
            400,
            b"provider openai does not support bedrock-converse protocol "
            b"(supported: openai-chat, openai-responses, openai-embeddings)",
        ),
        (asking({"messages": ["x" * 2000]}), 413, None),
    ],
)
async def test_what_is_no_request_to_a_model_is_refused(given, status, body) -> None:
    async with fake_provider(says(CHAT)) as provider:
        answer, said = await proxied(provider, given, max_req_body_size=1000)
        assert provider.asked == []
    assert answer.status == status
    assert body is None or said == body


@pytest.mark.parametrize("status", [401, 429, 500])
async def test_errors_of_the_provider_reach_the_client(status: int) -> None:
    async with fake_provider(says({"error": "told"}, status, **{"X-Secret": "1"})) as provider:
        answer, body = await proxied(provider, asking(CHAT_REQUEST))
    assert (answer.status, json.loads(body)) == (status, {"error": "told"})
    assert "X-Secret" not in answer.headers


async def test_a_provider_that_is_not_there_is_a_502_and_a_slow_one_a_504() -> None:
    async with fake_provider(in_events(0.5, "x")) as provider:
        slow = {"endpoint": provider.url}
        answer, _ = await proxied(provider, asking(CHAT_REQUEST), override={"endpoint": "http://127.0.0.1:1"})
        assert answer.status == 502
        answer, _ = await proxied(provider, asking(CHAT_REQUEST), override=slow, timeout=10_000)
        assert answer.status == 200


EVENTS = (
    'data: {"choices":[{"delta":{"content":"1 + "}}],"usage":null}\n\nda',
    'ta: {"choices":[{"delta":{"content":"1 = 2"}}]}\n\n',
    'data: {"choices":[],"usage":{"prompt_tokens":15,"completion_tokens":20,"total_tokens":35}}\r\n\r\n',
    "data: [DONE]\n\n",
)


async def test_events_pass_as_they_come_and_are_counted() -> None:
    async with fake_provider(in_events(*EVENTS)) as provider:
        given = asking({**CHAT_REQUEST, "stream": True})
        answer, body = await proxied(provider, given, logging={"summaries": True, "payloads": True})
        assert provider.asked[0].body["stream_options"] == {"include_usage": True}
    assert body == "".join(EVENTS).encode()
    assert answer.headers.get("Content-Type") == "text/event-stream"
    assert given.variables["llm_total_tokens"] == "35"
    added: Any = given.variables["log.added"]
    said = added(0.1)
    assert said["llm_summary"]["prompt_tokens"] == 15
    assert said["llm_summary"]["stream"] == "true"
    assert said["llm_request"] == {"messages": CHAT_REQUEST["messages"], "stream": True}
    assert said["llm_response_text"] == {"content": "1 + 1 = 2"}


@pytest.mark.parametrize(
    ("path", "body", "provider_name", "events"),
    [
        (
            "/v1/messages",
            CHAT_REQUEST,
            "anthropic",
            (
                'event: message_start\ndata: {"message":{"usage":{"input_tokens":10,"output_tokens":1}}}\n\n',
                'event: message_delta\ndata: {"delta":{},"usage":{"output_tokens":25}}\n\n',
                "event: message_stop\ndata: {}\n\n",
            ),
        ),
        (
            "/v1/responses",
            {"input": "x"},
            "openai",
            (
                'event: response.output_text.delta\ndata: {"delta":"x"}\n\n',
                'event: response.completed\ndata: {"response":{"usage":{"input_tokens":10,"output_tokens":25}}}\n\n',
            ),
        ),
    ],
)
async def test_tokens_are_counted_in_all_forms(path, body, provider_name, events) -> None:
    async with fake_provider(in_events(*events)) as provider:
        given = asking({**body, "stream": True}, path)
        await proxied(provider, given, provider=provider_name)
        assert "stream_options" not in provider.asked[0].body
    told = [given.variables[f"llm_{name}_tokens"] for name in ("prompt", "completion", "total")]
    assert told == ["10", "25", "35"]


async def test_tokens_are_counted_behind_long_embeddings() -> None:
    long = {"data": [{"embedding": [0.123456789] * 90_000}], "usage": {"prompt_tokens": 7, "total_tokens": 7}}
    async with fake_provider(says(long)) as provider:
        given = asking({"input": "x"})
        plugins = chain(
            ("ai-proxy", {"provider": "openai", "auth": {}, "override": {"endpoint": provider.url}}),
            services=provider.services,
        )
        answer = await asked(plugins, given)
        assert answer is not None
        assert len(await answer.read_body(1 << 22)) > 1 << 20
    assert given.variables["llm_total_tokens"] == "7"


@in_virtual_time
async def test_a_model_may_take_longer_than_an_upstream() -> None:
    async with fake_provider(late(5.0)) as server, proxied_origin(answering(OK), config=SHORT) as proxy:
        for timeout, status in ((10_000, b"200"), (2_000, b"504")):
            config = {"provider": "openai", "auth": AUTH, "override": {"endpoint": server.url}, "timeout": timeout}
            policies = RoutePolicies()
            policies.hooks = RoutePlugins(chain(("ai-proxy", config), services=server.services))
            proxy.target.policies = policies
            client = await proxy.connect()
            body = json.dumps(CHAT_REQUEST).encode()
            await client.send(b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
            assert (await client.head()).split(b" ")[1] == status


SHORT = ProxyConfig(read_timeout_s=1.0)


def late(seconds: float) -> Answer:
    async def answer(seen: Asked, given: web.BaseRequest) -> web.StreamResponse:
        await asyncio.sleep(seconds)
        return web.json_response(CHAT)

    return answer


async def test_events_reach_the_client_of_a_gateway_one_by_one() -> None:
    gate = asyncio.Event()

    async def answer(seen: Asked, given: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(given)
        await response.write(EVENTS[1].encode())
        await gate.wait()
        await response.write(EVENTS[2].encode())
        return response

    async with fake_provider(answer) as server, proxied_origin(answering(OK)) as proxy:
        config = {"provider": "openai", "auth": AUTH, "override": {"endpoint": server.url}}
        policies = RoutePolicies()
        policies.hooks = RoutePlugins(chain(("ai-proxy", config), services=server.services))
        proxy.target.policies = policies
        client = await proxy.connect()
        body = json.dumps({**CHAT_REQUEST, "stream": True}).encode()
        await client.send(b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        assert b"Content-Type: text/event-stream\r\n" in await client.head()
        for event in EVENTS[1:3]:
            framed = b"%x\r\n%b\r\n" % (len(event), event.encode())
            assert await client.exactly(len(framed)) == framed
            gate.set()
        assert await client.exactly(5) == b"0\r\n\r\n"
        assert proxy.origin.heads == []


@pytest.mark.parametrize("bound", [{"max_stream_duration_ms": 50}, {"max_response_bytes": 60}])
async def test_an_answer_without_end_is_cut_off(bound) -> None:
    async with fake_provider(in_events(*[EVENTS[1], 0.1] * 5)) as provider:
        with pytest.raises(OSError, match=next(iter(bound))):
            await proxied(provider, asking(CHAT_REQUEST), **bound)


async def test_a_long_answer_whose_length_is_known_is_refused() -> None:
    async with fake_provider(says(CHAT)) as provider:
        answer, _ = await proxied(provider, asking(CHAT_REQUEST), max_response_bytes=5)
    assert answer.status == 502


async def test_an_entry_of_a_logger_has_the_summary(monkeypatch: pytest.MonkeyPatch) -> None:
    entries: list[Any] = []
    monkeypatch.setattr(FileLogger, "write", lambda self, entry, request: entries.append(json.loads(entry)))
    async with fake_provider(says(CHAT)) as provider:
        config = {"provider": "openai", "auth": AUTH, "override": {"endpoint": provider.url}}
        plugins = chain(
            ("ai-proxy", {**config, "logging": {"summaries": True}}),
            ("file-logger", {"path": "/dev/stdout", "log_format": {"tokens": "$llm_total_tokens"}}),
            services=provider.services,
        )
        given = asking(CHAT_REQUEST)
        answer = await asked(plugins, given)
        assert answer is not None
        await answer.read_body(1000)
        plugins.on_finish(given, 200, 0.1)
    (entry,) = entries
    assert entry["tokens"] == "10"
    assert entry["llm_summary"]["total_tokens"] == 10


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"provider": "some-unique", "auth": {}}, "config.provider"),
        ({"provider": "openai"}, "config.auth"),
        ({"provider": "openai-compatible", "auth": {}}, "config"),
        ({"provider": "openai", "auth": {"header": {"Host": "x"}}}, "config.auth.header.Host.[key]"),
        ({"provider": "openai", "auth": {}, "override": {"endpoint": "x"}}, "config.override.endpoint"),
        ({"provider": "openai", "auth": {}, "options": {"model": 1}}, "config"),
    ],
)
def test_a_wrong_configuration_is_refused_at_its_field(config, field) -> None:
    with pytest.raises(PluginFault) as fault:
        check_use(PluginUse(name="ai-proxy", config=config))
    assert fault.value.field == field
