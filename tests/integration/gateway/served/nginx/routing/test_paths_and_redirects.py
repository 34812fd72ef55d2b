"""What the end-to-end tests of ingress-nginx say of paths, rewrites and redirects, from an Ingress to the wire.

Each test names its cases there (`test/e2e/annotations/rewrite.go`, `approot.go`, `redirect.go`, `fromtowwwredirect.go`,
`alias.go`, `upstreamvhost.go`, `xforwardedprefix.go`, `ingress/pathtype_*.go`, `ingress/multiple_rules.go`).
"""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from cryptography import x509

from fakes.gateway.served import HOST
from fakes.gateway.tls import Authority, unverified
from fakes.translator.applied import World, pair, world
from fakes.translator.deltas import ingress, ingress_class, tls_secret
from fakes.translator.nginx import nginx_ingress


@pytest.fixture
async def two() -> AsyncIterator[World]:
    """A proxy before Services `one` and `two`."""
    async with world("one", "two") as made:
        yield made


def asked(made: World, name: str = "one") -> str:
    """Return the request line that a server got last."""
    return made.servers[name].heads[-1].split(b"\r\n")[0].decode()


def sent(made: World, header: str, name: str = "one") -> str:
    """Return a header that a server got last."""
    lines = made.servers[name].heads[-1].decode().split("\r\n")[1:]
    return next((line.partition(": ")[2] for line in lines if line.lower().startswith(f"{header.lower()}:")), "")


def typed(path: str, path_type: str, to: str = "one") -> dict[str, Any]:
    return {"path": path, "pathType": path_type, "backend": {"service": {"name": to, "port": {"number": 80}}}}


def several(*paths: dict[str, Any], **more: Any) -> Any:
    return nginx_ingress(spec={"rules": [{"host": HOST, "http": {"paths": list(paths)}}]}, **more)


# rewrite-target, use-regex


async def test_a_rewrite_with_captures_gets_the_rest_of_the_path_and_keeps_the_query(two: World) -> None:
    two.proxy.apply(nginx_ingress(path="/something(/|$)(.*)", rewrite_target="/$2"))
    for path, rewritten in (("/something", "/"), ("/something/", "/"), ("/something/new?a=b", "/new?a=b")):
        assert await two.proxy.status(path) == 200
        assert asked(two) == f"GET {rewritten} HTTP/1.1"
    assert await two.proxy.status("/other") == 404


async def test_a_pattern_with_look_around_takes_paths_and_rewrites_them(two: World) -> None:
    two.proxy.apply(
        nginx_ingress(path="/app/(?!admin)(.*)", rewrite_target="/$1", x_forwarded_prefix="/app"),
        nginx_ingress("other", path="/app/.*", use_regex="true", to="two"),
    )
    assert await two.proxy.bodies(1, "/APP/users?a=b") == ["one"]
    assert asked(two) == "GET /users?a=b HTTP/1.1"
    assert sent(two, "X-Forwarded-Prefix") == "/app"
    assert await two.proxy.bodies(1, "/app/admin") == ["two"]


async def test_a_path_that_brings_a_pattern_to_its_bound_is_refused(two: World) -> None:
    two.proxy.apply(nginx_ingress(path="/(?!x)(a+)+$", use_regex="true"))
    assert await two.proxy.bodies(1, "/aaa") == ["one"]
    assert await two.proxy.status("/" + "a" * 300 + "!") == 500
    assert await two.proxy.status("/aaa") == 200


async def test_a_pattern_that_nothing_takes_is_reported_at_its_path(two: World) -> None:
    manifest = nginx_ingress(path="/a(", use_regex="true")
    two.proxy.apply(manifest)
    assert two.proxy.errors(manifest) == ["InvalidPath"]


async def test_patterns_ignore_case_and_begin_where_the_path_begins(two: World) -> None:
    two.proxy.apply(nginx_ingress(path="/api", use_regex="true"))
    assert await two.proxy.bodies(1, "/API/v1") == ["one"]
    assert await two.proxy.bodies(1, "/apis") == ["one"]
    assert await two.proxy.status("/v1/api") == 404


async def test_one_ingress_makes_patterns_of_all_paths_of_the_host(two: World) -> None:
    other = several(typed("/Exactly", "Exact", "two"), name="other")
    two.proxy.apply(other)
    assert await two.proxy.status("/exactly/not") == 404
    two.proxy.apply(nginx_ingress(path="/x", use_regex="true"))
    assert await two.proxy.bodies(1, "/exactly/not") == ["two"]
    two.proxy.delete(nginx_ingress(path="/x", use_regex="true"))
    assert await two.proxy.status("/exactly/not") == 404


async def test_hosts_without_such_an_ingress_keep_their_paths(two: World) -> None:
    two.proxy.apply(nginx_ingress(path="/x", use_regex="true"), nginx_ingress("b", host="b.example", path="/Foo"))
    assert await two.proxy.status("/foo", host="b.example") == 404


async def test_the_longest_pattern_goes_first(two: World) -> None:
    two.proxy.apply(
        several(
            typed("/a/.*", "ImplementationSpecific", "one"),
            typed("/a/b/[0-9]+", "ImplementationSpecific", "two"),
            use_regex="true",
        )
    )
    assert await two.proxy.bodies(1, "/a/b/12x") == ["two"]
    assert await two.proxy.bodies(1, "/a/b/x") == ["one"]


async def test_a_rewrite_to_the_path_itself_is_none(two: World) -> None:
    two.proxy.apply(nginx_ingress(path="/something", rewrite_target="/something"))
    assert await two.proxy.status("/something/more") == 200
    assert asked(two) == "GET /something/more HTTP/1.1"


async def test_a_rewrite_finds_its_pattern_anywhere_and_replaces_the_whole_path(two: World) -> None:
    two.proxy.apply(nginx_ingress(path="/.*/v(\\d+)", rewrite_target="/version/$1"))
    assert await two.proxy.status("/some/v12/rest") == 200
    assert asked(two) == "GET /version/12 HTTP/1.1"


async def test_a_target_with_other_characters_is_ignored(two: World) -> None:
    broken = nginx_ingress(path="/x", rewrite_target="/x; return 200 y")
    two.proxy.apply(broken)
    assert await two.proxy.status("/x") == 200
    assert asked(two) == "GET /x HTTP/1.1"
    assert two.proxy.errors(broken) == []


async def test_a_pattern_that_cannot_be_compiled_is_named_and_leaves_the_others(two: World) -> None:
    broken = several(
        typed("/a(", "ImplementationSpecific"), typed("/b", "ImplementationSpecific", "two"), use_regex="true"
    )
    two.proxy.apply(broken)
    assert two.proxy.errors(broken) == ["InvalidPath"]


async def test_x_forwarded_prefix_goes_with_a_rewrite_only(two: World) -> None:
    two.proxy.apply(nginx_ingress(path="/foo", rewrite_target="/", x_forwarded_prefix="/foo"))
    await two.proxy.get("/foo")
    assert sent(two, "X-Forwarded-Prefix") == "/foo"
    two.proxy.apply(nginx_ingress(path="/foo", x_forwarded_prefix="/foo"))
    await two.proxy.get("/foo")
    assert sent(two, "X-Forwarded-Prefix") == ""


async def test_x_forwarded_prefix_has_what_the_pattern_caught(two: World) -> None:
    two.proxy.apply(nginx_ingress(path="/(foo|bar)/(.*)", rewrite_target="/$2", x_forwarded_prefix="/$1"))
    await two.proxy.get("/bar/x")
    assert sent(two, "X-Forwarded-Prefix") == "/bar"


# paths


async def test_exact_and_prefix_of_one_path(two: World) -> None:
    two.proxy.apply(several(typed("/exact", "Exact"), typed("/exact", "Prefix", "two")))
    assert await two.proxy.bodies(1, "/exact") == ["one"]
    assert await two.proxy.bodies(1, "/exact/suffix") == ["two"]


async def test_a_prefix_is_of_whole_elements(two: World) -> None:
    two.proxy.apply(nginx_ingress(path="/aaa"))
    assert await two.proxy.status("/aaa") == 200
    assert await two.proxy.status("/aaa/bbb") == 200
    assert await two.proxy.status("/aaaccc") == 404


async def test_a_path_with_a_slash_at_its_end_redirects_the_one_without(two: World) -> None:
    two.proxy.apply(nginx_ingress(path="/app/", upstream_vhost="x"))
    redirected = await two.proxy.get("/app?a=b")
    assert (redirected.status, redirected["location"]) == (301, f"http://{HOST}/app/?a=b")
    assert await two.proxy.status("/app/x") == 200


async def test_such_a_redirect_gives_way_to_a_path(two: World) -> None:
    two.proxy.apply(nginx_ingress(path="/app/", upstream_vhost="x"), several(typed("/app", "Exact", "two"), name="b"))
    assert await two.proxy.bodies(1, "/app") == ["two"]


# redirects


async def test_app_root(two: World) -> None:
    two.proxy.apply(nginx_ingress(app_root="/foo"))
    redirected = await two.proxy.get("/")
    assert (redirected.status, redirected["location"]) == (302, f"http://{HOST}/foo")
    assert await two.proxy.bodies(1, "/foo") == ["one"]


@pytest.mark.parametrize("root", ["https://x.example/", "foo", "//x.example", "/a;b"])
async def test_an_app_root_that_is_no_path_is_ignored(two: World, root: str) -> None:
    two.proxy.apply(nginx_ingress(app_root=root))
    assert await two.proxy.bodies(1, "/") == ["one"]


@pytest.mark.parametrize(("code", "status"), [(None, 301), ("302", 302), ("307", 307), ("200", 301), ("308", 308)])
async def test_permanent_redirect_and_its_code(two: World, code: str | None, status: int) -> None:
    codes = {"permanent_redirect_code": code} if code else {}
    two.proxy.apply(nginx_ingress(permanent_redirect="http://redirect.example/x?a=b", **codes))
    redirected = await two.proxy.get("/something")
    assert (redirected.status, redirected["location"]) == (status, "http://redirect.example/x?a=b")


async def test_temporal_redirect_goes_before_a_permanent_one(two: World) -> None:
    two.proxy.apply(nginx_ingress(permanent_redirect="http://a.test", temporal_redirect="http://b.test$request_uri"))
    redirected = await two.proxy.get("/x?y")
    assert (redirected.status, redirected["location"]) == (302, "http://b.test/x?y")


async def test_relative_redirects_name_no_host(two: World) -> None:
    two.proxy.apply(nginx_ingress(permanent_redirect="/new"))
    assert (await two.proxy.get("/"))["location"] == f"http://{HOST}/new"
    two.proxy.apply(nginx_ingress(permanent_redirect="/new", relative_redirects="true"))
    assert (await two.proxy.get("/"))["location"] == "/new"
    two.proxy.apply(nginx_ingress(permanent_redirect="/new", relative_redirects="false"))
    assert (await two.proxy.get("/"))["location"] == f"http://{HOST}/new"
    two.proxy.apply(nginx_ingress(relative_redirects="true"))
    assert await two.proxy.bodies(1) == ["one"]


async def test_a_redirect_to_another_scheme_drops_the_ingress(two: World) -> None:
    broken = nginx_ingress(temporal_redirect="ftp://x.example")
    two.proxy.apply(broken)
    assert await two.proxy.status("/") == 404
    assert two.proxy.errors(broken) == ["InvalidAnnotation"]


async def test_a_bad_update_of_one_that_drops_leaves_the_last_good_version(two: World) -> None:
    two.proxy.apply(nginx_ingress())
    two.proxy.apply(nginx_ingress(temporal_redirect="ftp://x.example"))
    assert await two.proxy.bodies(1) == ["one"]


async def test_force_ssl_redirect_without_a_certificate(two: World) -> None:
    two.proxy.apply(nginx_ingress(force_ssl_redirect="true"))
    assert (await two.proxy.get())["location"] == f"https://{HOST}"
    redirected = await two.proxy.get("/app/?a=b")
    assert (redirected.status, redirected["location"]) == (308, f"https://{HOST}/app/?a=b")
    assert (await two.proxy.get("/app/"))["location"] == f"https://{HOST}/app"
    two.proxy.apply(nginx_ingress(force_ssl_redirect="true", preserve_trailing_slash="true"))
    assert (await two.proxy.get("/app/"))["location"] == f"https://{HOST}/app/"


def with_tls(host: str = HOST, **annotations: str) -> Any:
    made = nginx_ingress(**annotations)
    made["spec"]["tls"] = [{"hosts": [host], "secretName": "cert"}]
    return made


async def test_a_host_with_a_certificate_is_redirected_to_https(two: World) -> None:
    two.proxy.apply(tls_secret("cert", HOST), with_tls(enable_cors="false"))
    assert (await two.proxy.get("/x"))["location"] == f"https://{HOST}/x"
    two.proxy.apply(with_tls(ssl_redirect="false"))
    assert await two.proxy.bodies(1) == ["one"]


async def test_a_certificate_of_another_ingress_redirects_too(two: World) -> None:
    two.proxy.apply(nginx_ingress("plain", path="/plain", enable_cors="false"))
    assert await two.proxy.bodies(1, "/plain") == ["one"]
    two.proxy.apply(tls_secret("cert", HOST), with_tls(enable_cors="false"))
    assert await two.proxy.status("/plain") == 308


async def test_orders_of_certificates_are_not_redirected(two: World) -> None:
    two.proxy.apply(nginx_ingress(path="/.well-known/acme-challenge/token", force_ssl_redirect="true"))
    assert await two.proxy.bodies(1, "/.well-known/acme-challenge/token") == ["one"]


async def test_an_ingress_of_another_class_without_annotations_is_not_redirected(two: World) -> None:
    made = ingress("web", host=HOST, service="one")
    made["spec"]["tls"] = [{"hosts": [HOST], "secretName": "cert"}]
    two.proxy.apply(tls_secret("cert", HOST), made)
    assert await two.proxy.bodies(1) == ["one"]


async def test_from_to_www_redirects_the_host_with_www(two: World) -> None:
    two.proxy.apply(nginx_ingress(from_to_www_redirect="true"))
    redirected = await two.proxy.get("/foo", host=f"www.{HOST}")
    assert (redirected.status, redirected["location"]) == (308, f"http://{HOST}:80/foo")
    assert await two.proxy.bodies(1, "/foo") == ["one"]


async def test_from_to_www_redirects_the_host_without_www(two: World) -> None:
    two.proxy.apply(nginx_ingress(host=f"www.{HOST}", from_to_www_redirect="true"))
    assert (await two.proxy.get("/", host=HOST))["location"] == f"http://www.{HOST}:80"


async def test_from_to_www_keeps_the_scheme_and_has_the_certificate(two: World) -> None:
    made = nginx_ingress(from_to_www_redirect="true", enable_cors="false")
    made["spec"]["tls"] = [{"hosts": [HOST, f"www.{HOST}"], "secretName": "cert"}]
    issued = Authority().issue(HOST, *map(x509.DNSName, (HOST, f"www.{HOST}")))
    two.proxy.apply(pair("cert", issued, HOST, f"www.{HOST}"), made)
    redirected = await two.proxy.proxy.secure(server_name=f"www.{HOST}", host=f"www.{HOST}")
    assert (redirected.status, redirected["location"]) == (308, f"https://{HOST}:443")
    client = await two.proxy.proxy.connect(unverified(), f"www.{HOST}")
    presented = client.writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    assert x509.load_der_x509_certificate(presented) == issued.certificate
    assert (await two.proxy.proxy.secure(host=HOST)).status == 200
    assert sent(two, "Host") == HOST


async def test_from_to_www_leaves_a_host_of_its_own(two: World) -> None:
    two.proxy.apply(nginx_ingress(from_to_www_redirect="true"), nginx_ingress("b", host=f"www.{HOST}", to="two"))
    assert await two.proxy.bodies(1, host=f"www.{HOST}") == ["two"]
    assert await two.proxy.status("/other", host=f"www.{HOST}") == 200


# server-alias, upstream-vhost


async def test_a_host_without_alias_is_unknown(two: World) -> None:
    two.proxy.apply(nginx_ingress())
    assert await two.proxy.status() == 200
    got = await two.proxy.get(host="bar.example")
    assert (got.status, got.body[:13]) == (404, b"404 Not Found")


async def test_an_alias_has_the_same_routes(two: World) -> None:
    two.proxy.apply(nginx_ingress(server_alias="bar.example, *.wild.example"))
    for host in (HOST, "bar.example", "x.wild.example"):
        assert await two.proxy.bodies(1, host=host) == ["one"]
        assert f"\r\nHost: {host}\r\n".encode() in two.servers["one"].heads[-1]
    two.proxy.apply(nginx_ingress(server_alias="foo.example"))
    assert [await two.proxy.status(host=host) for host in ("bar.example", "foo.example")] == [404, 200]


@pytest.mark.parametrize("alias_first", [True, False])
async def test_an_alias_has_the_paths_of_other_ingresses_of_the_host(two: World, alias_first: bool) -> None:
    both = nginx_ingress("a", path="/app1", server_alias="bar.example"), nginx_ingress("b", path="/app2", to="two")
    for made in both if alias_first else reversed(both):
        two.proxy.apply(made)
    for host in (HOST, "bar.example"):
        assert await two.proxy.bodies(1, "/app1", host=host) == ["one"]
        assert await two.proxy.bodies(1, "/app2", host=host) == ["two"]


async def test_an_alias_that_is_a_host_of_its_own_is_dropped(two: World) -> None:
    two.proxy.apply(nginx_ingress(path="/x", server_alias="bar.example"))
    assert await two.proxy.status("/x", host="bar.example") == 200
    two.proxy.apply(nginx_ingress("b", host="bar.example", path="/y", to="two"))
    assert await two.proxy.status("/x", host="bar.example") == 404


async def test_an_alias_by_a_pattern(two: World) -> None:
    two.proxy.apply(nginx_ingress(server_alias="~^www\\d+\\.example\\.com$"))
    assert await two.proxy.bodies(1, host="www12.example.com") == ["one"]
    assert await two.proxy.status(host="www.example.com") == 404


async def test_upstream_vhost_is_the_host_that_is_sent(two: World) -> None:
    two.proxy.apply(nginx_ingress(upstream_vhost="upstreamvhost.bar.com"))
    await two.proxy.get("/")
    assert sent(two, "Host") == "upstreamvhost.bar.com"


# classes


async def test_a_class_of_ours_is_none_of_ingress_nginx_whatever_its_name(two: World) -> None:
    two.proxy.apply(ingress_class("nginx"), ingress("web", host=HOST, path="/app/", service="one", class_name="nginx"))
    assert await two.proxy.status("/app") == 200
