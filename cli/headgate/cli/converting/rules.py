"""Routes of a table as rules of HTTPRoutes."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, NamedTuple

from headgate.cli.converting.backends import Share, mirror_filter, references, shares_of
from headgate.cli.converting.documents import NoEqual
from headgate.cli.converting.filters import as_named, standard_filters
from headgate.cli.converting.matching import matches_of
from headgate.cli.converting.sources import Table
from headgate.common.plugins.limits.client_control import ClientControlConfig
from headgate.common.resources import JsonObject
from headgate.common.table import AllOf, Backend, Canary, Condition, PathType, PluginUse, Retries, Route, Stickiness
from headgate.translator.dialects.gateway_api.models.route import RouteRule
from headgate.translator.dialects.gateway_api.routes.sending import DEFAULT_COOKIE, retries_of, stickiness_of

_REFUSES: Final = "fault-injection"
_CHANGE_ANSWERS: Final = ("response-rewrite", "error-page", "cors", "gzip", "brotli")
_NO_RETRIES: Final = Retries()


class Branch(NamedTuple):
    """Some requests of a route, and where they go. A route without canaries has one."""

    when: Condition | None
    shares: tuple[Share, ...]


@dataclass
class Rule:
    """A rule that is written."""

    route: Route
    """That it is made of."""
    matches: list[JsonObject]
    filters: list[JsonObject] = field(default_factory=list)
    """Standard ones."""
    plugins: list[list[JsonObject]] = field(default_factory=list)
    """Of objects of the kind Plugin, each of which has a plugin once."""
    backends: list[JsonObject] = field(default_factory=list)
    sending: JsonObject = field(default_factory=dict)
    """Timeouts, retries and sessions."""
    expected: tuple[PluginUse, ...] = ()
    """The route's plugins, and those that say what its other fields say."""

    @property
    def served(self) -> tuple[object, ...]:
        """What happens to requests: rules for which it is equal can be one."""
        return (self.route.provenance.name, self.filters, self.plugins, self.backends, self.sending)

    def written(self, plugins: Sequence[str]) -> JsonObject:
        """Return the rule.

        Args:
            plugins: names of the objects of the kind Plugin.
        """
        filters = list(self.filters)
        for name in plugins:
            named = {"group": "headgate.dev", "kind": "Plugin", "name": name}
            filters.append({"type": "ExtensionRef", "extensionRef": named})
        said: JsonObject = {"matches": self.matches, "filters": filters, "backendRefs": self.backends}
        return {name: value for name, value in said.items() if value} | self.sending


def answers_404(route: Route) -> bool:
    """Whether a route only says that there is nothing, as Gateway API does without one."""
    aborts = (use.config.get("abort") for use in route.plugins if use.name == _REFUSES)
    is_404 = any(isinstance(abort, dict) and abort.get("http_status") == 404 for abort in aborts)
    return route.rank.is_default and not route.backends and is_404


def rules_of(route: Route, table: Table, remarks: list[str]) -> Iterator[Rule]:
    """Yield the rules that do what a route does; what cannot be said goes to the remarks.

    Raises:
        NoEqual: nothing can be written without changing which requests go where, or who is let in.
    """
    prefix = route.path.value if route.path.type is PathType.PREFIX else None
    namespace = route.provenance.namespace
    filters, plugins = _filters(route, prefix, remarks)
    for mirror in route.mirrors:
        try:
            filters.append(mirror_filter(mirror, namespace, table))
        except NoEqual as what:
            remarks.append(f"not said: {what}")
    expected = route.plugins
    if route.max_body is not None:
        limit = PluginUse.of(ClientControlConfig(max_body_size=route.max_body))
        _put(plugins, as_named(limit))
        expected = (*expected, limit)
    sending = _sending(route)
    branches = _branches(route, table, remarks)
    for branch in branches:
        try:
            matches = matches_of(route.path, branch.when)
        except NoEqual as what:
            if branch is branches[-1]:
                raise
            remarks.append(f"not said: which requests the canary {branch.shares[-1].backend.upstream} gets by {what}")
            continue
        backends = _references(branch, namespace, prefix, table, remarks)
        yield Rule(route, matches, filters, plugins, backends, sending, expected)


def _filters(route: Route, prefix: str | None, remarks: list[str]) -> tuple[list[JsonObject], list[list[JsonObject]]]:
    """Return standard filters, and what else runs: in lists that have a plugin once."""
    filters: list[JsonObject] = []
    plugins: list[list[JsonObject]] = []
    for use in route.plugins:
        if use.fault:
            raise NoEqual(f"plugin {use.name}, which refuses requests here: {use.fault}")
        # Alone its order means nothing.
        bare = PluginUse(name=use.name, config=use.config, secrets=use.secrets) if len(route.plugins) == 1 else use
        standard = standard_filters(bare, prefix)
        if standard is not None and not {one["type"] for one in standard} & {one["type"] for one in filters}:
            filters += standard
            continue
        _put(plugins, as_named(use))
        if use.is_nested and use.name in _CHANGE_ANSWERS:
            remarks.append(f"plugin {use.name} sees answers of the plugins before it too")
        remarks += [
            f"plugin {use.name}: {place} stands in a Secret: name one by secretRef in the Plugin"
            for place in use.secrets
        ]
    return filters, plugins


def _put(lists: list[list[JsonObject]], plugin: JsonObject) -> None:
    """Put a plugin into the first list that has none of its name."""
    for one in lists:
        if all(each["name"] != plugin["name"] for each in one):
            one.append(plugin)
            return
    lists.append([plugin])


def _references(
    branch: Branch, namespace: str, prefix: str | None, table: Table, remarks: list[str]
) -> list[JsonObject]:
    try:
        return references(branch.shares, namespace, prefix, table)
    except NoEqual as what:
        remarks.append(f"requests are answered with 500 for want of an equal: {what}")
        return []


# Canaries


def _branches(route: Route, table: Table, remarks: list[str]) -> list[Branch]:
    """Return what becomes of the requests of a route, the more special first: they ask for a header more."""
    return list(_after(route.canaries, route.when, (), Fraction(1), shares_of(route.backends, table, remarks)))


def _after(
    canaries: Sequence[Canary], when: Condition | None, taken: tuple[Share, ...], left: Fraction, main: Sequence[Share]
) -> Iterator[Branch]:
    """Yield what becomes of requests that some canaries have been asked about.

    Args:
        canaries: that are left to be asked.
        when: what the requests satisfy.
        taken: shares of canaries before these.
        left: of the requests, for these canaries and the route's backends.
        main: shares of the route's backends.
    """
    if not canaries:
        own = (one._replace(share=one.share * left) for one in main)
        yield Branch(when, _summed((*own, *taken)))
        return
    canary, *rest = canaries
    backend = Backend(upstream=canary.upstream)
    if canary.when is not None:
        yield Branch(_both(when, canary.when), _summed((*taken, Share(backend, left))))
    if canary.unless is not None:
        yield from _after(rest, _both(when, canary.unless), taken, left, main)
    share = Fraction(canary.share).limit_denominator(10_000) * left
    yield from _after(rest, when, (*taken, Share(backend, share)), left - share, main)


def _summed(shares: Iterable[Share]) -> tuple[Share, ...]:
    """Return shares, those of one backend as one, and none that gets nothing."""
    found: dict[Backend, Fraction] = {}
    for backend, share in shares:
        known = next((one for one in found if one.model_copy(update={"weight": 1}) == backend), backend)
        found[known] = found.get(known, Fraction(0)) + share
    return tuple(Share(backend, share) for backend, share in found.items() if share)


def _both(one: Condition | None, other: Condition) -> Condition:
    return other if one is None else AllOf(all_of=(one, other))


# Timeouts, retries, sessions


def _sending(route: Route) -> JsonObject:
    said: JsonObject = {}
    timeouts = {"request": route.timeouts.request_s, "backendRequest": route.retries.per_try_s}
    if given := {name: duration(seconds) for name, seconds in timeouts.items() if seconds}:
        said["timeouts"] = given
    if retry := _retry(route.retries):
        said["retry"] = retry
    if route.stickiness is not None:
        said["sessionPersistence"] = _session(route.stickiness)
    return said


def _retry(retries: Retries) -> JsonObject:
    """Return what a rule says of retries; nothing if it says the same by saying nothing, or cannot say it."""
    if retries.model_copy(update={"per_try_s": None}) == _NO_RETRIES:
        return {}
    said: JsonObject = {"attempts": retries.attempts}
    if retries.statuses:
        said["codes"] = list(retries.statuses)
    if retries.backoff_s:
        said["backoff"] = duration(retries.backoff_s)
    read = retries_of(RouteRule.model_validate({"retry": said}), None)
    has_same_reasons = set(read.on) == set(retries.on) and read.statuses == retries.statuses
    return said if has_same_reasons and read.attempts == retries.attempts else {}


def _session(stickiness: Stickiness) -> JsonObject:
    said: JsonObject = {"type": "Cookie"}
    if stickiness.cookie != DEFAULT_COOKIE:
        said["sessionName"] = stickiness.cookie
    if stickiness.max_age_s:
        said |= {"absoluteTimeout": duration(stickiness.max_age_s), "cookieConfig": {"lifetimeType": "Permanent"}}
    read = stickiness_of(RouteRule.model_validate({"sessionPersistence": said}).session_persistence)
    assert read is not None
    return said


def duration(seconds: float) -> str:
    """Return a duration as Gateway API writes it (GEP-2257)."""
    return f"{int(seconds)}s" if seconds == int(seconds) else f"{max(1, round(seconds * 1000))}ms"


def merged(rules: Sequence[Rule], most: int) -> list[list[Rule]]:
    """Return rules in groups of which each can be one rule with the matches of all: neighbours that do the same."""
    groups: list[list[Rule]] = []
    for rule in rules:
        last = groups[-1] if groups else None
        fits = last is not None and sum(len(one.matches) for one in last) + len(rule.matches) <= most
        if last is not None and fits and last[0].served == rule.served:
            last.append(rule)
        else:
            groups.append([rule])
    return groups
