"""Snippets in nginx, and interpreted here: the same requests to both, and what clients and upstreams get compared."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from fakes.gateway.proxied import Client, Conversation, Origin
from fakes.gateway.served import asking, at, origins, read_answer, served, site
from fakes.gateway.table import ORIGIN
from fakes.peers.nginx import HEADERS_MORE, needs_headers_more, nginx
from headgate.common.table import Backend, PathMatch, PathType, Route, VirtualHost
from headgate.translator.snippets.compose import compose
from headgate.translator.snippets.interpret import interpret
from headgate.translator.snippets.level import NOTHING
from headgate.translator.snippets.scope import Context, Scope

pytestmark = needs_headers_more

CONSTANTS = {"namespace": "shop", "service_name": "web", "service_port": "80", "ingress_name": "site"}
LEFT_OUT = frozenset(
    ("connection", "content-length", "date", "keep-alive", "server", "transfer-encoding", "x-request-id")
)
"""Headers of answers that each server writes in its own way."""
OURS_UPSTREAM = frozenset(
    (
        "connection",
        "host",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-port",
        "x-forwarded-proto",
        "x-real-ip",
        "x-request-id",
    )
)


class Ask(NamedTuple):
    """A request."""

    target: str = "/"
    headers: tuple[tuple[str, str], ...] = ()
    method: str = "GET"
    body: bytes | None = None


@dataclass(frozen=True)
class Case:
    """Snippets, and requests to try them with."""

    location: str
    asks: tuple[Ask, ...] = (Ask(),)
    server: str = ""
    others: tuple[tuple[str, str], ...] = ()
    """Paths of further locations, with their snippets."""


def ask(target: str = "/", method: str = "GET", body: bytes | None = None, **headers: str) -> Ask:
    return Ask(target, tuple((name.replace("_", "-"), value) for name, value in headers.items()), method, body)


CASES: dict[str, Case] = {
    "headers of answers": Case(
        """
        more_set_headers "X-Frame-Options: DENY" 'X-Path: $uri-$arg_a';
        more_set_headers -s '404 500' "X-Bad: 1";
        more_set_headers -t text/plain "X-Plain: 1";
        more_clear_headers X-Powered-By 'X-Up-*';
        """,
        (ask("/"), ask("/404"), ask("/plain?a=b"), ask("/500")),
    ),
    "added headers": Case(
        'add_header X-A "1"; add_header X-B $host always; add_header X-C "$arg_none"; add_header X-Powered-By 2;',
        (ask("/"), ask("/404"), ask("/500"), ask("/204")),
    ),
    "inherited headers": Case("", (ask("/"), ask("/404")), server="add_header X-A 1; more_set_headers 'X-B: 2';"),
    "headers not inherited": Case("add_header X-L 1;", (ask("/"),), server="add_header X-A 1;"),
    "headers of branches": Case(
        """
        add_header X-Out 1;
        more_set_headers "X-More: out";
        if ($arg_a) { add_header X-In a; more_set_headers "X-More: a"; }
        if ($arg_b = "x y") { set $unused 1; }
        if ($http_x_kind ~* "^(one|two)$") { add_header X-In $1 always; expires 60; }
        """,
        (
            ask("/"),
            ask("/?a=1"),
            ask("/?a=0"),
            ask("/?a=1&b=x%20y"),
            ask("/?a=1", X_Kind="ONE"),
            ask("/404", X_Kind="two"),
        ),
    ),
    "expiry": Case("expires epoch;", (ask("/"), ask("/404"))),
    "no caching": Case("expires -1;", (ask("/"),)),
    "hidden headers": Case("proxy_hide_header X-Powered-By; add_header X-Powered-By ours;", (ask("/"),)),
    "headers to the upstream": Case(
        """
        proxy_set_header X-A "$remote_addr $request_method $scheme";
        proxy_set_header X-Empty "";
        proxy_set_header Authorization "Bearer x";
        proxy_set_header X-Service $service_name.$namespace:$service_port;
        proxy_set_header X-Args "$args$is_args$query_string";
        proxy_set_header X-Cookie $cookie_session;
        """,
        (ask("/a?b=c", X_Empty="given", Authorization="Basic y", Cookie="a=1; session=s"),),
    ),
    "input headers": Case(
        """
        more_set_input_headers "X-A: 1" "X-B: $http_x_c";
        more_set_input_headers -r "X-Given: changed" "X-Not-Given: changed";
        more_clear_input_headers "X-Drop-*" X-Gone;
        """,
        (ask("/", X_A="0", X_C="c", X_Given="1", X_Drop_1="1", X_Drop_2="2", X_Gone="1"),),
    ),
    "returns": Case(
        """
        if ($arg_kind = text) { return 200 "hello $arg_name"; }
        if ($arg_kind = empty) { return 204; }
        if ($arg_kind = url) { return https://b.example$request_uri; }
        if ($arg_kind = moved) { return 301 /new$is_args$args; }
        if ($arg_kind = gone) { return 410; }
        if ($arg_kind = found) { return 307 http://$host/x; }
        return 418 "teapot";
        """,
        tuple(ask(f"/p?kind={kind}&name=n") for kind in ("text", "empty", "url", "moved", "gone", "found", "none")),
    ),
    "type of returned texts": Case(
        'default_type application/json; add_header X-A 1; return 200 "{}";',
        (ask("/"), ask("/", method="POST", body=b"x")),
    ),
    "redirects": Case(
        """
        rewrite ^(/dashboard)$ $1/ redirect;
        rewrite ^/old/(.*)$ https://b.example/$1 permanent;
        rewrite ^/gone/(\\d+)\\.html$ /new?id=$1? redirect;
        rewrite ^/plus/(.*)$ /new?id=$1 permanent;
        """,
        (
            ask("/dashboard"),
            ask("/dashboard?a=1"),
            ask("/dashboard/"),
            ask("/old/x/y?q=1"),
            ask("/gone/12.html?q=1"),
            ask("/plus/12?q=1"),
            ask("//dashboard"),
        ),
    ),
    "rewrites": Case(
        """
        rewrite (?i)^/api/(?!internal)(.*)$ /v1/$1 break;
        rewrite ^/q/(.*)$ /s?term=$1 break;
        rewrite ^/drop/(.*)$ /$1? break;
        rewrite ^/(\\w)\\1/(.*)$ /double/$2 break;
        """,
        (
            ask("/api/users?x=1"),
            ask("/API/users"),
            ask("/api/internal/x"),
            ask("/q/a%20b?x=1"),
            ask("/drop/a?x=1"),
            ask("/aa/x"),
            ask("/ab/x"),
            ask("/api/%C3%A9%3Fx"),
            ask("/api//a"),
        ),
    ),
    "variables": Case(
        """
        set $kind plain;
        if ($http_user_agent ~* "(bot|crawler)/(?<version>\\d+)") { set $kind "$1-$version"; }
        if ($request_method !~ ^(GET|HEAD)$) { set $kind "${kind}-write"; }
        if ($host != $http_host) { set $kind never; }
        proxy_set_header X-Kind $kind;
        """,
        (ask("/"), ask("/", User_Agent="Bot/12"), ask("/", method="POST", body=b"a")),
    ),
    "query": Case("set $args a=1&b=$arg_q; rewrite ^/r /x break;", (ask("/?q=2"), ask("/r?q=3"))),
    "end of the program": Case(
        "if ($arg_a) { break; } set $x 1; proxy_set_header X-X $x; return 403;", (ask("/?a=1"), ask("/"))
    ),
    "guard of the server": Case(
        "more_set_headers 'X-A: 1';",
        (ask("/"), ask("/.git/config"), ask("/", User_Agent="curl/8")),
        server="if ($request_uri ~ /\\.git) { return 404; } if ($http_user_agent ~ ^curl) { return 403; }",
    ),
    "denied methods": Case(
        "limit_except GET { deny all; }", (ask("/"), ask("/", method="HEAD"), ask("/", method="PUT"))
    ),
    "denied addresses": Case("deny 127.0.0.1;", (ask("/"),)),
    "allowed addresses": Case("allow 127.0.0.0/8; deny all;", (ask("/"),)),
    "order of rules": Case("allow 127.0.0.1; deny 127.0.0.0/8; deny 10.0.0.0/8;", (ask("/"),)),
    "a return goes before rules": Case("deny all; return 200 x;", (ask("/"),)),
    "substitutions": Case(
        'sub_filter "UPSTREAM.test" "client.test"; sub_filter_once off;', (ask("/html"), ask("/plain"))
    ),
    "first substitution": Case('sub_filter upstream.test "x$" ;'.replace("$", ""), (ask("/html"),)),
    "body size": Case("client_max_body_size 2;", (ask("/", "POST", b"12"), ask("/", "POST", b"123"))),
    "preflight": Case(
        """
        if ($request_method = 'OPTIONS') {
            add_header 'Access-Control-Allow-Origin' '$http_origin' always;
            add_header 'Access-Control-Max-Age' 86400 always;
            return 204;
        }
        """,
        (ask("/", method="OPTIONS", Origin="https://b.example"), ask("/", Origin="https://b.example")),
    ),
    "scheme of a proxy": Case(
        "if ($http_x_forwarded_proto = 'http') { return 301 https://$host$request_uri; }",
        (ask("/a?b=c", X_Forwarded_Proto="http"), ask("/", X_Forwarded_Proto="https"), ask("/")),
    ),
    "pages of errors": Case(
        """
        error_page 401 = https://b.example/login?rd=$request_uri;
        error_page 403 404 @refused;
        error_page 405 = @refused;
        error_page 410 =503 @refused;
        error_page 418 =303 https://b.example/tea;
        if ($arg_status = 401) { return 401; }
        if ($arg_status = 403) { return 403; }
        if ($arg_status = 405) { return 405; }
        if ($arg_status = 410) { return 410; }
        if ($arg_status = 418) { return 418; }
        if ($arg_status = text) { return 403 "as it is"; }
        limit_except GET { deny all; }
        """,
        (
            *(ask(f"/?status={status}") for status in ("401", "403", "405", "410", "418", "text", "none")),
            ask("/404"),
            ask("/", "PUT", b"x"),
        ),
        server='location @refused { default_type application/json; return 400 "{$request_method}"; }',
    ),
    "another location": Case(
        """
        rewrite ^/a/(.*)$ /other/$1 last;
        rewrite ^/b/(.*)$ /other/x?from=$1 last;
        rewrite ^/c/(.*)$ /d/$1;
        rewrite ^/d/(.*)$ /other/d-$1;
        rewrite ^/e/(.*)$ /other/$1;
        rewrite ^/other/kept$ /kept break;
        rewrite ^/f/(.*)$ /other/$1;
        if ($uri ~ ^/other/stays) { break; }
        if ($arg_go) { rewrite ^ /other/gone? last; }
        add_header X-Where first;
        """,
        tuple(
            map(
                ask,
                ("/", "/a/1?q=2", "/b/1?q=2", "/c/1", "/d/1", "/e/1", "/e/kept", "/f/stays", "/x?go=1", "/a/%61%20b"),
            )
        ),
        others=(("/other/", "add_header X-Where other; more_set_input_headers 'X-Sent: $request_uri $args';"),),
    ),
    "the same location again": Case(
        "rewrite ^/a/(.*)$ /b/$1 last; rewrite ^/b/(.*)$ /c/$1 last; add_header X-Where here;",
        (ask("/a/1"), ask("/b/1"), ask("/a/1", "POST", b"body")),
    ),
    "a circle": Case("rewrite ^/a(.*)$ /b$1 last; rewrite ^/b(.*)$ /a$1 last;", (ask("/a"), ask("/c"))),
    "ten locations": Case("rewrite ^/(x*)x$ /$1 last;", (ask("/xxxxxxxxxx"), ask("/xxxxxxxxxxx"), ask("/xx"))),
    "variables of another location": Case(
        "if ($uri = /a) { set $kept $arg_a; rewrite ^ /b? last; } more_set_headers 'X-Kept: $kept.';",
        (ask("/a?a=7"), ask("/b?a=7")),
    ),
    "a location that answers": Case(
        "rewrite ^/a$ /other/a last;",
        (ask("/a"), ask("/other/b")),
        others=(("/other/", "return 403;"),),
    ),
    "rewrites of the server": Case(
        "add_header X-Where first; rewrite ^/again/(.*)$ /old/$1 last;",
        tuple(map(ask, ("/old/1", "/older/1", "/oldest/1?q=1", "/new/1", "/kept/1", "/again/1", "/redirected"))),
        server="""
        rewrite ^/old/(.*)$ /new/$1 last;
        rewrite ^/oldest/(.*)$ /older/$1;
        rewrite ^/older/(.*)$ /new/$1?by=server break;
        rewrite ^/redirected$ /new/ redirect;
        """,
        others=(("/new/", "add_header X-Where new;"),),
    ),
    "no answer": Case("if ($arg_a) { return 444; }", (ask("/"), ask("/?a=1"))),
}


async def upstream(conversation: Conversation) -> None:
    """Answer by the path."""
    while True:
        head, _ = await conversation.request()
        path = head.split(b" ", 2)[1].partition(b"?")[0]
        status = int(path[1:]) if path[1:].isdigit() and len(path) == 4 else 200
        kind = b"text/plain" if path == b"/plain" else b"text/html; charset=utf-8"
        body = b"" if status == 204 or head.startswith(b"HEAD") else b"see http://upstream.test and upstream.TEST"
        lines = b"Content-Type: %b\r\nX-Powered-By: PHP\r\nX-Up-A: 1\r\nX-Up-B: 2\r\nContent-Length: %d\r\n" % (
            kind,
            len(body),
        )
        await conversation.send(b"HTTP/1.1 %d Status\r\n%b\r\n" % (status, lines) + body)


class Seen(NamedTuple):
    """What became of a request."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes
    upstream: tuple[bytes, list[tuple[str, str]]] | None


def fields(head: bytes, left_out: frozenset[str]) -> list[tuple[str, str]]:
    lines = [line.partition(b":") for line in head.split(b"\r\n")[1:] if line]
    named = [(name.decode().lower(), value.strip().decode("latin-1")) for name, _, value in lines]
    return sorted(pair for pair in named if pair[0] not in left_out)


async def seen(port: int, host: str, asked: Ask, origin: Origin) -> Seen:
    client = Client(*await asyncio.open_connection("127.0.0.1", port))
    before = len(origin.heads)
    headers = {name.replace("-", "_"): value for name, value in asked.headers}
    await client.send(asking(asked.target, asked.method, host, asked.body, **headers))
    try:
        async with asyncio.timeout(10):
            got = await read_answer(client, has_body=asked.method != "HEAD")
    except asyncio.IncompleteReadError:
        return Seen(444, [], b"", None)
    finally:
        client.close()
    is_own = got.status >= 300 and len(origin.heads) == before
    head = origin.heads[before] if len(origin.heads) > before else None
    sent = None if head is None else (head.split(b"\r\n")[0], fields(head, OURS_UPSTREAM | {"content-length"}))
    # What nginx writes by itself about errors and redirects is a page of its own.
    left_out = LEFT_OUT | ({"content-type"} if is_own else set())
    return Seen(got.status, fields(got.head, left_out), b"" if is_own else got.body, sent)


def original(number: int, case: Case, port: int) -> str:
    constants = "".join(f"set ${name} {value};" for name, value in CONSTANTS.items())
    proxied = f"proxy_set_header Host $host; proxy_pass http://127.0.0.1:{port};"
    location = "".join(
        f"location {path} {{ {constants} {text} {proxied} }}" for path, text in (("/", case.location), *case.others)
    )
    common = "default_type text/html; port_in_redirect off; proxy_http_version 1.1;"
    return f"server {{ {common} listen 127.0.0.1:PORT; server_name case{number}.example; {case.server} {location} }}"


def original_servers(port: int) -> str:
    servers = "\n".join(original(number, case, port) for number, case in enumerate(CASES.values()))
    return f"server_names_hash_bucket_size 128;\n{servers}"


def interpreted(number: int, case: Case) -> VirtualHost:
    server = interpret(case.server, Scope(Context.SERVER)) if case.server else NOTHING
    routes = []
    for path, text in (("/", case.location), *case.others):
        made = compose(server, interpret(text, Scope(Context.LOCATION, CONSTANTS)))
        route = Route(
            name=path,
            path=PathMatch(type=PathType.STRING_PREFIX, value=path),
            backends=(Backend(upstream="up"),),
            plugins=made.plugins,
            provenance=ORIGIN,
            **made.fields,
        )
        routes.append(route)
    return site(*routes, host=f"case{number}.example")


async def test_snippets_do_what_nginx_does_with_them(tmp_path: Path) -> None:
    differences = []
    numbered = list(enumerate(CASES.items()))
    async with (
        origins(upstream, upstream) as (theirs, ours),
        nginx(tmp_path, "return 404;", original_servers(theirs.port), (HEADERS_MORE,)) as port,
        served(*(interpreted(number, case) for number, (_, case) in numbered), at(ours.port), detailed=False) as proxy,
    ):
        for number, (name, case) in numbered:
            for asked in case.asks:
                host = f"case{number}.example"
                # A time in an answer is another one if a second ends between the two: then both are asked again.
                for _ in range(2):
                    expected = await seen(port, host, asked, theirs)
                    got = await seen(proxy.port, host, asked, ours)
                    if got == expected:
                        break
                else:
                    differences.append((name, asked, expected, got))
    assert differences == []
