"""Reading what somebody pastes: a URL, or a curl command."""

import pytest

from headgate.common.traffic import TappedRequest
from headgate.console.pages.curl import of_past, read_request
from headgate.operations.errors import InvalidRequest


@pytest.mark.parametrize(
    ("text", "method", "url", "headers"),
    [
        ("http://a.example/x", "GET", "http://a.example/x", ()),
        ("a.example/x?y=1", "GET", "http://a.example/x?y=1", ()),
        ("DELETE https://a.example/", "DELETE", "https://a.example/", ()),
        ("curl http://a.example/", "GET", "http://a.example/", ()),
        ("curl -sSv -o /dev/null http://a.example/", "GET", "http://a.example/", ()),
        ("curl -I a.example", "HEAD", "http://a.example", ()),
        ("curl -XPUT http://a.example/ -d x=1", "PUT", "http://a.example/", ()),
        ("curl --data-raw '{}' --url http://a.example/", "POST", "http://a.example/", ()),
        ("curl -H'Host: b.example' http://10.0.0.1/", "GET", "http://10.0.0.1/", (("Host", "b.example"),)),
        (
            "curl 'http://a.example/' \\\n  -H 'Cookie: a=b' --user-agent=x",
            "GET",
            "http://a.example/",
            (("Cookie", "a=b"), ("User-Agent", "x")),
        ),
        ("curl --request=POST -b s=1 http://a.example/", "POST", "http://a.example/", (("Cookie", "s=1"),)),
    ],
)
def test_what_is_pasted_is_read(text: str, method: str, url: str, headers: tuple[tuple[str, str], ...]) -> None:
    found = read_request(text)
    assert (found.method, found.url, found.headers) == (method, url, headers)


@pytest.mark.parametrize(
    "text", ["", "curl", "curl -H nonsense http://a.example/", "a b c", "curl 'open", "ftp://a/", "http://[::1/"]
)
def test_what_is_no_request_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        read_request(text)


def test_a_request_of_the_past_is_asked_about_as_it_came() -> None:
    past = TappedRequest((), 1.0, "GET", "a.example", "/x", 502, 0.1, 0, *[""] * 6, scheme="https")
    assert of_past(past) == ("GET", "https://a.example/x", ())


def test_the_question_is_a_command() -> None:
    command = read_request("curl -H 'Cookie: a=b; c' 'http://a.example/x?y=1&z'").command
    assert command == "headgate explain GET 'http://a.example/x?y=1&z' -H 'Cookie: a=b; c'"
