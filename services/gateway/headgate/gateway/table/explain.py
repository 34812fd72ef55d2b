"""Why a request goes where it goes: every candidate, what it lost by, and what the winner would send to.

Decides with the same index and the same choice of endpoints as requests do, so that it cannot explain something that
does not happen. Works on any `TableView`, with or without a running gateway.
"""

from collections.abc import Mapping

from headgate.common.table import Endpoint, Entry, PathType, Provenance, Route, Upstream, VirtualHost, WeightedBackend
from headgate.gateway.balancing.upstream import usable_endpoints, why_unavailable
from headgate.gateway.table.match import PathIndex, PathRule, host_candidates
from headgate.gateway.table.view import TableView


class Candidate(Entry):
    """A route of the request's virtual host, or a virtual host that was passed over."""

    host: str
    route: str = ""
    """Empty for a virtual host that was passed over as a whole."""
    path_type: PathType | None = None
    path: str = ""
    wins: bool = False
    reason: str
    """Why it won or lost."""
    provenance: Provenance | None = None


class ExplainedEndpoint(Entry):
    """An endpoint of a backend."""

    address: str
    port: int
    weight: int
    zone: str = ""
    cluster: str = ""
    state: str
    """`ready`, `draining` or `not ready`."""
    gets_requests: bool


class ExplainedBackend(Entry):
    """A backend of the winning route."""

    upstream: str
    weight: int
    share: float
    """Of the route's requests, 0 to 1."""
    protocol: str = ""
    unavailable: str = ""
    """Why it answers 503; empty if it does not."""
    endpoints: tuple[ExplainedEndpoint, ...] = ()
    provenance: Provenance | None = None


class Explanation(Entry):
    """What a table does with one request."""

    version: str
    method: str
    host: str
    path: str
    virtual_host: str | None
    winner: str | None
    """`host|route name`."""
    verdict: str
    """One sentence."""
    candidates: tuple[Candidate, ...]
    """The winner first if there is one, then the losers in the order in which they would win."""
    backends: tuple[ExplainedBackend, ...] = ()


def explain(
    table: TableView, method: str, host: str, path: str, headers: Mapping[str, str] | None = None
) -> Explanation:
    """Explain what happens to a request.

    Args:
        table: what to decide by.
        method: one that the gateway refuses decides; no predicate of a route does.
        host: of the URL, with or without port; a `Host` among the headers goes before it.
        path: raw path, with or without query.
        headers: of the request.
    """
    named = {name.lower(): value for name, value in (headers or {}).items()}
    host = bare_host(named.get("host", host))
    path = path.partition("?")[0] or "/"
    names = host_candidates(host)
    found = [virtual_host for name in dict.fromkeys(names) if (virtual_host := table.virtual_host(name))]
    passed_over = tuple(
        Candidate(host=other.host, reason=f"{found[0].host} matches {host or 'the request'} better, and hosts go first")
        for other in found[1:]
    )
    answer = {"version": table.version_label, "method": method.upper(), "host": host, "path": path}
    if refusal := _refusal(answer["method"]):
        return Explanation(**answer, virtual_host=None, winner=None, verdict=refusal, candidates=())
    if not found:
        verdict = f"404: no virtual host takes {host!r} (looked for {', '.join(names)})"
        return Explanation(**answer, virtual_host=None, winner=None, verdict=verdict, candidates=())
    chosen = found[0]
    winner, candidates = _compare(chosen, path)
    answer["virtual_host"] = chosen.host
    if winner is None:
        verdict = f"404: {chosen.host} takes the host, none of its {len(chosen.routes)} routes takes the path"
        return Explanation(**answer, winner=None, verdict=verdict, candidates=candidates + passed_over)
    backends = _backends(table, winner)
    return Explanation(
        **answer,
        winner=f"{chosen.host}|{winner.name}",
        verdict=_verdict(winner, backends),
        candidates=candidates + passed_over,
        backends=backends,
    )


def _refusal(method: str) -> str | None:
    """Say how a request is refused for its method alone, before any route is looked for."""
    if method in ("CONNECT", "TRACE"):
        return f"405: the gateway takes no {method}"
    return None if method in _KNOWN_METHODS else f"501: the gateway knows no method {method}"


_KNOWN_METHODS = frozenset(
    [
        "ACL",
        "BIND",
        "CHECKOUT",
        "COPY",
        "DELETE",
        "GET",
        "HEAD",
        "LINK",
        "LOCK",
        "M-SEARCH",
        "MERGE",
        "MKACTIVITY",
        "MKCALENDAR",
        "MKCOL",
        "MOVE",
        "NOTIFY",
        "OPTIONS",
        "PATCH",
        "POST",
        "PROPFIND",
        "PROPPATCH",
        "PURGE",
        "PUT",
        "QUERY",
        "REBIND",
        "REPORT",
        "SEARCH",
        "SOURCE",
        "SUBSCRIBE",
        "UNBIND",
        "UNLINK",
        "UNLOCK",
        "UNSUBSCRIBE",
    ]
)
"""Those that llhttp knows; a test compares."""


def path_rule(route: Route, position: int) -> PathRule:
    """Return how a route matches."""
    return PathRule(route.path.type, route.path.value.encode(), position)


def bare_host(host: str) -> str:
    """Return a host in lower case, without port and trailing dot, as requests are matched."""
    name, colon, port = host.rpartition(":")
    if colon and (port.isdigit() or not port) and (":" not in name or name.endswith("]")):
        host = name
    return host.lower().removesuffix(".")


def _compare(virtual_host: VirtualHost, path: str) -> tuple[Route | None, tuple[Candidate, ...]]:
    rules = [path_rule(route, position) for position, route in enumerate(virtual_host.routes)]
    raw = path.encode()
    best = PathIndex((rule, rule) for rule in rules).match(raw)
    losers = sorted(
        (rule for rule in rules if rule is not best), key=lambda rule: (not rule.takes(raw), rule.precedence)
    )
    candidates = [_candidate(virtual_host, rule, best, raw) for rule in ([best] if best else []) + losers]
    return (virtual_host.routes[best.position] if best else None), tuple(candidates)


def _candidate(virtual_host: VirtualHost, rule: PathRule, best: PathRule | None, path: bytes) -> Candidate:
    route = virtual_host.routes[rule.position]
    return Candidate(
        host=virtual_host.host,
        route=route.name,
        path_type=rule.type,
        path=route.path.value,
        wins=rule is best,
        reason=_reason(rule, best, path, virtual_host),
        provenance=route.provenance,
    )


def _reason(rule: PathRule, best: PathRule | None, path: bytes, virtual_host: VirtualHost) -> str:
    if rule is best:
        return "takes the path, and no other route that does goes before it"
    if best is None or not rule.takes(path):
        if rule.type is PathType.EXACT:
            return "the path is not equal to it"
        return "the path is neither it nor below it, by elements between slashes"
    winner = virtual_host.routes[best.position]
    if rule.type is not best.type:
        return f"takes the path, but {winner.name} matches it exactly"
    if len(rule.value) < len(best.value):
        return f"takes the path, but {winner.path.value} of {winner.name} is longer"
    return f"takes the path, but {winner.name} is the same match and comes first"


def _backends(table: TableView, route: Route) -> tuple[ExplainedBackend, ...]:
    total = sum(backend.weight for backend in route.backends) or 1
    return tuple(
        _backend(backend, backend.weight / total, table.upstream(backend.upstream)) for backend in route.backends
    )


def _backend(backend: WeightedBackend, share: float, upstream: Upstream | None) -> ExplainedBackend:
    if upstream is None:
        missing = f"{backend.upstream} is not in the table"
        return ExplainedBackend(upstream=backend.upstream, weight=backend.weight, share=share, unavailable=missing)
    usable = [endpoint for endpoint in usable_endpoints(upstream.endpoints) if endpoint.weight > 0]
    return ExplainedBackend(
        upstream=upstream.key,
        weight=backend.weight,
        share=share,
        protocol=upstream.protocol,
        unavailable="" if usable else why_unavailable(upstream),
        endpoints=tuple(_endpoint(endpoint, endpoint in usable) for endpoint in upstream.endpoints),
        provenance=upstream.provenance,
    )


def _endpoint(endpoint: Endpoint, gets_requests: bool) -> ExplainedEndpoint:
    draining = "draining" if endpoint.serving and endpoint.terminating else "not ready"
    return ExplainedEndpoint(
        address=endpoint.address,
        port=endpoint.port,
        weight=endpoint.weight,
        zone=endpoint.zone,
        cluster=endpoint.cluster,
        state="ready" if endpoint.ready else draining,
        gets_requests=gets_requests,
    )


def _verdict(winner: Route, backends: tuple[ExplainedBackend, ...]) -> str:
    down = [backend for backend in backends if backend.unavailable and backend.weight]
    if not any(backend.weight for backend in backends):
        return f"503: all backends of {winner.name} have weight 0"
    if len(down) == len(backends):
        return "503: " + "; ".join(backend.unavailable for backend in down)
    targets = ", ".join(f"{backend.upstream} ({backend.share:.0%})" for backend in backends if backend.weight)
    partly = f"; 503 for the share of {', '.join(backend.upstream for backend in down)}" if down else ""
    return f"{winner.name} sends it to {targets}{partly}"
