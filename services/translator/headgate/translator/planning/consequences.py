"""What a difference of two tables means for who serves, and who is let in."""

from collections.abc import Iterable, Iterator
from typing import Final

from headgate.common.table import Provenance, Route, TableEntry, VirtualHost
from headgate.translator.objects.plugin_uses import may_guard

_MAX_TOLD: Final = 20
_Place = tuple[str, str, str, str]
"""Host, path with its type, and the conditions of a route."""


def consequences(before: Iterable[TableEntry], after: Iterable[TableEntry]) -> Iterator[str]:
    """Yield a line for each route that another namespace takes over, and for each that lets more requests in.

    Args:
        before: entries; what is equal in both may be left out.
        after: entries.
    """
    was = _routes(before)
    found = [
        line for place, route in _routes(after).items() if place in was for line in _told(place, was[place], route)
    ]
    yield from found[:_MAX_TOLD]
    if len(found) > _MAX_TOLD:
        yield f"and {len(found) - _MAX_TOLD} more routes that go to other namespaces, or lose what keeps requests out"


def _routes(entries: Iterable[TableEntry]) -> dict[_Place, Route]:
    found: dict[_Place, Route] = {}
    for entry in entries:
        if isinstance(entry, VirtualHost):
            for route in entry.routes:
                when = route.when.model_dump_json() if route.when is not None else ""
                found.setdefault((entry.key, route.path.type.value, route.path.value, when), route)
    return found


def _told(place: _Place, was: Route, now: Route) -> Iterator[str]:
    host, kind, path, when = place
    where = f"{host} {path} {kind}{', under conditions,' if when else ''}"
    if was.provenance is not None and now.provenance is not None and was.provenance.owner != now.provenance.owner:
        has_clusters = was.provenance.cluster != now.provenance.cluster
        before, after = (_owned(one, has_clusters=has_clusters) for one in (was.provenance, now.provenance))
        yield f"{where} goes from {before} to {after}"
    kept = {plugin.name for plugin in now.plugins}
    lost = [plugin.name for plugin in was.plugins if plugin.name not in kept and may_guard(plugin.name)]
    if lost:
        yield f"{where} loses {', '.join(lost)}, which may keep requests out"


def _owned(one: Provenance, *, has_clusters: bool) -> str:
    return f"{one} of cluster {one.cluster}" if has_clusters else str(one)
