"""Answers of Bedrock in pieces: messages of `application/vnd.amazon.eventstream`, which pass as they are.

https://docs.aws.amazon.com/AmazonS3/latest/API/RESTSelectObjectAppendix.html has the framing: lengths of the whole and
of the headers, a checksum of these, headers, payload, and a checksum of all. Only payloads are looked at here.
"""

import json
from collections.abc import Iterator
from typing import Final

from headgate.gateway.plugins.built_in.ai.usage import Usage, Watcher

CONTENT_TYPE: Final = "application/vnd.amazon.eventstream"
_PRELUDE: Final = 12
_CHECKSUM: Final = 4
_MAX_MESSAGE: Final = 1 << 20
"""A message that says that it is longer is none, and nothing behind it is looked at."""


class EventStreamWatcher(Watcher):
    """Of an answer of `converse-stream`."""

    def __init__(self, usage: Usage, *, keeps_text: bool) -> None:
        super().__init__(usage, keeps_text=keeps_text)
        self._rest = bytearray()
        self._is_lost = False

    def feed(self, data: bytes) -> None:
        """Look at the messages that are whole now."""
        if self._is_lost:
            return
        self._rest += data
        for payload in self._payloads():
            self._look(payload)

    def _payloads(self) -> Iterator[bytes]:
        rest, begun = self._rest, 0
        while len(rest) - begun >= _PRELUDE:
            size = int.from_bytes(rest[begun : begun + 4], "big")
            headers = int.from_bytes(rest[begun + 4 : begun + 8], "big")
            if size > _MAX_MESSAGE or size < _PRELUDE + headers + _CHECKSUM:
                self._is_lost = True
                rest.clear()
                return
            if len(rest) - begun < size:
                break
            yield bytes(rest[begun + _PRELUDE + headers : begun + size - _CHECKSUM])
            begun += size
        del rest[:begun]

    def _look(self, payload: bytes) -> None:
        try:
            told = json.loads(payload)
        except (ValueError, RecursionError):
            return
        if isinstance(told, dict):
            self._usage.add(told.get("usage"))
            delta = told.get("delta")
            self._keep(delta.get("text") if isinstance(delta, dict) else None)
