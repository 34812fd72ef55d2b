"""Streams and the hosts of HTTP on one port: who has a server name that both have.

A stream goes before HTTP on its port, so that a server name is for the owner of the host of this name. Streams of
Traefik on entry points leave the names of hosts over TLS to these, as Traefik does, but for hosts of other namespaces
that came later: they would take the connections of a stream that was there.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from headgate.common.problems import Problem, Severity
from headgate.translator.assembly.claimants import Claimants
from headgate.translator.assembly.host_owners import HostOwners
from headgate.translator.assembly.streams import STREAM_CONFLICT, PortListeners, hosts_of_stream, keys_on_port
from headgate.translator.fragments.fragment import Fragment, StreamClaim, StreamPort
from headgate.translator.manifests.reading import shown


class StreamHosts:
    """What hosts have to say about the streams of a port, while these are awarded: it remembers which hosts there are.

    Args:
        claimants: who claims what.
        owners: of hosts.
        listeners: of entry points, and those that objects open.
    """

    def __init__(self, claimants: Claimants, owners: HostOwners, listeners: Iterable[PortListeners]) -> None:
        self._claimants = claimants
        self._hosts = claimants.of_host
        self._owners = owners
        self._listeners = tuple(listeners)
        self._found: dict[tuple[StreamPort, bool], Mapping[str, Sequence[str]]] = {}

    def _at(self, claim: StreamClaim) -> Mapping[str, Sequence[str]]:
        """Return the hosts that have such connections as a stream, each with its keys."""
        is_tls = claim.route.protocol == "tls"
        found = self._found.get((claim.port, is_tls))
        if found is None:
            found = keys_on_port(claim.port, self._hosts.used, self._listeners, is_tls=is_tls)
            self._found[claim.port, is_tls] = found
        return found

    def refuse(self, claim: StreamClaim, fragment: Fragment) -> Problem | None:
        """Say whether a stream route would take connections of a host that an older object of others has."""
        identity = fragment.identity
        for host in hosts_of_stream(claim, self._at(claim)):
            ownership = self._owners.of_host(host, [fragment])
            owner = ownership.owner
            if owner is not None and ownership.rank(identity) and owner.seniority < identity.seniority:
                why = "connections for it would go to this object instead"
                return ownership.refuse(identity, claim.field, host, why, Severity.ERROR)
        return None

    def leave(self, claim: StreamClaim, fragment: Fragment) -> tuple[StreamClaim | None, Problem | None]:
        """Return a claim without the server names that it leaves to hosts, None if none is left, and what is said."""
        if not claim.gives_way or not claim.port.port:
            return claim, None
        at = self._at(claim)
        hosts = {name for name in claim.route.server_names if self._yields(fragment, name, at.get(name, ()))}
        return self._without(claim, hosts) if hosts else (claim, None)

    def _yields(self, fragment: Fragment, host: str, keys: Collection[str]) -> bool:
        """Whether an object that has to do with a host on the port is of the stream's side, or was there first."""
        if not keys:
            return False
        identity, ownership = fragment.identity, self._owners.of_host(host, [fragment])
        users = self._claimants.fragments_of(dict.fromkeys(user for key in keys for user in self._hosts.of(key)))
        return any(
            ownership.rank(user.identity) == ownership.rank(identity) or user.identity.seniority < identity.seniority
            for user in users
        )

    def _without(self, claim: StreamClaim, hosts: Collection[str]) -> tuple[StreamClaim | None, Problem | None]:
        left = tuple(name for name in claim.route.server_names if name not in hosts)
        first = min(hosts)
        message = f"connections for {first} on port {claim.port.port} go to the routes of this host, as these have TLS"
        problem = Problem(
            severity=Severity.WARNING, reason=STREAM_CONFLICT, field=claim.field, value=shown(first), message=message
        )
        if not left:
            return None, problem
        return claim._replace(route=claim.route.model_copy(update={"server_names": left})), problem
