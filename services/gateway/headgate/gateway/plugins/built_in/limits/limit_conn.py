"""`limit-conn`: so many requests under way at once, by key.

Requests beyond `conn` are delayed, for each full `conn` by `default_conn_delay`; those beyond `conn` and `burst`
together are refused (Apache APISIX `limit-conn`). nginx's `limit_conn` is this with a burst of 0.
"""

import asyncio
import uuid
from collections.abc import Awaitable
from typing import NamedTuple

from headgate.common.errors import StoreError
from headgate.common.plugins.limits.limits import LimitConnConfig
from headgate.gateway.counting.tally import Tally
from headgate.gateway.plugins.interface import Plugin, PluginServices, Request, Response
from headgate.gateway.plugins.kit.key_reader import KeyReader
from headgate.gateway.plugins.kit.keyed import counted_as, exempted, not_counted, rejection
from headgate.gateway.plugins.kit.numbers import BadNumber, NumberReader

_HELD = "limit-conn.held"


class _Bound(NamedTuple):
    """What a rule says of one request."""

    key: str
    conn: int
    burst: int


class _Rule:
    """One bound with its counts."""

    def __init__(self, conn: int | str, burst: int | str, key: KeyReader, counts: Tally) -> None:
        self._conn = NumberReader(conn, least=1)
        self._burst = NumberReader(burst, least=0)
        self._key = key
        self.counts = counts

    def read(self, request: Request) -> _Bound | None:
        """Say what holds for a request; None: nothing. Raises BadNumber."""
        key = self._key.read(request)
        if key is None:
            return None
        return _Bound(key, int(self._conn.read(request)), int(self._burst.read(request)))


class LimitConn(Plugin[LimitConnConfig]):
    """Bounds the requests under way."""

    name = "limit-conn"
    order = 1003
    unforeseen = "counts requests"
    Config = LimitConnConfig

    def __init__(self, config: LimitConnConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._exempted = exempted(config)
        self._shared = services.find_counters(config)
        self._counted_as = counted_as(config, services)
        self._leaving: set[asyncio.Task[None]] = set()
        if config.conn is not None:
            key = KeyReader(config.key, config.key_type, client=config.client)
            self._rules = [_Rule(config.conn, config.burst, key, self._counts(f"{config.key} {config.client}"))]
        else:
            self._rules = [
                _Rule(
                    rule.conn,
                    rule.burst,
                    KeyReader(rule.key, "var_combination", is_optional=True),
                    self._counts(f"{number} {rule.key}"),
                )
                for number, rule in enumerate(config.rules)
            ]

    def _counts(self, name: str) -> Tally:
        state_key = (self.name, self._counted_as, name)
        counts: Tally = self.services.shared.get(state_key, lambda: Tally(self.services.peers, repr(state_key)))
        return counts

    def on_request(self, request: Request) -> Response | Awaitable[Response | None] | None:
        """Count the request, or refuse it."""
        if self._exempted is not None and request.client in self._exempted:
            return None
        try:
            bounds = [(rule, bound) for rule in self._rules if (bound := rule.read(request)) is not None]
        except BadNumber as error:
            return not_counted(self.config, self.services, request, str(error))
        if self._shared is not None:
            return self._enter_together(request, bounds)
        delay_s = 0.0
        for rule, bound in bounds:
            count = rule.counts.enter(bound.key)
            if count > bound.conn + bound.burst:
                rule.counts.leave(bound.key)
                return rejection(self.config, "over the limit of requests at once")
            self._hold(request, rule, bound.key)
            delay_s = max(delay_s, self._delay_s(count, bound))
        return asyncio.sleep(delay_s) if delay_s else None

    async def _enter_together(self, request: Request, bounds: list[tuple[_Rule, _Bound]]) -> Response | None:
        config = self.config
        assert self._shared is not None
        delay_s = 0.0
        for number, (_, bound) in enumerate(bounds):
            place, member = f"headgate:limit-conn:{self._counted_as}|{number}|{bound.key}", uuid.uuid4().hex
            # Held before the answer: a client that leaves meanwhile may have been counted.
            self._hold(request, place, member)
            try:
                count = await self._shared.enter(place, bound.conn + bound.burst, config.key_ttl, member)
            except StoreError as error:
                return not_counted(config, self.services, request, str(error))
            if count is None:
                return rejection(config, "over the limit of requests at once")
            delay_s = max(delay_s, self._delay_s(count, bound))
        if delay_s:
            await asyncio.sleep(delay_s)
        return None

    def _delay_s(self, count: int, bound: _Bound) -> float:
        if count <= bound.conn:
            return 0.0
        config = self.config
        return config.default_conn_delay * (1 if config.only_use_default_delay else (count - 1) // bound.conn)

    def _hold(self, request: Request, where: "_Rule | str", what: str) -> None:
        held = request.variables.setdefault(_HELD, [])
        assert isinstance(held, list)
        held.append((self, where, what))

    def on_finish(self, request: Request, status: int, seconds: float) -> None:
        """Give the places back."""
        held = request.variables.get(_HELD)
        for plugin, where, what in held if isinstance(held, list) else ():
            if plugin is not self:
                continue
            if isinstance(where, _Rule):
                where.counts.leave(what)
            else:
                task = asyncio.get_running_loop().create_task(self._leave_together(where, what))
                self._leaving.add(task)
                task.add_done_callback(self._leaving.discard)

    async def _leave_together(self, place: str, member: str) -> None:
        assert self._shared is not None
        try:
            await self._shared.leave(place, member)
        except StoreError as error:
            # Redis forgets it by itself after `key_ttl`.
            self.services.logger.debug("limit-conn of %s: %s", self.services.scope, error)
