"""Compression of answers by the ConfigMap: `test/e2e/settings/gzip.go` and `brotli.go`."""

import gzip
from collections.abc import AsyncIterator

import pytest

from fakes.gateway.proxied import Conversation
from fakes.translator.applied import World, world
from fakes.translator.nginx import ADOPTED, NGINX_CLASS, classed, options

TYPES = {"xml": b"application/xml", "html": b"text/html", "bytes": b"application/octet-stream"}


async def sized(conversation: Conversation) -> None:
    """Script: answer with a type and a length by the path, such as `/bytes/99`."""
    while True:
        head, _ = await conversation.request()
        kind, _, length = head.split(b" ")[1].decode().strip("/").partition("/")
        size = int(length or 522)
        fields = b"Content-Type: %b\r\nContent-Length: %d" % (TYPES[kind], size)
        await conversation.send(b"HTTP/1.1 200 OK\r\n%b\r\n\r\n%b" % (fields, b"x" * size))


@pytest.fixture
async def one() -> AsyncIterator[World]:
    """A proxy before a Service `one` that answers as it is asked, and an Ingress of ingress-nginx."""
    async with world(settings=ADOPTED, one=sized) as made:
        made.proxy.apply(NGINX_CLASS, classed())
        yield made


async def encoding(made: World, path: str, accepted: str = "gzip", **more: str) -> str:
    """Return how the answer was compressed; it is the answer of the upstream all the same."""
    got = await made.proxy.get(path, Accept_Encoding=accepted, **more)
    assert got.status == 200
    if got["content-encoding"] == "gzip":
        assert set(gzip.decompress(got.body)) == {ord("x")}
    return got["content-encoding"]


async def test_answers_are_not_compressed_by_default(one: World) -> None:
    assert await encoding(one, "/xml", "gzip, br") == ""
    one.proxy.apply(options(use_gzip="true"))
    assert await encoding(one, "/xml") == "gzip"
    one.proxy.apply(options(use_gzip="false"))
    assert await encoding(one, "/xml") == ""


async def test_gzip_takes_its_usual_types_from_256_bytes_on_and_says_that_it_varies(one: World) -> None:
    one.proxy.apply(options(use_gzip="true"))
    asked = ["/xml", "/xml/256", "/xml/255", "/html", "/bytes"]
    assert [await encoding(one, path) for path in asked] == ["gzip", "gzip", "", "gzip", ""]
    assert await encoding(one, "/xml", "identity") == ""
    assert (await one.proxy.get("/xml", Accept_Encoding="gzip"))["vary"] == "Accept-Encoding"


async def test_gzip_compresses_as_hard_as_it_is_asked_to(one: World) -> None:
    one.proxy.apply(options(use_gzip="true", gzip_level="4"))
    assert await encoding(one, "/xml") == "gzip"
    one.proxy.apply(options(use_gzip="true", gzip_level="40"))
    assert await encoding(one, "/xml") == "gzip"


OLD = "Mozilla/45.0 (compatible; MSIE 6.0; Windows NT 5.1)"


@pytest.mark.parametrize(
    ("written", "agent", "compressed"),
    [
        ("msie6", "Mozilla/4.8 [en] (Windows NT 5.1; U)", "gzip"),
        ("msie6", OLD, ""),
        ("msie6", "Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1; SV1)", "gzip"),
        ("msie6", "", "gzip"),
        ("curl|Bot", "a bot", ""),
        ("curl|bot", "firefox", "gzip"),
        ("(", OLD, "gzip"),
    ],
)
async def test_gzip_leaves_out_clients_by_their_name(one: World, written: str, agent: str, compressed: str) -> None:
    one.proxy.apply(options(use_gzip="true", gzip_disable=written))
    assert await encoding(one, "/xml", **({"User_Agent": agent} if agent else {})) == compressed


async def test_gzip_takes_answers_of_a_length_and_of_types(one: World) -> None:
    one.proxy.apply(options(use_gzip="true", gzip_min_length="100", gzip_types="application/octet-stream"))
    assert [await encoding(one, f"/bytes/{length}") for length in (99, 100)] == ["", "gzip"]
    assert [await encoding(one, path) for path in ("/xml", "/html")] == ["", "gzip"]
    one.proxy.apply(options(use_gzip="true", gzip_types="text/html"))
    assert [await encoding(one, path) for path in ("/xml", "/html")] == ["", "gzip"]


async def test_brotli_takes_answers_of_a_length_and_of_types(one: World) -> None:
    one.proxy.apply(options(enable_brotli="true", brotli_types="application/octet-stream", brotli_min_length="24"))
    assert [await encoding(one, f"/bytes/{length}", "br") for length in (23, 24)] == ["", "br"]
    assert await encoding(one, "/bytes/24", "gzip") == ""


async def test_brotli_has_usual_types_of_its_own(one: World) -> None:
    one.proxy.apply(options(enable_brotli="true"))
    asked = ["/xml/20", "/xml/19", "/html", "/bytes"]
    assert [await encoding(one, path, "br") for path in asked] == ["br", "", "br", ""]
