"""What can be wrong with a message, and what clients are told of it.

    BadMessage             a message that we refuse; carries the status for the client
        FramingError       the grammar or the framing is wrong: 400 from a client, 502 from an upstream
        LimitExceeded      within the grammar but over a limit: 413, 414, 417, 431

    BodyTooLarge           a body is longer than what wants to hold it can take
        BuffersFull        the worker has no room for it

Refused is refused: nothing of a bad message is repaired or forwarded, and its connection is closed.
"""

from http import HTTPStatus
from typing import Final


class BadMessage(Exception):
    """A message that is refused. `status` is what a client is told."""

    def __init__(self, reason: str, status: int = 400) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status


class FramingError(BadMessage):
    """Where the message ends, or what it says, could be read in two ways."""


class LimitExceeded(BadMessage):
    """The message is longer than we are willing to take, or asks for what we do not do."""


class BodyTooLarge(Exception):
    """A body is longer than the plugin that asked for it can take; the client gets a 413, of an answer a 502."""


class BuffersFull(BodyTooLarge):
    """The worker holds as many bytes of bodies as it may; the client gets a 503."""


def phrase(status: int) -> str:
    """Reason phrase of a status code: `Not Found`."""
    return _PHRASES.get(status, "Unknown")


def status_line(status: int) -> bytes:
    """First line of an answer with this status, with its CRLF."""
    return _STATUS_LINES.get(status) or b"HTTP/1.1 %d Unknown\r\n" % status


_PHRASES: Final[dict[int, str]] = {status.value: status.phrase for status in HTTPStatus}
_STATUS_LINES: Final[dict[int, bytes]] = {
    status: b"HTTP/1.1 %d %b\r\n" % (status, text.encode()) for status, text in _PHRASES.items()
}
