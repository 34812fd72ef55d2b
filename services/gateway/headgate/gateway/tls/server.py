"""Certificates and policies by server name, changed while connections come in.

Contexts are made when a pair of certificate and policy is first asked for: ten thousand certificates cost nothing until
they are used. Policies are looked up in the table that is served, with the same rules as a request's host, so a swap of
the table costs one reference.
"""

import hashlib
import logging
import ssl
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple
from weakref import WeakKeyDictionary, WeakSet

from cryptography import x509
from cryptography.hazmat.primitives import hashes

from headgate.common.pem import load_key_pair
from headgate.common.secret import Secret
from headgate.common.table import ALPN_CHALLENGE, OTHER_NAMES, TlsPolicy, challenge_name
from headgate.gateway.tls.handshake import Chosen, HandshakeCounts, ListenerContext, ServerConnection
from headgate.gateway.tls.loading import own_names, self_signed
from headgate.gateway.tls.policy import HostTls, put_into_effect
from headgate.gateway.tls.tickets import RatchetMemory, TicketKeys

_log = logging.getLogger(__name__)

FALLBACK_NAME = "headgate.invalid"
FALLBACK_KEY = "default"
"""What metrics call the certificate for names that have none."""


class CertificateEntry(NamedTuple):
    """A certificate with its key."""

    server_names: tuple[str, ...]
    """Lower case; `*.foo.com` for one more label."""
    chain_pem: str
    key_pem: Secret[bytes]
    fingerprint: str
    """Equal for equal certificates."""
    key: str = ""
    """In the table: `<cluster>/<namespace>/<secret>`."""
    not_after: str = ""
    """RFC 3339; read from the chain if empty."""

    @property
    def known_as(self) -> str:
        """The key, or what stands for it outside of tables."""
        return self.key or self.fingerprint


FindPolicy = Callable[[bytes], HostTls | None]
"""Finds the policy of the virtual host that takes a name (lower case; empty: none was sent)."""
FindCertificates = Callable[[bytes], Sequence[str]]
"""Finds the keys of the certificates among which the one for a name is chosen; none: all of the table."""


class CertificateStore:
    """What a TLS listener presents and asks for.

    Args:
        alpn: protocols that the listener speaks, the best first; policies choose among them.
        default_key: key in the table of the certificate for names that have none; while the table lacks it, and
            without one, that is what `set_fallback` was given, then the table's own, then a self-signed one.
        max_handshakes: in progress at once; None is no limit.
        tickets: keys of session tickets that other processes have too; None: each context draws its own.
    """

    def __init__(
        self,
        alpn: Sequence[str] = ("http/1.1",),
        default_key: str = "",
        max_handshakes: int | None = None,
        tickets: TicketKeys | None = None,
    ) -> None:
        self._alpn = tuple(alpn)
        self._default_key = default_key
        self._tickets = tickets
        self.own_tickets = tickets or TicketKeys(RatchetMemory())
        """Keys of tickets that are made without a context."""
        chain, key = self_signed(FALLBACK_NAME)
        self._self_signed = CertificateEntry((), chain.decode(), Secret(key), "self-signed", FALLBACK_KEY)
        self._given: CertificateEntry | None = None
        self._for_other_names: dict[str, CertificateEntry] = {}
        """Certificates of the table for names that have none, by key."""
        self._by_name: dict[str, CertificateEntry] = {}
        self._by_key: dict[str, CertificateEntry] = {}
        self._rivals: dict[str, dict[str, CertificateEntry]] = {}
        """Of names that several certificates have: all of them by key."""
        self._uses: Counter[str] = Counter()
        """Certificates of the table by fingerprint."""
        self._contexts: dict[str, ssl.SSLContext] = {}
        """For hosts without a policy, by fingerprint."""
        self._policy_contexts: WeakKeyDictionary[HostTls, dict[str, ssl.SSLContext]] = WeakKeyDictionary()
        self._challenges: dict[str, ssl.SSLContext] = {}
        """That answer authorities (RFC 8737), by fingerprint."""
        self._unusable: set[str] = set()
        self._find_policy: FindPolicy = _no_policy
        self._find_certificates: FindCertificates = _all_certificates
        self.counts = HandshakeCounts()
        self._max_handshakes = max_handshakes
        self._handshakes: WeakSet[ServerConnection] = WeakSet()
        self.server_context = self._listener_context(self.choose)
        """The context for the gateway's own listener, for good."""

    def listener_context(self, find: FindPolicy, find_certificates: FindCertificates) -> ListenerContext:
        """Return the context for another listener."""

        def choose(server_name: str) -> Chosen:
            name = _normal(server_name)
            return self._present(name, find(name.encode()), find_certificates(name.encode()))

        return self._listener_context(choose)

    def context_for(
        self, tls: HostTls | None, find_certificates: Callable[[], Sequence[str]] = tuple
    ) -> ListenerContext:
        """Return the context for connections that have one policy, and certificates, whatever their server name."""
        return self.listener_context(lambda _: tls, lambda _: find_certificates())

    def _listener_context(self, choose: Callable[[str], Chosen]) -> ListenerContext:
        context = ListenerContext(ssl.PROTOCOL_TLS_SERVER)
        context.choose = choose
        context.choose_challenge = self.choose_challenge
        context.counts = self.counts
        context.renew = self._drop
        context.max_pending = self._max_handshakes
        context.pending = self._handshakes
        return context

    @property
    def fallback(self) -> CertificateEntry:
        """The certificate for names that have none, and for clients that send none."""
        return next(self._fallbacks())

    def _fallbacks(self) -> Iterator[CertificateEntry]:
        """Yield the certificates for such names, those of the gateway's own settings before that of the table."""
        chosen = self._by_key.get(self._default_key) if self._default_key else None
        if chosen is not None:
            yield chosen
        if self._given is not None:
            yield self._given
        if self._for_other_names:
            yield self._for_other_names[min(self._for_other_names)]
        yield self._self_signed

    def set_certificates(self, entries: Iterable[CertificateEntry]) -> None:
        """Replace all certificates of the table."""
        arrived = {entry.known_as: entry for entry in entries}
        self.change_certificates(arrived.values(), self._by_key.keys() - arrived.keys())

    def change_certificates(self, arrived: Iterable[CertificateEntry], gone: Iterable[str]) -> None:
        """Add or replace some certificates of the table, and remove those with these keys.

        Of two with the same name the one with the lesser key is used: all gateways have the same keys, in whatever
        order the certificates came.
        """
        dead = [self._remove(key) for key in gone]
        for entry in arrived:
            dead.append(self._remove(entry.known_as))
            self._add(entry)
        self._forget(entry.fingerprint for entry in dead if entry is not None)

    def _add(self, entry: CertificateEntry) -> None:
        self._by_key[entry.known_as] = entry
        self._uses[entry.fingerprint] += 1
        names = set(map(_normal, entry.server_names))
        if OTHER_NAMES in names:
            self._for_other_names[entry.known_as] = entry
        for name in names - {OTHER_NAMES}:
            other = self._by_name.setdefault(name, entry)
            if other is not entry:
                rivals = self._rivals.setdefault(name, {other.known_as: other})
                rivals[entry.known_as] = entry
                self._by_name[name] = rivals[min(rivals)]

    def _remove(self, key: str) -> CertificateEntry | None:
        entry = self._by_key.pop(key, None)
        if entry is None:
            return None
        self._uses[entry.fingerprint] -= 1
        self._for_other_names.pop(key, None)
        for name in set(map(_normal, entry.server_names)) - {OTHER_NAMES}:
            rivals = self._rivals.get(name)
            if rivals is None:
                del self._by_name[name]
                continue
            del rivals[key]
            self._by_name[name] = rivals[min(rivals)]
            if len(rivals) == 1:
                del self._rivals[name]
        return entry

    def set_policies(self, find: FindPolicy, find_certificates: FindCertificates | None = None) -> None:
        """Look policies up there from now on, and which certificates there are for a name."""
        self._find_policy = find
        self._find_certificates = find_certificates or _all_certificates

    def set_fallback(self, chain_pem: bytes, key_pem: bytes) -> None:
        """Present another certificate to names that have none.

        Raises:
            ssl.SSLError, ValueError: they are no pair; the one before stays.
        """
        load_key_pair(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), chain_pem, key_pem)
        fingerprint = x509.load_pem_x509_certificate(chain_pem).fingerprint(hashes.SHA256()).hex()
        before = self._given
        self._given = CertificateEntry((), chain_pem.decode(), Secret(key_pem), fingerprint, FALLBACK_KEY)
        if before is not None:
            self._forget([before.fingerprint])

    def certificate_for(self, server_name: str) -> CertificateEntry:
        """Find the certificate for a name: exact, then wildcard of one label, then the fallback."""
        name = _normal(server_name)
        return self._by_name.get(name) or self._by_name.get(_wildcard(name)) or self.fallback

    def _certificate_among(self, keys: Sequence[str], name: str) -> CertificateEntry:
        """Find the certificate for a name among some: exact, then wildcard of one label, then the first of them.

        A listener's certificates may be presented for no name elsewhere: then their own names tell them apart.
        """
        there = [entry for key in keys if (entry := self._by_key.get(key)) is not None]
        if len(there) > 1:
            for asked in (name, _wildcard(name)):
                for entry in there:
                    if asked in entry.server_names or asked in own_names(entry.chain_pem):
                        return entry
        return there[0] if there else self.fallback

    def policy_for(self, host: bytes) -> HostTls | None:
        """Find the policy of a host in lower case; None: it has none."""
        return self._find_policy(host)

    def choose(self, server_name: str) -> Chosen:
        """Give context and policy for a server name; empty if the client sent none."""
        name = _normal(server_name)
        return self._present(name, self._find_policy(name.encode()), self._find_certificates(name.encode()))

    def choose_challenge(self, server_name: str) -> Chosen | None:
        """Give the context that proves to an authority that a name is ours; None while it is asked for no proof."""
        entry = self._by_name.get(challenge_name(_normal(server_name)))
        if entry is None:
            return None
        context = self._challenges.get(entry.fingerprint)
        if context is None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            try:
                load_key_pair(context, entry.chain_pem.encode(), entry.key_pem.reveal())
            except (ssl.SSLError, ValueError) as error:
                _log.warning("challenge unusable", extra={"fingerprint": entry.fingerprint, "error": str(error)})
                return None
            context.set_alpn_protocols([ALPN_CHALLENGE])
            self._challenges[entry.fingerprint] = context
        return Chosen(context, None, entry)

    def _present(self, name: str, tls: HostTls | None, keys: Sequence[str]) -> Chosen:
        effective = tls if tls is not None and not tls.problem else None
        found = self._certificate_among(keys, name) if keys else self.certificate_for(name)
        is_strict = effective is not None and effective.policy.strict_names
        is_refused = is_strict and not {name, _wildcard(name)} & set(map(_normal, found.server_names)) - {OTHER_NAMES}
        for entry in (found, *self._fallbacks()):
            context = self._context(entry, effective)
            if context is not None:
                if self._tickets is not None:
                    self._tickets.refresh(context)
                return Chosen(context, tls, entry, is_refused)
        raise AssertionError("the self-signed certificate can be loaded")

    def not_after(self) -> Iterator[tuple[str, float]]:
        """Yield when each certificate ends: its key, and seconds since 1970."""
        for key, entry in (*self._by_key.items(), (FALLBACK_KEY, self.fallback)):
            try:
                yield key, _end_of(entry).timestamp()
            except ValueError:
                # The translator refuses unreadable chains; one that came through is logged when it is first used.
                continue

    def not_after_by_name(self) -> Iterator[tuple[str, str, float]]:
        """Yield when the certificate of each server name ends: name, key, and seconds since 1970."""
        others = [(OTHER_NAMES, self._for_other_names[key]) for key in sorted(self._for_other_names)[:1]]
        for name, entry in (*self._by_name.items(), *others):
            try:
                yield name, entry.known_as, _end_of(entry).timestamp()
            except ValueError:
                continue

    def _context(self, entry: CertificateEntry, tls: HostTls | None) -> ssl.SSLContext | None:
        if entry.fingerprint in self._unusable:
            return None
        contexts = self._contexts if tls is None else self._policy_contexts.setdefault(tls, {})
        return contexts.get(entry.fingerprint) or self._load(entry, tls, contexts)

    def _drop(self, chosen: Chosen) -> None:
        tls = chosen.tls
        contexts = self._contexts if tls is None or tls.problem else self._policy_contexts.get(tls, {})
        fingerprint = chosen.certificate.fingerprint
        if contexts.get(fingerprint) is chosen.context:
            del contexts[fingerprint]

    def _load(
        self, entry: CertificateEntry, tls: HostTls | None, contexts: dict[str, ssl.SSLContext]
    ) -> ssl.SSLContext | None:
        policy = tls.policy if tls is not None else None
        context = self._new_context(entry, policy)
        put_into_effect(context, policy, self._alpn)
        try:
            load_key_pair(context, entry.chain_pem.encode(), entry.key_pem.reveal())
        except (ssl.SSLError, ValueError) as error:
            # The translator refuses what does not fit; should one come through, only its own names suffer.
            self._unusable.add(entry.fingerprint)
            _log.warning("certificate unusable", extra={"fingerprint": entry.fingerprint, "error": str(error)})
            return None
        contexts[entry.fingerprint] = context
        return context

    def _new_context(self, entry: CertificateEntry, policy: TlsPolicy | None) -> ssl.SSLContext:
        if self._tickets is None:
            return ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        return self._tickets.new_context(_scope(entry, policy, self._alpn))

    def ticket_scope(self, chosen: Chosen, protocol: str) -> bytes | None:
        """Return the scope of tickets of another protocol than those of TCP; None: the policy wants none."""
        policy = chosen.tls.policy if chosen.tls is not None and not chosen.tls.problem else None
        if policy is not None and not policy.session_tickets:
            return None
        return _scope(chosen.certificate, policy, (protocol,))

    def _forget(self, fingerprints: Iterable[str]) -> None:
        """Drop what was made of certificates of which none is left."""
        for fingerprint in fingerprints:
            if self._uses[fingerprint] or (self._given is not None and fingerprint == self._given.fingerprint):
                continue
            del self._uses[fingerprint]
            self._unusable.discard(fingerprint)
            for contexts in (self._contexts, self._challenges, *self._policy_contexts.values()):
                contexts.pop(fingerprint, None)


def _scope(entry: CertificateEntry, policy: TlsPolicy | None, alpn: Sequence[str]) -> bytes:
    """Return what tickets are bound to."""
    scope = (entry.fingerprint, *alpn, policy.model_dump_json() if policy is not None else "")
    return hashlib.sha256(repr(scope).encode()).digest()


def _no_policy(_: bytes) -> None:
    return None


def _all_certificates(_: bytes) -> Sequence[str]:
    return ()


def _wildcard(name: str) -> str:
    return "*." + name.partition(".")[2]


def _normal(name: str) -> str:
    return name.lower().removesuffix(".")


def _end_of(entry: CertificateEntry) -> datetime:
    if entry.not_after:
        return datetime.fromisoformat(entry.not_after)
    return x509.load_pem_x509_certificate(entry.chain_pem.encode()).not_valid_after_utc
