"""Writes of one turn of the event loop."""

import asyncio
from typing import Any

from headgate.gateway.proxy.outbox import Outbox, OutboxTransport


class Wire(asyncio.Transport):
    """Notes what is written; fails if it is broken."""

    def __init__(self, *, is_broken: bool = False) -> None:
        super().__init__()
        self.is_broken = is_broken
        self.written: list[bytes] = []
        self.is_aborted = False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def can_write_eof(self) -> bool:
        return True

    def is_closing(self) -> bool:
        return self.is_aborted

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self.is_broken:
            raise RuntimeError("broken wire")
        self.written.append(bytes(data))

    def abort(self) -> None:
        self.is_aborted = True


async def test_writes_of_a_turn_leave_in_one_piece_at_its_end() -> None:
    outbox, wire = Outbox(), Wire()
    transport = OutboxTransport(wire, outbox, 1000)
    transport.write(b"a")
    transport.write(b"b")
    assert wire.written == []
    await asyncio.sleep(0)
    assert b"".join(wire.written) == b"ab"


async def test_a_connection_that_cannot_be_written_to_costs_no_other_its_bytes() -> None:
    outbox, told = Outbox(), list[dict[str, Any]]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    wires = [Wire(), Wire(is_broken=True), Wire()]
    for wire in wires:
        OutboxTransport(wire, outbox, 1000).write(b"x")
    await asyncio.sleep(0)
    assert [wire.written for wire in wires] == [[b"x"], [], [b"x"]]
    assert [wire.is_aborted for wire in wires] == [False, True, False]
    assert [str(context["exception"]) for context in told] == ["broken wire"]
    OutboxTransport(wires[0], outbox, 1000).write(b"y")
    await asyncio.sleep(0)
    assert wires[0].written == [b"x", b"y"]
