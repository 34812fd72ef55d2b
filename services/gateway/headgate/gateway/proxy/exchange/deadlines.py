"""How long the side that has to move next may take; `expiry` says what becomes of a request when it takes longer.

Timeouts from `SHORT_S` on are kept by the tick of the coarse clock, and may be late by two ticks. Shorter ones of whole
requests, of attempts and of waiting for an upstream begin at the very time, and are kept by `ShortDeadlines`.
"""

import math
import time

from headgate.gateway.proxy.context import ProxyContext
from headgate.gateway.proxy.exchange.active_request import ActiveRequest
from headgate.gateway.proxy.exchange.pace import Pace
from headgate.gateway.proxy.short_deadlines import SHORT_S, Expiring


class Deadlines(Expiring):
    """Sets the deadline of one exchange's client, which the tick of the clock compares with the time."""

    __slots__ = ("_answer_pace", "_body_pace", "_clock", "_config", "_exchange", "_is_short", "_shorts", "expires")

    def __init__(self, exchange: ActiveRequest, context: ProxyContext) -> None:
        super().__init__()
        self._exchange = exchange
        self._clock = context.clock
        self._config = context.config
        self._shorts = context.short_deadlines
        self._body_pace: Pace | None = None
        """At which the body comes; None: nobody has waited for more of it yet."""
        self.begin()

    def begin(self) -> None:
        """Begin with a request."""
        self.expires = math.inf
        """When the whole request has to be over."""
        self._answer_pace: Pace | None = None
        """At which the client takes the answer; None: nothing has waited for it yet."""
        self._is_short = False
        """The whole request, or an attempt of it, has less than `SHORT_S`."""

    def end(self) -> None:
        """Let go of the clock, as the request is over."""
        if self._is_short:
            self._shorts.remove(self)

    def allow(self, seconds: float) -> None:
        """Bound the time for the whole request, if it is not shorter already."""
        if seconds < SHORT_S:
            self._is_short = True
            self.expires = min(self.expires, time.monotonic() + seconds)
            self._shorts.add(self, self.expires)
        else:
            self.expires = min(self.expires, self._clock.now + seconds)

    def look(self, now: float) -> None:
        """End the request if its time is over, or look again when it will be."""
        exchange = self._exchange
        if not exchange.active:
            return
        deadline = exchange.client.deadline
        if deadline <= now:
            exchange.timed_out()
        elif deadline - now < SHORT_S:
            self._shorts.add(self, deadline)

    def remaining_s(self) -> float:
        """Give the seconds that the whole request may yet take."""
        return max(0.0, self.expires - time.monotonic())

    def wait(self, timeout_s: float, *, is_late: bool = False) -> None:
        """Wait for so long, unless the whole request has less and is not late already."""
        deadline = self._clock.now + timeout_s
        self._bound(deadline if is_late else min(deadline, self.expires))

    def lift(self) -> None:
        """Wait for something that bounds itself."""
        self._exchange.client.deadline = math.inf

    def set(self) -> None:
        """Bound the wait for whoever has to move next."""
        exchange, config = self._exchange, self._config
        client, route, upstream = exchange.client, exchange.route, exchange.upstream
        begins = self._clock.now
        if exchange.tunnel:
            timeout_s = self._tunnel_idle_s()
        elif upstream is not None and upstream.write_paused:
            timeout_s = (route.send_timeout_s if route is not None else None) or config.send_timeout_s
        elif client.write_paused:
            timeout_s = self._answer_timeout_s()
        elif route is None or not exchange.request_done:
            timeout_s = self._body_timeout_s()
        else:
            timeout_s = route.read_timeout_s or config.read_timeout_s
            per_try_s = route.policies.retries.per_try_s if route.policies is not None else None
            if per_try_s is not None and per_try_s < timeout_s and not exchange.answer_begun:
                timeout_s = per_try_s
            if timeout_s < SHORT_S:
                self._is_short = True
                begins = time.monotonic()
        self._bound(min(begins + timeout_s, self.expires))

    def _bound(self, deadline: float) -> None:
        self._exchange.client.deadline = deadline
        if self._is_short and deadline - self._clock.now < SHORT_S:
            self._shorts.add(self, deadline)

    @property
    def is_expired(self) -> bool:
        """The whole request has taken longer than it may."""
        return time.monotonic() >= self.expires

    @property
    def is_client_in_time(self) -> bool:
        """A client that takes the answer slowly has taken enough of it."""
        return self._answer_timeout_s() > 0.0

    def restart_pace(self) -> None:
        """Begin a period in which enough of the body has to come."""
        self._body_pace = Pace(self._exchange.body.received, self._clock.now)

    def _body_timeout_s(self) -> float:
        """How long to wait for more of the body: until the end of the period in which too little of it came.

        One of unknown length may be a stream of messages, and so may one that is being answered already.
        """
        exchange, config, pace = self._exchange, self._config, self._body_pace
        timeout_s = config.body_timeout_s
        if pace is None or exchange.fields.content_length < 0 or exchange.answer_begun or not config.min_body_rate:
            return timeout_s
        now = self._clock.now
        return pace.ends(exchange.body.received, int(config.min_body_rate * timeout_s), timeout_s, now) - now

    def _answer_timeout_s(self) -> float:
        """How long to wait for a client that takes the answer slowly: until the end of the period in which too little
        of it was taken. The client may catch up meanwhile; then it has taken enough.
        """
        config, now, taken = self._config, self._clock.now, self._exchange.client.taken()
        if self._answer_pace is None:
            self._answer_pace = Pace(taken, now)
        return self._answer_pace.ends(taken, config.min_taken, config.body_timeout_s, now) - now

    def _tunnel_idle_s(self) -> float:
        route = self._exchange.route
        policies = route.policies if route is not None else None
        idle_s = policies.idle_s if policies is not None else None
        return self._config.tunnel_idle_timeout_s if idle_s is None else idle_s
