"""A dialect that no release has: a `Forward` sends the requests of a host to a Service.

The annotation `toys.example.com/read-timeout` says how long an answer may take, and a `ForwardLimit` how large the
bodies of the Forwards may be that its `targetRefs` name.
"""

from collections.abc import Collection
from typing import Any

from headgate.common.problems import Problem
from headgate.common.resources import ALL_KINDS, JsonObject, Kinds, ObjectRef, OwnershipRule, ResourceKind, StatusShape
from headgate.common.table import Backend, PathMatch, PathType, Provenance, Route, Timeouts
from headgate.translator.annotations.annotation import Annotation, AnnotationTable
from headgate.translator.annotations.reading import Reading
from headgate.translator.annotations.vocabulary import vocabulary_of
from headgate.translator.fragments.fragment import BackendUse, Fragment, RouteClaim
from headgate.translator.fragments.upstream_refs import ServicePortRef
from headgate.translator.manifests import texts
from headgate.translator.manifests.patches import RoutePatch
from headgate.translator.manifests.reading import as_object, as_text
from headgate.translator.manifests.specs import refuse
from headgate.translator.manifests.verdicts import FieldVerdict, Likeness
from headgate.translator.objects.dialect import Dialect, translated_documents
from headgate.translator.objects.document import identify
from headgate.translator.objects.targets import ancestors_of, not_found, read_targets
from headgate.translator.sources.policies import NO_ROUTE_POLICY, ROUTE_POLICIES, ObjectTarget, RoutePolicy
from headgate.translator.world.attachments import Provider
from headgate.translator.world.documents import document_index, document_kind
from headgate.translator.world.graph import Lookups

FORWARD = ResourceKind(
    "toys.example.com",
    "forwards",
    "Forward",
    ("v1",),
    short_names=("fwd",),
    dialect="toys",
    ownership=OwnershipRule.REFERENCE,
    hidden=("spec.token",),
    status=StatusShape.CONDITIONS,
    is_asked=True,
)
FORWARD_LIMIT = ResourceKind(
    "toys.example.com",
    "forwardlimits",
    "ForwardLimit",
    ("v1",),
    dialect="toys",
    ownership=OwnershipRule.REFERENCE,
    status=StatusShape.ANCESTORS,
)
KINDS = Kinds([*ALL_KINDS, FORWARD, FORWARD_LIMIT])
FIELDS = (FieldVerdict(("pace",), Likeness.UNUSED, note="requests are not paced"),)
ANNOTATIONS = AnnotationTable.of(
    "toys.example.com/", (Annotation("read-timeout", texts.duration, sets="timeouts.read_s", value="a duration"),)
)


def _limited(manifest: JsonObject) -> Collection[str]:
    return {target.name for target in read_targets(manifest) if target.kind == FORWARD.kind}


BY_FORWARD = document_index("forward", _limited)
FORWARDS = document_kind(FORWARD, annotations=ANNOTATIONS.written)
LIMITS = document_kind(FORWARD_LIMIT, indexes=(BY_FORWARD,))


def translate_forward(ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> Fragment:
    """Return the route of a Forward, or what is wrong with it."""
    spec, field, identity = as_object(manifest.get("spec")), "spec.service", identify(ref, manifest)
    host, service = as_text(spec.get("host")), as_text(spec.get("service"))
    if not service:
        return Fragment(identity, problems=(Problem(reason="Required", field=field, message="name a Service"),))
    annotated = Reading(ANNOTATIONS)
    for name, written in ANNOTATIONS.written(manifest).items():
        annotated.take(name.removeprefix(ANNOTATIONS.prefix), written)
    timeouts = annotated.group("timeouts")
    policy = lookups.attached(ROUTE_POLICIES, ObjectTarget(FORWARD.group, FORWARD.kind, ref.namespace, ref.name))
    patch = RoutePatch(timeouts=Timeouts(**timeouts) if timeouts else None).over(policy.patch)
    backend = ServicePortRef(ref.cluster, ref.namespace, service, 80)
    route = Route(
        name=f"{ref.cluster}/{ref.namespace}/{ref.name}",
        path=PathMatch(type=PathType.PREFIX, value="/"),
        backends=(Backend(upstream=backend.key),),
        provenance=Provenance(
            cluster=ref.cluster, kind=FORWARD.kind, namespace=ref.namespace, name=ref.name, rule="spec"
        ),
        **patch.fields,
    )
    claim, use = RouteClaim(host, route, field), BackendUse(backend, field, field)
    return Fragment(identity, hosts=(host,), routes=(claim,), backends=(use,), problems=tuple(annotated.problems))


def translate_limit(ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> Fragment:
    """Return what is wrong with a ForwardLimit, and with each of its targets."""
    problems, targets = list[Problem](), tuple(read_targets(manifest))
    if _limit(manifest) is None:
        problems.append(refuse("Invalid", "spec.maxBody", "must be a number of bytes"))
    for target in () if lookups.is_assumed else targets:
        if lookups.get(FORWARDS, ref.namespace, target.name) is None:
            problems.append(not_found(target, f"Forward {ref.namespace}/{target.name} not found"))
    return Fragment(
        identify(ref, manifest), problems=tuple(problems), parts=ancestors_of(ref, targets, is_readable=True)
    )


def find_limit(lookups: Lookups, target: ObjectTarget) -> RoutePolicy:
    """Return what the ForwardLimits for an object say of its routes."""
    if target.kind != FORWARD.kind:
        return NO_ROUTE_POLICY
    found = lookups.find(LIMITS, BY_FORWARD, target.name, namespace=target.namespace)
    sizes = [size for document in found if (size := _limit(document.decode())) is not None]
    return RoutePolicy(RoutePatch(max_body=min(sizes))) if sizes else NO_ROUTE_POLICY


def _limit(manifest: JsonObject) -> int | None:
    size: Any = as_object(manifest.get("spec")).get("maxBody")
    return size if isinstance(size, int) else None


TOYS = Dialect(
    "toys",
    kinds=(
        translated_documents(FORWARDS, translate_forward, fields=FIELDS),
        translated_documents(LIMITS, translate_limit),
    ),
    reads=(FORWARDS, LIMITS),
    provides=(Provider(ROUTE_POLICIES, find_limit),),
    vocabularies=(vocabulary_of(ANNOTATIONS, {"Forward": "Forwards"}),),
)
