"""Which rules are refused: the same ones are given to Traefik and to the parser."""

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from fakes.peers.traefik import ENTRY_POINT, needs_traefik, traefik
from headgate.translator.dialects.traefik.rules import RuleError, Syntax, parse_rule, parse_tcp_rule

pytestmark = needs_traefik

HTTP_V3 = (
    "Host(`a`)",
    "HOST(`a`)",
    "host(`a`)",
    "hOST(`a`)",
    "Hostregexp(`a`)",
    "Host(`a`,)",
    'Host("a\\x41\\u00e9")',
    'Host("\\101\\t")',
    'Host("\\\'")',
    'Host("\\.")',
    'Host("\\400")',
    'Host("\\ud800")',
    "Host('a')",
    "Host(`a`) && Path(`/`)",
    "Host(`a`) &&\nPath(`/`)\n",
    "Host(`a`)\n&& Path(`/`)",
    "Host(`a`\n)",
    "Host(\n`a`)",
    "Host(`a`) // comment",
    "Host(`a`) /* comment */ && Path(`/`)",
    "Host(`a`) /* \n */ && Path(`/`)",
    "!!Host(`a`)",
    "!(Host(`a`) || !Path(`/`))",
    "((Host(`a`)))",
    "Host((`a`))",
    "(Host)(`a`)",
    "Host(`a`);",
    "Host(`a`) and Path(`/`)",
    "Host(`a`) == Host(`b`)",
    "`a`",
    "Host",
    "Host()",
    "Host(``)",
    "Host(`a`, `b`)",
    "Host(1)",
    "Host(`a` + `b`)",
    "Host(`é`)",
    "Host(`*`)",
    "Host(`a b`)",
    "HostRegexp(`é`)",
    "HostRegexp(`[`)",
    "HostRegexp(`(?P<x>a)`)",
    "HostRegexp(`(?<x>a)`)",
    "HostRegexp(`(?=a)`)",
    "HostRegexp(`a{1001}`)",
    r"HostRegexp(`\pL\z\Qa\E(?i:a)`)",
    r"HostRegexp(`a\Z`)",
    "HostHeader(`a`)",
    "Path(`a`)",
    "Path(`/{a`)",
    "PathPrefix(`/`)",
    "PathRegexp(`a`)",
    "PathRegexp(`*`)",
    "Method(`GET`)",
    "Method(`GET`, `POST`)",
    "Header(`a`)",
    "Header(`a`, `b`)",
    "Header(`a`, ``)",
    "HeaderRegexp(`a`, `(`)",
    "Headers(`a`, `b`)",
    "Query(`a`)",
    "Query(`a`, `b`)",
    "Query(`a`, `b`, `c`)",
    "QueryRegexp(`a`)",
    "QueryRegexp(`a`, `[`)",
    "ClientIP(`10.0.0.1`)",
    "ClientIP(`10.0.0.1/8`)",
    "ClientIP(`10.0.0.1/33`)",
    "ClientIP(`10.0.0.0/255.0.0.0`)",
    "ClientIP(`010.0.0.1`)",
    "ClientIP(`::1`)",
    "ClientIP(`fe80::1%eth0`)",
    "ClientIP(`::ffff:10.0.0.0/104`)",
    "ClientIP(`10.0.0.1`, `::1`)",
    "ClientIP(`a`)",
)
HTTP_V2 = (
    "Host(`a`, `b`)",
    "Host(`é`)",
    "Host(`*.a`)",
    "HostHeader(`a`)",
    "HostRegexp(`{a}.b`, `{a:[a-z]+}.c`)",
    "HostRegexp(`{a`)",
    "HostRegexp(`a}`)",
    "HostRegexp(`{}`)",
    "HostRegexp(`{a:}`)",
    "HostRegexp(`{:a}`)",
    "HostRegexp(`{a:(}`)",
    "HostRegexp(`{a:b{2}}`)",
    "HostRegexp(`{é}`)",
    "Path(`/a`, `/{b}`)",
    "Path(`a`)",
    "Path(`{a}`)",
    "PathPrefix(`/{a:x|y}`)",
    "PathPrefix(`/}{`)",
    "PathRegexp(`a`)",
    "Method(`GET`, `POST`)",
    "Header(`a`, `b`)",
    "Headers(`a`)",
    "Headers(`a`, `b`)",
    "Headers(`a`, `b`, `c`)",
    "Headers(`a`, ``)",
    "HeadersRegexp(`a`, `[`)",
    "HeadersRegexp(`a`, `b`, `c`, `d`)",
    "Query(`a`)",
    "Query(`a=b`)",
    "Query(`a=`)",
    "Query(`a`, `b`)",
    "Query(`a=b`, `c`)",
    "Query(`a={b}`)",
    "Query(`a={b`)",
    "ClientIP(`10.0.0.1`, `::1/64`)",
    "ClientIP(`10.0.0.1`, `a`)",
)
TCP_V3 = (
    "HostSNI(`*`)",
    "HostSNI(`a.b`)",
    "HostSNI(`*.b`)",
    "HostSNI(`a.*`)",
    "HostSNI(`a b`)",
    "HostSNI(`é`)",
    "HostSNI(`::1`)",
    "HostSNI(`a`, `b`)",
    "HOSTSNI(`a`)",
    "Hostsni(`a`)",
    "HostSNIRegexp(`^a`)",
    "HostSNIRegexp(`[`)",
    "HostSNIRegexp(`é`)",
    "ALPN(`h2`)",
    "ALPN(`acme-tls/1`)",
    "ClientIP(`10.0.0.0/8`)",
    "ClientIP(`a`)",
    "Host(`a`)",
    "HostSNI(`a`) && !ClientIP(`::1`) || ALPN(`h2`)",
)
TCP_V2 = (
    "HostSNI(`*`)",
    "HostSNI(`a`, `*`)",
    "HostSNI(`*.b`)",
    "HostSNI(`é`)",
    "HostSNIRegexp(`{a:[a-z]+}.b`)",
    "HostSNIRegexp(`{a`)",
    "HostSNIRegexp(`{a:(}`)",
    "ALPN(`h2`, `acme-tls/1`)",
    "ALPN(`h2`, `http/1.1`)",
    "ClientIP(`::1`, `10.0.0.0/8`)",
)


def _damaged(rules: Sequence[str], count: int) -> tuple[str, ...]:
    """Rules with characters taken out, doubled, or put in."""
    chosen = random.Random(1)
    found = []
    for _ in range(count):
        rule = chosen.choice(rules)
        for _ in range(chosen.randint(1, 3)):
            at = chosen.randrange(len(rule))
            rule = (
                rule[:at] + chosen.choice(("", rule[at] * 2, chosen.choice("`\"()!&|,\\\n {}/*a1.'"))) + rule[at + 1 :]
                or "!"
            )
        found.append(rule)
    return tuple(dict.fromkeys(found))


def _refuses(read: Callable[[str, Syntax], object], rule: str, syntax: Syntax) -> bool:
    try:
        read(rule, syntax)
    except RuleError:
        return True
    return False


def _configuration(protocol: str, routers: Mapping[str, str], syntax: Syntax) -> dict[str, Any]:
    tls = {"tls": {}} if protocol == "tcp" else {}
    server = {"address": "127.0.0.1:9"} if protocol == "tcp" else {"url": "http://127.0.0.1:9"}
    parts = {
        name: {"rule": rule, "ruleSyntax": syntax, "entryPoints": [ENTRY_POINT], "service": "up", **tls}
        for name, rule in routers.items()
    }
    return {protocol: {"routers": parts, "services": {"up": {"loadBalancer": {"servers": [server]}}}}}


@pytest.mark.parametrize(
    ("protocol", "syntax", "rules"),
    [
        ("http", "v3", (*HTTP_V3, *_damaged(HTTP_V3, 400))),
        ("http", "v2", (*HTTP_V2, *_damaged(HTTP_V2, 300))),
        ("tcp", "v3", (*TCP_V3, *_damaged(TCP_V3, 200))),
        ("tcp", "v2", (*TCP_V2, *_damaged(TCP_V2, 200))),
    ],
    ids=["http-v3", "http-v2", "tcp-v3", "tcp-v2"],
)
async def test_the_same_rules_are_refused(tmp_path: Path, protocol: str, syntax: Syntax, rules: Sequence[str]) -> None:
    names = {f"r{number}": rule for number, rule in enumerate(rules)}
    async with traefik(tmp_path, _configuration(protocol, names, syntax)) as running:
        errors = await running.routers(protocol)
    read: Callable[[str, Syntax], object] = parse_tcp_rule if protocol == "tcp" else parse_rule
    assert len(errors) == len(rules)
    differ = {
        rule: errors[name] for name, rule in names.items() if bool(errors[name]) is not _refuses(read, rule, syntax)
    }
    assert differ == {}
