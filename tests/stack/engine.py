"""Docker's engine, as tests need it."""

import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
BOUND_S = 120.0
"""For what takes seconds on an idle machine."""
BUILD_S = 1800.0
"""For images that are made from nothing, proxy and all."""


async def run(*command: str, within_s: float = BOUND_S, **environment: str) -> str:
    """What a command prints; if it fails, what it said is the test's failure."""
    code, out, err = await _end(command, within_s, environment)
    assert code == 0, f"{' '.join(command)}: {code}\n{(out + err)[-4000:]}"
    return out.strip()


async def hear(*command: str, within_s: float = BOUND_S, **environment: str) -> str:
    """All that a command says, also on standard error, whether it fails or not."""
    _, out, err = await _end(command, within_s, environment)
    return out + err


async def _end(command: tuple[str, ...], within_s: float, environment: dict[str, str]) -> tuple[int | None, str, str]:
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=ROOT,
        env=os.environ | environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(within_s):
            out, err = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        raise AssertionError(f"{' '.join(command)} did not end within {within_s} s") from None
    return process.returncode, out.decode(), err.decode()


async def docker(*arguments: str, within_s: float = BOUND_S) -> str:
    return await run("docker", *arguments, within_s=within_s)


async def inspect(name: str) -> Any:
    """What the engine knows of a container or an image."""
    return json.loads(await docker("inspect", name))[0]


async def eventually(what: str, holds: Callable[[], Awaitable[bool]], within_s: float = BOUND_S) -> None:
    """Wait for a condition."""
    end = time.monotonic() + within_s
    while not await holds():
        assert time.monotonic() < end, f"not within {within_s} s: {what}"
        await asyncio.sleep(0.3)
