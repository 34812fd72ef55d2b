"""The compose stack as tests start it, and the clients that ask it without pause.

Four kinds of clients, none of which may see a failure. Those of one replica are told which one stays. One does as load
balancers do: it follows `/readyz` of all replicas and keeps to those that are ready. Two come to the entrance, as users
do: one keeps its connections, one makes a new one for each request. Where a replica is killed, they may lose what they
had under way to it, which is one request for each connection, and ask once more.
"""

import asyncio
import json
import os
import ssl
import tomllib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import aiohttp
from cryptography.x509 import DNSName

from fakes.gateway.tls import Authority, Issued
from fakes.peers.steady_client import CONNECTIONS, SteadyClient
from stack.engine import BOUND_S, BUILD_S, ROOT, docker, eventually, hear, inspect, run

HOST = "demo.localhost"
REQUESTS = 300
"""Asked by each client after each fault: a second or two, and more where the machine is slow."""
PATIENCE_S = 60.0
"""For how long a client of the entrance makes one request again after lost connections."""
LOOK_S = 0.3
"""Between two looks of a balancer: a fraction of the drain delay in compose.yaml."""


class Stack:
    """What `make stack` started, with a folder of manifests of its own."""

    def __init__(self, manifests: Path) -> None:
        self.manifests = manifests
        self._environment = {
            name: value
            for name, value in os.environ.items()
            if name.startswith(("HEADGATE_", "STACK_", "HTTP_", "HTTPS_"))
        }
        self._environment["HEADGATE_MANIFESTS"] = str(manifests)
        self._authority = Authority()
        self.trusting = ssl.create_default_context(cadata=self._authority.pem.decode())
        self._project = ""
        self.port = int(os.environ.get("HTTP_PORT", "8080"))

    async def start(self, *, profiles: str = "", gateways: int = 1, **more: str) -> str:
        """`make stack`, with further variables; returns what it printed."""
        more |= {"PROFILES": profiles, "GATEWAYS": str(gateways)}
        return await run("make", "--silent", "stack", within_s=BUILD_S, **self._environment | more)

    async def replace(self, *services: str, **more: str) -> None:
        """`deploy/stack/replace`, with further variables."""
        await run("deploy/stack/replace", *services, within_s=BUILD_S, **self._environment | more)

    async def end(self) -> None:
        await run("make", "--silent", "stack-down", within_s=BOUND_S, **self._environment)

    async def scale(self, gateways: int) -> None:
        await self._compose("up", "--detach", "--no-recreate", "--scale", f"gateway={gateways}")

    @asynccontextmanager
    async def scaled(self, gateways: int) -> AsyncIterator[list[str]]:
        """So many gateways, and as many as before when the block ends, whatever became of it."""
        before = len(await self.containers("gateway"))
        try:
            await self.scale(gateways)
            yield await self.wait_for_gateways(gateways)
        finally:
            await self.scale(before)
            await self.wait_for_gateways(before)

    async def let_blue_be_ready(self, ready: bool) -> None:
        """Change the manifests."""
        address = "addresses: [blue.stack.internal]\n    conditions: "
        text = (ROOT / "examples" / "stack" / "demo.yaml").read_text()
        if not ready:
            text = text.replace(f"{address}{{ ready: true }}", f"{address}{{ ready: false }}")
        await asyncio.to_thread((self.manifests / "demo.yaml").write_text, text)

    async def exchange_certificate(self) -> int:
        """Change the certificate of the host, whose Secret crosses NATS sealed; returns its serial number."""
        issued = self._authority.issue(HOST, DNSName(HOST))
        await asyncio.to_thread((self.manifests / "tls.yaml").write_text, json.dumps(tls_objects(issued)))
        return issued.certificate.serial_number

    async def presents(self, gateway: str, serial: int) -> bool:
        """Whether a gateway presents this certificate."""
        address = await address_of(gateway)
        try:
            _, writer = await asyncio.open_connection(address, 8443, ssl=self.trusting, server_hostname=HOST)
        except ssl.SSLError:
            return False
        presented = writer.get_extra_info("ssl_object").getpeercert()["serialNumber"]
        writer.close()
        await writer.wait_closed()
        return int(presented, 16) == serial

    async def ask(self, *arguments: str) -> str:
        """What a `headgate` command says of the stack, whatever its exit code is."""
        return await hear("deploy/stack/compose", "run", "--rm", "headgate", *arguments, **self._environment)

    async def settings(self, service: str) -> dict[str, str]:
        """The settings that a service finds in its volume of secrets."""
        volume = f"{await self.project()}_{service}-secrets:/secrets:ro"
        code = "print(open('/secrets/settings.toml').read())"
        read = ("run", "--rm", "--network=none", "--volume", volume, "--entrypoint=python3", "headgate/headgate")
        return tomllib.loads(await docker(*read, "-c", code))

    async def project(self) -> str:
        """Compose's name of the stack, which names volumes and networks."""
        if not self._project:
            (container, *_) = await self.containers("entrance")
            self._project = (await inspect(container))["Config"]["Labels"]["com.docker.compose.project"]
        return self._project

    async def containers(self, service: str = "") -> list[str]:
        """Ids of the running containers of a service, or of all, by their number."""
        found = [
            await inspect(each) for each in (await self._compose("ps", "--quiet", *filter(None, [service]))).split()
        ]
        found.sort(key=lambda each: int(each["Config"]["Labels"]["com.docker.compose.container-number"]))
        return [each["Id"] for each in found if each["State"]["Status"] != "exited"]

    async def addresses(self, service: str) -> list[str]:
        """Of its running containers, as this machine reaches them beside the entrance."""
        labels = {"network": "backends", "project": await self.project()}
        filters = [
            each for name, text in labels.items() for each in ("--filter", f"label=com.docker.compose.{name}={text}")
        ]
        (network,) = (await docker("network", "ls", "--quiet", *filters)).split()
        found = (await inspect(network))["Containers"].values()
        return [each["IPv4Address"].split("/")[0] for each in found if service in each["Name"]]

    async def wait_for_gateways(self, count: int) -> list[str]:
        """Wait until so many replicas are there and ready; return their ids."""

        async def are_ready() -> bool:
            states = [(await inspect(each))["State"] for each in await self.containers("gateway")]
            return [state.get("Health", {}).get("Status") for state in states] == ["healthy"] * count

        await eventually(f"{count} gateways are ready", are_ready)
        return await self.containers("gateway")

    async def _compose(self, *arguments: str) -> str:
        return await run("deploy/stack/compose", *arguments, within_s=BOUND_S, **self._environment)


class BalancedClient(SteadyClient):
    """Asks the replicas that are ready in turn, over TLS if told so, and each request once."""

    def __init__(self, stack: Stack, host: str, *, tls: bool = False) -> None:
        super().__init__(0, host)
        if tls:
            self._options |= {"ssl": stack.trusting, "server_hostname": host}
        self._form = "https://{}:8443/" if tls else "http://{}:8080/"
        self._stack = stack
        self._ready: list[str] = []
        self._turn = 0
        self._following: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self._look()
        self._following = asyncio.create_task(self._follow())
        return await super().__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await super().__aexit__(kind, error, trace)
        assert self._following is not None
        self._following.cancel()
        with suppress(asyncio.CancelledError):
            await self._following

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            await self._look()

    async def _look(self) -> None:
        addresses = await self._stack.addresses("gateway")
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=1)) as session:
            verdicts = await asyncio.gather(*(is_ready(session, each) for each in addresses))
        self._ready = [address for address, ready in zip(addresses, verdicts, strict=True) if ready]

    def next_url(self) -> str:
        self._turn += 1
        return self._form.format(self._ready[self._turn % len(self._ready)] if self._ready else "none.is.ready")


async def is_ready(session: aiohttp.ClientSession, address: str) -> bool:
    try:
        async with session.get(f"http://{address}:9080/readyz") as answer:
            return answer.status == 200
    except (aiohttp.ClientError, TimeoutError):
        return False


def tls_objects(issued: Issued) -> dict[str, object]:
    """A Secret, and an Ingress that names it."""
    tls = {"tls.crt": issued.chain_pem.decode(), "tls.key": issued.key_pem.decode()}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "demo-tls"},
        "type": "kubernetes.io/tls",
        "stringData": tls,
    }
    spec = {"tls": [{"hosts": [HOST], "secretName": "demo-tls"}]}
    ingress = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "tls"}, "spec": spec}
    return {"apiVersion": "v1", "kind": "List", "items": [secret, ingress]}


@asynccontextmanager
async def load(stack: Stack, *live: str, tls: bool = False, killed: int = 0) -> AsyncIterator[None]:
    """Clients of replicas that stay (none named: of those that are ready), and of the entrance; no request may fail.

    Args:
        stack: what is asked.
        live: replicas that stay.
        tls: ask over TLS, too.
        killed: replicas that are killed meanwhile, each of which may take a request of each connection with it.
    """
    async with AsyncExitStack() as clients:
        kept = [SteadyClient(8080, HOST, address=await address_of(each)) for each in live]
        kept = kept or [BalancedClient(stack, HOST)]
        kept += [BalancedClient(stack, HOST, tls=True)] if tls else []
        outside = [
            SteadyClient(stack.port, HOST, keep_alive=keep_alive, patience_s=PATIENCE_S) for keep_alive in (True, False)
        ]
        for client in (*kept, *outside):
            await clients.enter_async_context(client)
        yield
        for client in (*kept, *outside):
            await client.wait_for_more(REQUESTS, within_s=BOUND_S)
    for client in (*kept, *outside):
        assert not client.failures, f"{len(client.failures)} of {client.count}: {client.failures[:5]}"
    lost = [each.retries for each in outside]
    print(f"  kept to live replicas: {sum(each.count for each in kept)} requests, none failed;", end=" ")
    print(
        f"by the entrance: {sum(each.count for each in outside)}, {sum(lost)} made again after a lost connection,",
        end=" ",
    )
    print(f"slowest {max(each.longest_s for each in (*kept, *outside)):.2f} s")
    assert max(lost) <= killed * CONNECTIONS, f"{lost} requests were lost with {killed} replicas"


async def port_of(container: str, inside: int) -> int:
    return int((await docker("port", container, f"{inside}/tcp")).split(":")[-1])


async def address_of(container: str) -> str:
    """Address of a gateway for clients that do not come by the entrance."""
    networks: dict[str, dict[str, str]] = (await inspect(container))["NetworkSettings"]["Networks"]
    return next(each["IPAddress"] for name, each in networks.items() if name.endswith("_backends"))


async def crash(container: str) -> None:
    """Kill a container's process, as the kernel does it; `docker kill` would mean that it shall stay away."""
    before = (await inspect(container))["State"]
    code = f"import os; os.kill({before['Pid']}, 9)"
    await docker(
        "run",
        "--rm",
        "--pid=host",
        "--user=0",
        "--network=none",
        "--entrypoint=python3",
        "headgate/watcher",
        "-c",
        code,
    )

    async def is_back() -> bool:
        state = (await inspect(container))["State"]
        return bool(state["Running"] and state["StartedAt"] != before["StartedAt"])

    await eventually(f"{container} is started again", is_back)


async def answered_by_red_alone(gateway: str) -> bool:
    url = f"http://{await address_of(gateway)}:8080/"
    async with aiohttp.ClientSession() as session:
        names = [(await (await session.get(url, headers={"Host": HOST})).json())["name"] for _ in range(20)]
    return set(names) == {"red"}
