"""Rows of the tables that no case of ingress-nginx names: those without a meaning here, and a few that are followed.

The last test holds that every row which is followed is named in some test of what is served.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from fakes.gateway.proxied import Conversation, answering
from fakes.gateway.served import HOST
from fakes.gateway.tls import Authority, unverified
from fakes.peers.http2 import http2_client, request
from fakes.translator.applied import World, world
from fakes.translator.deltas import tls_secret
from fakes.translator.nginx import ADOPTED, NGINX_CLASS, classed, options
from fakes.waiting import until
from headgate.translator.annotations.nginx import NGINX_TABLE, NginxAnnotation
from headgate.translator.annotations.nginx.options import OPTIONS

_ROWS = [row for row in NGINX_TABLE.rows.values() if isinstance(row, NginxAnnotation)]
_KEYS = [row for row in OPTIONS.rows.values() if isinstance(row, NginxAnnotation)]


@pytest.fixture
async def one() -> AsyncIterator[World]:
    """A proxy before a Service `one`, with the class of ingress-nginx adopted and an Ingress of it."""
    async with world("one", settings=ADOPTED) as made:
        made.proxy.apply(NGINX_CLASS, classed())
        yield made


@pytest.mark.parametrize(
    ("row", "written_in"),
    [
        *(pytest.param(row, classed, id=row.name) for row in _ROWS if row.ignored),
        *(pytest.param(row, options, id=f"option-{row.name}") for row in _KEYS if row.ignored),
    ],
)
async def test_what_has_no_meaning_here_changes_nothing(
    one: World, row: NginxAnnotation, written_in: Callable[..., Any]
) -> None:
    manifest = written_in(**{row.name: row.example or "true"})
    before = await one.proxy.get()
    one.proxy.apply(manifest)
    after = await one.proxy.get()
    assert (after.status, after.body, one.proxy.errors(manifest)) == (before.status, before.body, [])


@pytest.mark.parametrize("row", [row for row in _ROWS if row.refused], ids=lambda row: row.name)
async def test_an_annotation_that_cannot_be_followed_closes_its_paths_if_it_guards(
    one: World, row: NginxAnnotation
) -> None:
    manifest = classed("asking", path="/asking", **{row.name: row.example or "true"})
    one.proxy.apply(manifest)
    assert await one.proxy.status("/asking") == (503 if row.guards else 200)
    assert row.name in " ".join(one.proxy.fields(manifest))


@pytest.mark.parametrize("row", [row for row in _KEYS if row.refused], ids=lambda row: row.name)
async def test_an_option_that_cannot_be_followed_is_named(one: World, row: NginxAnnotation) -> None:
    manifest = options(**{row.name: row.example or "true"})
    one.proxy.apply(manifest)
    assert (await one.proxy.get()).status == (503 if row.guards else 200)
    assert row.name in " ".join(one.proxy.fields(manifest))


@pytest.mark.parametrize(("code", "status"), [("307", 307), ("303", 303), ("308", 302), ("200", 302)])
async def test_a_temporal_redirect_has_its_code(one: World, code: str, status: int) -> None:
    one.proxy.apply(classed(temporal_redirect="http://b.example/", temporal_redirect_code=code))
    assert (await one.proxy.get()).status == status


@pytest.mark.parametrize(("written", "port"), [("true", ":443"), ("false", "")])
async def test_redirects_to_https_name_the_port_if_that_is_said(one: World, written: str, port: str) -> None:
    one.proxy.apply(classed(force_ssl_redirect="true", use_port_in_redirects=written))
    assert (await one.proxy.get("/a?b"))["location"] == f"https://{HOST}{port}/a?b"


async def test_no_limit_holds_for_clients_of_the_list(one: World) -> None:
    limited = {"limit_rpm": "1", "limit_burst_multiplier": "1"}
    one.proxy.apply(classed(**limited))
    assert 503 in [await one.proxy.status() for _ in range(4)]
    one.proxy.apply(classed(**limited, limit_allowlist="10.0.0.0/8,127.0.0.0/8"))
    assert [await one.proxy.status() for _ in range(6)] == [200] * 6


async def test_connections_over_the_limit_get_the_status_of_the_option() -> None:
    release = asyncio.Event()

    async def slow(conversation: Conversation) -> None:
        await conversation.request()
        await release.wait()
        await conversation.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    async with world(one=slow, settings=ADOPTED) as made:
        made.proxy.apply(NGINX_CLASS, options(limit_conn_status_code="429"), classed(limit_connections="1"))
        waiting = [asyncio.create_task(made.proxy.status()) for _ in range(3)]
        await until(lambda: sum(task.done() for task in waiting) == 2)
        release.set()
        assert sorted(await asyncio.gather(*waiting)) == [200, 429, 429]


@pytest.mark.parametrize(
    "beginning",
    [b"GET / HTTP/1.1\r\nHost: a.exa", b"POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 9\r\n\r\nab"],
    ids=["head", "body"],
)
async def test_a_client_has_as_long_for_head_and_body_as_the_options_say(one: World, beginning: bytes) -> None:
    one.proxy.apply(options(client_header_timeout="1", client_body_timeout="1"))
    client = await one.proxy.proxy.connect()
    await client.send(beginning)
    assert (await asyncio.wait_for(client.reader.read(), 20)).startswith(b"HTTP/1.1 408 ")


async def test_a_connection_of_http2_has_as_many_requests_at_once_as_the_option_says(one: World) -> None:
    one.proxy.apply(options(http2_max_concurrent_streams="7"))
    async with http2_client(one.proxy.proxy.port) as client:
        assert (await client.fetch(request(authority=HOST.encode()))).status == 200
        assert client.h2.remote_settings.max_concurrent_streams == 7


@pytest.mark.parametrize(("written", "chosen"), [("true", "h2"), ("false", "http/1.1")])
async def test_http2_is_spoken_over_tls_unless_the_option_says_otherwise(one: World, written: str, chosen: str) -> None:
    secured = classed()
    secured["spec"]["tls"] = [{"hosts": [HOST], "secretName": "cert"}]
    one.proxy.proxy.present(HOST, Authority("server").issue(HOST, x509.DNSName(HOST)))
    one.proxy.apply(options(use_http2=written), tls_secret("cert", HOST), secured)
    context = unverified()
    context.set_alpn_protocols(["h2", "http/1.1"])
    connection = await one.proxy.proxy.connect(context)
    assert connection.writer.get_extra_info("ssl_object").selected_alpn_protocol() == chosen


async def test_a_higher_level_of_brotli_makes_answers_smaller() -> None:
    text = " ".join(f"{number} green bottles hanging on the wall" for number in range(400)).encode()

    async with world(settings=ADOPTED, one=answering(_answer(text))) as made:
        made.proxy.apply(NGINX_CLASS, classed())
        sizes = []
        for level in ("1", "9"):
            made.proxy.apply(options(enable_brotli="true", brotli_level=level))
            sizes.append(len((await made.proxy.get(Accept_Encoding="br")).body))
        assert sizes[0] > sizes[1]


async def test_the_address_to_return_to_has_the_name_that_the_option_says() -> None:
    refusing = answering(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")

    async with world("one", settings=ADOPTED, auth=refusing) as made:
        asked = f"http://127.0.0.1:{made.servers['auth'].port}/check"
        named = {"global_auth_signin": "http://sign.example/in", "global_auth_signin_redirect_param": "back"}
        made.proxy.apply(NGINX_CLASS, options(global_auth_url=asked, **named), classed())
        assert (await made.proxy.get("/foo"))["location"] == "http://sign.example/in?back=http://a.example%2Ffoo"


@pytest.mark.parametrize(("written", "problems"), [("true", 1), ("false", 0)])
async def test_a_pattern_of_type_prefix_is_named_unless_types_are_not_looked_at(
    one: World, written: str, problems: int
) -> None:
    manifest = classed(path="/a(b)")
    manifest["spec"]["rules"][0]["http"]["paths"][0]["pathType"] = "Prefix"
    one.proxy.apply(options(strict_validate_path_type=written), manifest)
    assert len(one.proxy.problems(manifest)) == problems


def _answer(text: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%b" % (len(text), text)


def test_each_row_that_is_followed_is_named_in_a_test_of_what_is_served() -> None:
    texts = "\n".join(path.read_text() for path in Path(__file__).parent.rglob("*.py"))
    words = set(re.findall(r"[a-z0-9]+(?:[-_][a-z0-9]+)*", texts))
    named = {word.replace("_", "-") for word in words}
    followed = {row.name for row in (*_ROWS, *_KEYS) if not row.ignored and not row.refused}
    assert sorted(followed - named) == []
