"""Rules for HTTP that Traefik's own tests have (`pkg/muxer/http`), from manifests to the wire."""

from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

import pytest

from fakes.gateway.served import read_answer
from fakes.translator.applied import World, world
from fakes.translator.traefik import route, rule
from fakes.translator.traefik_cases import listed

_CASES = Path(__file__).parent / "cases/http_rules.yaml"

_NOT_TAKEN = (400, 404, 501)
"""400 is for a host beyond ASCII, 501 for a method in lower case."""


class Case(NamedTuple):
    """A rule, and what is asked of it."""

    rule: str
    syntax: str = "v3"
    takes: tuple[Any, ...] = ()
    leaves: tuple[Any, ...] = ()
    refused: bool = False


@pytest.mark.parametrize("case", listed(_CASES, Case))
async def test_a_rule_takes_what_it_takes_in_traefik(case: Case) -> None:
    only = route(rule(case.rule, syntax=case.syntax))
    async with world("web", proxy_protocol=True) as made:
        made.proxy.apply(only)
        assert bool({"InvalidRule", "InvalidValue"} & {*made.proxy.errors(only)}) is case.refused
        assert [(each, await _status(made, each)) for each in case.takes] == [(each, 200) for each in case.takes]
        assert [each for each in case.leaves if await _status(made, each) not in _NOT_TAKEN] == []


@pytest.mark.parametrize("case", listed(_CASES, Case))
async def test_a_rule_takes_the_same_below_another(case: Case) -> None:
    only = route(rule(case.rule, syntax=case.syntax), name="below", spec={"parentRefs": [{"name": "above"}]})
    async with world("web", proxy_protocol=True) as made:
        made.proxy.apply(route({"match": "PathPrefix(`/`)", "kind": "Rule"}, name="above"), only)
        assert bool({"InvalidRule", "InvalidValue"} & {*made.proxy.errors(only)}) is case.refused
        assert [(each, await _status(made, each)) for each in case.takes] == [(each, 200) for each in case.takes]
        left = _NOT_TAKEN if case.takes else (*_NOT_TAKEN, 503)
        assert [each for each in case.leaves if await _status(made, each) not in left] == []


async def _status(made: World, asked: Any) -> int:
    """Ask for a URL; headers, a method or the client's address may be said besides."""
    said = {"url": asked} if isinstance(asked, str) else asked
    url = urlsplit(said.get("url", "http://example.com"))
    target = quote(url.path, safe="/%{}:|()") or "/"
    lines = [f"{said.get('method', 'GET')} {target}{f'?{url.query}' if url.query else ''} HTTP/1.1"]
    lines += [f"Host: {url.netloc}", *said.get("headers", ()), "Connection: close", "", ""]
    client = await made.proxy.proxy.connect()
    address = said.get("client", "203.0.113.9")
    family, gateway = ("TCP6", "2001:db8::1") if ":" in address else ("TCP4", "203.0.113.1")
    await client.send(f"PROXY {family} {address} {gateway} 5555 80\r\n".encode() + "\r\n".join(lines).encode())
    return (await read_answer(client)).status


def _my(service: str, path: str = "/my", **fields: Any) -> Any:
    return rule(f"PathPrefix(`{path}`)", {"name": service, "port": 80}, **fields)


@pytest.mark.parametrize(
    ("path", "routes", "expected"),
    [
        pytest.param("/my", [_my("a", priority=10), _my("b", priority=20)], "b", id="higher second"),
        pytest.param("/my", [_my("a", priority=20), _my("b", priority=10)], "a", id="higher first"),
        pytest.param("/mypath", [_my("a", "/mypath", priority=10), _my("b", priority=20)], "b", id="of another rule"),
        pytest.param("/mypath", [_my("a", "/mypath"), _my("b")], "a", id="longest first"),
        pytest.param("/mypath", [_my("a"), _my("b", "/mypath")], "b", id="longest second"),
        pytest.param("/mypath", [_my("a"), _my("b", "/mypa"), _my("c", "/mypath")], "c", id="longest third"),
        pytest.param("/mypath", [_my("a", "/mypath", priority=-1), _my("b")], "b", id="negative"),
    ],
)
async def test_the_route_of_the_highest_priority_takes_a_request(path: str, routes: list[Any], expected: str) -> None:
    async with world("a", "b", "c") as made:
        made.proxy.apply(route(*routes))
        assert (await made.proxy.get(path)).body.decode() == expected


@pytest.mark.parametrize("matcher", ["Host", "HostRegexp"])
@pytest.mark.parametrize(
    ("target", "host", "expected"),
    [
        ("http://example.com/", "example.org", {"example.com": 200, "example.org": 404}),
        ("http://example.org/", "example.com", {"example.com": 404, "example.org": 200}),
    ],
)
async def test_the_host_of_a_whole_url_goes_before_the_header(
    matcher: str, target: str, host: str, expected: dict[str, int]
) -> None:
    async with world("web") as made:
        for name, status in expected.items():
            made.proxy.apply(route(rule(f"{matcher}(`{name}`)")))
            assert await made.proxy.status(target, host=host) == status


@pytest.mark.parametrize(
    ("rule_path", "asked", "status"),
    [
        ("/foo bar", "/foo%20bar", 200),
        ("/foo bar/baz%23qux", "/foo%20bar%2Fbaz%23qux", 200),
        ("/foo%3Bbar", "/foo%3Bbar", 200),
        ("/foo%3Bbar", "/foo;bar", 404),
    ],
)
async def test_escapes_of_paths_are_decoded_but_those_of_reserved_characters(
    rule_path: str, asked: str, status: int
) -> None:
    async with world("web") as made:
        made.proxy.apply(route(rule(f"Path(`{rule_path}`)")))
        assert await made.proxy.status(asked) == status
