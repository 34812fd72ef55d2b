import json
from typing import Any

import pytest
from aiohttp import web

from headgate.gateway.plugins.interface import PluginServices, Request, Response
from unit.gateway.plugins.people import consumer, directory
from unit.gateway.plugins.running import chain, exchanged, request
from unit.gateway.plugins.service import Seen, Service, running

TOKEN = "V1#shop#wolf-token"


def wolf(seen: Seen) -> web.Response:
    user = {"id": 100, "username": "jack", "nickname": "Jack O'Neill"}
    if seen.headers.get("x-rbac-token") != "wolf-token":
        return web.json_response({"ok": False, "reason": "ERR_TOKEN_INVALID"}, status=401)
    is_allowed = "resName=%2Fget" in seen.target
    answer = {"ok": is_allowed, "reason": "" if is_allowed else "no permission to access", "data": {"userInfo": user}}
    return web.json_response(answer, status=200 if is_allowed else 401)


async def answer(service: Service, given: Request) -> Response:
    people = directory(consumer("wolf_user", ("wolf-rbac", {"appid": "shop", "server": service.url})))
    services = PluginServices(consumers=people, http=service.services.http)
    return await exchanged(chain(("wolf-rbac", {}), services=services), given)


@pytest.mark.parametrize(
    "given",
    [
        request("/get?rbac_token=V1%23shop%23wolf-token"),
        request("/get", [("Authorization", TOKEN)]),
        request("/get", [("x-rbac-token", TOKEN), ("X-UserId", "1"), ("X-Username", "admin")]),
        request("/get", [("Cookie", f"x-rbac-token={TOKEN}")]),
        request("/%67et", [("x-rbac-token", TOKEN)]),
    ],
)
async def test_a_token_that_wolf_knows_is_its_applications_and_its_users(given) -> None:
    async with running(wolf) as service:
        response = await answer(service, given)
    assert response.status == 200
    told = {"X-UserId": "100", "X-Username": "jack", "X-Nickname": "Jack%20O%27Neill"}
    for headers in (given.headers, response.headers):
        assert {name: headers.get(name) for name in told} == told
    assert given.headers.get("X-Consumer-Username") == "wolf_user"
    assert given.variables["remote_user"] == "shop/100"
    assert "appID=shop&resName=%2Fget&action=GET&clientIP=192.0.2.1" in service.seen[0].target


@pytest.mark.parametrize(
    ("target", "token", "reason"),
    [
        ("/get", "", "Missing rbac token in request"),
        ("/get", "V1#shop", "invalid rbac token: parse failed"),
        ("/get", "V2#shop#wolf-token", "invalid rbac token: parse failed"),
        ("/get", "V1#other#wolf-token", "Invalid appid in rbac token"),
        ("/get", "V1#shop#other", "ERR_TOKEN_INVALID"),
        ("/admin", TOKEN, "no permission to access"),
    ],
)
async def test_what_is_refused_says_why(target, token, reason) -> None:
    async with running(wolf) as service:
        response = await answer(service, request(target, [("x-rbac-token", token)]))
    assert (response.status, response.reason) == (401, reason)


async def test_a_wolf_that_does_not_answer_lets_nobody_pass() -> None:
    async with running(lambda seen: web.Response(status=502)) as service:
        assert (await answer(service, request("/get", [("x-rbac-token", TOKEN)]))).status == 500


@pytest.mark.parametrize(("given", "expected"), [(403, 403), (404, 404), (302, 500), (503, 500)])
async def test_a_status_of_wolf_is_the_clients_where_it_is_about_the_client(given: int, expected: int) -> None:
    async with running(lambda seen: web.json_response({"reason": "no"}, status=given)) as service:
        assert (await answer(service, request("/get", [("x-rbac-token", TOKEN)]))).status == expected
        assert len(service.seen) == (3 if given == 503 else 1)


async def test_names_are_told_as_they_are_unless_a_header_cannot_have_them() -> None:
    user = {"id": 7, "username": "jäck\r\nX-Admin: 1"}
    async with running(lambda seen: web.json_response({"data": {"userInfo": user}})) as service:
        given = request("/get", [("x-rbac-token", TOKEN)])
        await answer(service, given)
        user["username"] = "jack@shop.example"
        plain = request("/get", [("x-rbac-token", TOKEN)])
        await answer(service, plain)
    assert given.headers.get("X-Username") == "j%C3%A4ck%0D%0AX-Admin%3A%201"
    assert plain.headers.get("X-Username") == "jack@shop.example"
    assert plain.headers.get("X-Nickname") == "jack%40shop.example", "the name, as there is no other"


# The pages


def pages(seen: Seen) -> web.Response:
    given = json.loads(seen.body)
    match seen.method, seen.target:
        case "POST", "/wolf/rbac/login.rest" if given.get("password") == "hush":
            data = {"token": "wolf-token", "userInfo": {"username": given["username"]}}
        case "POST", "/wolf/rbac/change_pwd" if seen.headers.get("x-rbac-token") == "wolf-token":
            assert given == {"oldPassword": "hush", "newPassword": "new"}
            data = {}
        case "GET", "/wolf/rbac/user_info" if seen.headers.get("x-rbac-token") == "wolf-token":
            data = {"userInfo": {"username": "jack"}}
        case "POST", "/wolf/rbac/login.rest" if given.get("password") == "broken":
            return web.Response(status=502)
        case _:
            return web.json_response({"ok": False, "reason": "ERR_PASSWORD_ERROR"})
    return web.json_response({"ok": True, "data": data})


async def page(service: Service, given: Request, **config: str) -> tuple[int, Any]:
    people = directory(consumer("wolf_user", ("wolf-rbac", {"appid": "shop", "server": service.url})))
    services = PluginServices(consumers=people, http=service.services.http)
    response = await exchanged(chain(("public-api", config), services=services), given)
    assert response.headers.get("Cache-Control") in ("no-store", None)
    try:
        return response.status, json.loads(response.body or b"")
    except ValueError:
        return response.status, response.reason


PLACE = "/apisix/plugin/wolf-rbac"
JSON, FORM = ("Content-Type", "application/json"), ("Content-Type", "application/x-www-form-urlencoded")
FAILED = {"message": "request to wolf-server failed!"}


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (JSON, b'{"appid": "shop", "username": "jack", "password": "hush", "authType": 1}'),
        (FORM, b"appid=shop&username=jack&password=hush"),
    ],
)
async def test_a_user_logs_in_and_the_token_is_good(kind, body: bytes) -> None:
    async with running(pages) as service:
        status, told = await page(service, request(f"{PLACE}/login", [kind], method="POST", body=body))
    assert (status, told) == (200, {"rbac_token": TOKEN, "user_info": {"username": "jack"}})


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"appid": "shop", "password": "wrong"}', (200, FAILED)),
        (b'{"appid": "shop", "password": "broken"}', (500, FAILED)),
        (b'{"appid": "other", "password": "hush"}', (400, {"message": "appid not found"})),
        (b'{"password": "hush"}', (400, {"message": "appid is missing"})),
        (b'{"appid": 1}', (400, {"message": "appid is missing"})),
        (b"[1]", (400, {"message": "invalid request"})),
        (b"{", (400, {"message": "invalid request"})),
        (b"[" * 60_000, (400, {"message": "invalid request"})),
        (b"x" * 70_000, (413, "body of 70000 bytes where 65536 are taken")),
    ],
)
async def test_a_login_that_is_refused_says_why_and_logs_no_password(body: bytes, expected, caplog) -> None:
    async with running(pages) as service:
        assert await page(service, request(f"{PLACE}/login", [JSON], method="POST", body=body)) == expected
    assert "hush" not in caplog.text


async def test_a_user_changes_the_password_and_is_shown() -> None:
    body = b'{"oldPassword": "hush", "newPassword": "new"}'
    async with running(pages) as service:
        for token in (("x-rbac-token", TOKEN), ("Cookie", f"x-rbac-token={TOKEN}"), ("Authorization", TOKEN)):
            asked = request("/me", [token], method="GET")
            shown = await page(service, asked, uri=f"{PLACE}/user_info")
            assert shown == (200, {"user_info": {"username": "jack"}})
            asked = request(f"{PLACE}/change_pwd", [JSON, token], method="PUT", body=body)
            assert await page(service, asked) == (200, {"message": "success to change password"})


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        ("", (401, {"message": "Missing rbac token in request"})),
        ("V1#shop", (401, {"message": "invalid rbac token: parse failed"})),
        ("V1#other#t", (400, {"message": "appid not found"})),
        ("V1#shop#t", (200, FAILED)),
    ],
)
async def test_only_who_has_a_token_is_shown(token: str, expected) -> None:
    async with running(pages) as service:
        given = request(f"{PLACE}/user_info", [("x-rbac-token", token)], method="GET")
        assert await page(service, given) == expected


@pytest.mark.parametrize(
    ("method", "name"), [("GET", "login"), ("POST", "change_pwd"), ("POST", "user_info"), ("GET", "other"), ("GET", "")]
)
async def test_other_pages_and_methods_are_not_there(method: str, name: str) -> None:
    async with running(pages) as service:
        assert (await page(service, request(f"{PLACE}/{name}", method=method)))[0] == 404
        assert service.seen == []
