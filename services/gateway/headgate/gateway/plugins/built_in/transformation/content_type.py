"""`content-type`: say what an answer is where the upstream does not, by how its body begins (Traefik's `contentType`).

An answer goes on once 512 bytes of its body are there, the first bytes of one without a length, or a tenth of a second
has passed. What is encoded (`Content-Encoding`) or has no body is left as it is.
"""

from collections.abc import Awaitable
from typing import Final

from headgate.common.plugins.transformation.content_type import ContentTypeConfig
from headgate.gateway.plugins.interface import Plugin, Request, Response
from headgate.gateway.plugins.kit.content_types import LOOKED_AT, content_type_of

_PATIENCE_S: Final = 0.1


class ContentType(Plugin[ContentTypeConfig]):
    """Finds the type of an answer by its content."""

    name = "content-type"
    order = 460
    preview = "passes"
    Config = ContentTypeConfig
    is_shareable = True

    def on_response(self, request: Request, response: Response) -> Awaitable[None] | None:
        """Look at the beginning of an answer without a type."""
        headers = response.headers
        if response.is_bodiless or request.method == "HEAD":
            return None
        if "Content-Type" in headers or headers.get("Content-Encoding"):
            return None
        body = response.body
        if body is None:
            return self._peek(response)
        _say(response, body)
        return None

    async def _peek(self, response: Response) -> None:
        length = response.content_length
        awaited = 1 if length is None else min(length, LOOKED_AT)
        _say(response, await response.peek_body(awaited, _PATIENCE_S))


def _say(response: Response, begin: bytes) -> None:
    if begin:
        response.headers.set("Content-Type", content_type_of(begin))
