"""What settings say of entry points: redirections, middlewares, TLS, trust and timeouts, to the wire."""

import asyncio
from typing import Any

import pytest

from fakes.gateway.entry_points import ANY, site
from fakes.gateway.served import HOST, asking, read_answer
from fakes.translator.deltas import ingress
from fakes.translator.traefik import middleware, resource, route, rule


@pytest.mark.parametrize(
    ("to", "method", "status", "port"),
    [("websecure", "GET", 301, ""), (":8443", "GET", 301, ":8443"), ("websecure", "POST", 308, "")],
)
@pytest.mark.parametrize("name", ["web", "api"])
async def test_plain_requests_are_redirected(name: str, to: str, method: str, status: int, port: str) -> None:
    options = {"http": {"redirections": {"entryPoint": {"to": to}}}}
    async with site(**({"web": options} if name == "web" else options)) as one:
        one.proxy.apply(route(ANY, spec={"entryPoints": ["web"]}))
        asked = {"path": "/a?b", "method": method}
        got = await one.proxy.get(**asked) if name == "web" else await one.ask(**asked)
        assert (got.status, got["location"]) == (status, f"https://{HOST}{port}/a?b")


async def test_a_redirection_may_be_for_the_moment() -> None:
    redirections = {"entryPoint": {"to": "websecure", "permanent": False}}
    async with site(http={"redirections": redirections}) as one:
        assert [(await one.ask(method=method)).status for method in ("GET", "PUT")] == [302, 307]


async def test_middlewares_of_an_entry_point_come_before_those_of_its_routes() -> None:
    async with site(http={"middlewares": ["default-first@kubernetescrd"]}) as one:
        one.proxy.apply(middleware("first", addPrefix={"prefix": "/a"}), middleware("own", addPrefix={"prefix": "/b"}))
        one.proxy.apply(route({**ANY, "middlewares": [{"name": "own"}]}, spec={"entryPoints": ["web", "api"]}))
        assert (await one.ask(path="/x")).status == 200
        assert one.asked.startswith(b"GET /b/a/x ")
        assert await one.proxy.status("/x") == 200
        assert one.asked.startswith(b"GET /b/x ")


@pytest.mark.parametrize("is_ingress", [False, True])
async def test_a_middleware_of_an_entry_point_that_is_missing_closes_the_routes_there_alone(is_ingress: bool) -> None:
    async with site(http={"middlewares": ["default-lost@kubernetescrd"]}) as one:
        named = {"traefik.ingress.kubernetes.io/router.entrypoints": "web,api"}
        closed = route(ANY, spec={"entryPoints": ["web", "api"]})
        if is_ingress:
            closed = ingress("web", host=HOST, service="one", annotations=named)
        one.proxy.apply(closed)
        assert [(await one.ask()).status, await one.proxy.status()] == [503, 200]
        assert one.proxy.errors(closed) == ["MiddlewareNotFound"]


@pytest.mark.parametrize("kind", ["ingress", "route", "layers"])
async def test_escapes_that_an_entry_point_does_not_allow_are_refused_there_alone(kind: str) -> None:
    async with site(http={"encodedCharacters": {"allowEncodedSlash": False, "allowEncodedHash": False}}) as one:
        where = {"entryPoints": ["web", "api"]}
        if kind == "ingress":
            named = {"traefik.ingress.kubernetes.io/router.entrypoints": "web,api"}
            one.proxy.apply(ingress("web", host=HOST, service="one", annotations=named))
        elif kind == "route":
            one.proxy.apply(middleware("own", replacePath={"path": "/"}))
            one.proxy.apply(route({**ANY, "middlewares": [{"name": "own"}]}, spec=where))
        else:
            one.proxy.apply(route({"match": f"Host(`{HOST}`)", "kind": "Rule"}, name="above", spec=where))
            one.proxy.apply(
                route(rule("PathPrefix(`/`)", {"name": "one", "port": 80}), spec={"parentRefs": [{"name": "above"}]})
            )
        paths = ["/foo", "/foo%2F", "/foo%2fbar", "/foo%23", "/foo%3F", "/foo?%2F"]
        assert [(await one.ask(path=path)).status for path in paths] == [200, 400, 400, 400, 200, 200]
        assert [await one.proxy.status(path) for path in paths] == [200] * 6


async def test_routes_without_tls_have_that_of_their_entry_point() -> None:
    async with site(http={"tls": {"options": "default-modern@kubernetescrd"}}) as one:
        one.proxy.apply(route(ANY, spec={"entryPoints": ["api"]}))
        one.proxy.apply(resource("TLSOption", "modern", {"minVersion": "VersionTLS13"}))
        client = await one.connect(tls=True)
        assert client.writer.get_extra_info("ssl_object").version() == "TLSv1.3"
        await client.send(asking())
        assert (await read_answer(client)).body == b"one"


@pytest.mark.parametrize(
    ("trust", "chain"),
    [({"trustedIPs": ["127.0.0.0/8"]}, "203.0.113.7, 127.0.0.1"), ({"trustedIPs": ["192.0.2.1"]}, "127.0.0.1")],
)
async def test_forwarded_headers_of_trusted_peers_are_believed(trust: Any, chain: str) -> None:
    async with site(forwardedHeaders=trust) as one:
        one.proxy.apply(route(ANY, spec={"entryPoints": ["api"]}))
        await one.ask(X_Forwarded_For="203.0.113.7")
        assert one.heard("X-Forwarded-For") == chain


async def test_proxy_headers_name_the_client_and_forwarded_ones_do_not() -> None:
    async with site(proxyProtocol={"insecure": True}) as one:
        one.proxy.apply(route(ANY, spec={"entryPoints": ["api"]}))
        client = await one.connect()
        await client.send(b"PROXY TCP4 203.0.113.9 203.0.113.1 5555 80\r\n" + asking(X_Forwarded_For="192.0.2.77"))
        assert (await read_answer(client)).status == 200
        assert b"203.0.113.9" in one.asked


async def test_connections_end_after_a_number_of_requests() -> None:
    async with site(transport={"keepAliveMaxRequests": 1}) as one:
        one.proxy.apply(route(ANY, spec={"entryPoints": ["api"]}))
        assert (await one.ask())["connection"] == "close"


async def test_connections_end_when_they_are_old() -> None:
    async with site(transport={"keepAliveMaxTime": "300ms"}) as one:
        one.proxy.apply(route(ANY, spec={"entryPoints": ["api"]}))
        client = await one.connect()
        await client.send(asking())
        got = await read_answer(client)
        assert got["connection"] == ""
        async with asyncio.timeout(5):
            while got["connection"] != "close":
                await asyncio.sleep(0.1)
                await client.send(asking())
                got = await read_answer(client)
        assert got.body == b"one"
        assert await client.reader.read() == b""


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\n"])
async def test_heads_have_to_come_in_time(sent: bytes) -> None:
    async with site(transport={"respondingTimeouts": {"readTimeout": "300ms"}}) as one:
        one.proxy.apply(route(ANY, spec={"entryPoints": ["api"]}))
        client = await one.connect()
        await client.send(sent)
        got = await asyncio.wait_for(client.reader.read(), 5)
        assert got.startswith(b"HTTP/1.1 408 ") if sent else got == b""


@pytest.mark.parametrize(("encodes", "query"), [(False, "a=1&b=2"), (True, "a=1%3Bb=2")])
async def test_semicolons_in_queries_separate_unless_they_are_encoded(encodes: bool, query: str) -> None:
    async with site(http={"encodeQuerySemicolons": encodes}) as one:
        one.proxy.apply(route(ANY, spec={"entryPoints": ["api"]}))
        await one.ask(path="/x;y?a=1;b=2")
        assert one.asked.startswith(f"GET /x;y?{query} HTTP/1.1".encode())


@pytest.mark.parametrize("match", ["Query(`b`, `2`)", "Query(`b=2`)"])
@pytest.mark.parametrize(("encodes", "status"), [(False, 200), (True, 404)])
async def test_rules_split_queries_as_the_entry_point_does(match: str, encodes: bool, status: int) -> None:
    asking_for = rule(match, *ANY["services"], syntax="v2" if "=" in match else "v3")
    async with site(http={"encodeQuerySemicolons": encodes}) as one:
        one.proxy.apply(route(asking_for, spec={"entryPoints": ["api"]}))
        assert (await one.ask(path="/x?a=1;b=2")).status == status
        assert (await one.ask(path="/x?a=1&b=2")).status == 200
