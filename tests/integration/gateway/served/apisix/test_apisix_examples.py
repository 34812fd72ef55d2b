"""The examples of Apache APISIX' documentation of plugins, from an ApisixRoute to the wire.

`docs/apisix-examples.md` says for each example which test stands for it. The upstream answers with what it got.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from fakes.gateway.proxied import Conversation
from fakes.gateway.served import HOST, origins, served
from fakes.translator.apisix import Translated, resource, route

JSON = {"Content_Type": "application/json"}
FORM = {"Content_Type": "application/x-www-form-urlencoded"}


class Ask(NamedTuple):
    """A request, and what the page shows of its answer."""

    target: str
    status: int = 200
    shows: tuple[str, ...] = ()
    hides: tuple[str, ...] = ()
    method: str = "GET"
    headers: Mapping[str, str] = MappingProxyType({})
    body: bytes | None = None


async def reflecting(conversation: Conversation) -> None:
    """Script: answer with the request."""
    while True:
        head, body = await conversation.request()
        seen = head + body
        await conversation.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(seen), seen))


def by_form(body: bytes, status: int = 200) -> Ask:
    return Ask("/", status, method="POST", headers=FORM, body=body)


UA = "User_Agent"
ENUM = {"enum_payload": {"type": "string", "enum": ["enum_string_1", "enum_string_2"], "default": "enum_string_1"}}
BODY_SCHEMA = {"type": "object", "required": ["enum_payload"], "properties": ENUM}
EXAMPLES: dict[str, tuple[dict[str, Any], list[Ask]]] = {
    "api-breaker: closed while the upstream is well": (
        {"api-breaker": {"break_response_code": 502, "unhealthy": {"http_statuses": [500, 503], "failures": 3}}},
        [Ask("/hello")],
    ),
    "client-control": (
        {"client-control": {"max_body_size": 1}},
        [Ask("/index.html", 413, method="POST", body=b"123"), Ask("/index.html", method="POST", body=b"1")],
    ),
    "cors: by RegEx": (
        {
            "cors": {
                "allow_methods": "GET,POST",
                "allow_headers": "headr1,headr2",
                "max_age": 50,
                "allow_origins_by_regex": [".*\\.test.com$"],
            }
        },
        [
            Ask(
                "/", shows=("Access-Control-Allow-Origin: http://a.test.com",), headers={"Origin": "http://a.test.com"}
            ),
            Ask("/", hides=("Access-Control-Allow-Origin",), headers={"Origin": "http://a.test2.com"}),
        ],
    ),
    "cors: for a route": (
        {
            "cors": {
                "allow_origins": "http://sub.domain.com,http://sub2.domain.com",
                "allow_methods": "GET,POST",
                "allow_headers": "headr1,headr2",
                "expose_headers": "ex-headr1,ex-headr2",
                "max_age": 50,
                "allow_credential": True,
            }
        },
        [
            Ask(
                "/anything",
                shows=(
                    "Access-Control-Allow-Origin: http://sub2.domain.com",
                    "Access-Control-Allow-Credentials: true",
                    "Access-Control-Expose-Headers: ex-headr1,ex-headr2",
                ),
                headers={"Origin": "http://sub2.domain.com"},
            ),
            Ask("/anything", hides=("Access-Control-Allow-Origin",), headers={"Origin": "http://sub3.domain.com"}),
        ],
    ),
    "echo": (
        {"echo": {"before_body": "before the body modification "}},
        [Ask("/", shows=("before the body modification GET",))],
    ),
    "fault-injection: faults": (
        {"fault-injection": {"abort": {"http_status": 404, "body": "APISIX Fault Injection"}}},
        [Ask("/anything", 404, ("APISIX Fault Injection",))],
    ),
    "fault-injection: conditionally": (
        {
            "fault-injection": {
                "abort": {
                    "http_status": 404,
                    "body": "APISIX Fault Injection",
                    "headers": {"X-APISIX-Remote-Addr": "$remote_addr"},
                    "vars": [[["arg_name", "==", "john"]]],
                }
            }
        },
        [
            Ask("/anything?name=john", 404, ("X-APISIX-Remote-Addr: 127.0.0.1", "APISIX Fault Injection")),
            Ask("/anything?name=jane"),
        ],
    ),
    "ip-restriction: whitelisting": (
        {"ip-restriction": {"whitelist": ["192.168.0.1/24"], "message": "Access denied"}},
        [Ask("/anything", 403, ("Access denied",))],
    ),
    "ip-restriction: modified IP": (
        {"ip-restriction": {"whitelist": ["192.168.1.241"]}, "real-ip": {"source": "arg_realip"}},
        [Ask("/anything?realip=192.168.1.241"), Ask("/anything?realip=192.168.10.24", 403)],
    ),
    "limit-count: remote address": (
        {"limit-count": {"count": 1, "time_window": 30, "rejected_code": 429, "key_type": "var", "key": "remote_addr"}},
        [Ask("/get", shows=("X-RateLimit-Limit: 1", "X-RateLimit-Remaining: 0")), Ask("/get", 429)],
    ),
    "limit-req: remote address": (
        {"limit-req": {"rate": 1, "burst": 0, "key": "remote_addr", "key_type": "var", "rejected_code": 429}},
        [Ask("/get"), Ask("/get", 429)],
    ),
    "mocking: specific": (
        {"mocking": {"content_type": "application/json", "response_status": 201, "response_example": '{"a":1,"b":2}'}},
        [Ask("/anything", 201, ('{"a":1,"b":2}',))],
    ),
    "mocking: headers": (
        {"mocking": {"response_example": "hi", "response_headers": {"X-User-Id": "100", "X-Client": "$remote_addr"}}},
        [Ask("/anything", 200, ("X-User-Id: 100", "X-Client: 127.0.0.1"))],
    ),
    "mocking: schema": (
        {
            "mocking": {
                "response_schema": {
                    "type": "object",
                    "properties": {
                        "id": {"type": "integer", "example": 13},
                        "ip": {"type": "string", "example": "10.0.0.1"},
                    },
                }
            }
        },
        [Ask("/anything", 200, ('"id":13', '"ip":"10.0.0.1"'))],
    ),
    "proxy-rewrite: host": (
        {"proxy-rewrite": {"host": "myapisix.demo"}},
        [Ask("/headers", shows=("Host: myapisix.demo",))],
    ),
    "proxy-rewrite: set": (
        {"proxy-rewrite": {"uri": "/anything", "headers": {"set": {"X-Api-Version": "v1", "X-Api-Engine": "apisix"}}}},
        [
            Ask(
                "/",
                shows=("GET /anything HTTP/1.1", "X-Api-Version: v1", "X-Api-Engine: apisix"),
                hides=("v2",),
                headers={"X_Api_Version": "v2"},
            )
        ],
    ),
    "proxy-rewrite: append": (
        {"proxy-rewrite": {"uri": "/headers", "headers": {"add": {"X-Api-Version": "v1"}}}},
        [Ask("/", shows=("X-Api-Version: v1", "X-Api-Version: v2"), headers={"X_Api_Version": "v2"})],
    ),
    "proxy-rewrite: several values": (
        {"proxy-rewrite": {"uri": "/headers", "headers": {"set": {"X-Api-Version": ["v1", "v2"]}}}},
        [Ask("/", shows=("X-Api-Version: v1", "X-Api-Version: v2"), hides=("v3",), headers={"X_Api_Version": "v3"})],
    ),
    "proxy-rewrite: remove": (
        {"proxy-rewrite": {"headers": {"remove": ["User-Agent"]}}},
        [Ask("/headers", hides=("User-Agent",), headers={UA: "curl"})],
    ),
    "proxy-rewrite: RegEx": (
        {"proxy-rewrite": {"regex_uri": ["^/test/(.*)/(.*)", "/$1?user=$2"]}},
        [Ask("/test/get/john", shows=("GET /get?user=john HTTP/1.1",))],
    ),
    "proxy-rewrite: parameters": (
        {"proxy-rewrite": {"uri": "/get?arg1=apisix&arg2=plugin"}},
        [Ask("/get", shows=("GET /get?arg1=apisix&arg2=plugin HTTP/1.1",))],
    ),
    "proxy-rewrite: method": (
        {"proxy-rewrite": {"uri": "/anything", "method": "POST"}},
        [Ask("/get", shows=("POST /anything HTTP/1.1",))],
    ),
    "real-ip: parameter": (
        {
            "real-ip": {"source": "arg_realip", "trusted_addresses": ["127.0.0.0/24"]},
            "response-rewrite": {"headers": {"remote_addr": "$remote_addr", "remote_port": "$remote_port"}},
        },
        [Ask("/get?realip=1.2.3.4:9080", shows=("remote_addr: 1.2.3.4", "remote_port: 9080"))],
    ),
    "redirect: variables": (
        {"redirect": {"uri": "$uri/index.html", "ret_code": 301}},
        [Ask("/test", 301, ("Location: /test/index.html",))],
    ),
    "redirect: path": (
        {"redirect": {"uri": "/test/default.html", "ret_code": 301}},
        [Ask("/test/index.html", 301, ("Location: /test/default.html",))],
    ),
    "redirect: https": ({"redirect": {"http_to_https": True}}, [Ask("/hello", 301, ("Location: https://a.example",))]),
    "referer-restriction": (
        {"referer-restriction": {"bypass_missing": True, "whitelist": ["xx.com", "*.xx.com"]}},
        [
            Ask("/index.html", headers={"Referer": "http://xx.com/x"}),
            Ask("/index.html", 403, headers={"Referer": "http://yy.com/x"}),
            Ask("/index.html"),
        ],
    ),
    "request-id: default header": (
        {"request-id": {"header_name": "X-Request-Id"}},
        [
            Ask("/", shows=("X-Request-Id: mine",), headers={"X_Request_Id": "mine"}),
            Ask("/", shows=("X-Request-Id: ",)),
        ],
    ),
    "request-id: custom header": (
        {"request-id": {"header_name": "X-Req-Identifier"}},
        [Ask("/", shows=("X-Req-Identifier: ",))],
    ),
    "request-validation: body": (
        {"request-validation": {"body_schema": BODY_SCHEMA}},
        [
            Ask(
                "/",
                200,
                ('{"enum_payload":"enum_string_2"}',),
                method="POST",
                headers=JSON,
                body=b'{"enum_payload": "enum_string_2"}',
            ),
            Ask("/", 200, ('{"enum_payload":"enum_string_1"}',), method="POST", headers=JSON, body=b"{}"),
            Ask("/", 400, method="POST", headers=JSON, body=b'{"enum_payload": "other"}'),
            by_form(b"enum_payload=enum_string_1"),
            by_form(b"enum_payload=other", 400),
        ],
    ),
    "request-validation: header, message and code": (
        {
            "request-validation": {
                "header_schema": {
                    "type": "object",
                    "required": ["User-Agent"],
                    "properties": {"User-Agent": {"pattern": "^curl/"}},
                },
                "rejected_msg": "The request is invalid.",
                "rejected_code": 403,
            }
        },
        [Ask("/", headers={UA: "curl/7.74.0"}), Ask("/", 403, ("The request is invalid.",), headers={UA: "other"})],
    ),
    "response-rewrite: header and body": (
        {
            "response-rewrite": {
                "body": '{"code":"ok","message":"new json body"}',
                "headers": {
                    "set": {
                        "X-Server-id": 3,
                        "X-Server-status": "on",
                        "X-Server-balancer-addr": "$balancer_ip:$balancer_port",
                    }
                },
                "vars": [["status", "==", 200]],
            }
        },
        [
            Ask(
                "/headers",
                shows=("X-Server-id: 3", "X-Server-status: on", "X-Server-balancer-addr: 127.0.0.1:", "new json body"),
            )
        ],
    ),
    "response-rewrite: RegEx filter": (
        {"response-rewrite": {"filters": [{"regex": "X-Amzn", "scope": "global", "replace": "X-Replaced"}]}},
        [Ask("/headers", shows=("X-Replaced-Trace-Id: 1",), hides=("X-Amzn",), headers={"X_Amzn_Trace_Id": "1"})],
    ),
    "response-rewrite: Base64": (
        {"response-rewrite": {"body": "SGVsbG8gV29ybGQ=", "body_base64": True}},
        [Ask("/get", shows=("Hello World",))],
    ),
    "response-rewrite: execution phases": (
        {"key-auth": {}, "response-rewrite": {"status_code": 200, "body": '{"code": 200, "msg": "success"}'}},
        [
            Ask("/get", 200, ('{"code":200,"msg":"success"}',), headers={"Apikey": "no-key"}),
            Ask("/get", shows=("success",)),
        ],
    ),
    "ua-restriction: crawlers": (
        {
            "ua-restriction": {
                "bypass_missing": False,
                "denylist": ["(Baiduspider)/(\\d+)\\.(\\d+)", "bad-bot-1"],
                "message": "Access denied",
            }
        },
        [
            Ask("/anything", headers={UA: "curl"}),
            Ask("/anything", 403, ("Access denied",), headers={UA: "Baiduspider/5.0"}),
        ],
    ),
    "ua-restriction: bypass": (
        {"ua-restriction": {"bypass_missing": True, "allowlist": ["good-bot-1"], "message": "Access denied"}},
        [Ask("/anything", 403, headers={UA: "bad"}), Ask("/anything")],
    ),
    "uri-blocker": (
        {"uri-blocker": {"block_rules": ["root.exe", "root.m+"]}},
        [Ask("/root.exe?a=a", 403), Ask("/root.mmm", 403), Ask("/other")],
    ),
    "workflow: status": (
        {
            "workflow": {
                "rules": [{"case": [["uri", "==", "/anything/rejected"]], "actions": [["return", {"code": 403}]]}]
            }
        },
        [Ask("/anything/anything"), Ask("/anything/rejected", 403, ('"error_msg":"rejected by workflow"',))],
    ),
    "workflow: limits": (
        {
            "workflow": {
                "rules": [
                    {
                        "case": [["uri", "==", "/anything/rate-limit"], ["arg_env", "==", "v1"]],
                        "actions": [["limit-count", {"count": 1, "time_window": 60, "rejected_code": 429}]],
                    }
                ]
            }
        },
        [Ask("/anything/rate-limit?env=v1"), Ask("/anything/rate-limit?env=v1", 429), Ask("/anything/anything?env=v1")],
    ),
}


@pytest.mark.parametrize("name", EXAMPLES)
async def test_a_documented_example_answers_as_its_page_shows(name: str) -> None:
    uses, asks = EXAMPLES[name]
    plugins = [{"name": plugin, "enable": True, "config": config} for plugin, config in uses.items()]
    async with origins(reflecting) as (origin,):
        nodes = {"externalNodes": [{"name": "127.0.0.1", "type": "Domain", "port": origin.port}]}
        match = {"hosts": [HOST], "paths": ["/*"]}
        rule = {"name": "rule1", "match": match, "upstreams": [{"name": "origin"}], "plugins": plugins}
        table = Translated(route(rule), resource("ApisixUpstream", "origin", nodes))
        assert table.errors() == []
        async with served(*table.offline.entries) as proxy:
            for ask in asks:
                if ask.body is not None:
                    got = await proxy.post(ask.body, ask.target, method=ask.method, **ask.headers)
                else:
                    got = await proxy.get(ask.target, ask.method, **ask.headers)
                text = (got.head + got.body).decode().replace(", ", ",").replace('": ', '":').lower()
                assert got.status == ask.status, (ask, text)
                for shown in ask.shows:
                    assert shown.lower() in text, ask
                for hidden in ask.hides:
                    assert hidden.lower() not in text, ask
