"""The users of `deploy/nats/`: each service does all its work with the rights of its own, and nothing beyond them.

The servers are real, run on the shipped configuration, and deny what it does not name.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from nats.errors import NoRespondersError

from fakes.command import headgate
from fakes.gateway.ports import free_ports
from fakes.gateway.tls import SelfSigned
from fakes.peers.echo import EchoServer
from fakes.service_process import running_service
from fakes.stores.nats_cluster import NatsCluster, nats_cluster
from fakes.traffic import of_route, summary
from fakes.translator.manifests import ingress, service, write
from headgate.common.acme import CertificateState, certificate_ref, state_delta
from headgate.common.admission import Opinion, Outcome, Proposal
from headgate.common.bus.admission import Answering
from headgate.common.bus.admission import ask as ask_for_opinion
from headgate.common.bus.resync import ask_for_resync
from headgate.common.clusters import ClusterSettings, Decision
from headgate.common.deltas import ClusterAnnouncement, Delta, KindName, LastGood, Operation, SyncMarker
from headgate.common.errors import NoAnswer, NotPermitted, StoreError
from headgate.common.heartbeats import Heartbeat
from headgate.common.leadership.leases import NOBODYS
from headgate.common.resources import ObjectRef
from headgate.common.sealing import load_or_create_key_pair
from headgate.common.service.tasks import cancel
from headgate.common.snapshot import Chunk, ChunkName, Manifest, Version, digest_of
from headgate.common.status import StatusUpdate
from headgate.common.stores.nats import FOR_GATEWAYS, FOR_WATCHERS, NatsStores, Upkeep
from headgate.common.stores.opening import combine, tables_of
from headgate.common.stores.settings import StoreSettings
from headgate.common.traffic import Tap
from headgate.console.access.people import Person, Role
from headgate.console.actions import act
from headgate.console.commands import Commands
from headgate.console.live.gateway_site import GatewaySite
from headgate.console.live.view import LiveView

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
BOUND_S = 40.0
KIND = KindName(group="", resource="services")
HOST = "web.example"
Operations = dict[str, Callable[[NatsStores], Awaitable[object]]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[NatsCluster]:
    async with (
        nats_cluster(tmp_path_factory.mktemp("nats"), "--trace") as cluster,
        cluster.connect("translator") as bus,
    ):
        await NatsStores.open(bus)
        yield cluster


async def ask(cluster: NatsCluster, *command: str, user: str = "reader") -> str:
    """What a command says to a user."""
    said = await headgate(*command, f"--nats-url={cluster.url}", code=None, environment=cluster.environment(user))
    return said.out


async def test_every_service_does_its_work_with_the_rights_of_its_own(cluster: NatsCluster, tmp_path: Path) -> None:
    folder, data, log = tmp_path / "manifests", tmp_path / "data", tmp_path / "log"
    folder.mkdir()
    load_or_create_key_pair(data)
    (http_port,) = free_ports(1)
    common = (f"--data-dir={data}", "--log-format=json")
    gateway = (*common, "--http-host=127.0.0.1", f"--http-port={http_port}", "--https-port=0", "--instance=gw.1")
    gateway = (*gateway, "--allowed-destinations=127.0.0.0/8")
    async with EchoServer("red") as red, EchoServer("blue") as blue:
        write(folder, "web.yaml", ingress("web", HOST, "web"), service("web", red.port))
        (folder / "tls.json").write_text(json.dumps(SelfSigned(HOST).secret("default", "tls")))
        async with (
            running_service("translator", *common, *cluster.flags("translator"), log=log),
            running_service("gateway", *gateway, *cluster.flags("gateway"), log=log) as replica,
        ):
            watching = (f"--manifests={folder}", *common, *cluster.flags("watcher-local"))
            async with running_service("watcher", *watching, log=log):
                await red.until_behind(http_port, HOST)
                write(folder, "web.yaml", ingress("web", HOST, "web"), service("web", blue.port))
                await blue.until_behind(http_port, HOST)
            write(folder, "web.yaml", ingress("web", HOST, "nothing"), service("web", red.port))
            async with running_service(
                "watcher", *watching, log=log
            ):  # which compares with the log, and reads statuses
                async with asyncio.timeout(BOUND_S):
                    while "Service default/nothing not found" not in log.read_text():  # noqa: ASYNC110 - a log has no event
                        await asyncio.sleep(0.05)
                write(tmp_path, "planned.yaml", ingress("planned", "planned.example", "web"))
                await check_commands(cluster, str(tmp_path / "planned.yaml"))
                await check_changes(cluster)
            replica.terminate()
            assert await replica.wait() == 0
    assert "does not permit" not in log.read_text(), log.read_text()


async def check_commands(cluster: NatsCluster, planned: str) -> None:
    """What the console and commands that only ask do."""
    status = json.loads(await ask(cluster, "status", "--json"))
    assert [one["replica"] for one in status["gateways"]] == ["gw.1"]
    assert HOST in await ask(cluster, "routes")
    revisions = json.loads(await ask(cluster, "history", "--json"))
    assert len(revisions) >= 3
    first, last = (".".join(map(str, revisions[place]["version"])) for place in (-1, 0))
    assert "nothing" in await ask(cluster, "diff", first, last)
    for user in ("reader", "operator"):
        assert "+ host planned.example" in await ask(cluster, "plan", planned, user=user)
    assert "local/default/web" in await ask(cluster, "events")


async def check_changes(cluster: NatsCluster) -> None:
    """What commands that change tables and clusters do, and the console for its operators."""

    async def change(*command: str) -> Any:
        return json.loads(await ask(cluster, *command, "--json", user="operator"))

    assert (await change("rollback", "HEAD~1", "--reason", "a test"))["revision"]
    assert (await change("unpin", "--reason", "a test"))["revision"]
    assert (await change("drain", "local", "--reason", "a test"))["drained"]["reason"] == "a test"
    assert (await change("undrain", "local"))["drained"] is None
    async with cluster.connect("operator") as bus:
        stores = NatsStores(bus, upkeep=Upkeep(makes_streams=False))
        gateway = GatewaySite("http://127.0.0.1:9")
        view = LiveView(combine(stores, tables_of(stores)), "default", gateway, Commands(StoreSettings(), "default"))
        for said in (
            {"action": "rollback", "revision": "HEAD~1"},
            {"action": "unpin"},
            {"action": "drain", "cluster": "local"},
            {"action": "undrain", "cluster": "local"},
        ):
            assert await act(view, Person("ada", Role.OPERATOR), {**said, "reason": "a test"})
        await gateway.close()


def delta(cluster: str, name: str = "web") -> Delta:
    return Delta(
        ref=ObjectRef(cluster, "", "services", "default", name),
        operation=Operation.APPLY,
        uid=f"uid-{name}",
        resource_version="1",
        observed_at=NOW,
        object={"metadata": {"name": name}},
    )


def status(cluster: str, name: str = "web") -> StatusUpdate:
    ref = ObjectRef(cluster, "networking.k8s.io", "ingresses", "default", name)
    return StatusUpdate(ref=ref, api_version="networking.k8s.io/v1", kind="Ingress", uid="u", is_accepted=True, at=NOW)


CONTENT = b'["a chunk"]'
CHUNK = Chunk("hosts", "", digest_of(CONTENT), CONTENT)
NAME = ChunkName(kind=CHUNK.kind, prefix="", digest=CHUNK.digest)


async def commit(stores: NatsStores) -> None:
    await stores.snapshots.put_chunks([CHUNK])
    before = await stores.snapshots.read_pointer("roles")
    revision = before.version.revision + 1 if before else 1
    manifest = Manifest(table="roles", version=Version(1, revision), created_at=NOW, chunks=(NAME,))
    await stores.snapshots.commit(manifest, before)


def announcement(cluster: str) -> ClusterAnnouncement:
    return ClusterAnnouncement(cluster=cluster, source="manifests", instance="w", kinds=(KIND,), announced_at=NOW)


async def purge_other(stores: NatsStores) -> None:
    await stores.bus.request("$JS.API.STREAM.PURGE.HEADGATE_DELTAS", b"{}")


def deltas_of(cluster: str) -> Operations:
    """What a watcher of a cluster does, and no other may."""
    return {
        f"append to {cluster}": lambda stores: stores.log_writer.append(delta(cluster)),
        f"append a list to {cluster}": lambda stores: stores.log_writer.append_all([delta(cluster, "one")]),
        f"announce {cluster}": lambda stores: stores.log_writer.announce(announcement(cluster)),
        f"mark {cluster}": lambda stores: stores.log_writer.mark_synced(SyncMarker(cluster=cluster, kind=KIND, at=NOW)),
        f"read the log of {cluster}": lambda stores: stores.log_writer.read_state(cluster),
    }


TABLES: Operations = {
    "commit": commit,
    "overwrite a pointer": lambda stores: stores.bus.request("$KV.HEADGATE_TABLES.pointer.default", b"{}"),
}


async def post_statuses(stores: NatsStores, count: int) -> None:
    for answer in await stores.statuses.post(*(status("local", f"web{number}") for number in range(count))):
        if isinstance(answer, StoreError):
            raise answer


STATUSES: Operations = {
    "post a status": lambda stores: post_statuses(stores, 1),
    "post many statuses": lambda stores: post_statuses(stores, 20),
}
HEARTBEATS: Operations = {
    "beat": lambda stores: stores.heartbeats.beat(Heartbeat(replica="g", worker=0, table="t", version=None, at=NOW)),
    "be gone": lambda stores: stores.heartbeats.remove(
        Heartbeat(replica="g", worker=0, table="t", version=None, at=NOW)
    ),
}
TRAFFIC: Operations = {"tell of traffic": lambda stores: stores.traffic.tell(summary(of_route("a|r")))}
UPKEEP: Operations = {
    "empty the log": purge_other,
    "delete a stream": lambda stores: stores.bus.request("$JS.API.STREAM.DELETE.HEADGATE_DELTAS", b"{}"),
    "change a stream": lambda stores: stores.bus.request("$JS.API.STREAM.UPDATE.HEADGATE_DELTAS", b"{}"),
    "delete a message": lambda stores: stores.bus.request("$JS.API.STREAM.MSG.DELETE.HEADGATE_DELTAS", b"{}"),
    "delete a consumer": lambda stores: stores.bus.request("$JS.API.CONSUMER.DELETE.HEADGATE_DELTAS.x", b"{}"),
    "read everybody's log": lambda stores: stores.bus.request("$JS.API.CONSUMER.CREATE.HEADGATE_DELTAS.x", b"{}"),
    "list streams": lambda stores: stores.bus.request("$JS.API.STREAM.LIST", b"{}"),
    "ask the system": lambda stores: stores.bus.request("$SYS.REQ.SERVER.PING", b""),
}

RESYNC: Operations = {"have all watchers compare": lambda stores: stores.bus.request("headgate.resync")}

FORBIDDEN: dict[str, Operations] = {
    "watcher-local": {**deltas_of("paris"), **RESYNC, **TABLES, **STATUSES, **HEARTBEATS, **UPKEEP},
    "watcher-paris": {**deltas_of("local"), **TABLES, **STATUSES, **HEARTBEATS, **UPKEEP},
    "translator": {
        **{name: operation for name, operation in deltas_of("local").items() if not name.startswith("read")},
        **HEARTBEATS,
        **{
            name: UPKEEP[name]
            for name in ("delete a stream", "delete a message", "delete a consumer", "ask the system")
        },
    },
    "gateway": {**deltas_of("local"), **RESYNC, **TABLES, **STATUSES, **UPKEEP},
    "reader": {
        **{name: operation for name, operation in deltas_of("local").items() if not name.startswith("read")},
        **TABLES,
        **STATUSES,
        **HEARTBEATS,
        **{name: operation for name, operation in UPKEEP.items() if not name.startswith("read")},
    },
    "operator": {
        **{name: operation for name, operation in deltas_of("local").items() if not name.startswith("read")},
        **RESYNC,
        **STATUSES,
        **HEARTBEATS,
        "tell of traffic": lambda stores: stores.bus.request("headgate.traffic.roles.g.0"),
        "lead": lambda stores: lead(stores),
        "keep what was good": lambda stores: stores.last_good.write(LastGood(ref=delta("local").ref, refused=0)),
        "order a certificate": lambda stores: stores.log_writer.append(ordered()),
        **{name: operation for name, operation in UPKEEP.items() if not name.startswith("read")},
    },
}


@pytest.mark.parametrize("user", FORBIDDEN)
async def test_what_is_another_ones_work_is_refused_at_once_in_one_line(
    cluster: NatsCluster, user: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with cluster.connect(user) as bus:
        stores = NatsStores(bus, upkeep=Upkeep(makes_streams=False))
        for operation in FORBIDDEN[user].values():
            caplog.clear()
            async with asyncio.timeout(BOUND_S):
                with pytest.raises(NotPermitted, match="NATS does not permit our user to publish to "):
                    await operation(stores)
            assert len(refusals(caplog)) <= 1  # none if the like of it was refused before


def refusals(caplog: pytest.LogCaptureFixture) -> list[Any]:
    return [record for record in caplog.records if "does not permit" in record.message]


def asks_of(cluster: str) -> Operations:
    """What else a watcher of a cluster does."""
    return {
        "look after the log": lambda stores: stores.log_reader.position(),
        "wait for the streams": lambda stores: stores.ensure(FOR_WATCHERS),
        "read statuses": lambda stores: follow(stores.statuses.follow(cluster)),
        "ask a translator": lambda stores: ask_translator(stores, f"headgate.admission.{cluster}.default"),
    }


async def follow(items: AsyncIterator[object]) -> None:
    """Follow for long enough to ask for whatever following needs."""
    with suppress(TimeoutError):
        async with asyncio.timeout(1.0), aclosing(items) as following:  # type: ignore[type-var]
            async for _ in following:
                pass


async def ask_translator(stores: NatsStores, subject: str) -> None:
    with suppress(NoRespondersError):
        await stores.bus.request(subject, b"{}")


async def lead(stores: NatsStores) -> None:
    before = await stores.leases.read("roles")
    await stores.leases.write("roles", NOBODYS, before.version if before else None)


def ordered() -> Delta:
    """How an order of a certificate stands."""
    state = CertificateState(resolver="default", names=("shop.example.com",))
    return state_delta(certificate_ref("default", "acme-shop"), state, datetime.now(UTC))


def decision(cluster: str) -> Delta:
    return Decision.make(ClusterSettings(weight=1), "ada", datetime.now(UTC)).as_delta(cluster)


async def change_streams(stores: NatsStores) -> None:
    for replicas in (1, 3):
        await NatsStores(stores.bus, upkeep=Upkeep(replicas=replicas)).ensure()


FETCHING: Operations = {
    "fetch a chunk": lambda stores: stores.snapshots.get_chunks([NAME]),
    "fetch many chunks": lambda stores: stores.snapshots.get_chunks([NAME, NAME]),
}
READING: Operations = {
    "look whether there is anything": lambda stores: stores.ensure(),
    "follow the log": lambda stores: follow(stores.log_reader.follow()),
    "follow the pointer": lambda stores: follow(stores.snapshots.follow("roles")),
    "read statuses": lambda stores: follow(stores.statuses.follow("local")),
    "read the log": lambda stores: stores.log_writer.read_state("local"),
    "read the pointer": lambda stores: stores.snapshots.read_pointer("roles"),
    **FETCHING,
    "list revisions": lambda stores: stores.snapshots.versions("roles"),
    "see who lives": lambda stores: stores.heartbeats.live(),
    "listen to traffic": lambda stores: follow(stores.traffic.listen("roles")),
    "wish for requests": lambda stores: stores.traffic.tap("roles", Tap("t")),
    "ask for a plan": lambda stores: ask_translator(stores, "headgate.plan.default"),
}
PERMITTED: dict[str, Operations] = {
    "translator": {
        "commit": commit,
        **STATUSES,
        "change streams": change_streams,
        "write a lost decision back": lambda stores: stores.log_writer.append(decision("local")),
        "keep what was ordered": lambda stores: stores.log_writer.append(ordered()),
        "keep what was good": lambda stores: stores.last_good.write(LastGood(ref=delta("local").ref, refused=0)),
        "read the log": lambda stores: stores.log_reader.position(),
        "follow the log": lambda stores: follow(stores.log_reader.follow()),
        "follow the pointer": lambda stores: follow(stores.snapshots.follow("roles")),
        "read statuses": lambda stores: follow(stores.statuses.follow("local")),
        "see who lives": lambda stores: stores.heartbeats.live(),
        **FETCHING,
        "find what is missing": lambda stores: stores.snapshots.missing([CHUNK.digest] * 20),
        "collect garbage": lambda stores: stores.snapshots.collect_garbage("roles", [Version(0, 1)]),
        "lead": lead,
        "ask watchers": lambda stores: ask_for_resync(stores.bus),
        "forget deletions": lambda stores: stores.log_writer.purge_tombstones("local", older_than_s=-60),
        "look after the streams": lambda stores: stores.ensure(),
    },
    "gateway": {
        "read the pointer": lambda stores: stores.snapshots.read_pointer("roles"),
        "follow the pointer": lambda stores: follow(stores.snapshots.follow("roles")),
        **FETCHING,
        "look whether others can": lambda stores: stores.ensure(FOR_GATEWAYS),
        **HEARTBEATS,
        **TRAFFIC,
        "hear wishes for requests": lambda stores: follow(stores.traffic.taps("roles")),
    },
    "watcher-local": {**deltas_of("local"), **asks_of("local")},
    "watcher-paris": {**deltas_of("paris"), **asks_of("paris")},
    "reader": READING,
    "operator": {
        **READING,
        "commit": commit,
        "decide of a cluster": lambda stores: stores.log_writer.append(decision("paris")),
    },
    "admin": {**deltas_of("local"), "commit": commit, **STATUSES, **HEARTBEATS},
}


async def test_what_is_the_work_of_each_is_permitted(cluster: NatsCluster, caplog: pytest.LogCaptureFixture) -> None:
    for user, operations in PERMITTED.items():
        async with cluster.connect(user) as bus:
            stores = NatsStores(bus, upkeep=Upkeep(makes_streams=user == "translator"))
            for operation in operations.values():
                await operation(stores)
    assert refusals(caplog) == []


async def test_no_role_has_a_right_that_it_does_not_use(cluster: NatsCluster) -> None:
    for user, operations in PERMITTED.items():
        async with cluster.connect(user) as bus:
            stores = NatsStores(bus, upkeep=Upkeep(makes_streams=user == "translator"))
            for operation in operations.values():
                await operation(stores)
    assert cluster.rights().keys() == PERMITTED.keys() - {"admin"}
    for user, rights in cluster.rights().items():
        used = set().union(*(server.published(user) for server in cluster.servers))
        # Flow control begins after some hundred messages on their way at once.
        idle = [right for right in rights if not right.startswith("$JS.FC.") and not any_matches(right, used)]
        assert idle == [], user


def any_matches(pattern: str, subjects: set[str]) -> bool:
    expression = "".join(
        {"*": "[^.]+", ">": ".+"}.get(part, re.escape(part)) for part in re.split(r"(?<=\.)|(?=\.)", pattern)
    )
    return any(re.fullmatch(expression, subject) for subject in subjects)


async def test_a_watcher_that_says_it_is_of_another_cluster_waits_and_says_why(
    cluster: NatsCluster, tmp_path: Path
) -> None:
    (tmp_path / "manifests").mkdir()
    load_or_create_key_pair(tmp_path)
    flags = (f"--manifests={tmp_path / 'manifests'}", f"--data-dir={tmp_path}", "--cluster=london")
    log = tmp_path / "log"
    async with running_service("watcher", *flags, *cluster.flags("watcher-paris"), log=log) as watcher:
        async with asyncio.timeout(BOUND_S):
            while "the log takes no deltas, trying on" not in log.read_text():  # noqa: ASYNC110 - no event
                await asyncio.sleep(0.05)
        assert watcher.returncode is None
    refused = [line for line in log.read_text().splitlines() if "NATS does not permit this to our user" in line]
    assert "user=watcher-paris" in refused[0]
    assert any("headgate.delta.london" in line for line in refused)


async def test_a_translator_answers_a_watcher_with_the_rights_of_both(
    cluster: NatsCluster, caplog: pytest.LogCaptureFixture
) -> None:
    proposal = Proposal(ref=ObjectRef("local", "networking.k8s.io", "ingresses", "default", "web"), object={})
    judged = Opinion(outcome=Outcome.JUDGED)
    async with cluster.connect("translator") as theirs, cluster.connect("watcher-local") as ours:
        answering = asyncio.create_task(Answering(theirs, "default", lambda _: judged).run())
        heard: list[Opinion] = []
        async with asyncio.timeout(BOUND_S):
            while len(heard) < 3:
                with suppress(NoAnswer):
                    heard.append(await ask_for_opinion(ours, "default", proposal, 2.0))
        await cancel(answering)
    assert heard == [judged] * 3
    assert refusals(caplog) == []
