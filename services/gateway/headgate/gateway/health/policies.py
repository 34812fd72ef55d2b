"""The part of an upstream that health is about, without the endpoints: kept between compiling and the swap."""

from typing import NamedTuple

from headgate.common.table import ActiveCheck, BackendProtocol, CircuitBreaker, Ejection, Upstream


class HealthPolicies(NamedTuple):
    """What an upstream asks for; all None is an upstream that nobody watches."""

    active_check: ActiveCheck | None = None
    ejection: Ejection | None = None
    circuit_breaker: CircuitBreaker | None = None
    protocol: BackendProtocol = BackendProtocol.HTTP
    ca_pem: str = ""
    """Authorities for checks over TLS."""
    server_name: str = ""

    @property
    def are_none(self) -> bool:
        """Whether there is nothing to watch."""
        return self.active_check is None and self.ejection is None and self.circuit_breaker is None


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
    )
    return NO_POLICIES if policies.are_none else policies
