"""One Gateway to one fragment: its ports, its hosts, its certificates, and how it stands.

The gateways serve all Gateways together, as one fleet. Where the operator's settings have addresses for it, a Gateway
has some of its own, and its listeners are listeners of the table; else Gateways share ports, and hosts alone hold them
apart. A host of a listener is a host of the table even without routes, so that its requests are no other listener's.
"""

from collections.abc import Iterator
from typing import Final

from headgate.common.problems import Problem, Severity
from headgate.common.resources import GATEWAY, JsonObject, ObjectRef
from headgate.common.status import ConditionType, ListenerRef
from headgate.translator.dialects.gateway_api.gateways.addresses import allotment_of, own_place, problems_of
from headgate.translator.dialects.gateway_api.gateways.client_certificate import find_client_certificate
from headgate.translator.dialects.gateway_api.gateways.contribution import contribute, report_listeners
from headgate.translator.dialects.gateway_api.gateways.frontend import NOTHING_ASKED, Frontend, read_frontend
from headgate.translator.dialects.gateway_api.gateways.listener_set import is_set_accepted
from headgate.translator.dialects.gateway_api.gateways.listeners import faults_of, read_listeners
from headgate.translator.dialects.gateway_api.gateways.merged import sets_of
from headgate.translator.dialects.gateway_api.gateways.parameters import parameters_of
from headgate.translator.dialects.gateway_api.gateways.standing import INVALID, NOT_ACCEPTED, Standing, judge
from headgate.translator.dialects.gateway_api.gateways.whole import fault_of_gateway, ignored_fields
from headgate.translator.dialects.gateway_api.members import members_of
from headgate.translator.dialects.gateway_api.models.gateway import GatewaySettings
from headgate.translator.fragments.fragment import Fragment
from headgate.translator.fragments.status_part import SaidCondition, StatusPart
from headgate.translator.manifests.specs import Spec
from headgate.translator.objects.document import identify
from headgate.translator.sources.addresses import parse_address
from headgate.translator.sources.gateways import GatewayName
from headgate.translator.world.graph import Lookups

LISTENERS_NOT_VALID: Final = "ListenersNotValid"


def translate_gateway(ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> Fragment:
    """Return what a Gateway that is ours contributes."""
    problems: list[Problem] = []
    settings = Spec(manifest.get("spec"), problems).rest(GatewaySettings, "listeners")
    place = own_place(lookups, ref.namespace, ref.name)
    listeners = read_listeners(manifest, problems, place)
    identity = identify(ref, manifest)
    if settings is None or lookups.is_assumed:
        return Fragment(identity, problems=tuple(dict.fromkeys(problems)))
    parameters = parameters_of(lookups, ref.namespace, ref.name)
    fault = fault_of_gateway(settings, has_own_addresses=bool(place)) or parameters.fault
    allotted = allotment_of(lookups, ref) if fault is None else None
    sets = sets_of(lookups, GatewayName(ref.namespace, ref.name), settings.allowed_listeners)
    faults = faults_of((listeners, *sets.values()), lookups.settings.entry_points)
    frontend = read_frontend(settings.tls, ref.namespace, lookups) if fault is None else NOTHING_ASKED
    standings = [judge(each, faults.get(each.id), ref, lookups, frontend) for each in listeners]
    members = members_of(lookups, GATEWAY.kind, ref.namespace, ref.name)
    reports = report_listeners(listeners, members.attached, allotted)
    problems += ignored_fields(settings, have_infrastructure=lookups.settings.have_infrastructure)
    if fault is not None:
        return Fragment(
            identity,
            problems=tuple(dict.fromkeys((fault, *problems))),
            said=_said(False, fault.reason, str(fault), is_programmed=False),
            parts=tuple(StatusPart(ListenerRef(one.spec.name), one.field, NOT_ACCEPTED) for one in listeners),
            listener_reports=reports,
        )
    unresolved: list[Problem] = []
    find_client_certificate(settings.tls, ref.namespace, lookups, unresolved)
    problems += unresolved
    problems += (problem for standing in standings for problem in standing.problems)
    lacking = tuple(problems_of(allotted)) if allotted is not None else ()
    problems += lacking
    said = _lacking_addresses(_stands(standings), lacking)
    everything = (each for group in (listeners, *sets.values()) for each in group)
    made = contribute(ref, standings, [each for each in everything if each.id not in faults], allotted)
    owned_by = {name.partition("/")[0] for name in sets}
    return Fragment(
        identity,
        hosts=made.hosts,
        routes=made.routes,
        **made.placed,
        problems=tuple(dict.fromkeys(problems)),
        said=(*_with_references(said, unresolved), *_insecure(frontend)),
        parts=made.parts,
        listener_reports=reports,
        shares_routes_with=tuple(sorted(members.namespaces | owned_by)),
        addresses=parameters.addresses if allotted is None else tuple(map(parse_address, allotted.addresses)),
        attached_listener_sets=sum(is_set_accepted(lookups, name) for name in sets),
    )


def _insecure(frontend: Frontend) -> Iterator[SaidCondition]:
    if frontend.is_insecure:
        message = "clients are let in whatever certificate they show, or without one (AllowInsecureFallback)"
        yield SaidCondition(ConditionType.INSECURE_FRONTEND, "True", "ConfigurationChanged", message)


def _stands(standings: list[Standing]) -> tuple[SaidCondition, ...]:
    """Say how a Gateway stands by its listeners."""
    invalid = [one.listener.spec.name for one in standings if not (one.is_accepted and one.is_programmed)]
    is_accepted = any(one.is_accepted for one in standings)
    is_programmed = any(one.is_programmed for one in standings)
    if not standings:
        return _said(False, LISTENERS_NOT_VALID, "spec.listeners: there is no listener", is_programmed=False)
    if invalid:
        message = f"listeners that are not served, or only in part: {', '.join(invalid)}"
        return _said(is_accepted, LISTENERS_NOT_VALID, message, is_programmed=is_programmed)
    return _said(True, "Accepted", "", is_programmed=True)


def _lacking_addresses(said: tuple[SaidCondition, ...], lacking: tuple[Problem, ...]) -> tuple[SaidCondition, ...]:
    """Say that a Gateway lacks addresses that it asks for, unless something else keeps it from being programmed."""
    if not lacking or any(one.type is ConditionType.PROGRAMMED for one in said):
        return said
    text = "; ".join(map(str, lacking))
    return (*said, SaidCondition(ConditionType.PROGRAMMED, "False", lacking[0].reason, text))


def _with_references(said: tuple[SaidCondition, ...], unresolved: list[Problem]) -> tuple[SaidCondition, ...]:
    """Return conditions with what the Gateway itself refers to in vain."""
    errors = [problem for problem in unresolved if problem.severity is Severity.ERROR]
    if not errors:
        return said
    wrong = SaidCondition(ConditionType.RESOLVED_REFS, "False", errors[0].reason, "; ".join(map(str, errors)))
    return tuple(wrong if one.type is wrong.type else one for one in said)


def _said(is_accepted: bool, reason: str, message: str, *, is_programmed: bool) -> tuple[SaidCondition, ...]:
    said = [
        SaidCondition(ConditionType.ACCEPTED, "True" if is_accepted else "False", reason, message),
        SaidCondition(ConditionType.RESOLVED_REFS, "True", "ResolvedRefs"),
    ]
    if not is_programmed:
        said.append(SaidCondition(ConditionType.PROGRAMMED, "False", INVALID, message))
    return tuple(said)
