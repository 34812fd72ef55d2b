"""Snippets on Ingresses, from the manifest to the wire.

The cases of ingress-nginx are in `test/e2e/annotations/snippet.go`, `serversnippet.go` and `auth.go`.
"""

from collections.abc import AsyncIterator

import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from fakes.gateway.proxied import Conversation
from fakes.translator.applied import World, world
from fakes.translator.nginx import nginx_ingress, options
from headgate.common.service.telemetry import configure_telemetry
from headgate.gateway.observability.tracing import Tracing
from headgate.translator.world.settings import NginxSettings, TranslationSettings

ALLOWED = TranslationSettings(nginx=NginxSettings(allow_snippets=True))


@pytest.fixture
async def two() -> AsyncIterator[World]:
    """A proxy before Services `one` and `two`, with snippets allowed."""
    async with world("one", "two", settings=ALLOWED) as made:
        yield made


def asked(made: World, name: str = "one") -> str:
    """Return the head that a server got last."""
    return made.servers[name].heads[-1].decode()


async def test_snippets_are_refused_by_name_unless_they_are_allowed() -> None:
    async with world("one") as made:
        manifest = nginx_ingress(configuration_snippet="more_set_headers 'X-A: 1';")
        made.proxy.apply(manifest)
        assert await made.proxy.status() == 503
        assert "setting nginx_allow_snippets" in made.proxy.messages(manifest)
        made.proxy.apply(nginx_ingress("other", host="b.example"))
        assert await made.proxy.status(host="b.example") == 200


async def test_location_of_each_path_has_the_snippet(two: World) -> None:
    snippet = 'more_set_headers "Foo-Bar: one-$service_name-$namespace"; proxy_set_header X-Path $location_path;'
    two.proxy.apply(nginx_ingress(path="/a", configuration_snippet=snippet))
    got = await two.proxy.get("/a")
    assert (got.status, got["foo-bar"]) == (200, "one-one-default")
    assert "X-Path: /a\r\n" in asked(two)


async def test_snippet_that_cannot_be_followed_refuses_its_ingress_alone_and_names_the_line(two: World) -> None:
    bad = nginx_ingress("bad", path="/bad", configuration_snippet="add_header X-A 1;\nproxy_pass http://x;")
    two.proxy.apply(nginx_ingress(), bad)
    assert await two.proxy.status("/bad") == 503
    assert await two.proxy.status("/") == 200
    assert "line 2, column 1: proxy_pass: is not followed here" in two.proxy.messages(bad)
    assert two.proxy.errors(bad) == ["InvalidAnnotation"]


async def test_snippet_that_is_mended_is_followed(two: World) -> None:
    two.proxy.apply(nginx_ingress(configuration_snippet="return 403"))
    assert await two.proxy.status() == 503
    two.proxy.apply(nginx_ingress(configuration_snippet="return 403;"))
    assert await two.proxy.status() == 403


async def test_path_on_which_a_snippet_cannot_be_followed_is_refused_alone(two: World) -> None:
    snippet = "more_set_headers 'X-Path: $location_path';"
    two.proxy.apply(
        nginx_ingress("a", path="/a", configuration_snippet=snippet),
        nginx_ingress("b", path="/b(c|$d)", use_regex="true", configuration_snippet=snippet),
    )
    assert (await two.proxy.get("/a"))["x-path"] == "/a"
    assert await two.proxy.status("/bc") == 500


async def test_fields_of_the_route_go_before_those_of_other_annotations(two: World) -> None:
    two.proxy.apply(nginx_ingress(proxy_body_size="1m", configuration_snippet="client_max_body_size 2;"))
    assert (await two.proxy.post(b"12")).status == 200
    assert (await two.proxy.post(b"123")).status == 413


async def test_rewrite_target_comes_behind_the_program(two: World) -> None:
    two.proxy.apply(
        nginx_ingress(
            path="/app(/|$)(.*)",
            rewrite_target="/$2",
            x_forwarded_prefix="/app",
            configuration_snippet="rewrite ^(/app)$ $1/ redirect; rewrite (?i)/app/keep/(.*) /kept/$1 break;",
        )
    )
    got = await two.proxy.get("/app")
    assert (got.status, got["location"]) == (302, "http://a.example/app/")
    assert await two.proxy.status("/app/keep/x") == 200
    assert asked(two).startswith("GET /kept/x ")
    assert await two.proxy.status("/app/other?q=1") == 200
    assert asked(two).startswith("GET /other?q=1 ")
    assert "X-Forwarded-Prefix: /app\r\n" in asked(two)


async def test_return_goes_before_whatever_lets_requests_in(two: World) -> None:
    annotations = {"whitelist_source_range": "10.0.0.0/8", "configuration_snippet": "if ($arg_a) { return 418; }"}
    two.proxy.apply(nginx_ingress(**annotations))
    assert await two.proxy.status("/?a=1") == 418
    assert await two.proxy.status("/") == 403


# server-snippet


async def test_server_has_the_snippet_of_the_oldest_ingress_of_its_host(two: World) -> None:
    first = "more_set_headers 'X-Server: first'; if ($http_user_agent ~* badbot) { return 403; }"
    two.proxy.apply(
        nginx_ingress("a", path="/a", server_snippet=first, created="2026-01-01T00:00:00Z"),
        nginx_ingress("b", path="/b", to="two", server_snippet="return 500;", created="2026-01-02T00:00:00Z"),
        nginx_ingress("c", host="c.example"),
    )
    assert (await two.proxy.get("/b"))["x-server"] == "first"
    assert await two.proxy.status("/b", User_Agent="BadBot/1") == 403
    assert await two.proxy.status("/", User_Agent="BadBot/1", host="c.example") == 200


async def test_program_of_the_server_is_asked_for_paths_of_no_ingress(two: World) -> None:
    two.proxy.apply(nginx_ingress(path="/a", server_snippet="if ($request_uri ~ /\\.git) { return 418; }"))
    assert await two.proxy.status("/.git/config") == 418
    assert await two.proxy.status("/other") == 404


async def test_location_blocks_are_routes(two: World) -> None:
    snippet = """
        location = /healthz { default_type text/plain; return 200 "fine"; }
        location /private { deny all; }
        location ~* \\.(env|bak)$ { return 410; }
        location /files/ { add_header X-A 1; }
        location ~ ^/v1/(?!open) { return 401; }
        location ~* ^/OLD(.*) { return 308 /new$1$is_args$args; }
    """
    two.proxy.apply(nginx_ingress(server_snippet=snippet))
    healthy = await two.proxy.get("/healthz")
    assert (healthy.status, healthy.body, healthy["content-type"]) == (200, b"fine", "text/plain")
    assert await two.proxy.status("/healthz/x") == 200
    assert asked(two).startswith("GET /healthz/x ")
    assert await two.proxy.status("/private/x") == 403
    assert await two.proxy.status("/a/b.ENV") == 410
    assert await two.proxy.status("/files/x") == 404
    assert [await two.proxy.status(path) for path in ("/v1/x", "/v1/open")] == [401, 200]
    moved = await two.proxy.get("/old/a?b=c")
    assert (moved.status, moved["location"]) == (308, "http://a.example/new/a?b=c")


async def test_location_that_is_a_path_of_the_ingress_refuses_the_snippet(two: World) -> None:
    manifest = nginx_ingress(server_snippet="location / { return 403; }")
    two.proxy.apply(manifest)
    assert await two.proxy.status("/") == 503
    assert "line 1, column 1: location: / is a path of the Ingress too" in two.proxy.messages(manifest)


async def test_snippet_of_a_server_goes_when_its_ingress_goes(two: World) -> None:
    owner = nginx_ingress("a", path="/a", server_snippet="return 418;")
    two.proxy.apply(owner, nginx_ingress("b", path="/b", ssl_redirect="false"))
    assert await two.proxy.status("/b") == 418
    two.proxy.delete(owner)
    assert await two.proxy.status("/b") == 200


# Rewrites that lead to another path of the host

LAST = "rewrite ^/old/(.*)$ /new/$1 last;"


async def test_a_rewritten_path_goes_to_the_ingress_that_has_it(two: World) -> None:
    two.proxy.apply(nginx_ingress(path="/old", configuration_snippet=LAST))
    two.proxy.apply(nginx_ingress("new", to="two", path="/new", configuration_snippet="add_header X-New 1;"))
    got = await two.proxy.get("/old/a?b=c")
    assert (got.body, got["x-new"]) == (b"two", "1")
    assert asked(two, "two").startswith("GET /new/a?b=c HTTP/1.1\r\n")
    assert asked(two, "two").count("X-Scheme: ") == 1


async def test_a_rewritten_path_is_guarded_by_the_ingress_that_has_it(two: World) -> None:
    two.proxy.apply(nginx_ingress(path="/old", configuration_snippet=LAST, denylist_source_range="127.0.0.1"))
    two.proxy.apply(nginx_ingress("new", to="two", path="/new"))
    assert await two.proxy.bodies(1, "/old/a") == ["two"]
    two.proxy.apply(nginx_ingress("new", to="two", path="/new", denylist_source_range="127.0.0.1"))
    assert await two.proxy.status("/old/a") == 403


async def test_a_rewritten_path_that_no_ingress_has_is_not_found(two: World) -> None:
    two.proxy.apply(nginx_ingress(path="/old", configuration_snippet=LAST))
    assert await two.proxy.status("/old/a") == 404
    assert two.proxy.proxy.log.records[-1][3] == b"/old/a"


async def test_a_rewritten_path_has_one_span_named_by_the_route_that_took_it(two: World) -> None:
    two.proxy.apply(nginx_ingress(path="/old", configuration_snippet=LAST), nginx_ingress("new", path="/new"))
    exporter = InMemorySpanExporter()
    configure_telemetry("gateway", processor=SimpleSpanProcessor(exporter))
    try:
        two.proxy.proxy.server.context.tracing = Tracing(1.0)
        assert await two.proxy.status("/old/a") == 200
    finally:
        configure_telemetry("headgate")
    [span] = [span for span in exporter.get_finished_spans() if span.kind is SpanKind.SERVER]
    assert "default/new" in span.name


async def test_a_path_rewritten_in_a_circle_is_an_error(two: World) -> None:
    circle = "rewrite ^/(.*)a$ /$1b last; rewrite ^/(.*)b$ /$1a last;"
    two.proxy.apply(nginx_ingress(configuration_snippet=circle))
    assert await two.proxy.status("/a") == 500
    assert await two.proxy.status("/c") == 200


async def test_a_server_rewrites_before_a_path_is_looked_for(two: World) -> None:
    two.proxy.apply(nginx_ingress(path="/new", server_snippet=LAST))
    two.proxy.apply(nginx_ingress("other", to="two", path="/old/kept", enable_cors="true"))
    assert await two.proxy.bodies(1, "/old/a") == ["one"]
    assert await two.proxy.bodies(1, "/old/kept") == ["one"]
    assert await two.proxy.status("/other") == 404
    assert [record[3] for record in two.proxy.proxy.log.records] == [b"/old/a", b"/old/kept", b"/other"]


async def test_a_body_passes_to_the_route_of_a_rewritten_path(two: World) -> None:
    two.proxy.apply(nginx_ingress(path="/old", configuration_snippet=LAST))
    two.proxy.apply(nginx_ingress("new", to="two", path="/new", proxy_body_size="2k"))
    assert (await two.proxy.post(b"x" * 1000, "/old/a")).body == b"two"
    assert (await two.proxy.post(b"x" * 3000, "/old/a")).status == 413


# auth-snippet


async def letting_in(conversation: Conversation) -> None:
    """Script: an authentication service that lets everybody in."""
    while True:
        await conversation.request()
        await conversation.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


async def test_questions_to_the_service_have_the_headers_of_the_snippet() -> None:
    async with world("one", settings=ALLOWED, auth=letting_in) as made:
        made.proxy.apply(
            nginx_ingress(
                auth_url=f"http://127.0.0.1:{made.port('auth')}/",
                auth_snippet='proxy_set_header X-Tenant $host; proxy_set_header X-Sent-From "";',
            )
        )
        assert await made.proxy.status() == 200
        head = asked(made, "auth")
        assert "X-Tenant: a.example\r\n" in head
        assert "X-Sent-From" not in head
        assert "X-Tenant" not in asked(made)


async def naming(conversation: Conversation) -> None:
    """Script: an authentication service that says who asks."""
    while True:
        await conversation.request()
        await conversation.send(b"HTTP/1.1 200 OK\r\nX-Auth-Request-Email: a@b.example\r\nContent-Length: 0\r\n\r\n")


@pytest.mark.parametrize("more", [{}, {"satisfy": "any", "whitelist_source_range": "10.0.0.0/8"}])
async def test_variables_have_headers_of_the_services_answer(more: dict[str, str]) -> None:
    snippet = """
        auth_request_set $email $upstream_http_x_auth_request_email;
        proxy_set_header X-Email $email;
        add_header X-Who $email;
    """
    async with world("one", settings=ALLOWED, auth=naming) as made:
        url = f"http://127.0.0.1:{made.port('auth')}/"
        made.proxy.apply(nginx_ingress(auth_url=url, configuration_snippet=snippet, **more))
        got = await made.proxy.get(X_Email="forged")
        assert (got.status, got["x-who"]) == (200, "a@b.example")
        assert "X-Email: a@b.example\r\n" in asked(made)
        assert "forged" not in asked(made)


# Snippets of the ConfigMap


async def test_config_map_may_allow_snippets() -> None:
    async with world("one") as made:
        made.proxy.apply(nginx_ingress(configuration_snippet="return 418;"))
        assert await made.proxy.status() == 503
        made.proxy.apply(options(allow_snippet_annotations="true"))
        assert await made.proxy.status() == 418


async def test_snippets_of_the_config_map_hold_everywhere_whether_those_of_ingresses_are_allowed_or_not() -> None:
    async with world("one") as made:
        made.proxy.apply(
            nginx_ingress(ssl_redirect="false"),
            options(
                http_snippet="more_set_headers 'X-Http: 1'; add_header X-Added http;",
                server_snippet="if ($http_user_agent ~ badbot) { return 403; }",
                location_snippet="more_set_headers 'X-Location: 1'; proxy_set_header X-Cluster paris;",
            ),
        )
        got = await made.proxy.get()
        assert (got["x-http"], got["x-added"], got["x-location"]) == ("1", "http", "1")
        assert "X-Cluster: paris\r\n" in asked(made)
        assert await made.proxy.status(User_Agent="badbot") == 403


async def test_snippets_of_ingresses_stand_beside_those_of_the_config_map(two: World) -> None:
    two.proxy.apply(
        nginx_ingress(
            configuration_snippet="more_set_headers 'X-Own: 1'; add_header X-Added own;",
            server_snippet="if ($arg_a) { return 418; }",
        ),
        options(
            location_snippet="more_set_headers 'X-Location: 1';",
            server_snippet="if ($arg_b) { return 410; }",
            http_snippet="add_header X-Added http;",
        ),
    )
    got = await two.proxy.get()
    assert (got["x-own"], got["x-location"], got["x-added"]) == ("1", "1", "own")
    assert [await two.proxy.status(f"/?{name}=1") for name in "ab"] == [418, 410]


async def test_snippet_of_the_config_map_that_cannot_be_followed_is_reported_there(two: World) -> None:
    manifest = options(http_snippet="map $a $b { }", server_snippet="location /a { return 403; }")
    two.proxy.apply(nginx_ingress(), manifest)
    said = two.proxy.messages(manifest)
    assert "line 1, column 1: map: is not followed here" in said
    assert "a location of all servers is not followed here" in said
