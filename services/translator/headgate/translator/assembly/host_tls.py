"""Which TLS policy a host has when several objects ask for one.

The oldest object of the host's owner decides, and the others hear it. Objects that have to agree decide together: if
they differ, and none of them asks for client certificates, none of their policies holds, which is Traefik's rule for
routers of one host with different TLSOptions. A difference about client certificates never opens a host.
"""

from collections.abc import Sequence
from typing import NamedTuple

from headgate.common.problems import Problem, Severity
from headgate.common.resources import ObjectRef
from headgate.common.table import TlsPolicy
from headgate.translator.assembly.ownership import HostOwnership, Tenant, name_host, tenant_of
from headgate.translator.fragments.fragment import Fragment, Identity, TlsClaim
from headgate.translator.fragments.seniority import describe, seniority_of
from headgate.translator.manifests.reading import shown


class AwardedTls(NamedTuple):
    """The policy of a host."""

    policy: TlsPolicy
    owner: Identity
    """The object that asks for it."""


class Unprotected(NamedTuple):
    """Whose requests are refused, as they ask for client certificates that the host does not ask for."""

    objects: set[ObjectRef]
    guests: set[Tenant]

    def has(self, identity: Identity) -> bool:
        """Tell whether requests of an object are refused."""
        return identity.ref in self.objects or (bool(self.guests) and tenant_of(identity) in self.guests)


class _Claimed(NamedTuple):
    claim: TlsClaim
    policy: TlsPolicy
    identity: Identity


_ALL_PROTECTED = Unprotected(set(), set())


def award_tls(
    ownership: HostOwnership, users: Sequence[Fragment], is_owned: bool, lost: dict[ObjectRef, list[Problem]]
) -> tuple[AwardedTls | None, Unprotected]:
    """Return the policy of the oldest object among the owner's, and whose wish for client certificates is not met.

    Args:
        ownership: of the host.
        users: all who have to do with it, the oldest first.
        is_owned: whether an object has the host as its own, and not as an alias.
        lost: gets what those hear whose policy does not hold.
    """
    host = ownership.host
    made = [
        (claim, user.identity)
        for user in users
        for claim in user.tls
        if claim.host == host and not (claim.is_alias and is_owned)
    ]
    if not made:
        return None, _ALL_PROTECTED
    is_at_odds = _differ([claim for claim, identity in made if not ownership.rank(identity)])
    claims: list[_Claimed] = []
    for claim, identity in made:
        if claim.policy is None:
            continue
        if is_at_odds and claim.must_agree and not ownership.rank(identity):
            lost.setdefault(identity.ref, []).append(_at_odds(host, claim))
        else:
            claims.append(_Claimed(claim, claim.policy, identity))
    own = sorted((one for one in claims if not ownership.rank(one.identity)), key=lambda one: one.claim.is_default)
    winner = own[0] if own else None
    unprotected = Unprotected(set(), set())
    for one in claims:
        if not one.claim.is_default and (winner is None or one.policy != winner.policy):
            lost.setdefault(one.identity.ref, []).append(_lost(ownership, one, winner, unprotected))
    return AwardedTls(winner.policy, winner.identity) if winner is not None else None, unprotected


def _differ(claims: Sequence[TlsClaim]) -> bool:
    """Whether objects that have to agree do not; not where one of them asks for client certificates."""
    said = {claim.policy for claim in claims if claim.must_agree}
    return len(said) > 1 and all(policy is None or policy.client_auth is None for policy in said)


def _lost(ownership: HostOwnership, one: _Claimed, winner: _Claimed | None, unprotected: Unprotected) -> Problem:
    wished = one.policy.client_auth
    is_open = wished is not None and (winner is None or wished != winner.policy.client_auth)
    is_guest = ownership.rank(one.identity) > 0
    if is_open and is_guest:
        unprotected.guests.add(tenant_of(one.identity))
    elif is_open:
        unprotected.objects.add(one.identity.ref)
    if is_guest or winner is None:
        return _refused_tls(ownership, one.claim, one.identity, is_open)
    return _lost_tls(ownership.host, one.claim, one.identity, winner.identity, is_open)


def _at_odds(host: str, claim: TlsClaim) -> Problem:
    message = f"objects that serve {name_host(host)} ask for different TLS, so that it has the TLS of all other hosts"
    return Problem(
        severity=Severity.WARNING, reason="TlsConflict", field=claim.field, value=shown(host), message=message
    )


def _refused_tls(ownership: HostOwnership, claim: TlsClaim, loser: Identity, is_open: bool) -> Problem:
    why = "TLS of it is for its owner to set"
    if is_open:
        why += ", and until then requests for routes of this namespace at the host are refused"
    severity = Severity.ERROR if is_open else Severity.WARNING
    return ownership.refuse(loser, claim.field, ownership.host, why, severity)


def _lost_tls(host: str, claim: TlsClaim, loser: Identity, owner: Identity, is_open: bool) -> Problem:
    consequence = "; until both agree on client certificates the requests of this object are refused" if is_open else ""
    return Problem(
        severity=Severity.ERROR if is_open else Severity.WARNING,
        reason="TlsConflict",
        field=claim.field,
        value=shown(host),
        message=f"TLS of {name_host(host)} is set by {describe(owner)}, {seniority_of(owner, loser)}{consequence}",
    )
