"""Leases in the bucket of tables, `lease.<name>`: a process that may commit a table says there that it is the one.

The version of a lease is its sequence, which the server compares when it is replaced.
"""

import logging

from headgate.common.deltas import escape_token
from headgate.common.leadership.leases import NOBODYS, Lease, StoredLease
from headgate.common.stores.nats.answers import StreamMissing
from headgate.common.stores.nats.jetstream import EXPECTED_LAST, Outgoing, Stream
from headgate.common.stores.nats.keys import TABLES_BUCKET

_log = logging.getLogger(__name__)


class NatsLeaseBoard:
    """`LeaseBoard` on JetStream."""

    def __init__(self, stream: Stream) -> None:
        """Prepare; `stream` is that of the tables."""
        self._stream = stream

    async def read(self, name: str) -> StoredLease | None:
        """Return a lease as the stream's leader has it; None: there is none, or the stream was lost."""
        try:
            stored = await self._stream.last(_key(name))
        except StreamMissing:
            await self._stream.confirm_missing()
            return None
        if stored is None:
            return None
        try:
            lease = Lease.model_validate_json(stored.data)
        except ValueError as error:
            _log.error("a lease cannot be read", extra={"lease": name, "reason": str(error)})
            lease = NOBODYS
        return StoredLease(lease, str(stored.sequence))

    async def write(self, name: str, lease: Lease, expected: str | None) -> StoredLease:
        """Replace a lease if it is still the one that was read."""
        content = lease.model_dump_json().encode()
        ack = await self._stream.publish(Outgoing(_key(name), content, {EXPECTED_LAST: expected or "0"}))
        return StoredLease(lease, str(ack.sequence))


def _key(name: str) -> str:
    return f"$KV.{TABLES_BUCKET}.lease.{escape_token(name)}"
