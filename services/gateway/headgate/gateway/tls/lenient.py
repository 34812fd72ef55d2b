"""Handshakes that go on whatever certificate the client shows, with OpenSSL's verdict kept for the requests.

nginx answers a bad certificate with a 400, and `optional_no_ca` lets it in. Both need a handshake that finishes, and
OpenSSL's own way to that is a verify callback, which Python's `ssl` has no name for. It is set as `openssl` says; where
that cannot be done, `allow_any` raises, and the policy is refused by name.

Sessions are not resumed with such a context: OpenSSL verifies a resumed one no more, and its verdict is out of reach.

Rejected: another TLS library (pyOpenSSL has no transport for asyncio), and a second handshake.
"""

import ssl
import threading
from typing import Any, Final

from headgate.gateway.tls.errors import TlsConfigError
from headgate.gateway.tls.openssl import INSIST, PEER, SET_SESSION_CACHE, Callback, pointer, usable_library

_UNKNOWN_AUTHORITY: Final = frozenset((18, 19, 20, 21))
"""Verdicts of a certificate of which nothing is wrong but that no known authority vouches for it: self-signed, alone or
in its chain, issuer not found, first certificate not verified. nginx takes the same with `optional_no_ca`."""
CHAIN_TOO_LONG: Final = 22
_verdict = threading.local()
"""`code` is the last error in the handshake under way, 0 for none. OpenSSL calls back within `do_handshake`."""


def _note(is_good: int, store: int) -> int:
    """Keep what is wrong, and go on."""
    library = usable_library()
    if not is_good and library is not None:
        _verdict.code = library.error_of(store)
        library.clear_errors()  # of a signature: what reads next would take it for its own
    return 1


_NOTE: Final[Any] = Callback(_note)


def allow_any(context: ssl.SSLContext, *, insists: bool = False) -> None:
    """Ask for a certificate, and finish handshakes with a bad one, or without one unless this `insists`.

    Raises:
        TlsConfigError: this build of Python does not allow it.
    """
    library = usable_library()
    if library is None:
        raise TlsConfigError(
            "tls.client_auth: certificates that do not verify cannot be let through the handshake by this build of "
            "Python; use mode required or optional with refusals at the handshake"
        )
    context.verify_mode = ssl.CERT_OPTIONAL
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    library.set_verify(pointer(context), PEER | INSIST if insists else PEER, _NOTE)
    library.control(pointer(context), SET_SESSION_CACHE, 0, None)


def begin() -> None:
    """Forget the verdict of the step before; called before a step of a handshake."""
    _verdict.code = 0


def last_error() -> int:
    """Return OpenSSL's code of what was wrong in this step of a handshake; 0 for nothing."""
    code: int = getattr(_verdict, "code", 0)
    return code


def error_text(code: int) -> str:
    """Return OpenSSL's words for a verdict."""
    library = usable_library()
    return library.error_text(code).decode() if library is not None else f"error {code}"


def lacks_authority(code: int) -> bool:
    """Tell whether no known authority is all that is wrong."""
    return code in _UNKNOWN_AUTHORITY
