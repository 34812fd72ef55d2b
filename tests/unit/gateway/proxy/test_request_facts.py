"""What can be looked at in a request, and how it is read."""

import pytest

from fakes.proxied import proxied
from fakes.requests import request_facts
from headgate.gateway.proxy.facts import MAX_FORM_FIELDS, MAX_PARSED_BODY, RequestFacts
from headgate.gateway.proxy.seam import RequestSource

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [("/a?b=c", b"/a", b"b=c"), ("/a", b"/a", b""), ("/a?", b"/a", b""), ("/a?b?c", b"/a", b"b?c"), ("*", b"*", b"")],
)
def test_path_and_query_are_cut_at_the_first_question_mark(target: str, path: bytes, query: bytes) -> None:
    facts = request_facts(target)
    assert (facts.path, facts.query) == (path, query)


@pytest.mark.parametrize(
    ("query", "name", "value"),
    [
        ("a=1&a=2", b"a", b"1"),
        ("a=1&b=2", b"b", b"2"),
        ("a+b=c+d", b"a b", b"c d"),
        ("%61=%2B%zz", b"a", b"+%zz"),
        ("a=b=c", b"a", b"b=c"),
        ("a", b"a", b""),
        ("=x", b"", b"x"),
        ("a=%FF", b"a", b"\xff"),
        ("a;b=1", b"b", None),
        ("&&", b"", None),
        ("", b"a", None),
    ],
)
def test_query_values_are_decoded(query: str, name: bytes, value: bytes | None) -> None:
    assert request_facts(f"/?{query}").query_value(name) == value


@pytest.mark.parametrize(
    ("cookies", "name", "value"),
    [
        (["a=1; b=2"], b"b", b"2"),
        (["a=1;b=2"], b"b", b"2"),
        (["a=1; a=2"], b"a", b"1"),
        (["a=1", "b=2"], b"b", b"2"),
        (['a="x y"'], b"a", b'"x y"'),
        (["a=b=c"], b"a", b"b=c"),
        (["a"], b"a", None),
        (["=a"], b"", None),
        (["a="], b"a", b""),
        (["ab=1"], b"a", None),
        ([], b"a", None),
    ],
)
def test_cookies_are_read(cookies: list[str], name: bytes, value: bytes | None) -> None:
    assert request_facts(headers=tuple(("Cookie", text) for text in cookies)).cookie(name) == value


def test_headers_are_found_in_any_case_and_joined() -> None:
    facts = request_facts(headers=(("X-A", "One"), ("Y-X-A", "no"), ("x-a", "Two"), ("X-A-B", "x-a: no")))
    assert facts.header(b"x-a") == b"One, Two"
    assert facts.header(b"x") is None
    assert facts.header(b"x-a-b") == b"x-a: no"
    assert request_facts().header(b"x-a") is None


def test_the_host_is_a_header_too() -> None:
    assert request_facts(host="foo.com").header(b"host") == b"foo.com"
    assert request_facts(host="").header(b"host") is None


@pytest.mark.parametrize(
    ("headers", "body", "name", "value"),
    [
        (FORM, b"a=1&b=x+y%21&a=2", "a", "1"),
        (FORM, b"a=1&b=x+y%21&a=2", "b", "x y!"),
        (FORM, b"a=%ff", "a", "\ufffd"),
        (JSON, b'{"a": {"b": [1, {"c": "d"}]}}', "a.b.1.c", "d"),
        (JSON, b'{"a": {"b": [1, {"c": "d"}]}}', "a.b", '[1,{"c":"d"}]'),
        (JSON, b'{"a": 1.50, "b": 12345678901234567890, "c": null}', "a", "1.50"),
        (JSON, b'{"a": 1.50, "b": 12345678901234567890, "c": null}', "b", "12345678901234567890"),
        (JSON, b'{"a": 1.50, "b": 12345678901234567890, "c": null}', "c", "null"),
        (JSON, b"[[true]]", "0.0", "true"),
        (JSON, b"[1]", "1", None),
        (JSON, b"[1]", "-1", None),
        (JSON, b"[1]", "0.0", None),
        (JSON, b'{"a":', "a", None),
        (JSON, b'"\xff"', "a", None),
        (JSON, b"[" * 100_000, "0", None),
        (JSON, b"", "a", None),
        ({"Content-Type": "application/vnd.x+json; charset=utf-8"}, b'{"a": "b"}', "a", "b"),
        ({"Content-Type": "APPLICATION/JSON"}, b'{"a": "b"}', "a", "b"),
        ({"Content-Type": "text/json"}, b'{"a": "b"}', "a", None),
        ({}, b"a=1", "a", None),
        (JSON, b'{"a": "' + b"x" * MAX_PARSED_BODY + b'"}', "a", None),
    ],
)
def test_body_fields_are_read(headers: dict[str, str], body: bytes, name: str, value: str | None) -> None:
    facts = request_facts(headers=headers, body=body)
    assert [facts.body_field(name), facts.body_field(name)] == [value, value]


def test_a_form_has_a_bounded_number_of_fields() -> None:
    body = b"&".join(b"f%d=1" % number for number in range(MAX_FORM_FIELDS + 1))
    facts = request_facts(headers=FORM, body=body)
    assert facts.body_field(f"f{MAX_FORM_FIELDS - 1}") == "1"
    assert facts.body_field(f"f{MAX_FORM_FIELDS}") is None


def test_a_body_that_comes_later_is_read_then() -> None:
    facts = request_facts(headers=FORM)
    assert facts.body_field("a") is None
    facts.body = b"a=1"
    assert facts.body_field("a") == "1"


async def test_an_exchange_tells_routes_what_the_upstream_will_see() -> None:
    seen: list[RequestFacts] = []
    async with proxied() as running:
        match = running.router.match

        def look(host: bytes, path: bytes, source: RequestSource) -> object:
            seen.append(source.facts())
            assert source.facts() is seen[-1]
            return match(host, path, source)

        running.router.match = look  # type: ignore[method-assign,assignment]
        for number in range(2):
            head = f"GET /{number}?q=1 HTTP/1.1\r\nHost: Foo.com\r\nX-A: {number}\r\nX-Forwarded-For: 10.9.9.9\r\n"
            await running.talk(f"{head}Connection: close\r\n\r\n".encode())
    assert [(facts.path, facts.header(b"x-a")) for facts in seen] == [(b"/0", b"0"), (b"/1", b"1")]
    first = seen[0]
    assert (first.method, first.scheme, first.host, first.client) == (b"GET", b"http", b"foo.com", b"127.0.0.1")
    assert first.header(b"x-forwarded-for") == b"127.0.0.1"
    assert first.body in (None, b"")
