"""Attributes of the cookie that keeps a client with its endpoint."""

import pytest

from headgate.common.table import Stickiness
from headgate.gateway.balancing.sessions import StickySession
from headgate.gateway.balancing.stickiness import StickyCookie
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
