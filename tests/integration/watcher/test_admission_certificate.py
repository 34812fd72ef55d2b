"""A pair of watchers that keep the webhook's certificate: an API server trusts what each of them presents."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp

from fakes.gateway.ports import free_ports
from fakes.kubernetes.admission_reviews import NAME, review
from fakes.kubernetes.api import FakeKubernetes
from fakes.kubernetes.kept_certificate import NAMESPACE, SECRET, authorities, configuration, kept, secret, trusted
from fakes.kubernetes.objects import ingress, service
from fakes.service_process import running_service
from fakes.stores.nats import real_nats
from fakes.waiting import until
from headgate.common.sealing import load_or_create_key_pair


class World(NamedTuple):
    api: FakeKubernetes
    ports: list[int]
    """Of the webhooks of two watchers."""
    admin_ports: list[int]


@asynccontextmanager
async def pair(folder: Path, *objects: dict[str, Any]) -> AsyncIterator[World]:
    load_or_create_key_pair(folder)
    ports = free_ports(4)
    async with AsyncExitStack() as stack:
        api = await stack.enter_async_context(FakeKubernetes())
        _, url = await stack.enter_async_context(real_nats())
        for each in (service("web"), *objects):
            api.apply(each)
        config = api.write_kubeconfig(folder / "config")
        await stack.enter_async_context(
            running_service("translator", f"--nats-url={url}", f"--data-dir={folder}", log=folder / "translator.log")
        )
        for name, port, admin in zip("ab", ports[:2], ports[2:], strict=True):
            flags = (
                *(f"--instance={name}", f"--nats-url={url}", f"--kubeconfig={config}", f"--data-dir={folder}"),
                *(f"--lease-namespace={NAMESPACE}", f"--admission-port={port}", f"--admission-secret={SECRET}"),
                *("--admission-webhook=headgate", f"--admission-names={NAME}", f"--admin-port={admin}"),
            )
            log = folder / f"{name}.log"
            await stack.enter_async_context(running_service("watcher", *flags, log=log, is_ended_orderly=True))
        yield World(api, ports[:2], ports[2:])


async def ask(world: World, port: int, manifest: dict[str, Any]) -> Any:
    """Ask a webhook as an API server does that trusts the `caBundle` of now; None where it is not trusted or away."""
    context = ssl.create_default_context(cadata=trusted(world.api).decode())
    url = f"https://127.0.0.1:{port}/validate"
    try:
        async with (
            aiohttp.ClientSession() as session,
            session.post(url, json=review(manifest), ssl=context, server_hostname=NAME) as answer,
        ):
            return (await answer.json())["response"]
    except (aiohttp.ClientConnectionError, ssl.SSLError):
        return None


async def ready(port: int) -> dict[str, str | None]:
    """What a watcher's readiness checks say; nothing while it is starting."""
    try:
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/readyz") as answer:
            return dict((await answer.json())["checks"])
    except aiohttp.ClientConnectionError:
        return {}


async def has_published(port: int) -> bool:
    """Whether a watcher, the one that leads, has put Services into the log."""
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/metrics") as answer:
        return 'headgate_watcher_deltas_published_total{kind="services"' in await answer.text()


def is_published_without_a_webhook(checks: dict[str, str | None]) -> bool:
    waits = "is not there: make it" in (checks.get("admission") or "")
    return waits and checks["published"] is None


async def refuses(world: World, port: int) -> None:
    """Wait until a webhook refuses what is wrong."""
    async with asyncio.timeout(60):
        while True:
            response = await ask(world, port, ingress("new", host="Bad_Host")) if trusted(world.api) else None
            if response and not response["allowed"]:
                assert "spec.rules[0].host" in response["status"]["message"]
                return
            await asyncio.sleep(0.2)


async def test_both_watchers_present_what_the_api_server_trusts(tmp_path: Path) -> None:
    async with pair(tmp_path, secret(), configuration()) as world:
        for port in world.ports:
            await refuses(world, port)
        before = kept(world.api)
        world.api.delete("secrets", SECRET, NAMESPACE)
        world.api.apply(secret())
        await until(lambda: kept(world.api).get("ca.crt", before["ca.crt"]) != before["ca.crt"], within_s=60)
        for port in world.ports:
            await refuses(world, port)
        assert len(authorities(trusted(world.api))) == 1
        asked = {
            (seen.verb, seen.name)
            for seen in world.api.requests
            if seen.namespace == NAMESPACE and seen.resource == "secrets"
        }
        assert asked == {("get", SECRET), ("patch", SECRET)}


async def test_without_a_secret_the_cluster_is_published_all_the_same(tmp_path: Path) -> None:
    async with pair(tmp_path, configuration()) as world, asyncio.timeout(60):
        for port in world.admin_ports:
            while not is_published_without_a_webhook(await ready(port)):  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.2)
        while not any([await has_published(port) for port in world.admin_ports]):  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.2)
