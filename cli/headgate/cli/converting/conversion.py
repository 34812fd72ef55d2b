"""Objects in, manifests of Gateway API out, with what differs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from headgate.cli.converting.comparing import compare
from headgate.cli.converting.documents import Document, as_yaml
from headgate.cli.converting.gateways import GatewayName, Gateways
from headgate.cli.converting.http_routes import HttpRoutes
from headgate.cli.converting.policies import traffic_policies
from headgate.cli.converting.sources import Table, read_table
from headgate.cli.converting.streams import convert_streams
from headgate.cli.offline.findings import Finding
from headgate.cli.offline.tables import CLUSTER, OfflineTable, read_all, translate_read
from headgate.common.resources import GATEWAY_KINDS
from headgate.watcher.sources.manifests.files import FileObject, ManifestRead
from headgate.watcher.sources.manifests.objects import Versioner
from headgate.watcher.sources.manifests.reader import read_manifest

_WRITTEN: Final = "converted"
"""Stands for the file of what is written."""
_GATEWAY_API: Final = frozenset(kind.kind for kind in GATEWAY_KINDS)


class Conversion(NamedTuple):
    """What was written."""

    documents: tuple[Document, ...]
    findings: tuple[Finding, ...]
    """What is wrong with the objects that were read."""
    objects: int
    """Those that were converted."""

    @property
    def remarks(self) -> int:
        """How many things differ."""
        return sum(not text.startswith("from ") for one in self.documents for text in one.remarks)


def convert_paths(paths: Sequence[Path], flags: Sequence[str], gateway: GatewayName) -> Conversion:
    """Convert the objects of files and folders.

    Args:
        paths: files and folders of manifests, Services and Secrets among them.
        flags: which objects are ours, as `headgate translator` takes them.
        gateway: that is written.

    Raises:
        SettingsError: the flags or variables cannot be used.
    """
    read = read_all(paths)
    offline = translate_read(read, flags)
    before = _table(offline, read.objects)
    gateways = Gateways(gateway, before)
    routes = HttpRoutes(before, gateways)
    documents: list[Document] = []
    for source in before.sources:
        documents += routes.convert(source)
        documents += convert_streams(source, before, gateways)
    manifests = [one.object for one in read.objects]
    documents += traffic_policies(routes.rules, before, manifests)
    routes.attach()
    documents = [*gateways.documents(), *documents] if documents or gateways.remarks else []
    _compare(documents, before, routes, read, flags)
    return Conversion(tuple(documents), offline.findings, len(before.sources))


def _table(offline: OfflineTable, objects: Sequence[FileObject]) -> Table:
    table = read_table(offline.entries, (one.object for one in objects))
    ours = (one for one in table.sources if one.object.kind not in _GATEWAY_API)
    return table._replace(sources=tuple(ours))


def _compare(
    documents: Sequence[Document], before: Table, routes: HttpRoutes, read: ManifestRead, flags: Sequence[str]
) -> None:
    """Translate what was written in the place of what was read, and note the differences."""
    converted = {tuple(source.object) for source in before.sources}
    kept = [one for one in read.objects if (one.ref.namespace, one.kind.kind, one.ref.name) not in converted]
    written = read_manifest(as_yaml(documents).encode(), _WRITTEN, Versioner(CLUSTER, bytes(32)))
    offline = translate_read(
        ManifestRead((*kept, *written.objects)), [*flags, f"--class-names={routes.gateways.name.class_name}"]
    )
    after = read_table(offline.entries, (one.object for one in kept))
    compare(before, after, routes)
    places = {f"{kind} {namespace}/{name}": one for one in documents for kind, namespace, name in [one.place]}
    for finding in offline.findings:
        if finding.file == _WRITTEN and finding.is_error and finding.object in places:
            places[finding.object].remark(str(finding.problem))
