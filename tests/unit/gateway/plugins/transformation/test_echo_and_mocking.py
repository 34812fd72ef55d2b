import asyncio
import json

import pytest

from fakes.virtual_time import in_virtual_time
from headgate.gateway.plugins.interface import Headers, Response
from headgate.gateway.plugins.interface.errors import PluginRefused
from unit.gateway.plugins.running import answered, asked, chain, request


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"before_body": "before "}, b"before fine"),
        ({"after_body": " after"}, b"fine after"),
        ({"body": "mine"}, b"mine"),
        ({"before_body": "a ", "body": "b", "after_body": " c"}, b"a b c"),
    ],
)
@pytest.mark.parametrize("streams", [False, True])
async def test_texts_are_put_around_the_body(config, expected, streams) -> None:
    answer = Response(200, Headers(), b"fine", from_upstream=True)
    response = await answered(chain(("echo", config)), request(), answer, [b"fi", b"ne"] if streams else None)
    assert response.body == expected


async def test_empty_body_gets_the_texts_once() -> None:
    response = await answered(chain(("echo", {"before_body": "a", "after_body": "b"})), request(), Response(200), [])
    assert response.body == b"ab"


async def test_headers_are_set() -> None:
    config = {"before_body": "", "headers": {"X-Path": "$uri", "X-Number": 1}}
    response = await answered(chain(("echo", config)), request("/a"), Response(200))
    assert (response.headers.get("X-Path"), response.headers.get("X-Number")) == ("/a", "1")


async def test_example_is_the_answer() -> None:
    config = {"response_example": '{"a":"$arg_a"}', "response_status": 201, "response_headers": {"X-A": "1"}}
    response = await asked(chain(("mocking", config)), request("/?a=1"))
    assert response is not None
    assert (response.status, response.body) == (201, b'{"a":"1"}')
    assert response.headers.get("Content-Type") == "application/json;charset=utf8"
    assert response.headers.get("x-mock-by") == "headgate"
    assert response.headers.get("X-A") == "1"


SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer", "example": 7},
        "tags": {"type": "array", "items": {"type": "number"}},
        "is_on": {"type": "boolean"},
    },
}


async def test_body_is_made_up_from_a_schema() -> None:
    response = await asked(chain(("mocking", {"response_schema": SCHEMA})), request())
    assert response is not None
    made = json.loads(response.body or b"")
    assert made["age"] == 7
    assert isinstance(made["name"], str)
    assert isinstance(made["is_on"], bool)
    assert all(isinstance(tag, float) for tag in made["tags"])
    assert 1 <= len(made["tags"]) <= 3


async def test_body_is_xml_if_the_type_says_so() -> None:
    config = {"response_schema": SCHEMA, "content_type": "text/xml", "with_mock_header": False}
    response = await asked(chain(("mocking", config)), request())
    assert response is not None
    assert b"<age>7</age>" in (response.body or b"")
    assert "x-mock-by" not in response.headers


@in_virtual_time
async def test_answer_may_be_late() -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    await asked(chain(("mocking", {"response_example": "", "delay": 5})), request())
    assert loop.time() - began == pytest.approx(5, abs=0.05)


@pytest.mark.parametrize(
    ("name", "config", "told"),
    [
        ("echo", {}, "has nothing to do"),
        ("mocking", {}, "needs response_example or response_schema"),
        (
            "mocking",
            {"response_schema": {"properties": {"a": {"type": "date"}}}},
            r"response_schema\.properties\.a\.type must be one of",
        ),
    ],
)
def test_bad_configuration_is_refused(name, config, told) -> None:
    with pytest.raises(PluginRefused, match=told):
        chain((name, config))


def test_a_body_that_would_be_made_up_of_millions_of_values_is_refused() -> None:
    schema: dict = {"type": "string"}
    for _ in range(15):
        schema = {"type": "array", "items": schema}
    with pytest.raises(PluginRefused, match=r"makes a body of up to \d+ bytes, at most 131072"):
        chain(("mocking", {"response_schema": schema}))


def test_a_large_example_within_arrays_counts_as_often_as_it_is_made() -> None:
    schema: dict = {"example": "x" * 30_000}
    chain(("mocking", {"response_schema": {"type": "array", "items": schema}}))
    with pytest.raises(PluginRefused, match="makes a body"):
        chain(("mocking", {"response_schema": {"type": "array", "items": {"type": "array", "items": schema}}}))


async def test_a_text_of_references_does_not_become_huge() -> None:
    plugins = chain(("mocking", {"response_example": "$http_x" * 5000}))
    fine = await asked(plugins, request(headers=[("X", "a" * 100)]))
    assert fine is not None
    assert fine.status == 200
    refused = await asked(plugins, request(headers=[("X", "a" * 60_000)]))
    assert refused is not None
    assert refused.status == 500
