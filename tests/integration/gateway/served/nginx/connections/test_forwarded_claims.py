"""What upstreams are told of a request, and what clients claim of it: `test/e2e/settings/enable_real_ip.go`.

What a client claims of its host goes to the upstream alone: whoever decides about the request sees the host that chose
the route.
"""

from collections.abc import AsyncIterator

import pytest

from fakes.gateway.proxied import Conversation
from fakes.gateway.served import HOST
from fakes.peers.http2 import Http2Origin, answer_with
from fakes.translator.applied import World, world
from fakes.translator.deltas import endpoint_slice, ingress, service
from fakes.translator.nginx import ADOPTED, NGINX_CLASS, classed, headers, options
from headgate.gateway.proxy.config import ProxyConfig

CLAIMS = {
    "X_Forwarded_Port": "1234",
    "X_Forwarded_Proto": "myproto",
    "X_Forwarded_For": "1.2.3.4",
    "X_Forwarded_Host": "myhost",
}
FORGED = {"X_Scheme": "gopher", "X_Forwarded_Scheme": "gopher", "X_Original_Forwarded_For": "6.6.6.6"}


@pytest.fixture
async def one() -> AsyncIterator[World]:
    """A proxy before a Service `one`, with an Ingress of ingress-nginx."""
    async with world("one", settings=ADOPTED) as made:
        made.proxy.apply(NGINX_CLASS, classed(ssl_redirect="false"))
        yield made


@pytest.mark.parametrize("more", [{}, FORGED])
@pytest.mark.parametrize("annotations", [{}, {"enable_cors": "true"}])
async def test_what_a_client_claims_is_told_as_its_claim_alone(
    one: World, more: dict[str, str], annotations: dict[str, str]
) -> None:
    one.proxy.apply(options(enable_real_ip="false"), classed(**annotations))
    assert await one.proxy.status(**CLAIMS, **more) == 200
    sent = headers(one)
    expected = {
        "host": "a.example",
        "x-forwarded-host": "a.example",
        "x-forwarded-for": "127.0.0.1",
        "x-forwarded-port": str(one.proxy.proxy.port),
        "x-forwarded-proto": "http",
        "x-forwarded-scheme": "http",
        "x-scheme": "http",
        "x-original-forwarded-for": "1.2.3.4",
        "x-original-forwarded-host": "myhost",
    }
    assert {name: sent[name] for name in expected} == expected
    assert b"gopher" not in one.servers["one"].heads[-1]


async def test_claims_are_left_out_where_there_are_none(one: World) -> None:
    assert (await one.proxy.proxy.secure(**FORGED)).status == 200
    sent = headers(one)
    assert (sent["x-scheme"], sent["x-forwarded-scheme"]) == ("https", "https")
    assert not [name for name in sent if name.startswith("x-original-")]


async def test_claims_of_trusted_proxies_are_told_too() -> None:
    async with world("one", settings=ADOPTED, config=ProxyConfig(trusted_proxies=("127.0.0.0/8",))) as made:
        made.proxy.apply(NGINX_CLASS, classed(ssl_redirect="false"))
        await made.proxy.status(X_Forwarded_Proto="https", X_Forwarded_For="1.2.3.4", X_Scheme="gopher")
        sent = headers(made)
        assert (sent["x-scheme"], sent["x-forwarded-scheme"], sent["x-forwarded-proto"]) == ("https",) * 3
        assert sent["x-original-forwarded-for"] == "1.2.3.4"
        assert made.servers["one"].heads[-1].lower().count(b"x-scheme") == 1


async def test_other_ingresses_have_no_such_headers() -> None:
    async with world("one") as made:
        made.proxy.apply(ingress("plain", host="a.example", service="one"))
        await made.proxy.status(**CLAIMS, **FORGED)
        assert not [
            name for name in headers(made) if name.startswith(("x-original-", "x-scheme", "x-forwarded-scheme"))
        ]


# use-forwarded-headers


@pytest.mark.parametrize(
    ("claimed", "host"),
    [("myhost", "myhost"), ("myhost.com, another.host,example.net", "myhost.com"), ("my host", "a.example")],
)
async def test_first_forwarded_host_goes_to_the_upstream_and_the_requests_own_chooses_the_route(
    one: World, claimed: str, host: str
) -> None:
    one.proxy.apply(options(use_forwarded_headers="true"))
    assert await one.proxy.status(X_Forwarded_Host=claimed, X_Forwarded_Port="1234", X_Forwarded_For="1.2.3.4") == 200
    sent = headers(one)
    assert (sent["host"], sent["x-forwarded-host"], sent["x-original-forwarded-host"]) == (host, host, claimed)
    assert (sent["x-forwarded-port"], sent["x-forwarded-for"]) == ("1234", "1.2.3.4")
    one.proxy.apply(options(use_forwarded_headers="false"))
    await one.proxy.status(X_Forwarded_Host=claimed)
    assert (headers(one)["host"], headers(one)["x-forwarded-host"]) == ("a.example", "a.example")


async def test_redirects_to_https_name_the_forwarded_host_without_its_port(one: World) -> None:
    one.proxy.apply(options(use_forwarded_headers="true"), classed(force_ssl_redirect="true"))
    got = await one.proxy.get(X_Forwarded_Host="example.com:80")
    assert (got.status, got["location"]) == (308, "https://example.com")


async def test_vhost_of_an_ingress_goes_before_the_forwarded_host(one: World) -> None:
    one.proxy.apply(options(use_forwarded_headers="true"), classed(upstream_vhost="v.example"))
    await one.proxy.get(X_Forwarded_Host="example.com")
    assert (headers(one)["host"], headers(one)["x-forwarded-host"]) == ("v.example", "example.com")


async def test_real_ip_believes_the_address_alone(one: World) -> None:
    one.proxy.apply(options(enable_real_ip="true"))
    assert await one.proxy.status(**CLAIMS) == 200
    sent = headers(one)
    assert (sent["host"], sent["x-forwarded-host"], sent["x-forwarded-proto"]) == ("a.example", "a.example", "http")
    assert (sent["x-forwarded-for"], sent["x-forwarded-port"]) == ("1.2.3.4", str(one.proxy.proxy.port))
    assert (sent["x-original-forwarded-for"], sent["x-original-forwarded-host"]) == ("1.2.3.4", "myhost")


async def test_upstreams_in_http2_get_the_forwarded_host_too() -> None:
    origin = Http2Origin(answer_with())
    await origin.start()
    async with world(settings=ADOPTED) as made:
        made.proxy.apply(NGINX_CLASS, service("echo"), endpoint_slice("echo", "127.0.0.1", port=origin.port))
        made.proxy.apply(options(use_forwarded_headers="true"), classed(to="echo", backend_protocol="GRPC"))
        assert await made.proxy.status(X_Forwarded_Host="example.com, b.example") == 200
        sent = origin.requests[0].headers
        assert (sent[b":authority"], sent[b"x-forwarded-host"]) == (b"example.com", b"example.com")
    await origin.stop()


# compute-full-forwarded-for


async def test_upstream_gets_the_clients_address_alone_unless_the_whole_list_is_wanted(one: World) -> None:
    claims = {"X_Forwarded_For": "6.6.6.6, 1.2.3.4"}
    one.proxy.apply(options(use_forwarded_headers="true", proxy_real_ip_cidr="127.0.0.0/8"))
    await one.proxy.status(**claims)
    sent = headers(one)
    assert (sent["x-forwarded-for"], sent["x-real-ip"]) == ("1.2.3.4", "1.2.3.4")
    assert sent["x-original-forwarded-for"] == "6.6.6.6, 1.2.3.4"
    full = {"compute_full_forwarded_for": "true", "proxy_real_ip_cidr": "127.0.0.0/8"}
    one.proxy.apply(options(use_forwarded_headers="true", **full))
    await one.proxy.status(**claims)
    assert headers(one)["x-forwarded-for"] == "6.6.6.6, 1.2.3.4, 127.0.0.1"
    await one.proxy.status(X_Forwarded_Port="1234")
    assert headers(one)["x-forwarded-for"] == "127.0.0.1"
    one.proxy.apply(options(**full))
    await one.proxy.status(**claims)
    assert headers(one)["x-forwarded-for"] == "127.0.0.1"


async def test_other_headers_of_trusted_proxies_are_passed_on(one: World) -> None:
    one.proxy.apply(options(use_forwarded_headers="true"))
    await one.proxy.status(X_Forwarded_Prefix="/shop", X_Forwarded_For="1.2.3.4", **FORGED)
    assert headers(one)["x-forwarded-prefix"] == "/shop"
    head = one.servers["one"].heads[-1].lower()
    assert b"gopher" not in head
    assert [head.count(name) for name in (b"\nx-forwarded-for:", b"\nx-forwarded-host:", b"\nx-scheme:")] == [1, 1, 1]


# Who decides about a request


async def judge(conversation: Conversation) -> None:
    """A service that lets in what was asked of `public.example`, or is asked of `localhost` itself."""
    while True:
        head, _ = await conversation.request()
        is_let_in = b"X-Original-URL: http://public.example/" in head or b"\r\nHost: localhost" in head
        await conversation.send(b"HTTP/1.1 %b V\r\nContent-Length: 0\r\n\r\n" % (b"200" if is_let_in else b"401"))


@pytest.mark.parametrize("host", ["127.0.0.1", "$host", "$http_host", "$server_name"])
async def test_a_forwarded_host_does_not_open_what_authentication_guards(host: str) -> None:
    async with world("one", settings=ADOPTED, auth=judge) as made:
        made.proxy.apply(NGINX_CLASS, options(use_forwarded_headers="true"))
        made.proxy.apply(classed(auth_url=f"http://{host}:{made.port('auth')}/verify"))
        plain = await made.proxy.status()
        assert plain in (401, 500)
        for claimed in ("public.example", "localhost"):
            assert await made.proxy.status(X_Forwarded_Host=claimed) == plain
        assert made.servers["one"].heads == []


async def test_clients_are_sent_to_their_own_host_to_sign_in() -> None:
    async with world("one", settings=ADOPTED, auth=judge) as made:
        made.proxy.apply(NGINX_CLASS, options(use_forwarded_headers="true"))
        url = f"http://127.0.0.1:{made.port('auth')}/verify"
        made.proxy.apply(classed(auth_url=url, auth_signin="https://$host/oauth2/start"))
        got = await made.proxy.get("/x", X_Forwarded_Host="evil.example")
        assert got.status == 302
        assert "evil" not in got["location"]
        assert got["location"].startswith(f"https://{HOST}/oauth2/start?rd=http://{HOST}")
        made.proxy.apply(classed(app_root="/app"))
        assert (await made.proxy.get("/", X_Forwarded_Host="evil.example"))["location"] == f"http://{HOST}/app"


async def test_the_best_host_alone_is_the_forwarded_one(one: World) -> None:
    names = ("best_http_host", "host", "http_host", "server_name")
    snippet = f'more_set_headers "X-Hosts: {" ".join(f"${name}" for name in names)}";'
    logged = " ".join(f"${name}" for name in (*names, "http_x_forwarded_host"))
    one.proxy.apply(
        options(use_forwarded_headers="true", log_format_upstream=logged), classed(configuration_snippet=snippet)
    )
    got = await one.proxy.get(X_Forwarded_Host="Example.com:81, b.example")
    expected = f"Example.com:81 {HOST} {HOST} {HOST}"
    assert (got.status, got["x-hosts"]) == (200, expected)
    assert one.proxy.proxy.log.lines == [f"{expected} Example.com:81, b.example"]


@pytest.mark.parametrize("key", ["enable_real_ip", "use_forwarded_headers"])
async def test_logs_can_show_what_a_client_claims(one: World, key: str) -> None:
    one.proxy.apply(options(log_format_upstream="$remote_addr $http_x_forwarded_proto", **{key: "true"}))
    await one.proxy.status(**CLAIMS)
    assert one.proxy.proxy.log.lines == ["1.2.3.4 myproto"]
