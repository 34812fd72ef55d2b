"""A proxy with an entry point of its own, as settings describe it."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from fakes.gateway.ports import free_port
from fakes.gateway.proxied import Client
from fakes.gateway.served import HOST, Got, asking, read_answer
from fakes.gateway.tls import Authority, unverified
from fakes.translator.applied import World, world
from fakes.translator.traefik import rule
from headgate.translator.world.entry_point_settings import EntryPointSettings, read_entry_points
from headgate.translator.world.settings import TranslationSettings

ANY: Final = rule(f"Host(`{HOST}`)", {"name": "one", "port": 80})
"""A route of the host to the server."""


class Site:
    """A proxy with an entry point `api`."""

    def __init__(self, made: World, api: int) -> None:
        self.made, self.proxy, self.api = made, made.proxy, api

    async def connect(self, *, tls: bool = False) -> Client:
        return await self.proxy.proxy.connect(unverified() if tls else None, HOST, self.api)

    async def ask(self, *, tls: bool = False, **more: Any) -> Got:
        client = await self.connect(tls=tls)
        await client.send(asking(**more))
        return await read_answer(client)

    @property
    def asked(self) -> bytes:
        """The last request that the server got."""
        return self.made.servers["one"].heads[-1]

    def heard(self, name: str) -> str:
        """What the server got in a header; empty if it got none."""
        lines = (line.partition(": ") for line in self.asked.decode().split("\r\n"))
        return ", ".join(value for written, _, value in lines if written.lower() == name.lower())


@asynccontextmanager
async def site(**written: Any) -> AsyncIterator[Site]:
    """Run a proxy with options of `api`, or of `web` and `websecure`."""
    api = free_port("127.0.0.1", socket.SOCK_STREAM)
    own = {name: written.pop(name) for name in ("web", "websecure") if name in written}
    read = {name: EntryPointSettings.model_validate(each) for name, each in own.items()}
    read["api"] = EntryPointSettings.model_validate({"address": f":{api}", **written})
    settings = TranslationSettings(entry_points=read_entry_points(read))
    async with world("one", settings=settings) as made:
        made.proxy.proxy.present(HOST, Authority().issue(HOST))
        yield Site(made, api)
