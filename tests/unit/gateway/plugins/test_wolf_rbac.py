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
