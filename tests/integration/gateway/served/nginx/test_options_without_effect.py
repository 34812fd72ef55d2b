"""Options of nginx's processes, tables and telemetry: nothing here corresponds to them, and nothing breaks by them.

Files there, under `test/e2e/settings`: `access_log.go`, `aio_write.go`, `geoip2.go`, `global_options.go`, `grpc.go`,
`hash-size.go`, `keep-alive.go`, `lua_shared_dicts.go`, `main_snippet.go`, `multi_accept.go`, `ocsp/ocsp.go`,
`opentelemetry.go`, `reuse-port.go`, `ssl_session_*.go`.
"""

from collections.abc import AsyncIterator

import pytest

from fakes.translator.applied import World, world
from fakes.translator.nginx import ADOPTED, NGINX_CLASS, classed, options

IGNORED = [
    ("enable_aio_write", "true"),
    ("enable_aio_write", "false"),
    ("access_log_path", "/tmp/nginx/access.log"),
    ("http_access_log_path", "/tmp/nginx/http-access.log"),
    ("stream_access_log_path", "/tmp/nginx/stream-access.log"),
    ("worker_processes", "11"),
    ("max_worker_open_files", "4096"),
    ("server_name_hash_bucket_size", "512"),
    ("server_name_hash_max_size", "4096"),
    ("proxy_headers_hash_bucket_size", "512"),
    ("proxy_headers_hash_max_size", "4096"),
    ("variables_hash_bucket_size", "512"),
    ("variables_hash_max_size", "512"),
    ("map_hash_bucket_size", "512"),
    ("keep_alive", "140"),
    ("keep_alive_requests", "200"),
    ("upstream_keepalive_connections", "128"),
    ("upstream_keepalive_timeout", "120"),
    ("upstream_keepalive_time", "75s"),
    ("upstream_keepalive_requests", "200"),
    ("lua_shared_dicts", "configuration_data:60,certificate_data:300, my_dict: 15 , invalid: 1a"),
    ("enable_multi_accept", "true"),
    ("enable_multi_accept", "false"),
    ("reuse_port", "true"),
    ("reuse_port", "false"),
    ("grpc_buffer_size_kb", "8"),
    ("ssl_session_cache", "false"),
    ("ssl_session_cache_size", "20m"),
    ("ssl_session_timeout", "30m"),
    ("ssl_session_tickets", "true"),
    ("ssl_session_ticket_key", "WW9gcPHgfcrw6DNqY5VE2NjM6gtgUhJ4Vn6ZwRGi/7+A9TNFa4Fvfe1cmlPec9bx"),
    ("enable_ocsp", "true"),
    ("opentelemetry_config", "/etc/ingress-controller/telemetry/opentelemetry.toml"),
    ("opentelemetry_operation_name", ""),
    ("opentelemetry_operation_name", "HTTP $request_method $uri"),
    ("worker_shutdown_timeout", "600s"),
]


@pytest.fixture
async def one() -> AsyncIterator[World]:
    """A proxy before a Service `one`, with the class of ingress-nginx adopted and an Ingress of it."""
    async with world("one", settings=ADOPTED) as made:
        made.proxy.apply(NGINX_CLASS, classed())
        yield made


@pytest.mark.parametrize(("key", "value"), IGNORED)
async def test_option_is_known_changes_nothing_and_is_no_mistake(one: World, key: str, value: str) -> None:
    manifest = options(**{key: value})
    before = (await one.proxy.get()).status
    one.proxy.apply(manifest)
    assert ((await one.proxy.get()).status, before, one.proxy.problems(manifest)) == (200, 200, [])


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("main_snippet", "# main snippet", "there is no process of nginx that it could configure"),
        ("use_geoip2", "true", "there are no tables of places here"),
    ],
)
async def test_option_that_cannot_be_followed_is_named_and_requests_are_served(
    one: World, key: str, value: str, reason: str
) -> None:
    manifest = options(**{key: value})
    one.proxy.apply(manifest)
    assert await one.proxy.status() == 200
    assert reason in one.proxy.messages(manifest)
    assert one.proxy.errors(manifest) == []


async def test_connections_to_clients_and_to_upstreams_are_used_again(one: World) -> None:
    one.proxy.apply(options(keep_alive="140", upstream_keepalive_connections="128"))
    client = await one.proxy.proxy.connect()
    for _ in range(3):
        await client.send(b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n")
        assert b"200 OK" in await client.head()
        assert await client.exactly(3) == b"one"
    assert len(one.servers["one"].conversations) == 1
