"""The NATS servers of a mode in `deploy/manifests/`, as their pods would run, on free ports of this machine.

async with rendered_servers("central", folder) as centre:
    async with rendered_servers("edge-leaf", folder, hub=centre) as leaf:
        async with leaf.connect("gateway") as bus: ...
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from fakes.gateway.ports import free_ports
from fakes.stores.nats_cluster import NatsCluster, password_of, write_certificates
from fakes.stores.nats_servers import NatsServer

MANIFESTS = Path(__file__).parents[3] / "deploy" / "manifests"
JsonObject = dict[str, Any]


class RenderedServers(NatsCluster):
    """Servers of a mode; `folder` has the certificates."""

    def __init__(self, folder: Path, mode: str) -> None:
        self.mode = mode
        stateful = manifest(mode, "StatefulSet", "headgate-nats")
        self.container: JsonObject = stateful["spec"]["template"]["spec"]["containers"][0]
        self.names = [f"headgate-nats-{number}" for number in range(stateful["spec"]["replicas"])]
        self.monitor_ports = free_ports(len(self.names))
        super().__init__(folder, [], free_ports(len(self.names)))

    def environment(self, user: str) -> dict[str, str]:
        found = super().environment(user)
        if "\ntls {" in self._files()["nats-server.conf"]:
            return found
        plain = {name: value for name, value in found.items() if not name.endswith("_FILE")}
        return plain | {"HEADGATE_NATS_URL": self.url.replace("tls://", "nats://")}

    @asynccontextmanager
    async def running(self, hub: NatsCluster | None) -> AsyncIterator["RenderedServers"]:
        ports = free_ports(len(self.names))
        servers = [self._server(number, ports, hub) for number in range(len(self.names))]
        async with AsyncExitStack() as stack:
            await asyncio.gather(*(stack.enter_async_context(server) for server in servers))
            self.servers = servers
            yield self

    def _files(self) -> dict[str, str]:
        found: dict[str, str] = manifest(self.mode, "ConfigMap", "headgate-nats")["data"]
        return found

    def _server(self, number: int, ports: list[int], hub: NatsCluster | None) -> NatsServer:
        folder = self.folder / self.mode / self.names[number]
        folder.mkdir(parents=True)
        for name, text in self._files().items():
            (folder / name).write_text(self._on_this_machine(text, folder, number, ports))
        return NatsServer(
            folder, folder / "nats-server.conf", name=self.names[number], environment=self._environment(hub)
        )

    def _on_this_machine(self, text: str, folder: Path, number: int, ports: list[int]) -> str:
        """Put folders and ports of this machine in the place of those of a pod."""
        places = {"config": folder, "data": folder / "data", "tls": self.folder / "tls", "hub-tls": self.folder / "tls"}
        mounts = sorted(self.container["volumeMounts"], key=lambda mount: -len(mount["mountPath"]))
        for mount in mounts:
            text = text.replace(f'"{mount["mountPath"]}', f'"{places[mount["name"]]}')
        for name, port in zip(self.names, ports, strict=True):
            text = text.replace(f"nats://{name}.headgate-nats.headgate.svc:6222", f"nats://127.0.0.1:{port}")
        text = text.replace("port: 6222", f"host: 127.0.0.1\n  port: {ports[number]}")
        text = text.replace("port: 7422", f"host: 127.0.0.1\n  port: {self.leaf_ports[number]}")
        return text.replace("http_port: 8222", f"http: 127.0.0.1:{self.monitor_ports[number]}")

    def _environment(self, hub: NatsCluster | None) -> dict[str, str]:
        """Return the container's variables, those of Secrets included."""
        found: dict[str, str] = {}
        for one in self.container["env"]:
            if key := one.get("valueFrom", {}).get("secretKeyRef", {}).get("key"):
                found[one["name"]] = password_of(key.removesuffix("-password"))
            elif "value" in one:
                text = one["value"]
                for name, value in found.items():
                    text = text.replace(f"$({name})", value)
                found[one["name"]] = text
        if hub is not None:
            (url,) = json.loads(found["HUB_URLS"])
            there = [url.replace("nats.example.com:7422", f"127.0.0.1:{port}") for port in hub.leaf_ports]
            found["HUB_URLS"] = json.dumps(there)
        return found


@asynccontextmanager
async def rendered_servers(mode: str, folder: Path, hub: NatsCluster | None = None) -> AsyncIterator[RenderedServers]:
    """Run the servers of a mode.

    Args:
        mode: of `deploy/manifests/`.
        folder: for everything; that of the centre for its leaf nodes.
        hub: the centre, for leaf nodes.
    """
    if hub is None:
        write_certificates(folder / "tls")
    async with RenderedServers(folder, mode).running(hub) as servers:
        yield servers


def manifest(mode: str, kind: str, name: str) -> JsonObject:
    """Return an object as the chart renders it."""
    (found,) = (one for one in _objects(mode) if (one["kind"], one["metadata"]["name"]) == (kind, name))
    return found


@cache
def _objects(mode: str) -> list[JsonObject]:
    return [one for one in yaml.load_all((MANIFESTS / f"{mode}.yaml").read_text(), yaml.CSafeLoader) if one]


def settings_of(mode: str, service: str) -> dict[str, str]:
    """Return the plain variables of a service's pods."""
    pod = manifest(mode, "Deployment", f"headgate-{service}")["spec"]["template"]["spec"]
    return {one["name"]: one["value"] for one in pod["containers"][0]["env"] if "value" in one}
