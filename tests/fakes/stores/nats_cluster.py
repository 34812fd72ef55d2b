"""The cluster of `deploy/nats/`: three servers with TLS and users, as its configuration says, on free ports.

async with nats_cluster(folder) as cluster:
    bus = await cluster.connect("gateway")
    async with leaf_node(cluster) as leaf:          # the servers of the edge cluster `paris`
        bus = await leaf.connect("gateway")
"""

import asyncio
import ipaddress
import json
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from urllib.parse import quote

from cryptography import x509

from fakes.gateway.ports import free_ports
from fakes.gateway.tls import Authority
from fakes.stores.nats_servers import NatsServer
from headgate.common.bus.access import NatsAccess
from headgate.common.bus.connection import Bus
from headgate.common.service.settings import ServiceSettings, load_settings

DEPLOYED = Path(__file__).parents[3] / "deploy" / "nats"
EDGE = "paris"
"""A cluster more than `local`, that may have a server of its own."""
CLUSTERS = ("local", EDGE)
"""Each with a watcher of its own."""
USERS = (
    *("admin", "system", "translator", "gateway", "reader", "operator", f"edge-{EDGE}"),
    *(f"watcher-{cluster}" for cluster in CLUSTERS),
)


class NatsCluster:
    """Servers, and what their users need to get in."""

    def __init__(self, folder: Path, servers: Sequence[NatsServer], leaf_ports: Sequence[int] = ()) -> None:
        self.folder = folder
        self.servers = servers
        self.leaf_ports = leaf_ports
        """Where servers of edge clusters connect."""

    @property
    def url(self) -> str:
        return ",".join(f"tls://127.0.0.1:{server.port}" for server in self.servers)

    def environment(self, user: str) -> dict[str, str]:
        """The settings of a service that runs as a user."""
        return {
            "HEADGATE_NATS_URL": self.url,
            "HEADGATE_NATS_USER": user,
            "HEADGATE_NATS_PASSWORD": password_of(user),
            "HEADGATE_NATS_CA_FILE": str(self.folder / "tls" / "ca.crt"),
            "HEADGATE_NATS_CERTIFICATE_FILE": str(self.folder / "tls" / "client.crt"),
            "HEADGATE_NATS_KEY_FILE": str(self.folder / "tls" / "client.key"),
        }

    def rights(self) -> dict[str, list[str]]:
        """What each user but the admin may publish, as the configuration says."""
        texts = [(self.folder / f"{name}.conf").read_text() for name in ("roles", *map("watcher-{}".format, CLUSTERS))]
        found = {}
        for role, block in re.findall(
            r"\n([A-Z_]+)_RIGHTS: \{\n  publish: \{ allow: \[\n(.*?)\n  \] \}", "".join(texts), re.S
        ):
            found[role.lower().replace("_", "-")] = re.findall(r'"([^"]+)"', block)
        return found

    def flags(self, user: str) -> list[str]:
        """The same as flags."""
        return [
            f"--{name.removeprefix('HEADGATE_').lower().replace('_', '-')}={value}"
            for name, value in self.environment(user).items()
        ]

    def access(self, user: str) -> NatsAccess:
        """The same for a connection of the test's own."""
        return load_settings(ServiceSettings, self.flags(user), program="test", summary="").nats

    @asynccontextmanager
    async def connect(self, user: str) -> AsyncIterator[Bus]:
        """A connection as a user."""
        bus = await Bus.connect(self.access(user), name=user)
        try:
            yield bus
        finally:
            await bus.close()


def password_of(user: str) -> str:
    """Of characters that need no quoting in an address either, as the chart puts one there."""
    return f"password-of-{user}"


@asynccontextmanager
async def nats_cluster(folder: Path, *flags: str) -> AsyncIterator[NatsCluster]:
    """Run three servers on the configuration in `deploy/nats/`, with another watcher added as its text says.

    Args:
        folder: for everything.
        flags: for each server.
    """
    _prepare(folder)
    ports, leaf_ports = free_ports(3), free_ports(3)
    routes = ",".join(f"nats://127.0.0.1:{port}" for port in ports)
    servers = [
        NatsServer(
            folder / f"nats-{number}",
            _config_of(folder, number, leaf_port),
            name=f"nats-{number}",
            flags=(f"--cluster=nats://127.0.0.1:{port}", f"--routes={routes}", *flags),
        )
        for number, (port, leaf_port) in enumerate(zip(ports, leaf_ports, strict=True))
    ]
    async with AsyncExitStack() as stack:
        await asyncio.gather(*(stack.enter_async_context(server) for server in servers))
        yield NatsCluster(folder, servers, leaf_ports)


@asynccontextmanager
async def leaf_node(cluster: NatsCluster, ports: Sequence[int] = ()) -> AsyncIterator[NatsCluster]:
    """Run the pair of servers of the edge cluster `paris` on `deploy/nats/leaf.conf`.

    Args:
        cluster: the centre.
        ports: where it finds the centre, if something lies between.
    """
    folder = cluster.folder / "leaf"
    folder.mkdir(exist_ok=True)
    for name in ("leaf.conf", "leaf-roles.conf"):
        (folder / name).write_text(_for_edge((cluster.folder / name).read_text()))
    login = quote(f"edge-{EDGE}:{password_of(f'edge-{EDGE}')}", safe=":")
    hubs = [f"tls://{login}@127.0.0.1:{port}" for port in ports or cluster.leaf_ports]
    passwords = _passwords("system", "gateway", f"watcher-{EDGE}")
    (folder / "passwords.conf").write_text(f"{passwords}HUB_URLS: {json.dumps(hubs)}\n")
    names = (f"{EDGE}-0", f"{EDGE}-1")
    async with AsyncExitStack() as stack:
        servers = [NatsServer(folder / name, folder / "leaf.conf", name=name) for name in names]
        await asyncio.gather(*(stack.enter_async_context(server) for server in servers))
        yield NatsCluster(cluster.folder, servers)


def _prepare(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for source in DEPLOYED.glob("*.conf"):
        (folder / source.name).write_text(source.read_text().replace("/etc/nats/", f"{folder}/"))
    _add_watcher(folder)
    _add_edge(folder)
    (folder / "passwords.conf").write_text(_passwords(*USERS))
    write_certificates(folder / "tls")


def write_certificates(folder: Path) -> None:
    """Write `ca.crt`, `tls.crt` and `tls.key` of servers on this machine, `client.crt` and `client.key` of services."""
    authority, loopback = Authority("NATS CA"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    server, client = authority.issue("nats", loopback), authority.issue("headgate")
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (
        *(("ca.crt", authority.pem), ("tls.crt", server.chain_pem), ("tls.key", server.key_pem)),
        *(("client.crt", client.chain_pem), ("client.key", client.key_pem)),
    ):
        (folder / name).write_bytes(content)


def _passwords(*users: str) -> str:
    return "".join(f'{user.upper().replace("-", "_")}_PASSWORD: "{password_of(user)}"\n' for user in users)


def _config_of(folder: Path, number: int, leaf_port: int) -> Path:
    """A server's own copy, as all run on one machine."""
    path = folder / f"nats-{number}.conf"
    text = (folder / "nats-server.conf").read_text()
    text = text.replace("port: 7422", f"host: 127.0.0.1\n  port: {leaf_port}")
    path.write_text(text.replace('store_dir: "/data"', f'store_dir: "{folder / f"nats-{number}"}"'))
    return path


def _for_edge(text: str) -> str:
    """As the heads of the files say."""
    return text.replace("local", EDGE).replace("LOCAL", EDGE.upper())


def _add_watcher(folder: Path) -> None:
    """As the head of `watcher-local.conf` says."""
    user = re.search(r"\n( *\{ user: watcher-local.*\})", (folder / "nats-server.conf").read_text())
    assert user is not None
    _add(folder, "watcher", _for_edge(user[1]))


def _add_edge(folder: Path) -> None:
    """As the head of `edge-local.conf` says."""
    user = re.search(r"\n# +(\{ user: edge-.*)\n# +(.*\})", (folder / "edge-local.conf").read_text())
    assert user is not None
    _add(folder, "edge", f"{user[1]} {user[2]}")


def _add(folder: Path, role: str, user: str) -> None:
    (folder / f"{role}-{EDGE}.conf").write_text(_for_edge((folder / f"{role}-local.conf").read_text()))
    main = folder / "nats-server.conf"
    text = main.read_text().replace("\naccounts {", f'include "{role}-{EDGE}.conf"\n\naccounts {{')
    main.write_text(text.replace("    users: [\n", f"    users: [\n      {user}\n", 1))
