"""What limits count by, and where the counts are."""

import json
from collections import OrderedDict
from typing import Generic, Literal, TypeVar

from pydantic import Field

from headgate.gateway.plugins.addresses import NetworkSet, NetworkText
from headgate.gateway.plugins.interface import PluginConfig, Request, Response
from headgate.gateway.plugins.patterns import Template
from headgate.gateway.plugins.variables import variable

MAX_KEYS = 100_000
"""Keys that one limit remembers in one worker; beyond them the one not seen for longest is forgotten."""

T = TypeVar("T")

KeyType = Literal["var", "var_combination", "constant"]


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

    __slots__ = ("_kind", "_template", "_text")

    def __init__(self, text: str, kind: KeyType) -> None:
        self._text = text.removeprefix("$") if kind == "var" else text
        self._kind = kind
        self._template = Template(text)

    def read(self, request: Request) -> str:
        """Return the key; the client's address where the request has nothing of it, as Apache APISIX does."""
        if self._kind == "constant":
            return self._text
        if self._kind == "var":
            return variable(request, self._text) or request.client
        return self._template.render(request).strip() or request.client


class LimitConfig(PluginConfig):
    """What all limits can be told."""

    policy: Literal["local"] = "local"
    """Counts are kept by each worker for itself."""
    rejected_code: int = Field(default=503, ge=200, le=599)
    rejected_msg: str | None = Field(default=None, min_length=1)
    """Answered as `{"error_msg": ...}`."""
    allow_degradation: bool = False
    """Taken for compatibility: a local limit has nothing that could be down."""
    allowlist: tuple[NetworkText, ...] = ()
    """Clients that are not limited."""


class LimitKeyConfig(LimitConfig):
    """A limit by one key."""

    key: str = Field(default="remote_addr", min_length=1)
    """Name of a variable; with `var_combination` a template: `$remote_addr $http_user_agent`."""
    key_type: KeyType = "var"


def rejection(config: LimitConfig, reason: str) -> Response:
    """Make the answer to a request that a limit refuses."""
    if config.rejected_msg is None:
        return Response.refusal(config.rejected_code, reason)
    text = json.dumps({"error_msg": config.rejected_msg}) + "\n"
    response = Response.text(config.rejected_code, text, content_type="application/json")
    response.reason = reason
    return response


def exempted(config: LimitConfig) -> NetworkSet | None:
    """Return the clients that are not limited, None if all are."""
    return NetworkSet(config.allowlist) if config.allowlist else None
