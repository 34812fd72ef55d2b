"""The variables of nginx and Apache APISIX, which all templates share."""

import json

import pytest

from fakes.gateway.proxied import answering
from headgate.common.plugins.variables import VARIABLES
from headgate.gateway.plugins.interface import Headers, Request, Response
from headgate.gateway.plugins.interface.variables import SET_BY_PLUGINS, table_names, variable
from headgate.gateway.proxy.heads.body_fields import MAX_PARSED_BODY
from unit.gateway.plugins.running import answered, asked, chain, exchanged, request
from unit.gateway.plugins.runtime.test_through_the_proxy import plugged

JSON = ("Content-Type", "application/json")
FORM = ("Content-Type", "application/x-www-form-urlencoded")
PARTS = ("Content-Type", "multipart/form-data; boundary=b")
IN_PARTS = b'--b\r\nContent-Disposition: form-data; name="tenant_id"\r\n\r\n123\r\n--b--\r\n'
ANSWER = b"HTTP/1.1 201 Created\r\nX-From: origin\r\nContent-Length: 0\r\n\r\n"


def test_check_and_gateways_know_the_same_variables() -> None:
    assert table_names() | SET_BY_PLUGINS == set(VARIABLES)
    assert not table_names() & SET_BY_PLUGINS


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("content_type", "text/css"),
        ("content_length", "5"),
        ("document_uri", "/a"),
        ("https", "on"),
        ("method", "POST"),
        ("request", "POST /a?b=c HTTP/1.1"),
        ("real_request_uri", "/a?b=c"),
        ("route_id", "a|r"),
        ("upstream_uri", "/a?b=c"),
        ("upstream_host", "a.example"),
        ("server_protocol", "HTTP/1.1"),
        ("status", ""),
        ("balancer_ip", ""),
        ("remote_port", ""),
        ("sent_http_x", None),
        ("upstream_http_x", None),
        ("post_arg.x", None),
        ("post_arg.x..y", None),
        ("no_such", None),
    ],
)
def test_variables_of_a_request(name, value) -> None:
    given = request(
        "/a?b=c", [("Content-Type", "text/css")], method="POST", scheme="https", content_length=5, authority="a.example"
    )
    assert variable(given, name) == value


def with_body(headers, body: bytes, target: str = "/") -> Request:
    return request(target, [headers], method="POST", body=body, content_length=len(body))


@pytest.mark.parametrize(
    ("headers", "body"),
    [(JSON, b'{"tenant_id":123,"a":[{"b":"x"}]}'), (FORM, b"tenant_id=123"), (PARTS, IN_PARTS)],
    ids=["json", "form", "multipart"],
)
@pytest.mark.parametrize("reference", ["$post_arg.tenant_id", "${post_arg.tenant_id}", "$post_arg_tenant_id"])
async def test_fields_of_the_body_are_in_templates(headers, body, reference) -> None:
    given = with_body(headers, body)
    assert await asked(chain(("proxy-rewrite", {"headers": {"set": {"X-A": f"<{reference}>"}}})), given) is None
    assert given.headers.get("X-A") == "<123>"


async def test_a_path_in_braces_goes_into_lists() -> None:
    given = with_body(JSON, b'{"a":[{"b":"x"}]}')
    config = {"headers": {"set": {"X-A": "${post_arg.a[0].b} ${post_arg.no ?? none} $post_arg.a."}}}
    assert await asked(chain(("proxy-rewrite", config)), given) is None
    assert given.headers.get("X-A") == 'x none [{"b":"x"}].'


async def test_a_body_that_is_too_long_for_a_template_of_the_request_is_refused() -> None:
    config = {"headers": {"set": {"X-A": "$post_arg.tenant_id"}}}
    response = await asked(chain(("proxy-rewrite", config)), with_body(JSON, b" " * (MAX_PARSED_BODY + 1)))
    assert response is not None
    assert response.status == 413


async def test_a_body_that_is_too_long_for_an_answers_template_has_no_fields() -> None:
    plugins = chain(("response-rewrite", {"headers": {"set": {"X-A": "<$post_arg.tenant_id>"}}}))
    for body, value in ((b'{"tenant_id":1}', "<1>"), (b" " * (MAX_PARSED_BODY + 1), "<>")):
        response = await exchanged(plugins, with_body(JSON, body))
        assert (response.status, response.headers.get("X-A")) == (200, value)


async def test_a_limit_counts_by_a_field_of_the_body() -> None:
    plugins = chain(("limit-count", {"count": 1, "time_window": 60, "key": "post_arg.user"}))
    outcomes = [await asked(plugins, with_body(JSON, json.dumps({"user": user}).encode())) for user in "aba"]
    assert [outcome is None for outcome in outcomes] == [True, True, False]


async def test_the_answer_is_known_to_templates_of_answers() -> None:
    plugins = chain(("response-rewrite", {"headers": {"set": {"X-A": "$status $sent_http_x_from"}}}))
    answer = await answered(plugins, request(), Response(201, Headers([("X-From", "origin")])))
    assert answer.headers.get("X-A") == "201 origin"


async def test_the_endpoint_is_known_to_templates_of_answers() -> None:
    value = "$balancer_ip:$balancer_port|$upstream_addr|$upstream_status|$upstream_http_x_from"
    async with plugged(answering(ANSWER), ("response-rewrite", {"headers": {"set": {"X-A": value}}})) as proxy:
        client = await proxy.connect()
        await client.send(b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n")
        head, _ = await client.answer()
        address = f"127.0.0.1:{proxy.origin.port}"
    assert f"X-A: {address}|{address}|201|origin\r\n".encode() in head


async def test_both_ends_of_the_connection_are_known() -> None:
    value = "$remote_addr $remote_port $realip_remote_port $server_addr [$balancer_ip]"
    async with plugged(answering(ANSWER), ("proxy-rewrite", {"headers": {"set": {"X-A": value}}})) as proxy:
        client = await proxy.connect()
        port = client.writer.get_extra_info("sockname")[1]
        await client.send(b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n")
        await client.answer()
        assert f"X-A: 127.0.0.1 {port} {port} 127.0.0.1 []\r\n".encode() in proxy.origin.heads[0]
