"""The admin site over real sockets."""

from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry, Counter

from headgate.common.service.admin import AdminSite, Health


@pytest.fixture
async def site() -> AsyncIterator[AdminSite]:
    registry = CollectorRegistry()
    Counter("headgate_swaps", "Swaps of the table", registry=registry).inc(3)
    site = AdminSite(registry=registry)
    site.add_route("GET", "/hello", hello)
    await site.start()
    yield site
    await site.stop()


async def hello(request: web.Request) -> web.Response:
    return web.Response(text="hello")


async def get(site: AdminSite, path: str, **headers: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(site.url + path, headers=headers) as answer:
        return answer.status, await answer.text()


async def test_a_service_without_checks_is_healthy_and_ready(site: AdminSite) -> None:
    assert await get(site, "/healthz") == (200, '{"healthy": true, "checks": {}}')
    assert await get(site, "/readyz") == (200, '{"ready": true, "checks": {}}')


async def test_one_check_that_complains_makes_it_unready(site: AdminSite) -> None:
    site.add_readiness("bus", lambda: None)
    site.add_readiness("table", lambda: "no table yet")
    status, text = await get(site, "/readyz")
    assert (status, text) == (503, '{"ready": false, "checks": {"bus": null, "table": "no table yet"}}')
    assert not site.health.is_ready
    assert (await get(site, "/healthz"))[0] == 200


async def test_a_check_is_replaced_by_its_name(site: AdminSite) -> None:
    site.add_readiness("table", lambda: "not yet")
    site.add_readiness("table", lambda: None)
    assert (await get(site, "/readyz"))[0] == 200


async def test_liveness_has_checks_of_its_own(site: AdminSite) -> None:
    site.health.add_liveness("loop", lambda: "stuck")
    assert (await get(site, "/healthz"))[0] == 503
    assert (await get(site, "/readyz"))[0] == 200


async def test_metrics_are_prometheus_text_or_openmetrics(site: AdminSite) -> None:
    assert "headgate_swaps_total 3.0" in (await get(site, "/metrics"))[1]
    assert "# EOF" in (await get(site, "/metrics", Accept="application/openmetrics-text; version=1.0.0"))[1]


async def test_a_service_adds_pages_of_its_own(site: AdminSite) -> None:
    assert await get(site, "/hello") == (200, "hello")
    assert (await get(site, "/absent"))[0] == 404


async def test_the_site_can_be_a_unix_socket_alone(tmp_path: Path) -> None:
    path = tmp_path / "admin.sock"
    path.write_text("left behind by a crash")
    site = AdminSite(port=None, unix_socket=path, health=Health())
    await site.start()
    connector = aiohttp.UnixConnector(str(path))
    async with aiohttp.ClientSession(connector=connector) as session, session.get("http://admin/healthz") as answer:
        assert answer.status == 200
    assert site.port == 0
    await site.stop()


async def test_a_port_that_is_taken_is_an_error_and_leaves_nothing_open(site: AdminSite) -> None:
    other = AdminSite(port=site.port)
    with pytest.raises(OSError, match="address already in use"):
        await other.start()
    assert not other.is_started
    await other.stop()
