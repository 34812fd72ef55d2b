"""Functions of OpenSSL that Python's `ssl` has no name for.

They are called by `ctypes` in the very library that `ssl` is linked with. The pointer to an `SSL_CTX` is the first
field of a context behind the object's head (`PySSLContext` in CPython's Modules/_ssl.c, 3.7 to 3.14). On another
interpreter, or where the library's functions cannot be found, there is no library, and policies that need it are
refused by name.
"""

import ctypes
import ssl
import sys
from functools import cache
from typing import Any, Final

_NEWEST: Final = (3, 14)
PEER: Final = 1
"""`SSL_VERIFY_PEER`: ask for a certificate without insisting."""
INSIST: Final = 2
"""`SSL_VERIFY_FAIL_IF_NO_PEER_CERT`, beside `PEER`."""
SET_SESSION_CACHE: Final = 44
"""`SSL_CTRL_SET_SESS_CACHE_MODE`; 0 is off."""
SET_TICKET_KEYS: Final = 59
"""`SSL_CTRL_SET_TLSEXT_TICKET_KEYS`."""
SET_GROUPS: Final = 92
"""`SSL_CTRL_SET_GROUPS_LIST`: names with colons between them."""
Callback: Final[Any] = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p)
"""What `set_verify` takes: gets whether the certificate is good, and the store; returns 1 to go on."""


class Library:
    """Functions of the OpenSSL that `ssl` is linked with. Raises OSError or AttributeError where it has none."""

    def __init__(self) -> None:
        import _ssl

        library = ctypes.CDLL(_ssl.__file__)
        self.set_verify = library.SSL_CTX_set_verify
        self.set_verify.argtypes = (ctypes.c_void_p, ctypes.c_int, Callback)
        self.set_verify.restype = None
        self.verify_mode = library.SSL_CTX_get_verify_mode
        self.verify_mode.argtypes = (ctypes.c_void_p,)
        self.control = library.SSL_CTX_ctrl
        self.control.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_long, ctypes.c_void_p)
        self.control.restype = ctypes.c_long
        self.clear_errors = library.ERR_clear_error
        self.clear_errors.argtypes = ()
        self.clear_errors.restype = None
        self.error_of = library.X509_STORE_CTX_get_error
        self.error_of.argtypes = (ctypes.c_void_p,)
        self.error_text = library.X509_verify_cert_error_string
        self.error_text.argtypes = (ctypes.c_long,)
        self.error_text.restype = ctypes.c_char_p


@cache
def usable_library() -> Library | None:
    """Return the OpenSSL of `ssl`; None if a verify callback cannot be set in it."""
    if sys.implementation.name != "cpython" or sys.version_info[:2] > _NEWEST or not _has_usual_objects():
        return None
    try:
        library = Library()
    except (ImportError, OSError, AttributeError):
        return None
    probe = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    before = library.verify_mode(pointer(probe))
    probe.verify_mode = ssl.CERT_OPTIONAL
    return library if (before, library.verify_mode(pointer(probe))) == (0, PEER) else None


def _has_usual_objects() -> bool:
    """Whether an object begins with its count of references and its type, and nothing else."""
    return object.__basicsize__ == 2 * ctypes.sizeof(ctypes.c_void_p)


def pointer(context: ssl.SSLContext) -> ctypes.c_void_p:
    """Return the `SSL_CTX` of a context, with which `usable_library` may be called."""
    return ctypes.c_void_p.from_address(id(context) + object.__basicsize__)
