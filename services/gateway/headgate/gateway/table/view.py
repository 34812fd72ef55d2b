"""A table as it can be asked: by host, by upstream key, entry by entry.

Two sources: a list of entries (`headgate explain` on files) and a gateway's compiled chunks.
"""

from collections.abc import Iterable, Iterator
from typing import Protocol

from headgate.common.table import Consumer, StreamRoute, Upstream, VirtualHost
from headgate.gateway.table.compiler import TableCompiler


class TableView(Protocol):
    """What explaining needs of a table."""

    @property
    def version_label(self) -> str:
        """`epoch.revision`; empty for a table that was never published."""

    def virtual_host(self, host: str) -> VirtualHost | None:
        """Return a virtual host by its name: `foo.com`, `*.foo.com` or `*`."""

    def upstream(self, key: str) -> Upstream | None:
        """Return an upstream by key."""

    def virtual_hosts(self) -> Iterator[VirtualHost]:
        """Yield all virtual hosts."""

    def stream_routes(self) -> Iterator[StreamRoute]:
        """Yield all stream routes."""

    def consumers(self) -> Iterator[Consumer]:
        """Yield all consumers."""


class EntryView:
    """A view of entries at hand."""

    def __init__(self, entries: Iterable[object], version_label: str = "") -> None:
        entries = list(entries)
        self.version_label = version_label
        self._hosts = {entry.host: entry for entry in entries if isinstance(entry, VirtualHost)}
        self._streams = {entry.key: entry for entry in entries if isinstance(entry, StreamRoute)}
        self._upstreams = {entry.key: entry for entry in entries if isinstance(entry, Upstream)}
        self._consumers = {entry.key: entry for entry in entries if isinstance(entry, Consumer)}

    def virtual_host(self, host: str) -> VirtualHost | None:
        """Return a virtual host by name."""
        return self._hosts.get(host)

    def upstream(self, key: str) -> Upstream | None:
        """Return an upstream by key."""
        return self._upstreams.get(key)

    def virtual_hosts(self) -> Iterator[VirtualHost]:
        """Yield all virtual hosts, sorted."""
        return (self._hosts[host] for host in sorted(self._hosts))

    def stream_routes(self) -> Iterator[StreamRoute]:
        """Yield all stream routes, sorted."""
        return (self._streams[key] for key in sorted(self._streams))

    def consumers(self) -> Iterator[Consumer]:
        """Yield all consumers, sorted."""
        return (self._consumers[key] for key in sorted(self._consumers))


class CompilerView:
    """A view of what a gateway serves; decodes the chunks that an answer needs."""

    def __init__(self, compiler: TableCompiler) -> None:
        self._compiler = compiler

    @property
    def version_label(self) -> str:
        """Version of the current table; empty before the first."""
        table = self._compiler.table
        return "" if table is None else table.version_label

    def virtual_host(self, host: str) -> VirtualHost | None:
        """Return a virtual host by name."""
        return self._compiler.hosts.entry(host)

    def upstream(self, key: str) -> Upstream | None:
        """Return an upstream by key."""
        return self._compiler.upstreams.entry(key)

    def virtual_hosts(self) -> Iterator[VirtualHost]:
        """Yield all virtual hosts in no particular order."""
        return self._compiler.hosts.entries()

    def stream_routes(self) -> Iterator[StreamRoute]:
        """Yield all stream routes in no particular order."""
        return self._compiler.streams.entries()

    def consumers(self) -> Iterator[Consumer]:
        """Yield all consumers in no particular order."""
        return self._compiler.consumers.entries()
