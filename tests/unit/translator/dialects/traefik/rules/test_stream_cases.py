"""Rules for TCP that Traefik's own tests have (`pkg/muxer/tcp`), as a gateway finds routes by them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from headgate.common.table import Provenance, StreamRoute, WeightedUpstream
from headgate.gateway.balancing.upstream import UpstreamHolder
from headgate.gateway.net.port_set import PortKey
from headgate.gateway.streams.ports import PortPlan, plan_ports
from headgate.gateway.streams.route import CompiledStream
from headgate.translator.dialects.traefik.rules import RuleError, Syntax, parse_tcp_rule, stream_alternatives

ORIGIN = Provenance(cluster="local", kind="IngressRouteTCP", namespace="default", name="db")
_CASES = yaml.safe_load((Path(__file__).parent / "cases/tcp_rules.yaml").read_text())


def _routes(name: str, rule: str, syntax: Syntax = "v3", priority: int = 0) -> Iterator[CompiledStream]:
    parsed = parse_tcp_rule(rule, syntax)
    for index, place in enumerate(stream_alternatives(parsed)):
        entry = StreamRoute(
            key=f"{name}/{index}",
            protocol="tls",
            port=5432,
            server_names=place.server_names,
            alpn=place.alpn,
            when=place.when,
            priority=parsed.priority(priority),
            backends=(WeightedUpstream(upstream="up"),),
            provenance=ORIGIN,
        )
        yield CompiledStream(entry, UpstreamHolder)


def _plan(*routes: CompiledStream) -> PortPlan:
    plan = plan_ports(routes)
    assert plan.problems == {}
    return plan.ports[PortKey("tcp", 5432)]


def _winner(plan: PortPlan, name: str = "", client: str = "0.0.0.0", alpn: tuple[str, ...] = ()) -> str:
    """Return the name of the rule that takes a connection, empty if none does; names as a ClientHello is read."""
    assert plan.names is not None
    found = plan.names.find(name.lower().removesuffix("."), alpn, client)
    return found.entry.key.partition("/")[0] if found is not None else ""


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=f"{test}-{case['case']}") for test, cases in _CASES.items() for case in cases],
)
def test_a_rule_takes_what_it_takes_in_traefik(case: dict[str, Any]) -> None:
    syntax = case.get("syntax", "v3")
    if case.get("refused"):
        with pytest.raises(RuleError):
            parse_tcp_rule(case["rule"], syntax)
        return
    plan = _plan(*_routes("one", case["rule"], syntax))
    assert [each for each in case.get("takes", ()) if not _winner(plan, **each)] == []
    assert [each for each in case.get("leaves", ()) if _winner(plan, **each)] == []


@pytest.mark.parametrize(
    ("rules", "asked", "winner"),
    [
        ({"a": "HostSNI(`a`)", "b": "HostSNI(`b`)"}, {"name": "a"}, "a"),
        (
            {"a": "HostSNI(`a`) && ClientIP(`10.0.0.0/8`)", "b": "HostSNI(`a`)"},
            {"name": "a", "client": "10.1.1.1"},
            "a",
        ),
        (
            {"a": "HostSNI(`a`) && ClientIP(`10.0.0.0/8`)", "b": "HostSNI(`a`)"},
            {"name": "a", "client": "11.1.1.1"},
            "b",
        ),
        ({"a": "HostSNI(`*`)", "b": "!HostSNI(`b`)"}, {"name": "a"}, "b"),
        ({"a": "HostSNI(`*`)", "b": "!HostSNI(`b`)"}, {"name": "b"}, "a"),
        ({"a": "HostSNI(`a`)", "b": "HostSNI(`*`)"}, {"name": "a"}, "a"),
    ],
)
def test_of_several_rules_the_longer_one_that_takes_a_connection_has_it(
    rules: dict[str, str], asked: dict[str, Any], winner: str
) -> None:
    plan = _plan(*(route for name, rule in rules.items() for route in _routes(name, rule)))
    assert _winner(plan, **asked) == winner
