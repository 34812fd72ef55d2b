"""Lists that are asked for, in virtual time: they come soon, and not too often."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from fakes.kubernetes.api import FakeKubernetes
from fakes.kubernetes.following import Following
from fakes.kubernetes.objects import ingress
from fakes.virtual_time import in_virtual_time
from headgate.common.resources import INGRESS, SERVICE
from headgate.watcher.sources.kubernetes.source import KubernetesSource


class Watched(NamedTuple):
    api: FakeKubernetes
    source: KubernetesSource
    seen: Following

    @property
    def lists(self) -> int:
        return len(self.seen.listed(INGRESS))


@asynccontextmanager
async def watched(tmp_path: Path, *, streams_lists: bool = False) -> AsyncIterator[Watched]:
    """A cluster with one Ingress that was listed a minute ago."""
    async with FakeKubernetes(streams_lists=streams_lists) as api:
        api.apply(ingress("a"))
        config = api.write_kubeconfig(tmp_path / "config")
        source = KubernetesSource(kubeconfig=config, choices=[(INGRESS,)], rng=Random(7))
        async with Following(source) as seen:
            await seen.until(lambda: seen.names(INGRESS) == {"a"})
            await asyncio.sleep(60)
            yield Watched(api, source, seen)


@pytest.mark.parametrize("streams_lists", [False, True])
@in_virtual_time
async def test_a_kind_is_listed_anew_at_once_and_then_watched_on(streams_lists: bool, tmp_path: Path) -> None:
    async with watched(tmp_path, streams_lists=streams_lists) as one:
        before = asyncio.get_running_loop().time()
        assert one.source.relist(INGRESS)
        await one.seen.until(lambda: one.lists == 2)
        assert asyncio.get_running_loop().time() - before < 1
        one.api.apply(ingress("b"))
        await one.seen.until(lambda: one.seen.names(INGRESS) == {"a", "b"})
        assert one.lists == 2


@in_virtual_time
async def test_lists_that_are_asked_for_all_the_time_come_every_five_seconds(tmp_path: Path) -> None:
    async with watched(tmp_path) as one:
        for _ in range(100):
            one.source.relist(INGRESS)
            await asyncio.sleep(1)
        assert 18 <= one.lists <= 22


@in_virtual_time
async def test_a_list_that_is_asked_for_twice_right_after_another_one_comes_once(tmp_path: Path) -> None:
    async with watched(tmp_path) as one:
        one.source.relist(INGRESS)
        await one.seen.until(lambda: one.lists == 2)
        one.source.relist(INGRESS)
        one.source.relist(INGRESS)
        await asyncio.sleep(60)
        assert one.lists == 3


@in_virtual_time
async def test_a_list_that_is_asked_for_comes_though_the_server_is_away_for_a_while(tmp_path: Path) -> None:
    async with watched(tmp_path) as one:
        await one.api.stop()
        one.source.relist(INGRESS)
        await asyncio.sleep(30)
        assert one.lists == 1
        await one.api.start()
        await one.seen.until(lambda: one.lists == 2)


@in_virtual_time
async def test_a_kind_that_is_not_read_cannot_be_listed_anew(tmp_path: Path) -> None:
    async with watched(tmp_path) as one:
        assert not one.source.relist(SERVICE)
