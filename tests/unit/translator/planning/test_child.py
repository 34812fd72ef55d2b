"""Work in a forked child: its answer, its bounds, and what is left of it."""

import asyncio
import os
import resource
import subprocess
import sys
import time

import pytest

from headgate.translator.planning.child import Bounds, run_apart
from headgate.translator.planning.errors import ChildFailed

BOUNDS = Bounds(seconds=20.0, memory_bytes=256 * 1024 * 1024, answer_bytes=1024 * 1024)


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Processes that were forked."""
    found: list[int] = []
    fork = os.fork

    def note() -> int:
        if child := fork():
            found.append(child)
        return child

    monkeypatch.setattr(os, "fork", note)
    return found


async def test_what_the_child_returns_is_the_answer_however_long() -> None:
    assert await run_apart(lambda: b"x" * 1_000_000, BOUNDS) == b"x" * 1_000_000
    assert await run_apart(lambda: b"", BOUNDS) == b""


async def test_what_the_child_changes_stays_as_it_was() -> None:
    world = {"a": 1}

    def change() -> bytes:
        world["a"] = 2
        return str(world).encode()

    assert await run_apart(change, BOUNDS) == b"{'a': 2}"
    assert world == {"a": 1}


async def test_the_loop_goes_on_while_the_child_works() -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    await run_apart(lambda: time.sleep(0.1) or b"", BOUNDS)
    counting.cancel()
    assert turns > 10


async def test_a_child_that_takes_too_long_is_ended(children: list[int]) -> None:
    with pytest.raises(ChildFailed, match=r"more than 0.2 s"):
        await run_apart(lambda: time.sleep(60) or b"", BOUNDS._replace(seconds=0.2))
    assert not any(map(is_there, children))


async def test_a_child_may_use_the_processor_for_all_of_its_time() -> None:
    def limits() -> bytes:
        return str(resource.getrlimit(resource.RLIMIT_CPU)).encode()

    assert await run_apart(limits, BOUNDS._replace(seconds=2.5)) == b"(3, 3)"


async def test_a_child_that_has_lost_its_parent_ends() -> None:
    script = (
        "import asyncio, os, signal, time\n"
        "from headgate.translator.planning.child import Bounds, run_apart\n"
        "def work():\n"
        "    os.kill(os.getppid(), signal.SIGKILL)\n"
        "    os.write(1, b'begun')\n"
        "    time.sleep(60)\n"
        "asyncio.run(run_apart(work, Bounds(5.0, 1 << 28, 1000)))"  # on a busy machine the child begins late
    )
    began = time.monotonic()
    # The output ends when the last process that has it does.
    said = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", script], stdout=subprocess.PIPE, timeout=60, check=False
    )
    assert said.stdout == b"begun"
    assert time.monotonic() - began < 30


async def test_a_child_that_answers_too_much_is_ended(children: list[int]) -> None:
    with pytest.raises(ChildFailed, match="more than 1,000 bytes"):
        await run_apart(lambda: b"x" * 1_000_000, BOUNDS._replace(answer_bytes=1000))
    assert not any(map(is_there, children))


@pytest.mark.skipif(sys.platform != "linux", reason="the size of a process is read from /proc")
async def test_a_child_that_takes_too_much_memory_fails() -> None:
    with pytest.raises(ChildFailed, match="more than 256 MiB"):
        await run_apart(lambda: bytes(512 * 1024 * 1024)[:1], BOUNDS)


async def test_a_child_that_has_too_many_pages_copied_fails() -> None:
    held = bytearray(b"x") * (64 * 1024 * 1024)

    def write() -> bytes:
        while True:
            for place in range(0, len(held), 4096):
                held[place] = 0

    with pytest.raises(ChildFailed, match="more than 16 MiB"):
        await run_apart(write, BOUNDS._replace(memory_bytes=16 * 1024 * 1024))


async def test_a_child_that_raises_fails_and_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ChildFailed, match="it ended with 1"):
        await run_apart(lambda: bytes([1 // 0]), BOUNDS)
    said = capfd.readouterr()
    # Where other tests have left gRPC with threads, it says that it does nothing about the fork.
    assert (said.out, [line for line in said.err.splitlines() if "gRPC" not in line]) == ("", [])


async def test_a_cancelled_wait_ends_the_child(children: list[int]) -> None:
    waiting = asyncio.create_task(run_apart(lambda: time.sleep(60) or b"", BOUNDS))
    await asyncio.sleep(0.05)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not any(map(is_there, children))


async def test_the_child_has_none_of_the_parents_descriptors() -> None:
    reading, writing = os.pipe()
    try:
        assert (await run_apart(lambda: repr(is_open(writing)).encode(), BOUNDS)) == b"False"
    finally:
        os.close(reading)
        os.close(writing)


def test_a_child_of_a_process_that_may_write_traces_is_not_stuck() -> None:
    """The SDK of OpenTelemetry starts threads in a forked child, which wait for a lock that has to be mended before."""
    script = (
        "import headgate.common.service.telemetry, concurrent.futures.thread, asyncio\n"
        "from headgate.translator.planning.child import Bounds, run_apart\n"
        "print(asyncio.run(run_apart(lambda: b'free', Bounds(20.0, 1 << 28, 1000))))"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (said.stdout, said.stderr) == ("b'free'\n", "")


def is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


async def test_nothing_is_left_open_where_there_is_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise BlockingIOError("no more processes")

    monkeypatch.setattr(os, "fork", refuse)
    before = os.listdir("/proc/self/fd")
    with pytest.raises(BlockingIOError):
        await run_apart(lambda: b"", BOUNDS)
    assert os.listdir("/proc/self/fd") == before
