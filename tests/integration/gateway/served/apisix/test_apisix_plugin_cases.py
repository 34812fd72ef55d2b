"""What the end-to-end tests of apisix-ingress-controller say of plugins, from an ApisixRoute to the wire.

Each case has the name of its suite and of its own there (version 1.8, `suite-plugins-*`); configurations are those of
Apache APISIX' documentation.
"""

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest

from fakes.gateway.proxied import OK, Conversation, Origin, answering
from fakes.gateway.served import HOST, Got, Served, origins, served
from fakes.translator.apisix import Translated, resource, route

HTML = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nhello"


class Applied(NamedTuple):
    """What serves an ApisixRoute."""

    proxy: Served
    origin: Origin

    async def get(self, path: str = "/ip", **headers: str) -> Got:
        return await self.proxy.get(path, **headers)

    async def statuses(self, *paths: str, **headers: str) -> list[int]:
        return [(await self.get(path, **headers)).status for path in paths]


@asynccontextmanager
async def applied(*plugins: Any, answer: bytes = OK, more: tuple[Any, ...] = (), **rule: Any) -> AsyncIterator[Applied]:
    """Serve an ApisixRoute with these plugins before an origin; nothing may be wrong with it."""
    async with origins(answering(answer)) as (origin,):
        nodes = {"externalNodes": [{"name": "127.0.0.1", "type": "Domain", "port": origin.port}]}
        written = {
            "name": "rule1",
            "match": {"hosts": [HOST], "paths": ["/*"]},
            "upstreams": [{"name": "origin"}],
            "plugins": list(plugins),
            **rule,
        }
        table = Translated(route(written), resource("ApisixUpstream", "origin", nodes), *more)
        assert table.problems() == []
        async with served(*table.offline.entries) as proxy:
            yield Applied(proxy, origin)


def plugin(name: str, enable: bool = True, **config: Any) -> Any:
    return {"name": name, "enable": enable, "config": config}


DISABLED = [
    ("echo", {"body": "my custom body"}),
    ("redirect", {"uri": "/ip", "ret_code": 308}),
    ("cors", {"allow_origins": "*"}),
    ("csrf", {"key": "edd1c9f034335f136f87ad84b625c8f1"}),
    ("ip-restriction", {"blacklist": ["127.0.0.1"]}),
    ("referer-restriction", {"whitelist": ["test.com"]}),
    ("uri-blocker", {"rejected_code": 403, "block_rules": ["ip"]}),
    ("api-breaker", {"break_response_code": 599}),
    ("client-control", {"max_body_size": 1}),
    ("limit-count", {"time_window": 60, "count": 2, "rejected_code": 503, "key": "remote_addr"}),
    ("request-validation", {"body_schema": {"type": "object", "required": ["name"]}}),
    ("request-id", {"header_name": "X-Request-Id"}),
    ("fault-injection", {"abort": {"http_status": 404, "body": "Fault Injection!"}}),
    ("proxy-rewrite", {"uri": "/headers"}),
    ("response-rewrite", {"status_code": 400, "body": "altered"}),
]


@pytest.mark.parametrize(("name", "config"), DISABLED)
async def test_every_suite_disable_plugin(name: str, config: dict[str, Any]) -> None:
    async with applied(plugin(name, enable=False, **config), answer=HTML) as route_:
        got = await route_.proxy.post(b"{}", "/ip")
        assert (got.status, got.body) == (200, b"hello")
        assert await route_.statuses("/ip", "/ip", "/ip") == [200, 200, 200]


# suite-plugins-general


async def test_echo_insert_preface_and_epilogue() -> None:
    headers = {"X-Foo": "v1", "X-Foo2": "v2"}
    echo = plugin("echo", before_body="This is the preface", after_body="This is the epilogue", headers=headers)
    async with applied(echo, answer=HTML) as route_:
        got = await route_.get()
    assert got.body == b"This is the prefacehelloThis is the epilogue"
    assert (got["x-foo"], got["x-foo2"]) == ("v1", "v2")


async def test_echo_replace_body() -> None:
    async with applied(plugin("echo", body="my custom body")) as route_:
        assert (await route_.get()).body == b"my custom body"


async def test_redirect_http_to_https() -> None:
    async with applied(plugin("redirect", http_to_https=True)) as route_:
        got = await route_.get("/ip?a=1")
    assert (got.status, got["location"]) == (301, f"https://{HOST}/ip?a=1")


async def test_redirect_to_specific_uri() -> None:
    async with applied(plugin("redirect", uri="$uri/ipip", ret_code=308)) as route_:
        got = await route_.get()
    assert (got.status, got["location"]) == (308, "/ip/ipip")


# suite-plugins-other


async def test_plugin_config_replace_body_and_finer_granularity_config() -> None:
    shared = resource(
        "ApisixPluginConfig",
        "shared",
        {"plugins": [plugin("echo", body="my custom body"), plugin("cors", allow_origins="http://foo.bar.org")]},
    )
    async with applied(more=(shared,), plugin_config_name="shared") as route_:
        got = await route_.get(Origin="http://foo.bar.org")
    assert (got.body, got["access-control-allow-origin"]) == (b"my custom body", "http://foo.bar.org")


# suite-plugins-security


async def test_cors_empty_config() -> None:
    async with applied(plugin("cors")) as route_:
        got = await route_.get(Origin="http://any.example")
    allowed = {name: got[name] for name in ("access-control-allow-origin", "access-control-allow-methods")}
    assert set(allowed.values()) == {"*"}
    assert got["access-control-max-age"] == "5"


async def test_cors_finer_granularity_config() -> None:
    config = {"allow_origins": "http://foo.bar.org", "allow_methods": "GET,POST", "max_age": 3600}
    config |= {"expose_headers": "x-foo,x-baz", "allow_headers": "x-from-ingress", "allow_credential": True}
    async with applied(plugin("cors", **config)) as route_:
        got = await route_.get(Origin="http://foo.bar.org")
        other = await route_.get(Origin="http://foo.bar2.org")
    assert got["access-control-allow-origin"] == "http://foo.bar.org"
    assert got["access-control-allow-methods"] == "GET,POST"
    assert got["access-control-allow-headers"] == "x-from-ingress"
    assert got["access-control-expose-headers"] == "x-foo,x-baz"
    assert got["access-control-allow-credentials"] == "true"
    assert got["access-control-max-age"] == "3600"
    assert other["access-control-allow-origin"] == ""


async def test_cors_allow_origins_by_regex() -> None:
    async with applied(plugin("cors", allow_origins_by_regex=[".*\\.test.com$"])) as route_:
        found = [
            (await route_.get(Origin=origin))["access-control-allow-origin"]
            for origin in ("http://foo.test.com", "http://foo.test.com.cn")
        ]
    assert found == ["http://foo.test.com", ""]


async def test_csrf_prevent_csrf() -> None:
    async with applied(plugin("csrf", key="edd1c9f034335f136f87ad84b625c8f1")) as route_:
        got = await route_.get()
        token = got["set-cookie"].partition(";")[0].partition("=")[2]
        refused = await route_.proxy.post(b"")
        taken = await route_.proxy.post(b"", Apisix_Csrf_Token=token, Cookie=f"apisix-csrf-token={token}")
    assert got.status == 200
    assert (refused.status, json.loads(refused.body)["error_msg"]) == (401, "no csrf token in headers")
    assert taken.status == 200


async def test_ip_whitelist_and_blacklist() -> None:
    for config, status in (
        ({"whitelist": ["127.0.0.1"]}, 200),
        ({"whitelist": ["192.168.3.3"]}, 403),
        ({"blacklist": ["127.0.0.0/8", "192.168.3.3"]}, 403),
    ):
        async with applied(plugin("ip-restriction", **config)) as route_:
            got = await route_.get()
        assert got.status == status
        if status == 403:
            assert json.loads(got.body) == {"message": "Your IP address is not allowed"}


async def test_referer_restriction_configure_a_access_list_and_bypass_missing() -> None:
    config = {"whitelist": ["test.com", "*.foo.com"]}
    pages = ("http://test.com", "http://foo.com", "http://www.foo.com", "http://yy.com")
    async with applied(plugin("referer-restriction", **config)) as route_:
        found = [(await route_.get(Referer=referer)).status for referer in pages]
        assert found == [200, 403, 200, 403]
        assert (await route_.get()).status == 403
    async with applied(plugin("referer-restriction", bypass_missing=True, **config)) as route_:
        assert (await route_.get()).status == 200


async def test_referer_restriction_configure_a_deny_access_list_and_customize_return_message() -> None:
    async with applied(plugin("referer-restriction", blacklist=["*.foo.com"], message="You can't access")) as route_:
        got = await route_.get(Referer="http://www.foo.com")
        assert (await route_.get(Referer="http://test.com")).status == 200
    assert (got.status, json.loads(got.body)) == (403, {"message": "You can't access"})


async def test_uri_blocker_sanity() -> None:
    async with applied(plugin("uri-blocker", rejected_code=403, block_rules=["localhost", "root.exe"])) as route_:
        assert await route_.statuses("/ip", "/status/206?root.exe", "/LOCALHOST") == [200, 403, 200]


# suite-plugins-traffic


async def test_api_breaker_sanity() -> None:
    async def failing(conversation: Conversation) -> None:
        while True:
            head, _ = await conversation.request()
            status = b"500" if b" /fail " in head else b"200"
            await conversation.send(b"HTTP/1.1 %b X\r\nContent-Length: 0\r\n\r\n" % status)

    breaker = plugin("api-breaker", break_response_code=599, unhealthy={"http_statuses": [500], "failures": 2})
    async with applied(breaker) as route_:
        route_.origin.script = failing
        assert await route_.statuses("/fail", "/fail", "/fail", "/other") == [500, 500, 599, 200]


async def test_client_control_limit_request_body_size() -> None:
    async with applied(plugin("client-control", max_body_size=9)) as route_:
        assert (await route_.proxy.post(b"-helloworld-")).status == 413
        assert (await route_.proxy.post(b"hello")).status == 200


async def test_limit_count_localized_dimension_limited_by_remote_address() -> None:
    config = {"time_window": 60, "count": 2, "rejected_code": 503, "key": "remote_addr", "key_type": "var"}
    async with applied(plugin("limit-count", policy="local", **config)) as route_:
        got = [await route_.get() for _ in range(3)]
    assert [each.status for each in got] == [200, 200, 503]
    assert [each["x-ratelimit-remaining"] for each in got] == ["1", "0", "0"]


async def test_request_validation_sanity() -> None:
    schema = {
        "type": "object",
        "required": ["name", "id"],
        "properties": {"id": {"type": "integer"}, "name": {"type": "string", "minLength": 1}},
    }
    async with applied(plugin("request-validation", body_schema=schema)) as route_:
        taken = await route_.proxy.post(b'{"id":1,"name":"bob"}')
        assert taken.status == 200
        for body in (b'{"id":1}', b'{"id":"1","name":"bob"}', b""):
            assert (await route_.proxy.post(body)).status == 400


async def test_request_id_sanity() -> None:
    async with applied(plugin("request-id", header_name="X-Request-Id", include_in_response=True)) as route_:
        got = await route_.get()
        assert got["x-request-id"]
        assert f"X-Request-ID: {got['x-request-id']}".encode() in route_.origin.heads[0]


# suite-plugins-transformation


async def test_fault_injection_inject_code_and_body_to_abort_request() -> None:
    alternatives = [[["arg_name", "==", "jack"], ["arg_age", "==", "18"]], [["http_apikey", "==", "key"]]]
    abort = {"http_status": 404, "body": "Fault Injection!", "vars": alternatives}
    async with applied(plugin("fault-injection", abort=abort)) as route_:
        assert await route_.statuses("/?name=jack&age=18", "/?name=jack", "/") == [404, 200, 200]
        got = await route_.get(Apikey="key")
    assert (got.status, got.body) == (404, b"Fault Injection!")


async def test_fault_injection_delay_request() -> None:
    async with applied(plugin("fault-injection", delay={"duration": 0.05})) as route_:
        assert (await route_.get()).status == 200


async def test_proxy_rewrite_request_uri_and_host() -> None:
    async with applied(plugin("proxy-rewrite", uri="/ip", host="httpbin.org", scheme="http")) as route_:
        await route_.get("/hello?a=1")
        assert route_.origin.heads[0].startswith(b"GET /ip?a=1 HTTP/1.1\r\nHost: httpbin.org\r\n")


async def test_proxy_rewrite_request_regex_uri_and_headers() -> None:
    config = {"regex_uri": ["^/test/(.*)/(.*)/(.*)", "/$1_$2_$3"], "headers": {"X-Api-Version": "v1"}}
    async with applied(plugin("proxy-rewrite", **config)) as route_:
        await route_.get("/test/a/b/c")
        await route_.get("/other")
        first, second = route_.origin.heads
    assert first.startswith(b"GET /a_b_c HTTP/1.1")
    assert b"X-Api-Version: v1\r\n" in first
    assert second.startswith(b"GET /other HTTP/1.1")


async def test_response_rewrite_status_code_and_headers() -> None:
    config = {"status_code": 400, "body": "altered", "headers": {"X-Server-id": 3, "X-Removed": ""}}
    async with applied(plugin("response-rewrite", **config)) as route_:
        got = await route_.get()
    assert (got.status, got.body, got["x-server-id"]) == (400, b"altered", "3")


async def test_response_rewrite_body_in_base64() -> None:
    body = base64.b64encode(b"\x89PNG").decode()
    async with applied(plugin("response-rewrite", body=body, body_base64=True)) as route_:
        assert (await route_.get()).body == b"\x89PNG"


async def test_response_rewrite_conditional_execution() -> None:
    async with applied(plugin("response-rewrite", body="altered", vars=[["status", "==", 202]])) as route_:
        assert (await route_.get()).body == b"ok"
    async with applied(plugin("response-rewrite", body="altered", vars=[["status", "==", 200]])) as route_:
        assert (await route_.get()).body == b"altered"


# suite-features


async def test_traffic_split_sanity() -> None:
    async with origins(answering(OK.replace(b"ok", b"no"))) as (other,):
        nodes = {f"127.0.0.1:{other.port}": 1}
        upstream = {"name": "plugin-upstream", "type": "roundrobin", "nodes": nodes, "timeout": {"connect": 15}}
        rule = {"weighted_upstreams": [{"upstream": upstream, "weight": 2}, {"weight": 1}]}
        async with applied(plugin("traffic-split", rules=[rule])) as route_:
            assert sorted(await route_.proxy.bodies(6, "/ip")) == ["no"] * 4 + ["ok"] * 2


async def test_filter_and_priority_of_meta() -> None:
    meta = {"filter": [["arg_k", "==", "v"]], "priority": 5000, "disable": False}
    async with applied(plugin("ip-restriction", blacklist=["127.0.0.1"], _meta=meta)) as route_:
        assert await route_.statuses("/?k=v", "/") == [403, 200]
