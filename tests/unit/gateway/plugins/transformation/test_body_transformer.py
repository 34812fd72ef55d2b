import base64
import gzip
import json
from typing import Any

import pytest

from fakes.gateway.proxied import OK, Proxied, answering, proxied
from headgate.common.plugins.checking import check_use
from headgate.common.plugins.errors import PluginFault
from headgate.common.table import PluginUse
from headgate.gateway.plugins.interface import Headers, Request, Response
from headgate.gateway.plugins.runtime.run import RoutePlugins
from headgate.gateway.proxy.policies import RoutePolicies
from unit.gateway.plugins.running import answered, asked, chain, exchanged, request

JSON = ("Content-Type", "application/json")
XML = ("Content-Type", "text/xml; charset=utf-8")
GREETING = '{"foo":"{{name .. " world"}}","bar":{{age+10}}}'
SOAP_CALL = (
    '<?xml version="1.0"?><e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body>'
    "<c:name>{{_escape_xml(name)}}</c:name></e:Body></e:Envelope>"
)
SOAP_ANSWER = """{% if Envelope.Body.Fault == nil then %}
{"status":"{{_ctx.var.status}}","name":"{{Envelope.Body.answer.name}}","population":{{Envelope.Body.answer.population}}}
{% else %}
{"message":{*_escape_json(Envelope.Body.Fault.faultstring[1])*},"code":"{{Envelope.Body.Fault.faultcode}}"
{% if Envelope.Body.Fault.faultactor ~= nil then %}, "actor":"{{Envelope.Body.Fault.faultactor}}"{% end %}}
{% end %}"""


def soap(inner: bytes) -> bytes:
    return b'<S:Envelope xmlns:S="urn:s"><S:Body>' + inner + b"</S:Body></S:Envelope>"


async def sent(config: dict[str, Any], body: bytes, *headers: tuple[str, str], **given: Any) -> Request:
    given = {"method": "POST", "target": "/", **given}
    asking = request(given.pop("target"), headers, body=body, content_length=len(body), **given)
    assert await asked(chain(("body-transformer", {"request": config})), asking) is None
    return asking


async def refused(config: dict[str, Any], body: bytes, *headers: tuple[str, str]) -> Response:
    asking = request("/", headers, method="POST", body=body, content_length=len(body))
    answer = await asked(chain(("body-transformer", {"request": config})), asking)
    assert answer is not None
    return answer


async def changed(config: dict[str, Any], body: bytes, *headers: tuple[str, str], status: int = 200) -> Response:
    plugins = chain(("body-transformer", {"response": config}))
    return await answered(plugins, request(), Response(status, Headers(headers), body, from_upstream=True))


async def test_json_becomes_other_json() -> None:
    asking = await sent({"template": GREETING}, b'{"name":"hello","age":20}', JSON, ("Content-MD5", "x"))
    assert asking.body == b'{"foo":"hello world","bar":30}'
    assert asking.content_length == 30
    assert list(asking.headers) == [JSON]


async def test_json_becomes_a_soap_call_and_its_answer_json() -> None:
    asking = await sent({"template": SOAP_CALL, "input_format": "json"}, b'{"name": "Spain & <co>"}')
    assert asking.body is not None
    assert b"<c:name>Spain &amp;amp; &amp;lt;co&amp;gt;</c:name>" in asking.body
    found = soap(b'<a:answer xmlns:a="urn:a"><a:name>Spain</a:name><a:population>46704314</a:population></a:answer>')
    answer = await changed({"template": SOAP_ANSWER}, found, XML)
    assert json.loads(answer.body or b"") == {"status": "200", "name": "Spain", "population": 46704314}
    fault = b'<S:Fault><faultcode>S:Server</faultcode><faultstring xml:lang="en">is "bad"</faultstring></S:Fault>'
    answer = await changed({"template": SOAP_ANSWER, "input_format": "xml"}, soap(fault), status=500)
    assert (answer.status, json.loads(answer.body or b"")) == (500, {"message": 'is "bad"', "code": "S:Server"})


async def test_a_form_becomes_json() -> None:
    kind = ("Content-Type", "application/x-www-form-urlencoded")
    for config in ({"template": GREETING, "input_format": "encoded"}, {"template": GREETING}):
        asking = await sent(config, b"name=hello&age=20", kind)
        assert asking.body == b'{"foo":"hello world","bar":30}'


async def test_a_body_in_parts_becomes_json() -> None:
    part = b'--B\r\nContent-Disposition: form-data; name="age"\r\n\r\n22\r\n--B--\r\n'
    template = '{"status": "{% if tonumber(age) > 18 then %}adult{% else %}minor{% end %}"}'
    asking = await sent({"template": template}, part, ("Content-Type", "multipart/form-data; boundary=B"))
    assert asking.body == b'{"status": "adult"}'


async def test_the_query_of_a_get_becomes_its_body() -> None:
    config = {"input_format": "json", "template": '{"message": "hello {{name}}"}'}
    asking = await sent(config, b"", method="GET", target="/x?name=jo%68n")
    assert asking.body == b'{"message": "hello john"}'
    assert asking.is_body_replaced


async def test_variables_of_the_request_are_there() -> None:
    asking = await sent({"template": '{"foo":"{{_ctx.var.arg_name .. " world"}}"}'}, b"", target="/?name=hello")
    assert asking.body == b'{"foo":"hello world"}'


async def test_a_plain_body_is_text() -> None:
    template = '{"message": "{* string.gsub(_body, "not ", "") *}"}'
    asking = await sent({"template": template, "input_format": "plain"}, b"not actually json \xff", JSON)
    assert asking.body == b'{"message": "actually json \xff"}'


async def test_a_body_of_an_unknown_kind_has_no_fields() -> None:
    asking = await sent({"template": "{{name}}[{*_body*}]"}, b"name: x", ("Content-Type", "text/yaml"))
    assert asking.body == b"[name: x]"


async def test_without_a_body_there_is_nothing_to_decode() -> None:
    assert (await sent({"template": "{}", "input_format": "json"}, b"")).body == b"{}"


@pytest.mark.parametrize("extra", [{"template_is_base64": True}, {"input_format": "json"}, {}])
async def test_a_template_may_be_in_base64(extra: dict[str, Any]) -> None:
    template = base64.b64encode(GREETING.encode()).decode()
    asking = await sent({"template": template, **extra}, b'{"name":"hello","age":20}', JSON)
    assert asking.body == b'{"foo":"hello world","bar":30}'


async def test_compressed_requests_are_decompressed() -> None:
    body = gzip.compress(b'{"name":"hello","age":20}')
    asking = await sent({"template": GREETING}, body, JSON, ("Content-Encoding", "gzip"))
    assert asking.body == b'{"foo":"hello world","bar":30}'
    assert list(asking.headers) == [JSON]


@pytest.mark.parametrize(
    ("body", "headers", "status", "words"),
    [
        (b"{", [JSON], 400, "request body decode: it is no JSON"),
        (b"<a>&b;</a>", [XML], 400, "request body decode: it is no XML"),
        (b'{"age": 1}', [JSON], 503, "request template rendering: attempt to concatenate a nil value"),
        (b"{}", [JSON, ("Content-Encoding", "x")], 415, "Content-Encoding other than"),
        (b"{}", [JSON, ("Content-Encoding", "gzip")], 415, "the body is something else"),
    ],
)
async def test_what_cannot_be_transformed_is_refused(body: bytes, headers: Any, status: int, words: str) -> None:
    answer = await refused({"template": GREETING}, body, *headers)
    assert answer.status == status
    assert words in json.loads(answer.body or b"")["message"]


async def test_bodies_that_are_too_long_are_refused() -> None:
    plugins = chain(("body-transformer", {"request": {"template": "x"}, "max_req_body_size": 100}))
    for body, headers in ((b" " * 101, ()), (gzip.compress(b" " * 101), [("Content-Encoding", "gzip")])):
        answer = await asked(plugins, request("/", headers, method="POST", body=body, content_length=len(body)))
        assert answer is not None
        assert answer.status == 413


async def test_an_answer_loses_what_belongs_to_its_old_body() -> None:
    old = [JSON, ("ETag", '"1"'), ("Last-Modified", "x"), ("Accept-Ranges", "bytes"), ("X-Kept", "1")]
    answer = await changed({"template": "{{a}}"}, gzip.compress(b'{"a": 1}'), *old, ("Content-Encoding", "gzip"))
    assert (answer.body, list(answer.headers)) == (b"1", [JSON, ("X-Kept", "1")])


@pytest.mark.parametrize(
    ("config", "body", "headers", "status"),
    [
        ({"template": "{{a}}"}, b"{", [JSON], 502),
        ({"template": "{{a}}"}, b"{}", [JSON, ("Content-Encoding", "gzip")], 502),
        ({"template": "{{a.b}}"}, b"{}", [JSON], 503),
    ],
)
async def test_an_answer_that_cannot_be_transformed_is_not_let_through(
    config, body: bytes, headers, status: int
) -> None:
    answer = await changed(config, body, *headers)
    assert answer.status == status
    assert "upstream's answer" in answer.reason
    assert "Content-Encoding" not in answer.headers


@pytest.mark.parametrize("status", [404, 503])
async def test_an_error_of_the_upstream_that_cannot_be_transformed_keeps_its_status(status: int) -> None:
    answer = await changed({"template": "{{a}}", "input_format": "json"}, b"<html>", status=status)
    assert answer.status == status
    assert "cannot be transformed: it is no JSON" in answer.reason


async def test_of_answers_of_plugins_only_mocked_ones_are_transformed() -> None:
    transforming = ("body-transformer", {"response": {"input_format": "plain", "template": "<{* _body *}>"}})
    mocked = chain(transforming, ("mocking", {"response_example": "mock"}))
    assert (await exchanged(mocked, request())).body == b"<mock>"
    refused = chain(transforming, ("fault-injection", {"abort": {"http_status": 503, "body": "fault"}}))
    assert (await exchanged(refused, request())).body == b"fault"


@pytest.mark.parametrize("status", [204, 304])
async def test_answers_without_a_body_stay_so(status: int) -> None:
    plugins = chain(("body-transformer", {"response": {"template": "x"}}))
    answer = Response(status, Headers([("ETag", '"1"')]), b"", from_upstream=True)
    assert plugins.on_response(request(), answer) is None
    assert (answer.body, answer.headers.get("ETag")) == (b"", '"1"')


async def test_no_part_of_an_answer_is_asked_for() -> None:
    asking = request("/", [("Range", "bytes=0-1")])
    await asked(chain(("body-transformer", {"response": {"template": "x"}})), asking)
    assert "Range" not in asking.headers


async def test_other_plugins_see_the_transformed_answer() -> None:
    plugins = chain(
        ("body-transformer", {"response": {"template": "<{{a}}>"}}),
        ("response-rewrite", {"filters": [{"regex": "1", "replace": "2"}]}),
        ("echo", {"before_body": "[", "after_body": "]"}),
    )
    answer = Response(200, Headers([JSON]), b'{"a": 1}', from_upstream=True)
    assert (await answered(plugins, request(), answer)).body == b"[<2>]"


async def proxied_with(config: dict[str, Any], proxy: Proxied, *others: tuple[str, dict[str, Any]]) -> None:
    proxy.target.policies = RoutePolicies()
    proxy.target.policies.hooks = RoutePlugins(chain(("body-transformer", config), *others))


@pytest.mark.parametrize(
    "framing",
    [b'Content-Length: 8\r\n\r\n{"a": 1}', b'Transfer-Encoding: chunked\r\n\r\n4\r\n{"a"\r\n4\r\n: 1}\r\n0\r\n\r\n'],
)
async def test_bodies_are_transformed_both_ways_on_the_wire(framing: bytes) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
    config = {"request": {"template": "<{{b}}>"}, "response": {"template": "({{a}})"}}
    async with proxied(answering(head + framing)) as proxy:
        await proxied_with(config, proxy)
        client = await proxy.connect()
        for _ in range(2):
            await client.send(
                b"POST / HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 8\r\n\r\n"
                + b'{"b": 2}'
            )
            got, body = await client.answer()
            assert (got.startswith(b"HTTP/1.1 200 "), body) == (True, b"(1)")
        assert b"content-length: 3\r\n" in proxy.origin.heads[0].lower()


async def test_a_head_request_gets_no_length_that_would_be_wrong() -> None:
    answer = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 8\r\nETag: "1"\r\n\r\n'
    async with proxied(answering(answer, OK)) as proxy:
        await proxied_with({"response": {"template": "({{a}})"}}, proxy)
        client = await proxy.connect()
        await client.send(b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n")
        head = (await client.head()).lower()
        assert head.startswith(b"http/1.1 200 ")
        assert b"content-length" not in head
        assert b"etag" not in head


async def test_transformed_answers_are_compressed_for_clients_that_ask() -> None:
    answer = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 8\r\n\r\n{"a": 1}'
    async with proxied(answering(answer)) as proxy:
        gzips = ("gzip", {"types": ["application/json"], "min_length": 1})
        await proxied_with({"response": {"template": "{{a}} and more, and more, and more"}}, proxy, gzips)
        client = await proxy.connect()
        await client.send(b"GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n")
        head, body = await client.answer()
        assert b"content-encoding: gzip" in head.lower()
        assert gzip.decompress(body) == b"1 and more, and more, and more"


async def test_an_answer_that_is_too_long_is_a_502_on_the_wire() -> None:
    answer = b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n{"a": 1}\r\n0\r\n\r\n'
    async with proxied(answering(answer)) as proxy:
        await proxied_with({"response": {"template": "x"}, "max_resp_body_size": 7}, proxy)
        client = await proxy.connect()
        await client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        head, body = await client.answer()
        assert head.startswith(b"HTTP/1.1 502 ")
        assert b"more than 7 bytes" in body


@pytest.mark.parametrize(
    ("config", "field", "words"),
    [
        ({}, "config", "needs request or response"),
        ({"request": {}}, "config.request.template", "is required"),
        ({"request": {"template": "x", "input_format": "yaml"}}, "config.request.input_format", 'but is "yaml"'),
        ({"request": {"template": "{% local y = require('tinyyaml') %}"}}, "config.request", "modules are not loaded"),
        ({"response": {"template": "a\n{{ b:upper() }}"}}, "config.response", "template: line 2, at ':'"),
        ({"response": {"template": "%%%", "template_is_base64": True}}, "config.response", "is not UTF-8 in base64"),
        ({"request": {"template": "x"}, "max_req_body_size": 0}, "config.max_req_body_size", "greater than 0"),
    ],
)
def test_what_cannot_be_followed_is_refused_where_it_is_written(config, field: str, words: str) -> None:
    with pytest.raises(PluginFault) as caught:
        check_use(PluginUse(name="body-transformer", config=config))
    assert (caught.value.plugin, caught.value.field) == ("body-transformer", field)
    assert words in caught.value.fault
