"""How TLS is spoken for a host: a table's `TlsPolicy` checked, and put into OpenSSL contexts.

Policies that say the same are one object, whatever hosts they come from, so that ten thousand hosts with one policy
cost one check. What cannot be put into effect (a broken bundle, a mode that `ssl` does not have) is kept as `problem`:
handshakes for such a host are the gateway's own, and each of its requests is refused with that reason. It is never
served as if the policy were not there.
"""

import hashlib
import logging
import re
import ssl
from collections.abc import Sequence
from typing import Any, Final
from weakref import WeakValueDictionary

from headgate.common.table import ClientAuth, TlsPolicy
from headgate.gateway.errors import BadMatch
from headgate.gateway.model.patterns import compile_pattern
from headgate.gateway.tls.errors import TlsConfigError
from headgate.gateway.tls.lenient import allow_any
from headgate.gateway.tls.loading import load_authorities, set_ciphers, set_curves, set_versions

_log = logging.getLogger(__name__)

CIPHERS: Final = ":".join(
    f"ECDHE-{signature}-{cipher}"
    for cipher in ("AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305")
    for signature in ("ECDSA", "RSA")
)
"""For TLS 1.2: forward secret and authenticated, those of Mozilla's intermediate profile without finite-field DH."""
_OLD_CIPHERS: Final = "ECDHE-ECDSA-AES128-SHA:ECDHE-RSA-AES128-SHA:ECDHE-ECDSA-AES256-SHA:ECDHE-RSA-AES256-SHA"
"""Added where a policy lets TLS 1.0 or 1.1 in, which have no others."""
_OLD_VERSIONS: Final = ("1.0", "1.1")
_SECURITY_LEVEL: Final = "@SECLEVEL="

_ANY: Final = ("required-any", "optional-any")

_URL = re.compile("[!-~]+")


class ClientGuard:
    """What a host asks of its clients' certificates, for `identity.check`; immutable."""

    __slots__ = (
        "allowed_names",
        "asked",
        "error_page",
        "is_required",
        "pass_certificate",
        "problem",
        "redirects_http",
        "skip_paths",
        "takes_any",
        "takes_unverified",
    )

    def __init__(self, auth: ClientAuth | None, problem: str = "") -> None:
        """Raises TlsConfigError for a pattern that RE2 does not take, or an error page that no header can hold."""
        self.problem = problem
        """Why no request can be let in; empty if there is no such reason."""
        self.is_required = auth is not None and auth.mode in ("required", "required-any")
        self.redirects_http = auth is not None and auth.redirect_http
        self.takes_unverified = auth is not None and auth.mode == "optional-unverified"
        """Lets certificates in of which nothing is wrong but that no known authority vouches for them."""
        self.takes_any = auth is not None and auth.mode in _ANY
        """Lets every certificate in."""
        self.error_page = auth.error_page if auth else ""
        if self.error_page and not problem and not _URL.fullmatch(self.error_page):
            raise TlsConfigError(f"tls.client_auth.error_page: {self.error_page!r} is no URL: visible ASCII only")
        self.pass_certificate = auth is not None and auth.pass_certificate
        self.allowed_names = tuple(map(_compile_name, auth.allowed_names)) if auth and not problem else ()
        self.skip_paths = tuple(map(_compile_path, auth.skip_paths)) if auth and not problem else ()
        self.asked = _asked(auth) if auth else ""
        """What the handshake verifies against, in short. A connection counts for this host only if its own is equal."""


class HostTls:
    """The compiled policy of one or more hosts; immutable."""

    __slots__ = ("__weakref__", "admits_nobody", "guard", "policy", "problem")

    def __init__(self, policy: TlsPolicy) -> None:
        self.policy = policy
        self.admits_nobody = policy.client_auth is not None and _admits_nobody(policy.client_auth)
        """Whether all handshakes fail: clients have to show a certificate, and there are no authorities."""
        self.problem = ""
        """Why the policy is not in force, beginning with the field; empty if it is."""
        self.guard: ClientGuard | None = None
        """None: nothing to check per request."""
        try:
            put_into_effect(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), policy, ("http/1.1",))
            if policy.client_auth is not None:
                self.guard = ClientGuard(policy.client_auth)
        except TlsConfigError as error:
            self.problem = str(error)
            self.guard = ClientGuard(policy.client_auth, self.problem)

    @property
    def suits_quic(self) -> bool:
        """Whether HTTP/3 can follow the policy: TLS 1.3 with the groups of its own, and no client certificates."""
        policy = self.policy
        is_usual = not (self.problem or policy.client_auth is not None or policy.curves)
        return is_usual and policy.max_version in ("", "1.3") and "h2" in policy.alpn


class TlsPolicies:
    """One compiled policy for each that any live host has; collected with the last of them."""

    def __init__(self) -> None:
        self._policies: WeakValueDictionary[TlsPolicy, HostTls] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._policies)

    def compile(self, policy: TlsPolicy | None, host: str) -> HostTls | None:
        """Return the compiled form of a host's policy, the same for equal ones; what is wrong with it is logged."""
        if policy is None:
            return None
        compiled = self._policies.get(policy)
        if compiled is None:
            compiled = self._policies[policy] = HostTls(policy)
        if compiled.problem:
            _log.error("TLS policy refused", extra={"host": host, "problem": compiled.problem})
        return compiled


def put_into_effect(context: ssl.SSLContext, policy: TlsPolicy | None, alpn: Sequence[str]) -> None:
    """Set a server's context up; without a policy as the gateway thinks right.

    Args:
        context: of a server, new.
        policy: what the host asks for.
        alpn: protocols that the listener speaks, the best first; a policy chooses among them.

    Raises:
        TlsConfigError: something of the policy cannot be had.
    """
    policy = policy or TlsPolicy()
    minimum = policy.min_version or "1.2"
    set_versions(context, minimum, policy.max_version)
    ciphers = policy.ciphers or (f"{CIPHERS}:{_OLD_CIPHERS}" if minimum in _OLD_VERSIONS else CIPHERS)
    if minimum in _OLD_VERSIONS and _SECURITY_LEVEL not in ciphers:
        # Their signatures use SHA-1, which OpenSSL 3 allows at level 0 only.
        ciphers += f":{_SECURITY_LEVEL}0"
    set_ciphers(context, ciphers)
    # Renegotiation and compression have nothing but attacks to offer.
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    if policy.ciphers and not policy.prefer_server_ciphers:
        context.options &= ~ssl.OP_CIPHER_SERVER_PREFERENCE
    else:
        context.options |= ssl.OP_CIPHER_SERVER_PREFERENCE
    spoken = [protocol for protocol in alpn if protocol in policy.alpn]
    if spoken:
        context.set_alpn_protocols(spoken)
    if policy.curves:
        set_curves(context, policy.curves)
    if not policy.session_tickets:
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
    if policy.client_auth is not None:
        _ask_for_certificates(context, policy.client_auth)


def _ask_for_certificates(context: ssl.SSLContext, auth: ClientAuth) -> None:
    try:
        if auth.ca_pem or auth.mode not in _ANY:
            load_authorities(context, auth.ca_pem, auth.crl_pem)
    except TlsConfigError as error:
        raise TlsConfigError(f"tls.client_auth.{error}") from error
    if is_lenient(auth):
        allow_any(context, insists=auth.mode == "required-any" and _needs_at_handshake(auth))
        return
    context.verify_mode = ssl.CERT_REQUIRED if _needs_at_handshake(auth) else ssl.CERT_OPTIONAL


def is_lenient(auth: ClientAuth) -> bool:
    """Whether handshakes finish whatever certificate the client shows."""
    return auth.mode == "optional-unverified" or auth.mode in _ANY or auth.refusals == "answer"


def _needs_at_handshake(auth: ClientAuth) -> bool:
    """A client that is to be sent to a page, or may do without for some paths, must get through the handshake first."""
    is_required = auth.mode in ("required", "required-any")
    return is_required and not auth.error_page and not auth.skip_paths


def _admits_nobody(auth: ClientAuth) -> bool:
    return not auth.ca_pem and _needs_at_handshake(auth) and not is_lenient(auth)


def _asked(auth: ClientAuth) -> str:
    facts = (auth.ca_pem, auth.crl_pem, auth.depth, _needs_at_handshake(auth), is_lenient(auth))
    return hashlib.sha256(repr(facts).encode()).hexdigest()


def _compile_name(pattern: str) -> Any:
    return _compile(pattern, "tls.client_auth.allowed_names")


def _compile_path(pattern: str) -> Any:
    return _compile(pattern, "tls.client_auth.skip_paths")


def _compile(pattern: str, field: str) -> Any:
    try:
        return compile_pattern(pattern, field)
    except BadMatch as error:
        raise TlsConfigError(str(error)) from error
