"""An LDAP server that knows simple binds (RFC 4511): names and passwords in, result codes out."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager


def _parts(content: bytes) -> list[tuple[int, bytes]]:
    """Cut BER into tags and contents; lengths up to 255."""
    found = []
    while content:
        start = 3 if content[1] == 0x81 else 2
        end = start + content[start - 1]
        found.append((content[0], content[start:end]))
        content = content[end:]
    return found


class LdapServer:
    """A running server."""

    def __init__(self, users: Mapping[str, str]) -> None:
        self.users = users
        self.binds: list[tuple[str, str]] = []
        self.answer: bytes | None = None
        """Sent instead of a result."""
        self.is_silent = False
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one bind, and wait for the end."""
        [(_, message)] = _parts(await reader.read(4096))
        (_, number), (tag, bind) = _parts(message)
        (_, version), (_, name), (kind, password) = _parts(bind)
        assert (number, tag, version, kind) == (b"\x01", 0x60, b"\x03", 0x80)
        self.binds.append((name.decode(), password.decode()))
        if not self.is_silent:
            code = 0 if self.users.get(name.decode()) == password.decode() else 49
            writer.write(self.answer or bytes.fromhex(f"300c02010161070a01{code:02x}04000400"))
        await reader.read()
        writer.close()


@asynccontextmanager
async def ldap_server(users: Mapping[str, str], tls: ssl.SSLContext | None = None) -> AsyncIterator[LdapServer]:
    """Run a server on a free port of 127.0.0.1."""
    ldap = LdapServer(users)
    server = await asyncio.start_server(ldap.serve, "127.0.0.1", 0, ssl=tls)
    ldap.port = server.sockets[0].getsockname()[1]
    try:
        yield ldap
    finally:
        server.close()
        await server.wait_closed()
