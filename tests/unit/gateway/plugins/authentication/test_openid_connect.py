import random
import time

import jwt
import pytest
from cryptography.hazmat.primitives import serialization

from fakes.peers.openid_provider import CLIENT, KEY, decoded
from unit.gateway.plugins.oidc_site import SESSION, Browser, bearing, site, status
from unit.gateway.plugins.running import asked, request

PEM = (
    KEY.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo).decode()
)


# Tokens that requests bring


async def test_a_token_is_checked_by_the_keys_of_the_provider_which_are_fetched_once() -> None:
    async with site() as here:
        plugins = here.chain(bearer_only=True, use_jwks=True)
        for _ in range(3):
            given = bearing(token := here.provider.sign(scope="a"), ("X-Userinfo", "forged"), ("X-ID-Token", "forged"))
            assert await status(plugins, given) == 200
        assert here.provider.asked == ["/.well-known/openid-configuration", "/jwks"]
    assert given.headers.get("X-Access-Token") == token
    assert decoded(given.headers.get("X-Userinfo"))["sub"] == "jack"
    assert "X-ID-Token" not in given.headers
    assert given.variables["remote_user"] == "jack"


@pytest.mark.parametrize("keys", [{"use_jwks": True}, {"public_key": PEM}])
async def test_bad_tokens_are_refused_with_a_reason(keys) -> None:
    async with site() as here:
        plugins, provider = here.chain(bearer_only=True, **keys), here.provider
        now = int(time.time())
        other = jwt.encode({"iss": provider.url}, "a shared secret of at least 32 bytes", algorithm="HS256")
        for token in (provider.sign(exp=now - 200), provider.sign(nbf=now + 200), provider.sign()[:-4], other, "x.y"):
            response = await asked(plugins, bearing(token))
            assert response is not None
            assert response.status == 401
            assert response.headers.get("WWW-Authenticate") == 'Bearer realm="apisix", error="invalid_token"'
        assert await status(plugins, request("/")) == 401
        assert await status(plugins, bearing(provider.sign(exp=now - 60))) == 200, "clocks may differ"


async def test_issuer_audience_scopes_and_claims_are_checked_as_configured() -> None:
    async with site() as here:
        sign = here.provider.sign
        jwks = {"bearer_only": True, "use_jwks": True}
        assert await status(here.chain(**jwks), bearing(sign(iss="https://other"))) == 401
        taken = {"claim_validator": {"issuer": {"valid_issuers": ["https://other"]}}}
        assert await status(here.chain(**jwks, **taken), bearing(sign(iss="https://other"))) == 200
        meant = here.chain(**jwks, claim_validator={"audience": {"required": True, "match_with_client_id": True}})
        audiences = [None, "other", ["other", CLIENT], CLIENT]
        tokens = [sign() if one is None else sign(aud=one) for one in audiences]
        assert [await status(meant, bearing(token)) for token in tokens] == [401, 401, 200, 200]
        scoped = here.chain(**jwks, required_scopes=["read"])
        assert [await status(scoped, bearing(sign(scope=scope))) for scope in ("write", "read write")] == [403, 200]
        schema = {"properties": {"tier": {"const": "gold"}}, "required": ["tier"]}
        claiming = here.chain(**jwks, claim_schema=schema)
        assert [await status(claiming, bearing(sign(tier=tier))) for tier in ("tin", "gold")] == [401, 200]


async def test_a_key_that_is_new_is_looked_for_but_not_at_every_request() -> None:
    async with site() as here:
        now = 1000.0
        services = type(here.services)(http=here.services.http, clock=lambda: now)
        here.services = services
        plugins = here.chain(bearer_only=True, use_jwks=True)
        assert await status(plugins, bearing(here.provider.sign())) == 200
        here.provider.key_id = "two"
        for _ in range(3):
            assert await status(plugins, bearing(here.provider.sign())) == 503
        assert here.provider.asked.count("/jwks") == 1
        now += 11
        assert await status(plugins, bearing(here.provider.sign())) == 200
        here.provider.is_down = True
        now += 90_000
        assert await status(plugins, bearing(here.provider.sign())) == 200, "old keys are better than none"


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
async def test_the_provider_is_asked_about_tokens_and_its_answer_remembered(method) -> None:
    async with site() as here:
        provider = here.provider
        provider.active["t"] = {"active": True, "sub": "jack", "exp": time.time() + 60}
        provider.active["old"] = {"active": True, "exp": time.time() - 1}
        url = f"{provider.url}/introspect"
        plugins = here.chain(bearer_only=True, introspection_endpoint=url, introspection_endpoint_auth_method=method)
        assert [await status(plugins, bearing(token)) for token in ("t", "t", "unknown", "old")] == [200, 200, 401, 401]
        assert provider.asked.count("/introspect") == 3


async def test_a_provider_that_does_not_answer_costs_a_503() -> None:
    async with site() as here:
        here.provider.is_down = True
        assert await status(here.chain(bearer_only=True, use_jwks=True), bearing("a.b.c")) == 401
        assert await status(here.chain(bearer_only=True, use_jwks=True), bearing(here.provider.sign())) == 503
        assert await status(here.chain(session=SESSION), request("/")) == 503


# Browsers


@pytest.mark.parametrize("config", [{}, {"use_pkce": True, "use_nonce": True}, {"redirect_uri": "/back"}])
async def test_a_browser_is_sent_to_the_provider_and_has_a_session_when_it_is_back(config) -> None:
    async with site() as here:
        browser = Browser(here.chain(session=SESSION, **config))
        back = await browser.log_in(here.provider)
        assert (back.status, back.headers.get("Location")) == (302, "https://a.example/cart?id=7")
        assert set(browser.cookies) == {"session"}
        assert "access-0" not in browser.cookies["session"]
        assert (await browser.get()).status == 200
    told = browser.told
    assert told.get("X-Access-Token") == "access-0"
    assert decoded(told.get("X-ID-Token"))["sub"] == "jack"
    assert decoded(told.get("X-Userinfo")) == {"sub": "jack", "name": "Jack", "token": "access-0"}


async def test_a_session_is_held_to_the_rules_of_each_route() -> None:
    async with site() as here:
        browser = Browser(here.chain(session=SESSION))
        await browser.log_in(here.provider)
        for named, expected in (("Jack", 200), ("Jill", 401)):
            user = {"properties": {"name": {"const": named}}, "required": ["name"]}
            schema = {"properties": {"user": user}, "required": ["user", "id_token", "access_token"]}
            browser.plugins = here.chain(session=SESSION, claim_schema=schema)
            assert (await browser.get()).status == expected
        browser.plugins = here.chain(
            session=SESSION, claim_validator={"audience": {"claim": "groups", "required": True}}
        )
        assert (await browser.get()).status == 401


async def test_any_gateway_with_the_secret_takes_up_a_session_and_others_do_not() -> None:
    async with site() as here:
        browser = Browser(here.chain(session=SESSION))
        await browser.log_in(here.provider)
        browser.plugins = here.chain(session=SESSION)
        assert (await browser.get()).status == 200
        for other in ({"session": {"secret": "another secret.."}}, {"session": SESSION, "client_id": "another"}):
            browser.plugins = here.chain(**other)
            assert (await browser.get()).status == 302
        browser.plugins = here.chain(session=SESSION)
        browser.cookies["session"] = browser.cookies["session"][:-6] + "AAAAAA"
        assert (await browser.get()).status == 302


async def test_what_comes_back_from_elsewhere_is_refused() -> None:
    async with site() as here:
        victim, attacker = (Browser(here.chain(session=SESSION)) for _ in range(2))
        await victim.get()
        location = (await attacker.get()).headers.get("Location") or ""
        assert (await victim.get(here.provider.log_in(location))).status == 400
        assert (await victim.get("/.apisix/redirect?code=x&state=y")).status == 400
        assert "session" not in victim.cookies


async def test_a_refusal_of_the_provider_is_the_users_answer() -> None:
    async with site() as here:
        browser = Browser(here.chain(session=SESSION))
        place = here.provider.log_in((await browser.get()).headers.get("Location") or "")
        response = await browser.get(place.replace("code=code", "error=access_denied"))
        assert (response.status, response.reason) == (401, "the OpenID provider refused: access_denied")


async def test_an_id_token_of_another_request_client_or_user_is_refused() -> None:
    async with site() as here:
        provider = here.provider
        original = provider.sign
        for wrong in ({"nonce": "x"}, {"aud": "other"}, {"iss": "https://other"}, {"azp": "other"}, {"sub": "jill"}):
            provider.sign = lambda wrong=wrong, **claims: original(**{**claims, **wrong})  # type: ignore[method-assign]
            browser = Browser(here.chain(session=SESSION, use_nonce=True))
            assert (await browser.log_in(provider)).status == 401
            assert "session" not in browser.cookies


async def test_tokens_are_renewed_once_for_requests_at_the_same_time() -> None:
    async with site() as here:
        provider = here.provider
        provider.lifetime_s = -1
        browser = Browser(here.chain(session=SESSION))
        await browser.log_in(provider)
        provider.lifetime_s = 300
        other = Browser(browser.plugins)
        other.cookies = dict(browser.cookies)
        for each in (browser, other, browser):
            assert (await each.get()).status == 200
            assert each.told.get("X-Access-Token") == "access-1"
        assert provider.refreshed == 1


async def test_without_a_token_for_renewal_the_user_is_asked_again() -> None:
    async with site() as here:
        here.provider.lifetime_s = -1
        browser = Browser(here.chain(session=SESSION, force_reauthorize=True))
        await browser.log_in(here.provider)
        assert (await browser.get()).status == 302
        browser.plugins = here.chain(session=SESSION, renew_access_token_on_expiry=False)
        assert (await browser.get()).status == 200


@pytest.mark.parametrize("limit", ["idling_timeout", "absolute_timeout"])
async def test_a_session_ends(limit, monkeypatch) -> None:
    async with site() as here:
        browser = Browser(here.chain(session={**SESSION, "idling_timeout": 0, "rolling_timeout": 0, limit: 100}))
        await browser.log_in(here.provider)
        assert (await browser.get()).status == 200
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + 101)
        assert (await browser.get()).status == 302


async def test_logging_out_forgets_the_session_here_and_there() -> None:
    async with site() as here:
        config = {"revoke_tokens_on_logout": True, "post_logout_redirect_uri": "/bye"}
        browser = Browser(here.chain(session=SESSION, **config))
        await browser.log_in(here.provider)
        away = (await browser.get("/logout")).headers.get("Location") or ""
        assert away.startswith(f"{here.provider.url}/logout?client_id=shop&id_token_hint=ey")
        assert away.endswith("&post_logout_redirect_uri=https%3A%2F%2Fa.example%2Fbye")
        assert browser.cookies == {}
        assert here.provider.revoked == ["refresh-0", "access-0"]


@pytest.mark.parametrize(("action", "expected"), [("deny", 401), ("pass", 200), ("auth", 302)])
async def test_who_has_no_session_is_treated_as_configured(action, expected) -> None:
    async with site() as here:
        browser = Browser(here.chain(session=SESSION, unauth_action=action))
        assert (await browser.get()).status == expected
        assert browser.told.get("X-Userinfo") is None


async def test_what_a_page_fetches_is_not_sent_to_the_provider() -> None:
    async with site() as here:
        plugins = here.chain(session=SESSION)
        for mode, expected in (("cors", 401), ("no-cors", 401), ("navigate", 302)):
            assert await status(plugins, request("/", [("Sec-Fetch-Mode", mode)])) == expected


async def test_attempts_that_nobody_ends_do_not_pile_up() -> None:
    async with site() as here:
        browser = Browser(here.chain(session=SESSION))
        for _ in range(12):
            await browser.get()
            assert len(browser.cookies) <= 5
        location = (await browser.get()).headers.get("Location") or ""
        assert (await browser.get(here.provider.log_in(location))).status == 302


async def test_a_long_session_is_spread_over_cookies() -> None:
    async with site() as here:
        original = here.provider.sign
        noise = random.Random(7).randbytes(4000).hex()
        here.provider.sign = lambda **claims: original(noise=noise, **claims)  # type: ignore[method-assign]
        browser = Browser(here.chain(session=SESSION))
        await browser.log_in(here.provider)
        assert {"session", "session_2"} <= set(browser.cookies)
        assert all(len(value) < 4000 for value in browser.cookies.values())
        assert (await browser.get()).status == 200


@pytest.mark.parametrize(("scheme", "is_secure"), [("https", True), ("http", False)])
async def test_cookies_are_for_https_where_the_browser_speaks_it(scheme, is_secure) -> None:
    async with site() as here:
        response = await Browser(here.chain(session=SESSION)).get(scheme=scheme)
        [cookie] = response.headers.get_all("Set-Cookie")
        assert ("; Secure" in cookie) is is_secure
        assert "SameSite=Lax" in cookie


async def test_the_upstream_is_told_as_much_as_is_configured() -> None:
    async with site() as here:
        config = {
            "access_token_in_authorization_header": True,
            "set_id_token_header": False,
            "set_raw_id_token_header": True,
            "set_userinfo_header": False,
            "set_refresh_token_header": True,
        }
        browser = Browser(here.chain(session=SESSION, **config))
        await browser.log_in(here.provider)
        await browser.get()
        assert "/userinfo" not in here.provider.asked
    told = browser.told
    assert told.get("Authorization") == "Bearer access-0"
    assert (told.get("X-Raw-ID-Token") or "").startswith("ey")
    assert told.get("X-Refresh-Token") == "refresh-0"
    assert [told.get(name) for name in ("X-ID-Token", "X-Userinfo", "X-Access-Token")] == [None, None, None]


async def test_a_session_that_cannot_be_renewed_is_over() -> None:
    async with site() as here:
        here.provider.lifetime_s = -1
        browser = Browser(here.chain(session=SESSION))
        await browser.log_in(here.provider)
        here.provider.refreshed = 7
        assert (await browser.get()).status == 302


async def test_logging_out_works_without_a_session_and_where_the_provider_knows_no_logout() -> None:
    async with site() as here:
        original = here.provider.metadata
        here.provider.metadata = lambda: {  # type: ignore[method-assign]
            name: url for name, url in original().items() if name != "end_session_endpoint"
        }
        response = await Browser(here.chain(session=SESSION)).get("/logout")
        assert (response.status, response.body) == (200, b"Logged out.\n")
        response = await Browser(here.chain(session=SESSION, post_logout_redirect_uri="/bye")).get("/logout")
        assert (response.status, response.headers.get("Location")) == (302, "https://a.example/bye")


async def test_a_way_that_took_too_long_is_refused(monkeypatch) -> None:
    async with site() as here:
        browser = Browser(here.chain(session=SESSION))
        place = here.provider.log_in((await browser.get()).headers.get("Location") or "")
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + 601)
        assert (await browser.get(place)).status == 400
