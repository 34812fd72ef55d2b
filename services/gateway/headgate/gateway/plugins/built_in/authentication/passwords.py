"""Passwords as `htpasswd` files keep them, checked: bcrypt, Apache's MD5 (`$apr1$`), `{SHA}`, `{SSHA}`, `{PLAIN}`, and
the forms of `crypt(3)`.

The latter are libpass': Python's own `crypt` is gone in 3.13, and the system's library differs from image to image.
"""

import base64
import hashlib
import hmac
from collections.abc import Callable

import bcrypt

from headgate.common.plugins.authentication.htpasswd import APR1, BCRYPT, PLAIN, SHA

Check = Callable[[bytes], bool]

_MAX_PASSWORD = 512
"""Bytes of a password that may be right; apr1 goes through it a thousand times. `htpasswd` takes 255."""

_ITOA64 = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_APR1_ORDER = ((0, 6, 12), (1, 7, 13), (2, 8, 14), (3, 9, 15), (4, 10, 5))


class Hashed:
    """One kept password."""

    __slots__ = ("check", "is_slow")

    def __init__(self, check: Check, *, is_slow: bool) -> None:
        self.check = check
        """Tell whether a password is this one."""
        self.is_slow = is_slow
        """Takes so long that it belongs into a thread: all that slows guessing down."""


def read_hash(kept: str) -> Hashed:
    """Read what stands behind the name in a line, as `check_hash` has looked at it."""
    raw = kept.encode("utf-8")
    if kept.startswith(BCRYPT):
        return Hashed(lambda password: bcrypt.checkpw(password[:72], b"$2b$" + raw[4:]), is_slow=True)
    if kept.startswith(APR1):
        salt = raw.split(b"$")[2][:8]
        return Hashed(lambda password: _is_apr1(password, salt, raw), is_slow=True)
    if kept.startswith(SHA):
        return Hashed(_salted_sha(kept.partition("}")[2]), is_slow=False)
    if kept.startswith(PLAIN):
        return plain(raw[len(PLAIN) :])
    return Hashed(_crypted(kept), is_slow=True)


def plain(password: bytes) -> Hashed:
    """Keep a password as it is."""
    return Hashed(lambda given: hmac.compare_digest(given, password), is_slow=False)


def _crypted(kept: str) -> Check:
    # Most files have none of these, and the library takes 5 MB.
    from passlib.hash import des_crypt, md5_crypt, sha256_crypt, sha512_crypt

    forms = {"$1$": md5_crypt, "$5$": sha256_crypt, "$6$": sha512_crypt}
    form = forms.get(kept[:3], des_crypt)
    # A zero byte ends a password in C; no client that knows the password sends one.
    return lambda password: (
        len(password) <= _MAX_PASSWORD and b"\0" not in password and form.verify(password, kept) is True
    )


def _salted_sha(text: str) -> Check:
    decoded = base64.b64decode(text, validate=True)
    digest, salt = decoded[:20], decoded[20:]
    return lambda password: hmac.compare_digest(hashlib.sha1(password + salt).digest(), digest)  # noqa: S324


def _is_apr1(password: bytes, salt: bytes, kept: bytes) -> bool:
    return len(password) <= _MAX_PASSWORD and hmac.compare_digest(apr1(password, salt), kept)


def apr1(password: bytes, salt: bytes) -> bytes:
    """Hash a password as `htpasswd -m` does: 1000 rounds of MD5 (APR's `apr_md5_encode`)."""
    inner = hashlib.md5(password + salt + password).digest()  # noqa: S324 - the format's own
    mixed = password + b"$apr1$" + salt + (inner * (len(password) // 16 + 1))[: len(password)]
    bits = len(password)
    while bits:
        mixed += b"\0" if bits & 1 else password[:1]
        bits >>= 1
    digest = hashlib.md5(mixed).digest()  # noqa: S324
    for round_number in range(1000):
        odd = round_number & 1
        text = password if odd else digest
        text += salt if round_number % 3 else b""
        text += password if round_number % 7 else b""
        digest = hashlib.md5(text + (digest if odd else password)).digest()  # noqa: S324
    letters = bytearray()
    for high, middle, low in _APR1_ORDER:
        letters += _base64(digest[high] << 16 | digest[middle] << 8 | digest[low], 4)
    letters += _base64(digest[11], 2)
    return b"$apr1$" + salt + b"$" + bytes(letters)


def _base64(number: int, count: int) -> bytes:
    return bytes(_ITOA64[number >> 6 * place & 63] for place in range(count))
