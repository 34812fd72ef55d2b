"""Applications behind FastCGI: one of which every byte is decided by the test, and PHP."""

import asyncio
import contextlib
import shutil
import struct
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from fakes.gateway.ports import free_port
from fakes.gateway.proxied import Conversation, Script

STDIN, STDOUT, STDERR = 5, 6, 7
_BEGIN, _END, _PARAMS = 1, 3, 4
PHP = shutil.which("php-cgi")
"""Debian's package php-cgi."""
needs_php = pytest.mark.skipif(PHP is None, reason="php-cgi is not installed")


class FcgiRequest(NamedTuple):
    """What an application was sent."""

    role: int
    keeps_connection: bool
    params: list[tuple[str, str]]
    body: bytes

    def __getitem__(self, name: str) -> str:  # type: ignore[override]
        """Return the value of a parameter that was sent once."""
        (value,) = [value for key, value in self.params if key == name]
        return value

    def names(self) -> set[str]:
        return {name for name, _ in self.params}


def record(kind: int, content: bytes = b"", *, version: int = 1, request: int = 1, padding: int = 0) -> bytes:
    """Write one record."""
    return struct.pack(">BBHHBx", version, kind, request, len(content), padding) + content + bytes(padding)


def end(status: int = 0, application: int = 0) -> bytes:
    """Write the record that ends a request."""
    return record(_END, struct.pack(">IB3x", application, status))


def output(*pieces: bytes, padding: int = 0) -> bytes:
    """Write a whole answer: its output in pieces, and its end."""
    return b"".join(record(STDOUT, piece, padding=padding) for piece in pieces) + record(STDOUT) + end()


async def read_request(conversation: Conversation) -> FcgiRequest:
    """Read the records of a request, to the end of its body."""
    streams = {_PARAMS: b"", STDIN: b""}
    begun = (0, False)
    while True:
        version, kind, number, length, padding = struct.unpack(">BBHHBx", await conversation.reader.readexactly(8))
        content = await conversation.reader.readexactly(length)
        await conversation.reader.readexactly(padding)
        assert (version, number) == (1, 1)
        if kind == _BEGIN:
            role, flags = struct.unpack(">HB5x", content)
            begun = (role, bool(flags & 1))
        else:
            streams[kind] += content
            if kind == STDIN and not length:
                return FcgiRequest(*begun, list(_pairs(streams[_PARAMS])), streams[STDIN])


def _pairs(data: bytes) -> "list[tuple[str, str]]":
    found, at = [], 0
    while at < len(data):
        sizes = []
        for _ in range(2):
            size = data[at]
            step = 1
            if size >> 7:
                size, step = struct.unpack_from(">I", data, at)[0] & 0x7FFF_FFFF, 4
            sizes.append(size)
            at += step
        name, value = data[at : at + sizes[0]], data[at + sizes[0] : at + sum(sizes)]
        found.append((name.decode("latin-1"), value.decode("latin-1")))
        at += sum(sizes)
    return found


def application(
    answer: Callable[[FcgiRequest], bytes | Awaitable[bytes]] | bytes,
    asked: list[FcgiRequest] | None = None,
    *,
    bytewise: bool = False,
) -> Script:
    """Script: answers each connection's request with these records, and closes."""

    async def script(conversation: Conversation) -> None:
        request = await read_request(conversation)
        if asked is not None:
            asked.append(request)
        records = answer if isinstance(answer, bytes) else answer(request)
        if not isinstance(records, bytes):
            records = await records
        await conversation.send(records, bytewise=bytewise)

    return script


@contextlib.asynccontextmanager
async def php() -> AsyncIterator[int]:
    """Run PHP as a FastCGI server; gives its port."""
    assert PHP is not None
    port = free_port()
    environment = {"PHP_FCGI_MAX_REQUESTS": "0"}
    process = subprocess.Popen(  # noqa: ASYNC220 - uvloop's own hangs here
        [PHP, "-n", "-b", f"127.0.0.1:{port}"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment
    )
    try:
        await _listens(process, port)
        yield port
    finally:
        process.terminate()
        process.communicate(timeout=20)


async def _listens(process: "subprocess.Popen[bytes]", port: int) -> None:
    for _ in range(400):
        if process.poll() is not None:
            raise AssertionError(f"PHP ended: {process.communicate()[1].decode()}")
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            return
        await asyncio.sleep(0.025)
    raise AssertionError("PHP does not listen")


def php_script(folder: Path, name: str, text: str) -> Path:
    """Write a script of PHP."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"<?php {text}")
    return path
