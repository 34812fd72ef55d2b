"""Rules for TCP: what they take, and what has no place in a stream's route."""

import pytest

from headgate.common.table import Compare, Condition, Not, Operator, Subject
from headgate.translator.dialects.traefik.rules import (
    RuleError,
    StreamAlternative,
    Syntax,
    parse_tcp_rule,
    stream_alternatives,
)


def read(rule: str, syntax: Syntax = "v3") -> tuple[StreamAlternative, ...]:
    return stream_alternatives(parse_tcp_rule(rule, syntax))


def _from(*networks: str) -> Compare:
    return Compare(subject=Subject.PEER, operator=Operator.NETWORK, values=networks)


@pytest.mark.parametrize(
    ("rule", "syntax", "names", "when"),
    [
        ("HostSNI(`*`)", "v3", (), None),
        ("HostSNI(`Db.Example.com.`)", "v3", ("db.example.com",), None),
        ("HostSNI(`*.example.com`)", "v3", ("*.example.com",), None),
        ("HostSNI(`a`) || HostSNI(`b`)", "v3", ("a", "b"), None),
        ("HostSNI(`a`, `b`)", "v2", ("a", "b"), None),
        ("HostSNI(`a`, `*`)", "v2", (), None),
        (r"HostSNIRegexp(`^db[0-9]\.com$`) || HostSNI(`a`)", "v3", (r"~^db[0-9]\.com$", "a"), None),
        ("HostSNIRegexp(`{n}.a`)", "v2", (r"~(?i)^(?:[^.]+)\.a$",), None),
        ("HostSNI(`a`) && ClientIP(`10.0.0.0/8`)", "v3", ("a",), _from("10.0.0.0/8")),
        ("(ClientIP(`10.0.0.1`) || ClientIP(`::1`)) && HostSNI(`*`)", "v3", (), _from("10.0.0.1/32", "::1/128")),
        ("ClientIP(`10.0.0.1`, `::1`) && HostSNI(`a`)", "v2", ("a",), _from("10.0.0.1/32", "::1/128")),
        ("ClientIP(`::1`)", "v3", (), _from("::1/128")),
        ("HostSNI(`a`) && !ClientIP(`::1`)", "v3", ("a",), Not(negated=_from("::1/128"))),
        ("!HostSNI(`a`)", "v3", (), Not(negated=Compare(subject=Subject.HOST, values=("a",)))),
        ("HostSNI(`a`) && !ALPN(`h2`)", "v3", ("a",), Not(negated=Compare(subject=Subject.ALPN, values=("h2",)))),
    ],
)
def test_names_and_conditions_are_a_route(
    rule: str, syntax: Syntax, names: tuple[str, ...], when: Condition | None
) -> None:
    assert read(rule, syntax) == (StreamAlternative(names, when=when),)


def test_names_with_networks_of_their_own_are_several_routes() -> None:
    assert read("HostSNI(`a`) && ClientIP(`10.0.0.0/8`) || HostSNI(`b`)") == (
        StreamAlternative(("a",), when=_from("10.0.0.0/8")),
        StreamAlternative(("b",)),
    )


def test_protocols_that_clients_offer_are_a_part_of_a_route() -> None:
    assert read("HostSNI(`a`) && (ALPN(`h2`) || ALPN(`h3`)) || HostSNI(`a`)") == (
        StreamAlternative(("a",), ("h2", "h3")),
        StreamAlternative(("a",)),
    )


@pytest.mark.parametrize(
    ("rule", "syntax", "error"),
    [
        ("HostSNI(`a b`)", "v3", "column 9: HostSNI: 'a b' is no server name"),
        ("HostSNI(`*.a`)", "v2", "column 9: HostSNI: '*.a' is no server name"),
        ("HostSNI(`a`, `b`)", "v3", "column 1: HostSNI has 2 arguments, expected 1"),
        ("HostSNIRegexp(`ü`)", "v3", "column 15: HostSNIRegexp: 'ü' has characters beyond ASCII"),
        ("HostSNIRegexp(`{`)", "v2", "column 15: HostSNIRegexp: '{' has braces that do not match"),
        ("ALPN(`acme-tls/1`)", "v3", "column 6: ALPN: 'acme-tls/1' is for certificates by ACME alone"),
        ("ALPN(`h2`, `acme-tls/1`)", "v2", "column 12: ALPN: 'acme-tls/1' is for certificates by ACME alone"),
        ("ClientIP(`x`)", "v3", "column 10: ClientIP: 'x' is neither an address nor a network"),
        ("Host(`a`)", "v3", "column 1: 'Host' is no matcher; perhaps HostSNI; there are ALPN, ClientIP, HostSNI"),
    ],
)
def test_a_wrong_argument_is_refused_at_its_column(rule: str, syntax: Syntax, error: str) -> None:
    with pytest.raises(RuleError) as raised:
        parse_tcp_rule(rule, syntax)
    assert str(raised.value).startswith(error)


def test_a_template_takes_the_names_that_it_describes() -> None:
    (test,) = parse_tcp_rule("HostSNIRegexp(`{name:[a-z]+}.example.com`)", "v2").tests[0]
    assert test.value == r"(?i)^(?:[a-z]+)\.example\.com$"


def test_any_server_name_alone_comes_last() -> None:
    assert parse_tcp_rule("HostSNI(`*`)").priority() == -1
    assert parse_tcp_rule("(HostSNI(`*`))", "v2").priority() == -1
    assert parse_tcp_rule("HostSNI(`*`)").priority(7) == 7
    assert parse_tcp_rule("HostSNI(`*`) && ClientIP(`::1`)").priority() == 31
