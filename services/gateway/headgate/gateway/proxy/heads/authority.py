"""Authorities: checked, and made hosts that routes are found by."""

from typing import Final

from headgate.gateway.proxy.errors import FramingError
from headgate.gateway.proxy.heads.grammar import ABSOLUTE_TARGET, HOST

_MAX_LENGTH: Final = 261
"""A name of 255 bytes, a colon and a port."""
_HOSTS: Final[dict[bytes, bytes]] = {}
"""Of authorities that were checked lately."""
_REMEMBERED_HOSTS: Final = 4096


def normal_host(authority: bytes) -> bytes:
    """Check an authority and give its host for routing: lower case, without port and trailing dot."""
    return _HOSTS.get(authority) or _check_host(authority)


def _check_host(authority: bytes) -> bytes:
    if len(authority) > _MAX_LENGTH:
        raise FramingError("Host too long")
    found = HOST.fullmatch(authority)
    if found is None or (found[2] and int(found[2]) > 65535):
        raise FramingError("malformed Host")
    host: bytes = found[1].lower()
    host = host.removesuffix(b".") if host != b"." else host
    if len(_HOSTS) >= _REMEMBERED_HOSTS:
        _HOSTS.clear()
    _HOSTS[authority] = host
    return host


def split_target(target: bytes) -> tuple[bytes, bytes] | None:
    """Cut an absolute-form target (RFC 9112 section 3.2.2) into authority and origin-form; None for any other form."""
    found = ABSOLUTE_TARGET.fullmatch(target)
    if found is None:
        return None
    rest = found[2] or b"/"
    return found[1], rest if rest.startswith(b"/") else b"/" + rest
