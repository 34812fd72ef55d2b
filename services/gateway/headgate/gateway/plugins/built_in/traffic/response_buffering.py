"""`response-buffering`: pass answers on once they are whole (Traefik's `buffering`).

A client then gets no answer whose rest never comes. Streams, such as server-sent events, do not get through.
"""

from collections.abc import Awaitable
from typing import Final

from headgate.common.plugins.traffic.response_buffering import ResponseBufferingConfig
from headgate.gateway.plugins.interface import BodyTooLarge, BuffersFull, Plugin, Request, Response

_MOST: Final = 1 << 30


class ResponseBuffering(Plugin[ResponseBufferingConfig]):
    """Waits for the whole of an answer."""

    name = "response-buffering"
    order = 455
    preview = "passes"
    Config = ResponseBufferingConfig
    is_shareable = True

    def on_response(self, request: Request, response: Response) -> Awaitable[None] | None:
        """Read the body of an upstream's answer, if there is one to come."""
        if not response.from_upstream or response.is_bodiless or request.method == "HEAD":
            return None
        return self._read(response)

    async def _read(self, response: Response) -> None:
        longest = self.config.max_body
        try:
            await response.read_body(longest or _MOST)
        except BodyTooLarge as error:
            if isinstance(error, BuffersFull) or not longest:
                raise
            response.replace(Response.refusal(500, f"the answer is longer than {longest} bytes"))
