"""The gateway as a process on a real NATS server and real sockets."""

import asyncio
import json
import os
import re
import signal
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from fakes.gateway.process import BOUND_S, GatewayProcess, commit, open_stores
from fakes.gateway.table import ORIGIN, certificate, endpoint, host, route, upstream
from fakes.peers.echo import EchoServer
from fakes.translator.sealing import seal
from fakes.waiting import until
from headgate.cli.up.embedded_nats import EmbeddedNats
from headgate.common.heartbeats import Heartbeat
from headgate.common.sealing import load_or_create_key_pair
from headgate.common.stores.nats import NatsStores
from headgate.common.table import (
    Backend,
    BackendGroup,
    Consumer,
    Credential,
    Endpoint,
    Mirror,
    PluginUse,
    Upstream,
    Weighted,
)
from headgate.common.table_image import TableImage
from headgate.gateway.tls import FALLBACK_NAME, self_signed


@pytest.fixture
async def echo() -> AsyncIterator[EchoServer]:
    async with EchoServer("one") as server:
        yield server


def backend(*servers: EchoServer) -> Upstream:
    endpoints = sorted((Endpoint(address="127.0.0.1", port=server.port) for server in servers), key=lambda e: e.port)
    return upstream("up", *endpoints)


def image(*servers: EchoServer) -> TableImage:
    return TableImage([host("foo.com", route("/", "prefix", "up")), backend(*servers)])


async def first_beat(stores: NatsStores) -> Heartbeat:
    """The announcement of the first worker that serves a table on open ports."""
    async with asyncio.timeout(BOUND_S):
        while True:
            for beat in await stores.heartbeats.live():
                if beat.version and beat.listeners:
                    return beat
            await asyncio.sleep(0.02)


async def test_a_gateway_opens_its_ports_with_its_first_table_and_announces_it(
    tmp_path: Path, broker: EmbeddedNats, stores: NatsStores, echo: EchoServer
) -> None:
    async with GatewayProcess(tmp_path / "data", broker.url, "--instance=g1", "--zone=z1") as gateway:
        await gateway.ready(503)
        assert "no revision of table default" in (await gateway.admin("/readyz"))[1]
        with pytest.raises(aiohttp.ClientConnectorError):  # Refused: a client asks another replica.
            await gateway.get()
        await commit(stores.snapshots, image(echo), (1, 1))
        await gateway.ready()
        assert (await gateway.get())["name"] == "one"
        assert await gateway.get("bar.com") == 404
        beat = await first_beat(stores)
        assert (beat.replica, beat.worker, beat.zone, str(beat.version)) == ("g1", 0, "z1", "1.1")
        assert beat.listeners[0] == f"http://127.0.0.1:{gateway.http_port}"
        assert await gateway.stop() == 0
        assert not await stores.heartbeats.live()


async def test_pages_explain_and_list_what_is_served(
    tmp_path: Path, broker: EmbeddedNats, stores: NatsStores, echo: EchoServer
) -> None:
    served = image(echo)
    use = PluginUse(name="key-auth", config={"key": "sesame"})
    served.put(Consumer(key="c1/d/jack", name="d_jack", credentials=(Credential(use=use),), provenance=ORIGIN))
    await commit(stores.snapshots, served, (1, 1))
    async with GatewayProcess(tmp_path / "data", broker.url) as gateway:
        await gateway.ready()
        people = (await gateway.admin("/consumers"))[1]
        assert json.loads(people)["consumers"][0]["credentials"] == [{"plugin": "key-auth", "name": ""}]
        assert "sesame" not in people
        table = json.loads((await gateway.admin("/table"))[1])
        assert [item["host"] for item in table["hosts"]] == ["foo.com"]
        assert table["hosts"][0]["routes"][0]["backends"] == [{"upstream": "up", "weight": 1}]
        assert json.loads((await gateway.admin("/table?limit=0"))[1])["hosts"] == []
        assert len(json.loads((await gateway.admin("/table?limit=1"))[1])["hosts"]) == 1
        assert await gateway.admin("/table?limit=-1") == (400, "limit=-1: must be a number of hosts")
        explanation = json.loads((await gateway.admin("/explain?url=http://foo.com/x"))[1])
        assert explanation["winner"] == "foo.com|prefix /"
        assert explanation["backends"][0]["endpoints"][0]["port"] == echo.port
        assert (await gateway.admin("/explain?url=nonsense"))[0] == 400
        metrics = (await gateway.admin("/metrics"))[1]
        assert "headgate_table_revision 1.0" in metrics
        assert "headgate_requests_total" in metrics


async def test_groups_and_mirrors_of_a_table_are_served_and_shown(
    tmp_path: Path, broker: EmbeddedNats, stores: NatsStores, echo: EchoServer
) -> None:
    async with EchoServer("two") as shadow:
        split = Weighted(backends=(Backend(upstream="gone", weight=0), Backend(upstream="up")))
        both = BackendGroup(key="both", weighted=split, provenance=ORIGIN)
        copies = Weighted(backends=(Backend(upstream="shadow"),))
        shadows = BackendGroup(key="shadows", weighted=copies, provenance=ORIGIN)
        routed = {"backends": (Backend(group="both"),), "mirrors": (Mirror(group="shadows"),)}
        at_shadow = upstream("shadow", Endpoint(address="127.0.0.1", port=shadow.port))
        site = host("foo.com", route("/").model_copy(update=routed))
        await commit(stores.snapshots, TableImage([site, backend(echo), at_shadow, both, shadows]), (1, 1))
        async with GatewayProcess(tmp_path / "data", broker.url) as gateway:
            await gateway.ready()
            assert (await gateway.get())["name"] == "one"
            await until(lambda: shadow.requests == 1, BOUND_S)
            table = json.loads((await gateway.admin("/table"))[1])
            assert table["hosts"][0]["routes"][0]["backends"] == [{"group": "both", "weight": 1}]
            explanation = json.loads((await gateway.admin("/explain?url=http://foo.com/x"))[1])
            assert [(one["upstream"], one["groups"]) for one in explanation["backends"] if one["share"]] == [
                ("up", ["both"])
            ]
            assert explanation["mirrors"] == [{"target": "shadows", "share": 1.0, "unavailable": ""}]


@pytest.mark.parametrize("names", ["apisix", "headgate"])
async def test_requests_are_counted_by_consumer_under_the_names_of_apisix(
    tmp_path: Path, broker: EmbeddedNats, stores: NatsStores, echo: EchoServer, names: str
) -> None:
    guarded = route("/", "prefix", "up").model_copy(update={"plugins": (PluginUse(name="key-auth"),)})
    served = TableImage([host("foo.com", guarded), backend(echo)])
    use = PluginUse(name="key-auth", config={"key": "sesame"})
    served.put(Consumer(key="c1/d/jack", name="d_jack", credentials=(Credential(use=use),), provenance=ORIGIN))
    await commit(stores.snapshots, served, (1, 1))
    async with GatewayProcess(tmp_path / "data", broker.url, f"--metric-names={names}") as gateway:
        await gateway.ready()
        url = f"http://127.0.0.1:{gateway.http_port}/"
        async with aiohttp.ClientSession() as session:
            for headers, status in (({}, 401), ({"apikey": "sesame"}, 200), ({"apikey": "sesame"}, 200)):
                async with session.get(url, headers={"Host": "foo.com", **headers}) as answer:
                    assert answer.status == status
        metrics = (await gateway.admin("/metrics"))[1]
    found = re.findall(r'apisix_http_status\{code="(\d+)",consumer="(\w*)",.*\} (\d+)', metrics)
    assert sorted(found) == ([("200", "d_jack", "2"), ("401", "", "1")] if names == "apisix" else [])


async def test_swaps_under_load_lose_no_request(
    tmp_path: Path, broker: EmbeddedNats, stores: NatsStores, echo: EchoServer
) -> None:
    answers: list[object] = []
    is_done = asyncio.Event()

    async def ask_steadily(gateway: GatewayProcess) -> None:
        while not is_done.is_set():
            answers.append(await gateway.get())

    async with EchoServer("two") as other, GatewayProcess(tmp_path / "data", broker.url) as gateway:
        table = image(echo)
        await commit(stores.snapshots, table, (1, 1))
        await gateway.ready()
        clients = [asyncio.create_task(ask_steadily(gateway)) for _ in range(3)]
        for revision in range(2, 22):
            table.put(backend(other) if revision % 2 else backend(echo, other))
            table.put(host(f"h{revision}.com"))
            count = len(answers)
            await commit(stores.snapshots, table, (1, revision))
            await until(lambda count=count: len(answers) >= count + 10)
        await gateway.serves("1.21")
        is_done.set()
        await asyncio.gather(*clients)
        last = [(await gateway.get())["name"] for _ in range(10)]
    assert all(isinstance(answer, dict) for answer in answers)
    assert set(last) == {"two"}


async def test_a_certificate_that_arrives_is_presented_for_its_name(
    tmp_path: Path, broker: EmbeddedNats, stores: NatsStores
) -> None:
    key = load_or_create_key_pair(tmp_path / "data")
    async with GatewayProcess(tmp_path / "data", broker.url) as gateway:
        table = TableImage([host("foo.com")])
        await commit(stores.snapshots, table, (1, 1))
        await gateway.ready()
        (listener,) = re.findall(r"https://127.0.0.1:(\d+)", (await gateway.admin("/version"))[1])
        assert await presented_name("foo.com", int(listener)) == FALLBACK_NAME
        chain, private = self_signed("foo.com")
        sealed = seal(private, [key.public_key])
        table.put(certificate("c1/default/tls", sealed, "foo.com", chain=chain.decode(), fingerprint="f1"))
        await commit(stores.snapshots, table, (1, 2))
        await gateway.serves("1.2")
        assert await presented_name("foo.com", int(listener)) == "foo.com"
        assert await presented_name("bar.com", int(listener)) == FALLBACK_NAME


async def presented_name(server_name: str, port: int) -> str:
    """Common name of the certificate that a gateway presents."""
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting, server_hostname=server_name)
    tls: ssl.SSLObject = writer.get_extra_info("ssl_object")
    certificate_bytes = tls.getpeercert(binary_form=True)
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    assert certificate_bytes is not None
    (name,) = x509.load_der_x509_certificate(certificate_bytes).subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(name.value)


async def test_a_gateway_without_the_bus_serves_the_table_on_disk(
    tmp_path: Path, broker: EmbeddedNats, stores: NatsStores, echo: EchoServer
) -> None:
    await commit(stores.snapshots, image(echo), (4, 2))
    async with GatewayProcess(tmp_path / "data", broker.url) as gateway:
        await gateway.ready()
        await until((tmp_path / "data" / "table-default.last-good").exists)
        await broker.kill()
        assert (await gateway.get())["name"] == "one"
        assert await gateway.stop() == 0
    async with GatewayProcess(tmp_path / "data", broker.url) as gateway:
        await gateway.ready()
        assert (await gateway.get())["name"] == "one"
        await broker.start()
        table = image(echo)
        table.put(host("new.com", route("/", "prefix", "up")))
        bus, fresh = await open_stores(broker.url)
        await commit(fresh.snapshots, table, (4, 3))
        await bus.close()
        await gateway.serves("4.3")
        assert (await gateway.get("new.com"))["name"] == "one"


async def test_a_gateway_without_bus_and_disk_stays_alive_and_not_ready(tmp_path: Path) -> None:
    async with GatewayProcess(tmp_path / "data", "nats://127.0.0.1:1") as gateway:
        await gateway.ready(503)
        assert (await gateway.admin("/healthz"))[0] == 200
        assert await gateway.stop() == 0


async def test_a_damaged_table_on_disk_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "table-default.last-good").write_bytes(b"HEADGATE-TABLE-1\nrubbish")
    async with GatewayProcess(tmp_path / "data", "nats://127.0.0.1:1") as gateway:
        await gateway.ready(503)
        await until(lambda: "the table on disk is not used" in gateway.log)


async def test_two_workers_serve_and_a_killed_one_is_restarted(
    tmp_path: Path, broker: EmbeddedNats, stores: NatsStores, echo: EchoServer
) -> None:
    await commit(stores.snapshots, image(echo), (1, 1))
    async with GatewayProcess(tmp_path / "data", broker.url, "--workers=2") as gateway:
        await gateway.ready()
        for _ in range(20):
            async with aiohttp.ClientSession() as session:
                assert (await gateway.get(session=session))["name"] == "one"
        metrics = (await gateway.admin("/metrics"))[1]
        served = re.findall(r'headgate_requests_total\{.*worker="(\d)"\} (\d+)', metrics)
        assert sum(int(count) for _, count in served) == 20
        async with asyncio.timeout(BOUND_S):
            while {int(beat.worker) for beat in await stores.heartbeats.live()} != {0, 1}:  # noqa: ASYNC110 - no event
                await asyncio.sleep(0.02)
        pids = re.findall(r"worker started.*pid=(\d+)", gateway.log)
        os.kill(int(pids[1]), signal.SIGKILL)
        await until(lambda: len(re.findall("worker started", gateway.log)) == 3)
        await gateway.ready()
        assert (await gateway.get())["name"] == "one"
        assert json.loads((await gateway.admin("/explain?url=http://foo.com/"))[1])["winner"] == "foo.com|prefix /"
        assert await gateway.stop() == 0
    assert all(not _is_alive(int(pid)) for pid in re.findall(r"worker started.*pid=(\d+)", gateway.log))


async def test_workers_end_when_their_parent_is_killed(
    tmp_path: Path, broker: EmbeddedNats, stores: NatsStores, echo: EchoServer
) -> None:
    await commit(stores.snapshots, image(echo), (1, 1))
    async with GatewayProcess(tmp_path / "data", broker.url, "--workers=2") as gateway:
        await until(lambda: gateway.log.count("listening") == 2)
        pids = [int(pid) for pid in re.findall(r"worker started.*pid=(\d+)", gateway.log)]
        gateway.process.kill()
        await until(lambda: not any(map(_is_alive, pids)))


@pytest.mark.parametrize("workers", [1, 2])
async def test_sigterm_under_requests_loses_none(
    tmp_path: Path, broker: EmbeddedNats, stores: NatsStores, workers: int
) -> None:
    release = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while await reader.readuntil(b"\r\n\r\n"):
                started.append(1)
                await release.wait()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
        writer.close()

    started: list[int] = []
    slow = await asyncio.start_server(answer, "127.0.0.1", 0)
    item = endpoint(1).model_copy(update={"address": "127.0.0.1", "port": slow.sockets[0].getsockname()[1]})
    table = TableImage([host("foo.com", route("/", "prefix", "up")), upstream("up", item)])
    await commit(stores.snapshots, table, (1, 1))
    async with slow, GatewayProcess(tmp_path / "data", broker.url, f"--workers={workers}") as gateway:
        await gateway.ready()
        requests = [asyncio.create_task(gateway.get()) for _ in range(8)]
        await until(lambda: len(started) == 8)
        stopping = asyncio.create_task(gateway.stop())
        await until(lambda: gateway.log.count("stopping") >= workers)
        assert not any(task.done() for task in requests)
        assert (await gateway.admin("/readyz"))[0] == 503
        release.set()
        assert await asyncio.gather(*requests) == [{}] * 8
        assert await stopping == 0


async def test_a_port_that_is_taken_is_one_line(tmp_path: Path) -> None:
    async with EchoServer("taken") as taken:
        for workers in (1, 2):
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "headgate.gateway", f"--http-port={taken.port}", "--http-host=127.0.0.1"),
                *(f"--workers={workers}", f"--data-dir={tmp_path}", "--https-port=0"),
                stderr=asyncio.subprocess.PIPE,
            )
            _, told = await asyncio.wait_for(process.communicate(), BOUND_S)
            assert process.returncode == 1
            assert f"http_port: {taken.port} cannot be bound on 127.0.0.1" in told.decode()
            assert "Traceback" not in told.decode()


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("workers", [1, 2])
async def test_metrics_are_shown_on_a_route_that_asks_for_them(
    tmp_path: Path, broker: EmbeddedNats, stores: NatsStores, workers: int
) -> None:
    shown = route("/apisix/prometheus/metrics", "exact").model_copy(update={"plugins": (PluginUse(name="public-api"),)})
    async with GatewayProcess(tmp_path / "data", broker.url, f"--workers={workers}") as gateway:
        await commit(stores.snapshots, TableImage([host("foo.com", shown)]), (1, 1))
        await gateway.ready()
        url = f"http://127.0.0.1:{gateway.http_port}/apisix/prometheus/metrics"
        async with aiohttp.ClientSession() as session, session.get(url, headers={"Host": "foo.com"}) as answer:
            text = await answer.text()
        assert answer.status == 200
        assert ('worker="1"' in text) is (workers == 2)
        assert "headgate_table_revision" in text
