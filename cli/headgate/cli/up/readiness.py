"""Waiting for what was started, and saying what is waited for when it takes long."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

import aiohttp

POLL_S = 0.05
TELL_AFTER_S = 5.0
"""A start takes about a second; a user who waits this long wants to know for what. Said again at twice the time."""

Tell = Callable[[str], None]


async def wait_for_nats(url: str, tell: Tell) -> None:
    """Return once a NATS server greets at the URL (the first of several)."""
    address = urlsplit(url.split(",")[0].strip())

    async def greets() -> str | None:
        return await _greeting_problem(address.hostname or "127.0.0.1", address.port or 4222)

    await _poll(greets, tell)


async def _greeting_problem(host: str, port: int) -> str | None:
    try:
        async with asyncio.timeout(1):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                greeted = (await reader.readline()).startswith(b"INFO ")
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return f"no NATS server answers at {host}:{port}"
    return None if greeted else f"what answers at {host}:{port} is not a NATS server"


async def wait_until_ready(admin_url: str, tell: Tell) -> None:
    """Return once the gateway says that it serves a table."""
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=2)) as session:
        await _poll(lambda: _readiness_problem(session, admin_url), tell)


async def _readiness_problem(session: aiohttp.ClientSession, admin_url: str) -> str | None:
    try:
        async with session.get(f"{admin_url}/readyz") as answer:
            if answer.status == 200:
                return None
            checks = json.loads(await answer.read()).get("checks", {})
    except (aiohttp.ClientError, TimeoutError, ValueError):
        return "the gateway does not answer on its admin port yet"
    return "the gateway is not ready: " + "; ".join(f"{name}: {told}" for name, told in checks.items() if told)


async def _poll(find_problem: Callable[[], Awaitable[str | None]], tell: Tell) -> None:
    loop = asyncio.get_running_loop()
    wait_s = TELL_AFTER_S
    tell_at = loop.time() + wait_s
    while problem := await find_problem():
        if loop.time() >= tell_at:
            tell(f"still waiting: {problem}")
            wait_s *= 2
            tell_at = loop.time() + wait_s
        await asyncio.sleep(POLL_S)
