"""The part of an upstream that health is about, without the endpoints: kept between compiling and the swap."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple, Protocol

from headgate.common.table import ActiveCheck, BackendProtocol, CircuitBreaker, Ejection, RetryBudget, Upstream
from headgate.gateway.model.steps import Steps

if TYPE_CHECKING:
    from headgate.gateway.health.state import OnChange, Slot, UpstreamState


class HealthPolicies(NamedTuple):
    """What an upstream asks for; all None is an upstream that nobody watches."""

    active_check: ActiveCheck | None = None
    ejection: Ejection | None = None
    circuit_breaker: CircuitBreaker | None = None
    protocol: BackendProtocol = BackendProtocol.HTTP
    ca_pem: str = ""
    """Authorities for checks over TLS."""
    server_name: str = ""
    retry_budget: RetryBudget | None = None

    @property
    def are_none(self) -> bool:
        """Whether there is nothing to watch."""
        is_watched = self.active_check is not None or self.ejection is not None
        return not is_watched and self.circuit_breaker is None and self.retry_budget is None


class WatchesUpstreams(Protocol):
    """What the table's compiler tells of swaps: `UpstreamHealth`."""

    def adopt(self, key: str, policies: HealthPolicies, slots: "Iterable[Slot]", on_change: "OnChange") -> Steps[None]:
        """Go on with a revision of an upstream; `on_change` hears which endpoints may get requests."""

    def find(self, key: str) -> "UpstreamState | None":
        """Return what requests have to tell, None if there is nothing."""

    def count_retries(self, key: str, slots: "Iterable[Slot]") -> "UpstreamState | None":
        """Return what counts the retries of an upstream without policies, that has these endpoints."""

    def forget(self, key: str) -> None:
        """End all that is done for an upstream that left the table."""


class WatchesNothing:
    """Stands in where nothing is served, as in offline checks."""

    def adopt(self, key: str, policies: HealthPolicies, slots: "Iterable[Slot]", on_change: "OnChange") -> Steps[None]:
        """Pass over."""
        yield from ()

    def find(self, key: str) -> "UpstreamState | None":
        """Return nothing."""
        return None

    def count_retries(self, key: str, slots: "Iterable[Slot]") -> "UpstreamState | None":
        """Return nothing."""
        return None

    def forget(self, key: str) -> None:
        """Pass over."""


NO_POLICIES = HealthPolicies()


def policies_of(upstream: Upstream) -> HealthPolicies:
    """Take an upstream's policies."""
    tls = upstream.tls
    policies = HealthPolicies(
        upstream.active_check,
        upstream.ejection,
        upstream.circuit_breaker,
        upstream.protocol,
        tls.ca_pem if tls else "",
        tls.server_name if tls else "",
        upstream.retry_budget,
    )
    return NO_POLICIES if policies.are_none else policies
