"""Where the rest of a message comes from while a plugin has it: protocols, and what stands for them."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from headgate.gateway.plugins.interface.headers import Headers
from headgate.gateway.proxy.errors import BodyTooLarge


class BodySource(Protocol):
    """Where the rest of a request's body comes from: the client's connection."""

    async def read_body(self, limit: int) -> bytes:
        """Wait for the whole body and return it.

        Raises:
            BodyTooLarge: it is longer than `limit` bytes.
        """

    async def hold_body(self, limit: int) -> None:
        """Wait for the whole body, unless it is longer than `limit` bytes: that goes on as it comes."""


class AnswerSource(Protocol):
    """Where the rest of an answer's body comes from: the upstream's connection."""

    async def read_answer(self, limit: int) -> bytes:
        """Wait for the whole body and return it.

        Raises:
            BodyTooLarge: it is longer than `limit` bytes.
        """

    async def peek_answer(self, size: int, seconds: float) -> bytes:
        """Wait for the first bytes of the body, and return what is there by then; it goes out all the same."""


class BodyStream(Protocol):
    """The body of a plugin's answer that is not there as a whole yet."""

    async def read(self) -> bytes:
        """Wait for more of the body and return it; empty at its end. Raises OSError if there is no end of it."""

    def close(self) -> None:
        """Take no more; may be called several times, and while `read` waits."""


class Wire(Protocol):
    """What a request came over, and goes on over."""

    def fact(self, name: str) -> str:
        """Return `remote_port`, `peer_addr`, `peer_port`, `server_addr`, `ssl_protocol`, `ssl_server_name`,
        `client_certificate` (DER in base64), `client_certificates` (the same of all that the client sent, its own
        first, with commas between them), `request_length`, `trace_id`, `claims_are_believed` (1 where a trusted
        proxy says what is in `Request.claims`), or `upstream_addr`, the endpoint that is asked; empty if it is not
        known.
        """

    async def dispatch(self, asked: "Asked", *, timeout_s: float, max_body: int) -> "Answered":
        """Serve another request as if the client had sent it over the same connection; see `Request.dispatch`."""

    def wait_for(self, seconds: float) -> None:
        """Give the hook that is awaited so long from now on."""


class Asked(NamedTuple):
    """A request that a plugin makes in the name of a client."""

    method: str
    target: str
    """Path and query."""
    headers: Sequence[tuple[str, str]]
    """In any order, with `Host`; what says who the client is, and what frames the message, is not taken from here."""
    body: bytes


class Answered(NamedTuple):
    """The whole answer to it."""

    status: int
    headers: Headers
    body: bytes


class NoBody:
    """The body of a message that has none."""

    async def dispatch(self, asked: Asked, *, timeout_s: float, max_body: int) -> Answered:
        """Raise ConnectionRefusedError: there is no connection."""
        raise ConnectionRefusedError("the request has no connection")

    def wait_for(self, seconds: float) -> None:
        """Do nothing."""

    def fact(self, name: str) -> str:
        """Return nothing."""
        return ""

    async def read_body(self, limit: int) -> bytes:
        """Return nothing."""
        return b""

    async def hold_body(self, limit: int) -> None:
        """Do nothing."""

    async def read_answer(self, limit: int) -> bytes:
        """Return nothing."""
        return b""

    async def peek_answer(self, size: int, seconds: float) -> bytes:
        """Return nothing."""
        return b""


async def collect(stream: BodyStream, limit: int) -> bytes:
    """Return a whole body. Raises BodyTooLarge."""
    parts: list[bytes] = []
    size = 0
    while part := await stream.read():
        parts.append(part)
        size += len(part)
        if size > limit:
            raise BodyTooLarge(f"an answer of more than {limit} bytes")
    return b"".join(parts)
