"""Attributes of the cookie that keeps a client with its endpoint."""

import pytest

from headgate.common.table import Stickiness
from headgate.gateway.balancing.sessions import StickySession
from headgate.gateway.balancing.stickiness import StickyCookie
from headgate.gateway.errors import BadMatch
from headgate.gateway.proxy.heads.facts import RequestFacts

FACTS = RequestFacts(b"GET", b"http", b"a.example", b"/", b"", b"192.0.2.1")


@pytest.mark.parametrize(
    ("now", "date"),
    [
        (1290079655.0, "Thu, 18-Nov-10 11:27:35 GMT"),
        (2145916799.0, "Thu, 31-Dec-37 23:59:59 GMT"),
        (2145916800.0, "Fri, 01-Jan-2038 00:00:00 GMT"),
    ],
)
def test_end_of_a_cookie_is_written_as_nginx_writes_it(now: float, date: str) -> None:
    cookie = StickyCookie(Stickiness(cookie="route", expires_s=60, max_age_s=60), lambda: now - 60)
    line = cookie.line(FACTS, StickySession((b"a",), b"b"))
    assert line.decode() == f"Set-Cookie: route=a.b; Expires={date}; Path=/; Max-Age=60; HttpOnly\r\n"


SESSION = StickySession((b"a",), b"b")


def with_header(name: bytes, value: bytes) -> RequestFacts:
    return RequestFacts(b"GET", b"http", b"a.example", b"/", b"%b: %b\r\n" % (name, value), b"192.0.2.1")


def test_a_session_by_a_header_is_the_value_of_the_header_alone() -> None:
    header = StickyCookie(Stickiness(header="X-Kept"))
    assert header.line(FACTS, SESSION) == b"X-Kept: a.b\r\n"
    assert header.read(with_header(b"x-kept", b"a.b")) == SESSION
    assert header.read(FACTS) is None


@pytest.mark.parametrize(
    ("value", "at", "is_over"),
    [
        (b"a.b~64", 100.0, False),
        (b"a.b~64", 159.9, False),
        (b"a.b~64", 160.0, True),
        (b"a.b~64", 99.0, True),
        (b"a.b", 100.0, True),
        (b"a.b~x", 100.0, True),
    ],
)
def test_a_session_ends_so_long_after_it_began(value: bytes, at: float, is_over: bool) -> None:
    sessions = StickyCookie(Stickiness(header="X-Kept", lifetime_s=60), lambda: at)
    assert sessions.read(with_header(b"X-Kept", value)) == (None if is_over else SESSION)


def test_a_session_with_an_end_says_when_it_began() -> None:
    sessions = StickyCookie(Stickiness(cookie="kept", lifetime_s=60, http_only=False), lambda: 100.5)
    assert sessions.line(FACTS, SESSION) == b"Set-Cookie: kept=a.b~64; Path=/\r\n"


@pytest.mark.parametrize("named", [{}, {"cookie": "a", "header": "b"}])
def test_a_session_has_one_name(named: dict[str, str]) -> None:
    with pytest.raises(BadMatch, match="needs the name of a cookie or that of a header"):
        StickyCookie(Stickiness.model_validate(named))
