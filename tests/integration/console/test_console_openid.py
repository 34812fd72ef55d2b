"""Logging in to the console at an OpenID provider, over HTTP on both sides."""

import html
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from fakes.browser import browser, needs_chromium
from fakes.console import Console, Got, console
from fakes.gateway.ports import free_port
from fakes.peers.openid_provider import CLIENT, KEY, SECRET, OpenidProvider
from fakes.translator.deltas import endpoint_slice, ingress, service

OBJECTS = (ingress("web", host="a.example"), service(), endpoint_slice("web", "10.0.0.1"))
URL = "http://127.0.0.1:8443"
ROLLBACK = {"action": "rollback", "revision": "HEAD", "reason": "a test"}


class Provider(OpenidProvider):
    """One whose tokens have groups, and whatever else a test wants of them."""

    def __init__(self) -> None:
        super().__init__()
        self.claims: dict[str, Any] = {"groups": ["sre"], "email": "ada@example.com"}
        self.algorithm, self.key = "RS256", KEY

    def sign(self, **claims: Any) -> str:
        if self.algorithm == "RS256":
            return super().sign(**{**claims, **self.claims})
        return jwt.encode({**claims, **self.claims}, self.key, algorithm=self.algorithm)


@asynccontextmanager
async def console_at_provider(
    flags: Sequence[str] = (), url: str = URL, port: int = 0
) -> AsyncIterator[tuple[Console, Provider]]:
    provider = Provider()

    async def handle(request: web.Request) -> web.Response:
        if request.path == "/authorize":  # A person who goes on from there: the way back begins at another site.
            back = html.escape(url + provider.log_in(f"{provider.url}{request.path_qs}"))
            return web.Response(
                text=f'<link rel="icon" href="data:,"><a href="{back}">I am Ada</a>', content_type="text/html"
            )
        headers = {name.title(): value for name, value in request.headers.items()}
        return provider.handle(request.method, request.path_qs, headers, await request.read())

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    async with TestServer(app) as server:
        provider.url = f"http://localhost:{server.port}"  # Another site than 127.0.0.1, for a browser.
        given = (
            f"--console-oidc-issuer={provider.url}",
            f"--console-oidc-client-id={CLIENT}",
            f"--console-oidc-client-secret={SECRET}",
            f"--console-url={url}",
            "--console-oidc-viewer-groups=dev",
            "--console-oidc-operator-groups=sre",
        )
        async with console(*OBJECTS, flags=(*given, *flags), port=port) as made:
            yield made, provider


def cookie_of(found: Got, name: str) -> str:
    (cookie,) = (one for one in found.headers.getall("Set-Cookie") if one.startswith(f"{name}="))
    return str(cookie)


async def begin(made: Console) -> tuple[str, str]:
    """Return where the provider is, and the cookie that the login is bound to."""
    found = await made.get("/login/openid")
    assert found.status == 303
    made.session.cookie_jar.clear()
    return found.headers["Location"], cookie_of(found, "headgate-console-login").partition(";")[0]


async def log_in(made: Console, provider: Provider) -> Got:
    location, cookie = await begin(made)
    found = await made.get(provider.log_in(location), Cookie=cookie)
    made.session.cookie_jar.clear()
    return found


async def session_of(made: Console, provider: Provider) -> str:
    found = await log_in(made, provider)
    assert found.status == 200, found.text
    return cookie_of(found, "headgate-console").partition(";")[0]


async def test_a_browser_goes_to_the_provider_and_comes_back_as_somebody() -> None:
    async with console_at_provider() as (made, provider):
        assert (await made.get("/")).headers["Location"] == "/login"
        assert "/login/openid" in (await made.get("/login")).text
        location, cookie = await begin(made)
        asked = {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}
        assert asked["redirect_uri"] == f"{URL}/login/openid/done"
        assert (asked["code_challenge_method"], asked["scope"]) == ("S256", "openid profile email")
        found = await made.get(provider.log_in(location), Cookie=cookie)
        assert (found.status, 'content="0; url=/"' in found.text) == (200, True)
        given = cookie_of(found, "headgate-console")
        assert {"HttpOnly", "SameSite=Strict"} <= {one.strip() for one in given.split(";")}
        made.session.cookie_jar.clear()
        page = await made.get("/", Cookie=given.partition(";")[0])
        assert page.status == 200


@needs_chromium
@pytest.mark.slow
async def test_a_real_browser_arrives_with_its_strict_session() -> None:
    port = free_port()
    async with console_at_provider(url=f"http://127.0.0.1:{port}", port=port) as (made, _), browser() as seen:
        await seen.page.goto(f"{made.url}/login")
        await seen.page.get_by_role("link", name="Log in with your organisation").click()
        await seen.page.get_by_role("link", name="I am Ada").click()
        await seen.page.wait_for_url(f"{made.url}/")
        await seen.page.get_by_text("Last change").first.wait_for(timeout=20_000)
        assert seen.complaints == []


async def test_an_operators_name_of_the_provider_stands_in_the_history() -> None:
    async with console_at_provider() as (made, provider):
        session = await session_of(made, provider)
        page = await made.get("/changes", Cookie=session)
        token = re.search(r'name="token" value="([^"]+)"', page.text)
        assert token is not None
        found = await made.ask("POST", "/actions", data={**ROLLBACK, "token": token[1]}, Cookie=session)
        assert found.status == 200, found.text
        history = await made.get("/api/v1/revisions", Cookie=session)
        assert "ada@example.com" in history.text


async def test_a_viewer_may_look_and_change_nothing() -> None:
    async with console_at_provider() as (made, provider):
        provider.claims["groups"] = ["dev", "other"]
        session = await session_of(made, provider)
        assert (await made.get("/", Cookie=session)).status == 200
        assert (await made.ask("POST", "/api/v1/actions", json=ROLLBACK, Cookie=session)).status == 403


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        ({"groups": ["sales"]}, "ada@example.com is in no group"),
        ({"groups": None}, "is in no group"),
        ({"groups": "sre2"}, "is in no group"),
        ({"nonce": "of another login"}, "of another login"),
        ({"aud": "another client"}, "cannot be believed"),
        ({"aud": [CLIENT, "another"]}, "for another client"),
        ({"azp": "another"}, "for another client"),
        ({"iss": "https://another.example"}, "cannot be believed"),
        ({"exp": 1}, "cannot be believed"),
        ({"email": "a|operator", "sub": "a|b"}, "characters that no name has"),
    ],
)
async def test_a_token_that_is_not_for_this_login_lets_nobody_in(claims: dict[str, Any], said: str) -> None:
    async with console_at_provider() as (made, provider):
        provider.claims |= claims
        found = await log_in(made, provider)
        assert (found.status, said in found.text) == (401, True), found.text
        assert not [one for one in found.headers.getall("Set-Cookie", []) if one.startswith("headgate-console=")]


async def test_a_token_by_the_shared_secret_or_by_none_proves_nothing() -> None:
    async with console_at_provider() as (made, provider):
        for provider.algorithm, provider.key in (("HS256", SECRET), ("none", None)):
            found = await log_in(made, provider)
            assert (found.status, "proves nothing here" in found.text) == (401, True)


async def test_a_name_that_was_not_tried_is_not_taken_for_one() -> None:
    async with console_at_provider() as (made, provider):
        provider.claims |= {"email_verified": False, "groups": ["sales"]}
        assert "jack is in no group" in (await log_in(made, provider)).text


async def test_a_login_is_that_of_the_browser_that_began_it() -> None:
    async with console_at_provider() as (made, provider):
        (first, mine), (_, theirs) = await begin(made), await begin(made)
        back = provider.log_in(first)
        for cookie in ("", theirs, mine[:-2], "headgate-console-login=a.b", "headgate-console-login=é.1.c"):
            found = await made.get(back, **({"Cookie": cookie} if cookie else {}))
            assert found.status == 401, cookie
        other = await made.get(f"{back}&iss=https://another.example", Cookie=mine)
        assert (other.status, "of another provider" in other.text) == (401, True)
        assert "/token" not in provider.asked


async def test_a_code_is_good_once() -> None:
    async with console_at_provider() as (made, provider):
        location, cookie = await begin(made)
        back = provider.log_in(location)
        assert (await made.get(back, Cookie=cookie)).status == 200
        assert (await made.get(back, Cookie=cookie)).status == 401


async def test_what_the_provider_refuses_is_said_as_text() -> None:
    async with console_at_provider() as (made, _):
        location, cookie = await begin(made)
        state = parse_qs(urlsplit(location).query)["state"][0]
        found = await made.get(f"/login/openid/done?state={state}&error=<b>no</b>", Cookie=cookie)
        assert (found.status, "the provider refuses: &lt;b&gt;no" in found.text) == (401, True)


async def test_a_provider_that_is_away_is_named_and_asked_again() -> None:
    async with console_at_provider() as (made, provider):
        provider.is_down = True
        found = await made.get("/login/openid")
        assert (found.status, "the provider answers 500" in found.text) == (401, True)
        provider.is_down = False
        assert (await log_in(made, provider)).status == 200


async def test_keys_that_were_exchanged_are_read_again() -> None:
    async with console_at_provider() as (made, provider):
        await session_of(made, provider)
        provider.key_id = "two"
        found = await log_in(made, provider)
        assert (found.status, "does not publish" in found.text) == (401, True)  # Asked for at most twice a minute.
        assert provider.asked.count("/jwks") == 1


async def test_groups_may_be_deep_and_everybody_may_be_let_in() -> None:
    flags = ("--console-oidc-groups-claim=realm_access.roles", "--console-oidc-viewer-groups=*")
    async with console_at_provider(flags) as (made, provider):
        session = await session_of(made, provider)
        assert (await made.ask("POST", "/api/v1/actions", json=ROLLBACK, Cookie=session)).status == 403
        provider.claims["realm_access"] = {"roles": ["sre"]}
        session = await session_of(made, provider)
        assert (await made.ask("POST", "/api/v1/actions", json=ROLLBACK, Cookie=session)).status != 403
