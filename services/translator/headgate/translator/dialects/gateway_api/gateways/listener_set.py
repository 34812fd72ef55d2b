"""One ListenerSet to one fragment: further listeners of a Gateway, which another namespace may own.

Its listeners are the Gateway's, at the Gateway's addresses and among the Gateway's other listeners, which go before
them. What they refer to is the ListenerSet's own: certificates of its namespace, or granted to it.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from headgate.common.problems import Problem
from headgate.common.resources import LISTENER_SET, JsonObject, ObjectRef
from headgate.common.status import ConditionType, ListenerRef
from headgate.translator.dialects.gateway_api.gateways.addresses import allotment_of, own_place
from headgate.translator.dialects.gateway_api.gateways.contribution import contribute, report_listeners
from headgate.translator.dialects.gateway_api.gateways.frontend import frontend_of, read_frontend_of
from headgate.translator.dialects.gateway_api.gateways.listeners import read_listeners
from headgate.translator.dialects.gateway_api.gateways.merged import MergedGateway, merged_gateway
from headgate.translator.dialects.gateway_api.gateways.standing import NOT_ACCEPTED, Standing, judge
from headgate.translator.dialects.gateway_api.members import members_of
from headgate.translator.dialects.gateway_api.models.gateway import ListenerSetSettings
from headgate.translator.fragments.fragment import Fragment
from headgate.translator.fragments.status_part import SaidCondition, StatusPart
from headgate.translator.manifests.specs import Spec, refuse
from headgate.translator.objects.document import identify
from headgate.translator.sources.gateways import (
    GATEWAYS,
    LISTENER_SETS,
    GatewayName,
    find_our_gateway,
    parent_of_set,
)
from headgate.translator.world.graph import Level, Lookups, Rule

_NOT_VALID: Final = "ListenersNotValid"


class _Question(NamedTuple):
    cluster: str
    namespace: str
    name: str


def is_of_our_gateway(ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> bool:
    """Whether a ListenerSet is for a Gateway of ours."""
    parent = parent_of_set({**manifest, "metadata": {"namespace": ref.namespace}})
    return parent is not None and find_our_gateway(lookups, *parent) is not None


def translate_listener_set(ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> Fragment:
    """Return what a ListenerSet of a Gateway of ours contributes."""
    problems: list[Problem] = []
    settings = Spec(manifest.get("spec"), problems).rest(ListenerSetSettings, "listeners")
    parent = parent_of_set({**manifest, "metadata": {"namespace": ref.namespace}})
    identity, own = identify(ref, manifest), f"{ref.namespace}/{ref.name}"
    place = own_place(lookups, *parent) if parent is not None else ""
    listeners = read_listeners(manifest, problems, place, own)
    merged = merged_gateway(lookups, parent) if parent is not None else None
    if settings is None or parent is None or merged is None:
        return Fragment(identity, problems=tuple(dict.fromkeys(problems)))
    allotted = allotment_of(lookups, GATEWAYS.ref(lookups.cluster, *parent))
    members = members_of(lookups, LISTENER_SET.kind, ref.namespace, ref.name)
    reports = report_listeners(listeners, members.attached, allotted)
    if (why := _why_not(own, parent, merged)) is not None:
        said = tuple(_conditions(why.reason, why.message))
        return Fragment(
            identity,
            problems=tuple(dict.fromkeys((why, *problems))),
            said=said,
            parts=tuple(StatusPart(ListenerRef(one.spec.name), one.field, NOT_ACCEPTED) for one in listeners),
            listener_reports=reports,
            addresses=(),
        )
    frontend = frontend_of(lookups, parent)
    standings = [judge(each, merged.faults.get(each.id), ref, lookups, frontend) for each in listeners]
    problems += (problem for standing in standings for problem in standing.problems)
    made = contribute(ref, standings, merged.accepted, allotted)
    return Fragment(
        identity,
        hosts=made.hosts,
        routes=made.routes,
        **made.placed,
        problems=tuple(dict.fromkeys(problems)),
        said=_stands(standings),
        parts=made.parts,
        listener_reports=reports,
        shares_routes_with=tuple(sorted({parent.namespace, *merged.namespaces, *members.namespaces} - {ref.namespace})),
        addresses=(),
    )


def _why_not(own: str, parent: GatewayName, merged: MergedGateway) -> Problem | None:
    """Return why nothing of a ListenerSet is served; None if it is."""
    if own not in merged.sets:
        message = f"Gateway {parent} does not let ListenerSets of this namespace in; see its allowedListeners"
        return refuse("NotAllowed", "spec.parentRef", message, parent.name)
    if not merged.is_accepted:
        message = f"Gateway {parent} is not accepted; its status says why"
        return refuse("ParentNotAccepted", "spec.parentRef", message, parent.name)
    return None


def _stands(standings: Sequence[Standing]) -> tuple[SaidCondition, ...]:
    """Say how a ListenerSet stands by its listeners: one of them is enough."""
    invalid = [one.listener.spec.name for one in standings if not _is_valid(one)]
    message = f"listeners that are not served, or only in part: {', '.join(invalid)}"
    if len(invalid) < len(standings):
        reason = _NOT_VALID if invalid else "Accepted"
        return (SaidCondition(ConditionType.ACCEPTED, "True", reason, message if invalid else ""),)
    return _conditions(_NOT_VALID, message if standings else "spec.listeners: there is no listener")


def _conditions(reason: str, message: str) -> tuple[SaidCondition, ...]:
    return (
        SaidCondition(ConditionType.ACCEPTED, "False", reason, message),
        SaidCondition(ConditionType.PROGRAMMED, "False", reason, message),
    )


def _is_valid(standing: Standing) -> bool:
    return standing.is_accepted and standing.is_programmed


def _is_accepted(lookups: Lookups, question: _Question) -> bool:
    ref = LISTENER_SETS.ref(*question)
    found = lookups.get(LISTENER_SETS, question.namespace, question.name)
    parent = parent_of_set(found.decode()) if found is not None else None
    merged = merged_gateway(lookups, parent) if parent is not None else None
    if parent is None or merged is None or not merged.is_accepted:
        return False
    frontend = read_frontend_of(lookups, parent)
    listeners = merged.sets.get(f"{question.namespace}/{question.name}", ())
    return any(_is_valid(judge(each, merged.faults.get(each.id), ref, lookups, frontend)) for each in listeners)


_ACCEPTED: Rule[_Question, bool] = Rule(
    "whether a ListenerSet is accepted", Level.SHARED, _is_accepted, lambda *_: False, is_memo=True
)


def is_set_accepted(lookups: Lookups, name: str) -> bool:
    """Whether a ListenerSet is accepted, by its namespace and name."""
    namespace, _, own = name.partition("/")
    return lookups.derive(_ACCEPTED, _Question(lookups.cluster, namespace, own))
