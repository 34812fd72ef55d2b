"""What limits count by, and where the counts are."""

from collections import OrderedDict
from typing import Generic, TypeVar

from headgate.common.plugins.client_address import ClientAddressConfig
from headgate.common.plugins.limits.limits import KeyType, LimitConfig, LimitKeyConfig
from headgate.gateway.model.addresses import NetworkSet
from headgate.gateway.plugins.interface import PluginServices, Request, Response
from headgate.gateway.plugins.interface.variables import variable
from headgate.gateway.plugins.kit.client_addresses import AddressReader
from headgate.gateway.plugins.kit.patterns import Template

MAX_KEYS = 100_000
"""Keys that one limit remembers in one worker; beyond them the one not seen for longest is forgotten."""

_NO_ADDRESS = "-"
"""What requests without the address that counts are counted by."""

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


class KeyReader:
    """Reads from a request what a limit counts by."""

    __slots__ = ("_address", "_is_optional", "_kind", "_template", "_text")

    def __init__(
        self, text: str, kind: KeyType, *, is_optional: bool = False, client: ClientAddressConfig | None = None
    ) -> None:
        """Take a key; an optional one is None for a request that has nothing of it, and an address goes before it."""
        self._address = AddressReader(client) if client is not None else None
        self._text = text.removeprefix("$") if kind == "var" else text
        self._kind = kind
        self._template = Template(text)
        self._is_optional = is_optional

    def read(self, request: Request) -> str | None:
        """Return the key; the client's address where the request has nothing of it, as Apache APISIX does."""
        if self._address is not None:
            return self._address.read(request) or _NO_ADDRESS
        if self._is_optional:
            return self._template.render_known(request)
        if self._kind == "constant":
            return self._text
        if self._kind == "var":
            return variable(request, self._text) or request.client
        return self._template.render(request).strip() or request.client


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
