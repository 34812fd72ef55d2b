"""What the winning route would send a request to, and what is known of these endpoints."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from headgate.common.table import (
    Backend,
    BackendGroup,
    Condition,
    Endpoint,
    FirstMatch,
    Mirror,
    PluginUse,
    Route,
    Upstream,
)
from headgate.common.table.backend_group import Nested, fault_of_nesting, nested_in
from headgate.gateway.balancing.levels import Place
from headgate.gateway.balancing.seats import reaches, usable_endpoints, why_unavailable
from headgate.gateway.plugins.runtime.verdicts import PluginVerdict, first_answer
from headgate.gateway.table.explaining.explanation import (
    ExplainedBackend,
    ExplainedEndpoint,
    ExplainedMirror,
    HealthNote,
)
from headgate.gateway.table.view import TableView

BY_RULE: Final = "by rule"
"""Role of a backend that is chosen by what the request is."""
Takes = Callable[[Condition], bool]
"""Tells whether the request that is explained satisfies a condition."""
AskPlugins = Callable[[tuple[PluginUse, ...]], Sequence[PluginVerdict]]
"""Returns the verdicts of plugins on the request that is explained."""
HealthOf = Callable[[str], Mapping[tuple[str, int], HealthNote]]
"""Returns what is known of the endpoints of an upstream, by address and port; nothing of those that are well."""


def no_health(upstream: str) -> Mapping[tuple[str, int], HealthNote]:
    """Stand for `HealthOf` where there is no gateway."""
    return {}


class _Leading(NamedTuple):
    """How a backend is reached."""

    share: float = 1.0
    groups: tuple[str, ...] = ()
    plugins: tuple[PluginVerdict, ...] = ()
    role: str = ""


class BackendExplainer:
    """Says where the requests of a route go.

    Args:
        table: what to decide by.
        place: where the gateway is.
        health_of: what it knows of endpoints.
        ask: asks plugins of backends.
        takes: decides for groups that choose by the request, which is seen as it came.
    """

    def __init__(self, table: TableView, place: Place, health_of: HealthOf, ask: AskPlugins, takes: Takes) -> None:
        self._table = table
        self._place = place
        self._health_of = health_of
        self._ask = ask
        self._takes = takes

    def backends(self, route: Route) -> tuple[ExplainedBackend, ...]:
        """Return the backends of a route, those of groups too, with their shares of its requests."""
        return tuple(self._split(route.backends, _Leading()))

    def _split(self, backends: Sequence[Backend], leading: _Leading) -> Iterator[ExplainedBackend]:
        total = sum(backend.weight for backend in backends) or 1
        for backend in backends:
            yield from self._backend(backend, leading, backend.weight / total)

    def _backend(self, backend: Backend, leading: _Leading, share: float) -> Iterator[ExplainedBackend]:
        plugins = (*leading.plugins, *(self._ask(backend.plugins) if backend.plugins else ()))
        leading = leading._replace(share=leading.share * share, plugins=plugins)
        if backend.group:
            yield from self._group(backend.group, leading, backend.weight)
            return
        upstream = self._table.entry(Upstream, backend.upstream)
        notes = self._health_of(backend.upstream)
        found = _explain(backend.upstream, backend.weight, leading.share, upstream, self._place, notes)
        yield found.model_copy(update={"groups": leading.groups, "plugins": plugins, "role": leading.role})

    def _group(self, key: str, leading: _Leading, weight: int) -> Iterator[ExplainedBackend]:
        group = self._table.entry(BackendGroup, key)
        fault = "is not in the table" if group is None else fault_of_nesting(key, self._nested)
        within = leading._replace(groups=(*leading.groups, key))
        if group is None or fault:
            reason = f"backend group {key} {fault}"
            yield ExplainedBackend(
                upstream="", weight=weight, share=leading.share, unavailable=reason, groups=within.groups
            )
        elif group.failover is not None:
            main = list(self._backend(group.failover.main, within._replace(role="main"), 1.0))
            is_down = not any(map(_has_healthy, main))
            yield from (one.model_copy(update={"share": 0.0}) for one in main) if is_down else main
            fallback = within._replace(role="fallback")
            yield from self._backend(group.failover.fallback, fallback, 1.0 if is_down else 0.0)
        elif group.mirroring is not None:
            yield from self._backend(group.mirroring.main, within, 1.0)
        elif group.first_match is not None:
            yield from self._first_match(group.first_match, within)
        else:
            role = "by hash" if group.hashed is not None else leading.role
            yield from self._split(group.backends, within._replace(role=role))

    def _first_match(self, group: FirstMatch, within: _Leading) -> Iterator[ExplainedBackend]:
        """Give the first that takes the request as it came all of it: plugins that are not asked may change that."""
        is_taken = False
        for choice in group.choices:
            is_first = not is_taken and (choice.when is None or self._takes(choice.when))
            is_taken = is_taken or is_first
            found = self._backend(choice.backend, within._replace(role=BY_RULE), 1.0)
            yield from found if is_first else (one.model_copy(update={"share": 0.0}) for one in found)

    def _nested(self, key: str) -> Nested | None:
        group = self._table.entry(BackendGroup, key)
        return nested_in(group) if group is not None else None

    def mirrors(self, route: Route) -> tuple[ExplainedMirror, ...]:
        """Return where copies go, and why they do not arrive as far as the table says that."""
        return tuple(self._copies(route.mirrors, 1.0)) + tuple(self._mirrors_of(route.backends, 1.0))

    def _mirrors_of(self, backends: Sequence[Backend], share: float) -> Iterator[ExplainedMirror]:
        total = sum(backend.weight for backend in backends) or 1
        for backend in backends:
            part = share * backend.weight / total
            yield from self._copies(backend.mirrors, part)
            group = self._table.entry(BackendGroup, backend.group) if backend.group else None
            if group is not None and not fault_of_nesting(group.key, self._nested):
                yield from self._copies(group.mirrors, part)
                backends_within = group.backends[:1] if group.failover is not None else group.backends
                yield from self._mirrors_of(backends_within, part)

    def _copies(self, mirrors: Iterable[Mirror], share: float) -> Iterator[ExplainedMirror]:
        for mirror in mirrors:
            yield ExplainedMirror(target=mirror.target, share=share * mirror.share, unavailable=self._why_lost(mirror))

    def _why_lost(self, mirror: Mirror) -> str:
        if mirror.address:
            return ""
        target = Backend(upstream=mirror.upstream, group=mirror.group)
        found = [each for each in self._backend(target, _Leading(), 1.0) if each.share]
        return "; ".join(each.unavailable for each in found) if all(each.unavailable for each in found) else ""


def _has_healthy(backend: ExplainedBackend) -> bool:
    """Tell whether a backend has a healthy endpoint; without one unhealthy ones may get requests."""
    taking = (endpoint.state for endpoint in backend.endpoints if endpoint.gets_requests)
    return any(not state.startswith(("unhealthy", "ejected")) for state in taking)


def _explain(
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
    taking = [backend for backend in backends if backend.share]
    down = [backend for backend in taking if backend.unavailable]
    if not taking and any(backend.role == BY_RULE for backend in backends):
        return f"404: {winner.name} takes it, and no route behind its middlewares does, if they leave it as it is"
    if not taking:
        return f"503: all backends of {winner.name} have weight 0"
    if down == taking:
        status = " or ".join(dict.fromkeys(_status_of(backend) for backend in down))
        return f"{status}: {'; '.join(backend.unavailable for backend in down)}"
    targets = ", ".join(f"{backend.target} ({backend.share:.0%})" for backend in taking)
    statuses = " or ".join(dict.fromkeys(_status_of(backend) for backend in down))
    partly = f"; {statuses} for the share of {', '.join(backend.target for backend in down)}" if down else ""
    return f"{winner.name} sends it to {targets}{partly}"


def _status_of(backend: ExplainedBackend) -> str:
    """Return what a backend without endpoints answers: its plugins are asked first."""
    answer = first_answer(backend.plugins)
    return str(answer.status) if answer is not None else "503"
