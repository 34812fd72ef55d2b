"""Manifests to a table without any service: what the watcher would read and the translator make of it."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from headgate.cli.offline.findings import Finding, Note, delta_of, object_name
from headgate.cli.terminal.progress import long_work
from headgate.common.resources import ALL_KINDS, SECRET, JsonObject, Kinds
from headgate.common.sealing import Sealer
from headgate.common.service.settings import load_settings
from headgate.common.table import TableEntry
from headgate.operations.status.suspects import Suspect
from headgate.operations.tables.expiry import expiry_problems
from headgate.translator.composition import DIALECTS
from headgate.translator.objects.dialect import Dialect
from headgate.translator.offline import Offline, translate_all
from headgate.translator.settings import TranslatorSettings
from headgate.watcher.objects.secrets import throwaway_recipients
from headgate.watcher.sources.manifests.files import FileObject, ManifestRead, read_paths

CLUSTER = "local"
"""As a watcher of manifests calls it by default, so that answers of files and of a gateway name the same objects."""


class OfflineTable(NamedTuple):
    """What some manifests make."""

    translated: Offline
    findings: tuple[Finding, ...]
    """Sorted by file and line."""
    notes: tuple[Note, ...]
    object_count: int
    files: int
    manifests: Mapping[tuple[str, int], JsonObject]
    """The objects, by file and line."""

    def suspect(self, finding: Finding) -> Suspect:
        """Return the object that a finding is about, with this one problem."""
        manifest = self.manifests.get((finding.file, finding.line))
        kind, _, name = finding.object.partition(" ")
        namespace, _, name = name.rpartition("/")
        return Suspect(kind, namespace, name, manifest, (finding.problem,), file=finding.file, line=finding.line)

    @property
    def entries(self) -> tuple[TableEntry, ...]:
        """All entries of the table, decoded."""
        return self.translated.entries


def translate_paths(
    paths: Sequence[Path],
    translator_flags: Sequence[str] = (),
    *,
    kinds: Kinds = ALL_KINDS,
    dialects: Sequence[Dialect] = DIALECTS,
) -> OfflineTable:
    """Read files and folders and translate what is in them.

    Args:
        paths: files and folders of manifests.
        translator_flags: as `headgate translator` takes them; its environment variables count too.
        kinds: what is read.
        dialects: which dialects translate them.

    Raises:
        SettingsError: the flags or variables cannot be used.
    """
    return translate_read(read_all(paths, kinds), translator_flags, dialects)


def read_all(paths: Sequence[Path], kinds: Kinds = ALL_KINDS) -> ManifestRead:
    """Read files and folders as objects of the cluster `CLUSTER`."""
    with long_work() as progress:
        progress.begin("reading manifests")
        return read_paths(paths, cluster=CLUSTER, kinds=kinds)


def translate_read(
    read: ManifestRead, translator_flags: Sequence[str] = (), dialects: Sequence[Dialect] = DIALECTS
) -> OfflineTable:
    """Translate objects that were read.

    Raises:
        SettingsError: the flags or variables cannot be used.
    """
    settings = translator_settings(translator_flags)
    with long_work() as progress:
        progress.begin(f"translating {len(read.objects):,} objects")
        sealer = Sealer(CLUSTER, throwaway_recipients())
        made = (delta for one in read.objects if (delta := delta_of(one, sealer)))
        offline = translate_all(made, settings.translation, settings.boundaries, dialects)
    findings = [Finding(one.file, one.line, one.object, one.problem) for one in read.problems]
    findings += _located(offline, read.objects)
    findings += _expiring(offline, read.objects)
    return OfflineTable(
        translated=offline,
        findings=tuple(sorted(findings, key=lambda one: (one.file, one.line))),
        notes=tuple(sorted(_notes(offline, read.objects))),
        object_count=len(read.objects),
        manifests={(one.file, one.line): one.object for one in read.objects},
        files=len({one.file for one in read.objects} | {one.file for one in read.problems}),
    )


def translator_settings(translator_flags: Sequence[str] = ()) -> TranslatorSettings:
    """Return what decides which objects are in a table: by flags, environment and the TOML file.

    Raises:
        SettingsError: they cannot be used.
    """
    return load_settings(TranslatorSettings, translator_flags, program="headgate translator", summary="")


def _located(offline: Offline, objects: Sequence[FileObject]) -> list[Finding]:
    places = {one.ref: one for one in objects}
    return [
        Finding(places[ref].file, places[ref].line, object_name(places[ref]), problem)
        for ref, problems in offline.problems.items()
        for problem in problems
    ]


def _expiring(offline: Offline, objects: Sequence[FileObject]) -> list[Finding]:
    secrets = {(one.ref.namespace, one.ref.name): one for one in objects if one.kind == SECRET}
    found = []
    for certificate, problem in expiry_problems(offline.certificates, datetime.now(UTC)):
        one = secrets[certificate.provenance.namespace, certificate.provenance.name]
        found.append(Finding(one.file, one.line, object_name(one), problem))
    return found


def _notes(offline: Offline, objects: Sequence[FileObject]) -> list[Note]:
    return [
        Note(one.file, one.line, object_name(one), offline.foreign[one.ref])
        for one in objects
        if one.ref in offline.foreign
    ]
