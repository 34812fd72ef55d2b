"""Which router takes a request: the same rules are given to Traefik, and to a gateway by its table."""

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from fakes.peers.traefik import needs_traefik
from integration.gateway.beside_traefik.routing import Asked, Router, both

pytestmark = needs_traefik

CASES: dict[str, tuple[Sequence[Router], Sequence[tuple[Asked, str]]]] = {
    "the longer rule goes first, whatever it says of hosts": (
        [Router("Host(`a.com`)"), Router("HostRegexp(`^[a-z]+.com$`)"), Router("PathPrefix(`/x`)")],
        [(Asked(), "r1"), (Asked(target="/x"), "r1"), (Asked("a.org", "/x"), "r2"), (Asked("a.org"), "404")],
    ),
    "a priority replaces the length": (
        [Router("Host(`a.com`)", 100), Router("Host(`a.com`) && PathPrefix(`/`)"), Router("PathPrefix(`/`)", -1)],
        [(Asked(), "r0"), (Asked("b.com"), "r2")],
    ),
    "a prefix is a string": (
        [Router("PathPrefix(`/products`)"), Router("Path(`/exact`)"), Router("PathPrefix(`/slash/`)")],
        [
            (Asked(target="/products-for-sale"), "r0"),
            (Asked(target="/products/1?x=/exact"), "r0"),
            (Asked(target="/exact"), "r1"),
            (Asked(target="/exact/"), "404"),
            (Asked(target="/slash"), "404"),
            (Asked(target="/slash/"), "r2"),
            (Asked(target="/Products"), "404"),
        ],
    ),
    "headers are those that the client sent, whether servers get them or not": (
        [
            Router("Header(`Upgrade`, `websocket`)"),
            Router("HeaderRegexp(`Connection`, `(?i)^upgrade$`)"),
            Router("Header(`Te`, `trailers`)"),
            Router("Header(`Keep-Alive`, `timeout=5`)"),
            Router("Header(`Content-Length`, `0`)"),
            Router("Header(`X-Request-Id`, `mine`)"),
            Router("Header(`Proxy-Authorization`, `Basic x`)"),
            Router("Header(`X-Forwarded-Proto`, `http`) && Path(`/forwarded`)"),
            Router("!Header(`Upgrade`, `h2c`) && Path(`/not`)"),
        ],
        [
            (Asked(headers=("Upgrade: websocket",)), "r0"),
            (Asked(headers=("Upgrade: WebSocket",)), "404"),
            (Asked(headers=("Connection: Upgrade", "Upgrade: websocket")), "r1"),
            (Asked(headers=("connection: keep-alive, Upgrade",)), "404"),
            (Asked(headers=("TE: trailers",)), "r2"),
            (Asked(headers=("Keep-Alive: timeout=5",)), "r3"),
            (Asked(headers=("Content-Length: 0",)), "r4"),
            (Asked(headers=("X-Request-ID: mine",)), "r5"),
            (Asked(headers=("Proxy-Authorization: Basic x",)), "r6"),
            (Asked(target="/forwarded"), "r7"),
            (Asked(target="/not"), "r8"),
            (Asked(target="/not", headers=("Upgrade: h2c",)), "404"),
        ],
    ),
    "escapes are decoded, but those of reserved characters": (
        [
            Router("Path(`/a b`)"),
            Router("Path(`/é`)"),
            Router("PathPrefix(`/{x}`)"),
            Router("PathRegexp(`^/num/[0-9 ]+$`)"),
            Router("PathRegexp(`.php$`)"),
            Router("Path(`/plain`)"),
            Router("PathRegexp(`^/one/.{2}$`)"),
            Router("PathPrefix(`/q`) && !PathRegexp(`^/q/a b`)"),
        ],
        [
            (Asked(target="/a%20b"), "r0"),
            (Asked(target="/%61%20b"), "r0"),
            (Asked(target="/%C3%A9"), "r1"),
            (Asked(target="/%c3%a9"), "r1"),
            (Asked(target="/%7Bx%7D/y"), "r2"),
            (Asked(target="/{x}/y"), "r2"),
            (Asked(target="/num/1%202"), "r3"),
            (Asked(target="/num/1%2F2"), "404"),
            (Asked(target="/deep/index.php"), "r4"),
            (Asked(target="/pl%61in"), "r5"),
            (Asked(target="/one/%20%20"), "r6"),
            (Asked(target="/one/%20%20%20"), "404"),
            (Asked(target="/q/a%20b"), "404"),
            (Asked(target="/q/a"), "r7"),
            (Asked(target="//plain"), "r5"),
            (Asked(target="/x/../plain"), "r5"),
            (Asked(target="/./plain"), "r5"),
        ],
    ),
    "hosts are compared without case, port and last dot": (
        [
            Router("Host(`Shop.Example.com`)"),
            Router("Host(`dot.example.com.`)"),
            Router("Host(`*.wild.com`)"),
            Router("Host(`127.0.0.1`)"),
            Router("Host(`::1`)"),
        ],
        [
            (Asked("shop.example.COM:8080"), "r0"),
            (Asked("shop.example.com."), "r0"),
            (Asked("dot.example.com"), "r1"),
            (Asked("dot.example.com."), "r1"),
            (Asked("x.wild.com"), "r2"),
            (Asked("x.y.wild.com"), "404"),
            (Asked("wild.com"), "404"),
            (Asked("127.0.0.1:80"), "r3"),
            (Asked("[::1]"), "r4"),
            (Asked("[::1]:80"), "r4"),
        ],
    ),
    "any host": ([Router("Host(`*`)")], [(Asked(), "r0"), (Asked("x.y.z:1"), "r0")]),
    "each value of a header and of a query parameter counts": (
        [
            Router("Header(`X-A`, `1`) && Path(`/h`)"),
            Router("HeaderRegexp(`x-a`, `^2`) && Path(`/h`)"),
            Router("Query(`q`, `1`) && Path(`/q`)"),
            Router("QueryRegexp(`q`, `^2`) && Path(`/q`)"),
            Router("Query(`flag`) && Path(`/q`)"),
            Router("Header(`Host`, `a.com`)"),
        ],
        [
            (Asked(target="/h", headers=("X-A: 0", "x-a: 1")), "r0"),
            (Asked(target="/h", headers=("X-A: 1, 0",)), "404"),
            (Asked(target="/h", headers=("X-A: 1", "X-A: 23")), "r1"),
            (Asked(target="/h", headers=("X-A: 12",)), "404"),
            (Asked(target="/q?q=0&q=1"), "r2"),
            (Asked(target="/q?q=%31"), "r2"),
            (Asked(target="/q?q=0&q=2+x"), "r3"),
            (Asked(target="/q?a;q=1;b"), "r2"),
            (Asked(target="/q?q=0%3Bq=1"), "404"),
            (Asked(target="/q?a;flag"), "r4"),
            (Asked(target="/q?flag"), "r4"),
            (Asked(target="/q?flag="), "r4"),
            (Asked(target="/q?flag=1"), "404"),
            (Asked(), "404"),
        ],
    ),
    "methods and addresses": (
        [Router("Method(`post`)"), Router("ClientIP(`127.0.0.0/8`) && Path(`/ip`)"), Router("ClientIP(`10.0.0.1`)")],
        [
            (Asked(method="POST"), "r0"),
            (Asked(), "404"),
            (Asked(target="/ip"), "r1"),
            (Asked(headers=("X-Forwarded-For: 10.0.0.1",)), "404"),
        ],
    ),
    "and, or, not": (
        [
            Router("Host(`a.com`) && (PathPrefix(`/x`) || Path(`/y`))"),
            Router("!Host(`a.com`) && PathPrefix(`/x`)"),
            Router("!(Host(`a.com`) || Method(`GET`)) || Path(`/z`)"),
        ],
        [
            (Asked(target="/x1"), "r0"),
            (Asked(target="/y"), "r0"),
            (Asked(target="/y/"), "404"),
            (Asked("b.com", "/x"), "r1"),
            (Asked("b.com", method="POST"), "r2"),
            (Asked(target="/z"), "r2"),
        ],
    ),
    "syntax v2": (
        [
            Router("Host(`a.com`, `B.com`) && Path(`/p/{id:[0-9]+}`)", syntax="v2"),
            Router("HostRegexp(`{sub:[a-z]+}.wild.com`)", syntax="v2"),
            Router("PathPrefix(`/pre/{any}/x`)", syntax="v2"),
            Router("Headers(`X-A`, `1`, `X-B`, `2`) && Path(`/h`)", syntax="v2"),
            Router("HeadersRegexp(`X-A`, `^3`) && Path(`/h`)", syntax="v2"),
            Router("Query(`q={n:[0-9]+}`, `r=`) && Path(`/q`)", syntax="v2"),
            Router("Method(`put`, `PATCH`)", syntax="v2"),
            Router("Host(`*`)", syntax="v2"),
            Router("HostHeader(`header.com`) && ClientIP(`10.0.0.0/8`, `127.0.0.1`)", syntax="v2"),
            Router("Query(`a`, `b`) && Path(`/q`)", syntax="v2"),
        ],
        [
            (Asked(target="/p/12"), "r0"),
            (Asked("b.com", "/p/12"), "r0"),
            (Asked(target="/p/12x"), "404"),
            (Asked("X.Wild.com"), "r1"),
            (Asked("1.wild.com"), "404"),
            (Asked(target="/pre/a/xyz"), "r2"),
            (Asked(target="/pre/a/b/x"), "404"),
            (Asked(target="/h", headers=("X-A: 0", "X-A: 1", "X-B: 2")), "r3"),
            (Asked(target="/h", headers=("X-A: 1",)), "404"),
            (Asked(target="/h", headers=("X-A: 34",)), "r4"),
            (Asked(target="/q?q=1&r=any"), "r5"),
            (Asked(target="/q?q=x&q=1&r"), "404"),
            (Asked(target="/q?q=1"), "404"),
            (Asked(method="PATCH"), "r6"),
            (Asked("header.com"), "r8"),
            (Asked(target="/q?a=b"), "r9"),
        ],
    ),
}


@pytest.mark.parametrize("name", CASES)
async def test_the_same_router_takes_a_request(tmp_path: Path, name: str) -> None:
    routers, requests = CASES[name]
    async with both(tmp_path, routers) as running:
        assert not any((await running.traefik.routers()).values())
        found = [(asked, *await running.winners(asked)) for asked, _ in requests]
    assert found == [(asked, winner, winner) for asked, winner in requests]


@pytest.mark.parametrize(
    ("rule", "asked", "theirs", "ours"),
    [
        ("Path(`/a%2Fb`)", Asked(target="/a%2Fb"), "r0", "404"),
        ("Path(`/a/b`)", Asked(target="/a%2Fb"), "404", "r0"),
        (r"HostRegexp(`^a\.com$`)", Asked("a.com."), "404", "r0"),
        ("PathRegexp(`^/.$`)", Asked(target="/%C3%A9"), "r0", "404"),
    ],
)
async def test_some_requests_are_taken_by_one_of_the_two_only(
    tmp_path: Path, rule: str, asked: Asked, theirs: str, ours: str
) -> None:
    async with both(tmp_path, [Router(rule)]) as running:
        assert await running.winners(asked) == (theirs, ours)


HOSTS = ("a.com", "b.com", "x.a.com", "y.x.a.com")
PATHS = ("/", "/x", "/xy", "/x/y", "/x/y/z", "/z%20z", "/%C3%A9")
METHODS = ("GET", "POST", "PUT")
MATCHERS = (
    *(f"Host(`{host}`)" for host in (*HOSTS, "*.a.com", "*")),
    *(f"HostRegexp(`{pattern}`)" for pattern in (r"^[ab]\.com$", r"^.+\.a\.com$", "a", "^y")),
    *(f"{name}(`{path}`)" for name in ("Path", "PathPrefix") for path in ("/", "/x", "/x/y", "/z z", "/é")),
    *(f"PathRegexp(`{pattern}`)" for pattern in ("^/x", "y$", "^/x/|z", " ", "^/[xz]$")),
    *(f"Method(`{method}`)" for method in METHODS),
    "Header(`X-A`, `1`)",
    "HeaderRegexp(`X-A`, `^[01]$`)",
    "Query(`q`, `1`)",
    "Query(`q`)",
    "ClientIP(`127.0.0.1`)",
)


def _any_rule(chosen: random.Random, depth: int = 0) -> str:
    shape = chosen.random()
    if depth > 2 or shape < 0.35:
        return chosen.choice(MATCHERS)
    if shape < 0.5:
        return f"!({_any_rule(chosen, depth + 1)})"
    sign = " && " if shape < 0.8 else " || "
    return f"({sign.join(_any_rule(chosen, depth + 1) for _ in range(chosen.randint(2, 3)))})"


def _any_request(chosen: random.Random) -> Asked:
    query = chosen.choice(("", "?q", "?q=1", "?q=0&q=1"))
    headers = chosen.choice(((), ("X-A: 1",), ("X-A: 2", "X-A: 0"), ("X-A: 1, 2",)))
    return Asked(chosen.choice(HOSTS), chosen.choice(PATHS) + query, chosen.choice(METHODS), headers)


@pytest.mark.parametrize("seed", range(3))
async def test_the_same_router_takes_any_request(tmp_path: Path, seed: int) -> None:
    chosen = random.Random(seed)
    by_length = {len(rule.encode()): rule for rule in (_any_rule(chosen) for _ in range(150))}
    routers = [Router(rule) for rule in by_length.values()]
    async with both(tmp_path, routers) as running:
        for _ in range(200):
            asked = _any_request(chosen)
            theirs, ours = await running.winners(asked)
            assert ours == theirs, (asked, routers[int(theirs[1:])] if theirs[0] == "r" else theirs)
