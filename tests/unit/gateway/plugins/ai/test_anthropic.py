"""Requests in the form of Anthropic for providers of OpenAI's, by the cases of Apache APISIX
(t/plugin/ai-proxy-protocol-conversion.t, t/plugin/ai-proxy-anthropic.t).
"""

import json
from typing import Any

import pytest

from headgate.gateway.plugins.built_in.ai.anthropic.answers import EventConverter
from headgate.gateway.plugins.built_in.ai.anthropic.requests import Unconvertible, convert_request
from unit.gateway.plugins.ai.provider import CHAT, fake_provider, in_events, says
from unit.gateway.plugins.ai.test_ai_proxy import asking, proxied

HELLO = {"model": "claude", "max_tokens": 50, "messages": [{"role": "user", "content": "Hello"}]}
LONG_NAME = "get weather " * 8


def converted(**fields: Any) -> dict[str, Any]:
    return convert_request({**HELLO, **fields}).body


async def test_a_request_is_converted_there_and_its_answer_back() -> None:
    async with fake_provider(says(CHAT)) as server:
        headers = (("x-api-key", "k"), ("anthropic-version", "2023-06-01"), ("x-stainless-os", "x"))
        given = asking({**HELLO, "system": "Be brief"}, "/v1/messages", headers)
        answer, body = await proxied(server, given, auth={}, options={"model": "gpt-4"})
        (seen,) = server.asked
    assert seen.target == "/v1/chat/completions"
    assert seen.headers["Authorization"] == "Bearer k"
    assert not {"x-api-key", "anthropic-version", "x-stainless-os"} & {name.lower() for name in seen.headers}
    assert seen.body == {
        "model": "gpt-4",
        "max_completion_tokens": 50,
        "messages": [{"role": "system", "content": "Be brief"}, {"role": "user", "content": "Hello"}],
    }
    assert answer.status == 200
    assert json.loads(body) == {
        "id": None,
        "type": "message",
        "role": "assistant",
        "model": "gpt-4",
        "content": [{"type": "text", "text": "1 + 1 = 2."}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 8, "output_tokens": 2},
    }
    assert given.variables["llm_total_tokens"] == "10"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"stop_sequences": ["a"], "temperature": 0.5, "top_p": 1}, {"stop": ["a"], "temperature": 0.5, "top_p": 1}),
        ({"metadata": {"user_id": "u"}, "service_tier": "auto"}, {"user": "u", "service_tier": "auto"}),
        ({"thinking": {"type": "enabled", "budget_tokens": 3000}}, {"reasoning_effort": "medium"}),
        ({"thinking": {"type": "enabled"}}, {"reasoning_effort": "minimal"}),
        ({"thinking": {"type": "adaptive"}, "output_config": {"effort": "xhigh"}}, {"reasoning_effort": "xhigh"}),
        ({"thinking": {"type": "disabled"}, "top_k": 5}, {}),
        ({"tool_choice": {"type": "any", "disable_parallel_tool_use": True}}, {}),
        ({"stream": False}, {"stream": False}),
    ],
)
def test_options_have_other_names(fields, expected) -> None:
    known = {"model": "claude", "max_completion_tokens": 50, "messages": HELLO["messages"]}
    assert converted(**fields) == {**known, **expected}


def test_a_schema_of_the_output_is_strict() -> None:
    inner = {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "integer"}}}
    schema = {"type": "object", "properties": {"x": {"type": "array", "items": inner}}}
    made = converted(output_config={"format": {"type": "json_schema", "schema": schema}})
    told = made["response_format"]["json_schema"]
    assert (told["name"], told["strict"], told["schema"]["required"]) == ("structured_output", True, ["x"])
    strict = told["schema"]["properties"]["x"]["items"]
    assert (strict["required"], strict["additionalProperties"]) == (["a", "b"], False)


def test_tools_and_what_they_said_are_converted() -> None:
    found = convert_request(
        {
            **HELLO,
            "tools": [
                {"name": "add", "description": "adds", "input_schema": {"type": "object"}},
                {"name": LONG_NAME},
                {"type": "bash_20250124", "name": "bash"},
            ],
            "tool_choice": {"type": "tool", "name": LONG_NAME},
            "messages": [
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "hm"},
                        {"type": "text", "text": "let me see"},
                        {"type": "tool_use", "id": "t1", "name": LONG_NAME, "input": {"a": 1}},
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "and then?"},
                        {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "2"}]},
                    ],
                },
            ],
        }
    )
    ((renamed, own),) = found.tools.items()
    assert own == LONG_NAME
    assert (len(renamed), renamed[:12]) == (64, "get_weather_")
    add, other = (tool["function"] for tool in found.body["tools"])
    assert add == {"name": "add", "description": "adds", "parameters": {"type": "object"}}
    assert other == {"name": renamed}
    assert found.body["tool_choice"] == {"type": "function", "function": {"name": renamed}}
    call, result, text = found.body["messages"]
    assert call["content"] == "let me see"
    assert call["tool_calls"] == [
        {"id": "t1", "type": "function", "function": {"name": renamed, "arguments": '{"a":1}'}}
    ]
    assert result == {"role": "tool", "tool_call_id": "t1", "content": "2"}
    assert text == {"role": "user", "content": [{"type": "text", "text": "and then?"}]}


def test_pictures_are_urls() -> None:
    source = {"type": "base64", "media_type": "image/jpeg", "data": "AAAA"}
    blocks = [
        {"type": "text", "text": "see"},
        {"type": "image", "source": source},
        {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}},
        {"type": "document", "source": {"type": "base64", "data": "BBBB"}},
        {"type": "image", "source": "x"},
    ]
    (message,) = converted(messages=[{"role": "user", "content": blocks}])["messages"]
    urls = [part["image_url"]["url"] for part in message["content"] if part["type"] == "image_url"]
    assert urls == ["data:image/jpeg;base64,AAAA", "https://x/y.png", "data:application/pdf;base64,BBBB"]


def test_system_prompts_are_joined_without_what_changes_each_time() -> None:
    note = "x-anthropic-billing-header: a=1; cch=abc; b=2"
    blocks = [{"type": "text", "text": "one ", "cache_control": {}}, {"type": "text", "text": note}]
    assert converted(system=blocks)["messages"][0]["content"] == "one x-anthropic-billing-header:a=1; b=2"


@pytest.mark.parametrize(
    ("messages", "fault"),
    [
        ([], "missing messages"),
        ("x", "missing messages"),
        ([{"content": "x"}], "invalid message at index 1"),
        ([{"role": "user", "content": "x"}, {"role": "user"}], "invalid message content at index 2"),
    ],
)
async def test_a_request_that_is_none_is_refused(messages, fault) -> None:
    with pytest.raises(Unconvertible, match=fault):
        converted(messages=messages)
    async with fake_provider(says(CHAT)) as server:
        answer, body = await proxied(server, asking({**HELLO, "messages": messages}, "/v1/messages"))
    assert (answer.status, json.loads(body)) == (400, {"error_msg": fault})


CALL = {"id": "t1", "function": {"name": "add", "arguments": '{"a": 1}'}}


@pytest.mark.parametrize(
    ("message", "content"),
    [
        ({"content": ""}, [{"type": "text", "text": ""}]),
        (
            {"content": "x", "reasoning_content": "hm"},
            [{"type": "thinking", "thinking": "hm", "signature": ""}, {"type": "text", "text": "x"}],
        ),
        ({"tool_calls": [CALL]}, [{"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 1}}]),
        (
            {"tool_calls": [{"function": {"name": "f", "arguments": "{"}}]},
            [{"type": "tool_use", "id": "", "name": "f", "input": {}}],
        ),
    ],
)
async def test_contents_of_answers_are_converted(message, content) -> None:
    details = {"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 4}}
    told = {"choices": [{"message": message, "finish_reason": "tool_calls"}], "usage": details}
    async with fake_provider(says(told)) as server:
        _, body = await proxied(server, asking(HELLO, "/v1/messages"))
    answer = json.loads(body)
    assert (answer["content"], answer["stop_reason"]) == (content, "tool_use")
    assert answer["usage"] == {"input_tokens": 5, "output_tokens": 1, "cache_read_input_tokens": 4}


@pytest.mark.parametrize(
    ("told", "status", "expected"),
    [
        ({"error": {"type": "invalid", "message": "no"}}, 400, {"type": "invalid", "message": "no"}),
        ({"error": "no"}, 401, {"type": "api_error", "message": "no"}),
    ],
)
async def test_errors_are_converted(told, status, expected) -> None:
    async with fake_provider(says(told, status)) as server:
        answer, body = await proxied(server, asking(HELLO, "/v1/messages"))
    assert (answer.status, json.loads(body)) == (status, {"type": "error", "error": expected})


@pytest.mark.parametrize("told", [{}, [], {"choices": []}])
async def test_an_answer_of_no_form_is_a_502(told) -> None:
    async with fake_provider(says(told)) as server:
        answer, _ = await proxied(server, asking(HELLO, "/v1/messages"))
    assert answer.status == 502


def chunk(delta: Any = None, finish: str | None = None, **fields: Any) -> str:
    choices = [{"delta": delta or {}, "finish_reason": finish}] if delta is not None or finish else []
    return f"data: {json.dumps({'id': 'c1', 'model': 'm', 'choices': choices, **fields})}\n\n"


def events(raw: bytes) -> list[dict[str, Any]]:
    found = []
    for event in raw.decode().split("\n\n")[:-1]:
        kind, data = event.split("\n")
        told = json.loads(data.removeprefix("data: "))
        assert kind == f"event: {told['type']}"
        found.append(told)
    return found


async def test_events_are_converted_as_they_come() -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    sent = [
        chunk({"role": "assistant"}),
        chunk({"reasoning": "hm"}),
        chunk({"content": "Hel"}),
        chunk({"content": "lo"}),
        chunk({"tool_calls": [{"index": 0, "id": "t1", "function": {"name": "add", "arguments": ""}}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]}),
        chunk({}, "tool_calls"),
        chunk(usage=usage),
        "data: [DONE]\n\n",
    ]
    async with fake_provider(in_events(*sent)) as server:
        given = asking({**HELLO, "stream": True}, "/v1/messages")
        answer, body = await proxied(server, given)
        assert server.asked[0].body["stream_options"] == {"include_usage": True}
    assert answer.headers.get("Content-Type") == "text/event-stream"
    start, *rest = events(body)
    assert start["message"]["id"] == "c1"
    assert rest == [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Hel"}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "lo"}},
        {"type": "content_block_stop", "index": 1},
        {
            "type": "content_block_start",
            "index": 2,
            "content_block": {"type": "tool_use", "id": "t1", "name": "add", "input": {}},
        },
        {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
        {"type": "content_block_stop", "index": 2},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use"},
            "usage": {"input_tokens": 10, "output_tokens": 5},
        },
        {"type": "message_stop"},
    ]
    assert given.variables["llm_total_tokens"] == "15"


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_events_may_be_cut_anywhere(size: int) -> None:
    raw = (chunk({"content": "a"}) + chunk({}, "stop") + "data: [DONE]\n\n").encode()
    converter = EventConverter({})
    made = b"".join(converter.feed(raw[at : at + size]) for at in range(0, len(raw), size)) + converter.finish()
    kinds = [event["type"] for event in events(made)]
    assert kinds == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]


def test_an_answer_that_breaks_off_has_an_end() -> None:
    converter = EventConverter({})
    made = converter.feed(chunk({"content": "a"}).encode()) + converter.finish()
    assert [event["type"] for event in events(made)][-3:] == ["content_block_stop", "message_delta", "message_stop"]


async def test_a_stream_of_another_form_is_cut_off() -> None:
    async with fake_provider(in_events("event: ping\ndata: x\n\n")) as server:
        with pytest.raises(OSError, match="without producing any output"):
            await proxied(server, asking({**HELLO, "stream": True}, "/v1/messages"))
