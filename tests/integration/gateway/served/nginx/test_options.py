"""What ConfigMaps of ingress-nginx say of all Ingresses, and of TCP and UDP services.

Files there: `test/e2e/settings/*.go`, `test/e2e/tcpudp/tcp.go`.
"""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from fakes.gateway.proxied import Conversation
from fakes.gateway.served import HOST
from fakes.translator.applied import World, world
from fakes.translator.deltas import applied, endpoint_slice, ingress_class, ref_of, service, tls_secret
from fakes.translator.nginx import nginx_ingress, options
from headgate.common.deltas import Delta
from headgate.common.snapshot import decode_chunk
from headgate.common.table import BackendTls, Certificate, StreamRoute, Upstream, VirtualHost
from headgate.translator.annotations.nginx.options import OPTION_ROWS, OPTIONS
from headgate.translator.composition import DIALECTS
from headgate.translator.offline import translate_all
from headgate.translator.translation import Translation
from headgate.translator.world.settings import DEFAULT_SETTINGS, NginxSettings, TranslationSettings


def streams(name: str, **data: str) -> Any:
    ports = {key.removeprefix("p"): value for key, value in data.items()}
    metadata = {"name": name, "namespace": "ingress-nginx"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": ports}


@pytest.fixture
async def one() -> AsyncIterator[World]:
    """A proxy before a Service `one` and an Ingress of ingress-nginx."""
    async with world("one") as made:
        made.proxy.apply(nginx_ingress(enable_access_log="true"))
        yield made


async def test_an_option_holds_for_ingresses_that_do_not_say_it_themselves(one: World) -> None:
    one.proxy.apply(options(proxy_body_size="8"), nginx_ingress("own", path="/own", to="one", proxy_body_size="16"))
    assert (await one.proxy.post(b"x" * 9)).status == 413
    assert (await one.proxy.post(b"x" * 9, "/own")).status == 200
    one.proxy.delete(options())
    assert (await one.proxy.post(b"x" * 9)).status == 200


async def test_force_ssl_redirect_with_a_code_of_its_own(one: World) -> None:
    one.proxy.apply(options(force_ssl_redirect="true", http_redirect_code="301"))
    assert (await one.proxy.get()).status == 301
    one.proxy.apply(options(force_ssl_redirect="true", no_tls_redirect_locations="/"))
    assert await one.proxy.status() == 200


async def test_lists_of_addresses_give_way_to_those_of_an_ingress(one: World) -> None:
    one.proxy.apply(options(whitelist_source_range="10.0.0.0/8"))
    assert await one.proxy.status() == 403
    one.proxy.apply(nginx_ingress(whitelist_source_range="127.0.0.0/8"))
    assert await one.proxy.status() == 200


async def test_blocked_addresses_are_forgotten_where_an_ingress_has_a_list(one: World) -> None:
    one.proxy.apply(options(block_cidrs="127.0.0.0/8"))
    assert await one.proxy.status() == 403
    one.proxy.apply(nginx_ingress(denylist_source_range="10.0.0.0/8"))
    assert await one.proxy.status() == 200


@pytest.mark.parametrize(
    ("agent", "status"), [("chrome", 403), ("Chrome", 403), ("firefox/1", 200), ("my-Bot-2", 403), ("", 200)]
)
async def test_blocked_user_agents(one: World, agent: str, status: int) -> None:
    one.proxy.apply(options(block_user_agents="~*bot,chrome"))
    assert await one.proxy.status(**({"User_Agent": agent} if agent else {})) == status


@pytest.mark.parametrize(("referer", "status"), [("http://spam.example/x", 403), ("http://a.example", 200), ("", 200)])
async def test_blocked_referers(one: World, referer: str, status: int) -> None:
    one.proxy.apply(options(block_referers="~*spam"))
    assert await one.proxy.status(**({"Referer": referer} if referer else {})) == status


async def test_a_block_list_that_cannot_be_read_refuses_all(one: World) -> None:
    broken = options(block_cidrs="10.0.0.0/99")
    one.proxy.apply(broken)
    assert await one.proxy.status() == 503
    assert one.proxy.errors(broken) == ["InvalidAnnotation"]


async def test_statuses_of_limits(one: World) -> None:
    one.proxy.apply(options(limit_req_status_code="429"), nginx_ingress(limit_rpm="1", limit_burst_multiplier="1"))
    assert [await one.proxy.status() for _ in range(3)] == [200, 200, 429]


async def test_gzip(one: World) -> None:
    assert (await one.proxy.get(Accept_Encoding="gzip"))["content-encoding"] == ""
    one.proxy.apply(options(use_gzip="true", gzip_min_length="1", gzip_types="*"))
    assert (await one.proxy.get(Accept_Encoding="gzip"))["content-encoding"] == "gzip"


async def test_unknown_and_refused_keys_are_said(one: World) -> None:
    told = options(proxy_body_sise="8", use_geoip2="true", main_snippet="")
    one.proxy.apply(told)
    assert sorted(one.proxy.problems(told)) == ["InvalidAnnotation", "UnknownAnnotation"]
    assert await one.proxy.status() == 200


def entries(*manifests: Any, settings: TranslationSettings = DEFAULT_SETTINGS) -> list[Any]:
    chunks = translate_all([applied(manifest) for manifest in manifests], settings).image.chunks()
    return [entry for chunk in chunks for entry in decode_chunk(chunk.kind, chunk.content)]


def test_hsts_is_for_hosts_with_a_certificate() -> None:
    made = nginx_ingress(ssl_redirect="false")
    made["spec"]["tls"] = [{"hosts": [HOST], "secretName": "cert"}]
    everything = (service(), endpoint_slice("web", "10.0.0.1"), tls_secret("cert", HOST), made)

    def configs(*more: Any) -> list[Any]:
        found = entries(*everything, *more)
        plugins = [use for entry in found for route in getattr(entry, "routes", ()) for use in route.plugins]
        return [use.config for use in plugins if use.name == "hsts"]

    assert configs() == [{"max_age": 31536000, "include_subdomains": True, "preload": False}]
    assert configs(options(hsts_max_age="60", hsts_preload="true", hsts_include_subdomains="false")) == [
        {"max_age": 60, "include_subdomains": False, "preload": True}
    ]
    assert configs(options(hsts="false")) == []


def test_tcp_and_udp_services_open_ports() -> None:
    found = entries(
        service("db", port=5432),
        endpoint_slice("db", "10.0.0.1"),
        streams("tcp-services", p9000="default/db:5432", p9001="default/db:http:PROXY"),
        streams("udp-services", p53="default/db:5432"),
    )
    routes = sorted(
        (route.port, route.protocol, route.accept_proxy_protocol, route.backends[0].upstream)
        for route in found
        if isinstance(route, StreamRoute)
    )
    assert routes == [
        (53, "udp", False, "a/default/db:5432/udp"),
        (9000, "tcp", False, "a/default/db:5432/tcp"),
        (9001, "tcp", True, "a/default/db:http/tcp"),
    ]


@pytest.mark.parametrize("written", ["db:5432", "default/db", "default/:1", "default/db:1:TLS", "default/db:1:::"])
def test_a_service_that_cannot_be_read_opens_no_port(written: str) -> None:
    found = entries(service("db"), streams("tcp-services", p9000=written))
    assert not [entry for entry in found if isinstance(entry, StreamRoute)]


def test_each_row_says_what_it_does_or_why_it_does_nothing() -> None:
    assert len(OPTION_ROWS) == len(OPTIONS.rows)
    for row in OPTION_ROWS:
        assert bool(row.does) or bool(row.ignored or row.refused), row.name


def test_other_config_maps_are_none_of_our_business() -> None:
    other = options(proxy_body_size="8")
    other["metadata"]["namespace"] = "default"
    assert translate_all([applied(other)]).problems == {}


def rooted(**annotations: str) -> Any:
    return nginx_ingress(to="db", port=5432, **annotations)


def test_tls_is_passed_through_with_the_setting_only() -> None:
    everything = (service("db", port=5432), endpoint_slice("db", "10.0.0.1"), rooted(ssl_passthrough="true"))
    assert not [entry for entry in entries(*everything) if isinstance(entry, StreamRoute)]
    settings = TranslationSettings(nginx=NginxSettings(enable_ssl_passthrough=True))
    (stream,) = (entry for entry in entries(*everything, settings=settings) if isinstance(entry, StreamRoute))
    assert (stream.protocol, stream.port, stream.server_names) == ("tls", 0, (HOST,))
    assert stream.backends[0].upstream == "a/default/db:5432/tcp"


def test_an_ingress_without_rules_is_left_out_by_a_setting() -> None:
    spec = {"defaultBackend": {"service": {"name": "db", "port": {"number": 5432}}}}
    everything = (service("db", port=5432), endpoint_slice("db", "10.0.0.1"), rooted(spec=spec, enable_cors="false"))
    hosts = [entry.host for entry in entries(*everything) if isinstance(entry, VirtualHost)]
    assert hosts == ["*"]
    settings = TranslationSettings(nginx=NginxSettings(disable_catch_all=True))
    assert not [entry for entry in entries(*everything, settings=settings) if isinstance(entry, VirtualHost)]


# TLS towards endpoints


def upstream_tls(*more: Any, **annotations: str) -> BackendTls | None:
    made = rooted(backend_protocol="HTTPS", **annotations)
    found = entries(service("db", port=5432), endpoint_slice("db", "10.0.0.1"), made, *more)
    (upstream,) = (entry for entry in found if isinstance(entry, Upstream))
    return upstream.tls


def test_tls_towards_endpoints_takes_the_secret() -> None:
    assert upstream_tls(proxy_ssl_verify="on") is None
    secret = tls_secret("cert", "x", authorities_pem="AUTHORITIES")
    said = upstream_tls(
        secret,
        proxy_ssl_secret="default/cert",
        proxy_ssl_verify="on",
        proxy_ssl_verify_depth="2",
        proxy_ssl_name="internal.example",
        proxy_ssl_server_name="on",
        proxy_ssl_protocols="TLSv1.3",
        proxy_ssl_ciphers="HIGH:!AES",
    )
    assert said is not None
    assert (said.verify, said.depth, said.server_name, said.ca_pem) == (True, 2, "internal.example", "AUTHORITIES")
    assert (said.min_version, said.ciphers) == ("1.3", "HIGH:!AES")
    assert said.private_key is not None


@pytest.mark.parametrize("named", ["default/missing", "elsewhere/cert"])
def test_a_secret_that_is_missing_refuses_all_requests(named: str) -> None:
    made = rooted(backend_protocol="HTTPS", proxy_ssl_secret=named)
    found = entries(service("db", port=5432), endpoint_slice("db", "10.0.0.1"), made, tls_secret("cert", "x"))
    (host,) = (entry for entry in found if isinstance(entry, VirtualHost))
    assert [backend.upstream for backend in host.routes[0].backends] == ["a/default/Ingress/web/refused"]


@pytest.mark.parametrize(
    ("written", "protocol"),
    [("HTTPS", "https"), ("https", "https"), ("GRPC", "h2c"), ("GRPCS", "h2"), ("HTTP", "http"), ("SPDY", "http")],
)
def test_backend_protocols(written: str, protocol: str) -> None:
    made = rooted(backend_protocol=written)
    found = entries(service("db", port=5432), endpoint_slice("db", "10.0.0.1"), made)
    (upstream,) = (entry for entry in found if isinstance(entry, Upstream))
    assert upstream.protocol == protocol


def test_traces_of_an_ingress_can_be_turned_off() -> None:
    found = entries(service("db", port=5432), endpoint_slice("db", "10.0.0.1"), rooted(enable_opentelemetry="false"))
    (host,) = (entry for entry in found if isinstance(entry, VirtualHost))
    assert (host.routes[0].tracing.share, host.routes[0].tracing.heeds_parent) == (0.0, False)


def leaves_addresses(controller: str, settings: TranslationSettings) -> bool:
    translation = Translation(DIALECTS, settings)
    made = nginx_ingress(class_name="their")
    for manifest in (ingress_class("their", controller), made):
        translation.apply(applied(manifest))
    translation.activate("a")
    for _ in translation.settle():
        pass
    return translation.assembly.fragments[ref_of(made)].leaves_addresses


@pytest.mark.parametrize("theirs", ["k8s.io/ingress-nginx", "k8s.io/internal-ingress-nginx"])
def test_addresses_are_left_to_ingress_nginx_until_they_are_taken(theirs: str) -> None:
    adopted = frozenset({theirs})
    assert leaves_addresses(theirs, TranslationSettings(controller_names=adopted))
    taken = TranslationSettings(controller_names=adopted, nginx=NginxSettings(take_status=True))
    assert not leaves_addresses(theirs, taken)
    assert not leaves_addresses("headgate.dev/ingress-controller", TranslationSettings(controller_names=adopted))


async def test_brotli_goes_before_gzip(one: World) -> None:
    one.proxy.apply(options(use_gzip="true", enable_brotli="true", gzip_types="*", brotli_types="*",
                            gzip_min_length="1", brotli_min_length="1"))  # fmt: skip
    assert (await one.proxy.get(Accept_Encoding="gzip, br"))["content-encoding"] == "br"
    assert (await one.proxy.get(Accept_Encoding="gzip"))["content-encoding"] == "gzip"


async def test_annotations_of_a_higher_risk_drop_their_ingress(one: World) -> None:
    risky = nginx_ingress("risky", path="/risky", server_alias="other.example")
    one.proxy.apply(options(annotations_risk_level="Medium"), risky)
    assert one.proxy.errors(risky) == ["ForbiddenAnnotation"]
    assert (await one.proxy.status("/risky/x"), await one.proxy.status(host="other.example")) == (200, 404)
    one.proxy.apply(options(annotations_risk_level="High"))
    assert one.proxy.errors(risky) == []
    assert await one.proxy.status(host="other.example", path="/risky") == 200


async def test_words_that_are_blocked_drop_their_ingress(one: World) -> None:
    worded = nginx_ingress("worded", path="/worded", upstream_vhost="something_forbidden.example")
    one.proxy.apply(options(annotation_value_word_blocklist="something_forbidden,otherthing"), worded)
    assert one.proxy.errors(worded) == ["ForbiddenAnnotation"]
    assert await one.proxy.status() == 200


async def test_requests_that_change_something_are_repeated_where_that_is_allowed() -> None:
    async def hanging_up(conversation: Conversation) -> None:
        await conversation.request()

    async with world(a=hanging_up, b=hanging_up) as made:
        slices = [endpoint_slice("all", "127.0.0.1", name=name, port=made.port(name)) for name in "ab"]
        made.proxy.apply(service("all"), *slices, nginx_ingress(to="all", proxy_next_upstream_tries="2"))
        assert (await made.proxy.post(b"x")).status == 502
        asked = [len(server.heads) for server in made.servers.values()]
        assert sum(asked) == 1
        made.proxy.apply(options(retry_non_idempotent="true"))
        assert (await made.proxy.post(b"x")).status == 502
        assert sum(len(server.heads) for server in made.servers.values()) == 3


def test_auto_http_speaks_with_endpoints_as_the_client_speaks() -> None:
    found = entries(service("db", port=5432), endpoint_slice("db", "10.0.0.1"), rooted(backend_protocol="AUTO_HTTP"))
    protocols = {entry.key: entry.protocol for entry in found if isinstance(entry, Upstream)}
    (host,) = (entry for entry in found if isinstance(entry, VirtualHost))
    told = [(route.when is not None, protocols[route.backends[0].upstream]) for route in host.routes]
    assert told == [(True, "https"), (False, "http")]


def test_external_names_are_no_backends_by_a_setting() -> None:
    named = service("db", port=5432, type="ExternalName", externalName="db.example")
    settings = TranslationSettings(nginx=NginxSettings(disable_external_names=True))
    (open_one,) = (entry for entry in entries(named, rooted(enable_cors="false")) if isinstance(entry, Upstream))
    assert open_one.unavailable is None
    found = entries(named, rooted(enable_cors="false"), settings=settings)
    (closed,) = (entry for entry in found if isinstance(entry, Upstream))
    assert "nginx_disable_svc_external_name" in (closed.unavailable or "")


def default_certificate(*manifests: Any) -> list[tuple[str, ...]]:
    """Return the server names of the certificates of a table with the setting."""
    settings = TranslationSettings(nginx=NginxSettings(default_certificate="default/cert"))
    found = entries(options(), *manifests, settings=settings)
    return [entry.server_names for entry in found if isinstance(entry, Certificate)]


def test_the_default_certificate_is_for_all_names_that_have_none() -> None:
    assert default_certificate(tls_secret("cert", "any.example")) == [("",)]
    secured = nginx_ingress()
    secured["spec"]["tls"] = [{"hosts": [HOST], "secretName": "cert"}]
    assert default_certificate(tls_secret("cert", HOST), secured) == [("", HOST)]


def test_a_default_certificate_that_is_not_there_is_a_problem_of_the_config_map() -> None:
    settings = TranslationSettings(nginx=NginxSettings(default_certificate="default/cert"))
    translated = translate_all([applied(options())], settings)
    (problem,) = translated.problems[ref_of(options())]
    assert "Secret default/cert" in problem.message
    assert "not found" in problem.message


def test_certificates_without_a_name_are_for_no_name() -> None:
    nameless = nginx_ingress(class_name="nginx")
    nameless["spec"]["tls"] = [{"secretName": "odd"}]
    settings = TranslationSettings(class_names=frozenset({"nginx"}))
    found = entries(tls_secret("odd", "", "a.example"), nameless, settings=settings)
    assert [entry.server_names for entry in found if isinstance(entry, Certificate)] == [("a.example",)]


def test_client_certificates_are_asked_for_at_aliases_too() -> None:
    guarded = nginx_ingress(server_alias="alias.example", auth_tls_secret="default/authorities")
    authorities = tls_secret("authorities", authorities_pem="pem")
    hosts = {entry.host: entry for entry in entries(authorities, guarded) if isinstance(entry, VirtualHost)}
    assert hosts["alias.example"].tls == hosts[HOST].tls
    assert hosts[HOST].tls is not None
    assert hosts[HOST].tls.client_auth is not None
    taken = entries(authorities, guarded, nginx_ingress("own", host="alias.example"))
    assert {entry.host: entry.tls for entry in taken if isinstance(entry, VirtualHost)}["alias.example"] is None


def test_the_address_of_a_service_is_asked_only_where_its_cluster_alone_has_it() -> None:
    """Its address means nothing elsewhere, and endpoints of other clusters would be left out."""
    shared = service("one", clusterIP="10.9.9.9")
    shared["metadata"]["annotations"] = {"headgate.dev/global": "true"}

    def found(*deltas: Delta) -> set[str]:
        translation = Translation(DIALECTS, DEFAULT_SETTINGS)
        for cluster in ("a", "b"):
            translation.activate(cluster)
        for delta in (*deltas, applied(nginx_ingress(service_upstream="true"), "a")):
            translation.apply(delta)
        for _ in translation.settle():
            pass
        chunks = translation.assembly.image.chunks()
        upstreams = (one for chunk in chunks for one in decode_chunk(chunk.kind, chunk.content))
        return {point.address for one in upstreams if isinstance(one, Upstream) for point in one.endpoints}

    here = applied(shared, "a"), applied(endpoint_slice("one", "10.1.1.1"), "a")
    there = applied(shared, "b"), applied(endpoint_slice("one", "10.2.2.2"), "b")
    assert found(*here) == {"10.9.9.9"}
    assert found(*there) == {"10.2.2.2"}
    assert found(*here, *there) == {"10.1.1.1", "10.2.2.2"}


def test_a_backend_may_name_the_target_of_a_port() -> None:
    made = nginx_ingress(to="db", port="tls", ssl_passthrough="true")
    ported = service("db", ports=[{"name": "sql", "port": 5432, "targetPort": "tls"}])
    settings = TranslationSettings(nginx=NginxSettings(enable_ssl_passthrough=True))
    found = entries(ported, endpoint_slice("db", "10.0.0.1"), made, settings=settings)
    (stream,) = (one for one in found if isinstance(one, StreamRoute))
    assert stream.backends[0].upstream.startswith("a/default/db:5432")
