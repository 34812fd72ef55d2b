"""What plugins make of prompts, by the cases of Apache APISIX (t/plugin/ai-prompt-*.t)."""

import gzip
import json
from typing import Any

import pytest

from headgate.common.plugins.checking import check_use
from headgate.common.plugins.errors import PluginFault
from headgate.common.table import PluginUse
from headgate.gateway.plugins.interface import Request, Response
from unit.gateway.plugins.running import asked, chain, request


def asking(body: Any, path: str = "/hello", **given: Any) -> Request:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return request(path, given.pop("headers", ()), method="POST", body=raw, content_length=len(raw))


async def verdict(config: dict[str, Any], body: Any, path: str = "/hello", **given: Any) -> str:
    answer = await asked(chain(("ai-prompt-guard", config)), asking(body, path, **given))
    if answer is None:
        return "passes"
    assert answer.status == 400
    return str(json.loads(answer.body or b"")["message"])


def chat(*messages: tuple[str, Any]) -> dict[str, Any]:
    return {"messages": [{"role": role, "content": content} for role, content in messages]}


NOT_ALLOWED = "Request doesn't match allow patterns"
DENIED = "Request contains prohibited content"
ALL = {"match_all_roles": True}
BAD = {"deny_patterns": ["badword"]}
HISTORY = [("system", "goodword"), ("system", "badword"), ("system", "goodword")]


@pytest.mark.parametrize(
    ("config", "body", "expected"),
    [
        ({**ALL, "allow_patterns": ["goodword"], **BAD}, chat(("system", "goodword")), "passes"),
        ({**ALL, "allow_patterns": ["goodword"], **BAD}, chat(("system", "badword")), NOT_ALLOWED),
        ({**ALL, "allow_patterns": ["goodword"], **BAD}, chat(("system", "goodword badword")), DENIED),
        ({**ALL, **BAD}, chat(("system", "badword")), DENIED),
        ({"allow_patterns": ["goodword"]}, chat(("system", "badword")), "passes"),
        ({"allow_patterns": ["goodword"]}, chat(("user", "badword")), NOT_ALLOWED),
        ({**ALL, **BAD, "match_all_conversation_history": True}, chat(*HISTORY), DENIED),
        ({**ALL, **BAD}, chat(*HISTORY), "passes"),
        ({**ALL, "deny_patterns": ["^[A-Za-z0-9_]+badword$"]}, chat(("system", "anaapsanaapbadword")), DENIED),
        (BAD, chat(("user", [{"type": "text", "text": "badword"}])), DENIED),
        (BAD, chat(("user", [{"type": "image_url", "url": "badword"}, {"type": "text", "text": "fine"}])), "passes"),
        (BAD, chat(("user", "x" * 5000 + "badword")), DENIED),
        (BAD, {"foo": "badword"}, "passes"),
        ({**BAD, "fail_mode": "error"}, {"foo": "b"}, "Request format not recognized by ai-prompt-guard"),
        ({**BAD, "fail_mode": "warn"}, {"foo": "b"}, "passes"),
        (BAD, b"badword=1", "passes"),
        ({**BAD, "fail_mode": "error"}, b"a=1", "could not parse JSON request body: it is no JSON"),
        (BAD, b"", "Empty request body"),
        (BAD, b'\xef\xbb\xbf{"n":NaN,"messages":[{"role":"user","content":"badword \\ud800"}]}', DENIED),
        (BAD, json.dumps(chat(("user", "badword"))).encode("utf-16"), DENIED),
    ],
)
async def test_patterns_decide_about_prompts(config, body, expected) -> None:
    assert await verdict(config, body) == expected


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        ("/v1/responses", {"input": "this contains badword in it"}, DENIED),
        ("/v1/responses", {"input": "hello", "instructions": "you must say badword"}, "passes"),
        ("/v1/responses", {"input": [{"role": "user", "content": [{"text": "badword"}]}]}, DENIED),
        ("/v1/responses", {"input": [{"type": "function_call_output", "output": "badword"}, "fine"]}, DENIED),
        ("/v1/messages", {"system": "x", **chat(("user", [{"type": "text", "text": "badword"}]))}, DENIED),
        ("/model/m/converse", {"system": [{"text": "x"}], **chat(("user", [{"text": "badword"}]))}, DENIED),
        ("/v1/embeddings", {"input": "badword"}, DENIED),
        ("/v1/embeddings", {"input": ["fine", "badword"]}, DENIED),
    ],
)
async def test_prompts_are_found_in_all_forms(path, body, expected) -> None:
    assert await verdict(BAD, body, path) == expected


async def test_instructions_are_looked_at_with_all_roles() -> None:
    body = {"input": "hello", "instructions": "you must say badword"}
    assert await verdict({**ALL, **BAD}, body, "/v1/responses") == DENIED


async def test_a_compressed_prompt_is_looked_at_and_goes_on_as_it_was_read() -> None:
    coding = [("Content-Encoding", "gzip")]
    assert await verdict(BAD, gzip.compress(json.dumps(chat(("user", "badword"))).encode()), headers=coding) == DENIED
    passing = asking(gzip.compress(b'{"messages":[]}'), headers=coding)
    assert await asked(chain(("ai-prompt-guard", BAD)), passing) is None
    assert passing.body == b'{"messages":[]}'
    assert "Content-Encoding" not in passing.headers


async def status(name: str, config: dict[str, Any], body: Any) -> int:
    answer = await asked(chain((name, config)), asking(body))
    return 200 if answer is None else answer.status


async def test_what_would_take_too_long_is_refused() -> None:
    many = b'{"messages":[' + b"[]," * 200_000 + b"[]]}"
    assert await status("ai-prompt-guard", BAD, many) == 413
    patterns = {"deny_patterns": [f"[ab]{{{size}}}c" for size in range(300, 340)]}
    assert await status("ai-prompt-guard", patterns, chat(("user", "a" * 50_000))) == 413
    assert await status("ai-prompt-guard", {**BAD, "max_req_body_size": 10}, chat(("user", "hello"))) == 413
    nested = b'{"messages":' + b"[" * 30_000 + b"]" * 30_000 + b"}"
    assert await status("ai-prompt-guard", {**BAD, "fail_mode": "error"}, nested) == 400


async def decorated(config: dict[str, Any], body: Any, path: str = "/hello") -> Any:
    given = asking(body, path)
    assert await asked(chain(("ai-prompt-decorator", config)), given) is None
    return json.loads(given.body or b"")


SYSTEM = {"role": "system", "content": "some content"}
BEFORE, BEHIND = {"role": "system", "content": "Be helpful"}, {"role": "user", "content": "Please be concise"}


async def test_messages_are_put_around_those_of_a_request() -> None:
    own = chat(("system", "You are a mathematician"), ("user", "What is 1+1?"))
    assert (await decorated({"prepend": [SYSTEM]}, own))["messages"] == [SYSTEM, *own["messages"]]
    assert (await decorated({"append": [SYSTEM]}, own))["messages"] == [*own["messages"], SYSTEM]
    both = await decorated({"prepend": [BEFORE], "append": [BEHIND]}, own)
    assert both == {"messages": [BEFORE, *own["messages"], BEHIND]}


async def test_messages_become_instructions_and_input_of_the_responses_api() -> None:
    config = {"prepend": [BEFORE], "append": [BEHIND]}
    told = await decorated(config, {"input": "What is 1+1?", "instructions": "You are a tutor"}, "/v1/responses")
    assert told == {"input": "What is 1+1?\nPlease be concise", "instructions": "Be helpful\nYou are a tutor"}
    item = {"type": "message", "role": "user", "content": "What is 1+1?"}
    listed = await decorated(config, {"input": [item]}, "/v1/responses")
    assert listed["input"] == [item, {"type": "message", **BEHIND}]


async def test_system_messages_of_bedrock_stand_apart() -> None:
    told = await decorated({"prepend": [BEFORE, BEHIND]}, {"messages": []}, "/model/m/converse")
    said = {"role": "user", "content": [{"text": "Please be concise"}]}
    assert told == {"system": [{"text": "Be helpful"}], "messages": [said]}


TEMPLATES = [
    {
        "name": "programming question",
        "template": {
            "model": "some model",
            "temperature": 0.5,
            "messages": [
                {"role": "system", "content": "You are a {{ language }} programmer."},
                {"role": "user", "content": "Write a {* program *} program."},
            ],
        },
    },
    {"name": "empty", "template": {"messages": [{"role": "user", "content": "About {{topic}} in {{level}}."}]}},
]


async def templated(body: Any) -> tuple[Response | None, Any]:
    given = asking(body)
    answer = await asked(chain(("ai-prompt-template", {"templates": TEMPLATES})), given)
    return answer, json.loads(given.body or b"")


async def test_a_template_is_filled_in_and_keeps_its_form() -> None:
    given = {"template_name": "programming question", "language": "python", "program": 'quick"}],\n "x'}
    answer, made = await templated(given)
    assert answer is None
    assert made == {
        "model": "some model",
        "temperature": 0.5,
        **chat(("system", "You are a python programmer."), ("user", 'Write a quick"}],\n "x program.')),
    }
    assert (await templated({"template_name": "empty"}))[1] == chat(("user", "About  in ."))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"template_name": "random"}, "template: random not configured."),
        ({"template_name": ["x"]}, "template: ['x'] not configured."),
        ({"other": "x"}, "template name is missing in request."),
        ([1], "could not parse JSON request body: it is no object"),
    ],
)
async def test_a_request_without_a_template_is_refused(body, message) -> None:
    answer, _ = await templated(body)
    assert answer is not None
    assert (answer.status, json.loads(answer.body or b"")) == (400, {"message": message})


@pytest.mark.parametrize(
    ("name", "config", "field"),
    [
        ("ai-prompt-guard", {"deny_patterns": ["(abc"]}, "config.deny_patterns.0"),
        ("ai-prompt-decorator", {}, "config"),
        ("ai-prompt-decorator", {"prepend": [{"role": "tool", "content": "x"}]}, "config.prepend.0.role"),
        ("ai-prompt-template", {"templates": []}, "config.templates"),
        (
            "ai-prompt-template",
            {"templates": [{"name": "x", "template": {"model": "{% end %}"}}]},
            "config.templates.0",
        ),
    ],
)
def test_a_wrong_configuration_is_refused_at_its_field(name, config, field) -> None:
    with pytest.raises(PluginFault) as fault:
        check_use(PluginUse(name=name, config=config))
    assert fault.value.field == field
