"""What `explain`, and summaries of traffic, say of the health of endpoints, as this worker knows it."""

import time
from collections.abc import Iterator, Mapping
from itertools import islice

from headgate.common.traffic import MAX_ROWS, UnfitEndpoint
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


def unfit_endpoints(health: UpstreamHealth) -> tuple[UnfitEndpoint, ...]:
    """Return the endpoints that get no requests, as many as summaries tell."""
    return tuple(islice(_unfit(health), MAX_ROWS))


def _unfit(health: UpstreamHealth) -> Iterator[UnfitEndpoint]:
    now = time.time()
    for upstream in list(health.stats.unavailable):
        for known in health.knowledge(upstream):
            if known.is_unhealthy or known.ejected_s:
                yield UnfitEndpoint(
                    upstream=upstream,
                    endpoint=f"[{known.address}]:{known.port}"
                    if ":" in known.address
                    else f"{known.address}:{known.port}",
                    reason="unhealthy" if known.is_unhealthy else "ejected",
                    since=now - known.out_s,
                    until=now + known.ejected_s if known.ejected_s and not known.is_unhealthy else 0.0,
                    error=known.check_error or known.last_error,
                )
