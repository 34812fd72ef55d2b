"""One ApisixRoute to one fragment.

Endpoints and the nodes of ApisixUpstreams are not looked up here: what is wrong with a backend is known to its
upstream, and comes back to the object from there. What routes take over from an ApisixUpstream, retries and timeouts,
is.
"""

from collections.abc import Iterator
from typing import NamedTuple

from headgate.common.problems import Problem
from headgate.common.resources import JsonObject, ObjectRef
from headgate.common.table import (
    Backend,
    PluginUse,
    Provenance,
    Rank,
    Retries,
    Route,
    Timeouts,
    count_comparisons,
)
from headgate.translator.annotations.apisix import ApisixAnnotations, apisix_annotations, read_apisix_annotations
from headgate.translator.annotations.host_sharing import read_host_sharing
from headgate.translator.dialects.apisix.context import Context, find_referenced
from headgate.translator.dialects.apisix.document import PLUGIN_CONFIGS
from headgate.translator.dialects.apisix.models.plugin import Plugin
from headgate.translator.dialects.apisix.models.route import HttpRule, StreamRule
from headgate.translator.dialects.apisix.models.upstream import UpstreamSettings
from headgate.translator.dialects.apisix.plugins import (
    authentication,
    parts,
    read_plugins,
    sources,
)
from headgate.translator.dialects.apisix.routes.matching import MatchRule, PathRule, read_match
from headgate.translator.dialects.apisix.routes.stream import translate_stream
from headgate.translator.dialects.apisix.upstreams.backends import NodesBackend, ServiceBackend
from headgate.translator.dialects.apisix.upstreams.upstream import (
    find_upstream,
    read_retries,
    read_timeouts,
    settings_for,
)
from headgate.translator.fragments.fragment import BackendUse, Fragment, RouteClaim
from headgate.translator.fragments.route_cost import MAX_COST, TOO_COSTLY, route_cost
from headgate.translator.fragments.upstream_refs import RefusalRef
from headgate.translator.manifests.models import Model
from headgate.translator.manifests.specs import Part, Spec, refuse, warn
from headgate.translator.objects.document import identify
from headgate.translator.objects.plugin_uses import Plugins, WrittenPlugin

KIND = "ApisixRoute"
DEFAULT_WEIGHT = 100
MAX_ROUTES = 10_000
"""Hosts times paths of all rules of an object: a few kilobytes could ask for millions."""


class _Rest(Model):
    """What of a spec is not rules."""

    ingress_class_name: str = ""


class _Backend(NamedTuple):
    ref: ServiceBackend | NodesBackend
    weight: int
    use: BackendUse


class _Common(NamedTuple):
    """What the routes of one rule share: one for each path, of which there may be hundreds."""

    backends: tuple[Backend, ...]
    timeouts: Timeouts
    retries: Retries
    provenance: Provenance


def translate_route(ref: ObjectRef, manifest: JsonObject, context: Context) -> Fragment:
    """Return what an ApisixRoute that is ours contributes."""
    problems: list[Problem] = []
    spec = Spec(manifest.get("spec"), problems)
    spec.rest(_Rest, "http", "stream")
    annotations = apisix_annotations(manifest)
    annotated = read_apisix_annotations(annotations) if annotations else None
    problems += annotated.problems if annotated is not None else ()
    http, stream = spec.each("http", HttpRule), spec.each("stream", StreamRule)
    _check_names([*http, *stream], problems)
    rules = list(_within_bounds([_Rule(ref, part, context, annotated, problems) for part in http], problems))
    streams = [found for part in stream if (found := translate_stream(ref, part, context, problems))]
    shared_with = read_host_sharing(manifest, problems)
    return Fragment(
        identity=identify(ref, manifest),
        shares_hosts_with=shared_with,
        routes=tuple(claim for rule in rules for claim in rule.claims()),
        backends=tuple(use for rule in rules for use in rule.uses()) + tuple(found.use for found in streams),
        streams=tuple(found.claim for found in streams),
        problems=tuple(dict.fromkeys(problems)),
        unmatched="next-host",
        inherits_tls=True,
    )


def _check_names(rules: "list[Part[HttpRule] | Part[StreamRule]]", problems: list[Problem]) -> None:
    seen: dict[str, str] = {}
    for rule in rules:
        first = seen.setdefault(rule.value.name, rule.field)
        if first != rule.field:
            message = f"must be its own within the object, and {first} has it too"
            problems.append(warn("DuplicateName", f"{rule.field}.name", message, rule.value.name))


def _within_bounds(rules: "list[_Rule]", problems: list[Problem]) -> "Iterator[_Rule]":
    """Yield the rules that an object may have, and tell of the others."""
    left, cost_left = MAX_ROUTES, MAX_COST
    for rule in rules:
        if rule.size > left:
            message = (
                f"asks for {rule.size} routes (hosts times paths), and an object has {MAX_ROUTES} at most: write hosts "
                "as *.example.com, or spread them over several objects"
            )
            problems.append(refuse("TooManyRoutes", f"{rule.field}.match", message))
        elif (cost := rule.size * rule.cost) > cost_left:
            message = f"asks for {rule.size} routes (hosts times paths), which {TOO_COSTLY}"
            problems.append(refuse("TooMuchWork", f"{rule.field}.match", message))
        else:
            left, cost_left = left - rule.size, cost_left - cost
            yield rule


class _Rule:
    """One rule for HTTP requests."""

    def __init__(
        self,
        ref: ObjectRef,
        part: Part[HttpRule],
        context: Context,
        annotated: ApisixAnnotations | None,
        problems: list[Problem],
    ) -> None:
        self._ref, self._rule, self.field = ref, part.value, part.field
        self._annotated = annotated
        self._context, self._problems = context, problems
        self._match = read_match(self._rule.match, f"{self.field}.match", problems)
        self._filter_fault = self._refuse_filter()
        plugins = self._read_plugins()
        self._plugins, self._split = plugins.uses, plugins.backends
        self._backends = self._shared_out(list(self._read_backends()))
        faults = [*plugins.faults, *filter(None, (self._filter_fault,))]
        self._refusal = self._refuse(faults[0]) if faults else None
        if not (self._backends or self._plugins or faults):
            message = "must be given, or upstreams, or a plugin that answers: requests are answered with 503 until then"
            problems.append(warn("NoBackends", f"{self.field}.backends", message))

    @property
    def size(self) -> int:
        """How many routes there are: one for each host and path."""
        return len(self._match.hosts) * len(self._match.paths) if self._match is not None else 0

    @property
    def cost(self) -> int:
        """What each of them takes."""
        if self._match is None or not self._match.paths:
            return 0
        return route_cost(self._match.when(self._match.paths[0]), () if self._refusal else self._plugins)

    def _refuse(self, fault: str) -> RefusalRef:
        ref, name = self._ref, f"{self._ref.name}/{self._rule.name}"
        reason = f"{KIND} {ref.namespace}/{ref.name} refuses requests of its rule {self._rule.name}: {fault}"
        return RefusalRef(ref.cluster, KIND, ref.namespace, name, reason)

    def _refuse_filter(self) -> str:
        if not self._rule.match.filter_func:
            return ""
        message = (
            "Lua is not run here: say it with match.exprs (scopes Query, Header, Cookie, Path, Body, Variable), or "
            "with the plugin traffic-split or workflow; until then requests of this rule are refused"
        )
        self._problems.append(refuse("UnsupportedField", f"{self.field}.match.filter_func", message))
        return "filter_func cannot be followed"

    # Plugins

    def _read_plugins(self) -> Plugins:
        rule, namespace = self._rule, self._ref.namespace
        shared, faults = self._shared_plugins()
        own = [
            *sources(rule.plugins, f"{self.field}.plugins", namespace),
            *authentication(rule.authentication, f"{self.field}.authentication", namespace),
        ]
        names = {plugin.name for plugin in own}
        theirs: list[Problem] = []
        inherited = read_plugins([one for one in shared if one.name not in names], self._context, theirs)
        mine = read_plugins(own, self._context, self._problems)
        for problem in theirs:
            if problem.severity == "error":
                where = f"ApisixPluginConfig {self._config_name}"
                told = problem.model_copy(update={"field": f"{self.field}.plugin_config_name", "value": None})
                self._problems.append(told.model_copy(update={"message": f"{where}: {problem}"}))
        field = f"{self.field}.plugin_config_name"
        theirs_used = (use._replace(name_field=field, port_field=field) for use in inherited.backends)
        uses = {use.name: use for use in (*self._annotated_plugins(), *inherited.uses, *mine.uses)}
        unreadable = self._annotated.unreadable if self._annotated is not None else ()
        annotated = (f"{', '.join(unreadable)} cannot be followed",) if unreadable else ()
        faults = (*annotated, *faults, *inherited.faults, *mine.faults)
        return Plugins(tuple(uses.values()), faults, (*theirs_used, *mine.backends))

    def _annotated_plugins(self) -> tuple[PluginUse, ...]:
        """Plugins by annotations of the object: older releases read some on ApisixRoutes too."""
        return self._annotated.plugins if self._annotated is not None else ()

    @property
    def _config_name(self) -> str:
        namespace = self._rule.plugin_config_namespace or self._ref.namespace
        return f"{namespace}/{self._rule.plugin_config_name}"

    def _shared_plugins(self) -> tuple[list[WrittenPlugin], tuple[str, ...]]:
        name, lookups = self._rule.plugin_config_name, self._context.lookups
        if not name or lookups.is_assumed:
            return [], ()
        namespace = self._rule.plugin_config_namespace or self._ref.namespace
        manifest = find_referenced(lookups, PLUGIN_CONFIGS, namespace, name)
        if manifest is None:
            message = f"ApisixPluginConfig {self._config_name} not found, or it is another controller's"
            field = f"{self.field}.plugin_config_name"
            self._problems.append(refuse("PluginConfigNotFound", field, message, name))
            return [], (message,)
        theirs: list[Problem] = []
        found = Spec(manifest.get("spec"), theirs).each("plugins", Plugin)
        unreadable = (f"ApisixPluginConfig {self._config_name} cannot be read: {theirs[0]}",) if theirs else ()
        return parts(found, namespace), unreadable

    # Backends

    def _read_backends(self) -> Iterator[_Backend]:
        ref = self._ref
        for index, written in enumerate(self._rule.backends):
            field = f"{self.field}.backends[{index}]"
            backend = ServiceBackend(
                ref.cluster,
                ref.namespace,
                written.service_name,
                written.service_port,
                written.resolve_granularity,
                written.subset,
            )
            use = BackendUse(backend, f"{field}.serviceName", f"{field}.servicePort")
            yield _Backend(backend, DEFAULT_WEIGHT if written.weight is None else written.weight, use)
        for index, named in enumerate(self._rule.upstreams):
            nodes = NodesBackend(ref.cluster, ref.namespace, named.name)
            field = f"{self.field}.upstreams[{index}].name"
            yield _Backend(
                nodes, DEFAULT_WEIGHT if named.weight is None else named.weight, BackendUse(nodes, field, field)
            )

    def _shared_out(self, backends: list[_Backend]) -> list[_Backend]:
        """Give what is not there no share where something else is.

        Services are looked up where there are several backends only: a route need not follow the one that it has.
        """
        lookups = self._context.lookups
        if lookups.is_assumed or len(backends) < 2:
            return backends
        present = {each.ref for each in backends if each.weight and each.ref.is_there(lookups)}
        return [each if not present or each.ref in present else each._replace(weight=0) for each in backends]

    def _settings(self) -> Iterator[UpstreamSettings]:
        """Yield the ApisixUpstreams behind the backends, in their order."""
        lookups = self._context.lookups
        for backend in () if lookups.is_assumed else self._backends:
            spec = find_upstream(lookups, backend.ref.namespace, backend.ref.name)
            if spec is not None:
                port = backend.ref.port
                yield settings_for(spec, port if isinstance(port, int) else None)

    def _timing(self) -> tuple[Timeouts, Retries]:
        """Of several ApisixUpstreams the first that says something counts: a request is repeated over all backends."""
        settings = list(self._settings())
        timeout = self._rule.timeout or next((one.timeout for one in settings if one.timeout is not None), None)
        retries = next((one.retries for one in settings if one.retries is not None), None)
        return read_timeouts(timeout), read_retries(retries)

    def uses(self) -> Iterator[BackendUse]:
        """Yield where the rule refers to upstreams."""
        if self._match is None:
            return
        yield from (backend.use for backend in self._backends)
        yield from self._split
        if self._refusal is not None:
            yield BackendUse(self._refusal, self.field, self.field)

    # Claims

    def claims(self) -> Iterator[RouteClaim]:
        """Yield the routes, one for each host and path."""
        if self._match is None:
            return
        common = self._common()
        for path in self._match.paths:
            route = self._route(path, self._match, common)
            for host in self._match.hosts:
                yield RouteClaim(host, route, path.field, is_refused=self._refusal is not None)

    def _common(self) -> _Common:
        """Make what the routes of all paths share."""
        ref = self._ref
        weighted = [Backend(upstream=each.ref.key, weight=each.weight) for each in self._backends]
        if self._refusal is not None:
            weighted = [Backend(upstream=self._refusal.key)]
        provenance = Provenance(cluster=ref.cluster, kind=KIND, namespace=ref.namespace, name=ref.name, rule=self.field)
        return _Common(tuple(weighted), *self._timing(), provenance)

    def _route(self, path: PathRule, match: MatchRule, common: _Common) -> Route:
        ref, rule, when = self._ref, self._rule, match.when(path)
        return Route(
            name=f"{ref.cluster}/{ref.namespace}/{ref.name} {rule.name} {path.written}",
            path=path.match,
            when=when,
            rank=Rank(
                path_priority=rule.priority,
                written_length=len(path.written),
                comparisons=count_comparisons(when),
                is_unreadable=bool(self._filter_fault),
            ),
            backends=common.backends,
            timeouts=common.timeouts,
            retries=common.retries,
            plugins=() if self._refusal is not None else self._plugins,
            websocket=rule.websocket is not False,
            provenance=common.provenance,
        )
