"""Plugins that run for the requests of many routes (ApisixGlobalRule, ApisixClusterConfig), and on which routes."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from headgate.common.plugins.route_fields import plugins_as_fields
from headgate.common.problems import Problem, Severity
from headgate.common.resources import APISIX_GLOBAL_RULE, ObjectRef
from headgate.common.table import PluginUse, Route
from headgate.translator.assembly.boundaries import Boundaries
from headgate.translator.assembly.ownership import Tenant, tenant_of
from headgate.translator.fragments.fragment import Fragment, Identity
from headgate.translator.fragments.seniority import describe, seniority_of
from headgate.translator.manifests.reading import shown


class PluginVerdict(NamedTuple):
    """The plugins of many routes, and what the losers hear."""

    everywhere: tuple[PluginUse, ...]
    within: Mapping[Tenant, tuple[PluginUse, ...]]
    """Those of the routes of one namespace, besides."""
    lost: Mapping[ObjectRef, tuple[Problem, ...]]

    def add_to(self, route: Route) -> Route:
        """Return a route with the plugins that run for it, of which those that routes have fields for are fields."""
        source = route.provenance
        own = self.within.get(Tenant(source.cluster, source.namespace), ()) if self.within else ()
        plugins = (*self.everywhere, *own, *route.plugins)
        if self.everywhere or own:
            route = route.model_copy(update={"plugins": plugins})
        return plugins_as_fields(route)


def award_plugins(fragments: Iterable[Fragment], boundaries: Boundaries) -> PluginVerdict:
    """Decide which plugins run where: of several of one name that of the oldest object.

    Rules of no namespace, and of those that the settings name, are for all routes and go before the others.
    """
    general: dict[str, _Won] = {}
    local: dict[Tenant, dict[str, _Won]] = {}
    lost: dict[ObjectRef, list[Problem]] = {}
    ordered = sorted(fragments, key=lambda each: (not _is_general(each, boundaries), each.identity.seniority))
    for fragment in ordered:
        identity, ref = fragment.identity, fragment.identity.ref
        is_general = _is_general(fragment, boundaries)
        if not is_general:
            lost.setdefault(ref, []).append(_held(identity))
        won = general if is_general else local.setdefault(tenant_of(identity), {})
        for use in fragment.global_plugins:
            winner = general.get(use.name) or won.setdefault(use.name, _Won(use, identity))
            if winner.use != use:
                lost.setdefault(ref, []).append(_lost_plugin(use, identity, winner.owner))
    return PluginVerdict(
        tuple(_uses(general)),
        {tenant: tuple(_uses(won)) for tenant, won in local.items()},
        {ref: tuple(problems) for ref, problems in lost.items()},
    )


class _Won(NamedTuple):
    use: PluginUse
    owner: Identity


NO_PLUGINS = PluginVerdict((), {}, {})


def _is_general(fragment: Fragment, boundaries: Boundaries) -> bool:
    """Whether plugins are for all routes: those of classes and clusters are the operator's in any case."""
    identity = fragment.identity
    return identity.kind != APISIX_GLOBAL_RULE.kind or boundaries.has_global_rules(identity.ref.namespace)


def _uses(won: Mapping[str, _Won]) -> Iterator[PluginUse]:
    return (each.use.model_copy(update={"is_global": True}) for each in won.values())


def _held(identity: Identity) -> Problem:
    namespace = identity.ref.namespace
    return Problem(
        severity=Severity.INFO,
        reason="HeldToNamespace",
        field="metadata.namespace",
        value=shown(namespace),
        message=f"runs for routes of namespace {namespace} in cluster {identity.ref.cluster} only, as the namespace is "
        "not in the setting global_rule_namespaces",
    )


def _lost_plugin(use: PluginUse, loser: Identity, owner: Identity) -> Problem:
    is_older = owner.seniority < loser.seniority
    why = seniority_of(owner, loser) if is_older else "whose namespace the setting global_rule_namespaces names"
    return Problem(
        severity=Severity.WARNING,
        reason="PluginConflict",
        field="spec.plugins",
        value=shown(use.name),
        message=f"plugin {use.name} of every request is set by {describe(owner)}, {why}",
    )
