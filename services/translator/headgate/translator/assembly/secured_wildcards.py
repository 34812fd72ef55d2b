"""The wildcards with TLS: `RouteClaim.when_secured` of the hosts that they take may count for it."""

from collections.abc import Collection, Iterable

from headgate.common.resources import ObjectRef
from headgate.translator.assembly.claims import claimed_hosts
from headgate.translator.assembly.users import Users
from headgate.translator.fragments.fragment import Fragment


class SecuredWildcards:
    """Which objects have TLS for a wildcard, and which hosts are below it."""

    def __init__(self) -> None:
        """Begin with none."""
        self._below: dict[str, dict[str, None]] = {}
        self._securing: dict[str, dict[ObjectRef, None]] = {}

    def above(self, host: str) -> Collection[ObjectRef]:
        """Return the objects that have TLS for the wildcard which takes a host."""
        return self._securing.get(_wildcard_of(host), ())

    def replace(
        self, ref: ObjectRef, old: Fragment | None, new: Fragment | None, hosts: Iterable[str], users: Users[str]
    ) -> dict[str, None]:
        """Take an object's contribution in place of the one before; return the hosts that it makes a difference to.

        Args:
            ref: the object.
            old: what it contributed.
            new: what it contributes now.
            hosts: all that it has and had to do with.
            users: of hosts, as they are now.
        """
        for host in hosts:
            wildcard = _wildcard_of(host)
            below = self._below.get(wildcard)
            if wildcard and users.of(host):
                if below is None:
                    below = self._below[wildcard] = {}
                below[host] = None
            elif below is not None:
                below.pop(host, None)
        before, now = _wildcards(old), _wildcards(new)
        if not before and not now:
            return {}
        for wildcard in before:
            self._securing[wildcard].pop(ref, None)
        for wildcard in now:
            self._securing.setdefault(wildcard, {})[ref] = None
        return {host: None for wildcard in before ^ now for host in self._below.get(wildcard, {})}


def _wildcard_of(host: str) -> str:
    """Return the wildcard of one label that takes a host's name; empty for names of one label, and for wildcards."""
    _, _, domain = host.partition(".")
    return f"*.{domain}" if domain and host[0] != "*" else ""


def _wildcards(fragment: Fragment | None) -> frozenset[str]:
    """Return the wildcards for whose names an object has TLS."""
    if fragment is None or not fragment.secures_hosts:
        return frozenset()
    return frozenset(host for host in claimed_hosts(fragment) if host.startswith("*."))
