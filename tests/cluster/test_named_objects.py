"""Secrets and ConfigMaps that Ingresses name, through a whole stack and a real API server, without a setting for it."""

import base64
import hashlib
import time
from pathlib import Path
from typing import Any

import aiohttp

from cluster.serving import apply_ingress, apply_service, serving
from fakes.kubernetes.objects import config_map, secret
from fakes.kubernetes.real import RealCluster, eventually
from fakes.peers.echo import EchoServer
from fakes.stack import Stack

NGINX = "nginx.ingress.kubernetes.io"
GUARDED = {f"{NGINX}/auth-type": "basic", f"{NGINX}/auth-secret": "users"}


def users(password: str) -> dict[str, Any]:
    """Return a Secret of one user, `ada`, as htpasswd writes it."""
    line = f"ada:{{SHA}}{base64.b64encode(hashlib.sha1(password.encode(), usedforsecurity=False).digest()).decode()}"
    return {**secret("users", "Opaque"), "data": {"auth": base64.b64encode(line.encode()).decode()}}


async def status_for(stack: Stack, host: str, password: str) -> int:
    """Return how a request of `ada` is answered."""
    return (await stack.get(host, "/", headers={"Authorization": aiohttp.encode_basic_auth("ada", password)})).status


async def test_a_secret_that_an_ingress_names_guards_it_and_its_changes_count(
    cluster: RealCluster, tmp_path: Path
) -> None:
    async with EchoServer("one", cluster.address) as server, serving(cluster, tmp_path) as stack:
        await apply_service(cluster, "web", server)
        host = await apply_ingress(cluster, "guarded", annotations=GUARDED)
        await stack.wait_for_answer(host, "/", 503)
        for password in ("first", "second"):
            await cluster.apply(users(password))
            began = time.monotonic()
            await eventually(lambda password=password: _answers(stack, host, password, 200))
            print(f"served {time.monotonic() - began:.2f} s after the Secret was written")
        assert await status_for(stack, host, "first") == 401
        for annotations, status in (({}, 200), (GUARDED, 401)):  # named no more, and again, the Secret as it was
            await apply_ingress(cluster, "guarded", annotations=annotations)
            await eventually(lambda status=status: _answers(stack, host, "wrong", status))
        assert await status_for(stack, host, "second") == 200
        await cluster.delete("secrets", "users")
        await eventually(lambda: _answers(stack, host, "second", 503))


async def test_a_config_map_that_an_ingress_names_gives_headers(cluster: RealCluster, tmp_path: Path) -> None:
    options = f"{cluster.namespace}/options"
    environment = {"HEADGATE_NGINX_CONFIGMAP": options, "HEADGATE_WATCH_CONFIG_MAPS": options}
    await cluster.apply({**config_map("options"), "data": {"global-allowed-response-headers": "X-Team"}})
    await cluster.apply({**config_map("headers"), "data": {"X-Team": "red"}})
    async with (
        EchoServer("one", cluster.address) as server,
        serving(cluster, tmp_path, environment=environment) as stack,
    ):
        await apply_service(cluster, "web", server)
        host = await apply_ingress(cluster, "headed", annotations={f"{NGINX}/custom-headers": "headers"})
        await stack.wait_for_answer(host, "/", name="one")
        assert (await stack.get(host, "/")).headers["X-Team"] == "red"
        await cluster.apply({**config_map("headers"), "data": {"X-Team": "blue"}})
        await eventually(lambda: _has_team(stack, host, "blue"))


async def _answers(stack: Stack, host: str, password: str, status: int) -> bool:
    return await status_for(stack, host, password) == status


async def _has_team(stack: Stack, host: str, team: str) -> bool:
    return (await stack.get(host, "/")).headers.get("X-Team") == team
