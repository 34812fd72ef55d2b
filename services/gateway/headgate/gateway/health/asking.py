"""Conversations of a check: each an asyncio protocol that learns one result. HTTP/2 is in `h2_asking`."""

import asyncio
from typing import Final, cast

import httptools

from headgate.common.table import ActiveCheck
from headgate.gateway.health.target import CheckTarget

MAX_ANSWER: Final = 65_536
"""Bytes of an answer that are read."""
USER_AGENT: Final = "headgate-health-check"


class CheckFailed(Exception):
    """An endpoint answered, but not as it should."""


class Asking(asyncio.Protocol):
    """A conversation that ends with a result; by itself it is content with a connection.

    Made on the event loop.
    """

    def __init__(self) -> None:
        self.answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the endpoint has answered; the exception says what was wrong."""
        self.transport: asyncio.Transport | None = None
        self._received = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        # uvloop's transports are no subclasses of asyncio's.
        self.transport = cast(asyncio.Transport, transport)
        self.begin(self.transport)

    def begin(self, transport: asyncio.Transport) -> None:
        """Say the first word."""
        self.end(None)

    def take(self, data: bytes) -> None:
        """Learn of bytes."""

    def data_received(self, data: bytes) -> None:
        """Take what comes until there is a result."""
        if self.answered.done():
            return
        self._received += len(data)
        self.take(data)
        if self._received > MAX_ANSWER:
            self.end(f"the answer is over {MAX_ANSWER} bytes")

    def connection_lost(self, error: Exception | None) -> None:
        """Fail, if there was no answer."""
        if not self.answered.done():
            self.answered.set_exception(error or CheckFailed("the connection was closed before the answer"))

    def end(self, failure: str | None) -> None:
        """Set the result, unless there is one."""
        if self.answered.done():
            return
        if failure is None:
            self.answered.set_result(None)
        else:
            self.answered.set_exception(CheckFailed(failure))

    def hang_up(self) -> None:
        """Leave nothing behind, whatever state the conversation is in."""
        self.answered.cancel()
        if self.transport is not None:
            self.transport.abort()


class HttpAsking(Asking):
    """Sends a request over HTTP/1.1 and judges the status of the answer; its body is not awaited."""

    def __init__(self, target: CheckTarget) -> None:
        super().__init__()
        self._check = target.check
        self._request = http_request(target)
        self._parser = httptools.HttpResponseParser(self)

    def begin(self, transport: asyncio.Transport) -> None:
        """Send the request."""
        transport.write(self._request)

    def take(self, data: bytes) -> None:
        """Parse until the head is whole."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self.end(f"the answer is not HTTP/1.1: {error}")

    def on_headers_complete(self) -> None:
        """Judge the status; the parser calls this, for informational answers too."""
        status = self._parser.get_status_code()
        if status >= 200:
            self.end(judge(status, self._check))


def judge(status: int, check: ActiveCheck) -> str | None:
    """Say what is wrong with a status, if anything is."""
    if check.failing_statuses:
        is_expected = status not in check.failing_statuses
    else:
        is_expected = status in check.statuses if check.statuses else 200 <= status < 400
    return None if is_expected else f"status {status}"


def authority(target: CheckTarget) -> str:
    """Host of a check's request."""
    host = f"[{target.address}]" if ":" in target.address else target.address
    default_port = 443 if target.check.type == "https" else 80
    return target.check.host or (host if target.port == default_port else f"{host}:{target.port}")


def request_fields(target: CheckTarget) -> list[tuple[str, str]]:
    """Return the header fields of a check's request, without its Host.

    Raises:
        ValueError: path, host or a header would not stay within its line.
    """
    check = target.check
    fields = list(check.headers)
    if not any(name.lower() == "user-agent" for name, _ in fields):
        fields.append(("User-Agent", USER_AGENT))
    words = [check.path, check.host, *(word for field in fields for word in field)]
    if " " in check.path or not all(word.isprintable() for word in words):
        raise ValueError("path, host or headers of the check hold characters that no request may have")
    return fields


def http_request(target: CheckTarget) -> bytes:
    """Write a check's request; raises ValueError as `request_fields` does."""
    fields = [("Host", authority(target)), ("Connection", "close"), *request_fields(target)]
    check = target.check
    lines = [f"{check.method} {check.path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields), "", ""]
    return "\r\n".join(lines).encode()
