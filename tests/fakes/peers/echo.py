"""An origin server that tells what reached it, as the echo server of the Kubernetes conformance suite does.

It sends neither `Server` nor `Date`, so that a test sees which of those the gateway adds.
"""

import asyncio
import contextlib
import json
from types import TracebackType
from typing import Any, Self

import aiohttp
import h11


class EchoServer:
    """HTTP/1.1 with keep-alive on a free port of 127.0.0.1, or of another address; answers JSON."""

    def __init__(self, name: str, host: str = "127.0.0.1") -> None:
        self.name = name
        self._host = host
        self.requests = 0
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def port(self) -> int:
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, self._host, 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._writers:
            writer.close()
        await self._server.wait_closed()

    async def until_behind(self, port: int, host: str, within_s: float = 60.0) -> None:
        """Wait until the gateway on a port passes requests for a host on to this server."""
        async with aiohttp.ClientSession() as session, asyncio.timeout(within_s):
            while True:
                with contextlib.suppress(aiohttp.ClientError):
                    async with session.get(f"http://127.0.0.1:{port}/", headers={"Host": host}) as answer:
                        if answer.status == 200 and (await answer.json())["name"] == self.name:
                            return
                await asyncio.sleep(0.05)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            await self._converse(reader, writer)
        except (ConnectionError, h11.RemoteProtocolError):
            pass  # the gateway may drop a pooled connection at any time
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = h11.Connection(h11.SERVER)
        request: h11.Request | None = None
        body = b""
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                connection.receive_data(await reader.read(65536))
            elif isinstance(event, h11.Request):
                request, body = event, b""
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage):
                assert request is not None
                self.requests += 1
                answer = json.dumps(self._describe(request, body)).encode()
                headers = [("Content-Type", "application/json"), ("Content-Length", str(len(answer)))]
                head = connection.send(h11.Response(status_code=200, headers=headers)) or b""
                content = connection.send(h11.Data(data=b"" if request.method == b"HEAD" else answer)) or b""
                writer.write(head + content + (connection.send(h11.EndOfMessage()) or b""))
                await writer.drain()
                if connection.our_state is h11.MUST_CLOSE:
                    return
                connection.start_next_cycle()
            else:
                return

    def _describe(self, request: h11.Request, body: bytes) -> dict[str, Any]:
        headers: dict[str, list[str]] = {}
        for name, value in request.headers:
            headers.setdefault(name.decode().title(), []).append(value.decode())
        return {
            "name": self.name,
            "method": request.method.decode(),
            "path": request.target.decode(),
            "proto": f"HTTP/{request.http_version.decode()}",
            "host": headers.get("Host", [""])[0],
            "headers": headers,
            "body": body.decode("latin-1"),
        }
