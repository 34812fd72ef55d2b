import json
from urllib.parse import parse_qs

import pytest

from headgate.common.plugins.checking import check_use
from headgate.common.plugins.errors import PluginFault
from headgate.common.table import PluginUse
from headgate.gateway.plugins.interface import Request
from unit.gateway.plugins.running import asked, chain, request

LIST = "{\n  persons {\n    id\n    name\n  }\n}\n"
ONE = "query($name: String!, $account: String!) { persons(filter: {name: $name, account: $account}) { id } }"
TWO = "query a { persons { ...Person } } query b { persons { id } } fragment Person on Person { name }"


def get(target: str) -> Request:
    return request(target)


def post(body: bytes, headers=()) -> Request:
    return request("/g?kept=1", headers, method="POST", body=body, content_length=len(body))


def sent(asking: Request) -> dict[str, object]:
    assert asking.body is not None
    assert asking.content_length == len(asking.body)
    return json.loads(asking.body)


async def test_a_post_becomes_the_query_in_json() -> None:
    asking = post(b"whatever", [("Content-Type", "text/plain"), ("Content-Encoding", "gzip")])
    assert await asked(chain(("degraphql", {"query": LIST})), asking) is None
    assert sent(asking) == {"query": LIST}
    assert list(asking.headers) == [("Content-Type", "application/json")]
    assert asking.query == "kept=1"


async def test_a_post_brings_the_variables_in_a_json_object() -> None:
    plugins = chain(("degraphql", {"query": ONE, "variables": ["name", "account"]}))
    asking = post(b'{"name": {"a": [1, null]}, "other": 2}')
    assert await asked(plugins, asking) is None
    assert sent(asking) == {"query": ONE, "variables": {"name": {"a": [1, None]}}}


async def test_a_get_brings_them_in_its_query_and_sends_all_there() -> None:
    plugins = chain(("degraphql", {"query": ONE, "variables": ["name", "account"]}))
    asking = get("/g?name=Ni%20ek&account=np%26alm&name=second&other=1")
    assert await asked(plugins, asking) is None
    given = parse_qs(asking.query)
    assert json.loads(given.pop("variables")[0]) == {"name": "Ni ek", "account": "np&alm"}
    assert given == {"query": [ONE]}


async def test_the_operation_is_named() -> None:
    plugins = chain(("degraphql", {"query": TWO, "operation_name": "b"}))
    asking = post(b"")
    await asked(plugins, asking)
    assert sent(asking) == {"query": TWO, "operationName": "b"}
    asking = get("/g?gone=1")
    await asked(plugins, asking)
    assert parse_qs(asking.query) == {"query": [TWO], "operationName": ["b"]}


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b"\xff", b"[" * 100_000])
async def test_a_body_without_variables_is_refused(body: bytes) -> None:
    answer = await asked(chain(("degraphql", {"query": ONE, "variables": ["name"]})), post(body))
    assert answer is not None
    assert answer.status == 400


@pytest.mark.parametrize("query", ["name=%ff", "a=1&" * 2000])
async def test_a_query_that_cannot_be_read_is_refused(query: str) -> None:
    answer = await asked(chain(("degraphql", {"query": ONE, "variables": ["name"]})), get(f"/g?{query}"))
    assert answer is not None
    assert answer.status == 400


async def test_a_body_that_is_too_long_is_refused() -> None:
    answer = await asked(chain(("degraphql", {"query": ONE, "variables": ["name"]})), post(b" " * ((1 << 20) + 1)))
    assert answer is not None
    assert answer.status == 413


@pytest.mark.parametrize("method", ["PUT", "DELETE", "HEAD", "OPTIONS"])
async def test_other_methods_are_not_allowed(method: str) -> None:
    answer = await asked(chain(("degraphql", {"query": LIST})), request("/", method=method))
    assert answer is not None
    assert (answer.status, answer.headers.get("Allow")) == (405, "GET, POST")


@pytest.mark.parametrize(
    ("config", "field", "words"),
    [
        ({}, "config.query", "is required"),
        ({"query": ""}, "config.query", "at least 1"),
        ({"query": "{ persons {"}, "config", "query is no GraphQL: Syntax Error: Expected Name, found <EOF>"),
        ({"query": "{a(x: " + "[" * 3000}, "config", "query is no GraphQL"),
        ({"query": "type Person { id: Int }"}, "config", "defines a schema"),
        ({"query": "fragment F on Person { id }"}, "config", "has no operation"),
        ({"query": TWO}, "config", "operation_name has to say which of the operations is meant: a, b"),
        ({"query": TWO, "operation_name": "c"}, "config", "operation_name is none of the query's operations"),
        ({"query": LIST, "variables": []}, "config.variables", "at least 1"),
    ],
)
def test_what_cannot_be_asked_is_refused_where_it_is_written(config, field: str, words: str) -> None:
    with pytest.raises(PluginFault) as caught:
        check_use(PluginUse(name="degraphql", config=config))
    assert (caught.value.plugin, caught.value.field) == ("degraphql", field)
    assert words in caught.value.fault
