"""How long the side that has to move next may take; `expiry` says what becomes of a request when it takes longer."""

import math

from headgate.gateway.proxy.context import ProxyContext
from headgate.gateway.proxy.exchange.active_request import ActiveRequest
from headgate.gateway.proxy.exchange.pace import Pace


class Deadlines:
    """Sets the deadline of one exchange's client, which the tick of the clock compares with the time."""

    __slots__ = ("_answer_pace", "_body_pace", "_clock", "_config", "_exchange", "expires")

    def __init__(self, exchange: ActiveRequest, context: ProxyContext) -> None:
        self._exchange = exchange
        self._clock = context.clock
        self._config = context.config
        self._body_pace: Pace | None = None
        """At which the body comes; None: nobody has waited for more of it yet."""
        self.begin()

    def begin(self) -> None:
        """Begin with a request."""
        self.expires = math.inf
        """When the whole request has to be over."""
        self._answer_pace: Pace | None = None
        """At which the client takes the answer; None: nothing has waited for it yet."""

    def allow(self, seconds: float) -> None:
        """Bound the time for the whole request, if it is not shorter already."""
        self.expires = min(self.expires, self._clock.now + seconds)

    def remaining_s(self) -> float:
        """Give the seconds that the whole request may yet take."""
        return max(0.0, self.expires - self._clock.now)

    def wait(self, timeout_s: float, *, is_late: bool = False) -> None:
        """Wait for so long, unless the whole request has less and is not late already."""
        deadline = self._clock.now + timeout_s
        self._exchange.client.deadline = deadline if is_late else min(deadline, self.expires)

    def lift(self) -> None:
        """Wait for something that bounds itself."""
        self._exchange.client.deadline = math.inf

    def set(self) -> None:
        """Bound the wait for whoever has to move next."""
        exchange, config = self._exchange, self._config
        client, route, upstream = exchange.client, exchange.route, exchange.upstream
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
            policies = route.policies
            if policies is not None and policies.retries.per_try_s is not None and not exchange.answer_begun:
                timeout_s = min(timeout_s, policies.retries.per_try_s)
        client.deadline = min(self._clock.now + timeout_s, self.expires)

    @property
    def is_expired(self) -> bool:
        """The whole request has taken longer than it may."""
        return self._clock.now >= self.expires

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
