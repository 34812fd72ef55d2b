"""The cookie that keeps a client with its endpoint, and with its side of a canary."""

import re
from typing import TYPE_CHECKING

from headgate.common.table import Stickiness
from headgate.gateway.balancing.sessions import StickySession, parse_session
from headgate.gateway.errors import BadMatch

if TYPE_CHECKING:
    from headgate.gateway.proxy.heads.facts import RequestFacts

_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
"""RFC 6265 section 4.1.1, a token."""
_ATTRIBUTE = re.compile(r"[ -:<-~]*")
"""RFC 6265 section 4.1.1: any character but controls and `;`."""


class StickyCookie:
    """Reads and writes the cookie of one route.

    Raises:
        BadMatch: its name, path or domain cannot stand in a header.
    """

    __slots__ = ("_attributes", "_name", "_secure", "persists")

    def __init__(self, stickiness: Stickiness) -> None:
        if not _NAME.fullmatch(stickiness.cookie):
            raise BadMatch("stickiness.cookie", f"{stickiness.cookie!r} cannot be the name of a cookie")
        for field, value in (("path", stickiness.path), ("domain", stickiness.domain)):
            if not _ATTRIBUTE.fullmatch(value):
                raise BadMatch(f"stickiness.{field}", f"{value!r} cannot stand in a cookie")
        self._name = stickiness.cookie.encode()
        self._secure = stickiness.secure
        self.persists = stickiness.mode == "persistent"
        """Whether a session is kept for as long as its endpoint exists."""
        attributes = [f"Path={stickiness.path}"] if stickiness.path else []
        if stickiness.domain:
            attributes.append(f"Domain={stickiness.domain}")
        if stickiness.max_age_s is not None:
            attributes.append(f"Max-Age={stickiness.max_age_s}")
        if stickiness.http_only:
            attributes.append("HttpOnly")
        if stickiness.same_site:
            attributes.append(f"SameSite={stickiness.same_site}")
        self._attributes = "".join(f"; {attribute}" for attribute in attributes).encode()

    def read(self, facts: "RequestFacts") -> StickySession | None:
        """Return what the client's cookie says; None if it has none of ours."""
        return parse_session(facts.cookie(self._name))

    def line(self, facts: "RequestFacts", session: StickySession) -> bytes:
        """Return the header line, with its CRLF, that gives the client a session."""
        is_secure = facts.scheme == b"https" if self._secure is None else self._secure
        secure = b"; Secure" if is_secure else b""
        value = b".".join((*session.backends, session.endpoint))
        return b"Set-Cookie: %b=%b%b%b\r\n" % (self._name, value, self._attributes, secure)
