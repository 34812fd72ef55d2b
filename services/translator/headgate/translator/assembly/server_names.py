"""Which certificate is presented for a server name: the oldest object's, and a host's owner goes first."""

from collections.abc import Iterable
from typing import NamedTuple

from headgate.common.problems import Problem, Severity
from headgate.common.resources import ObjectRef
from headgate.translator.assembly.namesakes import are_namesakes, by_namesake
from headgate.translator.assembly.ownership import HostOwnership
from headgate.translator.fragments.fragment import CertificateRef, Fragment, Identity, NameClaim
from headgate.translator.fragments.seniority import describe, seniority_of
from headgate.translator.manifests.reading import shown


class NameVerdict(NamedTuple):
    """The certificate of a server name, and what the losers hear."""

    certificate: CertificateRef | None
    lost: dict[ObjectRef, tuple[Problem, ...]]


class _Claim(NamedTuple):
    claim: NameClaim
    identity: Identity


def award_name(ownership: HostOwnership, fragments: Iterable[Fragment]) -> NameVerdict:
    """Decide which certificate is presented for a server name. Several claims of one Secret are no conflict.

    Args:
        ownership: of the host that has this name.
        fragments: of all objects that claim the name.
    """
    name = ownership.host
    users = sorted(fragments, key=lambda fragment: fragment.identity.seniority)
    claims = [_Claim(claim, user.identity) for user in users for claim in user.names if claim.name == name]
    entitled = {user.identity.ref for user in may_present(ownership, users)}
    winner = next((each for each in claims if each.identity.ref in entitled), None)
    lost: dict[ObjectRef, list[Problem]] = {}
    for each in claims:
        if winner is None or each.claim.certificate != winner.claim.certificate:
            is_refused = winner is None or each.identity.ref not in entitled
            problem = _refused(ownership, each, winner) if is_refused else _lost_name(each, winner)  # type: ignore[arg-type]
            lost.setdefault(each.identity.ref, []).append(problem)
    certificate = winner.claim.certificate if winner is not None else None
    return NameVerdict(certificate, {ref: tuple(problems) for ref, problems in lost.items()})


def may_present(ownership: HostOwnership, users: Iterable[Fragment]) -> list[Fragment]:
    """Return those of the users of a server name whose certificates may be presented for it.

    Beside the owner of the host these are objects that claimed the name before the owner did, if it has no certificate.
    """
    users, owner = list(users), ownership.owner
    own = [user for user in users if not ownership.rank(user.identity)]
    if own or owner is None:
        return own
    return [user for user in users if user.identity.seniority < owner.seniority]


def _refused(ownership: HostOwnership, lost: _Claim, winner: _Claim | None) -> Problem:
    if winner is not None and _is_same(lost, winner):
        return _by_namesake(lost, winner)
    why = "certificates for it are for its owner to present"
    severity = Severity.WARNING if winner is not None else Severity.ERROR
    return ownership.refuse(lost.identity, lost.claim.field, lost.claim.name, why, severity)


def _is_same(lost: _Claim, winner: _Claim) -> bool:
    is_one_name = lost.claim.certificate[1:] == winner.claim.certificate[1:]
    return is_one_name and are_namesakes(winner.identity, lost.identity)


def _by_namesake(lost: _Claim, winner: _Claim) -> Problem:
    what = f"the certificate of {lost.claim.name}"
    return by_namesake(lost.claim.field, lost.claim.name, what, winner.identity, lost.identity)


def _lost_name(lost: _Claim, winner: _Claim) -> Problem:
    if _is_same(lost, winner):
        return _by_namesake(lost, winner)
    owner, certificate = winner.identity, winner.claim.certificate
    why = "whose entry goes first" if owner.ref == lost.identity.ref else seniority_of(owner, lost.identity)
    return Problem(
        severity=Severity.WARNING,
        reason="CertificateConflict",
        field=lost.claim.field,
        value=shown(lost.claim.name),
        message=f"{lost.claim.name} gets the certificate of Secret {certificate.namespace}/{certificate.secret} by "
        f"{describe(owner)}, {why}",
    )
