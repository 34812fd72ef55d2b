"""The compose stack as tests start it, and the clients that ask it without pause.

Three kinds of clients. Those of one replica are told which one stays, and must see no failure at all. One does as load
balancers do: it follows `/readyz` of all replicas, keeps to those that are ready, and must see no failure either. One
knows nothing: it asks all ports in turn, and the next one when a connection is refused, or closed without an answer, as
the engine's forwarder does it where nobody listens any more. Of its requests none may fail.
"""

import asyncio
import json
import os
import ssl
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import aiohttp
from cryptography.x509 import DNSName

from fakes.steady_client import SteadyClient
from fakes.tls import Authority, Issued
from stack.engine import BOUND_S, BUILD_S, ROOT, docker, eventually, hear, inspect, run

HOST = "demo.localhost"
REQUESTS = 300
"""Asked by each client after each fault: a second or two, and more where the machine is slow."""
TRIES_S = 30.0
"""For how long the client that knows nothing asks for one answer."""
LOOK_S = 0.3
"""Between two looks of a balancer: a fraction of the drain delay in compose.yaml."""


class Stack:
    """What `make stack` started, with a folder of manifests of its own."""

    def __init__(self, manifests: Path) -> None:
        self.manifests = manifests
        self._environment = {
            name: value for name, value in os.environ.items() if name.startswith(("HEADGATE_", "STACK_"))
        }
        self._environment["HEADGATE_MANIFESTS"] = str(manifests)
        self._authority = Authority()
        self.trusting = ssl.create_default_context(cadata=self._authority.pem.decode())
        ports = self._environment.get("STACK_HTTP_PORTS", "8080-8089").split("-")
        self.ports = range(int(ports[0]), int(ports[-1]) + 1)

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

    async def let_blue_be_ready(self, ready: bool) -> None:
        """Change the manifests."""
        address = 'addresses: ["10.213.91.102"]\n    conditions: '
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
        port = await port_of(gateway, 8443)
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=self.trusting, server_hostname=HOST)
        except ssl.SSLError:
            return False
        presented = writer.get_extra_info("ssl_object").getpeercert()["serialNumber"]
        writer.close()
        await writer.wait_closed()
        return int(presented, 16) == serial

    async def ask(self, *arguments: str) -> str:
        """What a `headgate` command says of the stack, whatever its exit code is."""
        return await hear("deploy/stack/compose", "run", "--rm", "headgate", *arguments, **self._environment)

    async def containers(self, service: str = "") -> list[str]:
        """Ids of the containers of a service, or of all, by their number."""
        found = [
            await inspect(each) for each in (await self._compose("ps", "--quiet", *filter(None, [service]))).split()
        ]
        found.sort(key=lambda each: int(each["Config"]["Labels"]["com.docker.compose.container-number"]))
        return [each["Id"] for each in found]

    async def addresses(self, service: str) -> list[str]:
        """Of its running containers, as this machine reaches them. There is one such network: its range is fixed."""
        label = "label=com.docker.compose.network=backends"
        (network,) = (await docker("network", "ls", "--quiet", "--filter", label)).split()
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


class RoamingClient(SteadyClient):
    """Asks all ports in turn, and the next one where no answer came."""

    def __init__(self, ports: Sequence[int], host: str) -> None:
        super().__init__(ports[0], host)
        self._ports = ports
        self._turn = 0
        self.seen: set[int] = set()
        """Ports that answered."""

    async def _ask(self, session: aiohttp.ClientSession) -> None:
        end = time.monotonic() + TRIES_S
        while True:
            port = self._ports[self._turn % len(self._ports)]
            self._turn += 1
            try:
                async with session.get(f"http://127.0.0.1:{port}/", **self._options) as answer:
                    body = await answer.read()
                    if answer.status == self._expected:
                        self.answers[json.loads(body)["name"]] += 1
                        self.seen.add(port)
                    else:
                        self.failures.append(f"port {port}: {answer.status} {body[:200]!r}")
                    return
            except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError) as error:
                if not isinstance(error, aiohttp.ClientConnectorError):
                    self.retries += 1
                if time.monotonic() > end:
                    self.failures.append(f"no port answers: {type(error).__name__}: {error}")
                    return
                if self._turn % len(self._ports) == 0:
                    await asyncio.sleep(0.01)


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
        return self._form.format(self._ready[self._turn % len(self._ready)] if self._ready else "nobody.is.ready")


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
async def load(stack: Stack, *live: str, tls: bool = False) -> AsyncIterator[RoamingClient]:
    """Clients of replicas that stay (none named: of those that are ready), and one of all; no request may fail."""
    async with AsyncExitStack() as clients:
        kept = [SteadyClient(await port_of(each), HOST) for each in live] or [BalancedClient(stack, HOST)]
        kept += [BalancedClient(stack, HOST, tls=True)] if tls else []
        steady = [await clients.enter_async_context(each) for each in kept]
        roaming = await clients.enter_async_context(RoamingClient(stack.ports, HOST))
        yield roaming
        for client in (*steady, roaming):
            await client.wait_for_more(REQUESTS, within_s=BOUND_S)
    for client in (*steady, roaming):
        assert not client.failures, f"{len(client.failures)} of {client.count}: {client.failures[:5]}"
    asked, longest_s = sum(each.count for each in steady), max(each.longest_s for each in steady)
    print(f"  kept to live replicas: {asked} requests, none failed, slowest {longest_s:.2f} s;", end=" ")
    print(f"all replicas: {roaming.count}, none failed, {roaming.retries} asked again after a lost connection")


async def port_of(container: str, inside: int = 8080) -> int:
    return int((await docker("port", container, f"{inside}/tcp")).split(":")[-1])


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
    url = f"http://127.0.0.1:{await port_of(gateway)}/"
    async with aiohttp.ClientSession() as session:
        names = [(await (await session.get(url, headers={"Host": HOST})).json())["name"] for _ in range(20)]
    return set(names) == {"red"}
