"""What a fragment claims and uses, as keys: hosts, spots of hosts, server names, ports, upstreams, certificates."""

from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

from headgate.common.table import EntryKind, TableEntry, entry_key, entry_kind
from headgate.translator.assembly.host_names import name_of
from headgate.translator.assembly.wildcard_tls import ANY_DEPTH
from headgate.translator.fragments.fragment import CertificateRef, Fragment, StreamPort
from headgate.translator.fragments.upstream_refs import UpstreamRef


class HostPath(NamedTuple):
    """What of a host objects can contend for."""

    host: str
    path: str
    """Empty for its TLS."""


class ChangedEntry(NamedTuple):
    """An entry that was put or discarded."""

    kind: EntryKind
    key: str


def server_name(host: str) -> str:
    """Return the name in certificates that is about a host, whatever listeners it is on."""
    name = name_of(host)
    return name[1:] if name.startswith(ANY_DEPTH) else name


def hosts_of_name(name: str) -> tuple[str, ...]:
    """Return the hosts that a name in certificates is about."""
    return (name, f"*{name}") if name.startswith("*.") else (name,)


def claimed_hosts(fragment: Fragment | None) -> dict[str, None]:
    """Return the hosts that an object has to do with."""
    if fragment is None:
        return {}
    hosts = dict.fromkeys(fragment.hosts)
    for claims in (fragment.routes, fragment.canaries):
        for claim in claims:
            hosts[claim.host] = None
    return hosts


def claimed_spots(fragment: Fragment | None) -> dict[HostPath, None]:
    """Return what an object contends for at each host."""
    if fragment is None:
        return {}
    spots = {HostPath(claim.host, claim.route.path.value): None for claim in fragment.routes if not claim.is_rest}
    for canary in fragment.canaries:
        spots[HostPath(canary.host, canary.path.value)] = None
    for tls in fragment.tls:
        spots[HostPath(tls.host, "")] = None
    return spots


def trim(fragment: Fragment, spots: Collection[HostPath]) -> Fragment:
    """Return a fragment that claims nothing but these spots."""
    return replace(
        fragment,
        routes=tuple(claim for claim in fragment.routes if HostPath(claim.host, claim.route.path.value) in spots),
        canaries=tuple(claim for claim in fragment.canaries if HostPath(claim.host, claim.path.value) in spots),
        tls=tuple(claim for claim in fragment.tls if HostPath(claim.host, "") in spots),
    )


def claimed_names(fragment: Fragment | None) -> dict[str, None]:
    """Return the server names that an object has certificates for."""
    return {} if fragment is None else {claim.name: None for claim in fragment.names}


def claimed_ports(fragment: Fragment | None) -> dict[StreamPort, None]:
    """Return the ports that an object wants."""
    return {} if fragment is None else {claim.port: None for claim in fragment.streams}


def claimed_entries(fragment: Fragment | None) -> dict[ChangedEntry, TableEntry]:
    """Return the entries that no other object can claim."""
    if fragment is None:
        return {}
    return {ChangedEntry(entry_kind(entry), entry_key(entry)): entry for entry in fragment.entries}


def used_upstreams(fragment: Fragment | None) -> dict[UpstreamRef, None]:
    """Return the upstreams that an object refers to."""
    return {} if fragment is None else {use.upstream: None for use in fragment.backends}


def used_certificates(fragment: Fragment | None) -> dict[CertificateRef, None]:
    """Return the certificates that an object refers to."""
    if fragment is None:
        return {}
    return {claim.certificate: None for claim in fragment.names} | dict.fromkeys(fragment.certificates)
