"""Who owns hosts, by all who claim them: a host may have several virtual hosts, on several listeners, and one owner."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from headgate.translator.assembly.boundaries import Boundaries
from headgate.translator.assembly.claimants import Claimants
from headgate.translator.assembly.claims import hosts_of_name
from headgate.translator.assembly.conflicts import Elsewhere
from headgate.translator.assembly.host_names import HostNames, is_on_listeners
from headgate.translator.assembly.ownership import HostOwnership, Sharing, claims_host, find_owner
from headgate.translator.fragments.fragment import Fragment, Identity


class HostOwners:
    """The owners of hosts.

    Args:
        claimants: who claims what.
        sharing: upstreams that several clusters have.
        boundaries: how far namespaces reach.
    """

    def __init__(self, claimants: Claimants, sharing: Sharing, boundaries: Boundaries) -> None:
        self._claimants = claimants
        self._sharing = sharing
        self._boundaries = boundaries
        self._names = HostNames()

    def note(self, hosts: Iterable[str]) -> None:
        """Note whether objects have to do with some hosts."""
        for host in filter(is_on_listeners, hosts):
            self._names.note(host, is_used=any(True for _ in self._claimants.of_host.of(host)))

    def elsewhere_of(self, hosts: Iterable[str]) -> Iterator[str]:
        """Yield the keys of the same hosts on other listeners."""
        return self._names.others_of(hosts)

    def elsewhere(self, host: str) -> Elsewhere:
        """Return the same host on other listeners, and who have to do with it there."""
        others = self._names.others(host)
        return Elsewhere(others, tuple(self._fragments_at(others))) if others else Elsewhere()

    def _everywhere(self, host: str) -> tuple[str, ...]:
        return (host, *self._names.others(host))

    def _fragments_at(self, hosts: Iterable[str]) -> Iterator[Fragment]:
        users = dict.fromkeys(user for host in hosts for user in self._claimants.of_host.of(host))
        return self._claimants.fragments_of(users)

    def of_host(self, host: str, users: Iterable[Fragment], proposed: Fragment | None = None) -> HostOwnership:
        """Return who has which rights at a host, for `users` too, and if an object contributed what is proposed."""
        everywhere = self._everywhere(host)
        present = {each.identity.ref: each for each in self._fragments_at(everywhere)}
        present |= {user.identity.ref: user for user in users}
        if proposed is not None:
            present[proposed.identity.ref] = proposed
        if len({(ref.cluster, ref.namespace) for ref in present}) < 2:
            return HostOwnership(host, None)
        ordered = sorted(present.values(), key=lambda each: each.identity.seniority)
        return find_owner(host, ordered, self._sharing, self._boundaries, everywhere[1:])

    def of_name(self, name: str, users: Iterable[Fragment], proposed: Fragment | None = None) -> HostOwnership:
        """Return who owns a server name: of a wildcard the older one of the two hosts that it is about."""
        users = list(users)
        found = [self.of_host(host, users, proposed) for host in hosts_of_name(name)]
        oldest = min(found, key=lambda each: (each.owner is None, each.owner and each.owner.seniority))
        return replace(oldest, host=name)

    def is_shared(self, host: str, identity: Identity) -> bool:
        """Tell whether other namespaces than an object's have to do with a host."""
        tenant = identity.ref.cluster, identity.ref.namespace
        users = (user for each in self._everywhere(host) for user in self._claimants.of_host.of(each))
        return any((user.cluster, user.namespace) != tenant for user in users)

    def oldest_claimant(self, host: str) -> Identity | None:
        """Return the oldest object that claims a host; None where none does."""
        hosts = self._everywhere(host)
        users = self._fragments_at(hosts)
        claimants = (user.identity for user in users if any(claims_host(user, each) for each in hosts))
        return min(claimants, key=lambda identity: identity.seniority, default=None)
