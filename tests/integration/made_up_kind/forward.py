"""A kind that no release reads, and its dialect: a `Forward` sends the requests of a host to a Service."""

from collections.abc import Iterable, Mapping, Sequence

from headgate.common.problems import Problem
from headgate.common.resources import ALL_KINDS, JsonObject, Kinds, ObjectRef, Ownership, ResourceKind, StatusShape
from headgate.common.table import PathMatch, PathType, Provenance, Route, WeightedBackend
from headgate.translator.fragments.fragment import (
    BackendUse,
    Fragment,
    Identity,
    RouteClaim,
    ServicePortRef,
    with_standing,
)
from headgate.translator.manifests.reading import as_object, as_text, metadata, pack, unpack
from headgate.translator.manifests.verdicts import FieldVerdict, Likeness
from headgate.translator.world.graph import Lookups
from headgate.translator.world.world import StoredKind

FORWARD = ResourceKind(
    "toys.example.com",
    "forwards",
    "Forward",
    ("v1",),
    short_names=("fwd",),
    dialect="toys",
    ownership=Ownership.REFERENCE,
    hidden=("spec.token",),
    status=StatusShape.CONDITIONS,
    is_asked=True,
)
KINDS = Kinds([*ALL_KINDS, FORWARD])
FORWARDS = StoredKind(FORWARD, pack, restore=unpack)


class ToysDialect:
    """Forwards."""

    name = "toys"
    roots = (FORWARDS,)
    reads = ()
    fields: Mapping[str, Sequence[FieldVerdict]] = {
        FORWARD.resource: (FieldVerdict(("pace",), Likeness.UNUSED, note="requests are not paced"),)
    }

    def check(self, ref: ObjectRef, manifest: JsonObject, stored: bytes) -> Iterable[Problem]:
        return translate_forward(ref, manifest).problems

    def concerns(self, stored: bytes) -> bool:
        return True

    def translate(self, ref: ObjectRef, lookups: Lookups) -> Fragment | None:
        standing = lookups.standing(FORWARDS, ref.namespace, ref.name)
        version = standing and (standing.good or standing.present)
        if standing is None or version is None or version.form is None:
            return None
        return with_standing(translate_forward(ref, unpack(version.form)), standing)

    def refuse(self, ref: ObjectRef, stored: bytes, error: Exception) -> Fragment:
        return Fragment(Identity(ref, "toys.example.com/v1", FORWARD.kind, ""))


def translate_forward(ref: ObjectRef, manifest: JsonObject) -> Fragment:
    """Return the route of a Forward, or what is wrong with it."""
    spec, field = as_object(manifest.get("spec")), "spec.service"
    identity = Identity(ref, "toys.example.com/v1", FORWARD.kind, as_text(metadata(manifest).get("uid")))
    host, service = as_text(spec.get("host")), as_text(spec.get("service"))
    if not service:
        return Fragment(identity, problems=(Problem(reason="Required", field=field, message="name a Service"),))
    backend = ServicePortRef(ref.cluster, ref.namespace, service, 80)
    route = Route(
        name=f"{ref.cluster}/{ref.namespace}/{ref.name}",
        path=PathMatch(type=PathType.PREFIX, value="/"),
        backends=(WeightedBackend(upstream=backend.key),),
        provenance=Provenance(
            cluster=ref.cluster, kind=FORWARD.kind, namespace=ref.namespace, name=ref.name, rule="spec"
        ),
    )
    claim, use = RouteClaim(host, route, field), BackendUse(backend, field, field)
    return Fragment(identity, hosts=(host,), routes=(claim,), backends=(use,))
