"""What can be made to go wrong between a client and the fake API server."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypedDict, Unpack

from aiohttp import web


@dataclass(frozen=True, slots=True)
class SeenRequest:
    """A request as the server understood it."""

    at: float
    """Of the loop's clock."""
    method: str
    path: str
    query: dict[str, str]
    verb: str
    """`get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `discover`, and `probe` for `/readyz`."""
    resource: str = ""
    """Plural; `ingresses/status` for the subresource."""
    namespace: str = ""
    name: str = ""


Act = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Criteria(TypedDict, total=False):
    """Which requests a fault is for; what is not given fits all."""

    verb: str
    resource: str
    namespace: str
    name: str


@dataclass
class _Fault:
    act: Act
    criteria: Criteria
    times: int | None

    def takes(self, seen: SeenRequest) -> bool:
        return self.times != 0 and all(getattr(seen, name) == value for name, value in self.criteria.items())


@dataclass
class Faults:
    """Faults that await their requests; the first that fits is used. `times=None` is for ever."""

    waiting: list[_Fault] = field(default_factory=list)

    def clear(self) -> None:
        """Let everything work again."""
        self.waiting.clear()

    def take(self, seen: SeenRequest) -> Act | None:
        for fault in self.waiting:
            if fault.takes(seen):
                if fault.times is not None:
                    fault.times -= 1
                return fault.act
        return None

    def add(self, act: Act, *, times: int | None = 1, **criteria: Unpack[Criteria]) -> None:
        """Do something else than answering; the other methods are shorthands."""
        self.waiting.append(_Fault(act, criteria, times))

    def status(
        self,
        code: int,
        *,
        retry_after: int | None = None,
        body: str = "",
        times: int | None = 1,
        **criteria: Unpack[Criteria],
    ) -> None:
        """Answer with a status and a text."""
        headers = {"Retry-After": str(retry_after)} if retry_after is not None else {}

        async def act(request: web.Request) -> web.StreamResponse:
            return web.Response(status=code, text=body or f"fault {code}", headers=headers)

        self.add(act, times=times, **criteria)

    def body(self, content: bytes, *, times: int | None = 1, **criteria: Unpack[Criteria]) -> None:
        """Answer 200 with these bytes; none at all is what some proxies say when they give up."""

        async def act(request: web.Request) -> web.StreamResponse:
            return web.Response(body=content, content_type="application/json")

        self.add(act, times=times, **criteria)

    def reset(self, content: bytes | None = None, *, times: int | None = 1, **criteria: Unpack[Criteria]) -> None:
        """Reset the connection: at once, or after a 200 and these bytes."""

        async def act(request: web.Request) -> web.StreamResponse:
            answer = web.StreamResponse()
            if content is not None:
                answer.enable_chunked_encoding()
                await answer.prepare(request)
                await answer.write(content)
                await asyncio.sleep(0.1)  # a reset overtakes what the other side has not read yet
            reset_connection(request)
            return answer

        self.add(act, times=times, **criteria)

    def hang(self, *, times: int | None = 1, **criteria: Unpack[Criteria]) -> None:
        """Take the request and say nothing, as a stopped process does."""

        async def act(request: web.Request) -> web.StreamResponse:
            await asyncio.Event().wait()
            raise AssertionError

        self.add(act, times=times, **criteria)


def reset_connection(request: web.Request) -> None:
    """Send RST."""
    transport = request.transport
    if transport is None:
        return
    with contextlib.suppress(OSError):
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
