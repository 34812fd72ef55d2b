"""Paths that servers read in different ways: one reading for the choice of a route and for the upstream.

A gateway that takes `/public/../admin` for something under `/public`, before an upstream that takes it for `/admin`,
gives away whatever the route of `/admin` guards. So a path is matched in the form that a server arrives at which
decodes and resolves all that servers commonly do: escapes of unreserved characters (RFC 3986 section 6.2.2.2), slashes
of all kinds, empty segments, dot segments. What is forwarded differs from what was sent only in its dot segments, which
are resolved, so that nothing is left about which an upstream could think otherwise; the rest stays as sent, as `%2F` in
a segment and `//` mean something to some upstreams. Where careful servers come to different results there is no right
reading, and the request is refused.

The alternative rejected is nginx's, which matches the resolved path and forwards the other one: it is right only where
the upstream resolves in the same way. It is there as `match`.
"""

import re
from typing import Final, Literal

PathNormalization = Literal["off", "match", "rewrite", "strict"]

_ESCAPE: Final = re.compile(rb"%[0-9A-Fa-f]{2}")
_MEANT: Final[dict[bytes, bytes]] = {
    b"%%%02X" % code: bytes((code,)) for code in b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
}
_UNSETTLED: Final = re.compile(
    rb"%(?:2[DEde]|3[0-9]|4[1-9A-Fa-f]|5[0-9AFaf]|6[1-9A-Fa-f]|7[0-9AEae]|[0-9A-Fa-f][a-f]|[a-f][0-9A-Fa-f])"
)
"""Escapes of unreserved characters, and such in lower case."""
_BAD_ESCAPE: Final = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_DECODABLE: Final = re.compile(rb"%(?!2[13-9A-CF]|3[ABDF]|40|5[BD])[0-9A-F]{2}")
"""Escapes, in upper case, of other characters than the reserved ones and `%`."""
_SLASHES: Final = re.compile(rb"%2[Ff]|%5[Cc]|\\")
_DOT_SEGMENT: Final = re.compile(rb"/\.\.?+(?=[/;]|\Z)")
"""With path parameters behind it too: Java's servers cut these off before they resolve."""
_DOT_PARAMETER: Final = re.compile(rb"/\.\.?+;")
_EMPTY_SEGMENTS: Final = re.compile(rb"//++")
_PERCENT: Final = 0x25
_BACKSLASH: Final = 0x5C


def is_plain(path: bytes) -> bool:
    """Tell whether all servers read a path alike: it has no `//`, no `/.`, no `%` and no backslash.

    A pattern, and `find`, take several times as long; for `bytes in bytes` CPython 3.11 raises and clears an exception.
    """
    if _PERCENT in path or _BACKSLASH in path:
        return False
    return not (path.partition(b"//")[1] or path.partition(b"/.")[1])


def _meaning(found: "re.Match[bytes]") -> bytes:
    escape = found[0].upper()
    return _MEANT.get(escape, escape)


def plain_escapes(path: bytes) -> bytes:
    """Decode the escapes of unreserved characters, and write the others in upper case."""
    return _UNSETTLED.sub(_meaning, path) if _PERCENT in path else path


def _is_ambiguous(plain: bytes) -> bool:
    """Tell whether servers disagree on a path whose escapes were decoded once: in `%2%65` those that leave the half
    escape alone find `%2e`, and those that decode once more a dot.
    """
    return b"%00" in plain or _UNSETTLED.search(plain) is not None


def decode_path(path: bytes) -> bytes:
    """Decode all escapes of a path, as `plain_escapes` gives it, but those of reserved characters and of `%`."""
    return _DECODABLE.sub(_decoded, path) if _PERCENT in path else path


def resolve_dots(path: bytes, *, stays_at_root: bool = False) -> bytes | None:
    """Remove dot segments (RFC 3986 section 5.2.4) from a path that begins with a slash.

    None: they lead above it. With `stays_at_root` those that would are left out, as the RFC has it.
    """
    kept: list[bytes] = []
    segments = path.split(b"/")
    for segment in segments[1:]:
        if segment == b"..":
            if kept:
                kept.pop()
            elif not stays_at_root:
                return None
        elif segment != b".":
            kept.append(segment)
    if segments[-1] == b"." or segments[-1] == b"..":
        kept.append(b"")
    return b"/" + b"/".join(kept)


def has_dot_segments(path: bytes) -> bool:
    """Tell whether some server might find dot segments in a path."""
    return _DOT_SEGMENT.search(_SLASHES.sub(b"/", plain_escapes(path))) is not None


def clean(path: bytes) -> tuple[bytes, bytes] | None:
    """Read a path as Traefik does: escapes decoded, slashes merged, dot segments resolved, and that is forwarded.

    Gives the same two paths as `normalize`, of which the first is the same wherever that has one. As all is resolved
    that is forwarded, paths that climb can be read so too. None: a server could find dot segments in what is left.
    """
    plain = plain_escapes(path)
    cleaned = resolve_dots(_EMPTY_SEGMENTS.sub(b"/", plain), stays_at_root=True)
    if cleaned is None or _is_ambiguous(plain):
        return None
    slashed = _SLASHES.sub(b"/", cleaned)
    if _DOT_SEGMENT.search(slashed) is not None:
        return None
    return _EMPTY_SEGMENTS.sub(b"/", slashed), cleaned


def has_bad_escape(path: bytes) -> bool:
    """Tell whether a path has a `%` without two hexadecimal digits."""
    return _BAD_ESCAPE.search(path) is not None


def normalize(path: bytes, mode: PathNormalization) -> tuple[bytes, bytes] | None:
    """Read a path that begins with a slash; None: it is to be refused.

    Gives the path that routes are asked for, and the path that is forwarded. Only paths that are not plain need this.
    """
    plain = plain_escapes(path)
    if mode == "off":
        return plain, path
    if _is_ambiguous(plain):
        return None
    slashed = _SLASHES.sub(b"/", plain)
    merged = _EMPTY_SEGMENTS.sub(b"/", slashed)
    has_dots = _DOT_SEGMENT.search(slashed) is not None
    matched = resolve_dots(merged) if has_dots else merged
    if matched is None:
        return None
    if mode == "match":
        return matched, path
    if mode == "strict":
        return (path, path) if not has_dots and matched == _upper_escapes(path) else None
    if not has_dots:
        return matched, path
    if slashed != plain or merged != slashed or _DOT_PARAMETER.search(slashed) is not None:
        # What `..` removes depends on what counts as a segment.
        return None
    return matched, matched


def _decoded(found: "re.Match[bytes]") -> bytes:
    return bytes((int(found[0][1:], 16),))


def _upper_escapes(path: bytes) -> bytes:
    return _ESCAPE.sub(_in_upper_case, path)


def _in_upper_case(found: "re.Match[bytes]") -> bytes:
    escape: bytes = found[0].upper()
    return escape
