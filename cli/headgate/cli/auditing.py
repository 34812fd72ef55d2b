"""What some manifests say and what becomes of it, object by object and in all."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from headgate.cli.offline import CLUSTER, Finding, delta_of, object_name, translator_settings
from headgate.common.resources import SERVICE, JsonObject
from headgate.translator.audit import Audit, Said, unread_kind
from headgate.translator.verdicts import Verdict
from headgate.watcher.secrets import throwaway_recipients
from headgate.watcher.sources.manifest_files import read_paths

_WORST_FIRST = (Verdict.REFUSED, Verdict.IGNORED, Verdict.APPROXIMATED, Verdict.HONOURED)


class Audited(NamedTuple):
    """One object and what becomes of all that it says."""

    file: str
    line: int
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


def audit_paths(paths: Sequence[Path]) -> tuple[list[Audited], list[Finding]]:
    """Read files and folders and say what becomes of all that is written in them.

    Returns:
        the objects that are about routing, without Services that say nothing of it; and what could not be read.

    Raises:
        SettingsError: the translator's variables cannot be used.
    """
    read, recipients = read_paths(paths, cluster=CLUSTER), throwaway_recipients()
    auditor = Audit(translator_settings().classes)
    audited = []
    for one in read.objects:
        delta = delta_of(one, recipients)
        said = auditor.look_at(one.ref, delta.object) if delta and delta.object is not None else None
        if said or (said is not None and one.kind != SERVICE):
            audited.append(Audited(one.file, one.line, object_name(one), said))
    audited += [Audited(one.file, one.line, one.object, (unread_kind(one.kind),)) for one in read.passed_over]
    return sorted(audited, key=lambda one: (one.file, one.line)), [
        Finding(one.file, one.line, one.object, one.problem) for one in read.problems
    ]


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
