"""`circuit-breaker`: refuse requests for a while when too many of them fail, by an expression (Traefik).

Standing by, it notes answers of what comes behind it and evaluates the expression now and then. Once that holds, all
requests are refused for some time; then more and more are let through, and if the expression does not hold again
meanwhile, all are. Each route has a breaker of its own, in each worker.
"""

import random
from collections.abc import Callable
from typing import Final

from headgate.common.plugins.comparisons import Call, Value, read_condition
from headgate.common.plugins.limits.circuit_breaker import FUNCTIONS, CircuitBreakerConfig
from headgate.gateway.plugins.interface import Plugin, PluginServices, Request, Response

_NETWORK_ERRORS: Final = (502, 504)
_COUNTED_S: Final = 10
"""Seconds whose answers count for ratios, in whole seconds."""
_TIMED_S: Final = 60
"""And for latencies."""
_MAX_SAMPLES: Final = 1000
"""Latencies that are kept of a second, beyond which some are by chance."""


class _Second:
    """What came in one second."""

    __slots__ = ("at", "codes", "latencies_ms", "seen")

    def __init__(self, at: int) -> None:
        self.at = at
        self.codes: dict[int, int] = {}
        self.latencies_ms: list[float] = []
        self.seen = 0


class _Metrics:
    """Answers of the last minute."""

    def __init__(self) -> None:
        self._seconds: list[_Second] = []

    def record(self, code: int, latency_ms: float, now: float) -> None:
        at = int(now)
        if not self._seconds or self._seconds[-1].at != at:
            self._seconds = [each for each in self._seconds if each.at > at - _TIMED_S]
            self._seconds.append(_Second(at))
        second = self._seconds[-1]
        second.codes[code] = second.codes.get(code, 0) + 1
        second.seen += 1
        if len(second.latencies_ms) < _MAX_SAMPLES:
            second.latencies_ms.append(latency_ms)
        elif (place := random.randrange(second.seen)) < _MAX_SAMPLES:  # noqa: S311 - no secret
            second.latencies_ms[place] = latency_ms

    def ask(self, call: Call, now: float) -> Value:
        """Return what a function gives."""
        match call.name:
            case "LatencyAtQuantileMS":
                return self._latency_ms(call.arguments[0], now)
            case "NetworkErrorRatio":
                return _ratio(self._count(lambda code: code in _NETWORK_ERRORS, now), self._count(None, now))
            case "RequestThreshold":
                return self._count(None, now)
            case _:
                first, end, of_first, of_end = call.arguments
                part = self._count(lambda code: first <= code < end, now)
                return _ratio(part, self._count(lambda code: of_first <= code < of_end, now))

    def _count(self, takes: Callable[[int], bool] | None, now: float) -> int:
        recent = [each for each in self._seconds if each.at > now - _COUNTED_S]
        return sum(count for each in recent for code, count in each.codes.items() if takes is None or takes(code))

    def _latency_ms(self, quantile: float, now: float) -> int:
        found = sorted(one for each in self._seconds if each.at > now - _TIMED_S for one in each.latencies_ms)
        return int(found[min(int(len(found) * quantile / 100), len(found) - 1)]) if found else 0


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


class _Breaker:
    """The state of one, which outlives the table."""

    def __init__(self) -> None:
        self.metrics = _Metrics()
        self.next_look = 0.0
        self.state = "standby"
        self.since = 0.0
        self.allowed = self.denied = 0


class CircuitBreaker(Plugin[CircuitBreakerConfig]):
    """Opens and closes the circuit of a route."""

    name = "circuit-breaker"
    order = 1004
    unforeseen = "counts answers"
    Config = CircuitBreakerConfig

    def __init__(self, config: CircuitBreakerConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._condition = read_condition(config.expression, FUNCTIONS)
        key = (self.name, services.scope, config.model_dump_json())
        self._breaker: _Breaker = services.shared.get(key, _Breaker)
        self._began = f"circuit-breaker.{id(self)}"

    def on_request(self, request: Request) -> Response | None:
        """Refuse a request while the circuit is open."""
        now = self.services.clock()
        if self._breaker.state != "standby" and self._refuses(now):
            return Response.refusal(self.config.response_code, "the circuit is open")
        request.variables[self._began] = (now, 0)
        return None

    def _refuses(self, now: float) -> bool:
        breaker, config = self._breaker, self.config
        if breaker.state == "open":
            if now < breaker.since + config.fallback_duration:
                return True
            breaker.state, breaker.since = "recovering", now
            breaker.allowed = breaker.denied = 0
        elapsed = now - breaker.since
        if elapsed > config.recovery_duration:
            breaker.state = "standby"
            return False
        share = (breaker.allowed + 1) / (breaker.allowed + 1 + breaker.denied)
        if share < 0.5 * elapsed / config.recovery_duration:
            breaker.allowed += 1
            return False
        breaker.denied += 1
        return True

    def on_response(self, request: Request, response: Response) -> None:
        """Note the status of an answer."""
        began = request.variables.get(self._began)
        if isinstance(began, tuple):
            request.variables[self._began] = (began[0], response.status)

    def on_finish(self, request: Request, status: int, seconds: float) -> None:
        """Count the answer, and look whether there were too many like it."""
        began = request.variables.get(self._began)
        if not isinstance(began, tuple) or not began[1]:
            return
        breaker, now = self._breaker, self.services.clock()
        breaker.metrics.record(began[1], (now - began[0]) * 1000, now)
        if now < breaker.next_look:
            return
        breaker.next_look = now + self.config.check_period
        if breaker.state != "open" and self._condition.holds(lambda call: breaker.metrics.ask(call, now)):
            breaker.state, breaker.since = "open", now
            breaker.metrics = _Metrics()
