import asyncio

import pytest
from aiohttp import web

from fakes.waiting import until
from headgate.common.plugins.traffic.proxy_mirror import ProxyMirrorConfig
from headgate.gateway.plugins.built_in.traffic.proxy_mirror import ProxyMirror
from headgate.gateway.plugins.interface import PluginServices, Request, Response
from headgate.gateway.plugins.interface.errors import PluginRefused
from headgate.gateway.plugins.kit.memory import plugin_memory
from unit.gateway.plugins.running import chain, request
from unit.gateway.plugins.service import running, sending


async def passed(plugin: ProxyMirror, given: Request, *pieces: bytes) -> bytes:
    """Let a body pass the way to the upstream."""
    joined = plugin.request_body_filter(given)
    if joined is None:
        return b"".join(pieces)
    assert joined.keeps_length
    return b"".join([*map(joined.feed, pieces), joined.finish()])


def mirrored(config, services: PluginServices) -> ProxyMirror:
    return ProxyMirror(ProxyMirrorConfig.model_validate(config), services)


async def test_copy_has_the_request_and_its_body() -> None:
    async with running(lambda seen: web.Response()) as service:
        plugin = mirrored({"host": service.url}, service.services)
        given = request("/p?q=1", [("X-A", "1")], method="POST", content_length=6)
        assert await passed(plugin, given, b"abc", b"def") == b"abcdef"
        await until(lambda: service.seen)
        seen = service.seen[0]
    assert (seen.method, seen.target, seen.body, seen.headers["X-A"]) == ("POST", "/p?q=1", b"abcdef", "1")


@pytest.mark.parametrize(
    ("config", "target"), [({"path": "/s"}, "/s?q=1"), ({"path": "/s/", "path_concat_mode": "prefix"}, "/s/p?q=1")]
)
async def test_path_is_replaced_or_prefixed(config, target) -> None:
    seen = []
    services = PluginServices(send_to=sending(lambda upstream, copied: seen.append(copied) or Response(200)))
    await passed(mirrored({"upstream": "u", **config}, services), request("/p?q=1"))
    await until(lambda: seen)
    assert seen[0].target == target
    assert seen[0].upstream_host == "a.example"


async def test_body_is_left_out_on_demand() -> None:
    seen = []
    services = PluginServices(send_to=sending(lambda upstream, copied: seen.append(copied) or Response(200)))
    plugin = mirrored({"upstream": "u", "mirror_body": False}, services)
    assert await passed(plugin, request(method="POST", content_length=3), b"abc") == b"abc"
    await until(lambda: seen)
    assert seen[0].body == b""


@pytest.mark.parametrize("length", [4, None])
async def test_request_with_too_long_a_body_is_not_copied(length) -> None:
    services = PluginServices(send_to=sending(lambda upstream, copied: pytest.fail("copied")))
    plugin = mirrored({"upstream": "u", "max_body": 3}, services)
    assert await passed(plugin, request(method="POST", content_length=length), b"ab", b"cd") == b"abcd"
    await asyncio.sleep(0)
    assert plugin.mirroring.dropped == 1


async def test_copies_under_way_are_bounded() -> None:
    release = asyncio.Event()
    sent = []

    async def hold(upstream, copied, *, timeout_s, max_body):
        sent.append(copied)
        await release.wait()
        return Response(200)

    plugin = mirrored({"upstream": "u", "max_in_flight": 2}, PluginServices(send_to=hold))
    for _ in range(3):
        await passed(plugin, request())
    await until(lambda: len(sent) == 2)
    assert plugin.mirroring.dropped == 1
    release.set()
    await until(lambda: not plugin.mirroring.under_way)


async def test_mirror_that_is_away_is_nobodys_business() -> None:
    async with running(lambda seen: web.Response()) as service:
        plugin = mirrored({"host": "http://127.0.0.1:1"}, service.services)
        await passed(plugin, request())
        await until(lambda: not plugin.mirroring.under_way)


async def test_share_of_the_requests_is_copied(monkeypatch) -> None:
    seen = []
    services = PluginServices(send_to=sending(lambda upstream, copied: seen.append(copied) or Response(200)))
    plugin = mirrored({"upstream": "u", "sample_ratio": 0.25}, services)
    for drawn in (0.1, 0.3, 0.2, 0.9):
        monkeypatch.setattr("random.random", lambda drawn=drawn: drawn)
        await passed(plugin, request())
    await until(lambda: len(seen) == 2)


@pytest.mark.parametrize(
    "config", [{}, {"host": "shadow:80"}, {"host": "http://a/path"}, {"upstream": "u", "sample_ratio": 2}]
)
def test_bad_configuration_is_refused(config) -> None:
    with pytest.raises(PluginRefused):
        chain(("proxy-mirror", config))


async def test_bodies_under_way_are_bounded_together(monkeypatch) -> None:
    monkeypatch.setattr("headgate.gateway.plugins.kit.mirroring.MAX_HELD", 250)
    go_on = asyncio.Event()
    seen = []

    async def send_to(upstream, copied, *, timeout_s, max_body) -> Response:
        seen.append(copied)
        await go_on.wait()
        return Response(200)

    plugin = mirrored({"upstream": "u"}, PluginServices(send_to=send_to))
    for _ in range(4):
        await passed(plugin, request(method="POST", content_length=100), b"x" * 100)
    await until(lambda: len(seen) == 2)
    go_on.set()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await passed(plugin, request(method="POST", content_length=100), b"x" * 100)
    await until(lambda: len(seen) == 3)


async def test_copies_of_all_mirrors_are_bounded_together(monkeypatch) -> None:
    monkeypatch.setattr("headgate.gateway.plugins.kit.memory.plugin_budget.__defaults__", (1000,))
    go_on = asyncio.Event()

    async def send_to(upstream, copied, *, timeout_s, max_body) -> Response:
        await go_on.wait()
        return Response(200)

    services = PluginServices(send_to=send_to)
    mirrors = [mirrored({"upstream": "u"}, services) for _ in range(20)]
    for plugin in mirrors:
        assert await passed(plugin, request(method="POST", content_length=100), b"x" * 100) == b"x" * 100
    memory = plugin_memory(services)
    assert memory.used <= memory.limit
    assert 5 <= [plugin.mirroring.dropped for plugin in mirrors].count(0) < 20
    go_on.set()
    await until(lambda: memory.used == 0)


def test_a_copy_whose_request_is_lost_takes_no_memory() -> None:
    services = PluginServices()
    plugin = mirrored({"upstream": "u"}, services)
    memory = plugin_memory(services)
    body = plugin.request_body_filter(request(method="POST", content_length=200))
    assert body is not None
    body.feed(b"x" * 100)
    assert memory.used == 100
    del body
    assert memory.used == 0
