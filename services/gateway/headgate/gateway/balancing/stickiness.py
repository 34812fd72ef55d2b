"""The cookie, or header, that keeps a client with its endpoint, and with its side of a canary."""

import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from headgate.common.table import Stickiness
from headgate.gateway.balancing.sessions import StickySession, parse_session
from headgate.gateway.errors import BadMatch

if TYPE_CHECKING:
    from headgate.gateway.proxy.heads.facts import RequestFacts

_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
"""RFC 6265 section 4.1.1 and RFC 9110 section 5.6.2, a token."""
_BEGAN = b"~"
"""Before the time when a session began, if sessions are bounded: seconds since 1970 in hexadecimal. A client that
forges it prolongs its own session, and no other."""
_ATTRIBUTE = re.compile(r"[ -:<-~]*")
"""RFC 6265 section 4.1.1: any character but controls and `;`."""
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_LONG_YEARS = 2038
"""From this year on the short form would be mistaken for one of the last century."""
_REJECTS_NONE = re.compile(
    rb"Chrome/[456]|CPU iPhone OS 12|iPad; CPU OS 12|^(?!.*Chrome)(?=.*Macintosh)(?=.*Intel Mac OS X 10_14)(?=.*Safari)"
)
"""Browsers that cannot take `SameSite=None`, as ingress-nginx tells them by their User-Agent; the list is that of
https://www.chromium.org/updates/same-site/incompatible-clients."""


class StickyCookie:
    """Reads and writes the cookie, or the header, of one route.

    Args:
        stickiness: what the table says.
        clock: Unix time.

    Raises:
        BadMatch: its name, path or domain cannot stand in a header.
    """

    __slots__ = (
        "_attributes",
        "_clock",
        "_expires_s",
        "_header",
        "_lifetime_s",
        "_name",
        "_same_site",
        "_secure",
        "is_by_backend",
        "is_by_url",
        "keeps_on_failure",
        "persists",
    )

    def __init__(self, stickiness: Stickiness, clock: Callable[[], float] = time.time) -> None:
        if bool(stickiness.cookie) == bool(stickiness.header):
            raise BadMatch("stickiness.cookie", "a session needs the name of a cookie or that of a header")
        for kind, name in (("cookie", stickiness.cookie), ("header", stickiness.header)):
            if name and not _NAME.fullmatch(name):
                raise BadMatch(f"stickiness.{kind}", f"{name!r} cannot be the name of a {kind}")
        for field, value in (("path", stickiness.path), ("domain", stickiness.domain)):
            if not _ATTRIBUTE.fullmatch(value):
                raise BadMatch(f"stickiness.{field}", f"{value!r} cannot stand in a cookie")
        self._name = stickiness.cookie.encode()
        self._header = stickiness.header.encode()
        self._lifetime_s = stickiness.lifetime_s
        self._secure = stickiness.secure
        self.is_by_url = stickiness.names == "url"
        """Whether endpoints are named by their URLs."""
        self.is_by_backend = stickiness.names == "backend"
        """Whether backends alone are named."""
        self.persists = stickiness.mode == "persistent"
        """Whether a session is kept for as long as its endpoint exists."""
        self.keeps_on_failure = (
            self.persists if stickiness.change_on_failure is None else not stickiness.change_on_failure
        )
        """Whether a session that can go on is kept when another endpoint had to answer."""
        self._expires_s = stickiness.expires_s
        self._clock = clock
        attributes = [f"Path={stickiness.path}"] if stickiness.path else []
        if stickiness.domain:
            attributes.append(f"Domain={stickiness.domain}")
        if stickiness.max_age_s is not None:
            attributes.append(f"Max-Age={stickiness.max_age_s}")
        if stickiness.http_only:
            attributes.append("HttpOnly")
        same_site = f"; SameSite={stickiness.same_site}".encode() if stickiness.same_site else b""
        is_conditional = stickiness.conditional_same_site and stickiness.same_site == "None"
        self._same_site = (b"", same_site) if is_conditional else (same_site, same_site)
        """For browsers that cannot take it, and for others."""
        self._attributes = "".join(f"; {attribute}" for attribute in attributes).encode()

    def read(self, facts: "RequestFacts") -> StickySession | None:
        """Return what the client's cookie says; None if it has none of ours."""
        value = facts.header(self._header.lower()) if self._header else facts.cookie(self._name)
        if self._lifetime_s is not None:
            value = self._unless_over(value or b"", self._lifetime_s)
        if self.is_by_url:
            return StickySession((), value) if value else None
        if self.is_by_backend:
            return StickySession((value,), b"") if value else None
        return parse_session(value)

    def _unless_over(self, value: bytes, lifetime_s: int) -> bytes | None:
        """Return a value without its time; None if that is too long ago, or there is none."""
        value, _, written = value.partition(_BEGAN)
        began_at = _began_at(written)
        return value if began_at is not None and 0 <= self._clock() - began_at < lifetime_s else None

    def line(self, facts: "RequestFacts", session: StickySession) -> bytes:
        """Return the header line, with its CRLF, that gives the client a session."""
        value = b".".join(filter(None, (*session.backends, session.endpoint)))
        if self._lifetime_s is not None:
            value += b"%b%x" % (_BEGAN, int(self._clock()))
        if self._header:
            return b"%b: %b\r\n" % (self._header, value)
        is_secure = facts.scheme == b"https" if self._secure is None else self._secure
        secure = b"; Secure" if is_secure else b""
        expires = b""
        if self._expires_s is not None:
            expires = b"; Expires=%b" % _cookie_date(self._clock() + self._expires_s).encode()
        rejected, usual = self._same_site
        same_site = usual
        if rejected != usual and _REJECTS_NONE.search(facts.header(b"user-agent") or b""):
            same_site = rejected
        attributes = b"%b%b%b%b" % (expires, self._attributes, same_site, secure)
        return b"Set-Cookie: %b=%b%b\r\n" % (self._name, value, attributes)


def _began_at(value: bytes) -> int | None:
    try:
        return int(value, 16)
    except ValueError:
        return None


def _cookie_date(at: float) -> str:
    """Write a time as nginx writes it into cookies: `Thu, 18-Nov-10 11:27:35 GMT`, with four digits from 2038 on."""
    when = time.gmtime(at)
    year = f"{when.tm_year % 100:02d}" if when.tm_year < _LONG_YEARS else str(when.tm_year)
    clock = f"{when.tm_hour:02d}:{when.tm_min:02d}:{when.tm_sec:02d}"
    return f"{_DAYS[when.tm_wday]}, {when.tm_mday:02d}-{_MONTHS[when.tm_mon - 1]}-{year} {clock} GMT"
