"""What the ConfigMap says of requests to upstreams: times, retries, rates, redirects, headers, services by name.

Files there: `test/e2e/settings/proxy_*.go`, `limit_rate.go`, `no_tls_redirect_locations.go`, `custom_header.go`,
`server_tokens.go`, `opentelemetry.go`, `global_access_block.go`, `configmap_change.go`, `disable_service_*.go`.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fakes.gateway.proxied import Conversation, answering
from fakes.gateway.served import named
from fakes.peers.name_server import NameServer
from fakes.translator.applied import World, world
from fakes.translator.deltas import applied, endpoint_slice, service
from fakes.translator.nginx import ADOPTED, NGINX_CLASS, classed, options
from fakes.waiting import until
from headgate.common.snapshot import decode_chunk
from headgate.common.table import Route, Timeouts, Tracing, VirtualHost
from headgate.gateway.health.resolve import SystemDns
from headgate.translator.offline import translate_all
from headgate.translator.world.settings import NginxSettings, TranslationSettings


async def silent(conversation: Conversation) -> None:
    """Script: take a request and never answer."""
    await conversation.request()
    await asyncio.sleep(60)


@pytest.fixture
async def one() -> AsyncIterator[World]:
    """A proxy before a Service `one` and a silent one, with the class of ingress-nginx adopted and an Ingress of it."""
    async with world("one", settings=ADOPTED, silent=silent) as made:
        made.proxy.apply(NGINX_CLASS, classed(), classed("silent", to="silent", path="/silent"))
        yield made


# proxy-connect-timeout, proxy-read-timeout, proxy-send-timeout


def route(*manifests: Any) -> Route:
    """Return the only route."""
    everything = (NGINX_CLASS, service("one"), endpoint_slice("one", "10.0.0.1"), classed(), *manifests)
    chunks = translate_all([applied(manifest) for manifest in everything], ADOPTED).image.chunks()
    entries = [entry for chunk in chunks for entry in decode_chunk(chunk.kind, chunk.content)]
    (host,) = (entry for entry in entries if isinstance(entry, VirtualHost))
    return host.routes[0]


def timeouts(*manifests: Any) -> Timeouts:
    """Return the times of the only route."""
    return route(*manifests).timeouts or Timeouts()


@pytest.mark.parametrize("name", ["connect", "read", "send"])
@pytest.mark.parametrize("written", ["50", "20", "1"])
def test_times_are_those_of_the_config_map(name: str, written: str) -> None:
    assert timeouts(options(**{f"proxy_{name}_timeout": written})) == Timeouts(**{f"{name}_s": float(written)})


@pytest.mark.parametrize("name", ["connect", "read", "send"])
@pytest.mark.parametrize("written", ["50k", "20k", "50s", "x"])
async def test_times_that_are_no_numbers_are_left_out_and_named(one: World, name: str, written: str) -> None:
    manifest = options(**{f"proxy_{name}_timeout": written})
    one.proxy.apply(manifest)
    assert await one.proxy.status() == 200
    assert "must be a whole number" in one.proxy.messages(manifest)
    assert timeouts(manifest) == timeouts()


async def test_read_timeout_of_the_config_map_ends_a_request_and_gives_way_to_that_of_an_ingress(one: World) -> None:
    one.proxy.apply(options(proxy_read_timeout="1", proxy_next_upstream="off"))
    started = asyncio.get_running_loop().time()
    assert await one.proxy.status("/silent") == 504
    assert 0.9 < asyncio.get_running_loop().time() - started < 10
    assert timeouts(options(proxy_read_timeout="1"), classed(proxy_read_timeout="7")) == Timeouts(read_s=7)


# proxy-next-upstream


async def test_next_upstream_is_asked_as_the_config_map_says() -> None:
    bad = answering(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 3\r\n\r\nbad")
    async with world(settings=ADOPTED, bad=bad, good=answering(named(b"good"))) as made:
        slices = [endpoint_slice("all", "127.0.0.1", name=name, port=made.port(name)) for name in ("bad", "good")]
        made.proxy.apply(NGINX_CLASS, service("all"), *slices, classed(to="all"))
        assert set(await made.proxy.bodies(4)) == {"bad", "good"}
        made.proxy.apply(
            options(
                proxy_next_upstream="timeout http_502",
                proxy_next_upstream_timeout="999999",
                proxy_next_upstream_tries="888888",
            )
        )
        assert set(await made.proxy.bodies(6)) == {"good"}
        made.proxy.apply(options(proxy_next_upstream="timeout http_503"))
        assert set(await made.proxy.bodies(4)) == {"bad", "good"}


# $proxy_host


@pytest.mark.parametrize("more", [{}, {"upstream_vhost": "different.host"}])
@pytest.mark.parametrize("end", ["", ";"])
async def test_variable_proxy_host_names_the_upstream(one: World, more: dict[str, str], end: str) -> None:
    one.proxy.apply(classed(configuration_snippet=f'more_set_headers "Custom-Header: $proxy_host"{end}', **more))
    got = await one.proxy.get()
    assert (got.status, got["custom-header"]) == (200, "default-one-80")


# limit-rate


async def test_rate_of_answers_is_that_of_the_config_map() -> None:
    big = b"x" * (48 << 10)
    async with world(settings=ADOPTED, one=answering(named(big))) as made:
        made.proxy.apply(NGINX_CLASS, classed(proxy_buffering="on"))
        clock = asyncio.get_running_loop().time
        spent = []
        for rate in ("20", "9000", "0"):
            made.proxy.apply(options(limit_rate=rate))
            started = clock()
            assert (await made.proxy.get()).body == big
            spent.append(clock() - started)
        assert spent[0] > 0.9 > max(spent[1:])


# no-tls-redirect-locations


async def test_locations_that_the_config_map_names_are_not_redirected_to_https(one: World) -> None:
    one.proxy.apply(classed("check", path="/check-no-tls"), options(force_ssl_redirect="true"))
    assert [await one.proxy.status(path) for path in ("/check-no-tls", "/")] == [308, 308]
    one.proxy.apply(options(force_ssl_redirect="true", no_tls_redirect_locations="/check-no-tls"))
    assert [await one.proxy.status(path) for path in ("/check-no-tls", "/")] == [200, 308]


# add-headers


def header_map(name: str, **data: str) -> Any:
    named = {key.replace("_", "-"): value for key, value in data.items()}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": named}


async def test_headers_of_a_config_map_are_added_to_all_answers(one: World) -> None:
    one.proxy.apply(header_map("one-header", X_A_Custom_Header="customHeaderValue"))
    one.proxy.apply(options(add_headers="default/one-header"))
    assert (await one.proxy.get())["x-a-custom-header"] == "customHeaderValue"
    two = {"X_First": "Prepare for trouble!", "X_Second": "And make it double!"}
    one.proxy.apply(header_map("two-headers", **two), options(add_headers="default/two-headers"))
    got = await one.proxy.get()
    assert (got["x-first"], got["x-second"], got["x-a-custom-header"]) == (*two.values(), "")
    one.proxy.apply(header_map("two-headers", X_First="changed"))
    got = await one.proxy.get()
    assert (got["x-first"], got["x-second"]) == ("changed", "")
    one.proxy.delete(header_map("two-headers"))
    assert (await one.proxy.get())["x-first"] == ""


async def test_header_that_is_added_replaces_that_of_the_upstream() -> None:
    answer = b"HTTP/1.1 200 OK\r\nX-First: upstream\r\nContent-Length: 2\r\n\r\nok"
    async with world(settings=ADOPTED, one=answering(answer)) as made:
        made.proxy.apply(NGINX_CLASS, classed(), header_map("added", X_First="ours"))
        made.proxy.apply(options(add_headers="default/added"))
        assert (await made.proxy.get()).all("x-first") == ["ours"]


# server-tokens


@pytest.mark.parametrize("of_upstream", [b"", b"Server: theirs\r\n"])
async def test_answers_say_which_server_sent_them_unless_the_config_map_forbids_it(of_upstream: bytes) -> None:
    answer = b"HTTP/1.1 200 OK\r\n%bContent-Length: 2\r\n\r\nok" % of_upstream
    async with world(settings=ADOPTED, one=answering(answer)) as made:
        made.proxy.apply(NGINX_CLASS, classed(), options(server_tokens="true"))
        assert (await made.proxy.get())["server"] == ("theirs" if of_upstream else "headgate")
        made.proxy.apply(options(server_tokens="false"))
        assert (await made.proxy.get()).all("server") == []
        made.proxy.apply(options(), classed(configuration_snippet="more_clear_headers Server;"))
        assert (await made.proxy.get()).all("server") == []


# opentelemetry


@pytest.mark.parametrize(
    ("data", "tracing"),
    [
        ({}, Tracing()),
        ({"enable_opentelemetry": "false"}, Tracing(share=0.0, heeds_parent=False)),
        ({"enable_opentelemetry": "true"}, Tracing()),
        ({"enable_opentelemetry": "true", "opentelemetry_trust_incoming_span": "true"}, Tracing()),
        ({"enable_opentelemetry": "true", "opentelemetry_trust_incoming_span": "false"}, Tracing(heeds_parent=False)),
        ({"enable_opentelemetry": "true", "opentelemetry_operation_name": ""}, Tracing()),
        ({"enable_opentelemetry": "true", "opentelemetry_operation_name": "HTTP $request_method $uri"}, Tracing()),
    ],
)
def test_requests_are_traced_as_the_config_map_says(data: dict[str, str], tracing: Tracing) -> None:
    assert (route(options(**data)).tracing or Tracing()) == tracing
    assert (route(options(**data), classed(enable_opentelemetry="false")).tracing or Tracing()).share == 0.0


# block-cidrs, block-user-agents, block-referers

CHROME = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML) Chrome/68.0.3440.106 Safari/537.36"
IPHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 11_4_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML) Safari/604.1"
AGENTS = {"block_user_agents": r"~*chrome\/68\.0\.3440\.106\ safari\/537\.36,AlphaBot"}
REFERERS = {"block_referers": r"~*example\.com,qwerty"}


@pytest.mark.parametrize(
    ("data", "asked", "status"),
    [
        ({"block_cidrs": "172.16.0.0/12,192.168.0.0/16,127.0.0.0/8"}, {}, 403),
        ({"block_cidrs": "172.16.0.0/12,192.168.0.0/16,10.0.0.0/8"}, {}, 200),
        ({"block_cidrs": "127.0.0.1"}, {}, 403),
        (AGENTS, {"User_Agent": CHROME}, 403),
        (AGENTS, {"User_Agent": "AlphaBot"}, 403),
        (AGENTS, {"User_Agent": "alphabot"}, 403),
        (AGENTS, {"User_Agent": "AlphaBot/2"}, 200),
        (AGENTS, {"User_Agent": IPHONE}, 200),
        (REFERERS, {"Referer": "example.com"}, 403),
        (REFERERS, {"Referer": "https://www.EXAMPLE.com/x"}, 403),
        (REFERERS, {"Referer": "qwerty"}, 403),
        (REFERERS, {"Referer": "qwerty123"}, 200),
        (REFERERS, {}, 200),
    ],
)
async def test_clients_that_the_config_map_blocks_get_a_403(
    one: World, data: dict[str, str], asked: dict[str, str], status: int
) -> None:
    one.proxy.apply(options(**data))
    assert await one.proxy.status(**asked) == status
    one.proxy.delete(options())
    assert await one.proxy.status(**asked) == 200


async def test_change_of_the_config_map_is_served_at_once(one: World) -> None:
    one.proxy.apply(options(whitelist_source_range="1.1.1.1"))
    assert await one.proxy.status() == 403
    one.proxy.apply(options(whitelist_source_range="1.1.1.1", error_log_level="debug"))
    assert await one.proxy.status() == 403
    one.proxy.apply(options(error_log_level="debug"))
    assert await one.proxy.status() == 200


# disable-svc-external-name


@pytest.mark.parametrize(("is_disabled", "status"), [(True, 503), (False, 200)])
async def test_services_of_external_name_are_no_backends_by_a_setting(is_disabled: bool, status: int) -> None:
    nginx = NginxSettings(disable_external_names=is_disabled)
    settings = TranslationSettings(controller_names=ADOPTED.controller_names, nginx=nginx)
    async with (
        NameServer({("one.example.", "A"): (60, ["127.0.0.1"])}) as names,
        world("one", settings=settings, query=SystemDns(names.resolver())) as made,
    ):
        external = service("external", ports=[], type="ExternalName", externalName="one.example")
        made.proxy.apply(NGINX_CLASS, classed(), external)
        made.proxy.apply(classed("external", host="external.example", to="external", port=made.port("one")))

        async def has_answered() -> bool:
            return await made.proxy.status(host="external.example") == status

        await until(has_answered, within_s=5)
        assert await made.proxy.status() == 200
