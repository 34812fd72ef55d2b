"""What is asked of the translator about an admission request, if anything.

Nothing is asked where the answer could only be yes: deletions, objects that are being deleted, statuses and other
subresources, changes of nothing but bookkeeping, and what is not watched. So finalizers go, and labels change, whatever
is wrong with an object and which translator is away.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from headgate.common.admission import MAX_PROPOSAL_BYTES, Basis, Finding, NamedObject, Opinion, Outcome, Proposal
from headgate.common.problems import Problem, Severity
from headgate.common.resources import ALL_KINDS, JsonObject, Kinds, Narrowing, ObjectRef, ResourceKind
from headgate.common.sealing import Sealer
from headgate.watcher.admission.review import AdmissionRequest
from headgate.watcher.admission.selector import Selector
from headgate.watcher.objects.preparing import MAX_OBJECT_BYTES, encode, prepare, prepare_stripped, strip
from headgate.watcher.objects.secrets import TLS_TYPE

OUR_PREFIX = "headgate.dev/"
_WRITES = ("CREATE", "UPDATE")
_ROOM = 4096
"""Of a proposal, for what is not the object."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What of a cluster is watched."""

    cluster: str
    namespaces: frozenset[str]
    """Empty for all."""
    selects: Selector
    """Whether objects with these labels are read, of kinds that a label selector narrows."""
    sealer: Sealer
    """Seals its Secrets."""
    kinds: Kinds = ALL_KINDS


class Question(NamedTuple):
    """What is asked, and of whom."""

    proposal: Proposal
    kind: str
    speaks_to_us: bool
    """Whether the object may be meant for us. Others are not held back for want of an answer."""
    answer: Opinion | None = None
    """What is known without asking."""

    def __str__(self) -> str:
        """The object, as messages name it."""
        return f"{self.kind} {self.proposal.ref.namespace}/{self.proposal.ref.name}"


def pose(request: AdmissionRequest, scope: Scope, now: datetime) -> Question | None:
    """Return what is asked; None where the request is let pass without a question.

    Raises:
        SealingError: a Secret cannot be sealed.
    """
    kind = scope.kinds.find(request.resource.group, request.resource.resource)
    manifest = request.object
    if kind is None or not kind.is_asked:
        return None
    if manifest is None or request.operation not in _WRITES or request.sub_resource:
        return None
    if not _is_watched(kind, request, manifest, scope) or _metadata(manifest).get("deletionTimestamp"):
        return None
    before = request.old_object
    if before is not None and not _is_watched(kind, request, before, scope):
        before = None
    if before is not None and _substance(kind, manifest) == _substance(kind, before):
        return None
    return _make_question(kind, request, _with_creation_time(manifest, now), before, scope)


def _is_watched(kind: ResourceKind, request: AdmissionRequest, manifest: JsonObject, scope: Scope) -> bool:
    if scope.namespaces and request.namespace not in scope.namespaces:
        return False
    if kind.narrowed_by is Narrowing.LABELS and not scope.selects(_members(_metadata(manifest), "labels")):
        return False
    # Whether other Secrets are watched is not known here, and none of them makes a route fail that is served.
    return kind.narrowed_by is not Narrowing.SECRET_TYPES or manifest.get("type") == TLS_TYPE


def _substance(kind: ResourceKind, manifest: JsonObject) -> JsonObject:
    """What of an object says something about traffic: all but bookkeeping."""
    stripped = strip(kind, manifest)
    outside = {name: value for name, value in stripped.items() if name not in ("metadata", "status")}
    return {**outside, "annotations": _members(_metadata(stripped), "annotations")}


def _make_question(
    kind: ResourceKind, request: AdmissionRequest, manifest: JsonObject, before: JsonObject | None, scope: Scope
) -> Question:
    metadata = _metadata(manifest)
    name = str(metadata.get("name") or request.name or metadata.get("generateName") or "")
    ref = ObjectRef(scope.cluster, kind.group, kind.resource, request.namespace or "", name)
    named = {"apiVersion": request.resource.api_version, "kind": kind.kind}
    present = prepare_stripped(kind, strip(kind, manifest | named), scope.sealer)
    past = None if before is None else prepare_stripped(kind, strip(kind, before | named), scope.sealer)
    proposal = Proposal(ref=ref, object=present, is_update=past is not None, before=past)
    size, further = len(encode(present)), len(encode(past))
    annotations = _members(metadata, "annotations")
    speaks_to_us = kind.is_routing or any(name.startswith(OUR_PREFIX) for name in annotations)
    if size > MAX_OBJECT_BYTES:
        return Question(proposal, kind.kind, speaks_to_us, _too_large(size))
    if size + further > MAX_PROPOSAL_BYTES - _ROOM:
        proposal = proposal.model_copy(update={"before": None})
    return Question(proposal, kind.kind, speaks_to_us)


def with_named(question: Question, found: Iterable[tuple[ResourceKind, JsonObject]], scope: Scope) -> Question:
    """Return the question with what its object would be the first to name, as far as there is room.

    Raises:
        SealingError: a Secret cannot be sealed.
    """
    proposal, named = question.proposal, []
    room = MAX_PROPOSAL_BYTES - _ROOM - len(encode(proposal.object)) - len(encode(proposal.before))
    for kind, manifest in found:
        prepared = prepare(kind, manifest, scope.sealer)
        size = len(encode(prepared)) + _ROOM
        if prepared is None or size > room:
            continue
        room -= size
        metadata = _metadata(manifest)
        ref = ObjectRef(scope.cluster, kind.group, kind.resource, metadata.get("namespace", ""), metadata["name"])
        named.append(NamedObject(ref=ref, object=prepared))
    return question._replace(proposal=proposal.model_copy(update={"named": tuple(named)}))


def _too_large(size: int) -> Opinion:
    problem = Problem(
        severity=Severity.WARNING,
        reason="TooLarge",
        message=f"{size} bytes as JSON; objects of more than {MAX_OBJECT_BYTES} bytes are not taken in, so split it up",
    )
    return Opinion(outcome=Outcome.JUDGED, findings=(Finding(problem=problem, basis=Basis.OWN),))


def _with_creation_time(manifest: JsonObject, now: datetime) -> JsonObject:
    """API servers set it before they ask; without it an object would count as the oldest of all."""
    metadata = _metadata(manifest)
    if metadata.get("creationTimestamp"):
        return manifest
    created = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {**manifest, "metadata": {**metadata, "creationTimestamp": created}}


def _metadata(manifest: JsonObject) -> JsonObject:
    return _members(manifest, "metadata")


def _members(manifest: JsonObject, name: str) -> JsonObject:
    found = manifest.get(name)
    return found if isinstance(found, dict) else {}
