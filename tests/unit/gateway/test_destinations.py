"""Which addresses are denied, in whatever form, and what is said of it."""

import asyncio
import logging
import socket

import pytest

from fakes.gateway.ports import free_port
from fakes.kubernetes.forbidden import forbidden, without
from headgate.gateway.net.destinations import DENIED_BY_DEFAULT, DestinationDenied, Destinations
from headgate.gateway.net.dialling import Dialler

DEFAULT = Destinations(DENIED_BY_DEFAULT)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.255.255.254",
        "0.0.0.0",
        "169.254.169.254",
        "224.0.0.1",
        "::",
        "::1",
        "fe80::1",
        "fe80::1%lo",
        "ff02::1",
        "fd00:ec2::254",
        "168.63.129.16",
        "::ffff:127.0.0.1",
        "::ffff:a9fe:a9fe",
        "::ffff:0.0.0.0",
        "64:ff9b::7f00:1",
        "64:ff9b::169.254.169.254",
        "64:ff9b:1::127.0.0.1",
    ],
)
def test_what_is_no_endpoint_in_kubernetes_is_denied_by_default(address: str) -> None:
    with pytest.raises(DestinationDenied, match="of the setting denied_destinations"):
        DEFAULT.check(address, 80)


@pytest.mark.parametrize(
    "address",
    [
        "10.0.0.1",
        "100.64.0.1",
        "126.255.255.255",
        "128.0.0.0",
        "169.253.255.255",
        "::2",
        "fec0::1",
        "fd00:ec2::253",
        "::ffff:10.0.0.1",
        "64:ff9b::10.0.0.1",
    ],
)
def test_what_may_be_an_endpoint_is_not(address: str) -> None:
    DEFAULT.check(address, 80)


def test_what_is_allowed_within_a_denied_network_may_be_connected_to() -> None:
    destinations = Destinations(["0.0.0.0/0", "::/0"], ["10.244.0.0/16", "127.0.0.1"])
    for address in ("10.244.3.4", "127.0.0.1"):
        destinations.check(address, 80)
    for address in ("10.96.0.1", "127.0.0.2", "2001:db8::1", "::ffff:10.96.0.1"):
        with pytest.raises(DestinationDenied):
            destinations.check(address, 80)


def test_an_allowed_form_of_an_address_does_not_allow_the_one_that_is_denied() -> None:
    with pytest.raises(DestinationDenied, match=r"169\.254\.0\.0/16"):
        Destinations(DENIED_BY_DEFAULT, ["64:ff9b::/96"]).check("64:ff9b::169.254.169.254", 80)


def test_without_denied_networks_all_may_be_connected_to() -> None:
    Destinations(own_port=9080).check("127.0.0.1", 9080)


def test_no_route_leads_to_the_own_admin_port_on_any_address_of_the_host() -> None:
    destinations = Destinations(["192.0.2.0/24"], ["0.0.0.0/0"], own_port=9080)
    with pytest.raises(DestinationDenied, match=r"127\.0\.0\.3 port 9080 is the gateway's own admin port"):
        destinations.check("127.0.0.3", 9080)
    destinations.check("127.0.0.3", 9081)
    destinations.check("203.0.113.9", 9080)


def test_the_same_is_told_once_a_minute_and_counted_each_time(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    destinations = Destinations(["127.0.0.0/8"])
    for who, address in [("a|r", "127.0.0.1"), ("a|r", "127.0.0.1"), ("a|r", "127.0.0.2"), ("b|r", "127.0.0.1")]:
        with pytest.raises(DestinationDenied) as caught:
            destinations.check(address, 80)
        destinations.tell(caught.value, who)
    told = [(record.of, record.reason) for record in caplog.records]  # type: ignore[attr-defined]
    because = "is within 127.0.0.0/8 of the setting denied_destinations"
    assert told == [("a|r", f"127.0.0.1 {because}"), ("a|r", f"127.0.0.2 {because}"), ("b|r", f"127.0.0.1 {because}")]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1", "0x7f.1", "2130706433", "::ffff:127.0.0.1"])
@pytest.mark.parametrize("how", ["dial", "connect", "open_stream"])
async def test_however_loopback_is_written_it_is_not_dialled(host: str, how: str) -> None:
    dialler = without("127.0.0.0/8", "::1/128")
    async with forbidden() as server:
        opening = {
            "dial": lambda: dialler.dial(host, server.port),
            "connect": lambda: dialler.connect(asyncio.Protocol, host, server.port),
            "open_stream": lambda: dialler.open_stream(host, server.port),
        }
        with pytest.raises(DestinationDenied):
            await opening[how]()


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
async def test_the_unspecified_address_is_loopback_and_not_dialled(host: str) -> None:
    async with forbidden() as server:
        with pytest.raises(DestinationDenied):
            await Dialler(DEFAULT).connect(asyncio.Protocol, host, server.port)


async def test_of_the_addresses_of_a_name_those_that_are_denied_are_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def resolve(host: str, port: int, **asked: object) -> list[tuple[object, ...]]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (each, port)) for each in ("127.0.0.1", "127.0.0.2")]

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolve)
    async with forbidden() as server:
        listener = await asyncio.start_server(accept, "127.0.0.2", server.port)
        dialled = await without("127.0.0.1").dial("two.example", server.port)
        assert dialled.getpeername()[0] == "127.0.0.2"
        dialled.close()
        found = await without("127.0.0.1").find_for_datagrams("two.example", 53)
        assert found[4][0] == "127.0.0.2"
        listener.close()


async def test_a_failure_to_connect_is_told_before_a_denial() -> None:
    """The reason that somebody can do something about is that of an address which may be connected to."""
    with pytest.raises(ConnectionRefusedError):
        await without("127.0.0.1").dial("127.0.0.2", free_port())
