"""Objects of manifests as an API server would have them if they were applied, and what is said of them then."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from headgate.cli.offline.findings import Finding, Note, delta_of, object_name
from headgate.cli.terminal.errors import UsageMistake
from headgate.common.deltas import ClusterAnnouncement, Delta
from headgate.common.problems import Problem
from headgate.common.resources import JsonObject, ObjectRef
from headgate.common.sealing import Sealer
from headgate.common.selection import Selection
from headgate.common.snapshot import Manifest
from headgate.common.table_diff import TableDiff
from headgate.watcher.objects.secrets import throwaway_recipients
from headgate.watcher.sources.manifests.files import FileObject

_KEPT = ("creationTimestamp", "generation")


class Known(NamedTuple):
    """What an API server would keep of an object when a manifest is applied to it."""

    uid: str
    metadata: Mapping[str, Any]
    """`creationTimestamp` and `generation`, as far as there are."""
    status: Any


class TablePlan(NamedTuple):
    """What manifests would change."""

    diff: TableDiff
    findings: tuple[Finding, ...]
    """What is wrong with them, sorted by file and line."""
    notes: tuple[Note, ...]
    remarks: tuple[str, ...] = ()
    """What else has to be known to understand the difference."""


class Verdicts(NamedTuple):
    """What a translation says of objects."""

    problems: Mapping[ObjectRef, tuple[Problem, ...]]
    """What is wrong with each object that is ours."""
    foreign: Mapping[ObjectRef, str]
    """Why each other object is not ours."""


def choose_cluster(
    announced: Mapping[str, ClusterAnnouncement], selection: Selection, wanted: str
) -> ClusterAnnouncement:
    """Return the cluster that manifests would be applied to.

    Raises:
        UsageMistake: there is none such, or several to choose from.
    """
    names = sorted(filter(selection.has_cluster, announced))
    if not names:
        raise UsageMistake("no watcher has said anything yet, so there is no cluster to apply manifests to")
    if wanted and wanted not in names:
        raise UsageMistake(f"there is no cluster {wanted!r} in the table, but {', '.join(names)}")
    if not wanted and len(names) > 1:
        raise UsageMistake(f"say which cluster the manifests are for: --cluster {' or --cluster '.join(names)}")
    return announced[wanted or names[0]]


def known_of(delta: Delta) -> Known | None:
    """Return what the log's last delta of an object says that it keeps; None if it is deleted."""
    if delta.object is None:
        return None
    metadata = delta.object.get("metadata") or {}
    kept = {name: metadata[name] for name in _KEPT if name in metadata}
    return Known(delta.uid, kept, delta.object.get("status"))


def propose(
    cluster: ClusterAnnouncement, objects: Sequence[FileObject], known: Mapping[ObjectRef, Known]
) -> Iterator[Delta]:
    """Yield what a watcher would say of objects once they are applied. Secrets are sealed for nobody.

    Args:
        cluster: that the objects are of.
        objects: of manifests.
        known: what the log has of objects.
    """
    sealer = Sealer(cluster.cluster, throwaway_recipients())
    now = datetime.now(UTC)
    is_stamped = cluster.source == "kubernetes"
    for one in objects:
        delta = delta_of(one, sealer)
        if delta is None or delta.object is None:
            continue
        before = known.get(one.ref)
        metadata: JsonObject = dict(delta.object["metadata"])
        if before is not None:
            metadata |= before.metadata
        elif is_stamped:
            metadata.setdefault("creationTimestamp", now.isoformat())
        manifest = {**delta.object, "metadata": metadata}
        if before is not None and before.status is not None:
            manifest["status"] = before.status  # a subresource, which applying leaves alone
        yield delta.model_copy(update={"object": manifest, "uid": before.uid if before else delta.uid})


def locate(
    objects: Sequence[FileObject], verdicts: Verdicts, selection: Selection
) -> tuple[tuple[Finding, ...], tuple[Note, ...]]:
    """Say where the objects stand that something is wrong with, or that are not ours."""
    outside = {
        one.ref: f"namespace {one.ref.namespace!r} is not in the table"
        for one in objects
        if one.kind.is_routing and not selection.selects(one.ref)
    }
    foreign = {**verdicts.foreign, **outside}
    findings = [
        Finding(one.file, one.line, object_name(one), problem)
        for one in objects
        for problem in verdicts.problems.get(one.ref, ())
    ]
    notes = [Note(one.file, one.line, object_name(one), foreign[one.ref]) for one in objects if one.ref in foreign]
    return tuple(sorted(findings, key=lambda one: (one.file, one.line))), tuple(sorted(notes))


def remarks_on(published: Manifest | None) -> Iterator[str]:
    """Say what keeps a change from being served at once; `published` is the current revision."""
    if published is None:
        return
    if published.pin is not None:
        yield f"the table is pinned to {published.pin.version}: nothing of this is served before `headgate unpin`"
    if published.rollout is not None:
        yield f"{published.rollout.target} is rolled out, or was: this comes after it; `headgate rollout` says more"
