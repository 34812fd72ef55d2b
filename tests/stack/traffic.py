"""The compose stack under load: `make stack-test`. Starts it from examples/stack, tries it, and ends it.

Not collected by `pytest` unless it is named: docker and compose are needed, and the ports of compose.yaml.
"""

import asyncio
import json
import shlex
from collections import Counter
from pathlib import Path

import aiohttp
import pytest

from fakes.peers.steady_client import SteadyClient
from stack.engine import BOUND_S, BUILD_S, docker, eventually, inspect, run
from stack.running import HOST, REQUESTS, Stack, address_of, answered_by_red_alone, crash, load, port_of

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(BUILD_S)]


async def test_make_stack_prints_a_line_that_is_answered(stack: Stack) -> None:
    printed = await stack.start()
    line = next(each for each in printed.splitlines() if "curl" in each)
    assert json.loads(await run(*shlex.split(line), "--fail", "--silent", "--show-error"))["name"] in {"red", "blue"}
    print(f"\n  {line.strip()}")


async def test_containers_may_nothing_and_are_reached_from_this_machine_alone(stack: Stack) -> None:
    containers = [await inspect(each) for each in await stack.containers()]
    services = Counter(each["Config"]["Labels"]["com.docker.compose.service"] for each in containers)
    assert services == {"translator": 2} | dict.fromkeys(
        ["entrance", "gateway", "watcher", "console", "nats", "red", "blue"], 1
    )
    settings = [await stack.settings(each) for each in ("translator", "gateway", "watcher-local", "reader", "operator")]
    passwords = {text for each in settings for name, text in each.items() if name.endswith("password")}
    assert len(passwords) == 9
    for each in containers:
        host = each["HostConfig"]
        assert host["ReadonlyRootfs"], each["Name"]
        assert (host["CapDrop"], host["CapAdd"] or []) == (["ALL"], []), each["Name"]
        assert host["SecurityOpt"] == ["no-new-privileges:true"], each["Name"]
        assert host["Memory"] > 0, each["Name"]
        assert host["PidsLimit"] > 0, each["Name"]
        assert host["LogConfig"]["Config"] == {"max-size": "10m", "max-file": "3"}, each["Name"]
        assert not each["Config"]["User"].startswith("0"), each["Name"]
        bound = [address["HostIp"] for ports in (host["PortBindings"] or {}).values() for address in ports]
        assert set(bound) <= {"127.0.0.1"}, each["Name"]
        assert not [password for password in passwords if password in json.dumps(each)], each["Name"]


async def test_every_container_becomes_healthy(stack: Stack) -> None:
    async def are_healthy() -> bool:
        states = [(await inspect(each))["State"] for each in await stack.containers()]
        return {state["Health"]["Status"] for state in states} == {"healthy"}

    await eventually("all containers are healthy", are_healthy)


async def test_a_second_call_changes_neither_containers_nor_secrets(stack: Stack) -> None:
    before = [await stack.containers(), await stack.settings("gateway")]
    await stack.start()
    assert [await stack.containers(), await stack.settings("gateway")] == before


async def test_replicas_believe_the_entrance_about_clients_and_no_one_else(stack: Stack) -> None:
    (gateway,) = await stack.wait_for_gateways(1)
    inspected = await inspect((await stack.containers("entrance"))[0])
    (front,) = inspected["NetworkSettings"]["Networks"].values()
    url = f"http://127.0.0.1:{stack.port}/"
    async with aiohttp.ClientSession() as session, session.get(url, headers={"Host": HOST}) as answer:
        heard = (await answer.json())["headers"]
    (forwarded,) = [text for name, text in heard.items() if name.lower() == "x-forwarded-for"]
    assert forwarded != front["IPAddress"]
    assert forwarded in {front["Gateway"], "127.0.0.1"}  # As the engine forwards what comes from this machine.
    reader, writer = await asyncio.open_connection(await address_of(gateway), 8080)
    writer.write(f"PROXY TCP4 203.0.113.9 203.0.113.1 1 2\r\nGET / HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
    assert (await reader.readline()).startswith(b"HTTP/1.1 400 ")
    writer.close()


async def has_served(gateway: str) -> bool:
    url = f"http://{await address_of(gateway)}:9080/metrics"
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return "\nheadgate_requests_total{" in await answer.text()


async def test_scaling_to_three_and_back_fails_no_request(stack: Stack) -> None:
    (first,) = await stack.wait_for_gateways(1)
    async with load(stack, first):
        async with stack.scaled(3) as gateways:
            others = [each for each in gateways if each != first]
            for each in others:
                await eventually("the entrance uses each replica", lambda each=each: has_served(each))
            ends = [asyncio.create_task(docker("wait", each)) for each in others]
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
    await stack.wait_for_gateways(1)
    (container,) = await stack.containers(service)
    # As many at once as the retry budget allows whatever the load is (docs/health.md): all of them may have to be.
    async with SteadyClient(stack.port, HOST, connections=3) as client:
        await crash(container)
        await client.wait_for_more(REQUESTS, within_s=BOUND_S)
    assert not client.failures, f"{len(client.failures)} of {client.count}: {client.failures[:5]}"
    print(f"  {client.count} requests, none failed, slowest {client.longest_s:.2f} s")


async def test_killing_each_gateway_of_two_loses_what_it_had_under_way_and_no_more(stack: Stack) -> None:
    async with stack.scaled(2) as gateways:
        for killed in gateways:
            async with load(stack, *(each for each in gateways if each != killed), killed=1):
                await crash(killed)
                await stack.wait_for_gateways(2)


async def test_the_port_of_clients_stays_when_a_gateway_is_made_again(stack: Stack) -> None:
    (before,) = await stack.wait_for_gateways(1)
    await docker("rm", "--force", "--volumes", before)
    await stack.scale(1)
    (after,) = await stack.wait_for_gateways(1)
    assert after != before
    async with SteadyClient(stack.port, HOST, patience_s=BOUND_S) as client:
        await client.wait_for_more(REQUESTS, within_s=BOUND_S)
    assert not client.failures


async def test_a_killed_entrance_is_back_on_its_port_within_seconds(stack: Stack) -> None:
    (gateway,) = await stack.wait_for_gateways(1)
    (entrance,) = await stack.containers("entrance")
    live = SteadyClient(8080, HOST, address=await address_of(gateway))
    async with live, SteadyClient(stack.port, HOST, patience_s=BOUND_S) as client:
        await crash(entrance)
        await client.wait_for_more(REQUESTS, within_s=BOUND_S)
    assert not live.failures
    assert not client.failures
    print(
        f"  the entrance was away for {client.longest_s:.1f} s; {client.retries} requests were refused and made again"
    )


async def test_a_change_of_manifests_is_served_after_all_that(stack: Stack) -> None:
    async with stack.scaled(2) as gateways, load(stack, *gateways[:1]):
        await stack.let_blue_be_ready(False)
        for each in gateways:
            await eventually("only red answers", lambda each=each: answered_by_red_alone(each))
        serial = await stack.exchange_certificate()
        for each in gateways:
            await eventually("the certificate is presented", lambda each=each: stack.presents(each, serial))
        await stack.let_blue_be_ready(True)


async def make_other_images(folder: Path) -> str:
    """Make images that hold the same and are others; return their tag."""
    for each in ("gateway", "translator", "watcher"):
        (folder / "Dockerfile").write_text(f"FROM headgate/{each}:latest\nLABEL made=anew\n")
        await docker("build", "--quiet", "--tag", f"headgate/{each}:made-anew", str(folder), within_s=BUILD_S)
    return "made-anew"


async def test_tables_are_served_from_redis_and_its_death_harms_no_request(stack: Stack, tmp_path: Path) -> None:
    await stack.start(profiles="redis", gateways=2, HEADGATE_TAG=await make_other_images(tmp_path))
    gateways = await stack.wait_for_gateways(2)
    (redis,) = await stack.containers("redis")

    async def holds_a_table() -> bool:
        asked = ("redis-cli", "--user", "reader", "--pass", password, "hget", "{headgate}:pointer:default", "version")
        return bool(await docker("exec", redis, *asked))

    password = (await stack.settings("reader"))["store_password"]
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
        return Counter(each["metric"]["job"] for each in found) == {
            "gateway": 2,
            "translator": 2,
            "watcher": 1,
            "console": 1,
        }

    await eventually("every replica is read", reads_all)
