"""Waiting for what was started, and telling the user where it is."""

import asyncio
from urllib.parse import urlsplit

import aiohttp

POLL_S = 0.05


async def wait_for_nats(url: str) -> None:
    """Return once a NATS server greets at the URL (the first of several)."""
    address = urlsplit(url.split(",")[0])
    while True:
        try:
            async with asyncio.timeout(1):
                reader, writer = await asyncio.open_connection(address.hostname, address.port or 4222)
                try:
                    if (await reader.readline()).startswith(b"INFO "):
                        return
                finally:
                    writer.close()
        except (OSError, TimeoutError):
            await asyncio.sleep(POLL_S)


async def wait_until_ready(admin_url: str) -> None:
    """Return once the gateway says that it serves a table."""
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=2)) as session:
        while True:
            try:
                async with session.get(f"{admin_url}/readyz") as answer:
                    if answer.status == 200:
                        return
            except (aiohttp.ClientError, TimeoutError):
                pass  # not up yet, or being restarted
            await asyncio.sleep(POLL_S)
