"""Which route of a table takes a request, asked of the compiled table and of what explains it."""

from collections.abc import Iterable

from fakes.gateway.requests import PLAIN, AskedRequest
from fakes.gateway.table import compiled, route
from headgate.common.table import Rank, Route, TableEntry
from headgate.gateway.proxy.seam import NEEDS_BODY
from headgate.gateway.table.compiled_table import CompiledTable
from headgate.gateway.table.explaining.explain import explain
from headgate.gateway.table.explaining.explanation import Explanation
from headgate.gateway.table.listener_ports import OWN_HTTP, ListenerPort
from headgate.gateway.table.view import EntryView


def table_of(*entries: TableEntry) -> CompiledTable:
    """Return the compiled table of some entries."""
    table = compiled(entries).table
    assert table is not None
    return table


def winner(
    table: CompiledTable, asked_host: str, path: str = "/", port: ListenerPort = OWN_HTTP, asked: AskedRequest = PLAIN
) -> str | None:
    """Return the name of the route that takes a request; None if none does, or if it has to be asked with its body."""
    router = table.router(port)
    found = router.match(asked_host.encode(), path.encode(), asked) if router is not None else None
    return found if found is None or found is NEEDS_BODY else found.name


def explained(entries: Iterable[TableEntry], url_host: str, path: str = "/", scheme: str = "http") -> Explanation:
    """Return what is explained of a request on a table of some entries."""
    return explain(EntryView(entries), "GET", url_host, path, scheme=scheme)


def ranked(path: str, priority: int, name: str, **fields: object) -> Route:
    """Return a route with a priority."""
    return route(path, name=name).model_copy(update={"rank": Rank(priority=priority), **fields})
