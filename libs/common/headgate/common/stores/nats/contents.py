"""What has a SHA-256 for its key in the tables' bucket, chunks and pages of manifests, as it is stored.

Many are asked for by one request, which any replica answers by many messages (JetStream's batched direct get, ADR-31).
What does not come so is asked for one by one: the replica may lag behind, the server may be older than 2.11, and our
user's rights may be of before there was this request.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress

import msgspec
import nats.errors

from headgate.common.bus.encoded import decode_headers
from headgate.common.bus.requests import TakeAnswer
from headgate.common.errors import NotPermitted
from headgate.common.service.tasks import cancel
from headgate.common.stores.nats.answers import StreamMissing
from headgate.common.stores.nats.jetstream import LOOK_S, Stream
from headgate.common.stores.nats.keys import chunk_key

_log = logging.getLogger(__name__)

_LIMIT = 1024
"""Subjects that the server takes in one request."""
_BYTES = 4 * 1024 * 1024
"""Of the answers to one request, after which the server stops: little enough for `LOOK_S` on a slow connection."""
_SINGLES = 16
"""Asked for at a time where each is a request."""
_BAD_REQUEST = "408"


class Contents:
    """Reads them from one stream."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._answers_many = True
        """Whether the server is not known to leave requests for many unanswered."""
        stream.bus.on_reconnect(self._expect_many)

    def _expect_many(self) -> None:
        self._answers_many = True

    async def find(self, digests: Sequence[str]) -> list[bytes | None]:
        """Return each as it is stored; None for one that is not there.

        Raises:
            StoreUnavailable: not now.
        """
        found = await self._find_many(digests) if len(digests) > 1 else {}
        lacking = [digest for digest in digests if digest not in found]
        for start in range(0, len(lacking), _SINGLES):
            found |= await self._find_singly(lacking[start : start + _SINGLES])
        return [found[digest] for digest in digests]

    async def _find_many(self, digests: Sequence[str]) -> dict[str, bytes | None]:
        """Return what comes by requests for many."""
        found: dict[str, bytes | None] = {}

        def take(headers: bytes, content: bytes) -> None:
            found[decode_headers(headers)["Nats-Subject"].rsplit(".", 1)[1]] = content

        for start in range(0, len(digests), _LIMIT):
            wanted, before, has_more = digests[start : start + _LIMIT], -1, True
            while wanted and has_more and len(found) > before and self._answers_many:
                before, has_more = len(found), await self._ask(wanted, take)
                wanted = [digest for digest in wanted if digest not in found]
        return found

    async def _ask(self, digests: Sequence[str], take: TakeAnswer) -> bool:
        """Have what comes of some given to a function; return whether the server stopped before it had given all."""
        if not self._stream.bus.is_connected:
            return False
        request = msgspec.json.encode({"multi_last": [chunk_key(digest) for digest in digests], "max_bytes": _BYTES})
        subject = f"$JS.API.DIRECT.GET.{self._stream.name}"
        try:
            end = await self._stream.bus.request_many(subject, request, take, timeout_s=LOOK_S)
        except nats.errors.NoRespondersError:  # the stream is away, or has no direct gets: who asks for one hears it
            return False
        except (NotPermitted, TimeoutError, nats.errors.Error, OSError) as error:
            # An edge's server that lacks the right leaves the request without an answer.
            self._answers_many = False
            _log.debug("contents are asked for one by one", extra={"reason": str(error) or type(error).__name__})
            return False
        self._answers_many = end["Status"] != _BAD_REQUEST
        return int(end.get("Nats-Num-Pending", 0)) > 0

    async def _find_singly(self, digests: Sequence[str]) -> dict[str, bytes | None]:
        tasks = [asyncio.ensure_future(self._find_one(digest)) for digest in digests]
        try:
            return dict(zip(digests, await asyncio.gather(*tasks), strict=True))
        finally:
            await cancel(*tasks)

    async def _find_one(self, digest: str) -> bytes | None:
        """Ask any replica, and the leader when that one lacks it or none answers."""
        key = chunk_key(digest)
        with suppress(StreamMissing):
            if (data := await self._stream.last_direct(key)) is not None:
                return data
        try:
            stored = await self._stream.last(key)
        except StreamMissing:
            await self._stream.confirm_missing()
            return None
        return stored.data if stored is not None else None
