"""What ours says of the fixtures of Traefik's provider of custom resources."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from headgate.cli.offline.tables import translate_paths
from headgate.common.table import Route, StreamRoute, Upstream, VirtualHost

_OF_FILES = "InvalidName"
"""Of names with dots, which a Service of a cluster cannot have."""


class Outcome(NamedTuple):
    """What becomes of the routes of some manifests."""

    served: int
    """Routes of objects whose requests or connections go somewhere."""
    refused: int
    says: tuple[str, ...]
    """Of each problem kind and name of the object, reason and field."""
    messages: str


def outcome(folder: Path, fixtures: Iterable[str], flags: Sequence[str]) -> Outcome:
    """Translate fixtures of a folder with flags of the translator."""
    table = translate_paths([folder / each for each in fixtures], flags)
    reasons = {each.key: each.unavailable or "" for each in table.entries if isinstance(each, Upstream)}
    routes: list[Route | StreamRoute] = []
    for entry in table.entries:
        if isinstance(entry, VirtualHost):
            routes += entry.routes
        elif isinstance(entry, StreamRoute):
            routes.append(entry)
    served, refused = set(), set()
    for route in routes:
        origin = route.provenance
        named = origin.kind, origin.namespace, origin.name, origin.rule
        keys = [backend.upstream for backend in route.backends]
        is_refused = all(key and " refuses " in reasons.get(key, "") for key in keys) and bool(keys)
        (refused if is_refused else served).add(named)
    found = [each for each in table.findings if each.problem.reason != _OF_FILES]
    says = sorted({f"{each.object} {each.problem.reason} {each.problem.field}" for each in found})
    return Outcome(len(served), len(refused - served), tuple(says), " ".join(each.problem.message for each in found))
