"""Which route of a host takes a request, and what the others lost by."""

from headgate.common.table import PathType, Rank
from headgate.gateway.proxy.heads.facts import RequestFacts
from headgate.gateway.table.condition_text import describe, why_not
from headgate.gateway.table.explaining.explanation import Candidate
from headgate.gateway.table.explaining.hosts import AskedHost
from headgate.gateway.table.match import PathRule, compile_rule, index_paths


class AskedRequest:
    """The request that is explained, as routes look at it."""

    def __init__(self, facts: RequestFacts) -> None:
        self._facts = facts

    def facts(self) -> RequestFacts:
        """Give what is known of it."""
        return self._facts


def compare_routes(asked: AskedHost, facts: RequestFacts) -> tuple[PathRule | None, tuple[Candidate, ...]]:
    """Return the rule that takes a request, None if none does, and what became of all."""
    rules = [compile_rule(route, position) for position, route in enumerate(asked.routes)]
    best = _winner(rules, facts)
    contest = _Contest(asked, facts, best)
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
            found = stop.value.match(facts.path, AskedRequest(facts))
            return found if isinstance(found, PathRule) else None


class _Contest:
    """The routes of one host, about one request."""

    def __init__(self, asked: AskedHost, facts: RequestFacts, best: PathRule | None) -> None:
        self._host = asked
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
            host=self._host.hosts[rule.position],
            route=route.name,
            path_type=route.path.type,
            path=route.path.value,
            priority=route.rank.priority,
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
        if rule.rank.priority != best.rank.priority:
            return f"{winner.name} has priority {best.rank.priority}, this one {rule.rank.priority}"
        if best.type is PathType.EXACT and rule.type is not PathType.EXACT:
            return f"{winner.name} matches it exactly"
        if best.type is PathType.REGEX and rule.type is not PathType.REGEX:
            return f"{winner.name} is a pattern, and patterns go before prefixes"
        if len(rule.value) < len(best.value):
            return f"{winner.path.value} of {winner.name} is longer"
        if rule.type is not PathType.REGEX and (field := _first_difference(rule.rank, best.rank)):
            mine, theirs = (getattr(each.rank, field) for each in (rule, best))
            return _RANK_REASONS[field].format(winner=winner.name, theirs=theirs, mine=mine)
        hosts = self._host.hosts
        if hosts[rule.position] != hosts[best.position]:
            return f"{winner.name} has the same rank, and its host {hosts[best.position]} goes first"
        return f"{winner.name} is the same match and comes first"


def _first_difference(one: Rank, other: Rank) -> str:
    """Return the field that decides between routes for one path; empty if their ranks are equal."""
    return next((field for field in _RANK_REASONS if getattr(one, field) != getattr(other, field)), "")


_RANK_REASONS = {
    "path_priority": "{winner} has priority {theirs} among the routes for its path, this one {mine}",
    "written_length": "the path of {winner} is written with more characters ({theirs}, this one's with {mine})",
    "has_method": "{winner} asks for a method, this one does not",
    "headers": "{winner} asks for {theirs} headers, this one for {mine}",
    "query_parameters": "{winner} asks for {theirs} query parameters, this one for {mine}",
    "comparisons": "{winner} makes {theirs} comparisons, this one {mine}",
    "gives_way": "this one gives way to {winner}: it is a default backend, or its conditions cannot be read",
}
"""By the fields of `Rank` that are compared within one path, in their order."""


_PATH_FAULTS = {
    PathType.EXACT: "the path is not equal to it",
    PathType.PREFIX: "the path is neither it nor below it, by elements between slashes",
    PathType.STRING_PREFIX: "the path does not begin with it",
    PathType.REGEX: "the path does not match it from its beginning",
}
