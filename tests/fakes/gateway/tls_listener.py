"""A TLS listener on a certificate store, and clients that look closely."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from headgate.common.secret import Secret
from headgate.common.table import ClientAuth, TlsPolicy
from headgate.gateway.tls import CertificateEntry, CertificateStore, self_signed
from headgate.gateway.tls.handshake import ServerConnection
from headgate.gateway.tls.policy import HostTls, TlsPolicies

PATIENCE_S = 10.0


def entry(*names: str, key_of: bytes | None = None, key: str = "", not_after: str = "") -> CertificateEntry:
    chain, made = self_signed(names[0])
    fingerprint = f"fingerprint of {names} {hash(chain)}"
    return CertificateEntry(names, chain.decode(), Secret(key_of or made), fingerprint, key, not_after)


def asking(ca: bytes, **fields: object) -> TlsPolicy:
    """A policy that asks for client certificates of an authority."""
    return TlsPolicy(client_auth=ClientAuth.model_validate({"ca_pem": ca.decode(), **fields}))


def client_context(files: tuple[Path, Path] | None = None, **options: object) -> ssl.SSLContext:
    """A client that verifies nothing, with a certificate of its own if there are files."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    for option, value in options.items():
        setattr(context, option, value)
    if files:
        context.load_cert_chain(*files)
    return context


def resume(
    port: int, context: ssl.SSLContext, name: str, session: ssl.SSLSession | None = None
) -> tuple[bool, ssl.SSLSession | None]:
    """Talk with or without a session; give whether it was resumed, and the session to come back with. Blocks."""
    with (
        socket.create_connection(("127.0.0.1", port), PATIENCE_S) as plain,
        context.wrap_socket(plain, server_hostname=name, session=session) as tls,
    ):
        tls.sendall(b"ping")
        assert tls.recv(4) == b"ping"
        return bool(tls.session_reused), tls.session


@dataclass
class TlsListener:
    """Echoes; keeps what the server saw of each connection that completed its handshake."""

    store: CertificateStore = field(default_factory=CertificateStore)
    port: int = 0
    accepted: list[ServerConnection] = field(default_factory=list)
    policies: TlsPolicies = field(default_factory=TlsPolicies)
    hosts: dict[bytes, HostTls] = field(default_factory=dict)

    def set_policies(self, policies: Mapping[str, TlsPolicy]) -> None:
        """Let hosts have these policies."""
        self.hosts = {
            name.encode(): compiled
            for name, policy in policies.items()
            if (compiled := self.policies.compile(policy, name))
        }
        self.store.set_policies(lambda name: self.hosts.get(name))

    async def open(
        self, name: str | None, context: ssl.SSLContext | None = None
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.wait_for(
            asyncio.open_connection(
                "127.0.0.1", self.port, ssl=context or client_context(), server_hostname=name or ""
            ),
            PATIENCE_S,
        )

    async def talk(self, name: str | None, context: ssl.SSLContext | None = None) -> ServerConnection:
        """Open, exchange a few bytes, close; give the server's side. With TLS 1.3 only an answer means acceptance."""
        reader, writer = await self.open(name, context)
        try:
            writer.write(b"ping")
            assert await asyncio.wait_for(reader.readexactly(4), PATIENCE_S) == b"ping"
            return self.accepted[-1]
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                await writer.wait_closed()

    async def echo(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted.append(writer.get_extra_info("ssl_object"))
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
        writer.close()


@contextlib.asynccontextmanager
async def tls_listener(store: CertificateStore | None = None) -> AsyncIterator[TlsListener]:
    """Listen on a free port."""
    listener = TlsListener(store or CertificateStore())
    server = await asyncio.start_server(listener.echo, "127.0.0.1", 0, ssl=listener.store.server_context)
    listener.port = server.sockets[0].getsockname()[1]
    try:
        yield listener
    finally:
        server.close()
        await server.wait_closed()
        await asyncio.sleep(0)
