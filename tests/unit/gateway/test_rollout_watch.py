"""What a worker says of itself while its table is rolled out."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from fakes.gateway.proxied import OK, answering
from fakes.gateway.served import HOST, Served, at, origins, ports, served, site, to
from fakes.translator.rolled_out import rolled_out
from headgate.common.heartbeats import RolloutReport
from headgate.common.snapshot import Manifest, RolloutPhase
from headgate.common.table_image import TableImage
from headgate.gateway.observability.rollout_watch import RolloutWatch
from headgate.gateway.proxy.stats import ProxyStats

FAILED = b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n"
MISSED = b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"
OTHER = "b.example"


@pytest.fixture
async def running() -> AsyncIterator[Served]:
    async with (
        origins(answering(OK), answering(FAILED), answering(MISSED)) as servers,
        served(
            *(at(port, key=key) for key, port in zip(("up", "bad", "gone"), ports(servers), strict=True)),
            site(to("up", path="/"), to("bad", path="/bad"), to("gone", path="/gone")),
            site(to("up", path="/only"), host=OTHER),
        ) as proxy,
    ):
        yield proxy


def manifest(*replicas: str, revision: int = 2, hosts: tuple[str, ...] = (HOST,), **changes: Any) -> Manifest:
    return rolled_out(TableImage(), TableImage(), *replicas, revision=revision, hosts=hosts, **changes)[0]


def watching(proxy: Served, applied: Manifest, replica: str = "g1") -> RolloutWatch:
    watch = RolloutWatch(proxy.stats, replica)
    apply(proxy, watch, applied)
    return watch


def apply(proxy: Served, watch: RolloutWatch, applied: Manifest) -> None:
    assert proxy.compiler.table is not None
    watch.note_applied(applied, proxy.compiler.table)


def report(watch: RolloutWatch) -> RolloutReport:
    found = watch.report()
    assert found is not None
    return found


def figures(watch: RolloutWatch) -> tuple[int, int, int, int]:
    """Requests and errors: of what changed, of all."""
    found = report(watch)
    return found.changed.requests, found.changed.errors, found.all.requests, found.all.errors


async def test_what_came_before_the_step_does_not_count(running: Served) -> None:
    await running.get("/bad")
    watch = watching(running, manifest("g1"))
    assert figures(watch) == (0, 0, 0, 0)
    await running.get("/")
    assert figures(watch) == (1, 0, 1, 0)
    assert report(watch).is_next
    assert not report(watching(running, manifest("g1"), "g2")).is_next


async def test_errors_are_those_of_500_and_above_and_requests_that_no_route_takes(running: Served) -> None:
    watch = watching(running, manifest("g1", hosts=(HOST, OTHER)))
    for path in ("/bad", "/gone", "/"):
        await running.get(path)
    await running.get("/nowhere", host=OTHER)
    assert figures(watch) == (4, 2, 4, 2)


async def test_requests_to_what_changes_are_told_apart_also_those_that_no_route_takes(running: Served) -> None:
    watch = watching(running, manifest("g1", hosts=(OTHER,)))
    await running.get("/bad")
    await running.get("/only", host=OTHER)
    await running.get("/", host=OTHER)
    await running.get("/", host="c.example")
    assert figures(watch) == (2, 1, 4, 3)


async def test_a_host_that_is_gone_with_the_next_table_is_told_apart_too(running: Served) -> None:
    watch = watching(running, manifest("g1", hosts=("gone.example",)))
    await running.get("/", host="gone.example")
    assert figures(watch) == (1, 1, 1, 1)


async def test_upstreams_that_change_count_whatever_host_they_serve(running: Served) -> None:
    changed = {"upstreams": {"count": 1, "names": ("bad",)}}
    watch = watching(running, manifest("g1", hosts=(), changed=changed))
    await running.get("/bad")
    await running.get("/")
    assert figures(watch) == (1, 1, 2, 1)


async def test_what_changes_is_told_apart_where_routes_are_counted_together() -> None:
    async with origins(answering(OK)) as servers, served(at(*ports(servers)), site(), site(host=OTHER)) as proxy:
        stats = ProxyStats(max_series=0)
        proxy.server.context.stats = stats
        await proxy.get("/")
        assert [traffic.route for traffic in stats.series() if traffic.ok] == ["other"]
        watch = RolloutWatch(stats, "g1")
        apply(proxy, watch, manifest("g1"))
        await proxy.get("/")
        await proxy.get("/", host=OTHER)
        assert figures(watch) == (1, 0, 2, 0)


async def test_endpoints_that_change_meanwhile_begin_nothing_anew_and_another_step_does(running: Served) -> None:
    watch = watching(running, manifest("g1"))
    await running.get("/")
    apply(running, watch, manifest("g1").model_copy(update={"version": (1, 3)}))
    assert figures(watch)[2] == 1
    apply(running, watch, manifest("g1", revision=4))
    assert figures(watch)[2] == 0


async def test_when_the_rollout_ends_nothing_is_said(running: Served) -> None:
    watch = watching(running, manifest("g1"))
    assert (watch.is_counting, watch.is_next) == (True, True)
    apply(running, watch, manifest(revision=3, phase=RolloutPhase.HELD))
    assert (watch.is_counting, watch.is_next, watch.report()) == (False, False, None)
    await running.get("/nowhere", host=OTHER)
    assert running.stats.unrouted.by_status() == {404: 1}
