"""The `headgate` command as a process of its own."""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

BOUND_S = 60.0


class Answer(NamedTuple):
    """What the command said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def json_lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


async def headgate(*words: str, code: int | None = 0, environment: Mapping[str, str] | None = None) -> Answer:
    """Run the command to its end.

    Args:
        words: subcommand, arguments and flags.
        code: exit code that is expected; None: any.
        environment: variables beside our own.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "headgate.cli", *words),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **(environment or {})},
    )
    try:
        async with asyncio.timeout(BOUND_S):
            out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    assert process.returncode is not None
    answer = Answer(process.returncode, out.decode(), err.decode())
    assert code in (None, answer.code), answer
    return answer
