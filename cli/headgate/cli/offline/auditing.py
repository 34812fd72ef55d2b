"""What some manifests, or a cluster, say and what becomes of it, object by object and in all."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from headgate.cli.offline.configuration_files import read_configuration
from headgate.cli.offline.findings import Finding, delta_of, object_name
from headgate.cli.offline.tables import CLUSTER, translator_settings
from headgate.common.deltas import SyncState
from headgate.common.resources import ALL_KINDS, SERVICE, JsonObject, Kinds, ResourceKind, WatchMode
from headgate.common.sealing import Sealer
from headgate.translator.annotations.nginx.flags import find_flags
from headgate.translator.audit import Audit, Said, unread_kind
from headgate.translator.composition import DIALECTS
from headgate.translator.manifests.verdicts import Verdict, plain
from headgate.translator.objects.dialect import Dialect
from headgate.translator.world.traefik_configuration import is_static_configuration, of_document, of_workload
from headgate.watcher.objects.secrets import throwaway_recipients
from headgate.watcher.sources import Unavailable
from headgate.watcher.sources.manifests.files import FileObject, read_paths

_WORKLOADS = tuple(
    ResourceKind("apps", resource, kind, ("v1",))
    for resource, kind in (("deployments", "Deployment"), ("daemonsets", "DaemonSet"))
)
"""Kinds of workloads; the audit looks at those that run ingress-nginx or Traefik."""
_WORST_FIRST = (Verdict.REFUSED, Verdict.IGNORED, Verdict.APPROXIMATED, Verdict.HONOURED)


class Audited(NamedTuple):
    """One object and what becomes of all that it says."""

    file: str
    """Empty for one of a cluster."""
    line: int
    """0 for one of a cluster."""
    object: str
    """`Ingress default/web`."""
    said: tuple[Said, ...]
    """The worst first."""

    def as_json(self) -> JsonObject:
        """Return it as JSON data."""
        return {**self._asdict(), "said": [one._asdict() for one in self.said]}


class Line(NamedTuple):
    """One annotation or field over all objects that fare alike with it."""

    name: str
    verdict: Verdict
    objects: int
    lets_in: int
    """Of these, in how many it keeps requests out and is ignored."""
    note: str
    """Of the first of them."""


class AuditReport(NamedTuple):
    """What some manifests, or a cluster, say and what becomes of it."""

    found: list[Audited]
    """The objects that are about routing, without Services that say nothing of it."""
    unreadable: list[Finding]
    """Of files."""
    unavailable: tuple[Unavailable, ...] = ()
    """Kinds that a cluster does not have, or that may not be listed."""
    server: str = ""
    """Of a cluster."""

    @property
    def forbidden(self) -> list[Unavailable]:
        """Kinds that may not be listed."""
        return [one for one in self.unavailable if one.state is SyncState.FORBIDDEN]

    @property
    def is_complete(self) -> bool:
        """Whether all that is there was read."""
        return not self.unreadable and not self.forbidden


def audit_paths(
    paths: Sequence[Path], *, kinds: Kinds = ALL_KINDS, dialects: Sequence[Dialect] = DIALECTS
) -> AuditReport:
    """Read files and folders and say what becomes of all that is written in them.

    Raises:
        SettingsError: the translator's variables cannot be used.
    """
    static, others = _static_files(paths)
    read = read_paths(others, cluster=CLUSTER, kinds=Kinds((*kinds, *_WORKLOADS)))
    found = _audited((one for one in read.objects if one.kind not in _WORKLOADS), dialects)
    found += _audited_flags(one for one in read.objects if one.kind in _WORKLOADS)
    found += static
    found += [Audited(one.file, one.line, one.object, (unread_kind(one.kind),)) for one in read.passed_over]
    problems = [Finding(one.file, one.line, one.object, one.problem) for one in read.problems]
    return AuditReport(sorted(found, key=_place), problems)


def audit_cluster(kubeconfig: Path | None, context: str | None, namespaces: Sequence[str]) -> AuditReport:
    """List the objects of a cluster and say what becomes of all that is written in them.

    Raises:
        SettingsError: the translator's variables cannot be used.
        HeadgateError, CommandError: as `headgate.cli.offline.live.read_live`.
    """
    from headgate.cli.offline.live import read_live  # its client takes 0.2 s, which files need not wait for

    choices = [choice for choice in ALL_KINDS.choices if choice[0].dialect and choice[0].watch is not WatchMode.NAMED]
    read = read_live(choices, kubeconfig, context, namespaces)
    return AuditReport(sorted(_audited(read.objects), key=_place), [], read.unavailable, read.server)


def _audited(objects: Iterable[FileObject], dialects: Sequence[Dialect] = DIALECTS) -> list[Audited]:
    auditor, sealer = Audit(translator_settings().translation, dialects), Sealer(CLUSTER, throwaway_recipients())
    audited = []
    for one in objects:
        delta = delta_of(one, sealer)
        said = auditor.look_at(one.ref, delta.object) if delta and delta.object is not None else None
        if said or (said is not None and one.kind != SERVICE):
            audited.append(Audited(one.file, one.line, object_name(one), said))
    return audited


def _audited_flags(objects: Iterable[FileObject]) -> Iterator[Audited]:
    """Yield the workloads of ingress-nginx and of Traefik, with the settings that say the same as their flags."""
    for one in objects:
        found = [
            Said(f"--{each.flag.name}", each.field, each.verdict, plain(each.advice)) for each in find_flags(one.object)
        ]
        found += (Said(*each) for each in of_workload(one.object))
        if found:
            yield Audited(one.file, one.line, object_name(one), _worst_first(found))


def _static_files(paths: Sequence[Path]) -> tuple[list[Audited], list[Path]]:
    """Return what becomes of files of Traefik's static configuration or values of its chart, and the other paths."""
    audited, others = [], []
    for path in paths:
        document = read_configuration(path)
        if document is None or not is_static_configuration(document):
            others.append(path)
            continue
        found = [Said(*each) for each in of_document(document)]
        audited.append(Audited(str(path), 1, "configuration of Traefik", _worst_first(found)))
    return audited, others


def _worst_first(found: Iterable[Said]) -> tuple[Said, ...]:
    return tuple(sorted(found, key=lambda said: _WORST_FIRST.index(said.verdict)))


def _place(one: Audited) -> tuple[str, int, str]:
    return one.file, one.line, one.object


def summarise(found: Iterable[Audited]) -> list[Line]:
    """Count, for each annotation and field, the objects with each verdict; the worst and most frequent first."""
    groups: dict[tuple[str, Verdict], list[Said]] = {}
    for said in (said for one in found for said in one.said):
        groups.setdefault((said.name, said.verdict), []).append(said)
    lines = [
        Line(name, verdict, len(group), sum(said.lets_in for said in group), group[0].note)
        for (name, verdict), group in groups.items()
    ]
    return sorted(
        lines, key=lambda line: (_WORST_FIRST.index(line.verdict), not line.lets_in, -line.objects, line.name)
    )


def verdicts(found: Iterable[Audited]) -> dict[str, int]:
    """Count what objects say by verdict; what one says in several places counts once."""
    counts = Counter(said.verdict for one in found for said in one.said)
    return {verdict: counts[verdict] for verdict in Verdict}
