"""Sessions by sticky cookies of Services and TraefikServices, from manifests to the wire."""

import hashlib
from collections.abc import Callable
from typing import Any

import pytest

from fakes.gateway.served import HOST
from fakes.translator.applied import world
from fakes.translator.deltas import endpoint_slice, service
from fakes.translator.traefik import resource, route, rule

ANY = f"Host(`{HOST}`)"


def to(name: str, **fields: Any) -> Any:
    return {"name": name, "port": 80, **fields}


def split(name: str, *services: Any, **weighted: Any) -> Any:
    return resource("TraefikService", name, {"weighted": {"services": list(services), **weighted}})


def group(name: str, **fields: Any) -> Any:
    return {"name": name, "kind": "TraefikService", **fields}


async def test_a_client_is_kept_with_the_server_that_served_it_first() -> None:
    async with world("one", "two") as made:
        slices = [endpoint_slice("all", "127.0.0.1", name=name, port=made.port(name)) for name in ("one", "two")]
        sticky = {"cookie": {"name": "kept", "httpOnly": True, "sameSite": "lax"}}
        made.proxy.apply(service("all"), *slices, route(rule(ANY, to("all", sticky=sticky))))
        first = await made.proxy.get()
        assert "kept=" in first["set-cookie"]
        assert "HttpOnly" in first["set-cookie"]
        assert set(await made.proxy.bodies(6, Cookie=first.cookie)) == {first.body.decode()}


def sha256_of(url: str) -> str:
    return hashlib.sha256(url.encode()).hexdigest()[:16]


def fnv_of(text: str) -> str:
    """Return FNV-1 of 64 bits in hexadecimal, as Go writes it."""
    found = 0xCBF29CE484222325
    for byte in text.encode():
        found = (found * 0x100000001B3 % 2**64) ^ byte
    return f"{found:x}"


@pytest.mark.parametrize("written", [sha256_of, str, fnv_of, lambda url: fnv_of(fnv_of(url))])
async def test_sessions_that_traefik_began_go_on(written: Callable[[str], str]) -> None:
    async with world("one", "two") as made:
        slices = [endpoint_slice("all", "127.0.0.1", name=name, port=made.port(name)) for name in ("one", "two")]
        made.proxy.apply(service("all"), *slices, route(rule(ANY, to("all", sticky={"cookie": {"name": "kept"}}))))
        for name in ("one", "two"):
            url = f"http://127.0.0.1:{made.port(name)}"
            got = await made.proxy.get(Cookie=f"kept={written(url)}")
            assert got.body.decode() == name
            assert got.cookie == ("" if written is sha256_of else f"kept={sha256_of(url)}")
        forged = await made.proxy.get(Cookie="kept=0123456789abcdef")
        assert forged.cookie == f"kept={sha256_of(f'http://127.0.0.1:{made.port(forged.body.decode())}')}"


async def test_each_of_several_services_keeps_clients_with_its_servers() -> None:
    async with world("one", "two") as made:
        made.proxy.apply(
            route(rule(ANY, to("one", sticky={"cookie": {}}), to("two", sticky={"cookie": {"name": "b"}})))
        )
        cookies = {(await made.proxy.get()).cookie.partition("=")[0] for _ in range(4)}
        assert len(cookies) == 2
        assert "b" in cookies


async def test_a_weighted_service_keeps_a_client_with_a_service() -> None:
    async with world("one", "two") as made:
        made.proxy.apply(split("all", to("one"), to("two"), sticky={"cookie": {"name": "kept"}}))
        made.proxy.apply(route(rule(ANY, group("all"))))
        first = await made.proxy.get()
        assert set(await made.proxy.bodies(6, Cookie=first.cookie)) == {first.body.decode()}


@pytest.mark.parametrize("written", [sha256_of, str, fnv_of, lambda name: fnv_of(fnv_of(name))])
async def test_sessions_with_services_that_traefik_began_go_on(written: Callable[[str], str]) -> None:
    async with world("one", "two") as made:
        made.proxy.apply(split("all", to("one"), to("two"), sticky={"cookie": {"name": "kept"}}))
        made.proxy.apply(route(rule(ANY, group("all"))))
        for name in ("one", "two"):
            known = f"default-{name}-80"
            got = await made.proxy.get(Cookie=f"kept={written(known)}")
            assert got.body.decode() == name
            assert got.cookie == ("" if written is sha256_of else f"kept={sha256_of(known)}")
        forged = await made.proxy.get(Cookie="kept=0123456789abcdef")
        assert forged.cookie == f"kept={sha256_of(f'default-{forged.body.decode()}-80')}"


async def test_a_traefik_service_within_another_is_known_by_its_name_without_a_port() -> None:
    async with world("one", "two") as made:
        made.proxy.apply(split("in.ner", to("two")))
        made.proxy.apply(split("all", to("one"), group("in.ner"), sticky={"cookie": {"name": "kept"}}))
        made.proxy.apply(route(rule(ANY, group("all"))))
        inner = f"kept={sha256_of('default-in-ner')}"
        assert set(await made.proxy.bodies(6, Cookie=inner)) == {"two"}
        assert (await made.proxy.get(Cookie=inner)).cookie == ""


async def test_a_session_with_a_service_and_with_its_server_are_two_cookies() -> None:
    async with world("one", "two", "three") as made:
        slices = [endpoint_slice("all", "127.0.0.1", name=name, port=made.port(name)) for name in ("one", "two")]
        own = to("all", sticky={"cookie": {"name": "server"}})
        made.proxy.apply(service("all"), *slices)
        made.proxy.apply(split("both", own, to("three"), sticky={"cookie": {"name": "service"}}))
        made.proxy.apply(route(rule(ANY, group("both"))))
        server = sha256_of(f"http://127.0.0.1:{made.port('two')}")
        cookies = f"service={sha256_of('default-all-80')}; server={server}"
        assert set(await made.proxy.bodies(6, Cookie=cookies)) == {"two"}
