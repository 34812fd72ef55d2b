"""An answer of a plugin that comes in pieces: for the exchange it is one more side that an answer is taken from.

So it is paused while the client is slow, bounded by the same deadlines as an upstream, and ends with the client.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from headgate.gateway.plugins.interface.sources import BodyStream
from headgate.gateway.proxy.sides import SentRequest, UpstreamSide

if TYPE_CHECKING:
    from headgate.gateway.proxy.exchange.exchange import Exchange


class StreamedAnswer(UpstreamSide):
    """The body of one answer, on its way to the exchange.

    Args:
        exchange: of the request.
        stream: where the body comes from.
        take: gets each piece, the last one as done.
    """

    __slots__ = ("_for", "_is_over", "_is_paused", "_resumed", "_stream", "_take", "_task")

    def __init__(self, exchange: "Exchange", stream: BodyStream, take: Callable[[bytes, bool], None]) -> None:
        # Not that of the base, which would want the pool of an endpoint: there is none.
        self.exchange: SentRequest | None = exchange
        self.reused = False
        self.seen = True
        self.write_paused = False
        self._for = exchange
        self._stream = stream
        self._take = take
        self._is_paused = False
        self._is_over = False
        self._resumed: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None

    def begin(self, exchange: SentRequest, payload: bytes, *, done: bool, trailers: bytes) -> None:
        """Do nothing: the plugin has sent what is to be sent."""

    def send_data(self, payload: bytes, *, done: bool, trailers: bytes) -> None:
        """Let go of what is left of the request's body, as the plugin has answered without it."""

    def end_tunnel(self) -> None:
        """Do nothing: there is no tunnel."""

    def pause_reading(self) -> None:
        """Take no more pieces for now."""
        self._is_paused = True

    def resume_reading(self) -> None:
        """Go on taking pieces, or begin to."""
        self._is_paused = False
        if self._resumed is not None and not self._resumed.done():
            self._resumed.set_result(None)
        if self._task is None and not self._is_over:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="answer of a plugin")

    def discard(self) -> None:
        """Take no more."""
        if self._is_over:
            return
        self._is_over = True
        task, self._task = self._task, None
        if task is not None and task is not asyncio.current_task():
            task.cancel()
        self._stream.close()

    async def _run(self) -> None:
        try:
            while not self._has_ended():
                payload = await self._stream.read()
                if self._is_paused:
                    self._resumed = asyncio.get_running_loop().create_future()
                    await self._resumed
                if self._has_ended():
                    return
                if not payload:
                    self._end()
                self._take(payload, not payload)
        except OSError as error:
            if not self._has_ended():
                self._end()
                self._for.refuse(502, str(error))

    def _has_ended(self) -> bool:
        return self._is_over

    def _end(self) -> None:
        self._is_over = True
        self._for.upstream = None
        self._stream.close()
