"""`cas-auth` of an ApisixRoute, from the manifest to the wire: out to a CAS server and back with a session."""

from typing import Any

from aiohttp import web

from fakes.gateway.served import HOST, Got
from fakes.translator.apisix import route, rule
from fakes.translator.applied import world
from unit.gateway.plugins.service import Seen, running

ANSWER = (
    '<cas:serviceResponse xmlns:cas="http://www.yale.edu/tp/cas"><cas:authenticationSuccess><cas:user>joe</cas:user>'
    "</cas:authenticationSuccess></cas:serviceResponse>"
)


def answering(seen: Seen) -> web.StreamResponse:
    return web.Response(text=ANSWER)


def guarded(url: str) -> Any:
    config = {
        "idp_uri": url,
        "cas_callback_uri": "/back",
        "logout_uri": "/out",
        "cookie": {"secret": "s" * 32, "secure": False},
        "user_header": "X-User",
    }
    plugin = {"name": "cas-auth", "enable": True, "config": config}
    return route(rule(hosts=[HOST], plugins=[plugin], backends=[{"serviceName": "one", "servicePort": 80}]))


def cookies(got: Got) -> str:
    return "; ".join(line.partition(";")[0] for line in got.all("Set-Cookie") if "Max-Age=0" not in line)


async def test_a_browser_goes_to_the_server_and_comes_back_with_a_session() -> None:
    async with running(answering) as server, world("one") as made:
        made.proxy.apply(guarded(server.url))
        sent = await made.proxy.get("/x?y=1")
        assert (sent.status, sent["Location"].partition("?")[0]) == (302, f"{server.url}/login")
        back = await made.proxy.get("/back?ticket=ST-1", Cookie=cookies(sent))
        assert (back.status, back["Location"]) == (302, f"http://{HOST}/x?y=1")
        assert (await made.proxy.get("/x?y=1", Cookie=cookies(back), X_User="mallory")).body == b"one"
        (head,) = made.servers["one"].heads
        assert b"\r\nX-User: joe\r\n" in head
        assert b"mallory" not in head
        left = await made.proxy.get("/out", Cookie=cookies(back))
        assert (left.status, left["Location"]) == (302, f"{server.url}/logout")
        assert await made.proxy.status("/x", Cookie=cookies(back)) == 302


async def test_a_configuration_without_a_secret_lets_nobody_in() -> None:
    async with world("one") as made:
        written = guarded("http://cas.example")
        del written["spec"]["http"][0]["plugins"][0]["config"]["cookie"]["secret"]
        made.proxy.apply(written)
        assert await made.proxy.status() == 503
        assert not made.servers["one"].heads
