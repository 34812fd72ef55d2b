"""In which order processes are started."""

import asyncio
import io
import sys
from pathlib import Path

import pytest

from headgate.cli.up.data_dir import LARGE_TABLE, has_large_table
from headgate.cli.up.log_output import LogOutput
from headgate.cli.up.plan import UpPlan
from headgate.cli.up.process import ProcessSpec
from headgate.cli.up.supervisor import Supervisor

_WAIT = (sys.executable, "-c", "import time; time.sleep(60)")


def plan() -> UpPlan:
    watcher, translator, gateway = (ProcessSpec(name, _WAIT) for name in ("watcher", "translator", "gateway"))
    return UpPlan(broker=None, watcher=watcher, translator=translator, gateway=gateway, demo_backends=())


class Watched:
    """A supervisor whose processes are listed as they start."""

    def __init__(self) -> None:
        self.running: set[str] = set()
        self.stopping = asyncio.Event()
        self.supervisor = Supervisor(plan(), LogOutput(io.BytesIO(), width=10, colour=False), self._note)

    def _note(self, running: dict[str, int], restarts: dict[str, int]) -> None:
        self.running = {*running}

    async def until(self, names: set[str]) -> None:
        async with asyncio.timeout(10):
            while self.running != names:  # noqa: ASYNC110
                await asyncio.sleep(0.01)


async def _at_once() -> None:
    return


async def test_all_start_together_where_no_table_is_known() -> None:
    watched = Watched()
    task = asyncio.create_task(watched.supervisor.run(_at_once, watched.stopping))
    await watched.until({"watcher", "translator", "gateway"})
    watched.stopping.set()
    await task


async def test_a_gateway_that_knows_a_table_starts_first() -> None:
    watched, serves = Watched(), asyncio.Event()

    async def traffic_is_up() -> None:
        await serves.wait()

    task = asyncio.create_task(watched.supervisor.run(_at_once, watched.stopping, traffic_is_up))
    await watched.until({"gateway"})
    await asyncio.sleep(0.2)
    assert watched.running == {"gateway"}
    serves.set()
    await watched.until({"watcher", "translator", "gateway"})
    watched.stopping.set()
    await task


async def test_who_ends_it_meanwhile_waits_for_no_table() -> None:
    watched = Watched()
    task = asyncio.create_task(watched.supervisor.run(_at_once, watched.stopping, asyncio.Event().wait))  # type: ignore[arg-type]
    await watched.until({"gateway"})
    watched.stopping.set()
    async with asyncio.timeout(10):
        await task
    assert watched.running == set()


@pytest.mark.parametrize(("size", "is_large"), [(0, False), (LARGE_TABLE, False), (LARGE_TABLE + 1, True)])
def test_a_table_on_disk_is_large_from_some_thousand_hosts_on(tmp_path: Path, size: int, is_large: bool) -> None:
    assert not has_large_table(tmp_path)
    (tmp_path / "table-default.last-good").write_bytes(bytes(size))
    assert has_large_table(tmp_path) is is_large
