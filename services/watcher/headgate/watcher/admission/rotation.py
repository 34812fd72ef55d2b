"""When the webhook's certificate is made, renewed and replaced; pure, time is passed in.

A certificate is presented only after API servers trust its authority, and the authority stays trusted until the
certificate ends: so no watcher has to know which replica presents which one. Rejected: asking replicas which they
present, and taking an authority back after some minutes, which locks out a replica that could not read the Secret
meanwhile.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from headgate.watcher.admission.issuing import Pair, examine, issue

LEFT = 3
"""The next certificate is made when one part in so many of its life is left."""
MOST_AUTHORITIES = 8
"""More than two are trusted at once only where settings or clocks disagree."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept in the Secret."""

    present: Pair | None = None
    """Presented by all replicas."""
    upcoming: Pair | None = None
    """To be presented when API servers trust its authority."""
    authorities: tuple[x509.Certificate, ...] = ()
    """To be trusted, newest first."""

    @property
    def bundle_pem(self) -> bytes:
        """The authorities."""
        return b"".join(one.public_bytes(serialization.Encoding.PEM) for one in self.authorities)


@dataclass(frozen=True, slots=True)
class DesiredCertificate:
    """What certificates are to be."""

    names: tuple[str, ...]
    life: timedelta


@dataclass(frozen=True, slots=True)
class Step:
    """What is to be kept from now on, and why."""

    kept: Kept
    reason: str


def advance(kept: Kept, wanted: DesiredCertificate, now: datetime, *, is_trusted: bool) -> Step | None:
    """Return the next step; None while all is well.

    Args:
        kept: what there is.
        wanted: of the settings.
        now: with a time zone.
        is_trusted: whether API servers have trusted all of `kept.authorities` for some seconds.
    """
    kept = replace(kept, upcoming=_usable(kept.upcoming, kept.authorities, now))
    if kept.present is None:
        return _replace(kept, wanted, now, "the webhook's certificate is made, as there is none")
    standing = examine(kept.present, kept.authorities, now)
    if standing.problem:
        return _replace(kept, wanted, now, f"the webhook's certificate is replaced: {standing.problem}")
    if kept.upcoming is not None and is_trusted:
        return Step(replace(kept, present=kept.upcoming, upcoming=None), "the webhook's next certificate is presented")
    if kept.upcoming is None:
        assert standing.not_after is not None
        if standing.names != frozenset(wanted.names):
            return _prepare(kept, wanted, now, "the webhook's next certificate is made: it is for other names")
        if standing.not_after - now <= wanted.life / LEFT:
            reason = f"the webhook's next certificate is made: the present one ends at {standing.not_after:%Y-%m-%d}"
            return _prepare(kept, wanted, now, reason)
    lasting = _lasting(kept.authorities, now)
    if lasting != kept.authorities:
        return Step(replace(kept, authorities=lasting), "an authority of the webhook that ended is trusted no more")
    return None


def _replace(kept: Kept, wanted: DesiredCertificate, now: datetime, reason: str) -> Step:
    """Present the next certificate at once, trusted or not: there is none that works."""
    if kept.upcoming is None:
        kept = _prepare(kept, wanted, now, reason).kept
    return Step(replace(kept, present=kept.upcoming, upcoming=None), reason)


def _prepare(kept: Kept, wanted: DesiredCertificate, now: datetime, reason: str) -> Step:
    pair, authority = issue(wanted.names, now, wanted.life)
    authorities = (authority, *_lasting(kept.authorities, now))[:MOST_AUTHORITIES]
    return Step(replace(kept, upcoming=pair, authorities=authorities), reason)


def _usable(pair: Pair | None, authorities: Sequence[x509.Certificate], now: datetime) -> Pair | None:
    return None if pair is None or examine(pair, authorities, now).problem else pair


def _lasting(authorities: Sequence[x509.Certificate], now: datetime) -> tuple[x509.Certificate, ...]:
    return tuple(one for one in authorities if one.not_valid_after_utc > now)
