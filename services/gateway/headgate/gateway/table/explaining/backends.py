"""What the winning route would send a request to, and what is known of these endpoints."""

from collections.abc import Callable, Iterable, Mapping

from headgate.common.table import Endpoint, Mirror, Route, Upstream
from headgate.gateway.balancing.levels import Place
from headgate.gateway.balancing.seats import reaches, usable_endpoints, why_unavailable
from headgate.gateway.table.explaining.explanation import (
    ExplainedBackend,
    ExplainedEndpoint,
    ExplainedMirror,
    HealthNote,
)
from headgate.gateway.table.view import TableView

HealthOf = Callable[[str], Mapping[tuple[str, int], HealthNote]]
"""Returns what is known of the endpoints of an upstream, by address and port; nothing of those that are well."""


def no_health(upstream: str) -> Mapping[tuple[str, int], HealthNote]:
    """Stand for `HealthOf` where there is no gateway."""
    return {}


def explain_backends(table: TableView, route: Route, place: Place, health_of: HealthOf) -> tuple[ExplainedBackend, ...]:
    """Return the backends of a route, with their shares of its requests."""
    total = sum(backend.weight for backend in route.backends) or 1
    return tuple(
        _backend(
            backend.upstream,
            backend.weight,
            backend.weight / total,
            table.entry(Upstream, backend.upstream),
            place,
            health_of(backend.upstream),
        )
        for backend in route.backends
    )


def explain_mirrors(table: TableView, mirrors: Iterable[Mirror], place: Place) -> tuple[ExplainedMirror, ...]:
    """Return where copies go, and why they do not arrive as far as the table says that."""
    return tuple(
        ExplainedMirror(target=mirror.target, share=mirror.share, unavailable=_why_lost(table, mirror, place))
        for mirror in mirrors
    )


def _why_lost(table: TableView, mirror: Mirror, place: Place) -> str:
    if mirror.address:
        return ""
    return _backend(mirror.upstream, 1, 1.0, table.entry(Upstream, mirror.upstream), place, {}).unavailable


def _backend(
    key: str,
    weight: int,
    share: float,
    upstream: Upstream | None,
    place: Place,
    notes: Mapping[tuple[str, int], HealthNote],
) -> ExplainedBackend:
    if upstream is None:
        return ExplainedBackend(upstream=key, weight=weight, share=share, unavailable=f"{key} is not in the table")
    reached = [endpoint for endpoint in upstream.endpoints if reaches(place, endpoint)]
    usable = [endpoint for endpoint in usable_endpoints(reached) if endpoint.weight > 0]
    well = [endpoint for endpoint in usable if not notes.get((endpoint.address, endpoint.port), _WELL).is_out]
    is_panic = len(well) < upstream.balancing.panic_threshold * len(usable)
    taking = {id(endpoint) for endpoint in (usable if is_panic else well)}
    return ExplainedBackend(
        upstream=upstream.key,
        weight=weight,
        share=share,
        protocol=upstream.protocol,
        unavailable=""
        if usable
        else upstream.unavailable or why_unavailable(upstream.key, upstream.endpoints, reached),
        endpoints=tuple(
            _endpoint(endpoint, id(endpoint) in taking, place, notes.get((endpoint.address, endpoint.port), _WELL))
            for endpoint in upstream.endpoints
        ),
        provenance=upstream.provenance,
    )


_WELL = HealthNote()


def _endpoint(endpoint: Endpoint, gets_requests: bool, place: Place, note: HealthNote) -> ExplainedEndpoint:
    state = "draining" if endpoint.serving and endpoint.terminating else "not ready"
    if not reaches(place, endpoint):
        state = "for other clusters" if endpoint.hop else f"reached from {endpoint.cluster} only"
    elif note.is_unhealthy:
        state = "unhealthy by active checks"
    elif note.ejected_s:
        state = f"ejected for {note.ejected_s:.0f} s more after failed requests"
    elif endpoint.ready:
        state = "ready"
    return ExplainedEndpoint(
        address=endpoint.address,
        port=endpoint.port,
        weight=endpoint.weight,
        zone=endpoint.zone,
        cluster=endpoint.cluster,
        state=state,
        priority=endpoint.priority,
        hop=endpoint.hop,
        gets_requests=gets_requests,
        failures=note.failures,
    )


def backends_verdict(winner: Route, backends: tuple[ExplainedBackend, ...]) -> str:
    """Say in one sentence what the winner does with a request that it sends on."""
    down = [backend for backend in backends if backend.unavailable and backend.weight]
    if not any(backend.weight for backend in backends):
        return f"503: all backends of {winner.name} have weight 0"
    if len(down) == len(backends):
        return "503: " + "; ".join(backend.unavailable for backend in down)
    targets = ", ".join(f"{backend.upstream} ({backend.share:.0%})" for backend in backends if backend.weight)
    partly = f"; 503 for the share of {', '.join(backend.upstream for backend in down)}" if down else ""
    return f"{winner.name} sends it to {targets}{partly}"
