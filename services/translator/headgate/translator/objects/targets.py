"""What a policy is about: its `targetRefs`, as policies of Gateway API have them (GEP-713).

A target is read whatever else is wrong with its policy: its problems are reported on the policy's status.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from headgate.common.problems import Problem
from headgate.common.resources import JsonObject, ObjectRef
from headgate.common.status import AncestorRef
from headgate.translator.fragments.fragment import Seniority
from headgate.translator.fragments.status_part import StatusPart
from headgate.translator.manifests.reading import as_list, as_object, as_text, creation_time, metadata
from headgate.translator.manifests.specs import refuse


class PolicyTarget(NamedTuple):
    """An object in the namespace of its policy, or a part of it."""

    group: str
    kind: str
    name: str
    section: str
    """Empty for the whole object."""
    field: str


def read_targets(manifest: JsonObject) -> Iterator[PolicyTarget]:
    """Yield what a policy is about, as far as it can be read."""
    for index, written in enumerate(as_list(as_object(manifest.get("spec")).get("targetRefs"))):
        named = as_object(written)
        group, kind, name, section = (as_text(named.get(part)) for part in ("group", "kind", "name", "sectionName"))
        target = PolicyTarget(group, kind, name, section, f"spec.targetRefs[{index}]")
        if target.kind and target.name:
            yield target


def ancestors_of(ref: ObjectRef, targets: Sequence[PolicyTarget], *, is_readable: bool) -> tuple[StatusPart, ...]:
    """Return targets as a status names them; one that is named twice counts once."""
    found: dict[AncestorRef, StatusPart] = {}
    for target in targets:
        named = AncestorRef(target.group, target.kind, ref.namespace, target.name, target.section)
        found.setdefault(named, StatusPart(named, target.field if is_readable else ""))
    return tuple(found.values())


def seniority_of(manifest: JsonObject) -> Seniority:
    """Return a policy's place among those for one target: the least goes before the others."""
    meta = metadata(manifest)
    return Seniority(creation_time(manifest), as_text(meta.get("namespace")), as_text(meta.get("name")), "")


def not_found(target: PolicyTarget, message: str) -> Problem:
    """Say that a target is not there."""
    return refuse("TargetNotFound", target.field, message, target.name)


def conflicted(target: PolicyTarget, message: str) -> Problem:
    """Say that a policy does not hold for a target because of another one."""
    return refuse("Conflicted", target.field, message, target.name)


def outranked(target: PolicyTarget, what: str, kind: str, winner: Seniority, own: Seniority) -> Problem:
    """Say that a target, known as `what`, has another policy of the kind, which goes before."""
    why = "is older" if winner.created_at != own.created_at else "is as old and goes first by name"
    return conflicted(target, f"{what} has {kind} {winner.namespace}/{winner.name}, which {why}")
