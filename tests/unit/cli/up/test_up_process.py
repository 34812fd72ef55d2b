"""Supervised processes: restarted, ended, and never left behind."""

import asyncio
import io
import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

from fakes.waiting import until
from headgate.cli.terminal.errors import UsageMistake
from headgate.cli.up import tether
from headgate.cli.up.command import choose_broker
from headgate.cli.up.log_output import LogOutput
from headgate.cli.up.options import UpOptions
from headgate.cli.up.process import ProcessSpec, RestartPauses, SupervisedProcess


def supervised(code: str, *, stop_within_s: float = 5.0) -> tuple[SupervisedProcess, io.BytesIO]:
    sink = io.BytesIO()
    spec = ProcessSpec("child", (sys.executable, "-c", code), stop_within_s=stop_within_s)
    return SupervisedProcess(spec, LogOutput(sink, width=5, colour=False).channel("child"), lambda: None), sink


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_the_first_restart_is_at_once_and_later_ones_wait_longer() -> None:
    pauses = RestartPauses()
    assert [pauses.next(1) for _ in range(8)] == [0, 0.5, 1, 2, 4, 8, 10, 10]


def test_a_process_that_ran_long_is_restarted_at_once_again() -> None:
    pauses = RestartPauses()
    assert [pauses.next(ran) for ran in (1, 1, 3600, 1)] == [0, 0.5, 0, 0.5]


async def test_a_process_that_dies_is_started_again() -> None:
    process, sink = supervised("print('hello', flush=True); import time; time.sleep(60)")
    run = asyncio.create_task(process.run())
    await until(lambda: b"hello" in sink.getvalue())
    assert process.pid
    os.kill(process.pid, signal.SIGKILL)
    await until(lambda: sink.getvalue().count(b"hello") == 2)
    assert process.restarts == 1
    assert b"child | was killed by SIGKILL; starting it again now\n" in sink.getvalue()
    await process.stop()
    await run


async def test_what_a_start_needs_is_prepared_before_every_start() -> None:
    sink = io.BytesIO()
    starts = iter(["first", "second"])
    spec = ProcessSpec(
        "child",
        (sys.executable, "-c", "import sys, time; print(sys.argv[1], flush=True); time.sleep(60)"),
        prepare=lambda: (next(starts),),
    )
    process = SupervisedProcess(spec, LogOutput(sink, width=5, colour=False).channel("child"), lambda: None)
    run = asyncio.create_task(process.run())
    await until(lambda: b"first" in sink.getvalue())
    assert process.pid
    os.kill(process.pid, signal.SIGKILL)
    await until(lambda: b"second" in sink.getvalue())
    await process.stop()
    await run


async def test_a_start_that_the_system_refuses_is_tried_again() -> None:
    sink = io.BytesIO()
    answers: list[OSError | None] = [OSError(28, "No space left on device"), None]

    def prepare() -> tuple[str, ...]:
        if answer := answers.pop(0):
            raise answer
        return ()

    spec = ProcessSpec("child", (sys.executable, "-c", "print('hello'); import time; time.sleep(60)"), prepare=prepare)
    process = SupervisedProcess(spec, LogOutput(sink, width=5, colour=False).channel("child"), lambda: None)
    run = asyncio.create_task(process.run())
    await until(lambda: process.pid is not None)
    assert b"cannot be started: [Errno 28] No space left on device; starting it again now" in sink.getvalue()
    await process.stop()
    await run


def test_the_nats_server_comes_back_when_its_folder_was_removed(tmp_path: Path) -> None:
    spec, _ = choose_broker(UpOptions(data_dir=tmp_path))
    assert spec is not None
    spec.prepare()
    shutil.rmtree(tmp_path / "nats")
    config = Path(spec.prepare()[-1])
    assert config.is_file()


async def test_refused_settings_are_not_tried_again() -> None:
    process, _ = supervised("import sys; sys.exit(2)")
    with pytest.raises(UsageMistake, match="did not accept its settings") as refusal:
        await process.run()
    assert refusal.value.exit_code == 2
    assert process.restarts == 0


async def test_a_process_that_ignores_sigterm_is_killed_with_what_it_started() -> None:
    code = (
        "import signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    process, sink = supervised(code, stop_within_s=0.2)
    run = asyncio.create_task(process.run())
    await until(lambda: sink.getvalue().endswith(b"\n"))
    grandchild = int(sink.getvalue().split()[-1])
    await process.stop()
    await run
    await until(lambda: not is_alive(grandchild))
    assert b"did not end within 0.2 s; killing it" in sink.getvalue()


async def test_a_stop_before_the_start_starts_nothing() -> None:
    process, sink = supervised("print('never')")
    await process.stop()
    await process.run()
    assert sink.getvalue() == b""


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux's")
async def test_a_tethered_program_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    child_code = "import os, sys, time; open(sys.argv[1], 'w').write(f'{os.getpid()}\\n'); time.sleep(60)"
    parent_code = (
        "import os, subprocess, sys, time\n"
        "tether, child_code, note = sys.argv[1:]\n"
        "me = sys.executable\n"
        "subprocess.Popen([me, '-I', tether, str(os.getpid()), me, '-c', child_code, note])\n"
        "time.sleep(60)\n"
    )
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", parent_code, tether.__file__, child_code, str(note)
    )
    await until(lambda: note.exists() and note.read_text().endswith("\n"))
    child = int(note.read_text())
    assert is_alive(child)
    parent.kill()
    await parent.wait()
    await until(lambda: not is_alive(child))


async def test_a_tethered_program_does_not_begin_without_its_parent() -> None:
    nobody = 2**22 + 1  # above any process id
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", tether.__file__, str(nobody), sys.executable, "-c", "print('began')"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    printed, complaint = await process.communicate()
    assert printed == b""
    assert b"the parent ended" in complaint
