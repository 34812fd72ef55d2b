"""Where the counts of limits are, and what is answered where they are reached."""

from collections import OrderedDict
from typing import Generic, TypeVar

from headgate.common.plugins.limits.limits import LimitConfig, LimitKeyConfig
from headgate.gateway.model.addresses import NetworkSet
from headgate.gateway.plugins.interface import PluginServices, Request, Response

MAX_KEYS = 100_000
"""Keys that one limit remembers in one worker; beyond them the one not seen for longest is forgotten."""

T = TypeVar("T")


class Keyed(Generic[T]):
    """A state for each key, a bounded number of them."""

    __slots__ = ("__weakref__", "_limit", "_states")

    def __init__(self, limit: int = MAX_KEYS) -> None:
        self._states: OrderedDict[str, T] = OrderedDict()
        self._limit = limit

    def get(self, key: str) -> T | None:
        """Return the state of a key."""
        state = self._states.get(key)
        if state is not None:
            self._states.move_to_end(key)
        return state

    def put(self, key: str, state: T) -> T:
        """Remember the state of a key."""
        self._states[key] = state
        if len(self._states) > self._limit:
            self._states.popitem(last=False)
        return state

    def drop(self, key: str) -> None:
        """Forget a key."""
        self._states.pop(key, None)

    def __len__(self) -> int:
        return len(self._states)


class Held(Generic[T]):
    """Holds a compiled object where something is shared, which is held weakly: compiled objects cannot be."""

    __slots__ = ("__weakref__", "it")

    def __init__(self, it: T) -> None:
        self.it = it


def rejection(config: LimitConfig, reason: str) -> Response:
    """Make the answer to a request that a limit refuses."""
    if config.rejected_msg is None:
        return Response.refusal(config.rejected_code, reason)
    return Response.json(config.rejected_code, {"error_msg": config.rejected_msg}, reason=reason)


def not_counted(config: LimitConfig, services: PluginServices, request: Request, reason: str) -> Response | None:
    """Let a request pass that cannot be counted, or make the answer to it."""
    services.logger.warning("a limit of %s cannot count: %s", request.route, reason)
    return None if config.allow_degradation else Response.refusal(500, "the limit of requests cannot be counted")


def counted_as(config: LimitKeyConfig, services: PluginServices) -> str:
    """Return which uses of a limit count together: those of a group in a namespace, else those of one route."""
    return f"group|{services.owner}|{config.group}" if config.group else services.scope


def exempted(config: LimitConfig) -> NetworkSet | None:
    """Return the clients that are not limited, None if all are."""
    return NetworkSet(config.allowlist) if config.allowlist else None
