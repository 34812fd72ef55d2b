"""A kind that no release reads, and its dialect: a `Forward` sends the requests of a host to a Service."""

from headgate.common.problems import Problem
from headgate.common.resources import ALL_KINDS, JsonObject, Kinds, ObjectRef, OwnershipRule, ResourceKind, StatusShape
from headgate.common.table import Backend, PathMatch, PathType, Provenance, Route
from headgate.translator.fragments.fragment import BackendUse, Fragment, RouteClaim
from headgate.translator.fragments.upstream_refs import ServicePortRef
from headgate.translator.manifests.reading import as_object, as_text
from headgate.translator.manifests.verdicts import FieldVerdict, Likeness
from headgate.translator.objects.dialect import Dialect, translated_documents
from headgate.translator.objects.document import document_kind, identify
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
KINDS = Kinds([*ALL_KINDS, FORWARD])
FIELDS = (FieldVerdict(("pace",), Likeness.UNUSED, note="requests are not paced"),)


def translate_forward(ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> Fragment:
    """Return the route of a Forward, or what is wrong with it."""
    spec, field, identity = as_object(manifest.get("spec")), "spec.service", identify(ref, manifest)
    host, service = as_text(spec.get("host")), as_text(spec.get("service"))
    if not service:
        return Fragment(identity, problems=(Problem(reason="Required", field=field, message="name a Service"),))
    backend = ServicePortRef(ref.cluster, ref.namespace, service, 80)
    route = Route(
        name=f"{ref.cluster}/{ref.namespace}/{ref.name}",
        path=PathMatch(type=PathType.PREFIX, value="/"),
        backends=(Backend(upstream=backend.key),),
        provenance=Provenance(
            cluster=ref.cluster, kind=FORWARD.kind, namespace=ref.namespace, name=ref.name, rule="spec"
        ),
    )
    claim, use = RouteClaim(host, route, field), BackendUse(backend, field, field)
    return Fragment(identity, hosts=(host,), routes=(claim,), backends=(use,))


TOYS = Dialect("toys", (translated_documents(document_kind(FORWARD), translate_forward, fields=FIELDS),))
