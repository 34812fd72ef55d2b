"""All kinds of a cluster at once: random histories with faults, and more changes than are taken."""

import asyncio
from pathlib import Path
from random import Random
from typing import Any

import pytest

from fakes.kubernetes.api import FakeKubernetes
from fakes.kubernetes.following import Following, follow_kinds
from fakes.kubernetes.objects import ingress, service
from fakes.virtual_time import in_virtual_time
from headgate.common.resources import (
    INGRESS,
    SERVICE,
)
from headgate.watcher.sources import Applied, Listed
from headgate.watcher.sources.kubernetes.source import KubernetesScope, KubernetesSource


@pytest.mark.parametrize("seed", range(12))
@in_virtual_time
async def test_after_any_history_with_faults_the_state_is_the_servers(seed: int, tmp_path: Path) -> None:
    rng = Random(seed)
    namespaces = ("one", "two") if seed % 3 == 0 else ()
    async with FakeKubernetes(streams_lists=seed % 2 == 0) as api:
        api.expires_continue = seed % 4 == 1
        backup = api.backup()
        async with follow_kinds(api, tmp_path, KubernetesScope(namespaces), seed) as seen:
            for _ in range(150):
                _change(api, rng)
                if rng.random() < 0.3:
                    _disturb(api, rng)
                if rng.random() < 0.02:
                    await api.stop()  # no restore without an outage
                    api.restore(backup)
                    await asyncio.sleep(35)
                    await api.start()
                if rng.random() < 0.1:
                    await asyncio.sleep(rng.choice((0.01, 1, 40, 200)))
                elif rng.random() < 0.5:
                    await asyncio.sleep(0.01)
            api.faults.clear()
            await seen.until(lambda: _state(seen) == _truth(api), within_s=400)
            await asyncio.sleep(200)
            assert _state(seen) == _truth(api)
            assert len(api.requests) < 6000


def _change(api: FakeKubernetes, rng: Random) -> None:
    name, namespace = rng.choice("abcdef"), rng.choice(("one", "two"))
    match rng.randrange(4):
        case 0:
            api.apply(ingress(name, f"{rng.randrange(1000)}.test", namespace=namespace))
        case 1:
            api.apply(service(name, namespace=namespace, port=rng.randrange(1, 1000)))
        case _:
            plural = rng.choice(("ingresses", "services"))
            found = api.all(plural)
            if found:
                metadata = rng.choice(found)["metadata"]
                api.delete(plural, metadata["name"], metadata["namespace"])


def _disturb(api: FakeKubernetes, rng: Random) -> None:
    what: dict[str, Any] = {"verb": rng.choice(("list", "watch")), "resource": rng.choice(("ingresses", "services"))}
    match rng.randrange(10):
        case 0:
            api.compact()
        case 1:
            api.drop_connections()
        case 2:
            api.faults.status(rng.choice((410, 429, 500, 503)), **what)
        case 3:
            api.faults.body(rng.choice((b"", b"{", b"[]\n")), **what)
        case 4:
            api.faults.reset(rng.choice((None, b"", b'{"type":"ADDED","object":{"met')), **what)
        case 5:
            api.faults.hang(**what)
        case _:
            api.break_watches(rng.choice(("end", "reset", "half", "silence")), what["resource"])


def _state(seen: Following) -> dict[str, Any]:
    return {
        f"{kind}/{namespace}/{name}": item["metadata"]["uid"] + repr(item["spec"])
        for kind in (INGRESS, SERVICE)
        for (namespace, name), item in seen.state.get(kind, {}).items()
    }


def _truth(api: FakeKubernetes) -> dict[str, Any]:
    return {
        f"{kind}/{item['metadata']['namespace']}/{item['metadata']['name']}": item["metadata"]["uid"]
        + repr(item["spec"])
        for kind in (INGRESS, SERVICE)
        for item in api.all(kind.resource)
    }


@in_virtual_time
async def test_a_publisher_that_does_not_take_events_stops_the_reading(tmp_path: Path) -> None:
    async with FakeKubernetes() as api:
        source = KubernetesSource(kubeconfig=api.write_kubeconfig(tmp_path / "config"), choices=[(SERVICE,)])
        events = source.events()
        assert isinstance(await anext(events), Listed)
        await asyncio.sleep(1)
        for number in range(2000):
            api.apply(service(f"s{number}"))
        await asyncio.sleep(60)
        heard_at = source.heard_at
        await asyncio.sleep(200)
        assert source.heard_at == heard_at  # changes and bookmarks wait to be read
        names = set()
        async for event in events:
            assert isinstance(event, Applied)
            names.add(event.object["metadata"]["name"])
            if len(names) == 2000:
                break
        await events.aclose()  # type: ignore[attr-defined]
        assert len(api.seen("list")) == 1
