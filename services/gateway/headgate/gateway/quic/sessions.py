"""Session tickets of QUIC: a client that comes back needs no certificate and no signature (RFC 8446 section 4.6.1).

qh3's own tickets are numbers of sessions that one process remembers, and they allow early data (0-RTT). Ours have the
session in them, sealed with a key that all workers and replicas derive, as those of TCP are (`tls.tickets`). They are
for one server name, certificate and policy, and allow no early data: whoever has seen that can send it again.
"""

import datetime
import os
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from qh3.tls import CipherSuite, KeySchedule, NewSessionTicket, SessionTicket, hkdf_expand_label, utcnow

from headgate.gateway.tls.tickets import TicketKeys

LIFETIME_S: Final = 7200
"""OpenSSL's default."""
_SKEW_S: Final = 60
"""By which the clocks of replicas may differ."""
_NONCE: Final = 12
_TICKET_NONCE: Final = 8
_HEAD: Final = 2 + 8


class Sessions:
    """Seals and opens the tickets of one server name.

    Args:
        keys: that other processes have too.
        scope: certificate and policy.
        server_name: empty if clients name none.
    """

    def __init__(self, keys: TicketKeys, scope: bytes, server_name: str) -> None:
        self._keys = keys
        self._scope = scope
        self._name = server_name.encode()

    def ticket_for(self, schedule: KeySchedule) -> NewSessionTicket:
        """Make a ticket for the client of a handshake that is complete."""
        nonce = os.urandom(_TICKET_NONCE)
        secret = hkdf_expand_label(
            algorithm=schedule.algorithm,
            secret=schedule.derive_secret(b"res master"),
            label=b"resumption",
            hash_value=nonce,
            length=schedule.digest_size,
        )
        return NewSessionTicket(
            ticket_lifetime=LIFETIME_S,
            ticket_age_add=int.from_bytes(os.urandom(4), "big"),
            ticket_nonce=nonce,
            ticket=self.seal(schedule.cipher_suite, secret),
        )

    def seal(self, suite: CipherSuite, secret: bytes) -> bytes:
        """Write a session down for its client to keep."""
        nonce = os.urandom(_NONCE)
        told = int(suite).to_bytes(2, "big") + int(self._keys.now).to_bytes(8, "big") + secret
        return nonce + self._aead().encrypt(nonce, told, self._name)

    def open(self, ticket: bytes) -> SessionTicket | None:
        """Read a session; None: it is not ours, of another name, certificate, policy or period, or too old."""
        try:
            told = self._aead().decrypt(ticket[:_NONCE], ticket[_NONCE:], self._name)
            suite = CipherSuite(int.from_bytes(told[:2], "big"))
        except (InvalidTag, ValueError):
            return None
        age_s = self._keys.now - int.from_bytes(told[2:_HEAD], "big")
        if not -_SKEW_S <= age_s <= LIFETIME_S:
            return None
        now = utcnow()
        return SessionTicket(
            age_add=0,
            cipher_suite=suite,
            not_valid_before=now,
            not_valid_after=now + datetime.timedelta(seconds=LIFETIME_S),
            resumption_secret=told[_HEAD:],
            server_name=self._name.decode(),
            ticket=ticket,
        )

    def _aead(self) -> AESGCM:
        return AESGCM(self._keys.sealing_key(self._scope))
