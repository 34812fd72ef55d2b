"""What can be looked at in a request, and how it is read."""

import pytest

from fakes.gateway.proxied import proxied
from fakes.gateway.requests import request_facts
from headgate.gateway.proxy.heads.body_fields import MAX_FIELDS, MAX_PARSED_BODY
from headgate.gateway.proxy.heads.facts import RequestFacts
from headgate.gateway.proxy.heads.head import RequestFields
from headgate.gateway.proxy.request_source import RequestSource

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
JSON = {"Content-Type": "application/json"}
PARTS = {"Content-Type": 'multipart/form-data; boundary="x"'}


def parts(*fields: bytes) -> bytes:
    return b"".join(b"--x\r\nContent-Disposition: form-data; " + each + b"\r\n" for each in fields) + b"--x--\r\n"


def field(facts: RequestFacts, name: str) -> str | None:
    fields = facts.body_fields()
    return None if fields is None else fields.first(name)


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
    ("query", "values", "split"),
    [
        ("a=1&b=2&%61=3&a", [b"1", b"3", b""], [b"1", b"3", b""]),
        ("a=1;b=2;a=3", [b"1;b=2;a=3"], [b"1", b"3"]),
        ("b=2;a=3", [], [b"3"]),
        ("b", [], []),
    ],
)
def test_all_values_of_a_parameter_are_found(query: str, values: list[bytes], split: list[bytes]) -> None:
    facts = request_facts(f"/?{query}")
    assert (facts.query_values(b"a"), facts.query_values(b"a", True)) == (values, split)
    facts.change_query(b"a=9")
    assert (facts.query_values(b"a"), facts.query_values(b"a", True)) == ([b"9"], [b"9"])


@pytest.mark.parametrize("semicolons", [False, True])
def test_a_query_is_read_once_for_all_routes(semicolons: bool) -> None:
    """Reading thousands of parameters takes milliseconds, and each route of a host may ask for one."""
    facts = request_facts("/?a=1;b=2")
    assert facts.query_values(b"a", semicolons) is facts.query_values(b"a", semicolons)


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
        (PARTS, parts(b'name="a"\r\n\r\n1', b'name="b"\r\n\r\n2', b'name="a"\r\n\r\n3'), "a", "1"),
        (PARTS, parts(b'name="a"\r\n\r\n1', b'name="b"\r\n\r\n'), "b", ""),
        (PARTS, parts(b'name="a"; filename="f"\r\nContent-Type: text/plain\r\n\r\nx\r\ny'), "a", "x\r\ny"),
        (PARTS, parts(b'name="a"\r\n\r\n\xff'), "a", "\ufffd"),
        (PARTS, parts(b'name="a"\r\n\r\n1')[:-6], "a", None),
        (PARTS, b"--y--\r\n", "a", None),
        ({"Content-Type": "multipart/form-data"}, parts(b'name="a"\r\n\r\n1'), "a", None),
        ({"Content-Type": "multipart/mixed; boundary=x"}, parts(b'name="a"\r\n\r\n1'), "a", None),
        (JSON, b'{"a": "' + b"x" * MAX_PARSED_BODY + b'"}', "a", None),
    ],
)
def test_body_fields_are_read(headers: dict[str, str], body: bytes, name: str, value: str | None) -> None:
    facts = request_facts(headers=headers, body=body)
    assert [field(facts, name), field(facts, name)] == [value, value]


def test_a_form_has_a_bounded_number_of_fields() -> None:
    body = b"&".join(b"f%d=1" % number for number in range(MAX_FIELDS + 1))
    facts = request_facts(headers=FORM, body=body)
    assert field(facts, f"f{MAX_FIELDS - 1}") == "1"
    assert field(facts, f"f{MAX_FIELDS}") is None


def test_a_form_in_parts_has_a_bounded_number_of_fields() -> None:
    fields = [b'name="f%d"\r\n\r\n1' % number for number in range(MAX_FIELDS + 1)]
    assert field(request_facts(headers=PARTS, body=parts(*fields[:-1])), f"f{MAX_FIELDS - 1}") == "1"
    assert field(request_facts(headers=PARTS, body=parts(*fields)), "f0") is None


@pytest.mark.parametrize(
    ("headers", "body", "name", "values"),
    [
        (JSON, b'{"m": [{"r": "a"}, {"r": 2}, {}, 3]}', "m.*.r", ["a", "2"]),
        (JSON, b'{"m": {"x": [1], "y": [2, 3]}}', "m.*.*", ["1", "2", "3"]),
        (JSON, b'{"m": {"x": [1], "y": [2, 3]}}', "*.*.1", ["3"]),
        (JSON, b'{"m": [1]}', "m.0", ["1"]),
        (JSON, b'{"m": 1}', "m.*", []),
        (JSON, b'{"m": []}', "m.*", []),
        (JSON, b"{", "*", []),
        (JSON, b"[" + b"1," * MAX_FIELDS + b"1]", "*", ["1"] * MAX_FIELDS),
        (FORM, b"*=1&a=2", "*", ["1"]),
        (FORM, b"a=2", "a.*", []),
    ],
)
def test_a_star_stands_for_each_member(headers, body: bytes, name: str, values: list[str]) -> None:
    fields = request_facts(headers=headers, body=body).body_fields()
    assert fields is not None
    assert fields.all(name) == values


def test_a_body_that_comes_later_is_read_then() -> None:
    facts = request_facts(headers=FORM)
    assert field(facts, "a") is None
    facts.body = b"a=1"
    assert field(facts, "a") == "1"


def test_what_ends_at_the_gateway_is_what_the_client_sent() -> None:
    facts = request_facts(headers={"X-A": "1"})
    facts.came = RequestFields()
    facts.came.take_found(
        ((b"Upgrade", b"connection", b"Connection", b"X-B"), (b"WebSocket ", b"Upgrade", b"x-b", b"2"))
    )
    assert facts.header(b"upgrade") == b"WebSocket"
    assert (facts.header(b"connection"), facts.header_values(b"connection")) == (b"Upgrade, x-b", [b"Upgrade", b"x-b"])
    assert [facts.header(name) for name in (b"x-a", b"x-b", b"te")] == [b"1", None, None]
    assert facts.header_values(b"te") == []


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
