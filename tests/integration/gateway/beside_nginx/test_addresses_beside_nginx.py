"""Addresses that upstreams give: the same answers go through Debian's nginx and through a gateway with the rules."""

from pathlib import Path
from typing import Any

import pytest

from fakes.gateway.proxied import answering
from fakes.gateway.served import Got, Served, asking, at, origins, read_answer, served, site, to
from fakes.peers.nginx import needs_nginx, nginx

pytestmark = needs_nginx


def rule(pattern: str, replacement: str, **more: Any) -> dict[str, Any]:
    return {"pattern": pattern, "replacement": replacement, **more}


RULES: dict[str, tuple[str, dict[str, Any]]] = {
    "text": (
        "proxy_redirect http://in.example/ http://out.example/a/",
        {"location": [rule("http://in.example/", "http://out.example/a/")]},
    ),
    "to a path": ("proxy_redirect http://in.example/ /a/", {"location": [rule("http://in.example/", "/a/")]}),
    "from a path": ("proxy_redirect /x/ /y/", {"location": [rule("/x/", "/y/")]}),
    "variables": (
        "proxy_redirect http://$host:8080/ $scheme://$http_host/",
        {"location": [rule("http://$host:8080/", "$scheme://$http_host/")]},
    ),
    "pattern": (
        "proxy_redirect ~^https?://([^/]+)/(.*)$ https://$1.example/$2?by=$request_method",
        {"location": [rule("^https?://([^/]+)/(.*)$", "https://$1.example/$2?by=$request_method", is_regex=True)]},
    ),
    "pattern of any case": (
        "proxy_redirect ~*IN /found",
        {"location": [rule("IN", "/found", is_regex=True, ignore_case=True)]},
    ),
    "first that fits": (
        "proxy_redirect /x/y/ /1/; proxy_redirect /x/ /2/",
        {"location": [rule("/x/y/", "/1/"), rule("/x/", "/2/")]},
    ),
    "domain": ("proxy_cookie_domain in.example out.example", {"cookie_domain": [rule("in.example", "out.example")]}),
    "dotted domain": (
        "proxy_cookie_domain .in.example .out.example",
        {"cookie_domain": [rule(".in.example", ".out.example")]},
    ),
    "pattern of domains": (
        "proxy_cookie_domain ~^(\\w+)\\.example$ $1.$host",
        {"cookie_domain": [rule(r"^(\w+)\.example$", "$1.$host", is_regex=True)]},
    ),
    "path": ("proxy_cookie_path /x/ /y/", {"cookie_path": [rule("/x/", "/y/")]}),
    "root": ("proxy_cookie_path / /app/", {"cookie_path": [rule("/", "/app/")]}),
    "pattern of paths": (
        "proxy_cookie_path ~*^/X/(.*) /y/$1",
        {"cookie_path": [rule("^/X/(.*)", "/y/$1", is_regex=True, ignore_case=True)]},
    ),
}
ANSWERS = (
    "Location: http://in.example/p?q=1",
    "Location: HTTP://in.example/p",
    "Location: http://in.example",
    "Location: http://other.example/in/",
    "Location: http://a.example:8080/p",
    "Location: /x/y/z",
    "Location: /x/z#f",
    "Refresh: 5; url=http://in.example/p",
    "Refresh: 5; URL=/x/z",
    "Refresh: /x/z",
    "Refresh: 5",
    "Set-Cookie: a=b; Domain=in.example; Path=/x/z; HttpOnly",
    "Set-Cookie: a=b; domain=.IN.example",
    "Set-Cookie: a=/x/; path=/x",
    "Set-Cookie: a=b; Path=/X/y/;Secure",
    "Set-Cookie: a=b; Path; Domain",
    "Set-Cookie: domain=in.example",
    "Set-Cookie: a=1; Path=/x/\r\nSet-Cookie: b=2; Domain=in.example",
)


async def ask(proxy: Served, port: int, path: str) -> Got:
    client = await proxy.connect(port=port)
    await client.send(asking(path))
    got = await read_answer(client)
    client.close()
    return got


@pytest.mark.parametrize("name", RULES)
async def test_addresses_are_rewritten_the_same(tmp_path: Path, name: str) -> None:
    theirs, ours = RULES[name]
    answers = [f"HTTP/1.1 302 Found\r\n{line}\r\nContent-Length: 0\r\n\r\n".encode() for line in ANSWERS]
    plugins = [("proxy-redirect", {**ours, "absolute": True})]
    async with origins(*(answering(answer) for answer in answers)) as running:
        there = [
            f"location /{number} {{ proxy_pass http://127.0.0.1:{origin.port}; {theirs}; }}"
            for number, origin in enumerate(running)
        ]
        here = [to(f"u{number}", path=f"/{number}", plugins=plugins) for number in range(len(running))]
        upstreams = [at(origin.port, key=f"u{number}") for number, origin in enumerate(running)]
        async with (
            nginx(tmp_path, f"port_in_redirect off; {' '.join(there)}") as port,
            served(site(*here), *upstreams) as proxy,
        ):
            for number, line in enumerate(ANSWERS):
                by_nginx, by_us = [await ask(proxy, each, f"/{number}") for each in (port, proxy.port)]
                for header in ("location", "refresh", "set-cookie"):
                    assert (line, by_us.all(header)) == (line, by_nginx.all(header))
