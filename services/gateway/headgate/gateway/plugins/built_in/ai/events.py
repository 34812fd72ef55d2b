"""Server-sent events in a body as it passes (https://html.spec.whatwg.org/multipage/server-sent-events.html)."""

import re
from collections.abc import Iterator
from typing import Final

_MAX_EVENT: Final = 1 << 20
"""Bytes of one event; a longer one is passed over."""
_BLANK: Final = re.compile(rb"\r?\n\r?\n")


class Events:
    """Cuts a body into events."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the events that have ended."""
        rest = self._rest
        searched = max(0, len(rest) - 3)
        rest += data
        begun = 0
        while found := _BLANK.search(rest, searched):
            yield bytes(rest[begun : found.start()])
            begun = searched = found.end()
        del rest[:begun]
        if len(rest) > _MAX_EVENT:
            rest.clear()

    def finish(self) -> bytes:
        """Return what is left at the end of the body."""
        rest = bytes(self._rest)
        self._rest.clear()
        return rest


def data_of(event: bytes) -> bytes:
    """Return the data of an event."""
    lines = (line.rstrip(b"\r") for line in event.split(b"\n"))
    return b"\n".join(line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:"))
