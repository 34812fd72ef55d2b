"""Handshakes that go on whatever certificate the client shows, with OpenSSL's verdict kept for the requests.

nginx answers a bad certificate with a 400, and `optional_no_ca` lets it in. Both need a handshake that finishes, and
OpenSSL's own way to that is a verify callback, which Python's `ssl` has no name for. So it is set on the `SSL_CTX` of a
context, by `ctypes` in the very library that `ssl` is linked with. The pointer is the first field of a context behind
the object's head (`PySSLContext` in CPython's Modules/_ssl.c, 3.7 to 3.14); on another interpreter, or where the
library's functions cannot be found, `allow_any` raises, and the policy is refused by name.

Sessions are not resumed with such a context: OpenSSL verifies a resumed one no more, and its verdict is out of reach.

Rejected: another TLS library (pyOpenSSL has no transport for asyncio), and a second handshake.
"""

import ctypes
import ssl
import sys
import threading
from functools import cache
from typing import Any, Final

from headgate.gateway.tls.errors import TlsConfigError

_NEWEST: Final = (3, 14)
_PEER: Final = 1
"""`SSL_VERIFY_PEER`: ask for a certificate without insisting."""
_SET_SESSION_CACHE: Final = 44
"""`SSL_CTRL_SET_SESS_CACHE_MODE`; 0 is off."""
_UNKNOWN_AUTHORITY: Final = frozenset((18, 19, 20, 21))
"""Verdicts of a certificate of which nothing is wrong but that no known authority vouches for it: self-signed, alone or
in its chain, issuer not found, first certificate not verified. nginx takes the same with `optional_no_ca`."""
CHAIN_TOO_LONG: Final = 22
_verdict = threading.local()
"""`code` is the last error in the handshake under way, 0 for none. OpenSSL calls back within `do_handshake`."""

_Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p)


class _Library:
    """The functions of the OpenSSL that `ssl` is linked with. Raises OSError or AttributeError where it has none."""

    def __init__(self) -> None:
        import _ssl

        library = ctypes.CDLL(_ssl.__file__)
        self.set_verify = library.SSL_CTX_set_verify
        self.set_verify.argtypes = (ctypes.c_void_p, ctypes.c_int, _Callback)
        self.set_verify.restype = None
        self.verify_mode = library.SSL_CTX_get_verify_mode
        self.verify_mode.argtypes = (ctypes.c_void_p,)
        self.control = library.SSL_CTX_ctrl
        self.control.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_long, ctypes.c_void_p)
        self.control.restype = ctypes.c_long
        self.error_of = library.X509_STORE_CTX_get_error
        self.error_of.argtypes = (ctypes.c_void_p,)
        self.error_text = library.X509_verify_cert_error_string
        self.error_text.argtypes = (ctypes.c_long,)
        self.error_text.restype = ctypes.c_char_p


@cache
def _library() -> _Library | None:
    if sys.implementation.name != "cpython" or sys.version_info[:2] > _NEWEST or not _has_usual_objects():
        return None
    try:
        library = _Library()
    except (ImportError, OSError, AttributeError):
        return None
    probe = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    before = library.verify_mode(_pointer(probe))
    probe.verify_mode = ssl.CERT_OPTIONAL
    return library if (before, library.verify_mode(_pointer(probe))) == (0, _PEER) else None


def _has_usual_objects() -> bool:
    """Whether an object begins with its count of references and its type, and nothing else."""
    return object.__basicsize__ == 2 * ctypes.sizeof(ctypes.c_void_p)


def _pointer(context: ssl.SSLContext) -> ctypes.c_void_p:
    return ctypes.c_void_p.from_address(id(context) + object.__basicsize__)


def _note(is_good: int, store: int) -> int:
    """Keep what is wrong, and go on."""
    library = _library()
    if not is_good and library is not None:
        _verdict.code = library.error_of(store)
    return 1


_NOTE: Final[Any] = _Callback(_note)


def allow_any(context: ssl.SSLContext) -> None:
    """Ask for a certificate, and finish handshakes without one or with a bad one. Raises TlsConfigError."""
    library = _library()
    if library is None:
        raise TlsConfigError(
            "tls.client_auth: certificates that do not verify cannot be let through the handshake by this build of "
            "Python; use mode required or optional with refusals at the handshake"
        )
    context.verify_mode = ssl.CERT_OPTIONAL
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    library.set_verify(_pointer(context), _PEER, _NOTE)
    library.control(_pointer(context), _SET_SESSION_CACHE, 0, None)


def begin() -> None:
    """Forget the verdict of the step before; called before a step of a handshake."""
    _verdict.code = 0


def last_error() -> int:
    """Return OpenSSL's code of what was wrong in this step of a handshake; 0 for nothing."""
    code: int = getattr(_verdict, "code", 0)
    return code


def error_text(code: int) -> str:
    """Return OpenSSL's words for a verdict."""
    library = _library()
    return library.error_text(code).decode() if library is not None else f"error {code}"


def lacks_authority(code: int) -> bool:
    """Tell whether no known authority is all that is wrong."""
    return code in _UNKNOWN_AUTHORITY
