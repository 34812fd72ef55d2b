"""Certificates that are ordered by ACME: which objects want them, what has come, and what proves that names are ours.

An object's fragment refers to the certificate for a set of names, whether it is there or not. So all objects that want
the same names share one, and what is wanted is what fragments refer to.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import Final

from headgate.common.acme import ACME_CLUSTER, AccountState, CertificateState, IssuedCertificate
from headgate.common.problems import Problem, Severity
from headgate.common.resources import ACME_ACCOUNT, ACME_CERTIFICATE
from headgate.common.table import Certificate, Challenge, Provenance, challenge_name
from headgate.translator.fragments.fragment import CertificateRef, NameClaim
from headgate.translator.manifests.specs import refuse, warn
from headgate.translator.world.graph import Level, Lookups, Rule
from headgate.translator.world.world import EVERY, StoredKind

MAX_NAMES: Final = 100
"""Of one certificate: Let's Encrypt takes no more."""
_NAME = re.compile(r"(\*\.)?([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\.)+[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_DIGEST: Final = 12
ORDERED_CERTIFICATES: StoredKind[CertificateState | None] = StoredKind(
    ACME_CERTIFICATE, CertificateState.read, indexes=(EVERY,)
)
ACCOUNTS: StoredKind[AccountState | None] = StoredKind(ACME_ACCOUNT, AccountState.read)


def claim_ordered(
    resolver: str, names: Iterable[str], field: str, lookups: Lookups, problems: list[Problem]
) -> tuple[NameClaim, ...]:
    """Return the server names of a certificate that is ordered; none if it cannot be, which `problems` say.

    Args:
        resolver: as it is written; `true` is the only one, or the one called `default`.
        names: that the certificate is for. Those that no authority certifies by ACME, such as patterns, are left out.
        field: where the resolver is written.
        lookups: where the certificate is found.
        problems: gets what is wrong, and while there is no certificate, why.
    """
    known = lookups.settings.acme
    resolver = known.default if resolver == "true" else resolver
    if resolver not in known.resolvers:
        there = ", ".join(sorted(known.resolvers)) or "none: set HEADGATE_ACME_EMAIL for the translator"
        message = f"no resolver of certificates has this name; there is {there}"
        problems.append(_remark("ResolverNotFound", field, message, resolver))
        return ()
    wanted = tuple(sorted({name.lower().rstrip(".") for name in names}))
    usable = tuple(name for name in wanted if _NAME.fullmatch(name) and not re.fullmatch(r"[0-9.]+", name))
    if left_out := [name for name in wanted if name not in usable]:
        message = f"no certificate can be ordered for {', '.join(left_out)[:200]}"
        problems.append(warn("NameNotOrdered", field, message, resolver))
    if known.resolvers[resolver] != "dns-01" and any(name.startswith("*.") for name in usable):
        problems.append(_remark("WildcardNeedsDns", field, "names with * are ordered by dns-01 alone", resolver))
        return ()
    if len(usable) > MAX_NAMES:
        problems.append(_remark("TooManyNames", field, f"{len(usable)} names, at most {MAX_NAMES}", resolver))
        return ()
    if not usable or lookups.is_assumed:
        return ()
    ref = ordered_ref(known.table, resolver, usable)
    state = lookups.elsewhere(ACME_CLUSTER).get(ORDERED_CERTIFICATES, ref.namespace, ref.secret)
    problems.extend(_standing(state, field, resolver))
    return tuple(NameClaim(name, ref, field) for name in usable)


def ordered_ref(table: str, resolver: str, names: tuple[str, ...]) -> CertificateRef:
    """Return the certificate for a set of names, which are sorted."""
    digest = hashlib.sha256("\n".join((resolver, *names)).encode()).hexdigest()[:_DIGEST]
    return CertificateRef(ACME_CLUSTER, table, f"{names[0].removeprefix('*.')}-{digest}", resolver, names)


def _standing(state: CertificateState | None, field: str, resolver: str) -> Iterator[Problem]:
    failure = state.failure if state is not None else None
    has_one = state is not None and state.certificate is not None
    serves = "the one before is presented meanwhile" if has_one else "the default certificate is presented meanwhile"
    if failure is not None:
        message = f"{failure.reason}; tried again after {failure.retry_at:%Y-%m-%d %H:%M:%S} UTC; {serves}"
        yield warn("CertificateFailed", field, message, resolver)
    elif not has_one:
        yield warn("CertificatePending", field, f"a certificate is ordered; {serves}", resolver)


def _remark(reason: str, field: str, message: str, value: str) -> Problem:
    """Return a problem that leaves the object's routes in force, with the default certificate."""
    found = refuse(reason, field, f"{message}; the default certificate is presented", value)
    return found.model_copy(update={"severity": Severity.WARNING})


def read_issued(lookups: Lookups, ref: CertificateRef) -> Certificate | None:
    """Return an ordered certificate, without the server names that objects claim for it; None where there is none."""
    state = lookups.get(ORDERED_CERTIFICATES, ref.namespace, ref.secret)
    if state is None or state.certificate is None:
        return None
    return _entry(ref.key, (), state.certificate, ref)


def _entry(key: str, names: tuple[str, ...], issued: IssuedCertificate, ref: CertificateRef) -> Certificate:
    return Certificate(
        key=key,
        server_names=names,
        chain_pem=issued.chain_pem,
        private_key=issued.private_key.of(ACME_CLUSTER),
        fingerprint=issued.fingerprint,
        not_after=issued.not_after.isoformat(),
        provenance=Provenance(
            cluster=ACME_CLUSTER, kind=ACME_CERTIFICATE.kind, namespace=ref.namespace, name=ref.secret
        ),
    )


def read_challenges(lookups: Lookups, ref: CertificateRef) -> tuple[Challenge | Certificate, ...]:
    """Return what gateways answer about a certificate while it is ordered."""
    state = lookups.get(ORDERED_CERTIFICATES, ref.namespace, ref.secret)
    found: list[Challenge | Certificate] = []
    for one in state.challenges if state is not None else ():
        if one.certificate is not None:
            name = challenge_name(one.host)
            found.append(_entry(f"{ref.key}|{one.host}", (name,), one.certificate, ref))
        else:
            found.append(Challenge(key=f"{one.host}/{one.token}", host=one.host, token=one.token, answer=one.answer))
    return tuple(found)


CHALLENGES: Rule[CertificateRef, tuple[Challenge | Certificate, ...]] = Rule(
    "challenges", Level.REFERENCE, read_challenges, lambda *_: ()
)
