"""Sessions of `openid-connect` in a real Redis."""

import gc
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import redis

from fakes.stores.redis import RedisServer, eventually, real_redis
from fakes.waiting import until
from headgate.gateway.plugins.redis.sessions import SessionsDirectory
from unit.gateway.plugins.oidc_site import SESSION, Browser, Site, site

TIMEOUTS = {"connect_timeout": 5000, "send_timeout": 1, "read_timeout": 1}


def to_server(server: RedisServer, **more: Any) -> dict[str, Any]:
    return {**SESSION, "storage": "redis", "redis": {"host": "127.0.0.1", "port": server.port, **TIMEOUTS, **more}}


async def keys(server: RedisServer) -> list[bytes]:
    found: list[bytes] = await server.ask("KEYS", "*")
    return found


@asynccontextmanager
async def gateways(count: int = 2) -> AsyncIterator[tuple[RedisServer, list[Site]]]:
    """Serve one provider to several gateways that share a Redis."""
    directories = [SessionsDirectory() for _ in range(count)]
    async with real_redis() as server, site() as first:
        sites = [Site(first.provider, first.services) for _ in directories]
        for each, directory in zip(sites, directories, strict=True):
            each.services = type(first.services)(http=first.services.http, find_sessions=directory.find)
        try:
            yield server, sites
        finally:
            for each in directories:
                await each.close()


async def test_gateways_share_a_session_of_which_the_browser_has_the_number() -> None:
    async with gateways() as (server, [one, other]):
        browser = Browser(one.chain(session=to_server(server, prefix="shop")))
        await browser.get()
        assert await keys(server) == [], "nothing is stored for whoever has not logged in"
        assert (await browser.log_in(one.provider)).status == 302
        [key] = await keys(server)
        assert key.startswith(b"shop:")
        assert 0 < await server.ask("PTTL", key) <= 900_000
        stored = await server.ask("GET", key)
        assert b"access-0" not in stored
        assert len(browser.cookies["session"]) < 400
        browser.plugins = other.chain(session=to_server(server, prefix="shop"))
        assert (await browser.get()).status == 200
        assert browser.told.get("X-Access-Token") == "access-0"


async def test_logging_out_ends_the_session_for_every_copy_of_the_cookie() -> None:
    async with gateways() as (server, [one, other]):
        browser, thief = (Browser(each.chain(session=to_server(server))) for each in (one, other))
        await browser.log_in(one.provider)
        thief.cookies = dict(browser.cookies)
        assert (await thief.get()).status == 200
        assert (await browser.get("/logout")).status == 302
        assert (await keys(server), browser.cookies) == ([], {})
        assert (await thief.get()).status == 302


async def test_a_session_that_was_there_before_the_login_is_not_taken_over() -> None:
    async with gateways(1) as (server, [one]):
        attacker, victim = (Browser(one.chain(session=to_server(server))) for _ in range(2))
        await attacker.log_in(one.provider)
        victim.cookies = dict(attacker.cookies)
        planted = victim.cookies["session"]
        location = (await Browser(victim.plugins).get()).headers.get("Location") or ""
        assert (await victim.get(one.provider.log_in(location))).status == 400, "sent there from another browser"
        del victim.cookies["session"]
        location = (await victim.get()).headers.get("Location") or ""
        victim.cookies["session"] = planted
        assert (await victim.get(one.provider.log_in(location))).status == 302
        assert victim.cookies["session"] != planted
        assert len(await keys(server)) == 1, "the older one is gone"
        assert (await attacker.get()).status == 302


async def test_what_somebody_else_wrote_into_redis_is_no_session() -> None:
    async with gateways(1) as (server, [one]):
        browser, other = (Browser(one.chain(session=to_server(server))) for _ in range(2))
        await browser.log_in(one.provider)
        [key] = await keys(server)
        one.provider.user = "jill"
        await other.log_in(one.provider)
        [its] = [each for each in await keys(server) if each != key]
        await server.ask("COPY", its, key, "REPLACE")
        assert (await browser.get()).status == 302, "the session of another"
        await server.ask("SET", key, b"forged")
        assert (await browser.get()).status == 302
        assert (await other.get()).status == 200


async def test_tokens_that_one_gateway_renewed_are_there_for_all() -> None:
    async with gateways() as (server, [one, other]):
        one.provider.lifetime_s = -1
        browser = Browser(one.chain(session=to_server(server)))
        await browser.log_in(one.provider)
        one.provider.lifetime_s = 300
        cookies = dict(browser.cookies)
        assert (await browser.get()).status == 200
        assert browser.told.get("X-Access-Token") == "access-1"
        assert browser.cookies == cookies, "the number stays"
        browser.plugins = other.chain(session=to_server(server))
        assert (await browser.get()).status == 200
        assert browser.told.get("X-Access-Token") == "access-1"
        assert one.provider.refreshed == 1


async def test_a_session_that_ended_meanwhile_does_not_come_back() -> None:
    async with gateways(1) as (server, [one]):
        one.provider.lifetime_s = -1
        browser = Browser(one.chain(session=to_server(server)))
        await browser.log_in(one.provider)
        original = one.provider.token
        [key] = await keys(server)

        def token(form: dict[str, str]) -> Any:
            # The user logs out elsewhere while the tokens are renewed.
            with redis.Redis(port=server.port) as client:
                assert client.delete(key) == 1
            return original(form)

        one.provider.token = token  # type: ignore[method-assign]
        assert (await browser.get()).status == 200
        assert await keys(server) == []
        assert (await browser.get()).status == 302


@pytest.mark.parametrize("limit", ["idling_timeout", "absolute_timeout"])
async def test_a_session_ends_in_redis_too(limit, monkeypatch) -> None:
    async with gateways(1) as (server, [one]):
        config = {**to_server(server), "idling_timeout": 0, "rolling_timeout": 0, "absolute_timeout": 0, limit: 100}
        browser = Browser(one.chain(session=config))
        await browser.log_in(one.provider)
        [key] = await keys(server)
        assert 0 < await server.ask("PTTL", key) <= 100_000
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + 101)
        assert (await browser.get()).status == 302


async def test_a_user_of_redis_with_few_rights_is_enough() -> None:
    async with gateways(1) as (server, [one]):
        rights = ["on", ">pass", "~sessions:*", "-@all", "+get", "+set", "+del", "+info", "+client|setname"]
        await server.ask("ACL", "SETUSER", "keeper", *rights)
        browser = Browser(one.chain(session=to_server(server, username="keeper", password="pass")))
        assert (await browser.log_in(one.provider)).status == 302
        assert (await browser.get()).status == 200
        assert (await browser.get("/logout")).status == 302
        assert await keys(server) == []


async def test_without_redis_nobody_is_sent_away_and_nobody_let_in() -> None:
    async with gateways(1) as (server, [one]):
        impatient = {"connect_timeout": 100, "send_timeout": 1, "read_timeout": 1}
        browser = Browser(one.chain(session=to_server(server)))
        await browser.log_in(one.provider)
        browser.plugins = one.chain(session=to_server(server, **impatient))
        await server.kill()
        for target in ("/", "/logout"):
            assert (await browser.get(target)).status == 503
        assert "session" in browser.cookies


async def test_the_connection_is_shared_and_closed_with_the_last_plugin() -> None:
    async with real_redis() as server, site() as here:
        directory = SessionsDirectory()
        here.services = type(here.services)(http=here.services.http, find_sessions=directory.find)
        browsers = [Browser(here.chain(session=to_server(server))) for _ in range(2)]
        for browser in browsers:
            await browser.log_in(here.provider)

        async def connections() -> int:
            told: bytes = await server.ask("CLIENT", "LIST")
            return told.count(b"name=headgate-sessions")

        assert await connections() == 1
        del browser, browsers
        gc.collect()
        await until(lambda: directory.is_idle)

        async def are_closed() -> bool:
            return await connections() == 0

        await eventually(are_closed)
