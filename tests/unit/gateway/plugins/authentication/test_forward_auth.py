import asyncio
from dataclasses import replace

import pytest
from aiohttp import web

from headgate.gateway.plugins.interface import Headers, PluginServices, Response
from headgate.gateway.plugins.interface.errors import PluginRefused
from unit.gateway.plugins.running import Clock, answered, asked, chain, exchanged, request
from unit.gateway.plugins.service import Seen, running, sending


def answering(status: int = 200, headers=(), body: bytes = b""):
    def answer(seen: Seen) -> web.StreamResponse:
        response = web.Response(status=status, body=body)
        for name, value in headers:
            response.headers.add(name, value)
        return response

    return answer


async def test_service_is_told_of_the_request() -> None:
    async with running(answering()) as service:
        plugins = chain(
            (
                "forward-auth",
                {"uri": f"{service.url}/check?a=1", "extra_headers": {"X-Original-Method": "$request_method"}},
            ),
            services=service.services,
        )
        given = request(
            "/p?q=1", [("Cookie", "c"), ("X-Forwarded-For", "9.9.9.9")], method="PUT", authority="a.example:81"
        )
        assert await asked(plugins, given) is None
        seen = service.seen[0]
    assert (seen.method, seen.target, seen.body) == ("GET", "/check?a=1", b"")
    told = {name: value for name, value in seen.headers.items() if name.startswith("X-")}
    assert told == {
        "X-Forwarded-Proto": "http",
        "X-Forwarded-Method": "PUT",
        "X-Forwarded-Host": "a.example:81",
        "X-Forwarded-Uri": "/p?q=1",
        "X-Forwarded-For": "192.0.2.1",
        "X-Original-Method": "PUT",
    }
    assert "Cookie" not in seen.headers


async def test_a_field_of_the_body_is_told_to_the_service() -> None:
    async with running(answering()) as service:
        config = {
            "uri": f"{service.url}/auth",
            "request_method": "GET",
            "extra_headers": {"tenant_id": "$post_arg.tenant_id"},
        }
        plugins = chain(("forward-auth", config), services=service.services)
        for kind, body in (
            ("application/json", b'{"tenant_id":123}'),
            ("application/x-www-form-urlencoded", b"tenant_id=123"),
        ):
            given = request("/p", [("Content-Type", kind)], method="POST", body=body, content_length=len(body))
            assert await asked(plugins, given) is None
        assert [seen.headers["tenant_id"] for seen in service.seen] == ["123", "123"]


@pytest.mark.parametrize("shown", [{"request_headers": ["cookie"]}, {"all_headers": True}])
async def test_headers_of_the_client_are_shown_on_demand(shown) -> None:
    async with running(answering()) as service:
        plugins = chain(("forward-auth", {"uri": service.url, **shown}), services=service.services)
        await asked(plugins, request("/", [("Cookie", "c=1"), ("Other", "o")]))
        assert service.seen[0].headers["Cookie"] == "c=1"
        assert ("Other" in service.seen[0].headers) is ("all_headers" in shown)


async def test_headers_of_the_answer_reach_the_upstream_and_forged_ones_do_not() -> None:
    async with running(answering(headers=[("X-User", "jack"), ("X-Roles", "a"), ("X-Roles", "b")])) as service:
        config = {"uri": service.url, "upstream_headers": ["X-User", "X-Admin"], "upstream_headers_regex": "^x-r"}
        plugins = chain(("forward-auth", config), services=service.services)
        given = request("/", [("X-User", "forged"), ("x-admin", "forged"), ("X-Rank", "forged")])
        assert await asked(plugins, given) is None
    assert given.headers.get("X-User") == "jack"
    assert "X-Admin" not in given.headers
    assert "X-Rank" not in given.headers
    assert given.headers.get_all("X-Roles") == ["a", "b"]


async def test_refusal_is_handed_on_with_the_headers_that_are_named() -> None:
    headers = [("WWW-Authenticate", "Basic"), ("X-Why", "no"), ("X-Secret", "s"), ("Location", "/login")]
    async with running(answering(403, headers, b"go away")) as service:
        config = {"uri": service.url, "client_headers": ["X-Why"]}
        response = await asked(chain(("forward-auth", config), services=service.services), request())
    assert response is not None
    assert (response.status, response.body) == (403, b"go away")
    assert {name.lower() for name, _ in response.headers} >= {"www-authenticate", "x-why", "location"}
    assert "X-Secret" not in response.headers


@pytest.mark.parametrize(
    ("status", "strict", "expected"), [(302, False, 302), (302, True, 500), (500, True, 500), (401, True, 401)]
)
async def test_what_is_handed_on_depends_on_strictness(status, strict, expected) -> None:
    async with running(answering(status)) as service:
        config = {"uri": service.url, "strict_statuses": strict}
        response = await asked(chain(("forward-auth", config), services=service.services), request())
    assert response is not None
    assert response.status == expected


async def test_401_redirects_to_the_sign_in() -> None:
    async with running(answering(401, [("Set-Cookie", "csrf=1")])) as service:
        config = {"uri": service.url, "signin": "https://login/start?rd=$scheme://$host$escaped_request_uri"}
        response = await asked(chain(("forward-auth", config), services=service.services), request("/p?q=1"))
    assert response is not None
    assert response.status == 302
    assert response.headers.get("Location") == "https://login/start?rd=http://a.example%2Fp%3Fq%3D1"
    assert response.headers.get("Set-Cookie") == "csrf=1"


@pytest.mark.parametrize(
    ("always", "status", "expected"), [(False, 200, ["s=1"]), (False, 404, []), (True, 404, ["s=1"])]
)
async def test_cookies_of_the_service_reach_the_client(always, status, expected) -> None:
    async with running(answering(headers=[("Set-Cookie", "s=1")])) as service:
        config = {"uri": service.url, "response_cookies": True, "always_set_cookie": always}
        plugins = chain(("forward-auth", config), services=service.services)
        response = await exchanged(plugins, request(), Response(status))
    assert response.headers.get_all("Set-Cookie") == expected


async def test_body_is_sent_with_post() -> None:
    async with running(answering()) as service:
        config = {"uri": service.url, "request_method": "POST", "max_req_body_size": 10}
        plugins = chain(("forward-auth", config), services=service.services)
        assert await asked(plugins, request(method="POST", body=b"0123456789", content_length=10)) is None
        assert service.seen[0].body == b"0123456789"
        refused = await asked(plugins, request(method="POST", content_length=11))
    assert refused is not None
    assert refused.status == 413


@pytest.mark.parametrize(("lenient", "expected"), [(False, 504), (True, None)])
async def test_service_that_is_away_decides_as_configured(lenient, expected) -> None:
    async with running(answering()) as service:
        config = {"uri": "http://127.0.0.1:1", "status_on_error": 504, "allow_degradation": lenient}
        response = await asked(chain(("forward-auth", config), services=service.services), request())
    assert (response.status if response else None) == expected


async def test_forged_headers_do_not_pass_where_the_service_is_away_either() -> None:
    async with running(answering()) as service:
        config = {"uri": "http://127.0.0.1:1", "upstream_headers": ["X-User"], "allow_degradation": True}
        given = request("/", [("X-User", "forged")])
        assert await asked(chain(("forward-auth", config), services=service.services), given) is None
    assert "X-User" not in given.headers


async def test_service_that_is_slow_is_not_waited_for() -> None:
    async def stall(upstream, request, *, timeout_s, max_body):
        await asyncio.wait_for(asyncio.Event().wait(), timeout_s)

    plugins = chain(("forward-auth", {"upstream": "a/b/c:80", "timeout": 20}), services=PluginServices(send_to=stall))
    response = await asked(plugins, request())
    assert response is not None
    assert response.status == 403


async def test_upstream_of_the_table_may_be_asked() -> None:
    seen = []

    def answer(upstream, question):
        seen.append((upstream, question.target))
        return Response(200, Headers([("X-User", "jack")]))

    config = {"upstream": "c/ns/auth:80", "path": "/check", "upstream_headers": ["X-User"]}
    given = request()
    assert await asked(chain(("forward-auth", config), services=PluginServices(send_to=sending(answer))), given) is None
    assert seen == [("c/ns/auth:80", "/check")]
    assert given.headers.get("X-User") == "jack"


async def test_answers_of_the_upstream_are_left_alone() -> None:
    plugins = chain(("forward-auth", {"upstream": "x"}))
    assert (await answered(plugins, request(), Response(200), b"body")).body == b"body"


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"uri": "auth/check"},
        {"uri": "http://a", "upstream": "b"},
        {"uri": "http://u:p@a"},
        {"uri": "http://a:x"},
        {"uri": "http://a", "cache": {"key": "a", "durations": {"20": 1}}},
    ],
)
def test_bad_configuration_is_refused(config) -> None:
    with pytest.raises(PluginRefused):
        chain(("forward-auth", config))


async def test_uri_is_filled_in_for_each_request() -> None:
    async with running(answering()) as service:
        port = service.url.rpartition(":")[2]
        config = {"uri": f"http://$remote_addr:{port}/check$uri?for=$arg_user"}
        plugins = chain(("forward-auth", config), services=service.services)
        assert await asked(plugins, request("/p q?user=jo", client="127.0.0.1")) is None
        assert service.seen[0].target == "/check/p%20q?for=jo"


async def test_uri_that_becomes_none_is_no_answer_of_the_service() -> None:
    plugins = chain(("forward-auth", {"uri": "http://a.example:$arg_port/", "status_on_error": 500}))
    response = await asked(plugins, request("/?port=x"))
    assert response is not None
    assert response.status == 500


async def test_body_is_sent_where_that_is_asked_for() -> None:
    async with running(answering()) as service:
        for method, body, expected in (("GET", True, b"body"), ("POST", False, b""), ("POST", None, b"body")):
            config = {"uri": service.url, "request_method": method, "request_body": body}
            plugins = chain(("forward-auth", config), services=service.services)
            await asked(plugins, request("/", method="PUT", body=b"body", content_length=4))
            assert service.seen[-1].body == expected


async def test_own_headers_can_be_left_out_and_empty_ones_take_the_clients_away() -> None:
    async with running(answering()) as service:
        extra = {"X-Sent-From": "us", "X-Empty": "$arg_none"}
        config = {"uri": service.url, "all_headers": True, "forwarded_headers": False, "extra_headers": extra}
        plugins = chain(("forward-auth", config), services=service.services)
        await asked(plugins, request("/", [("X-Empty", "client"), ("X-Other", "o")]))
        told = {name: value for name, value in service.seen[0].headers.items() if name.startswith("X-")}
        assert told == {"X-Sent-From": "us", "X-Other": "o"}


async def test_strict_refusal_has_the_challenge_and_not_the_services_body() -> None:
    answer = answering(401, [("WWW-Authenticate", "Basic"), ("Location", "/x")], b"service says")
    async with running(answer) as service:
        plugins = chain(("forward-auth", {"uri": service.url, "strict_statuses": True}), services=service.services)
        response = await asked(plugins, request())
    assert response is not None
    assert (response.status, response.headers.get("WWW-Authenticate")) == (401, "Basic")
    assert "Location" not in response.headers
    assert b"service says" not in (response.body or b"")


def kept(**cache: object) -> dict[str, object]:
    return {"cache": {"key": "$http_authorization", **cache}, "upstream_headers": ["X-User"]}


async def test_answer_that_is_kept_serves_its_key_and_its_route_alone() -> None:
    async with running(answering(headers=[("X-User", "jack")])) as service:
        plugins = chain(("forward-auth", {"uri": service.url, **kept()}), services=service.services)
        given = request("/", [("Authorization", "a")])
        assert await asked(plugins, given) is None
        again = request("/other", [("Authorization", "a"), ("X-User", "forged")])
        assert plugins.on_request(again) is None
        assert again.headers.get("X-User") == "jack"
        assert len(service.seen) == 1
        await asked(plugins, request("/", [("Authorization", "b")]))
        await asked(plugins, request("/", [("Authorization", "a")], route="a|other"))
        assert len(service.seen) == 3


async def test_refusal_that_is_kept_has_its_challenge() -> None:
    async with running(answering(401, [("WWW-Authenticate", "Basic")])) as service:
        plugins = chain(("forward-auth", {"uri": service.url, **kept()}), services=service.services)
        for _ in range(2):
            response = await asked(plugins, request())
            assert response is not None
            assert (response.status, response.headers.get("WWW-Authenticate")) == (401, "Basic")
        assert len(service.seen) == 1


async def test_answer_is_kept_over_a_new_table_but_not_for_another_service() -> None:
    async with running(answering()) as service:
        first = chain(("forward-auth", {"uri": service.url, **kept()}), services=service.services)
        await asked(first, request())
        second = chain(("forward-auth", {"uri": service.url, **kept()}), services=service.services)
        assert second.on_request(request()) is None
        other = chain(("forward-auth", {"uri": f"{service.url}/other", **kept()}), services=service.services)
        await asked(other, request())
        assert len(service.seen) == 2


@pytest.mark.parametrize(
    ("status", "headers", "cache", "seconds"),
    [
        (200, [], {}, 300),
        (200, [], {"durations": {"200": 5}}, 5),
        (204, [], {"durations": {"200": 5}}, 0),
        (204, [], {"durations": {"200": 5, "any": 7}}, 7),
        (200, [("Cache-Control", "max-age=9")], {}, 9),
        (200, [("Cache-Control", "private, max-age=9")], {}, 0),
        (200, [("Set-Cookie", "a=b")], {}, 0),
        (200, [("Vary", "*")], {}, 0),
    ],
)
async def test_answer_is_kept_for_its_time(status: int, headers, cache, seconds: int) -> None:
    clock = Clock()
    async with running(answering(status, headers)) as service:
        services = replace(service.services, clock=clock)
        plugins = chain(("forward-auth", {"uri": service.url, **kept(**cache)}), services=services)
        await asked(plugins, request())
        clock.now += seconds - 0.5
        await asked(plugins, request())
        assert len(service.seen) == (1 if seconds else 2)
        clock.now += 1
        await asked(plugins, request())
        assert len(service.seen) == (2 if seconds else 3)


async def test_longest_answers_are_not_kept() -> None:
    async with running(answering(200, body=b"x" * 70_000)) as service:
        plugins = chain(("forward-auth", {"uri": service.url, **kept()}), services=service.services)
        for _ in range(2):
            assert await asked(plugins, request()) is None
        assert len(service.seen) == 2


async def test_client_that_another_plugin_refuses_is_sent_to_sign_in_too() -> None:
    config = {"upstream": "auth", "signin": "https://in.example/?rd=$request_uri"}
    basic = ("basic-auth", {"htpasswd": "jo:{PLAIN}x"})
    refused = await exchanged(chain(("forward-auth", config), basic), request("/p"))
    assert (refused.status, refused.headers.get("Location")) == (302, "https://in.example/?rd=/p")
    plugins = chain(("forward-auth", config))
    assert (await answered(plugins, request(), Response(401, from_upstream=True))).status == 401
