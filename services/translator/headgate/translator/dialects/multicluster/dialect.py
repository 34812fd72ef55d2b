"""ServiceExports: how they stand, by the conditions of the Multi-Cluster Services API (KEP-1645).

What they say takes effect wherever Services are looked up (`sources.sharing`). If a controller of that API has made a
ServiceImport of the name, that controller writes the conditions, and Headgate leaves them alone.
"""

from collections.abc import Iterator
from typing import Final

from headgate.common.problems import Problem
from headgate.common.resources import JsonObject, ObjectRef
from headgate.common.status import ConditionType
from headgate.translator.fragments.fragment import Fragment, Identity
from headgate.translator.fragments.status_part import SaidCondition
from headgate.translator.manifests.specs import refuse, warn
from headgate.translator.objects.dialect import Dialect, translated_documents
from headgate.translator.objects.document import identify
from headgate.translator.objects.ownership import ByRule
from headgate.translator.sources.imports import SERVICE_IMPORTS
from headgate.translator.sources.services import EXTERNAL_NAME, SERVICES, Service, port_names
from headgate.translator.sources.sharing import SERVICE_EXPORTS, exporters
from headgate.translator.world.graph import Lookups

_NAME: Final = "metadata.name"


def translate_service_export(ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> Fragment:
    """Return how a ServiceExport stands."""
    identity = identify(ref, manifest)
    if lookups.is_assumed:
        return Fragment(identity)
    service, what = lookups.get(SERVICES, ref.namespace, ref.name), f"Service {ref.namespace}/{ref.name}"
    if service is None:
        return _invalid(identity, refuse("NoService", _NAME, f"{what} not found", ref.name))
    if service.type == EXTERNAL_NAME:
        message = f"{what} is of type {EXTERNAL_NAME}, which cannot be exported"
        return _invalid(identity, refuse("InvalidServiceType", _NAME, message, ref.name))
    conflict = next(_conflicts(ref, service, lookups), None)
    if conflict is None:
        settled = SaidCondition(ConditionType.CONFLICT, "False", "NoConflicts")
    else:
        settled = SaidCondition(ConditionType.CONFLICT, "True", conflict.reason, conflict.message)
    said = (
        SaidCondition(ConditionType.VALID, "True", "Valid"),
        SaidCondition(ConditionType.READY, "True", "Exported"),
        settled,
    )
    return Fragment(identity, problems=(conflict,) if conflict is not None else (), said=said)


def _invalid(identity: Identity, problem: Problem) -> Fragment:
    said = (
        SaidCondition(ConditionType.VALID, "False", problem.reason, problem.message),
        SaidCondition(ConditionType.READY, "False", "Pending", problem.message),
        SaidCondition(ConditionType.CONFLICT, "False", "NoConflicts"),
    )
    return Fragment(identity, problems=(problem,), said=said)


def _conflicts(ref: ObjectRef, own: Service, lookups: Lookups) -> Iterator[Problem]:
    """Yield how the Service differs from those that other clusters export under its name."""
    for cluster in exporters(lookups, ref.namespace, ref.name):
        other = None if cluster == ref.cluster else lookups.elsewhere(cluster).get(SERVICES, ref.namespace, ref.name)
        if other is None:
            continue
        if other.is_headless != own.is_headless:
            kinds = [f"{'is' if one.is_headless else 'is not'} headless" for one in (own, other)]
            message = f"the Service {kinds[0]} here, and {kinds[1]} in cluster {cluster}; all endpoints are joined"
            yield warn("TypeConflict", _NAME, message)
        if _ports(own) != _ports(other):
            texts = [port_names((*one.ports, *one.udp_ports)) for one in (own, other)]
            message = (
                f"the Service has the ports {texts[0]} here, and {texts[1]} in cluster {cluster}; a cluster takes no "
                "part in a port that its Service lacks"
            )
            yield warn("PortConflict", _NAME, message)


def _ports(service: Service) -> frozenset[tuple[str, int, str, str]]:
    """Return what has to be equal of ports; where they lead to is each cluster's own."""
    ports = (*service.ports, *service.udp_ports)
    return frozenset((port.name, port.port, port.protocol, port.app_protocol) for port in ports)


def _is_ours(ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> bool:
    return lookups.get(SERVICE_IMPORTS, ref.namespace, ref.name) is None


MULTICLUSTER = Dialect(
    name="multicluster",
    kinds=(
        translated_documents(
            SERVICE_EXPORTS,
            translate_service_export,
            ownership=ByRule(_is_ours, "a controller of the Multi-Cluster Services API has made a ServiceImport of it"),
        ),
    ),
    reads=(SERVICE_IMPORTS,),
)
