import pytest

from headgate.gateway.plugins.kit.patterns import Substitution, Template, sendable
from unit.gateway.plugins.running import request

ASKED = request(
    "/p/a%20b?q=1&q=2&empty=",
    [("X-One", "1"), ("Cookie", "a=1; b=2"), ("Cookie", "c=3")],
    scheme="https",
    port=8443,
    authority="a.example:8443",
)


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("plain", "plain"),
        ("$scheme://$http_host$request_uri", "https://a.example:8443/p/a%20b?q=1&q=2&empty="),
        ("${host}:$server_port", "a.example:8443"),
        ("$uri$is_args$args", "/p/a%20b?q=1&q=2&empty="),
        ("$arg_q|$arg_empty|$arg_none", "1||"),
        ("$cookie_b$cookie_c", "23"),
        ("$http_x_one$http_none", "1"),
        ("$http_x_request_id $request_id", "id-1 id-1"),
        ("$escaped_request_uri", "%2Fp%2Fa%2520b%3Fq%3D1%26q%3D2%26empty%3D"),
        ("$1-${2}-$3", "x-y-"),
        ("$ $$ 5$", "$ $$ 5$"),
        ("$nothing_of_this_name", ""),
        ("ü", "Ã¼"),
    ],
)
def test_template_is_filled_in(text, rendered) -> None:
    assert Template(text).render(ASKED, ("x", "y")) == rendered


def test_what_plugins_say_goes_before_the_table() -> None:
    given = request()
    given.variables["host"] = "mine"
    given.variables["not_text"] = 1
    assert Template("$host$not_text").render(given) == "mine"


def test_first_match_is_replaced_and_the_rest_stays() -> None:
    changed = Substitution("(b+)(x)?", "[$1$2]").apply("abba bb", request())
    assert changed == ("a[bb]a bb", ("bb", ""))


def test_what_does_not_match_is_none() -> None:
    assert Substitution("z", "y").apply("abc", request()) is None


def test_bytes_that_are_no_utf_8_do_not_slip_past_a_pattern() -> None:
    assert Substitution("^/(.*)/admin", "/$1").apply("/\xff\xfe/admin", request()) == ("/\xff\xfe", ("\xff\xfe",))


def test_target_is_made_sendable() -> None:
    assert sendable("/a b\r\n#\xfc%20?x={y}") == "/a%20b%0D%0A%23%FC%20?x={y}"
