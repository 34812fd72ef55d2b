"""Datagrams that came to the wrong worker, over real sockets."""

import asyncio
from pathlib import Path

from fakes.waiting import until
from headgate.gateway.quic.forwarding import WorkerForwarding

ID = b"8 bytes."
ADDRESSES = [("192.0.2.1", 4433), ("2001:db8::1", 4433, 7, 3)]
Taken = tuple[bytes, bytes, tuple[object, ...]]


class Worker:
    """Takes datagrams of the connections that it has."""

    def __init__(self, folder: Path, index: int, *ids: bytes) -> None:
        self.forwarding = WorkerForwarding(folder, index, 3)
        self.taken: list[Taken] = []
        self.seen = 0
        self.ids = set(ids)
        self.forwarding.start(self.take)

    def take(self, connection_id: bytes, data: bytes, address: tuple[object, ...]) -> bool:
        self.seen += 1
        if connection_id not in self.ids:
            return False
        self.taken.append((connection_id, data, address))
        return True


async def test_a_datagram_reaches_the_worker_that_has_its_connection_with_the_clients_address(tmp_path: Path) -> None:
    first, second, third = Worker(tmp_path, 0), Worker(tmp_path, 1, ID), Worker(tmp_path, 2)
    for address in ADDRESSES:
        first.forwarding.forward(ID, b"\x40" + ID + b"data", address)
    await until(lambda: len(second.taken) == 2)
    assert second.taken == [(ID, b"\x40" + ID + b"data", address) for address in ADDRESSES]
    assert (first.taken, third.taken) == ([], [])
    for each in (first, second, third):
        each.forwarding.close()


async def test_once_a_worker_has_answered_it_alone_is_asked(tmp_path: Path) -> None:
    first, second, third = Worker(tmp_path, 0), Worker(tmp_path, 1, ID), Worker(tmp_path, 2)
    first.forwarding.forward(ID, b"1", ADDRESSES[0])
    await until(lambda: second.taken and third.seen)
    await asyncio.sleep(0.05)
    for _ in range(5):
        first.forwarding.forward(ID, b"2", ADDRESSES[0])
    await until(lambda: len(second.taken) == 6)
    assert third.seen == 1
    for each in (first, second, third):
        each.forwarding.close()


async def test_all_are_asked_again_when_the_worker_is_gone(tmp_path: Path) -> None:
    first, second, third = Worker(tmp_path, 0), Worker(tmp_path, 1, ID), Worker(tmp_path, 2)
    first.forwarding.forward(ID, b"1", ADDRESSES[0])
    await until(lambda: second.taken and third.seen)
    await asyncio.sleep(0.05)
    second.forwarding.close()
    third.ids.add(ID)
    first.forwarding.forward(ID, b"2", ADDRESSES[0])
    await until(lambda: third.taken)
    for each in (first, third):
        each.forwarding.close()


async def test_what_no_worker_has_is_dropped_and_asked_for_within_bounds(tmp_path: Path) -> None:
    first, second = Worker(tmp_path, 0), Worker(tmp_path, 1)
    for number in range(5000):
        first.forwarding.forward(number.to_bytes(8, "big"), b"noise", ADDRESSES[0])
    await asyncio.sleep(0.1)
    assert 0 < second.seen < 2000
    assert second.taken == []
    for each in (first, second):
        each.forwarding.close()
