"""DNS-01 by a command of the operator's, which knows how records are set where the zone is."""

import asyncio
from collections.abc import Sequence
from typing import Final

from headgate.translator.leading.acme.errors import OrderFailed

LIMIT_S: Final = 600.0
"""A record may take minutes to be seen by all servers of a zone, which the command waits for."""
_SHOWN: Final = 300


async def run_hook(command: Sequence[str], action: str, host: str, value: str) -> None:
    """Run `COMMAND present|cleanup _acme-challenge.HOST VALUE`; it is done when the record is seen, or gone.

    Raises:
        OrderFailed: it failed, or took too long.
    """
    arguments = (*command, action, f"_acme-challenge.{host}", value)
    try:
        process = await asyncio.create_subprocess_exec(
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        raise OrderFailed(f"the DNS command cannot be run: {error.strerror or error}") from error
    try:
        async with asyncio.timeout(LIMIT_S):
            _, said = await process.communicate()
    except TimeoutError as error:
        raise OrderFailed(f"the DNS command took more than {LIMIT_S:.0f} s to {action} {host}") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        told = " ".join(said.decode(errors="replace").split())[-_SHOWN:]
        raise OrderFailed(f"the DNS command failed to {action} {host} ({process.returncode}): {told}")
