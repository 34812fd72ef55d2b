"""Why a request goes where it goes: every candidate, what it lost by, and what the winner would send to.

Decides with the same index and the same choice of endpoints as requests do, so that it cannot explain something that
does not happen. Works on any `TableView`, with or without a running gateway.
"""

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence

from headgate.common.table import Endpoint, Entry, PathType, Provenance, Route, Upstream, VirtualHost, WeightedBackend
from headgate.gateway.balancing.levels import NOWHERE, Place
from headgate.gateway.balancing.seats import reaches, usable_endpoints, why_unavailable
from headgate.gateway.plugins.runtime.verdicts import PluginVerdict, Preview, first_answer
from headgate.gateway.proxy.heads.facts import RequestFacts
from headgate.gateway.proxy.heads.grammar import REQUEST_LINE, fault_of_request_line
from headgate.gateway.proxy.heads.paths import PathNormalization, normalize
from headgate.gateway.table.condition_text import describe, why_not
from headgate.gateway.table.match import PathRule, compile_rule, host_candidates, index_paths
from headgate.gateway.table.view import TableView


class Candidate(Entry):
    """A route of the request's virtual host, or a virtual host that was passed over."""

    host: str
    route: str = ""
    """Empty for a virtual host that was passed over as a whole."""
    path_type: PathType | None = None
    path: str = ""
    priority: int = 0
    condition: str = ""
    """What the route asks for besides the path, in words."""
    takes_path: bool = False
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
    """`ready`, `draining` or `not ready`; or who reaches it, if this gateway does not."""
    priority: int = 0
    """Greater ones get requests only as health says."""
    hop: str = ""
    """What it speaks as a gateway of its cluster; empty for the endpoint itself."""
    gets_requests: bool
    failures: str = ""
    """Which requests failed, as ejection counts them: `3 failed, the last 12 s ago: connect`."""


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


class HealthNote(Entry):
    """What one worker of a gateway knows of an endpoint's health."""

    is_unhealthy: bool = False
    """By active checks."""
    ejected_s: float = 0.0
    """Seconds until it is let back in; 0: it is not ejected."""
    failures: str = ""
    """Which requests failed, as ejection counts them; empty also without ejection."""

    @property
    def is_out(self) -> bool:
        """Whether it gets no requests, unless too few are left."""
        return self.is_unhealthy or self.ejected_s > 0


HealthOf = Callable[[str], Mapping[tuple[str, int], HealthNote]]
"""Returns what is known of the endpoints of an upstream, by address and port; nothing of those that are well."""


def no_health(upstream: str) -> Mapping[tuple[str, int], HealthNote]:
    """Stand for `HealthOf` where there is no gateway."""
    return {}


def no_preview(route: Route, facts: RequestFacts, scope: str) -> Sequence[PluginVerdict]:
    """Stand for `Preview` where plugins are not asked."""
    return ()


class Explanation(Entry):
    """What a table does with one request."""

    version: str
    method: str
    host: str
    path: str
    """As it was sent, without the query."""
    read_path: str = ""
    """What routes were asked for, if that is another one: the path as `path_normalization` has it."""
    forwarded_path: str = ""
    """What the upstream gets, if that is another one; plugins of the route may change it further."""
    virtual_host: str | None
    winner: str | None
    """`host|route name`."""
    verdict: str
    """One sentence."""
    candidates: tuple[Candidate, ...]
    """The winner first if there is one, then the losers in the order in which they would win."""
    plugins: tuple[PluginVerdict, ...] = ()
    """Of the winner, in the order in which they are asked."""
    nearest: str = ""
    """The host of the table that is spelt most alike, where none takes the request's."""
    backends: tuple[ExplainedBackend, ...] = ()


class AskedRequest:
    """The request that is explained, as routes look at it."""

    def __init__(self, facts: RequestFacts) -> None:
        self._facts = facts

    def facts(self) -> RequestFacts:
        """Give what is known of it."""
        return self._facts


def explain(
    table: TableView,
    method: str,
    host: str,
    target: str,
    headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
    *,
    scheme: str = "http",
    client: str = "",
    body: bytes = b"",
    path_normalization: PathNormalization = "rewrite",
    place: Place = NOWHERE,
    preview: Preview = no_preview,
    health_of: HealthOf = no_health,
) -> Explanation:
    """Explain what happens to a request.

    Args:
        table: what to decide by.
        method: of the request; one that the gateway refuses decides before any route does.
        host: of the URL, with or without port; a `Host` among the headers goes before it.
        target: raw path, with or without query.
        headers: of the request.
        scheme: `http` or `https`.
        client: address of the client.
        body: of the request.
        path_normalization: the gateway's setting.
        place: where the gateway is.
        preview: asks the winner's plugins.
        health_of: what the gateway knows of endpoints.
    """
    pairs = list(headers.items()) if isinstance(headers, Mapping) else list(headers)
    host = bare_host(next((value for name, value in pairs if name.lower() == "host"), host))
    lines = "".join(f"{name}: {value}\r\n" for name, value in pairs if name.lower() != "host")
    method, target = method.upper(), target if target[:1] == "/" else f"/{target}"
    path, mark, query = target.partition("?")
    answer = {"version": table.version_label, "method": method, "host": host, "path": path}
    refusal = _refusal(method) or _fault_of(target)
    read = None if refusal else normalize(path.encode(), path_normalization)
    if read is None:
        refusal = refusal or f"400: path that servers read in different ways (path_normalization {path_normalization})"
        return Explanation(**answer, virtual_host=None, winner=None, verdict=refusal, candidates=())
    for field, changed in zip(("read_path", "forwarded_path"), read, strict=True):
        answer[field] = "" if changed == path.encode() else changed.decode()
    target = (answer["forwarded_path"] or path) + mark + query
    facts = RequestFacts(*(part.encode() for part in (method, scheme, host, target, lines, client)))
    facts.path, facts.body = read[0], body
    names = host_candidates(host)
    found = [virtual_host for name in dict.fromkeys(names) if (virtual_host := table.virtual_host(name))]
    if not found:
        nearest = _nearest(host, table)
        hint = f"; nearest: {nearest}" if nearest else ""
        verdict = f"404: no virtual host takes {host!r} (looked for {', '.join(names)}){hint}"
        return Explanation(**answer, virtual_host=None, winner=None, verdict=verdict, candidates=(), nearest=nearest)
    candidates: tuple[Candidate, ...] = ()
    for chosen in found:
        best, compared = _compare(chosen, facts)
        candidates = compared + candidates if best is not None else candidates + compared
        if best is not None or not chosen.falls_through:
            break
    passed_over = tuple(
        Candidate(host=other.host, reason=f"{chosen.host} matches {host or 'the request'} better, and hosts go first")
        for other in found[found.index(chosen) + 1 :]
    )
    answer["virtual_host"] = chosen.host
    if best is None:
        what = "path" if not any(candidate.takes_path for candidate in candidates) else "request"
        verdict = f"404: {chosen.host} takes the host, none of its {len(chosen.routes)} routes takes the {what}"
        return Explanation(**answer, winner=None, verdict=verdict, candidates=candidates + passed_over)
    winner = chosen.routes[best.position]
    backends = () if best.fault else _backends(table, winner, place, health_of)
    plugins = () if best.fault else tuple(preview(winner, facts, f"{chosen.host}|{winner.name}"))
    return Explanation(
        **answer,
        winner=f"{chosen.host}|{winner.name}",
        verdict=f"500: {winner.name} cannot be compiled: {best.fault}"
        if best.fault
        else _answer_of(winner, plugins) or _verdict(winner, backends),
        candidates=candidates + passed_over,
        plugins=plugins,
        backends=backends,
    )


def _nearest(host: str, table: TableView) -> str:
    """Return the name of a host that is spelt nearly so; empty: none is."""
    names = (virtual_host.host for virtual_host in table.virtual_hosts())
    return next(iter(difflib.get_close_matches(host, names, 1, 0.7)), "")


def _answer_of(winner: Route, plugins: Sequence[PluginVerdict]) -> str:
    """Say which plugin ends the request; empty: none is known to."""
    answer = first_answer(plugins)
    return f"{answer.status}: plugin {answer.name} of {winner.name} answers: {answer.detail}" if answer else ""


def _refusal(method: str) -> str | None:
    """Say how a request is refused for its method alone, before any route is looked for."""
    if method in ("CONNECT", "TRACE"):
        return f"405: the gateway takes no {method}"
    return None if method in _KNOWN_METHODS else f"501: the gateway knows no method {method}"


def _fault_of(target: str) -> str | None:
    """Say how a request is refused for bytes that no target has."""
    head = f"GET {target} HTTP/1.1\r\n".encode()
    return None if REQUEST_LINE.fullmatch(head) else f"400: {fault_of_request_line(head)}"


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


def bare_host(host: str) -> str:
    """Return a host in lower case, without port and trailing dot, as requests are matched."""
    name, colon, port = host.rpartition(":")
    if colon and (port.isdigit() or not port) and (":" not in name or name.endswith("]")):
        host = name
    return host.lower().removesuffix(".")


def _compare(virtual_host: VirtualHost, facts: RequestFacts) -> tuple[PathRule | None, tuple[Candidate, ...]]:
    rules = [compile_rule(route, position) for position, route in enumerate(virtual_host.routes)]
    best = _winner(rules, facts)
    contest = _Contest(virtual_host, facts, best)
    losers = sorted(
        (rule for rule in rules if rule is not best),
        key=lambda rule: (not rule.takes(facts.path), bool(contest.failed(rule)), rule.precedence),
    )
    return best, tuple(contest.candidate(rule) for rule in ([best] if best else []) + losers)


def _winner(rules: list[PathRule], facts: RequestFacts) -> PathRule | None:
    """Find the best rule as the gateway does."""
    steps = index_paths([(rule, rule) for rule in rules])
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            found = stop.value(facts.path, AskedRequest(facts))
            return found if isinstance(found, PathRule) else None


class _Contest:
    """The routes of one host, about one request."""

    def __init__(self, virtual_host: VirtualHost, facts: RequestFacts, best: PathRule | None) -> None:
        self._host = virtual_host
        self._facts = facts
        self._best = best

    def failed(self, rule: PathRule) -> str:
        """Say what of a route's condition the request fails; empty if nothing."""
        when = self._host.routes[rule.position].when
        return why_not(when, self._facts) if when is not None and not rule.fault else ""

    def candidate(self, rule: PathRule) -> Candidate:
        """Say what became of a route."""
        route = self._host.routes[rule.position]
        return Candidate(
            host=self._host.host,
            route=route.name,
            path_type=route.path.type,
            path=route.path.value,
            priority=route.priority,
            condition=describe(route.when) if route.when is not None else "",
            takes_path=rule.takes(self._facts.path),
            wins=rule is self._best,
            reason=self._reason(rule),
            provenance=route.provenance,
        )

    def _reason(self, rule: PathRule) -> str:
        if rule.fault:
            return f"cannot be compiled, so it comes after all others: {rule.fault}"
        if rule is self._best:
            return "takes the path, and no other route that does goes before it"
        if not rule.takes(self._facts.path):
            return _PATH_FAULTS[rule.type]
        if failed := self.failed(rule):
            return f"takes the path, but not the request: {failed}"
        # Whatever takes a request has a winner before it.
        assert self._best is not None
        return f"takes the path, but {self._why_behind(rule, self._best)}"

    def _why_behind(self, rule: PathRule, best: PathRule) -> str:
        winner = self._host.routes[best.position]
        if rule.priority != best.priority:
            return f"{winner.name} has priority {best.priority}, this one {rule.priority}"
        if best.type is PathType.EXACT and rule.type is not PathType.EXACT:
            return f"{winner.name} matches it exactly"
        if best.type is PathType.REGEX and rule.type is not PathType.REGEX:
            return f"{winner.name} is a pattern, and patterns go before prefixes"
        if len(rule.value) < len(best.value):
            return f"{winner.path.value} of {winner.name} is longer"
        return f"{winner.name} is the same match and comes first"


_PATH_FAULTS = {
    PathType.EXACT: "the path is not equal to it",
    PathType.PREFIX: "the path is neither it nor below it, by elements between slashes",
    PathType.STRING_PREFIX: "the path does not begin with it",
    PathType.REGEX: "the path does not match it from its beginning",
}


def _backends(table: TableView, route: Route, place: Place, health_of: HealthOf) -> tuple[ExplainedBackend, ...]:
    total = sum(backend.weight for backend in route.backends) or 1
    return tuple(
        _backend(
            backend,
            backend.weight / total,
            table.upstream(backend.upstream),
            place,
            health_of(backend.upstream),
        )
        for backend in route.backends
    )


def _backend(
    backend: WeightedBackend,
    share: float,
    upstream: Upstream | None,
    place: Place,
    notes: Mapping[tuple[str, int], HealthNote],
) -> ExplainedBackend:
    if upstream is None:
        missing = f"{backend.upstream} is not in the table"
        return ExplainedBackend(upstream=backend.upstream, weight=backend.weight, share=share, unavailable=missing)
    reached = [endpoint for endpoint in upstream.endpoints if reaches(place, endpoint)]
    usable = [endpoint for endpoint in usable_endpoints(reached) if endpoint.weight > 0]
    well = [endpoint for endpoint in usable if not notes.get((endpoint.address, endpoint.port), _WELL).is_out]
    is_panic = len(well) < upstream.balancing.panic_threshold * len(usable)
    taking = {id(endpoint) for endpoint in (usable if is_panic else well)}
    return ExplainedBackend(
        upstream=upstream.key,
        weight=backend.weight,
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


def _verdict(winner: Route, backends: tuple[ExplainedBackend, ...]) -> str:
    down = [backend for backend in backends if backend.unavailable and backend.weight]
    if not any(backend.weight for backend in backends):
        return f"503: all backends of {winner.name} have weight 0"
    if len(down) == len(backends):
        return "503: " + "; ".join(backend.unavailable for backend in down)
    targets = ", ".join(f"{backend.upstream} ({backend.share:.0%})" for backend in backends if backend.weight)
    partly = f"; 503 for the share of {', '.join(backend.upstream for backend in down)}" if down else ""
    return f"{winner.name} sends it to {targets}{partly}"
