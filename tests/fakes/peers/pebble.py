"""Pebble, Let's Encrypt's small authority for tests, on loopback. It is built once, from its Go module."""

import asyncio
import contextlib
import json
import os
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import aiohttp
import dns.message
import dns.rdatatype
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from fakes.gateway.ports import free_ports
from fakes.gateway.tls import Authority
from fakes.peers.name_server import NameServer
from fakes.waiting import until

VERSION = "v2.10.1"
MODULE = "github.com/letsencrypt/pebble/v2/cmd/pebble"
_FOLDER = Path(__file__).parents[3] / "bench" / ".work" / f"pebble-{VERSION}"
_BUILD_S = 600
needs_go = pytest.mark.skipif(shutil.which("go") is None, reason="Go is not installed")


def built() -> Path:
    """Return the program, building it on first use."""
    program = _FOLDER / "pebble"
    if not program.exists():
        draft = _FOLDER.with_name(f"{_FOLDER.name}-{os.getpid()}")
        subprocess.run(
            ["go", "install", f"{MODULE}@{VERSION}"],
            env={**os.environ, "GOBIN": str(draft), "GOFLAGS": "-mod=mod"},
            check=True,
            timeout=_BUILD_S,
        )
        # Another test process may have built it meanwhile.
        with contextlib.suppress(OSError):
            draft.rename(_FOLDER)
        shutil.rmtree(draft, ignore_errors=True)
    return program


@dataclass(frozen=True)
class Pebble:
    """A running Pebble. Every name is on loopback, and is asked about at the ports of the gateway."""

    directory: str
    ca_file: Path
    log: Path
    management: str
    names: NameServer

    def orders(self) -> int:
        """Return how many orders were made."""
        return self.log.read_text().count("Added order ")

    async def suggest(self, certificate: x509.Certificate, start: str, end: str) -> None:
        """Have it say when it wants a certificate renewed."""
        context = ssl.create_default_context(cafile=self.ca_file)
        told = {
            "certificate": certificate.public_bytes(serialization.Encoding.PEM).decode(),
            "ariResponse": json.dumps({"suggestedWindow": {"start": start, "end": end}}),
        }
        url = f"{self.management}/set-renewal-info/"
        async with aiohttp.ClientSession() as session, session.post(url, json=told, ssl=context) as answer:
            assert answer.status == 200, await answer.text()

    async def root(self) -> str:
        """Return the root of the certificates that it issues, in PEM."""
        context = ssl.create_default_context(cafile=self.ca_file)
        async with aiohttp.ClientSession() as session, session.get(f"{self.management}/roots/0", ssl=context) as answer:
            return await answer.text()


class AnyNameServer(NameServer):
    """Every name is 127.0.0.1; other records are as in the dictionary. It is asked over TCP, too."""

    async def __aenter__(self) -> Self:
        while True:
            await super().__aenter__()
            # The port is free for UDP; another test may have it for TCP.
            with contextlib.suppress(OSError):
                self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
                return self
            await super().__aexit__(None, None, None)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        await super().__aexit__(kind, error, trace)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, OSError):
            while True:
                size = int.from_bytes(await reader.readexactly(2), "big")
                answer = self.answer(await reader.readexactly(size))
                writer.write(len(answer).to_bytes(2, "big") + answer)
        writer.close()

    def answer(self, data: bytes) -> bytes:
        question = dns.message.from_wire(data).question[0]
        name = question.name.to_text()
        if question.rdtype == dns.rdatatype.A:
            self.records.setdefault((name, "A"), (1, ["127.0.0.1"]))
        else:
            self.records.setdefault((name, "-"), (1, []))
        return super().answer(data)


@contextlib.asynccontextmanager
async def pebble(
    folder: Path,
    *,
    http_port: int,
    https_port: int,
    environment: Mapping[str, str] | None = None,
    life_s: int = 3600,
    account_keys: Mapping[str, str] | None = None,
) -> AsyncIterator[Pebble]:
    """Run Pebble in a folder, which asks gateways at these ports. With `account_keys` accounts have to be bound."""
    port, management = free_ports(2)
    authority = Authority("Pebble's own")
    chain, key = authority.issue("localhost", x509.DNSName("localhost")).write(folder)
    ca_file = folder / "ca.pem"
    ca_file.write_bytes(authority.pem)
    config = {
        "listenAddress": f"127.0.0.1:{port}",
        "managementListenAddress": f"127.0.0.1:{management}",
        "certificate": str(chain),
        "privateKey": str(key),
        "httpPort": http_port,
        "tlsPort": https_port,
        "ocspResponderURL": "",
        "externalAccountBindingRequired": bool(account_keys),
        "externalAccountMACKeys": dict(account_keys or {}),
        "retryAfter": {"authz": 1, "order": 1},
        "profiles": {"default": {"description": "for tests", "validityPeriod": life_s}},
    }
    (folder / "config.json").write_text(json.dumps({"pebble": config}))
    log = folder / "pebble.log"
    program = await asyncio.to_thread(built)
    async with AnyNameServer({}) as names:
        with log.open("wb") as output:
            process = await asyncio.create_subprocess_exec(
                *(program, "-config", folder / "config.json", "-dnsserver", f"127.0.0.1:{names.port}"),
                stdout=output,
                stderr=output,
                env={**os.environ, "PEBBLE_VA_NOSLEEP": "1", "PEBBLE_WFE_NONCEREJECT": "30", **(environment or {})},
            )
        try:
            found = Pebble(f"https://localhost:{port}/dir", ca_file, log, f"https://localhost:{management}", names)
            await until(lambda: _is_open(port), 30.0, despite=(OSError,))
            yield found
        finally:
            process.kill()
            await process.wait()


async def _is_open(port: int) -> bool:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.close()
    return True
