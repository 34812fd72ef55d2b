"""Leases in Redis, `{headgate}:lease:<name>`: a hash of the lease and its version.

A version is drawn by lot. Counted ones would be given twice after a failover that loses a write, and a holder would
renew what another one has taken meanwhile.
"""

import logging
import secrets

from headgate.common.errors import Conflict
from headgate.common.leadership.leases import NOBODYS, Lease, StoredLease
from headgate.common.stores.redis.link import RedisLink, Script

_log = logging.getLogger(__name__)

_REPLACE = Script("""
local found = redis.call('HGET', KEYS[1], 'version')
if (found or '') ~= ARGV[1] then return found or '' end
redis.call('HSET', KEYS[1], 'version', ARGV[2], 'json', ARGV[3])
return ARGV[2]
""")


class RedisLeaseBoard:
    """`LeaseBoard` on Redis."""

    def __init__(self, link: RedisLink) -> None:
        self._link = link

    async def read(self, name: str) -> StoredLease | None:
        """Return a lease as the primary has it; None: there is none, or it was lost."""
        stored, version = await self._link.ask("HMGET", _key(name), "json", "version")
        if version is None:
            return None
        try:
            lease = Lease.model_validate_json(stored or b"")
        except ValueError as error:
            _log.error("a lease cannot be read", extra={"lease": name, "reason": str(error)})
            lease = NOBODYS
        return StoredLease(lease, version.decode())

    async def write(self, name: str, lease: Lease, expected: str | None) -> StoredLease:
        """Replace a lease if it is still the one that was read."""
        version = secrets.token_hex(8)
        found = await self._link.run(_REPLACE, [_key(name)], expected or "", version, lease.model_dump_json())
        if found.decode() != version:
            raise Conflict(f"lease {name}: expected version {expected}, found {found.decode() or 'none'}")
        return StoredLease(lease, version)


def _key(name: str) -> str:
    return f"{{headgate}}:lease:{name}"
