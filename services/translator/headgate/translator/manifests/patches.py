"""What annotations and policies say of routes and upstreams: parts of a table's entries, put together by one rule.

A patch has the fields of an entry of the table, none of which has to be given. Several patches for one entry are put
together by `over`, in the order of precedence of what they come from:

    an Ingress' routes    annotations of ours, then those of Apache APISIX, then policies for the Ingress, then policies
                          for the backend
    a Service's upstream  what the object that refers to it says, then annotations of the Service, then policies for it
"""

from collections.abc import Iterable
from typing import Any, Final, Literal, Self

from headgate.common.table import (
    ActiveCheck,
    AllOf,
    BackendProtocol,
    BackendTls,
    Balancing,
    CircuitBreaker,
    Compare,
    Condition,
    Ejection,
    FastCgi,
    Mirror,
    PluginUse,
    Retries,
    RetryBudget,
    Stickiness,
    Subject,
    Timeouts,
    Tracing,
)
from headgate.common.table.base import Entry

_ADDED_UP = frozenset(("plugins", "conditions", "mirrors"))
"""Fields of which what several patches say holds together."""


class Patch(Entry):
    """Base of all patches. A field that is None, or empty, is not said."""

    @property
    def said(self) -> dict[str, Any]:
        """The fields that are said."""
        if not self.model_fields_set:
            return {}
        return {name: value for name, value in self.__dict__.items() if value is not None and value != ()}

    def over(self, other: Self) -> Self:
        """Return both patches in one: this one's fields go before the other's; plugins, mirrors, conditions add up."""
        if not self.model_fields_set:
            return other
        ours, theirs = self.said, other.said
        both = {name: ours[name] + theirs[name] for name in _ADDED_UP & ours.keys() & theirs.keys()}
        return self if not theirs else type(self)(**{**theirs, **ours, **both})


class RoutePatch(Patch):
    """What is said of a `Route`."""

    conditions: tuple[Condition, ...] = ()
    """That requests have to satisfy besides; `Route.when` is all of them."""
    priority: int | None = None
    """As in `Rank`."""
    path_priority: int | None = None
    """As in `Rank`."""
    timeouts: Timeouts | None = None
    retries: Retries | None = None
    stickiness: Stickiness | None = None
    plugins: tuple[PluginUse, ...] = ()
    max_body: int | None = None
    buffer_request: bool | None = None
    keeps_body: int | None = None
    needs_length: bool | None = None
    buffer_response: int | None = None
    websocket: bool | None = None
    request_trailers: bool | None = None
    nginx_headers: bool | None = None
    as_traefik: bool | None = None
    mirrors: tuple[Mirror, ...] = ()
    tracing: Tracing | None = None
    access_log_share: float | None = None

    @property
    def when(self) -> Condition | None:
        """All of the conditions as one; None without any."""
        return all_of(self.conditions)

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of the `Route` that are said, but for its conditions and its rank."""
        return {name: value for name, value in self.said.items() if name not in _NO_FIELDS}


_NO_FIELDS = frozenset(("conditions", "priority", "path_priority"))


class UpstreamPatch(Patch):
    """What is said of an `Upstream`."""

    protocol: BackendProtocol | None = None
    balancing: Balancing | None = None
    active_check: ActiveCheck | None = None
    ejection: Ejection | None = None
    circuit_breaker: CircuitBreaker | None = None
    retry_budget: RetryBudget | None = None
    tls: BackendTls | None = None
    host: str | None = None
    proxy_protocol: Literal[1, 2] | None = None
    resolve_s: float | None = None
    max_idle: int | None = None
    idle_timeout_s: float | None = None
    max_requests_per_connection: int | None = None
    sends_connection: bool | None = None
    fastcgi: FastCgi | None = None


NO_ROUTE_PATCH = RoutePatch()
NO_UPSTREAM_PATCH = UpstreamPatch()


OVER_TLS: Final = Compare(subject=Subject.SCHEME, values=("https",))
"""What holds for requests that came over TLS."""


def all_of(conditions: Iterable[Condition]) -> Condition | None:
    """Return conditions as one; None for none."""
    found = tuple(conditions)
    return AllOf(all_of=found) if len(found) > 1 else next(iter(found), None)
