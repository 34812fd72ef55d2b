"""When certificates end, and what is wrong about it."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

from headgate.common.problems import Problem, Severity
from headgate.common.table import Certificate

ENDING = timedelta(days=14)
"""A certificate that ends before that should have been renewed by now, as most are 30 days before."""


def time_left(certificate: Certificate, now: datetime) -> timedelta | None:
    """Return how long a certificate is valid still, negative after its end; None: its end is not known."""
    try:
        end = datetime.fromisoformat(certificate.not_after)
    except ValueError:
        return None
    return (end if end.tzinfo else end.replace(tzinfo=UTC)) - now


def expiry_problems(
    certificates: Iterable[Certificate], now: datetime, *, is_pinned: bool = False
) -> Iterator[tuple[Certificate, Problem]]:
    """Yield the certificates that have ended or end soon.

    Args:
        certificates: of a table.
        now: the time.
        is_pinned: the table is pinned, so a renewed certificate is not presented.
    """
    for certificate in certificates:
        left = time_left(certificate, now)
        if left is None or left >= ENDING:
            continue
        has_ended = left < timedelta()
        ends = f"{'ended' if has_ended else 'ends'} {certificate.not_after}"
        remedy = (
            "and one that was renewed since is not presented while the table is pinned"
            if is_pinned
            else f"renew it in the Secret; it is presented for {', '.join(certificate.shown_names) or 'no host'}"
        )
        ending = "CertificateEnded" if has_ended else "CertificateEnds"
        yield (
            certificate,
            Problem(
                severity=Severity.ERROR if has_ended else Severity.WARNING,
                reason="PinnedCertificateEnds" if is_pinned else ending,
                message=f"{ends}{',' if is_pinned else ':'} {remedy}",
            ),
        )
