"""The compose stack under load: `make stack-test`. Starts it from examples/stack, tries it, and ends it.

Two kinds of clients ask without pause. Those that keep to live replicas know which one is going to end, and must see no
failure at all. One knows nothing: it asks all ports in turn, and the next one when a connection is refused, or closed
without an answer, as the engine's forwarder does it where nobody listens any more. Of its requests none may fail.

Not collected by `pytest` unless it is named: docker and compose are needed, and the ports of compose.yaml.
"""

import asyncio
import json
import os
import shlex
import shutil
import ssl
import time
import tomllib
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio
from cryptography.x509 import DNSName

from fakes.steady_client import SteadyClient
from fakes.tls import Authority, Issued
from stack.engine import BOUND_S, BUILD_S, ROOT, docker, eventually, inspect, run

HOST = "demo.localhost"
REQUESTS = 300
"""Asked by each client after each fault: a second or two, and more where the machine is slow."""
TRIES_S = 30.0
"""For how long the client that knows nothing asks for one answer."""
pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(BUILD_S)]


class Stack:
    """What `make stack` started, with a folder of manifests of its own."""

    def __init__(self, manifests: Path) -> None:
        self.manifests = manifests
        self._environment = {
            name: value for name, value in os.environ.items() if name.startswith(("HEADGATE_", "STACK_"))
        }
        self._environment["HEADGATE_MANIFESTS"] = str(manifests)
        ports = self._environment.get("STACK_HTTP_PORTS", "8080-8089").split("-")
        self.ports = range(int(ports[0]), int(ports[-1]) + 1)

    async def start(self, *, profiles: str = "", gateways: int = 1) -> str:
        """`make stack`; returns what it printed."""
        more = {"PROFILES": profiles, "GATEWAYS": str(gateways)}
        return await run("make", "--silent", "stack", within_s=BUILD_S, **self._environment, **more)

    async def end(self) -> None:
        await run("make", "--silent", "stack-down", within_s=BOUND_S, **self._environment)

    async def scale(self, gateways: int) -> None:
        await self._compose("up", "--detach", "--no-recreate", "--scale", f"gateway={gateways}")

    async def containers(self, service: str = "") -> list[str]:
        """Ids of the containers of a service, or of all, by their number."""
        found = [
            await inspect(each) for each in (await self._compose("ps", "--quiet", *filter(None, [service]))).split()
        ]
        found.sort(key=lambda each: int(each["Config"]["Labels"]["com.docker.compose.container-number"]))
        return [each["Id"] for each in found]

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
        self.retries = 0
        self.seen: set[int] = set()
        """Ports that answered."""

    async def _ask(self, session: aiohttp.ClientSession) -> None:
        end = time.monotonic() + TRIES_S
        while True:
            port = self._ports[self._turn % len(self._ports)]
            self._turn += 1
            try:
                async with session.get(f"http://127.0.0.1:{port}/", headers=self._headers) as answer:
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


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    """The stack from nothing, and nothing of it afterwards."""
    folder = tmp_path_factory.mktemp("stack") / "manifests"
    shutil.copytree(ROOT / "examples" / "stack", folder)
    for each in (folder, *folder.parents[:3]):
        each.chmod(0o755)  # Read by the watcher's user in its container.
    stack = Stack(folder)
    await stack.end()
    try:
        yield stack
    finally:
        await stack.end()
        assert await stack.containers() == []


@asynccontextmanager
async def load(stack: Stack, *live: str) -> AsyncIterator[RoamingClient]:
    """Clients of replicas that stay, and one of all; no request of any may fail."""
    async with AsyncExitStack() as clients:
        steady = [await clients.enter_async_context(SteadyClient(await port_of(each), HOST)) for each in live]
        roaming = await clients.enter_async_context(RoamingClient(stack.ports, HOST))
        yield roaming
        for client in (*steady, roaming):
            await client.wait_for_more(REQUESTS, within_s=BOUND_S)
    for client in (*steady, roaming):
        assert not client.failures, f"{len(client.failures)} of {client.count}: {client.failures[:5]}"
    asked, longest_s = sum(each.count for each in steady), max((each.longest_s for each in steady), default=0)
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


async def test_make_stack_prints_a_line_that_is_answered(stack: Stack) -> None:
    printed = await stack.start()
    line = next(each for each in printed.splitlines() if "curl" in each)
    assert json.loads(await run(*shlex.split(line), "--fail", "--silent", "--show-error"))["name"] in {"red", "blue"}
    print(f"\n  {line.strip()}")


async def test_containers_may_nothing_and_are_reached_from_this_machine_alone(stack: Stack) -> None:
    containers = [await inspect(each) for each in await stack.containers()]
    assert len(containers) == 7
    settings = [tomllib.loads(path.read_text()) for path in (ROOT / ".headgate" / "stack").glob("*.toml")]
    passwords = {password for each in settings for password in each.values()}
    assert len(passwords) == 9
    for each in containers:
        host = each["HostConfig"]
        assert host["ReadonlyRootfs"], each["Name"]
        assert (host["CapDrop"], host["CapAdd"] or []) == (["ALL"], []), each["Name"]
        assert host["SecurityOpt"] == ["no-new-privileges:true"], each["Name"]
        assert host["Memory"] > 0, each["Name"]
        assert host["PidsLimit"] > 0, each["Name"]
        bound = [address["HostIp"] for ports in (host["PortBindings"] or {}).values() for address in ports]
        assert set(bound) <= {"127.0.0.1"}, each["Name"]
        assert not [password for password in passwords if password in json.dumps(each)], each["Name"]


async def test_scaling_to_three_and_back_fails_no_request(stack: Stack) -> None:
    (first,) = await stack.wait_for_gateways(1)
    async with load(stack, first) as roaming:
        await stack.scale(3)
        _, *others = await stack.wait_for_gateways(3)
        ports = {await port_of(each) for each in (first, *others)}

        async def all_answered() -> bool:
            return ports <= roaming.seen

        await eventually("all three replicas answered", all_answered)
        ends = [asyncio.create_task(docker("wait", each)) for each in others]
        await stack.scale(1)
        # By themselves, within the time that they have: killed ones end with 137.
        assert [await end for end in ends] == ["0", "0"]
        assert await stack.containers("gateway") == [first]


@pytest.mark.parametrize("service", ["nats", "watcher", "translator"])
async def test_killing_each_container_fails_no_request(stack: Stack, service: str) -> None:
    gateways = await stack.wait_for_gateways(1)
    for container in await stack.containers(service):
        async with load(stack, *gateways):
            await crash(container)


@pytest.mark.parametrize("service", ["red", "blue"])
async def test_killing_an_application_fails_no_request_that_may_be_sent_again(stack: Stack, service: str) -> None:
    (gateway,) = await stack.wait_for_gateways(1)
    (container,) = await stack.containers(service)
    # As many at once as the retry budget allows whatever the load is (docs/health.md): all of them may have to be.
    async with SteadyClient(await port_of(gateway), HOST, connections=3) as client:
        await crash(container)
        await client.wait_for_more(REQUESTS, within_s=BOUND_S)
    assert not client.failures, f"{len(client.failures)} of {client.count}: {client.failures[:5]}"
    print(f"  {client.count} requests, none failed, slowest {client.longest_s:.2f} s")


async def test_killing_each_gateway_of_two_fails_no_request(stack: Stack) -> None:
    await stack.scale(2)
    gateways = await stack.wait_for_gateways(2)
    for killed in gateways:
        async with load(stack, *(each for each in gateways if each != killed)):
            await crash(killed)
            await stack.wait_for_gateways(2)


async def test_a_change_of_manifests_is_served_after_all_that(stack: Stack) -> None:
    gateways = await stack.wait_for_gateways(2)
    authority = Authority()
    issued = authority.issue(HOST, DNSName(HOST))
    async with load(stack, *gateways):
        demo = (stack.manifests / "demo.yaml").read_text()
        await asyncio.to_thread((stack.manifests / "demo.yaml").write_text, without_blue(demo))
        for each in gateways:
            await eventually("only red answers", lambda each=each: answered_by_red_alone(each))
        await asyncio.to_thread((stack.manifests / "tls.yaml").write_text, json.dumps(tls_objects(issued)))
        trusting = ssl.create_default_context(cadata=authority.pem.decode())
        for each in gateways:
            await eventually("the certificate is presented", lambda each=each: is_trusted(each, trusting))
        await asyncio.to_thread((stack.manifests / "demo.yaml").write_text, demo)


def without_blue(manifests: str) -> str:
    return manifests.replace(
        'addresses: ["10.213.91.102"]\n    conditions: { ready: true }',
        'addresses: ["10.213.91.102"]\n    conditions: { ready: false }',
    )


def tls_objects(issued: Issued) -> dict[str, object]:
    """A Secret, which crosses NATS sealed with the stack's own keys, and an Ingress that names it."""
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


async def answered_by_red_alone(gateway: str) -> bool:
    url = f"http://127.0.0.1:{await port_of(gateway)}/"
    async with aiohttp.ClientSession() as session:
        names = [(await (await session.get(url, headers={"Host": HOST})).json())["name"] for _ in range(20)]
    return set(names) == {"red"}


async def is_trusted(gateway: str, trusting: ssl.SSLContext) -> bool:
    try:
        _, writer = await asyncio.open_connection(
            "127.0.0.1", await port_of(gateway, 8443), ssl=trusting, server_hostname=HOST
        )
    except ssl.SSLCertVerificationError:
        return False
    writer.close()
    await writer.wait_closed()
    return True


async def test_tables_are_served_from_redis_and_its_death_harms_nobody(stack: Stack) -> None:
    await stack.start(profiles="redis", gateways=2)
    gateways = await stack.wait_for_gateways(2)
    (redis,) = await stack.containers("redis")

    async def holds_a_table() -> bool:
        asked = ("redis-cli", "--user", "reader", "--pass", password, "hget", "{headgate}:pointer:default", "version")
        return bool(await docker("exec", redis, *asked))

    password = tomllib.loads((ROOT / ".headgate" / "stack" / "reader.toml").read_text())["store_password"]
    async with load(stack, *gateways):
        assert await holds_a_table()
        await crash(redis)
        # It stores nothing: the translator writes all of it anew.
        await eventually("Redis holds a table again", holds_a_table)


async def test_prometheus_reads_every_service(stack: Stack) -> None:
    has_grafana = await docker("image", "ls", "--quiet", "grafana/grafana")
    await stack.start(profiles="metrics" if has_grafana else "prometheus", gateways=2)
    (prometheus,) = await stack.containers("prometheus")
    url = f"http://127.0.0.1:{await port_of(prometheus, 9090)}/api/v1/query?query=up==1"

    async def reads_all() -> bool:
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            found = (await answer.json())["data"]["result"] if answer.status == 200 else []
        return Counter(each["metric"]["job"] for each in found) == {"gateway": 2, "translator": 2, "watcher": 1}

    await eventually("every replica is read", reads_all)
