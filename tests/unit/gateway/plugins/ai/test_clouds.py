"""Models of Vertex AI and Bedrock: paths, forms, signatures and tokens; the provider is a server of the test."""

import asyncio
import json
import struct
import zlib
from datetime import UTC, datetime
from typing import Any

import jwt
import pytest
from aiohttp import web
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from pydantic import ValidationError

from headgate.common.plugins.ai.proxy import AiAwsAuth, AiProxyConfig
from headgate.gateway.plugins.built_in.ai.clouds.aws_signing import sign
from headgate.gateway.plugins.built_in.ai.clouds.event_stream import CONTENT_TYPE, EventStreamWatcher
from headgate.gateway.plugins.built_in.ai.clouds.predictions import embeddings_told
from headgate.gateway.plugins.built_in.ai.usage import Usage
from headgate.gateway.plugins.interface import Headers, Request, Response
from headgate.gateway.plugins.runtime.chain import PluginChain
from unit.gateway.plugins.ai.provider import CHAT, Asked, fake_provider, says
from unit.gateway.plugins.ai.test_ai_proxy import CHAT_REQUEST, asking, proxied
from unit.gateway.plugins.running import asked, chain

KEY = rsa.generate_private_key(65537, 2048)
PEM = KEY.private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
).decode()
AWS = {"access_key_id": "AKIDEXAMPLE", "secret_access_key": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}
BEDROCK = {"provider": "bedrock", "auth": {"aws": AWS}, "provider_conf": {"region": "us-east-1"}}
VERTEX = {"provider": "vertex-ai", "provider_conf": {"region": "europe-west1", "project_id": "shop"}}
MODEL = "anthropic.claude-3-5-sonnet-20240620-v1:0"
CONVERSE = {"messages": [{"role": "user", "content": [{"text": "What is 1+1?"}]}]}
CONVERSED = {
    "output": {"message": {"role": "assistant", "content": [{"text": "2"}]}},
    "usage": {"inputTokens": 8, "outputTokens": 2, "totalTokens": 10},
}


async def answered(plugins: PluginChain, given: Request) -> Response:
    answer = await asked(plugins, given)
    assert answer is not None
    await answer.read_body(1 << 20)
    return answer


def message(payload: Any, event: str) -> bytes:
    """Return a message of an event stream."""
    header = b"\x0b:event-type\x07" + struct.pack(">H", len(event)) + event.encode()
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    prelude = struct.pack(">II", 12 + len(header) + len(body) + 4, len(header))
    head = prelude + struct.pack(">I", zlib.crc32(prelude)) + header + body
    return head + struct.pack(">I", zlib.crc32(head))


STREAM = b"".join(
    (
        message({"role": "assistant"}, "messageStart"),
        message({"delta": {"text": "The answer "}}, "contentBlockDelta"),
        message({"delta": {"text": "is 2."}}, "contentBlockDelta"),
        message(b"no json", "other"),
        message({"stopReason": "end_turn"}, "messageStop"),
        message({"usage": CONVERSED["usage"]}, "metadata"),
    )
)


# Signatures


@pytest.mark.parametrize(
    ("method", "target", "kind", "body", "signature"),
    [
        ("GET", "/", "", b"", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        (
            "GET",
            "/?Param2=value2&Param1=value1",
            "",
            b"",
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
        ),
        (
            "POST",
            "/",
            "application/x-www-form-urlencoded",
            b"Param1=value1",
            "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
        ),
    ],
)
def test_signatures_are_those_of_the_test_suite_of_aws(
    method: str, target: str, kind: str, body: bytes, signature: str
) -> None:
    headers = Headers(
        [("Authorization", "mine"), ("X-Amz-Target", "evil"), *([("Content-Type", kind)] if kind else [])]
    )
    url, now = f"https://example.amazonaws.com{target}", datetime(2015, 8, 30, 12, 36, tzinfo=UTC)
    sign(AiAwsAuth.model_validate(AWS), "us-east-1", "service", method, url, headers, body, now)
    said = headers.get("Authorization") or ""
    assert said.startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, ")
    assert said.endswith(f", Signature={signature}")
    assert (headers.get("X-Amz-Date"), headers.get("X-Amz-Target")) == ("20150830T123600Z", None)


def test_a_token_of_temporary_keys_is_sent_and_signed() -> None:
    headers = Headers()
    auth = AiAwsAuth.model_validate({**AWS, "session_token": "temporary"})
    sign(auth, "us-east-1", "bedrock", "POST", "https://a.example/x", headers, b"", datetime.now(UTC))
    assert headers.get("X-Amz-Security-Token") == "temporary"
    assert "SignedHeaders=host;x-amz-date;x-amz-security-token," in (headers.get("Authorization") or "")


# Bedrock


async def test_bedrock_is_asked_by_the_path_of_the_model_with_a_signature() -> None:
    async with fake_provider(says(CONVERSED)) as provider:
        given = asking({**CONVERSE, "model": MODEL}, "/v1/converse", (("Authorization", "mine"),))
        answer, body = await proxied(provider, given, **BEDROCK, override={"llm_options": {"max_tokens": 9}})
        (seen,) = provider.asked
    assert (answer.status, json.loads(body)) == (200, CONVERSED)
    assert seen.target == "/model/anthropic.claude-3-5-sonnet-20240620-v1%3A0/converse"
    assert json.loads(seen.raw) == {**CONVERSE, "inferenceConfig": {"maxTokens": 9}}
    assert (
        "/us-east-1/bedrock/aws4_request, SignedHeaders=content-type;host;x-amz-date" in seen.headers["Authorization"]
    )
    assert given.variables["llm_total_tokens"] == "10"


async def test_bedrock_answers_in_pieces_and_its_tokens_are_counted() -> None:
    async def serve(seen: Asked, given: web.BaseRequest) -> web.Response:
        return web.Response(body=STREAM, content_type=CONTENT_TYPE)

    async with fake_provider(serve) as provider:
        given = asking({**CONVERSE, "stream": True}, "/converse")
        answer, body = await proxied(provider, given, **BEDROCK, options={"model": "arn:aws:bedrock:x/y"})
        (seen,) = provider.asked
    assert (body, answer.headers.get("Content-Type")) == (STREAM, CONTENT_TYPE)
    assert seen.target == "/model/arn%3Aaws%3Abedrock%3Ax%2Fy/converse-stream"
    assert json.loads(seen.raw) == CONVERSE
    told = {name: given.variables[f"llm_{name}"] for name in ("prompt_tokens", "completion_tokens", "total_tokens")}
    assert told == {"prompt_tokens": "8", "completion_tokens": "2", "total_tokens": "10"}


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_messages_are_found_however_they_are_cut(size: int) -> None:
    usage = Usage()
    watcher = EventStreamWatcher(usage, keeps_text=True)
    for start in range(0, len(STREAM), size):
        watcher.feed(STREAM[start : start + size])
    assert ("".join(usage.texts), usage.tokens["total_tokens"]) == ("The answer is 2.", 10)


@pytest.mark.parametrize("broken", [b"\xff" * 40, struct.pack(">III", 15, 0, 0) + b"abcd", STREAM[:12]])
def test_what_is_no_event_stream_tells_nothing(broken: bytes) -> None:
    usage = Usage()
    watcher = EventStreamWatcher(usage, keeps_text=True)
    watcher.feed(broken)
    watcher.feed(STREAM[len(STREAM) // 3 :])
    watcher.finish()
    assert usage.tokens == {}


@pytest.mark.parametrize(
    ("body", "path", "said"),
    [
        (CHAT_REQUEST, "/chat", "does not support openai-chat"),
        ({"prompt": "a"}, "/model/other/invoke", "does not support passthrough"),
        (CONVERSE, "/converse", "needs the name of a model"),
        ({**CONVERSE, "model": ".."}, "/converse", "needs the name of a model"),
    ],
)
async def test_bedrock_takes_one_form_and_needs_a_model(body: Any, path: str, said: str) -> None:
    async with fake_provider(says(CONVERSED)) as provider:
        answer, told = await proxied(provider, asking(body, path), **BEDROCK)
        assert (answer.status, provider.asked) == (400, [])
        assert said in told.decode()


# Vertex AI


async def test_vertex_is_asked_by_project_and_region() -> None:
    async with fake_provider(says(CHAT)) as provider:
        auth = {"header": {"Authorization": "Bearer token"}}
        override = {"llm_options": {"max_tokens": 9}}
        answer, _ = await proxied(provider, asking(CHAT_REQUEST), **VERTEX, auth=auth, override=override)
        (seen,) = provider.asked
    assert answer.status == 200
    assert seen.target == "/v1beta1/projects/shop/locations/europe-west1/endpoints/openapi/chat/completions"
    assert seen.headers["Authorization"] == "Bearer token"
    assert json.loads(seen.raw) == {**CHAT_REQUEST, "max_completion_tokens": 9}


PREDICTED = {
    "predictions": [
        {"embeddings": {"values": [0.1, 0.2], "statistics": {"token_count": 3}}},
        {"embeddings": {"values": [0.3], "statistics": {"token_count": 4}}},
    ]
}


async def test_embeddings_are_predictions_there_and_have_the_form_of_openai_here() -> None:
    async with fake_provider(says(PREDICTED)) as provider:
        given = asking({"model": "text-embedding-005", "input": ["a", "b"]})
        answer, body = await proxied(provider, given, **VERTEX, auth={"header": {"Authorization": "Bearer t"}})
        (seen,) = provider.asked
    assert answer.status == 200
    place = "/v1/projects/shop/locations/europe-west1/publishers/google/models/text-embedding-005:predict"
    assert (seen.target, json.loads(seen.raw)) == (place, {"instances": [{"content": "a"}, {"content": "b"}]})
    assert json.loads(body) == {
        "object": "list",
        "data": [
            {"object": "embedding", "index": 0, "embedding": [0.1, 0.2]},
            {"object": "embedding", "index": 1, "embedding": [0.3]},
        ],
        "model": "text-embedding-005",
        "usage": {"prompt_tokens": 7, "total_tokens": 7},
    }
    assert given.variables["llm_total_tokens"] == "7"


@pytest.mark.parametrize("given", [{"input": [[1, 2]]}, {"input": []}, {"input": 1}])
async def test_an_input_that_is_no_text_is_refused(given: Any) -> None:
    async with fake_provider(says(PREDICTED)) as provider:
        answer, _ = await proxied(provider, asking({"model": "m", **given}), **VERTEX, auth={"header": {"A": "b"}})
        assert (answer.status, provider.asked) == (400, [])


@pytest.mark.parametrize("raw", [b"", b"[]", b"{}", b'{"predictions": [{}]}', b'{"predictions": [1]}', b"[" * 100_000])
async def test_an_answer_without_predictions_is_a_502(raw: bytes) -> None:
    with pytest.raises(ValueError, match=r"it |prediction 0|Expecting"):
        embeddings_told(raw, "m")

    async def serve(seen: Asked, given: web.BaseRequest) -> web.Response:
        return web.Response(body=raw, content_type="application/json")

    async with fake_provider(serve) as provider:
        given = asking({"model": "m", "input": "a"})
        answer, _ = await proxied(provider, given, **VERTEX, auth={"header": {"A": "b"}})
        assert answer.status == 502


@pytest.mark.parametrize("count", [float("inf"), float("nan"), -1, 1 << 60, "3", None])
def test_what_is_no_number_of_tokens_counts_nothing(count: Any) -> None:
    usage = Usage()
    usage.add({"prompt_tokens": count, "completion_tokens": 2})
    assert usage.tokens["total_tokens"] == 2
    told = {"predictions": [{"embeddings": {"values": [], "statistics": {"token_count": count}}}]}
    assert embeddings_told(json.dumps(told).encode(), "m")[1]["total_tokens"] == 0


def account(url: str, **fields: Any) -> str:
    known = {"client_email": "a@shop.example", "private_key": PEM, "private_key_id": "k", "token_uri": f"{url}/token"}
    return json.dumps({"type": "service_account", **known, **fields})


async def test_a_service_account_gets_a_token_that_is_kept() -> None:
    statements: list[Any] = []

    async def serve(seen: Asked, given: web.BaseRequest) -> web.Response:
        if seen.target != "/token":
            return web.json_response(CHAT)
        statements.append(seen.raw.decode())
        return web.json_response({"access_token": f"t{len(statements)}", "expires_in": 3600})

    async with fake_provider(serve) as provider:
        auth = {"gcp": {"service_account_json": account(provider.url)}}
        config = {**VERTEX, "auth": auth, "override": {"endpoint": provider.url}}
        plugins = chain(("ai-proxy", config), services=provider.services)
        for _ in range(3):
            answer = await answered(plugins, asking(CHAT_REQUEST, headers=(("Authorization", "mine"),)))
            assert answer.status == 200
        token, *seen = provider.asked
    assert (token.target, len(statements)) == ("/token", 1)
    assert [each.headers["Authorization"] for each in seen] == ["Bearer t1"] * 3
    form = dict(pair.split("=", 1) for pair in statements[0].split("&"))
    assert form["grant_type"] == "urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer"
    claims = jwt.decode(form["assertion"], KEY.public_key(), algorithms=["RS256"], audience=f"{provider.url}/token")
    assert (claims["iss"], claims["scope"]) == ("a@shop.example", "https://www.googleapis.com/auth/cloud-platform")
    assert claims["exp"] - claims["iat"] == 3600
    assert jwt.get_unverified_header(form["assertion"])["kid"] == "k"


async def test_an_account_asks_for_nothing_but_models() -> None:
    async with fake_provider(says(CHAT)) as provider:
        given, key = asking({"a": 1}, "/v1/projects/shop/anything"), {"header": {"Authorization": "Bearer t"}}
        account_of = {"gcp": {"service_account_json": account(provider.url)}}
        refusal, _ = await proxied(provider, given, **VERTEX, auth=account_of)
        assert (refusal.status, provider.asked) == (400, [])
        answer, _ = await proxied(provider, given, **VERTEX, auth=key)
        assert (answer.status, provider.asked[0].target) == (200, "/v1/projects/shop/anything")


@pytest.mark.parametrize(
    ("answer", "fields"),
    [
        ({"error": "invalid_grant"}, {}),
        ([], {}),
        ({"access_token": "t", "expires_in": "soon"}, {}),
        ({"access_token": "t", "expires_in": float("nan")}, {}),
        ({"access_token": "t"}, {"private_key": "no key"}),
    ],
)
async def test_without_a_token_the_model_is_not_asked(answer: Any, fields: Any) -> None:
    async with fake_provider(says(answer)) as provider:
        auth = {"gcp": {"service_account_json": account(provider.url, **fields)}}
        refusal, _ = await proxied(provider, asking(CHAT_REQUEST), **VERTEX, auth=auth)
        assert refusal.status == 502
        assert {seen.target for seen in provider.asked} <= {"/token"}


async def test_requests_that_wait_for_a_token_hear_together_that_there_is_none() -> None:
    async with fake_provider(says({"error": "unavailable"}, 503)) as provider:
        auth = {"gcp": {"service_account_json": account(provider.url)}}
        plugins = chain(("ai-proxy", {**VERTEX, "auth": auth}), services=provider.services)
        waiting = await asyncio.gather(*(answered(plugins, asking(CHAT_REQUEST)) for _ in range(5)))
        assert ([each.status for each in waiting], len(provider.asked)) == ([502] * 5, 1)
        assert (await answered(plugins, asking(CHAT_REQUEST))).status == 502
        assert len(provider.asked) == 2


async def test_the_name_of_a_model_that_no_url_can_have_is_a_400() -> None:
    async with fake_provider(says(CONVERSED)) as provider:
        for made, given in ((BEDROCK, CONVERSE), ({**VERTEX, "auth": {"header": {"A": "b"}}}, {"input": "a"})):
            path = "/model/x/converse" if made is BEDROCK else "/v1/embeddings"
            answer, _ = await proxied(provider, asking({**given, "model": "\ud800"}, path), **made)
            assert (answer.status, provider.asked) == (400, [])


@pytest.mark.parametrize(
    "wrong",
    [
        {**BEDROCK, "provider_conf": {}},
        {**BEDROCK, "auth": {"header": {"Authorization": "t"}}},
        {**BEDROCK, "provider_conf": {"region": "us.east/1"}},
        {**BEDROCK, "auth": {"aws": {"access_key_id": "a"}}},
        {**VERTEX, "auth": {}, "provider_conf": {"region": "europe-west1"}},
        {**VERTEX, "auth": {}, "provider_conf": {"region": "r", "project_id": "a/b"}},
        {**VERTEX, "auth": {"gcp": {"service_account_json": "{}"}}},
        {**VERTEX, "auth": {"gcp": {"service_account_json": account("ftp://a", private_key="")}}},
    ],
)
def test_configurations_that_cannot_be_followed_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        AiProxyConfig.model_validate(wrong)
