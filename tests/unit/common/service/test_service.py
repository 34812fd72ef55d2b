"""A service's life: start, signals, end, exit code."""

import asyncio
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import aiohttp
import pytest

from headgate.common.errors import StoreError
from headgate.common.service.admin import AdminSite
from headgate.common.service.service import Main, ServiceContext, run_service
from headgate.common.service.settings import ServiceSettings


@pytest.fixture(autouse=True)
def _restore_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def run(main: Main, **settings: Any) -> int:
    return run_service("demo", ServiceSettings(**settings), main)


def signal_self(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_main_that_returns_is_a_success() -> None:
    async def main(context: ServiceContext) -> None:
        assert context.settings.log_level == "info"
        assert context.health is context.admin.health
        assert not context.admin.is_started

    assert run(main) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_asks_main_to_finish(number: signal.Signals) -> None:
    async def main(context: ServiceContext) -> None:
        signal_self(number)
        await context.stopping.wait()
        assert context.health.readiness()["stopping"] == "asked to stop"

    assert run(main) == 0


def test_a_main_that_does_not_finish_is_cancelled_after_the_grace_period(capsys: pytest.CaptureFixture[str]) -> None:
    cleaned = []

    async def main(context: ServiceContext) -> None:
        signal_self(signal.SIGTERM)
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append(True)

    assert run(main, grace_s=0.05) == 1
    assert cleaned == [True]
    assert "not finished within the grace period" in capsys.readouterr().err


def test_a_second_signal_cuts_the_grace_period_short() -> None:
    async def main(context: ServiceContext) -> None:
        signal_self(signal.SIGTERM)
        await context.stopping.wait()
        signal_self(signal.SIGTERM)
        await asyncio.Event().wait()

    assert run(main, grace_s=100) == 1


def test_an_error_of_ours_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    async def main(context: ServiceContext) -> None:
        raise StoreError("the store said no")

    assert run(main) == 1
    printed = capsys.readouterr().err
    assert "the store said no" in printed
    assert "Traceback" not in printed


def test_an_error_that_nobody_expected_has_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    async def main(context: ServiceContext) -> None:
        raise RuntimeError("boom")

    assert run(main) == 1
    assert "Traceback" in capsys.readouterr().err


def test_the_admin_site_serves_while_main_runs() -> None:
    seen = []

    def prepare(admin: AdminSite) -> None:
        admin.add_readiness("table", lambda: "not yet")

    async def main(context: ServiceContext) -> None:
        async with aiohttp.ClientSession() as session, session.get(f"{context.admin.url}/readyz") as answer:
            seen.append((answer.status, (await answer.json())["checks"]))

    settings = ServiceSettings(admin_port=free_port())
    assert run_service("demo", settings, main, use_uvloop=True, prepare=prepare) == 0
    assert seen == [(503, {"stopping": None, "table": "not yet"})]


def test_an_admin_port_that_is_taken_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    async def main(context: ServiceContext) -> None:
        raise AssertionError("must not run")

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert run(main, admin_port=port) == 1
    assert f"admin_port: {port} cannot be bound" in capsys.readouterr().err


def test_a_process_leaves_with_its_code_and_what_it_has_written() -> None:
    program = (
        "import sys\n"
        "from headgate.common.service.service import leave\n"
        "class Slow:\n"
        "    def __del__(self) -> None:\n"
        "        print('taken apart')\n"
        "kept = Slow()\n"
        "sys.stdout.write('written')\n"
        "leave(3)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout) == (3, "written")
