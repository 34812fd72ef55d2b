"""Accounts with authorities: one for each resolver of a table, kept in the log, the key sealed to translators."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime

from cryptography.hazmat.primitives.asymmetric import ec
from nacl.public import PrivateKey

from headgate.common.acme import ACME_CLUSTER, AccountState, account_ref, state_delta
from headgate.common.errors import SealingError
from headgate.common.sealing import Purpose, Sealer, Unsealer
from headgate.common.stores import DeltaLogWriter
from headgate.translator.leading.acme.authority import Authority, read_key
from headgate.translator.leading.acme.keys import new_key, to_pem
from headgate.translator.world.resolver_settings import ResolverSettings

_log = logging.getLogger(__name__)


class Accounts:
    """The accounts of one table.

    Args:
        table: its name.
        key: that accounts' keys are sealed to.
        log: where accounts are written.
        find: returns what the log has of a resolver's account.
    """

    def __init__(
        self, table: str, key: PrivateKey, log: DeltaLogWriter, find: Callable[[str], AccountState | None]
    ) -> None:
        self._table = table
        self._sealer = Sealer(ACME_CLUSTER, [key.public_key])
        self._unsealer = Unsealer([key])
        self._log = log
        self._find = find
        self._known: dict[str, tuple[ec.EllipticCurvePrivateKey, AccountState]] = {}
        self._unknown: set[str] = set()
        """URIs of accounts that the authority does not know any more."""
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def open(self, resolver: str, settings: ResolverSettings) -> Authority:
        """Return the authority of a resolver, with an account that is registered.

        Raises:
            OrderFailed: not now, or not at all.
            StoreError: the account could not be written.
        """
        async with self._locks[resolver]:
            key, uri = self._held(resolver, settings)
            authority = Authority(settings, key, uri)
            await asyncio.to_thread(authority.open)
            if not uri:
                sealed = self._sealer.seal(to_pem(key), Purpose.ACCOUNT)
                state = AccountState(directory=settings.url, uri=authority.uri, private_key=sealed)
                await self._log.append(state_delta(account_ref(self._table, resolver), state, datetime.now(UTC)))
                self._known[resolver] = (key, state)
                _log.info("account registered", extra={"resolver": resolver, "account": authority.uri})
            return authority

    def forget(self, resolver: str) -> None:
        """Register another account for the next order: the authority does not know this one."""
        if known := self._known.pop(resolver, None):
            self._unknown.add(known[1].uri)

    def _held(self, resolver: str, settings: ResolverSettings) -> tuple[ec.EllipticCurvePrivateKey, str]:
        if resolver in self._known:
            key, state = self._known[resolver]
            return (key, state.uri) if state.directory == settings.url else (new_key(), "")
        found = self._find(resolver)
        if found is None or found.directory != settings.url or found.uri in self._unknown:
            return new_key(), ""
        try:
            pem = self._unsealer.open(found.private_key.of(ACME_CLUSTER), Purpose.ACCOUNT).reveal()
            key = read_key(pem)
        except (SealingError, ValueError) as error:
            _log.warning("an account cannot be used: another is registered", extra={"reason": str(error)})
            return new_key(), ""
        self._known[resolver] = (key, found)
        return key, found.uri
