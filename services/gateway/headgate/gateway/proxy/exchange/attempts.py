"""The way of a request to an endpoint: to which one, on which connection, and whether to another one when that fails.

A request is sent again only if that cannot do harm: nothing of an answer went to the client, what was sent of it is
still at hand, and either no endpoint can have acted on it, or it is idempotent, or the route says so. A connection that
had been used before and dies without a word most likely died of old age: that costs no attempt.

Retries to an upstream are bounded by a share of its load, but for those after a connection that was refused: an
endpoint that refuses is gone and not overloaded, it was sent nothing, and the load that it had is there anyway. An
application that dies under many connections sends them all elsewhere at once, more than any share.
"""

import asyncio
import errno
import random
import time
from collections.abc import Callable
from typing import Final

from headgate.gateway.health.circuit import Circuit
from headgate.gateway.health.ejection import LocalError
from headgate.gateway.net.destinations import DestinationDenied
from headgate.gateway.proxy.context import ProxyContext
from headgate.gateway.proxy.endpoint_pool import EndpointPool
from headgate.gateway.proxy.exchange.accounting import Accounting
from headgate.gateway.proxy.exchange.active_request import ActiveRequest
from headgate.gateway.proxy.exchange.deadlines import Deadlines
from headgate.gateway.proxy.heads.forward import came_by_hop
from headgate.gateway.proxy.policies import RetryPolicy
from headgate.gateway.proxy.request_source import UpstreamState
from headgate.gateway.proxy.seam import RouteTarget
from headgate.gateway.proxy.sides import UpstreamSide

_IDEMPOTENT: Final = frozenset({b"GET", b"HEAD", b"OPTIONS", b"PUT", b"DELETE"})
_DEFAULT_RETRIES: Final = RetryPolicy()
_NO_POOLS: Final[tuple[EndpointPool, ...]] = ()
_FREE_RETRIES: Final = 2
"""Of one request after refused connections, beyond the upstream's budget: a service all of whose endpoints are gone is
not asked at each of them for each request."""
_REFUSED: Final = frozenset({errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EACCES})
"""Errors of connections that nobody had to work for; EACCES is that of DestinationDenied."""
_NO_SECOND_HOP: Final = "it came from a gateway of another cluster, and no endpoint of this cluster takes it"


class Attempts:
    """All that was tried, and is being tried, to have the request of an exchange answered."""

    __slots__ = (
        "_accounting",
        "_budgeted",
        "_circuit",
        "_connecting",
        "_context",
        "_count",
        "_deadlines",
        "_exchange",
        "_is_counted",
        "_is_repeated",
        "_timer",
        "_tried",
        "_waiting",
    )

    def __init__(
        self, exchange: ActiveRequest, context: ProxyContext, accounting: Accounting, deadlines: Deadlines
    ) -> None:
        self._exchange = exchange
        self._context = context
        self._accounting = accounting
        self._deadlines = deadlines
        self._tried: tuple[EndpointPool, ...] = _NO_POOLS
        self._is_counted = False
        """The upstream's bounds count this request."""
        self._budgeted = 0
        """Retries that the upstream's budget counts."""
        self._connecting: asyncio.Task[None] | None = None
        self._circuit: Circuit | None = None
        """Counts the connection that is being opened."""
        self._timer: asyncio.TimerHandle | None = None
        """Runs until the next attempt begins."""
        self._waiting: Callable[[], None] | None = None
        """Called back by the upstream's bounds when a connection may be had."""
        self.begin()

    def begin(self) -> None:
        """Begin with a request that was not sent to anybody."""
        self._count = 0
        """Besides the first."""
        self._is_repeated = False
        """The request was sent once more without counting as an attempt."""
        self._exchange.retries = 0

    @property
    def is_waiting(self) -> bool:
        """The upstream's bounds let no connection be opened at present."""
        return self._waiting is not None

    def choose(self, route: RouteTarget) -> None:
        """Send the request to an endpoint of a route, or answer why that cannot be."""
        pool = self._choose(route)
        if pool is None:
            self._exchange.refuse(503, route.unavailable or _NO_SECOND_HOP)
        elif self._exchange.upstream_state is None or self._is_within_bounds(self._exchange.upstream_state):
            self._send_to(pool)

    def _choose(self, route: RouteTarget) -> EndpointPool | None:
        """Choose an endpoint; what came from another cluster's gateway goes to no other one."""
        pool = route.choose(self._tried, self._exchange)
        while pool is not None and pool.is_hop and came_by_hop(self._exchange.fields):
            if pool in self._tried:
                return None
            self._tried = (*self._tried, pool)
            pool = route.choose(self._tried, self._exchange)
        return pool

    # The upstream's bounds

    def note_upstream(self, state: UpstreamState | None) -> None:
        """Hear of the upstream that is about to be chosen from."""
        if state is not self._exchange.upstream_state:
            self._part_with_state()
            self._exchange.upstream_state = state

    def _part_with_state(self) -> None:
        state = self._exchange.upstream_state
        if state is not None and self._is_counted:
            for _ in range(self._budgeted):
                state.retry_ended()
            state.ended()
        self._is_counted = False
        self._budgeted = 0
        self._exchange.upstream_state = None

    def _is_within_bounds(self, state: UpstreamState) -> bool:
        if self._is_counted:
            return True
        reason = state.may_begin()
        if reason is not None:
            self._exchange.upstream_state = None
            self._exchange.refuse(503, reason)
            return False
        self._is_counted = True
        return True

    def _is_within_budget(self, state: UpstreamState, share: float | None, is_refused: bool) -> bool:
        if not self._is_counted:
            # Another upstream than before, or the first retry to one without bounds.
            if state.may_begin() is not None:
                return False
            self._is_counted = True
        is_free = is_refused and self._count - self._budgeted < _FREE_RETRIES
        if not state.may_retry(share, is_free=is_free):
            return False
        self._budgeted += not is_free
        return True

    # A connection

    def _send_to(self, pool: EndpointPool) -> None:
        exchange = self._exchange
        upstream = pool.acquire(certain=exchange.method not in _IDEMPOTENT)
        if upstream is None:
            self._connect(pool)
        else:
            self._exchange.pool = pool
            exchange.send(upstream)

    def _connect(self, pool: EndpointPool) -> None:
        self._exchange.pool = pool
        exchange = self._exchange
        self._accounting.connecting(pool)
        circuit = self._exchange.upstream_state.circuit if self._exchange.upstream_state is not None else None
        if circuit is not None and not circuit.acquire_connection():
            self._wait_for_connection(pool)
            return
        self._circuit = circuit
        self._deadlines.lift()
        self._connecting = asyncio.get_running_loop().create_task(self._open(pool), name=f"connect {pool.label}")
        exchange.client.update_reading()

    def _wait_for_connection(self, pool: EndpointPool) -> None:
        """Queue for a connection, as the upstream's bound is reached."""
        exchange = self._exchange

        def resume() -> None:
            if exchange.active and self._waiting is resume:
                self._waiting = None
                self._send_to(pool)

        state = self._exchange.upstream_state
        assert state is not None
        reason = state.wait(resume)
        if reason is not None:
            exchange.refuse(503, reason)
            return
        self._waiting = resume
        self._deadlines.wait(self._context.config.read_timeout_s)
        exchange.client.update_reading()

    async def _open(self, pool: EndpointPool) -> None:
        exchange, circuit = self._exchange, self._circuit
        route = exchange.route
        timeout_s = (route.connect_timeout_s if route is not None else None) or self._context.config.connect_timeout_s
        remaining_s = self._deadlines.remaining_s()
        try:
            async with asyncio.timeout(min(timeout_s, remaining_s)):
                upstream = await pool.connect(exchange.client.peer)
        except TimeoutError:
            self._connecting = None
            _release(circuit)
            if remaining_s < timeout_s:
                # That the whole request has little time says nothing about the endpoint.
                exchange.refuse(504, "the request took longer than its route allows")
            else:
                self.failed("connect", 504, f"no connection to {pool.label} in time")
        except (OSError, UnicodeError) as error:
            self._connecting = None
            _release(circuit)
            self._not_connected(pool, error)
        else:
            self._connecting = None
            upstream.count_by(circuit)
            exchange.send(upstream)

    def _not_connected(self, pool: EndpointPool, error: Exception) -> None:
        """Go on after a connection that could not be opened."""
        why: object = error
        is_refused = False
        if isinstance(error, OSError):
            why = error.strerror
            is_refused = error.errno in _REFUSED
        if isinstance(error, DestinationDenied):
            exchange, route = self._exchange, self._exchange.route
            upstream = exchange.backend or (route.upstream_label if route is not None else "")
            pool.dialler.destinations.tell(error, f"{route.name if route is not None else ''} to {upstream}")
        self.failed("connect", 502, f"cannot connect to {pool.label}: {why}", is_refused=is_refused)

    def drop(self) -> None:
        """Give up what is being tried."""
        if self._connecting is not None:
            self._connecting.cancel()
            self._connecting = None
            # Not the task's business, which may not have begun.
            _release(self._circuit)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._waiting is not None:
            if self._exchange.upstream_state is not None and self._exchange.upstream_state.circuit is not None:
                self._exchange.upstream_state.circuit.cancel(self._waiting)
            self._waiting = None
        upstream, self._exchange.upstream = self._exchange.upstream, None
        if upstream is not None:
            upstream.discard()

    # Another attempt

    def failed(
        self, kind: LocalError, status: int, reason: str, condition: str = "", *, is_refused: bool = False
    ) -> None:
        """Try again after a failed attempt, or answer with its failure.

        `condition` is what routes have to retry on, if it is not the kind of failure; `is_refused`, that there was no
        connection, and no waiting for one.
        """
        exchange = self._exchange
        self._accounting.failed("closed" if kind == "reset" else kind)
        if self._exchange.upstream_state is not None and self._exchange.pool is not None:
            self._exchange.upstream_state.report_pool(self._exchange.pool, kind)
        must_have_other = exchange.route is None or exchange.route.policies is None
        if not self._retry(condition or kind, must_have_other=must_have_other, is_refused=is_refused):
            exchange.refuse(status, reason)

    def retry_status(self) -> bool:
        """Try again because of the status that came; False: the answer has to be passed on."""
        return self._retry("status", must_have_other=False)

    def lost(self, upstream: UpstreamSide) -> None:
        """Go on after a connection that ended before the answer did."""
        if not upstream.seen and upstream.reused and not self._is_repeated and self._may_repeat(False):
            self._repeat(upstream.pool)
            return
        when = "in the middle of its answer" if upstream.seen else "without an answer"
        self.failed("reset", 502, f"upstream closed the connection {when}")

    def refused(self, upstream: UpstreamSide) -> None:
        """Go on after an upstream that has not begun with the request: any may be sent again that is still at hand."""
        label = upstream.pool.label
        if upstream.seen:
            self.failed("reset", 502, f"{label} took back the answer that it had begun")
        elif not self._exchange.body.is_kept:
            self._exchange.refuse(502, f"{label} refused the request when a part of it was sent")
        elif not self._is_repeated:
            self._repeat(upstream.pool)
        else:
            self.failed("connect", 502, f"{label} refuses the request", "refused-stream")

    def _repeat(self, pool: EndpointPool) -> None:
        """Send the request once more to the same endpoint, on a new connection."""
        self._is_repeated = True
        self._exchange.retries += 1
        self._accounting.retrying("closed")
        self._connect(pool)

    def _retry(self, kind: str, *, must_have_other: bool, is_refused: bool = False) -> bool:
        exchange, pool = self._exchange, self._exchange.pool
        route, run = exchange.route, exchange.run
        if route is None or pool is None or exchange.answer_begun or (run is not None and run.has_answer):
            return False
        retries = route.policies.retries if route.policies is not None else _DEFAULT_RETRIES
        if self._count >= retries.attempts or (kind != "status" and kind not in retries.reasons):
            return False
        never_began = kind in ("connect", "refused-stream")
        if not never_began and not self._may_repeat(retries.unsafe):
            return False
        if retries.total_s is not None and time.monotonic() - exchange.began > retries.total_s:
            return False
        self._tried = (*self._tried, pool)
        other = self._choose(route)
        must_have_other = (must_have_other or never_began) and retries.backoff_s == 0.0
        if other is None or (other in self._tried and must_have_other):
            return False
        if self._exchange.upstream_state is not None and not self._is_within_budget(
            self._exchange.upstream_state, retries.budget, is_refused
        ):
            return False
        self._count += 1
        exchange.retries += 1
        self._accounting.retrying()
        self.drop()
        if retries.backoff_s > 0.0:
            self._send_later(other, retries)
        else:
            self._send_to(other)
        return True

    def _send_later(self, pool: EndpointPool, retries: RetryPolicy) -> None:
        """Begin the next attempt a while later; each waits longer than the one before, so that the last waits twice as
        long as the first.
        """
        exchange = self._exchange
        chance = random.uniform(0.5, 1.5)  # noqa: S311 - no secret
        wait_s = retries.backoff_s * 2.0 ** ((self._count - 1) / retries.attempts) * chance

        def send() -> None:
            self._timer = None
            self._send_to(pool)

        self._timer = asyncio.get_running_loop().call_later(wait_s, send)
        self._deadlines.wait(wait_s + self._context.config.read_timeout_s)
        exchange.client.update_reading()

    def may_start_over(self, unsafe: bool) -> bool:
        """Say whether the request may go elsewhere instead of what was tried, as it might for a retry.

        `unsafe`: also if its method is not idempotent.
        """
        exchange = self._exchange
        policies = exchange.route.policies if exchange.route is not None else None
        if exchange.answer_begun or not exchange.active:
            return False
        was_sent = exchange.pool is not None
        unsafe = unsafe or (policies is not None and policies.retries.unsafe)
        return self._may_repeat(unsafe) if was_sent else exchange.body.is_kept

    def start_over(self) -> None:
        """Give up what was tried, before the request goes elsewhere."""
        retries = self._exchange.retries
        self._accounting.retrying()
        self.drop()
        self._tried = _NO_POOLS
        self.begin()
        self._exchange.retries = retries + 1

    def _may_repeat(self, unsafe: bool) -> bool:
        """Say whether a request that may have got through can be sent again."""
        exchange = self._exchange
        if not exchange.body.is_kept:
            return False
        # All of a body that is longer than what the route keeps may be at hand by chance.
        policies = exchange.route.policies if exchange.route is not None else None
        if policies is not None and 0 < policies.keeps_body < exchange.body.size:
            return False
        return unsafe or exchange.method in _IDEMPOTENT or not (exchange.body.size or exchange.request_done)

    def close(self) -> None:
        """Let go of everything, as the request is over."""
        if self._exchange.upstream_state is not None:
            self._part_with_state()
        self._deadlines.end()
        self._exchange.pool = None
        self._tried = _NO_POOLS


def _release(circuit: Circuit | None) -> None:
    if circuit is not None:
        circuit.release_connection()
