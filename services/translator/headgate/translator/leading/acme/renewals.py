"""When authorities want certificates renewed (RFC 9773), asked for while this translator leads.

An authority spreads renewals, or wants one early that it is about to revoke. What it says is remembered here alone: a
new leader asks again. Without an answer a certificate is renewed when two thirds of its life are over.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from headgate.common.acme import CertificateState, IssuedCertificate
from headgate.common.errors import StoreError
from headgate.translator.fragments.fragment import CertificateRef
from headgate.translator.leading.acme.authority import Authority
from headgate.translator.leading.acme.errors import OrderFailed

_log = logging.getLogger(__name__)

SHORT_LIVED: Final = timedelta(days=1)
"""Certificates of a shorter life are not asked about: windows are wider than that."""
NEW: Final = timedelta(hours=1)
"""A certificate that we have just ordered is left alone for so long, whatever is said of it."""
_AGAIN: Final = timedelta(hours=6)
"""After a question that was not answered."""


class _Asked(NamedTuple):
    fingerprint: str
    renew_at: datetime | None
    ask_at: datetime


Open = Callable[[CertificateRef], Awaitable[Authority]]
"""Opens the authority of a certificate's resolver; raises OrderFailed and StoreError."""


class Renewals:
    """What authorities have said of certificates.

    Args:
        state_of: returns how a certificate stands.
    """

    def __init__(self, state_of: Callable[[CertificateRef], CertificateState]) -> None:
        self._state_of = state_of
        self._asked: dict[CertificateRef, _Asked] = {}

    def renew_at(self, ref: CertificateRef, certificate: IssuedCertificate | None) -> datetime | None:
        """Return when the authority wants a certificate renewed; None: it has not said so."""
        asked = self._asked.get(ref)
        if asked is None or certificate is None or asked.fingerprint != certificate.fingerprint:
            return None
        return None if asked.renew_at is None else min(asked.renew_at, certificate.not_after)

    def note_issued(self, ref: CertificateRef, certificate: IssuedCertificate) -> None:
        """Hear of a certificate that we have ordered."""
        self._asked[ref] = _Asked(certificate.fingerprint, None, datetime.now(UTC) + NEW)

    async def ask(self, wanted: Iterable[CertificateRef], open_: Open) -> None:
        """Ask about certificates as far as it is time to, one after the other."""
        there = set(wanted)
        for ref in self._asked.keys() - there:
            del self._asked[ref]
        for ref in there:
            certificate = self._state_of(ref).certificate
            if certificate is None or certificate.not_after - certificate.not_before < SHORT_LIVED:
                continue
            asked, now = self._asked.get(ref), datetime.now(UTC)
            if asked is None or asked.fingerprint != certificate.fingerprint or asked.ask_at <= now:
                self._asked[ref] = await _ask(ref, certificate, open_, now)


async def _ask(ref: CertificateRef, certificate: IssuedCertificate, open_: Open, now: datetime) -> _Asked:
    try:
        authority = await open_(ref)
        renew_at, ask_at = await asyncio.to_thread(authority.renewal_time, certificate.chain_pem)
    except (OrderFailed, StoreError) as error:
        _log.info("no word on a renewal", extra={"names": ", ".join(ref.names), "reason": str(error)})
        return _Asked(certificate.fingerprint, None, now + _AGAIN)
    return _Asked(certificate.fingerprint, renew_at, ask_at)
