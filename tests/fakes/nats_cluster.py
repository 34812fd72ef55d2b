"""The cluster of `deploy/nats/`: three servers with TLS and users, as its configuration says, on free ports.

async with nats_cluster(folder) as cluster:
    bus = await cluster.connect("gateway")
"""

import asyncio
import ipaddress
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from cryptography import x509

from fakes.nats_servers import NatsServer
from fakes.ports import free_ports
from fakes.tls import Authority
from headgate.common.bus import Bus
from headgate.common.nats_access import NatsAccess
from headgate.common.settings import ServiceSettings, load_settings

DEPLOYED = Path(__file__).parents[2] / "deploy" / "nats"
CLUSTERS = ("local", "paris")
"""Each with a watcher of its own."""
USERS = ("admin", "system", "translator", "gateway", "reader", *(f"watcher-{cluster}" for cluster in CLUSTERS))


class NatsCluster:
    """Servers, and what their users need to get in."""

    def __init__(self, folder: Path, servers: Sequence[NatsServer]) -> None:
        self.folder = folder
        self.servers = servers

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
    return f"password of {user}"


@asynccontextmanager
async def nats_cluster(folder: Path, *flags: str) -> AsyncIterator[NatsCluster]:
    """Run three servers on the configuration in `deploy/nats/`, with another watcher added as its text says.

    Args:
        folder: for everything.
        flags: for each server.
    """
    _prepare(folder)
    ports = free_ports(3)
    routes = ",".join(f"nats://127.0.0.1:{port}" for port in ports)
    servers = [
        NatsServer(
            folder / f"nats-{number}",
            _config_of(folder, number),
            name=f"nats-{number}",
            flags=(f"--cluster=nats://127.0.0.1:{port}", f"--routes={routes}", *flags),
        )
        for number, port in enumerate(ports)
    ]
    async with AsyncExitStack() as stack:
        await asyncio.gather(*(stack.enter_async_context(server) for server in servers))
        yield NatsCluster(folder, servers)


def _prepare(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for source in DEPLOYED.glob("*.conf"):
        (folder / source.name).write_text(source.read_text().replace("/etc/nats/", f"{folder}/"))
    _add_watcher(folder, "paris")
    lines = (f'{user.upper().replace("-", "_")}_PASSWORD: "{password_of(user)}"\n' for user in USERS)
    (folder / "passwords.conf").write_text("".join(lines))
    authority, loopback = Authority("NATS CA"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    server, client = authority.issue("nats", loopback), authority.issue("headgate")
    (folder / "tls").mkdir(exist_ok=True)
    for name, content in (
        *(("ca.crt", authority.pem), ("tls.crt", server.chain_pem), ("tls.key", server.key_pem)),
        *(("client.crt", client.chain_pem), ("client.key", client.key_pem)),
    ):
        (folder / "tls" / name).write_bytes(content)


def _config_of(folder: Path, number: int) -> Path:
    """A server's own copy, as all run on one machine."""
    path = folder / f"nats-{number}.conf"
    text = (folder / "nats-server.conf").read_text()
    path.write_text(text.replace('store_dir: "/data"', f'store_dir: "{folder / f"nats-{number}"}"'))
    return path


def _add_watcher(folder: Path, cluster: str) -> None:
    """As the head of `watcher-local.conf` says."""
    rules = (folder / "watcher-local.conf").read_text()
    copy = rules.replace("local", cluster).replace("LOCAL", cluster.upper())
    (folder / f"watcher-{cluster}.conf").write_text(copy)
    main = folder / "nats-server.conf"
    text = main.read_text()
    text = text.replace(
        'include "watcher-local.conf"', f'include "watcher-local.conf"\ninclude "watcher-{cluster}.conf"'
    )
    user = re.search(r"\n( *\{ user: watcher-local.*\})", text)
    assert user is not None
    added = user[1].replace("local", cluster).replace("LOCAL", cluster.upper())
    main.write_text(text.replace(user[1], f"{user[1]}\n{added}"))
