"""The same Middlewares in Traefik and in a gateway of ours, the same requests to both."""

import asyncio
import contextlib
import gzip
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import pytest_asyncio

from fakes.gateway.proxied import Client, Conversation, Origin
from fakes.gateway.served import Got, asking, origins, read_answer
from fakes.peers.traefik import ENTRY_POINT, needs_traefik, traefik
from fakes.translator.applied import World, world
from fakes.translator.traefik import middleware, route, rule

pytestmark = [needs_traefik, pytest.mark.asyncio(loop_scope="module")]

TEXT = "text " * 400
OWN_ANSWER = (
    "connection",
    "content-length",
    "content-type",
    "date",
    "server",
    "transfer-encoding",
    "x-headgate-reason",
    "x-request-id",
)
"""Headers of answers that each gateway writes in its own way."""
OWN_REQUEST = (
    "accept-encoding",
    "host",
    "user-agent",
    "x-forwarded-port",
    "x-forwarded-server",
    "x-real-ip",
    "x-request-id",
)
"""Headers of requests likewise."""
OWN_OF_SERVER = {"pages": ("x-forwarded-for",)}
"""Traefik does not tell services of errors whom a request comes from."""


@dataclass(frozen=True)
class Ask:
    """A request."""

    path: str = "/"
    method: str = "GET"
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


class Case(NamedTuple):
    """Middlewares of a route, and requests to it."""

    middlewares: Sequence[Any]
    asks: Sequence[Ask]


PREFLIGHT = {"Origin": "https://a.test", "Access_Control_Request_Method": "PUT"}
CASES = {
    "plain": Case([], [Ask(), Ask("/a?b=c", "POST", b"body")]),
    "compress": Case(
        [{"compress": {}}],
        [
            Ask("/text", headers={"Accept_Encoding": accepted})
            for accepted in ("gzip", "gzip, br;q=0.5", "*", "identity", "gzip;q=0", "nothing")
        ]
        + [Ask("/text"), Ask("/", headers={"Accept_Encoding": "gzip"})],
    ),
    "compress-some": Case(
        [{"compress": {"includedContentTypes": ["application/json"], "minResponseBodyBytes": 1}}],
        [Ask("/text", headers={"Accept_Encoding": "gzip"}), Ask("/json", headers={"Accept_Encoding": "gzip"})],
    ),
    "cors": Case(
        [
            {
                "headers": {
                    "accessControlAllowOriginList": ["https://a.test"],
                    "accessControlAllowMethods": ["GET", "PUT"],
                    "accessControlAllowHeaders": ["X-A"],
                    "accessControlExposeHeaders": ["X-B"],
                    "accessControlMaxAge": 60,
                    "addVaryHeader": True,
                }
            }
        ],
        [
            Ask(),
            Ask(headers={"Origin": "https://a.test"}),
            Ask(headers={"Origin": "https://b.test"}),
            Ask(method="OPTIONS", headers=PREFLIGHT),
            Ask(method="OPTIONS", headers={**PREFLIGHT, "Origin": "https://b.test"}),
            Ask(method="OPTIONS", headers={"Origin": "https://a.test"}),
        ],
    ),
    "cors-any": Case(
        [
            {
                "headers": {
                    "accessControlAllowOriginList": ["*"],
                    "accessControlAllowHeaders": ["*"],
                    "accessControlAllowMethods": ["*"],
                    "accessControlAllowCredentials": True,
                }
            }
        ],
        [Ask(headers={"Origin": "https://a.test"}), Ask(method="OPTIONS", headers=PREFLIGHT)],
    ),
    "headers": Case(
        [
            {
                "headers": {
                    "customRequestHeaders": {"X-Set": "$1 set", "X-Gone": ""},
                    "customResponseHeaders": {"X-Frame-Options": "SAMEORIGIN", "X-Own": "", "X-More": "more"},
                    "frameDeny": True,
                    "browserXssFilter": True,
                    "contentTypeNosniff": True,
                    "forceSTSHeader": True,
                    "stsSeconds": 60,
                    "stsPreload": True,
                    "stsIncludeSubdomains": True,
                    "permissionsPolicy": "camera=()",
                }
            }
        ],
        [Ask(headers={"X_Gone": "here", "X_Set": "mine"}), Ask("/500")],
    ),
    "forwarded-for": Case([{"headers": {"customRequestHeaders": {"X-Forwarded-For": "", "Foo": ""}}}], [Ask()]),
    "stripped": Case(
        [{"stripPrefix": {"prefixes": ["/api/", "/a b"]}}],
        [Ask(path) for path in ("/ap%69/a%2Fb", "/a%20b/c", "/api./x", "/api../x", "/api/", "/api", "/api/a?b=c")],
    ),
    "stripped-by-pattern": Case(
        [{"stripPrefixRegex": {"regex": ["/v[0-9]+/", "/[a-z ]+"]}}],
        [Ask(path) for path in ("/v1/x", "/a%20b/x", "/1/v1/x")],
    ),
    "stripped-twice": Case(
        [
            {"stripPrefix": {"prefixes": ["/a"]}},
            {"addPrefix": {"prefix": "/c"}},
            {"stripPrefix": {"prefixes": ["/c/b"]}},
        ],
        [Ask("/a/b/c")],
    ),
    "replaced-twice": Case(
        [{"replacePath": {"path": "/a"}}, {"replacePath": {"path": "/b?c"}}], [Ask("/x%2Fy"), Ask("/x?y=z")]
    ),
    "secured": Case(
        [{"redirectScheme": {"scheme": "https", "port": "444", "permanent": True}}],
        [Ask("/a?b=c"), Ask("/", "POST", b"x")],
    ),
    "to-sockets": Case([{"redirectScheme": {"scheme": "wss"}}], [Ask("/a?b=c")]),
    "hosts": Case(
        [{"headers": {"allowedHosts": ["b.test"], "hostsProxyHeaders": ["X-Host"]}}],
        [Ask(), Ask(headers={"X_Host": "B.test"}), Ask(headers={"X_Host": "c.test"})],
    ),
    "encoded": Case(
        [{"encodedCharacters": {"allowEncodedSlash": True}}],
        [Ask(path) for path in ("/a%2Fb", "/a%3Bb", "/a%25", "/a%20b", "/a?b=%3B")],
    ),
    "replaced": Case(
        [{"replacePathRegex": {"regex": "/(?P<a>[a-z])", "replacement": "/${a}$a-"}}],
        [Ask("/a/b"), Ask("/B"), Ask("/a%20")],
    ),
    "redirected": Case(
        [{"redirectRegex": {"regex": "a", "replacement": "b"}}], [Ask("/a/a?a=a"), Ask("/a", "POST", b"x")]
    ),
    "allowed": Case([{"ipAllowList": {"sourceRange": ["127.0.0.1/8"]}}], [Ask()]),
    "refused": Case(
        [{"ipAllowList": {"sourceRange": ["127.0.0.1/8"], "ipStrategy": {"depth": 1}, "rejectStatusCode": 404}}],
        [Ask(), Ask(headers={"X_Forwarded_For": "127.0.0.1"})],
    ),
    "rate": Case([{"rateLimit": {"average": 1, "period": "1h", "burst": 2}}], [Ask(), Ask(), Ask(), Ask()]),
    "rate-by-header": Case(
        [{"rateLimit": {"average": 1, "period": "1h", "sourceCriterion": {"requestHeaderName": "X-User"}}}],
        [Ask(headers={"X_User": user}) for user in ("a", "a", "b")],
    ),
    "buffered": Case(
        [{"buffering": {"maxRequestBodyBytes": 10, "maxResponseBodyBytes": 1000}}],
        [Ask(), Ask("/", "POST", b"x" * 10), Ask("/", "POST", b"x" * 11), Ask("/text")],
    ),
    "buffered-again": Case(
        [{"buffering": {"retryExpression": "ResponseCode() == 500 && Attempts() < 3"}}],
        [Ask("/500", "POST", b"x"), Ask("/404", "POST", b"x")],
    ),
    "retried": Case(
        [{"retry": {"attempts": 3, "status": ["500-599"]}}],
        [Ask("/500"), Ask("/404"), Ask("/500", "POST", b"x"), Ask("/500", "PUT", b"x")],
    ),
    "retried-unanswered": Case(
        [{"errors": {"status": ["502"], "query": "/{status}", "service": "pages"}}, {"retry": {"attempts": 3}}],
        [Ask("/gone"), Ask("/gone", "POST", b"x")],
    ),
    "retried-unanswered-by-status": Case(
        [
            {"errors": {"status": ["502"], "query": "/{status}", "service": "pages"}},
            {"retry": {"attempts": 3, "status": ["502"], "disableRetryOnNetworkError": True}},
        ],
        [Ask("/gone"), Ask("/gone", "POST", b"x"), Ask("/gone", "PUT", b"x")],
    ),
    "broken": Case(
        [{"circuitBreaker": {"expression": "ResponseCodeRatio(500, 600, 0, 600) > 0.5", "responseCode": 429}}],
        [Ask(), Ask("/500"), Ask("/500"), Ask("/500"), Ask()],
    ),
    "guarded": Case(
        [{"forwardAuth": {"address": "{auth}/let?a=b", "authResponseHeaders": ["X-User"]}}],
        [Ask("/p?q=1", "PUT", b"x", {"X_User": "forged", "Cookie": "a=b"})],
    ),
    "guarded-old": Case(
        [
            {"stripPrefix": {"prefixes": ["/p"]}},
            {
                "forwardAuth": {
                    "address": "{auth}/let",
                    "trustForwardHeader": False,
                    "authRequestHeaders": ["X-Own"],
                    "authResponseHeadersRegex": "^X-U",
                    "addAuthCookiesToResponse": ["s"],
                }
            },
        ],
        [Ask("/p/x?q=1", "POST", b"x", {"X_User": "forged", "Cookie": "a=b", "X_Own": "own"})],
    ),
    "kept-out": Case([{"forwardAuth": {"address": "{auth}/no"}}], [Ask()]),
    "sent-away": Case([{"forwardAuth": {"address": "{auth}/away"}}], [Ask()]),
    "sent-as-it-is": Case([{"forwardAuth": {"address": "{auth}/away", "preserveLocationHeader": True}}], [Ask()]),
    "sent-to-sign-in": Case([{"forwardAuth": {"address": "{auth}/no", "authSigninURL": "https://in.test/a"}}], [Ask()]),
    "with-body": Case(
        [
            {
                "forwardAuth": {
                    "address": "{auth}/let",
                    "forwardBody": True,
                    "maxBodySize": 4,
                    "preserveRequestMethod": True,
                }
            }
        ],
        [Ask("/", "POST", b"body"), Ask("/", "POST", b"longer"), Ask()],
    ),
    "paged": Case(
        [
            {
                "errors": {
                    "status": ["500-599", "404"],
                    "query": "/{status}?o={originalStatus}&u={url}",
                    "statusRewrites": {"500": 503},
                    "service": "pages",
                }
            }
        ],
        [
            Ask("/500?a=b c".replace(" ", "%20"), headers={"Cookie": "a=b"}),
            Ask("/404"),
            Ask("/410"),
            Ask("/500", "POST", b"x"),
        ],
    ),
}


async def _serve(conversation: Conversation) -> None:
    while True:
        head, _ = await conversation.request()
        path = head.split(b" ")[1].decode().partition("?")[0]
        if path == "/gone":
            return
        kind, body = {"/text": ("text/plain", TEXT), "/json": ("application/json", '{"a": 1}')}.get(
            path, ("text/css", "ok")
        )
        status = path[1:] if path[1:].isdecimal() else "200"
        lines = [f"HTTP/1.1 {status} Fine", f"Content-Type: {kind}", f"Content-Length: {len(body)}", "X-Origin: yes"]
        lines += ["X-Own: own", "Vary: Accept", "Set-Cookie: s=own", "Set-Cookie: o=own"]
        bodiless = head.startswith(b"HEAD")
        await conversation.send("\r\n".join([*lines, "", "" if bodiless else body]).encode())


async def _judge(conversation: Conversation) -> None:
    answers = {
        "/let": "HTTP/1.1 200 OK\r\nX-User: jack\r\nX-Other: other\r\nSet-Cookie: s=auth\r\nSet-Cookie: t=auth\r\n",
        "/no": "HTTP/1.1 401 No\r\nX-Origin: yes\r\nX-Why: no\r\nWWW-Authenticate: Basic\r\nSet-Cookie: s=auth\r\n",
        "/away": "HTTP/1.1 302 Away\r\nX-Origin: yes\r\nLocation: /login?a=b\r\n",
    }
    while True:
        head, _ = await conversation.request()
        path = head.split(b" ")[1].decode().partition("?")[0]
        await conversation.send(f"{answers[path]}Content-Length: 4\r\n\r\nauth".encode())


class Seen(NamedTuple):
    """What became of one request."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes
    served: list[tuple[str, bytes, list[tuple[str, str]]]]
    """Which server was asked for what."""


class Gateway(NamedTuple):
    """One of the two, with the servers behind it."""

    port: int
    servers: Mapping[str, Origin]

    async def ask(self, host: str, ask: Ask) -> Seen:
        before = {name: len(server.heads) for name, server in self.servers.items()}
        client = Client(*await asyncio.open_connection("127.0.0.1", self.port))
        await client.send(asking(ask.path, ask.method, host, ask.body, **ask.headers))
        got = await read_answer(client)
        client.close()
        served = [
            (name, head.split(b" HTTP", 1)[0], self._named(_fields(head, OWN_REQUEST + OWN_OF_SERVER.get(name, ()))))
            for name, server in self.servers.items()
            for head in server.heads[before[name] :]
        ]
        return Seen(got.status, self._named(_answer_fields(got)), _body(got), served)

    def _named(self, fields: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """Write names of servers for their addresses."""
        ports = {str(server.port): name for name, server in self.servers.items()} | {str(self.port): "gateway"}
        for port, name in ports.items():
            fields = [(one, value.replace(f":{port}", f":{name}")) for one, value in fields]
        return fields


def _fields(head: bytes, own: Sequence[str]) -> list[tuple[str, str]]:
    lines = [line.partition(": ") for line in head.decode("latin-1").split("\r\n")[1:] if line]
    return sorted((name.lower(), value) for name, _, value in lines if name.lower() not in own)


def _answer_fields(got: Got) -> list[tuple[str, str]]:
    own = OWN_ANSWER if got["x-origin"] else (*OWN_ANSWER, "x-content-type-options")
    fields = [
        (name, "a while" if name in ("retry-after", "x-retry-in") else value)
        for name, values in _fields(got.head, own)
        for value in (values.split(", ") if name == "vary" else [values])
    ]
    return sorted(fields)


def _body(got: Got) -> bytes:
    """Return the body; of a gateway's own answer nothing."""
    if got["x-origin"] == "":
        return b""
    return gzip.decompress(got.body) if got["content-encoding"] == "gzip" else got.body


def _written(spec: Any, auth: int) -> Any:
    """Return a middleware with the address of the server that is asked."""
    if "forwardAuth" not in spec:
        return spec
    address = spec["forwardAuth"]["address"].replace("{auth}", f"http://127.0.0.1:{auth}")
    return {"forwardAuth": {**spec["forwardAuth"], "address": address}}


def _dynamic(ports: Mapping[str, int]) -> dict[str, Any]:
    routers, middlewares = {}, {}
    for name, case in CASES.items():
        listed = {f"{name}-{index}": _written(spec, ports["auth"]) for index, spec in enumerate(case.middlewares)}
        middlewares |= listed
        routers[name] = {
            "rule": f"Host(`{name}.test`)",
            "entryPoints": [ENTRY_POINT],
            "service": "web",
            "middlewares": list(listed),
        }
    services = {
        name: {"loadBalancer": {"servers": [{"url": f"http://127.0.0.1:{ports[name]}"}]}} for name in ("web", "pages")
    }
    return {"http": {"routers": routers, "middlewares": middlewares, "services": services}}


def _apply(made: World) -> None:
    objects = []
    for name, case in CASES.items():
        listed = []
        for index, spec in enumerate(case.middlewares):
            written = _written(spec, made.port("auth"))
            if "errors" in written:
                written = {"errors": {**written["errors"], "service": {"name": "pages", "port": 80}}}
            listed.append(middleware(f"{name}-{index}", **written))
        names = [one["metadata"]["name"] for one in listed]
        objects += [*listed, route(rule(f"Host(`{name}.test`)", middlewares=names), name=name)]
    made.proxy.apply(*objects)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def both(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Gateway, Gateway]]:
    """Traefik and ours, each with servers of its own."""
    folder: Path = tmp_path_factory.mktemp("traefik")
    async with contextlib.AsyncExitStack() as stack:
        web, pages, auth = await stack.enter_async_context(origins(_serve, _serve, _judge))
        servers = {"web": web, "pages": pages, "auth": auth}
        theirs = await stack.enter_async_context(
            traefik(folder, _dynamic({name: server.port for name, server in servers.items()}))
        )
        made = await stack.enter_async_context(world(web=_serve, pages=_serve, auth=_judge))
        _apply(made)
        yield Gateway(theirs.port, servers), Gateway(made.proxy.proxy.port, made.servers)


@pytest.mark.parametrize("name", CASES)
async def test_a_middleware_does_what_traefiks_does(name: str, both: tuple[Gateway, Gateway]) -> None:
    for ask in CASES[name].asks:
        theirs, ours = [await gateway.ask(f"{name}.test", ask) for gateway in both]
        assert ours == theirs, ask
