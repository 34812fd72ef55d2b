"""A move from ingress-nginx in the steps of `docs/ingress-nginx.md`, with 100 Ingresses and under load throughout.

ingress-nginx itself is not there: Debian's nginx has the same rules, written by hand, and the test writes the addresses
into the Ingresses' statuses as its controller does.
"""

import asyncio
import base64
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from cluster.serving import PUBLISHED, START_S, apply_service, plain
from fakes.command import headgate
from fakes.kubernetes.objects import secret
from fakes.kubernetes.real import RealCluster, eventually
from fakes.peers.echo import EchoServer
from fakes.peers.nginx import needs_nginx, nginx
from fakes.stack import Stack
from fakes.translator.nginx import nginx_ingress

INGRESSES = 100
THEIRS = "203.0.113.7"
"""The address that ingress-nginx has."""
CLASSES = "/apis/networking.k8s.io/v1/ingressclasses"


@dataclass
class Rule:
    """What an Ingress says, and what nginx has for it."""

    annotations: dict[str, str]
    path: str
    server: str
    asked: str
    status: int = 200


WORDS = ("header server", "header content-type")
"""Of what a gateway says itself: its name, and whether redirects have a page for people."""
PASS = "proxy_set_header Host $host; proxy_http_version 1.1; proxy_pass http://BACKEND;"
RULES = (
    Rule({}, "/", f"location / {{ {PASS} }}", "/a/b?c=d"),
    Rule(
        {"rewrite_target": "/$2"},
        "/app(/|$)(.*)",
        f'location ~* "^/app(/|$)(.*)" {{ rewrite "(?i)/app(/|$)(.*)" /$2 break; {PASS} }} '
        "location / { return 404; }",
        "/app/x",
    ),
    Rule({"permanent_redirect": "https://new.example/"}, "/", "return 301 https://new.example/;", "/", 301),
    Rule(
        {"app_root": "/home"},
        "/",
        f"location = / {{ return 302 http://$http_host/home; }} location / {{ {PASS} }}",
        "/",
        302,
    ),
    Rule(
        {"auth_type": "basic", "auth_secret": "people", "auth_realm": "people"},
        "/",
        f'location / {{ auth_basic "people"; auth_basic_user_file /dev/null; {PASS} }}',
        "/",
        401,  # 503 as long as the Secret is not read
    ),
)


@dataclass
class Load:
    """Requests without end, to whichever gateways take traffic."""

    gateways: list[int]
    asked: int = 0
    wrong: list[str] = field(default_factory=list)

    async def run(self, requests: Iterator[tuple[str, Rule]]) -> None:
        async with aiohttp.ClientSession() as session:
            for number in range(1_000_000):
                host, rule = next(requests)
                url = f"http://127.0.0.1:{self.gateways[number % len(self.gateways)]}{rule.asked}"
                try:
                    async with session.get(url, headers={"Host": host}, allow_redirects=False) as answer:
                        status = answer.status
                        await answer.read()
                except aiohttp.ClientError as error:
                    self.wrong.append(f"{host}: {error!r}")
                else:
                    if status != rule.status:
                        self.wrong.append(f"{host}{rule.asked}: {status}")
                self.asked += 1
                await asyncio.sleep(0.002)


@contextlib.asynccontextmanager
async def loaded(load: Load, requests: Callable[[], Iterator[tuple[str, Rule]]]) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(load.run(requests())) for _ in range(4)]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def rules() -> list[tuple[str, str, Rule]]:
    """Return names, hosts and rules of all Ingresses."""
    return [(f"site-{number}", f"site-{number}.example", RULES[number % len(RULES)]) for number in range(INGRESSES)]


async def addresses(cluster: RealCluster) -> set[tuple[str, ...]]:
    """Return the addresses that the statuses of all Ingresses have."""
    found = (one["status"].get("loadBalancer", {}).get("ingress", ()) for one in await cluster.all("ingresses"))
    return {tuple(sorted(each["ip"] for each in several)) for several in found}


async def make_their_world(cluster: RealCluster, class_name: str) -> None:
    """Make the class of ingress-nginx and 100 Ingresses of it, with its addresses."""
    body = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "IngressClass",
        "metadata": {"name": class_name},
        "spec": {"controller": f"k8s.io/{cluster.namespace}"},
    }
    await cluster.request("POST", CLASSES, body)
    people = {"auth": base64.b64encode(b"ada:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=").decode()}
    await cluster.apply({**secret("people", "Opaque"), "data": people})
    for name, host, rule in rules():
        manifest = plain(
            nginx_ingress(name, host=host, path=rule.path, to="web", class_name="nginx", **rule.annotations)
        )
        manifest["spec"]["rules"][0]["http"]["paths"][0]["pathType"] = "ImplementationSpecific"  # type: ignore[index]
        await cluster.apply(manifest)
        await write_status(cluster, name, THEIRS)


async def write_status(cluster: RealCluster, name: str, *addresses: str) -> None:
    """Write the addresses of an Ingress as ingress-nginx does: all of them."""
    status = {"status": {"loadBalancer": {"ingress": [{"ip": address} for address in addresses]}}}
    path = f"/apis/networking.k8s.io/v1/namespaces/{cluster.namespace}/ingresses/{name}/status"
    await cluster.request("PATCH", path, status, {"fieldManager": "theirs"}, "application/merge-patch+json")


def beside(cluster: RealCluster, folder: Path, **environment: str) -> Stack:
    """Return a stack that adopts the class."""
    adopted = {"HEADGATE_NAMESPACES": cluster.namespace, "HEADGATE_CONTROLLER_NAMES": f"k8s.io/{cluster.namespace}"}
    return Stack(
        kubeconfig=cluster.kubeconfig,
        data_dir=folder,
        publish_address=PUBLISHED,
        environment={**adopted, **environment},
        extra=["--access-log=off"],
        start_within_s=START_S,
    )


async def compare(objects: Path, old: int, new: int) -> list[dict[str, Any]]:
    """Return how the answers of two gateways differ, but for the name of the server."""
    urls = ("--compare", f"http://127.0.0.1:{old}", "--with", f"http://127.0.0.1:{new}")
    answer = await headgate("audit", str(objects), *urls, "--json", code=None)
    assert answer.json["sent"] >= INGRESSES
    return [one for one in answer.json["differences"] if one["what"] not in WORDS]


@needs_nginx
async def test_a_hundred_ingresses_move_under_load(cluster: RealCluster, tmp_path: Path) -> None:
    class_name = cluster.scoped("nginx")
    async with EchoServer("one", cluster.address) as server, contextlib.AsyncExitStack() as stacks:
        await apply_service(cluster, "web", server)
        stacks.push_async_callback(cluster.request, "DELETE", f"{CLASSES}/{class_name}")
        await make_their_world(cluster, class_name)
        backend = f"{cluster.address}:{server.port}"
        blocks = " ".join(
            f"server {{ listen 127.0.0.1:PORT; server_name {host}; {rule.server.replace('BACKEND', backend)} }}"
            for _, host, rule in rules()
        )
        old = await stacks.enter_async_context(nginx(tmp_path, "return 404;", http=blocks))
        load = Load([old])
        async with loaded(load, lambda: cycle([(host, rule) for _, host, rule in rules()])):
            # 1. Ask what becomes of everything.
            objects = tmp_path / "objects.yaml"
            kind = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress"}
            items = [{**kind, **one} for one in await cluster.all("ingresses")]
            objects.write_text(yaml.safe_dump_all(items))
            report = await headgate("audit", str(objects), "--json")
            assert report.json["verdicts"]["refused"] == report.json["lets_in"] == 0

            # 2. Serve the same beside it; its addresses stay.
            new = await stacks.enter_async_context(beside(cluster, tmp_path / "beside"))
            for _, host, rule in rules():
                await new.wait_for_answer(host, rule.asked, rule.status)
            assert await addresses(cluster) == {(THEIRS,)}

            # 3. Compare.
            assert await compare(objects, old, new.http_port) == []

            # 4. Shift traffic: half of it, then all.
            for gateways in ([old, new.http_port], [new.http_port]):
                load.gateways, before = gateways, load.asked
                await eventually(lambda before=before: _is_past(load, before + 400))

            # 5. Take the status, by a stack that replaces the first.
            final = await stacks.enter_async_context(beside(cluster, tmp_path / "final", HEADGATE_TAKE_STATUS="true"))
            for _, host, rule in rules():
                await final.wait_for_answer(host, rule.asked, rule.status)
            load.gateways = [final.http_port]
            await new.stop()
            await eventually(lambda: _have(cluster, PUBLISHED))
            for name, _, _ in rules():
                await write_status(cluster, name)  # as ingress-nginx does when it ends
            await eventually(lambda: _are(cluster, PUBLISHED))

            # 6. Move the Ingresses to a class of ours, one by one, and remove the old one.
            ours = cluster.scoped("ours")
            body = {
                "apiVersion": "networking.k8s.io/v1",
                "kind": "IngressClass",
                "metadata": {"name": ours},
                "spec": {"controller": "headgate.dev/ingress-controller"},
            }
            await cluster.request("POST", CLASSES, body)
            stacks.push_async_callback(cluster.request, "DELETE", f"{CLASSES}/{ours}")
            for name, _, _ in rules():
                await cluster.merge("ingresses", name, {"spec": {"ingressClassName": ours}})
            before = load.asked
            await eventually(lambda: _is_past(load, before + 400))
            assert await addresses(cluster) == {(PUBLISHED,)}
        assert load.wrong == []
        print(json.dumps({"requests": load.asked, "wrong": len(load.wrong)}))


async def _is_past(load: Load, count: int) -> bool:
    return load.asked >= count


async def _are(cluster: RealCluster, address: str) -> bool:
    return await addresses(cluster) == {(address,)}


async def _have(cluster: RealCluster, address: str) -> bool:
    return all(address in several for several in await addresses(cluster))
