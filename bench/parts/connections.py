"""Many connections at rest: are they held, and what does each cost in memory?

Keep-alive connections that were used once, through every proxy; and WebSockets through Headgate, each a connection on
both sides. After the rest each is used again: what is not answered was not held.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.errors import BenchError
from bench.parts.comparison import LOAD_CORE, ComparisonResult, need_programs, running
from bench.peers import Peer, Running
from bench.peers.haproxy import CONNECTIONS as HAPROXY_CONNECTIONS
from bench.recording.idle_clients import IdleClients
from bench.reporting.promise import MEASURED, Promise
from bench.reporting.tables import table
from bench.servers.origin import start_origin
from bench.setup.processes import Process, free_ports, rss_mb, wait_for_port
from bench.setup.tools import IMPORTABLE
from bench.setup.workload import Extra, Workload, host_names, write_certificate

KINDS = {"http": "idle keep-alive connections", "websocket": "WebSockets"}


@dataclass(frozen=True)
class ConnectionsPlan:
    """What to measure."""

    idle: int
    websockets: int
    hold_s: float
    """How long they rest."""


@dataclass(frozen=True)
class HeldRow:
    """One proxy with one kind of connections."""

    proxy: str
    kind: str
    wanted: int
    opened: int
    lost: int
    answered: int
    before_mb: float
    held_mb: float

    @property
    def kilobytes_each(self) -> float:
        """Memory that the proxy's processes grew by for each connection, in KB of 10^3 bytes."""
        return (self.held_mb - self.before_mb) * 1e3 / max(1, self.opened)


@dataclass
class ConnectionsResult:
    """All rows; see `ComparisonResult` for the rest."""

    hold_s: float
    held_rows: list[HeldRow] = field(default_factory=list)
    commands: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def promises(self) -> Iterator[Promise]:
        """Headgate holds them all."""
        for row in self.held_rows:
            if row.proxy == MEASURED:
                what = f"{row.wanted:,} {KINDS[row.kind]} held, {row.kilobytes_each:.1f} KB each"
                yield Promise(what, f"{row.wanted:,}", f"{row.answered:,}", row.answered == row.wanted)

    def markdown(self) -> str:
        """The part of the report."""
        heads = ("", "opened", "closed at rest", "answered again", "MB before", "MB held", "KB each")
        rows = [
            [
                *(f"{row.proxy}, {KINDS[row.kind]}", f"{row.opened:,}", f"{row.lost:,}", f"{row.answered:,}"),
                *(f"{row.before_mb:.0f}", f"{row.held_mb:.0f}", f"{row.kilobytes_each:.1f}"),
            ]
            for row in self.held_rows
        ]
        parts = [f"## Connections at rest for {self.hold_s:g} s", table(heads, rows)]
        parts += [f"`{command}`" for command in self.commands.values()]
        return "\n\n".join([*parts, *(f"{name} was left out: {why}." for name, why in self.left_out.items())])


def measure_connections(peers: Sequence[Peer], plan: ConnectionsPlan, folder: Path) -> ConnectionsResult:
    """Start everything, hold the connections through one proxy after the other.

    Raises:
        BenchError: a tool is missing or an origin does not come up.
    """
    need_programs(("nginx", "nginx-light"), ("taskset", "util-linux"))
    folder.mkdir(parents=True, exist_ok=True)
    *ports, echo_port = free_ports(2)
    echo = Extra("echo", echo_port)
    workload = Workload(host_names(1), tuple(ports), *write_certificate(folder), extras=(echo,))
    started, result = ComparisonResult(), ConnectionsResult(plan.hold_s)
    able = [peer for peer in peers if peer.name != "HAProxy" or plan.idle < HAPROXY_CONNECTIONS]
    if len(able) < len(peers):
        result.left_out["HAProxy"] = f"it is set up for {HAPROXY_CONNECTIONS:,} connections"
    argv = [sys.executable, "-m", "bench.servers.echo_origin", str(echo_port)]
    with (
        start_origin(folder / "origin", ports, core=LOAD_CORE),
        Process("echo-origin", argv, folder, core=LOAD_CORE, env=IMPORTABLE) as origin,
        running(able, workload, folder, started) as proxies,
    ):
        wait_for_port(echo_port, origin)
        result.versions, result.failures = started.versions, list(started.failures)
        result.left_out |= started.left_out
        for proxy in proxies:
            if proxy.name == MEASURED:  # the fewer first: those that follow would be given their memory
                _hold(proxy, echo.host, "websocket", plan.websockets, folder, result)
            _hold(proxy, workload.hosts[0], "http", plan.idle, folder, result)
    return result


def _hold(proxy: Running, host: str, kind: str, count: int, folder: Path, result: ConnectionsResult) -> None:
    """Hold so many connections through a proxy and add the row."""
    result.commands[kind] = f"python -m bench.recording.idle_clients PORT {host} {kind} {count} FILE"
    before_mb = rss_mb(proxy.serving())
    clients = IdleClients(folder, proxy.http_port, host, kind=kind, count=count, core=LOAD_CORE)
    try:
        with clients:
            time.sleep(result.hold_s)
            held_mb = rss_mb(proxy.serving())
    except BenchError as error:
        result.failures.append(f"{proxy.name}, {KINDS[kind]}: {error}")
        return
    row = HeldRow(proxy.name, kind, count, **clients.figures, before_mb=before_mb, held_mb=held_mb)
    result.held_rows.append(row)
    if row.answered < count:
        why = f"{row.answered:,} of {count:,} {KINDS[kind]} held: {'; '.join(clients.reasons)}"
        result.failures.append(f"{proxy.name}, {why}")
