"""What is asked of clients for all names below a domain, and for which hosts it holds.

A certificate is chosen by the name alone, so what goes with it must not depend on which routes there are: hosts of
ApisixRoutes inherit it. It holds for hosts of its own namespace and for younger ones, so that no wildcard closes a host
that somebody else had before.
"""

from collections.abc import Iterator
from typing import NamedTuple

from headgate.common.problems import Problem, Severity
from headgate.common.table import TlsPolicy
from headgate.translator.assembly.boundaries import Boundaries
from headgate.translator.assembly.host_names import name_of
from headgate.translator.assembly.ownership import HOST_NOT_OWNED, tenant_of
from headgate.translator.fragments.fragment import Identity
from headgate.translator.manifests.reading import shown

ANY_DEPTH = "**."
_NAMED = 3
"""Hosts that a problem names."""


class WildcardTls(NamedTuple):
    """What an object asks for all names below a domain."""

    policy: TlsPolicy
    owner: Identity


class WildcardPolicies:
    """The policies of wildcards, and the hosts for which they do not hold."""

    def __init__(self, boundaries: Boundaries) -> None:
        self._boundaries = boundaries
        self._policies: dict[str, WildcardTls] = {}
        self._refused: dict[str, frozenset[str]] = {}
        """By host the wildcards that do not hold for it."""

    def __bool__(self) -> bool:
        return bool(self._policies)

    def replace(self, wildcard: str, tls: WildcardTls | None) -> bool:
        """Take what is asked for a wildcard, None for nothing; return whether that is a change."""
        if self._policies.get(wildcard) == tls:
            return False
        if tls is None:
            del self._policies[wildcard]
        else:
            self._policies[wildcard] = tls
        return True

    def inherit(self, host: str, owner: Identity | None) -> TlsPolicy | None:
        """Return what the longest wildcard that holds for a host asks."""
        refused: set[str] = set()
        inherited = None
        domain = name_of(host).removeprefix(ANY_DEPTH)
        while inherited is None and (domain := domain.partition(".")[2]):
            found = self._policies.get(ANY_DEPTH + domain)
            if found is not None and self._holds(found.owner, owner):
                inherited = found.policy
            elif found is not None:
                refused.add(ANY_DEPTH + domain)
        self._refused.pop(host, None)
        if refused:
            self._refused[host] = frozenset(refused)
        return inherited

    def forget(self, host: str) -> None:
        """Note that a host inherits nothing."""
        self._refused.pop(host, None)

    def refused(self, host: str) -> frozenset[str]:
        """Return the wildcards that do not hold for a host."""
        return self._refused.get(host, frozenset())

    def _holds(self, wildcard: Identity, host: Identity | None) -> bool:
        is_own = host is None or tenant_of(wildcard) == tenant_of(host) or self._boundaries.host_sharing == "any"
        return is_own or (host is not None and wildcard.seniority < host.seniority)

    def problems(self, wildcard: str, identity: Identity) -> Iterator[Problem]:
        """Yield what the author of a wildcard's policy has to know: for which hosts it does not hold."""
        found = self._policies.get(wildcard)
        hosts = sorted(host for host, several in self._refused.items() if wildcard in several) if found else []
        if found is None or found.owner.ref != identity.ref or not hosts:
            return
        more = f" and {len(hosts) - _NAMED} more" if len(hosts) > _NAMED else ""
        yield Problem(
            severity=Severity.WARNING,
            reason=HOST_NOT_OWNED,
            field="spec.client",
            value=shown(wildcard[1:]),
            message=f"no client certificate is asked for {', '.join(hosts[:_NAMED])}{more}: other namespaces own these "
            "hosts, and had them before this object; ask for it in their namespaces",
        )
