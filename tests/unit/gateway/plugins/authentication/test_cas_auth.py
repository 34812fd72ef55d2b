"""`cas-auth` with a CAS server on loopback: tickets, sessions, and their ends."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from aiohttp import web
from pydantic import ValidationError

from headgate.common.plugins.authentication.cas_auth import CasAuthConfig
from headgate.gateway.plugins.built_in.authentication.cas.messages import Unreadable, read_logout, read_validation
from headgate.gateway.plugins.interface import Request, Response
from headgate.gateway.plugins.runtime.chain import PluginChain
from unit.gateway.plugins.running import answered, asked, chain, request
from unit.gateway.plugins.service import Seen, Service, running

NS = 'xmlns:cas="http://www.yale.edu/tp/cas"'
JOE = "<cas:user>joe</cas:user>"
ATTRIBUTES = (
    "<cas:attributes><cas:mail>j@a.example</cas:mail><cas:role>a</cas:role><cas:role>b</cas:role></cas:attributes>"
)
SECRET = "s" * 32
LOGOUT = (
    '<samlp:LogoutRequest xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol" ID="i">'
    "<samlp:SessionIndex>{}</samlp:SessionIndex></samlp:LogoutRequest>"
)


def success(inner: str = JOE) -> str:
    verdict = f"<cas:authenticationSuccess>{inner}</cas:authenticationSuccess>"
    return f"<cas:serviceResponse {NS}>{verdict}</cas:serviceResponse>"


FAILURE = (
    f"<cas:serviceResponse {NS}><cas:authenticationFailure code='INVALID_TICKET'>\n no </cas:authenticationFailure>"
    "</cas:serviceResponse>"
)


@asynccontextmanager
async def cas(answer: str | int = success(), **fields: Any) -> AsyncIterator[tuple[PluginChain, Service]]:
    def serve(seen: Seen) -> web.StreamResponse:
        return web.Response(status=answer) if isinstance(answer, int) else web.Response(text=answer)

    async with running(serve) as service:
        config = {
            "idp_uri": f"{service.url}/cas",
            "cas_callback_uri": "/app/back",
            "logout_uri": "/app/out",
            "cookie": {"secret": SECRET},
            **fields,
        }
        yield chain(("cas-auth", config), services=service.services), service


class Browser:
    """Keeps cookies, and follows what the plugin says."""

    def __init__(self, plugins: PluginChain) -> None:
        self._plugins = plugins
        self.cookies: dict[str, str] = {}

    async def ask(self, target: str, method: str = "GET", body: bytes = b"", **headers: str) -> tuple[Any, Request]:
        sent = [(name.replace("_", "-"), value) for name, value in headers.items()]
        if self.cookies:
            sent.append(("Cookie", "; ".join(f"{name}={value}" for name, value in self.cookies.items())))
        given = request(target, sent, method=method, scheme="https", body=body, content_length=len(body))
        response = await asked(self._plugins, given)
        got = response or await answered(self._plugins, given, Response(200), b"web")
        for line in got.headers.get_all("Set-Cookie"):
            name, _, rest = line.partition("=")
            value, _, attributes = rest.partition(";")
            assert "; Secure; HttpOnly" in f";{attributes}"
            if "Max-Age=0" in attributes:
                self.cookies.pop(name, None)
            else:
                self.cookies[name] = value
        return response, given

    async def log_in(self, target: str = "/app/x?y=1") -> None:
        response, _ = await self.ask(target)
        assert response.status == 302
        response, _ = await self.ask("/app/back?ticket=ST-1")
        assert (response.status, response.headers.get("Location")) == (302, f"https://a.example{target}")


async def test_a_browser_is_sent_to_the_server_and_let_in_when_it_comes_back_with_a_ticket() -> None:
    async with cas(user_header="X-User") as (plugins, service):
        browser = Browser(plugins)
        response, _ = await browser.ask("/app/x?y=1")
        place = urlsplit(response.headers.get("Location"))
        assert place.path == "/cas/login"
        assert parse_qs(place.query) == {"service": ["https://a.example/app/back"]}
        await browser.log_in()
        (seen,) = service.seen
        assert urlsplit(seen.target).path == "/cas/serviceValidate"
        assert parse_qs(urlsplit(seen.target).query) == {"service": ["https://a.example/app/back"], "ticket": ["ST-1"]}
        response, given = await browser.ask("/app/x?y=1", X_User="mallory")
        assert response is None
        assert (given.headers.get("X-User"), given.variables["remote_user"]) == ("joe", "joe")
        assert list(browser.cookies) == [next(name for name in browser.cookies if name.startswith("CAS_SESSION_"))]


async def test_attributes_go_to_the_upstream_and_what_a_client_says_of_them_does_not() -> None:
    fields = {"validate_path": "/p3/serviceValidate", "attribute_headers": {"X-Mail": "mail", "X-Roles": "role"}}
    async with cas(success(JOE + ATTRIBUTES), attribute_headers=fields["attribute_headers"] | {"X-None": "none"}) as (
        plugins,
        _,
    ):
        browser = Browser(plugins)
        await browser.log_in()
        _, given = await browser.ask("/app/x", X_Roles="admin", X_None="n")
        told = {name: given.headers.get(name) for name in ("X-Mail", "X-Roles", "X-None")}
        assert told == {"X-Mail": "j@a.example", "X-Roles": "a,b", "X-None": None}


async def test_a_callback_of_a_whole_url_is_the_service_as_it_is_written() -> None:
    async with cas(cas_callback_uri="https://app.example.com:444/app/back") as (plugins, service):
        browser = Browser(plugins)
        await browser.ask("/app/x")
        await browser.ask("/app/back?ticket=ST-1")
        assert parse_qs(urlsplit(service.seen[0].target).query)["service"] == ["https://app.example.com:444/app/back"]


@pytest.mark.parametrize(
    ("answer", "status"),
    [(FAILURE, 401), ("<a/>", 401), ("no xml", 401), (success(""), 401), (500, 503), (302, 503)],
    ids=str,
)
async def test_only_a_success_lets_in(answer: str | int, status: int) -> None:
    async with cas(answer) as (plugins, _):
        browser = Browser(plugins)
        await browser.ask("/app/x")
        response, _ = await browser.ask("/app/back?ticket=ST-1")
        assert response.status == status
        response, _ = await browser.ask("/app/x")
        assert response.status == 302


async def test_a_ticket_is_not_asked_about_for_a_browser_that_was_not_sent_from_here() -> None:
    async with cas() as (plugins, service):
        response, _ = await Browser(plugins).ask("/app/back?ticket=ST-1")
        assert (response.status, service.seen) == (401, [])


async def test_what_a_page_fetches_is_refused_and_not_sent_to_the_server() -> None:
    async with cas() as (plugins, _):
        response, _ = await Browser(plugins).ask("/app/x", Sec_Fetch_Mode="cors")
        assert response.status == 401


async def test_a_cookie_of_another_configuration_or_secret_is_none() -> None:
    async with cas() as (plugins, service):
        browser = Browser(plugins)
        await browser.log_in()
        for other in ({"cookie": {"secret": "t" * 32}}, {"cas_callback_uri": "/app/other"}):
            async with cas(idp_uri=f"{service.url}/cas", **other) as (others, _):
                stranger = Browser(others)
                stranger.cookies = dict(browser.cookies)
                response, _ = await stranger.ask("/app/x")
                assert response.status == 302


async def test_a_session_ends_at_the_logout_uri_for_every_copy_of_the_cookie() -> None:
    async with cas() as (plugins, service):
        browser, copy = Browser(plugins), Browser(plugins)
        await browser.log_in()
        copy.cookies = dict(browser.cookies)
        assert (await copy.ask("/app/x"))[0] is None
        response, _ = await browser.ask("/app/out")
        assert (response.status, response.headers.get("Location")) == (302, f"{service.url}/cas/logout")
        assert not browser.cookies
        assert (await copy.ask("/app/x"))[0].status == 302
        assert (await browser.ask("/app/out"))[0].status == 401


@pytest.mark.parametrize("is_form", [True, False])
async def test_a_session_ends_when_the_server_says_so(is_form: bool) -> None:
    async with cas() as (plugins, _):
        browser = Browser(plugins)
        await browser.log_in()
        for ticket, status in (("ST-2", None), ("ST-1", 302)):
            said = LOGOUT.format(ticket)
            body = f"logoutRequest={quote(said)}" if is_form else said
            response, _ = await Browser(plugins).ask("/app/back", "POST", body.encode())
            assert response.status == 200
            response, _ = await browser.ask("/app/x")
            assert (response and response.status) == status


async def test_anything_else_that_is_posted_to_the_callback_is_refused() -> None:
    async with cas() as (plugins, _):
        for body in (b"", b"a=b", b"logoutRequest=x", b"<a/>"):
            response, _ = await Browser(plugins).ask("/app/back", "POST", body)
            assert response.status == 400


async def test_a_session_that_was_left_alone_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_700_000_000.0
    monkeypatch.setattr("time.time", lambda: now)
    async with cas(idle_timeout=100) as (plugins, _):
        browser = Browser(plugins)
        await browser.log_in()
        for wait_s in (90.0, 90.0, 90.0):
            now += wait_s
            assert (await browser.ask("/app/x"))[0] is None
        now += 101
        assert (await browser.ask("/app/x"))[0].status == 302


@pytest.mark.parametrize(
    "document",
    [
        success(JOE + JOE),
        success("<cas:user></cas:user>"),
        f"<!DOCTYPE a [<!ENTITY e 'joe'>]>{success('<cas:user>&e;</cas:user>')}",
        f"<cas:serviceResponse {NS}>{FAILURE}</cas:serviceResponse>",
        success().replace("authenticationSuccess", "other"),
        f"<a>{success()}</a>",
        f"<cas:serviceResponse {NS}/>",
        success()[:-1],
        "",
    ],
)
def test_an_answer_that_is_not_one_verdict_on_one_user_counts_for_nothing(document: str) -> None:
    with pytest.raises(Unreadable):
        read_validation(document.encode())


def test_a_comment_does_not_make_another_user() -> None:
    assert read_validation(success("<cas:user>joe<!-- -->.evil</cas:user>").encode()).name == "joe.evil"


def test_a_failure_says_why() -> None:
    with pytest.raises(Unreadable, match=r"^INVALID_TICKET no$"):
        read_validation(FAILURE.encode())


def test_answers_without_a_namespace_are_read() -> None:
    document = "<serviceResponse><authenticationSuccess><user> joe </user></authenticationSuccess></serviceResponse>"
    assert read_validation(document.encode()).name == "joe"


def test_a_logout_names_one_ticket() -> None:
    assert read_logout(LOGOUT.format(" ST-1 ").encode()) == "ST-1"
    with pytest.raises(Unreadable):
        read_logout(LOGOUT.format("").encode())


@pytest.mark.parametrize(
    "wrong",
    [
        {"idp_uri": "cas.example"},
        {"cas_callback_uri": "back"},
        {"logout_uri": "/app/back"},
        {"cookie": {"secret": "short"}},
        {"cookie": {"secret": SECRET, "samesite": "None", "secure": False}},
        {"cookie": {"secret": SECRET, "samesite": "Strict"}},
        {"idle_timeout": 0},
    ],
    ids=str,
)
def test_configurations_that_cannot_be_followed_are_refused(wrong: dict[str, Any]) -> None:
    good = {
        "idp_uri": "https://cas.example/cas",
        "cas_callback_uri": "/app/back",
        "logout_uri": "/app/out",
        "cookie": {"secret": SECRET},
    }
    assert CasAuthConfig.model_validate(good).callback_path == "/app/back"
    with pytest.raises(ValidationError):
        CasAuthConfig.model_validate({**good, **wrong})
