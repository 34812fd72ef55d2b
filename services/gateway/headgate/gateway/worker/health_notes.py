"""What `explain` says of the health of endpoints, as this worker knows it."""

from collections.abc import Mapping

from headgate.gateway.health.state import Knowledge
from headgate.gateway.health.upstreams import UpstreamHealth
from headgate.gateway.table.explaining.explanation import HealthNote


def health_notes(health: UpstreamHealth, upstream: str) -> Mapping[tuple[str, int], HealthNote]:
    """Return what is known of the endpoints of an upstream that are not well or failed requests."""
    return {(known.address, known.port): _note(known) for known in health.knowledge(upstream)}


def _note(known: Knowledge) -> HealthNote:
    failures = f"{known.failures} failed, the last {known.failed_s:.0f} s ago: {known.last_error}"
    return HealthNote(
        is_unhealthy=known.is_unhealthy,
        ejected_s=known.ejected_s,
        failures=failures if known.failures else "",
    )
