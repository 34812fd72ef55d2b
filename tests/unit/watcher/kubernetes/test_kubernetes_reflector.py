"""The reflector against the fake API server, in virtual time: what it reports, and how often it asks."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import pytest

from fakes.following import Following
from fakes.kubernetes_api import FakeKubernetes
from fakes.kubernetes_objects import ingress
from fakes.virtual_time import in_virtual_time
from headgate.common.resources import INGRESS
from headgate.watcher.sources import Listed
from headgate.watcher.sources.kubernetes.source import KubernetesSource


@asynccontextmanager
async def following(api: FakeKubernetes, tmp_path: Path) -> AsyncIterator[Following]:
    source = KubernetesSource(kubeconfig=api.write_kubeconfig(tmp_path / "config"), choices=[(INGRESS,)], rng=Random(7))
    async with Following(source) as seen:
        yield seen


@pytest.mark.parametrize("streams_lists", [False, True])
@in_virtual_time
async def test_a_list_and_then_every_change_is_reported(streams_lists: bool, tmp_path: Path) -> None:
    async with FakeKubernetes(streams_lists=streams_lists) as api:
        api.apply(ingress("a"))
        async with following(api, tmp_path) as seen:
            await seen.until(lambda: seen.names(INGRESS) == {"a"})
            api.apply(ingress("b"))
            await seen.until(lambda: seen.names(INGRESS) == {"a", "b"})
            api.apply(ingress("a", "other.test"))
            api.delete("ingresses", "b")
            await seen.until(lambda: seen.names(INGRESS) == {"a"})
            assert seen.state[INGRESS]["default", "a"]["spec"]["rules"][0]["host"] == "other.test"
            assert [type(event) for event in seen.log].count(Listed) == 1
