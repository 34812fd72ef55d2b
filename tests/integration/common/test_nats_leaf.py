"""An edge cluster's NATS server on `deploy/nats/leaf.conf`: services work through it, and it may do what they may."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
import pytest_asyncio

from fakes.gateway.ports import free_ports
from fakes.peers.echo import EchoServer
from fakes.service_process import running_service
from fakes.stores.fallible_link import FallibleLink
from fakes.stores.nats_cluster import DEPLOYED, EDGE, NatsCluster, leaf_node, nats_cluster, password_of
from fakes.traffic import of_route, summary
from fakes.translator.manifests import ingress, service, write
from fakes.waiting import until
from headgate.common.admission import Opinion, Outcome, Proposal
from headgate.common.bus.access import make_context
from headgate.common.bus.admission import Answering
from headgate.common.bus.admission import ask as ask_for_opinion
from headgate.common.bus.connection import Bus
from headgate.common.deltas import Delta, Operation
from headgate.common.errors import NoAnswer, StoreUnavailable
from headgate.common.resources import ObjectRef
from headgate.common.sealing import load_or_create_key_pair
from headgate.common.service.tasks import cancel
from headgate.common.snapshot import Chunk, digest_of
from headgate.common.stores import DeltaSelection
from headgate.common.stores.nats import FOR_GATEWAYS, FOR_WATCHERS, NatsStores, Upkeep
from headgate.common.stores.nats.traffic import NatsTrafficBoard
from headgate.common.stores.reading import read_chunks

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]
BOUND_S = 40.0
HOST = "web.example"
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
COUNT = 2500
"""Deltas of 2 KB: two batches and a half to write, and more than is on its way at once to read."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def centre(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[NatsCluster]:
    async with nats_cluster(tmp_path_factory.mktemp("nats")) as cluster, cluster.connect("translator") as bus:
        await NatsStores.open(bus)
        yield cluster


@asynccontextmanager
async def far_leaf(centre: NatsCluster) -> AsyncIterator[tuple[NatsCluster, list[FallibleLink]]]:
    """The edge's server, behind links to each server of the centre."""
    async with AsyncExitStack() as stack:
        links = [await stack.enter_async_context(FallibleLink(port)) for port in centre.leaf_ports]
        yield await stack.enter_async_context(leaf_node(centre, [link.port for link in links])), links


async def test_an_edge_serves_while_its_link_is_cut_and_its_changes_arrive_after(
    centre: NatsCluster, tmp_path: Path
) -> None:
    folder, data, log = tmp_path / "manifests", tmp_path / "data", tmp_path / "log"
    folder.mkdir()
    load_or_create_key_pair(data)
    (http_port,) = free_ports(1)
    common = (f"--data-dir={data}", "--log-format=json", f"--cluster={EDGE}")
    gateway = (
        "--http-host=127.0.0.1",
        f"--http-port={http_port}",
        "--https-port=0",
        "--allowed-destinations=127.0.0.1",
    )
    async with EchoServer("red") as red, EchoServer("blue") as blue, far_leaf(centre) as (leaf, links):
        write(folder, "web.yaml", ingress("web", HOST, "web"), service("web", red.port))
        async with (
            running_service("translator", f"--data-dir={data}", *centre.flags("translator"), log=log),
            running_service("gateway", *common, *gateway, *leaf.flags("gateway"), log=log),
            running_service(
                "watcher", f"--manifests={folder}", *common, *leaf.flags(f"watcher-{EDGE}"), log=log
            ) as watcher,
        ):
            await red.until_behind(http_port, HOST)
            for link in links:
                link.cut()
            write(folder, "web.yaml", ingress("web", HOST, "web"), service("web", blue.port))
            async with asyncio.timeout(BOUND_S):
                while "the log takes no deltas, trying on" not in log.read_text():  # noqa: ASYNC110 - no event
                    await asyncio.sleep(0.05)
            await red.until_behind(http_port, HOST)
            for link in links:
                link.heal()
            await blue.until_behind(http_port, HOST)
            async with centre.connect("reader") as bus:
                assert [one.cluster for one in await NatsStores(bus).heartbeats.live()] == [EDGE]
            assert watcher.returncode is None
    assert "does not permit" not in log.read_text(), log.read_text()


async def test_services_go_on_through_the_other_server_of_an_edge(centre: NatsCluster) -> None:
    async with leaf_node(centre) as leaf, leaf.connect(f"watcher-{EDGE}") as bus:
        stores = await NatsStores.open(bus, upkeep=Upkeep(makes_streams=False), needs=FOR_WATCHERS)
        connected = bus.nc.connected_url
        assert connected is not None
        [used] = [server for server in leaf.servers if server.port == connected.port]
        await used.kill()
        assert await appended(stores, delta(COUNT))


async def appended(stores: NatsStores, one: Delta) -> int:
    """Append a delta as a watcher does: again and again until it is confirmed."""
    async with asyncio.timeout(BOUND_S):
        while True:
            with suppress(StoreUnavailable):
                return await stores.log_writer.append(one)
            await asyncio.sleep(0.05)


async def test_a_translator_answers_a_watcher_of_an_edge(centre: NatsCluster) -> None:
    proposal = Proposal(ref=ObjectRef(EDGE, "networking.k8s.io", "ingresses", "default", "web"), object={})
    judged = Opinion(outcome=Outcome.JUDGED)
    async with (
        centre.connect("translator") as theirs,
        leaf_node(centre) as leaf,
        leaf.connect(f"watcher-{EDGE}") as ours,
    ):
        answering = asyncio.create_task(Answering(theirs, "default", lambda _: judged).run())
        heard: list[Opinion] = []
        async with asyncio.timeout(BOUND_S):
            while not heard:
                with suppress(NoAnswer):
                    heard.append(await ask_for_opinion(ours, "default", proposal, 2.0))
        await cancel(answering)
    assert heard == [judged]


async def test_the_centre_hears_of_the_traffic_of_an_edge(centre: NatsCluster) -> None:
    told = summary(of_route("a|r"))
    async with (
        leaf_node(centre) as leaf,
        leaf.connect("gateway") as theirs,
        centre.connect("reader") as ours,
        aclosing(NatsTrafficBoard(ours).listen("default")) as heard,
    ):
        listening = asyncio.ensure_future(anext(heard))
        async with asyncio.timeout(BOUND_S):
            while not listening.done():
                await NatsTrafficBoard(theirs).tell(told)
                await asyncio.sleep(0.05)
        assert listening.result() == told


async def test_a_user_is_added_by_a_reload_while_an_edge_is_connected(centre: NatsCluster) -> None:
    async with leaf_node(centre) as leaf, leaf.connect(f"watcher-{EDGE}") as bus:
        stores = await NatsStores.open(bus, upkeep=Upkeep(makes_streams=False), needs=FOR_WATCHERS)
        for server in (*centre.servers, *leaf.servers):
            text = server.config.read_text()
            if "user: added" not in text:  # the edge's servers have one file
                added = f'{{ user: added, password: "{password_of("added")}" }}'
                server.config.write_text(text.replace("users: [\n", f"users: [\n{added}\n", 1))
            await server.reload()
        for place in (centre, leaf):
            async with place.connect("added") as other:
                assert other.is_connected
        assert await appended(stores, delta(COUNT + 1))


def delta(number: int) -> Delta:
    return Delta(
        ref=ObjectRef(EDGE, "", "services", "default", f"n{number}"),
        operation=Operation.APPLY,
        uid=f"uid-{number}",
        resource_version="1",
        observed_at=NOW,
        object={"metadata": {"name": f"n{number}", "annotations": {"long": "x" * 2000}}},
    )


async def test_a_long_list_passes_through_a_leaf_in_both_directions(centre: NatsCluster) -> None:
    deltas = [delta(number) for number in range(COUNT)]
    async with leaf_node(centre) as leaf, leaf.connect(f"watcher-{EDGE}") as bus:
        stores = await NatsStores.open(bus, upkeep=Upkeep(makes_streams=False), needs=FOR_WATCHERS)
        async with asyncio.timeout(BOUND_S):
            await stores.log_writer.append_all(deltas)
            assert {each.ref for each in deltas} <= set(await stores.log_writer.read_state(EDGE))
            past = stores.log_reader.read_after(DeltaSelection(cluster=EDGE), 0)
            assert {each.ref for each in deltas} <= {one.delta.ref async for batch in past for one in batch}


async def test_a_gateway_of_an_edge_gets_many_chunks_by_one_request(centre: NatsCluster) -> None:
    contents = [f'["{number}"]'.encode() for number in range(30)]
    chunks = [Chunk("hosts", "", digest_of(content), content) for content in contents]
    async with centre.connect("translator") as bus:
        await NatsStores(bus).snapshots.put_chunks(chunks)
    async with leaf_node(centre) as leaf, leaf.connect("gateway") as bus:
        stores = await NatsStores.open(bus, upkeep=Upkeep(makes_streams=False), needs=FOR_GATEWAYS)
        before = bus.nc.stats["out_msgs"]
        assert await read_chunks(stores.snapshots, [chunk.name for chunk in chunks]) == chunks
        assert bus.nc.stats["out_msgs"] - before == 1


class RawLeaf:
    """An edge's server that was taken over: it says what it likes with the credential of the edge."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.refused: list[str] = []
        self.got: dict[str, bytes] = {}

    @classmethod
    @asynccontextmanager
    async def connect(cls, centre: NatsCluster, user: str) -> AsyncIterator["RawLeaf"]:
        tls = centre.access("gateway").tls
        assert tls is not None
        reader, writer = await asyncio.open_connection("127.0.0.1", centre.leaf_ports[0])
        try:
            info = json.loads((await reader.readline()).removeprefix(b"INFO "))
            assert info["tls_required"]
            await writer.start_tls(make_context(tls), server_hostname="127.0.0.1")
            login = {"user": user, "pass": password_of(user), "name": "taken", "headers": True, "tls_required": True}
            writer.write(f"CONNECT {json.dumps(login | {'version': info['version']})}\r\n".encode())
            yield cls(reader, writer)
        finally:
            writer.close()

    def say(self, subject: str, reply: str = "") -> None:
        self._writer.write(f"LMSG {subject} {reply} 2\r\n{{}}\r\n".encode())

    def listen(self, subject: str) -> None:
        self._writer.write(f"LS+ {subject}\r\n".encode())

    async def until_heard(self, subject: str, ask: Callable[[], object]) -> None:
        """Ask again and again until something comes: other servers hear of what we listen to a moment later."""
        async with asyncio.timeout(BOUND_S):
            while subject not in self.got:
                ask()
                await self.settle()
                await asyncio.sleep(0.02)

    async def settle(self) -> None:
        """Wait until the server has done all that was said; note what it sent meanwhile."""
        self._writer.write(b"PING\r\n")
        async with asyncio.timeout(BOUND_S):
            while (line := (await self._reader.readline()).decode()) != "PONG\r\n":
                if not line:
                    assert self.refused, "the server ended the connection"
                    return
                if line.startswith("-ERR"):
                    self.refused.append(line)
                elif line.startswith(("LMSG", "HMSG")):
                    subject, size = line.split()[1], int(line.split()[-1])
                    self.got[subject] = (await self._reader.readexactly(size + 2))[:-2]


@pytest.mark.parametrize(
    ("subject", "stream"),
    [
        (f"headgate.delta.{EDGE}.a.b.c.d", "HEADGATE_DELTAS"),
        ("$JS.hub.API.$KV.HEADGATE_GATEWAYS.default.g.0", "KV_HEADGATE_GATEWAYS"),
    ],
)
async def test_what_a_watcher_and_a_gateway_say_a_leaf_may_say(centre: NatsCluster, subject: str, stream: str) -> None:
    async with RawLeaf.connect(centre, f"edge-{EDGE}") as leaf:
        leaf.listen("_INBOX.gateway.>")
        await leaf.until_heard("_INBOX.gateway.stored", lambda: leaf.say(subject, reply="_INBOX.gateway.stored"))
        assert json.loads(leaf.got["_INBOX.gateway.stored"])["stream"] == stream


@pytest.mark.parametrize(
    "subject",
    [
        "headgate.delta.local.a.b.c.d",
        "headgate.cluster.local",
        f"headgate.status.{EDGE}.a.b.c.d",
        "headgate.resync",
        "$KV.HEADGATE_TABLES.pointer.default",
        "$JS.hub.API.$KV.HEADGATE_TABLES.pointer.default",
        "$JS.API.STREAM.DELETE.HEADGATE_DELTAS",
        "$JS.hub.API.STREAM.DELETE.HEADGATE_DELTAS",
        "$JS.hub.API.CONSUMER.CREATE.HEADGATE_DELTAS.x",
        "$SYS.REQ.SERVER.PING",
    ],
)
async def test_what_a_leaf_may_not_say_ends_its_link(centre: NatsCluster, subject: str) -> None:
    async with RawLeaf.connect(centre, f"edge-{EDGE}") as leaf:
        leaf.say(subject)
        await leaf.settle()
        named = subject.replace("$JS.hub.API.$KV.", "$KV.").replace("$JS.hub.", "$JS.")  # as the domain has it
        assert leaf.refused == [f"-ERR 'Permissions Violation for Publish to \"{named}\"'\r\n"]


async def test_a_leaf_hears_what_its_services_ask_for_and_nothing_else(centre: NatsCluster) -> None:
    theirs = {f"_INBOX.watcher-{EDGE}.a", "_INBOX.gateway.a", "headgate.resync"}
    others = {"headgate.delta.local.a.b.c.d", f"headgate.status.{EDGE}.a.b.c.d", "_INBOX.watcher-local.a"}
    async with RawLeaf.connect(centre, f"edge-{EDGE}") as leaf, centre.connect("admin") as admin:
        leaf.listen(">")
        async with asyncio.timeout(BOUND_S):
            while not theirs <= leaf.got.keys():
                for subject in (*others, *theirs):
                    await admin.publish(subject)
                await leaf.settle()
                await asyncio.sleep(0.02)
        assert leaf.got.keys() == theirs


async def test_the_user_of_a_leaf_is_no_user_for_clients(centre: NatsCluster, caplog: pytest.LogCaptureFixture) -> None:
    bus = await Bus.connect(centre.access(f"edge-{EDGE}"), name="test", wait_s=0.0)
    try:
        refused = f"the user 'edge-{EDGE}' or its password is refused"
        await until(lambda: refused in [getattr(record, "reason", "") for record in caplog.records])
        assert not bus.is_connected
    finally:
        await bus.close()


def rights(file: str, role: str) -> tuple[set[str], set[str]]:
    """What a role may publish and subscribe to, as it is shipped."""
    block = re.search(rf"\n{role}_RIGHTS: \{{(.*?)\n\}}", (DEPLOYED / file).read_text(), re.S)
    assert block is not None
    said, heard = (set(re.findall(r'"([^"]+)"', part)) for part in block[1].split("subscribe:"))
    return said, heard


async def test_the_rights_of_an_edge_are_those_of_its_services_by_the_centres_domain() -> None:
    def by_domain(said: set[str]) -> set[str]:
        return {re.sub(r"^\$JS\.API\.", "$JS.hub.API.", re.sub(r"^\$KV\.", "$JS.hub.API.$KV.", one)) for one in said}

    watcher, gateway = rights("watcher-local.conf", "WATCHER_LOCAL"), rights("roles.conf", "GATEWAY")
    assert rights("leaf-roles.conf", "WATCHER_LOCAL") == (by_domain(watcher[0]), watcher[1])
    assert rights("leaf-roles.conf", "GATEWAY") == (by_domain(gateway[0]), gateway[1])
    named = {"headgate.admission.local.default", "headgate.traffic.default.*.*"}  # which are in the first set, too
    said = by_domain(watcher[0] | gateway[0]) | named
    assert rights("edge-local.conf", "EDGE_LOCAL") == (said, watcher[1] | gateway[1])
