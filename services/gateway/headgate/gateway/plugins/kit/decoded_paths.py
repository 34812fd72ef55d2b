"""Paths as servers read them that decode and resolve all they can: what decisions about a path go by.

Routes are matched by the same reading (`proxy.heads.paths`); the upstream gets the path as it was sent, and may read
it so.
"""

from urllib.parse import unquote_to_bytes

from headgate.gateway.proxy.heads.paths import is_plain, normalize


def decoded(path: str) -> bytes:
    """Return what a path means: `/admin` for `/%61dmin` and for `//admin`."""
    raw = path.encode("latin-1")
    if is_plain(raw):
        return raw
    read = normalize(raw, "match") if raw.startswith(b"/") else None
    return unquote_to_bytes(raw if read is None else read[0])


def decoded_text(path: str) -> str:
    """Return the same as text, for policies that people write."""
    return decoded(path).decode("utf-8", "replace")
