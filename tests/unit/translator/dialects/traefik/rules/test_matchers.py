"""What each matcher of both syntaxes asks of a request, and what it refuses."""

import pytest

from headgate.common.table import AllOf, AnyOf, Compare, Condition, Not, Operator, PathMatch, PathType, Subject
from headgate.translator.dialects.traefik.rules import Alternative, RuleError, Syntax, alternatives, parse_rule

ANY_PATH = PathMatch(type=PathType.STRING_PREFIX, value="/")


def read(rule: str, syntax: Syntax = "v3") -> tuple[Alternative, ...]:
    return alternatives(parse_rule(rule, syntax))


def condition(rule: str, syntax: Syntax = "v3") -> Condition | None:
    ((host, path, when),) = read(rule, syntax)
    assert (host, path) == ("*", ANY_PATH)
    return when


def _parameter(name: str, *patterns: str) -> Compare:
    operator = Operator.REGEX if patterns else Operator.PRESENT
    return Compare(subject=Subject.QUERY, name=name, operator=operator, values=patterns, semicolons=True)


@pytest.mark.parametrize(
    ("rule", "host"),
    [
        ("Host(`Shop.Example.com`)", "shop.example.com"),
        ("Host(`example.com.`)", "example.com"),
        ("Host(`*`)", "*"),
        ("Host(`*.Example.com`)", "*.example.com"),
        ("Host(`::1`)", "[::1]"),
        ("Host(`10.0.0.1`)", "10.0.0.1"),
        (r"HostRegexp(`^www\.example\.com$`)", "www.example.com"),
        (r"HostRegexp(`^[a-z]+$`)", "~^[a-z]+$"),
        (r"HostRegexp(`example\.com`)", r"~example\.com"),
    ],
)
def test_a_host_is_the_route_s_host(rule: str, host: str) -> None:
    assert read(rule) == (Alternative(host, ANY_PATH, None),)


@pytest.mark.parametrize(
    ("pattern", "host"),
    [
        (r"^[a-z]+\.example\.com$", "**.example.com"),
        (r"(?i)^.+\.Example\.com$", "**.example.com"),
        (r"(^[a-z]+\.example\.com$)", "**.example.com"),
        (r"a@b", "*"),
    ],
)
def test_a_host_pattern_that_ends_plainly_is_found_by_its_end(pattern: str, host: str) -> None:
    when = Compare(subject=Subject.HOST, operator=Operator.REGEX, values=(pattern,))
    assert read(f"HostRegexp(`{pattern}`)") == (Alternative(host, ANY_PATH, when),)


@pytest.mark.parametrize(
    "pattern", [r"^a\.example\.com$|b", r"^.+\\.com$", r"^.+\.com\$", r"^.+[\.com$]", r"\Qa\.com$"]
)
def test_a_host_pattern_whose_end_is_not_plain_stays_a_pattern(pattern: str) -> None:
    assert [one.host for one in read(f"HostRegexp(`{pattern}`)")] == [f"~{pattern}"]


def test_hosts_of_v2_are_alternatives() -> None:
    assert [one.host for one in read("Host(`a.com`, `b.com`)", "v2")] == ["a.com", "b.com"]
    assert [one.host for one in read("HostHeader(`a.com`)", "v2")] == ["a.com"]


@pytest.mark.parametrize(
    "rule", ["Host(`*.example.com`)", "Host(`*`)", "Host(`a b`) && Method(`GET`)", "Host(`a.com:80`)"]
)
def test_hosts_that_no_request_has_make_no_route(rule: str) -> None:
    assert read(rule, "v2") == ()


@pytest.mark.parametrize(
    ("template", "host", "pattern"),
    [
        ("{name}.example.com", "**.example.com", r"(?i)^(?:[^.]+)\.example\.com$"),
        ("{name:[a-z]{2}}.example.com", "**.example.com", r"(?i)^(?:[a-z]{2})\.example\.com$"),
        ("{any:.+}", r"~(?i)^(?:.+)$", None),
    ],
)
def test_a_template_for_hosts_is_a_pattern(template: str, host: str, pattern: str | None) -> None:
    when = pattern and Compare(subject=Subject.HOST, operator=Operator.REGEX, values=(pattern,))
    assert read(f"HostRegexp(`{template}`)", "v2") == (Alternative(host, ANY_PATH, when or None),)


@pytest.mark.parametrize(
    ("rule", "syntax", "path_type", "value"),
    [
        ("Path(`/cart`)", "v3", PathType.EXACT, "/cart"),
        ("PathPrefix(`/api`)", "v3", PathType.STRING_PREFIX, "/api"),
        ("Path(`/a b`)", "v3", PathType.EXACT, "/a%20b"),
        ("PathPrefix(`/a%2Fb`)", "v3", PathType.STRING_PREFIX, "/a%2Fb"),
        ("Path(`/{a}`)", "v3", PathType.REGEX, r"^/\{a\}$"),
        ("PathPrefix(`/é`)", "v3", PathType.REGEX, r"^/é"),
        ("Path(`/cart`)", "v2", PathType.EXACT, "/cart"),
        ("Path(`/cart/{id}`)", "v2", PathType.REGEX, "^/cart/(?:[^/]+)$"),
        ("PathPrefix(`/v{n:[0-9]+}/x.y`)", "v2", PathType.REGEX, r"^/v(?:[0-9]+)/x\.y"),
    ],
)
def test_a_path_is_the_route_s_path(rule: str, syntax: Syntax, path_type: PathType, value: str) -> None:
    match = PathMatch(type=path_type, value=value, decoded=path_type is PathType.REGEX)
    assert read(rule, syntax) == (Alternative("*", match, None),)


@pytest.mark.parametrize(("pattern", "value"), [("^/a", "^/a"), ("b$", "(?s:.*)(?:b$)"), ("^/a|b", "(?s:.*)(?:^/a|b)")])
def test_a_pattern_is_looked_for_anywhere_in_a_path(pattern: str, value: str) -> None:
    assert read(f"PathRegexp(`{pattern}`)")[0].path == PathMatch(type=PathType.REGEX, value=value, decoded=True)


@pytest.mark.parametrize(
    ("rule", "operator", "value"),
    [
        ("Path(`/a b`)", Operator.EQUALS, "/a b"),
        ("PathPrefix(`/é`)", Operator.REGEX, "^/é"),
        ("PathPrefix(`/a`)", Operator.PREFIX, "/a"),
        ("PathRegexp(`b`)", Operator.REGEX, "b"),
    ],
)
def test_a_path_that_must_not_be_is_a_condition(rule: str, operator: Operator, value: str) -> None:
    compare = Compare(subject=Subject.DECODED_PATH, operator=operator, values=(value,))
    assert condition(f"!{rule}") == Not(negated=compare)


@pytest.mark.parametrize(
    ("rule", "when"),
    [
        ("Method(`get`)", Compare(subject=Subject.METHOD, values=("GET",))),
        ("ClientIP(`10.1.2.3/8`)", Compare(subject=Subject.PEER, operator=Operator.NETWORK, values=("10.0.0.0/8",))),
        (
            "ClientIP(`::ffff:10.0.0.1`)",
            Compare(subject=Subject.PEER, operator=Operator.NETWORK, values=("10.0.0.1/32",)),
        ),
        ("Header(`X-A`, `1`)", Compare(subject=Subject.HEADER, name="X-A", values=("1",), any_value=True)),
        (
            "HeaderRegexp(`X-A`, `1+`)",
            Compare(subject=Subject.HEADER, name="X-A", operator=Operator.REGEX, values=("1+",), any_value=True),
        ),
        ("Header(`Host`, `a`) || Method(`GET`)", Compare(subject=Subject.METHOD, values=("GET",))),
        ("Query(`a`, `1`)", Compare(subject=Subject.QUERY, name="a", values=("1",), any_value=True, semicolons=True)),
        ("Query(`a`)", Compare(subject=Subject.QUERY, name="a", values=("",), any_value=True, semicolons=True)),
        ("QueryRegexp(`a`)", Compare(subject=Subject.QUERY, name="a", values=("",), any_value=True, semicolons=True)),
        (
            "QueryRegexp(`a`, `1+`)",
            Compare(
                subject=Subject.QUERY,
                name="a",
                operator=Operator.REGEX,
                values=("1+",),
                any_value=True,
                semicolons=True,
            ),
        ),
        ("!Method(`GET`)", Not(negated=Compare(subject=Subject.METHOD, values=("GET",)))),
    ],
)
def test_a_matcher_of_v3_is_a_condition(rule: str, when: Condition) -> None:
    assert condition(rule) == when


_A, _B = (Compare(subject=Subject.HEADER, name=name, values=("1",), any_value=True) for name in ("A", "B"))


@pytest.mark.parametrize(
    ("rule", "when"),
    [
        ("Method(`get`, `POST`)", Compare(subject=Subject.METHOD, values=("GET", "POST"))),
        (
            "ClientIP(`::1`, `10.0.0.0/8`)",
            Compare(subject=Subject.PEER, operator=Operator.NETWORK, values=("::1/128", "10.0.0.0/8")),
        ),
        ("Headers(`A`, `1`)", _A),
        ("Headers(`A`, `2`, `A`, `1`, `B`, `1`)", AllOf(all_of=(_A, _B))),
        (
            "HeadersRegexp(`A`, `1+`)",
            Compare(subject=Subject.HEADER, name="A", operator=Operator.REGEX, values=("1+",), any_value=True),
        ),
        ("Query(`a=1`)", _parameter("a", "^1$")),
        ("Query(`a=`)", _parameter("a")),
        ("Query(`a`, `1`)", _parameter("a", "^1$")),
        (
            "Query(`a={n:[0-9]+}`, `b={x}`)",
            AllOf(
                all_of=tuple(_parameter(name, pattern) for name, pattern in (("a", "^(?:[0-9]+)$"), ("b", "^(?:.*)$")))
            ),
        ),
    ],
)
def test_a_matcher_of_v2_is_a_condition(rule: str, when: Condition) -> None:
    assert condition(rule, "v2") == when


@pytest.mark.parametrize(
    ("rule", "syntax", "error"),
    [
        ("Host()", "v3", "column 1: Host has 0 arguments, expected 1: Host(`example.com`)"),
        ("Host(`a`, `b`)", "v3", "column 1: Host has 2 arguments, expected 1"),
        ("Query(`a`, `b`, `c`)", "v3", "column 1: Query has 3 arguments, expected 1 or 2"),
        ("Headers(`a`)", "v2", "column 1: Headers has 1 arguments, expected 2 at least"),
        ("Host(`a`, ``)", "v2", "column 11: Host has an empty argument"),
        (
            "Host(`müller.de`)",
            "v3",
            "column 6: Host: 'müller.de' has characters beyond ASCII, and no request has them in "
            "its host: write 'xn--mller-kva.de'",
        ),
        ("HostRegexp(`ü`)", "v3", "column 12: HostRegexp: 'ü' has characters beyond ASCII"),
        ("HostRegexp(`ü`)", "v2", "column 12: HostRegexp: 'ü' has characters beyond ASCII"),
        ("HostRegexp(`a(`)", "v3", "column 12: HostRegexp: 'a(' is no RE2 pattern"),
        ("Path(`cart`)", "v3", "column 6: Path: the path 'cart' does not begin with a slash: write '/cart'"),
        ("PathPrefix(`{a}`)", "v2", "column 12: PathPrefix: the path '{a}' does not begin with a slash"),
        ("Path(`/a`, `/{`)", "v2", "column 12: Path: '/{' has braces that do not match"),
        ("Path(`/}{`)", "v2", "column 6: Path: '/}{' has braces that do not match"),
        ("Path(`/{}`)", "v2", "column 6: Path: '{}' lacks a name or a pattern: write {name} or {name:pattern}"),
        ("Path(`/{a:}`)", "v2", "column 6: Path: '{a:}' lacks a name or a pattern"),
        ("Path(`/{a:(}`)", "v2", "column 6: Path: '(' is no RE2 pattern"),
        ("PathRegexp(`(?=a)`)", "v3", "column 12: PathRegexp: '(?=a)' is no RE2 pattern"),
        ("HeaderRegexp(`A`, `[`)", "v3", "column 19: HeaderRegexp: '[' is no RE2 pattern"),
        ("QueryRegexp(`a`, `[`)", "v3", "column 18: QueryRegexp: '[' is no RE2 pattern"),
        ("Headers(`A`, `1`, `B`)", "v2", "column 19: Headers: 'B' has no value: names and values stand in turn"),
        ("Query(`a`)", "v2", "column 7: Query: 'a' has no value: write name=value"),
        ("Query(`=1`)", "v2", "column 1: Query: a parameter without a name has no place in a route"),
        ("Query(`{a}=1`)", "v2", "column 1: Query: '{a}' has braces, which are for the value"),
        ("ClientIP(`10.0.0.256`)", "v3", "column 10: ClientIP: '10.0.0.256' is neither an address nor a network"),
        ("ClientIP(`10.0.0.0/255.0.0.0`)", "v3", "column 10: ClientIP: '10.0.0.0/255.0.0.0' is neither"),
        ("ClientIP(`fe80::1%eth0`)", "v3", "column 10: ClientIP: 'fe80::1%eth0' is neither"),
        ("ClientIP(`::1`, `x`)", "v2", "column 17: ClientIP: 'x' is neither an address nor a network"),
    ],
)
def test_a_wrong_argument_is_refused_at_its_column(rule: str, syntax: Syntax, error: str) -> None:
    with pytest.raises(RuleError) as raised:
        parse_rule(rule, syntax)
    assert str(raised.value).startswith(error)


def test_a_rule_counts_as_long_as_its_bytes() -> None:
    assert parse_rule("Path(`/é`)").priority() == 11
    assert parse_rule("Path(`/é`)").priority(-5) == -5


def test_priorities_that_traefik_keeps_are_refused() -> None:
    assert parse_rule("Path(`/`)").priority(9223372036854774807) == 9223372036854774807
    for given in (9223372036854774808, -9223372036854775809):
        with pytest.raises(ValueError, match=f" and 9223372036854774807 at most, not {given}"):
            parse_rule("Path(`/`)").priority(given)


def test_a_rule_without_a_condition_left_is_never() -> None:
    assert read("Header(`Host`, `a`)") == ()
    assert read("!Header(`Host`, `a`)") == (Alternative("*", ANY_PATH, Not(negated=AnyOf(any_of=()))),)
