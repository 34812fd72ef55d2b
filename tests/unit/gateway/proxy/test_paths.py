"""Paths that servers read in different ways: which route they find, and what the upstream gets."""

import posixpath
from collections.abc import Callable
from typing import get_args
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.gateway.proxied import proxied
from fakes.peers.http2 import http2_client, request
from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.heads.paths import PathNormalization, clean, decode_path, normalize, plain_escapes

REWRITTEN = [
    # (sent, matched, forwarded)
    (b"/public/../admin", b"/admin", b"/admin"),
    (b"/public/%2e%2E/admin", b"/admin", b"/admin"),
    (b"/public/.%2e/admin/", b"/admin/", b"/admin/"),
    (b"/a/./b/.", b"/a/b/", b"/a/b/"),
    (b"/a/b/..", b"/a/", b"/a/"),
    (b"/%61dmin", b"/admin", b"/%61dmin"),
    (b"//admin///x", b"/admin/x", b"//admin///x"),
    (b"/admin%2fx", b"/admin/x", b"/admin%2fx"),
    (b"/admin%5Cx", b"/admin/x", b"/admin%5Cx"),
    (b"/admin\\x", b"/admin/x", b"/admin\\x"),
    (b"/caf%c3%a9%20", b"/caf%C3%A9%20", b"/caf%c3%a9%20"),
    (b"/.well-known/a..b/...", b"/.well-known/a..b/...", b"/.well-known/a..b/..."),
    (b"/%252e%252e/a", b"/%252e%252e/a", b"/%252e%252e/a"),
    (b"/50%/%zz", b"/50%/%zz", b"/50%/%zz"),
]
AMBIGUOUS = [
    b"/public/..%2fadmin",
    b"/public%2f../admin",
    b"/public/..%5cadmin",
    b"/public/..\\admin",
    b"/public//../admin",
    b"/public/..;/admin",
    b"/public/%2e%2e;a=b/admin",
    b"/../admin",
    b"/a/../../admin",
    b"/a%00/../b",
    b"/a%00",
    b"/%a%41",
    b"/%2%65%2%65/admin",
]


@pytest.mark.parametrize(("sent", "matched", "forwarded"), REWRITTEN)
def test_path_is_matched_as_servers_resolve_it(sent: bytes, matched: bytes, forwarded: bytes) -> None:
    assert normalize(sent, "rewrite") == (matched, forwarded)


@pytest.mark.parametrize("sent", AMBIGUOUS)
def test_path_without_one_reading_is_refused(sent: bytes) -> None:
    assert normalize(sent, "rewrite") is None
    assert normalize(sent, "strict") is None


@pytest.mark.parametrize("sent", [sent for sent, matched, _ in REWRITTEN if matched.lower() != sent.lower()])
def test_strict_refuses_what_is_not_in_its_normal_form(sent: bytes) -> None:
    assert normalize(sent, "strict") is None


@pytest.mark.parametrize("sent", [b"/.well-known/x", b"/a%20b", b"/caf%c3%a9", b"/a/..."])
def test_strict_lets_the_normal_form_through(sent: bytes) -> None:
    assert normalize(sent, "strict") == (sent, sent)


@pytest.mark.parametrize(
    ("sent", "matched"),
    [(b"/a/..%2fb", b"/b"), (b"/a//../b", b"/b"), (b"/a\\..\\b", b"/b"), (b"/a//b", b"/a/b")],
)
def test_match_resolves_for_the_route_alone(sent: bytes, matched: bytes) -> None:
    assert normalize(sent, "match") == (matched, sent)


def test_off_reads_nothing_but_escapes() -> None:
    assert normalize(b"/a//../%7e%2f", "off") == (b"/a//../~%2F", b"/a//../%7e%2f")


PARTS = st.sampled_from([b"/", b"//", b".", b"..", b"%2e", b"%2F", b"%5c", b"\\", b"a", b"admin", b";x", b"%41", b"%"])
PATHS = st.lists(PARTS, max_size=9).map(lambda parts: b"/" + b"".join(parts))


def readings(path: bytes) -> set[bytes]:
    """What upstreams make of a path: with and without decoding, backslashes, parameters, merging first."""
    found = set()
    for decoded in (path, unquote_to_bytes(path)):
        for slashed in (decoded, decoded.replace(b"\\", b"/")):
            for bare in (slashed, b"/".join(part.split(b";")[0] for part in slashed.split(b"/"))):
                # As posixpath merges slashes, except two at the beginning.
                found.add(b"/" + posixpath.normpath(bare).lstrip(b"/"))
    return found


@pytest.mark.parametrize("way", [lambda path: normalize(path, "rewrite"), clean], ids=["rewrite", "clean"])
@given(path=PATHS)
def test_no_upstream_reads_dots_in_what_is_forwarded(
    path: bytes, way: Callable[[bytes], tuple[bytes, bytes] | None]
) -> None:
    read = way(path)
    if read is None:
        return
    for reading in readings(read[1]):
        assert b".." not in reading.split(b"/")
    segments = unquote_to_bytes(read[1]).replace(b"\\", b"/").split(b"/")
    assert not {b".", b".."} & {segment.split(b";")[0] for segment in segments}


@given(PATHS)
def test_normal_form_is_its_own(path: bytes) -> None:
    read = normalize(path, "rewrite")
    if read is not None:
        assert normalize(read[0], "rewrite") == (read[0], read[0])
        again = normalize(read[1], "rewrite")
        assert again == read


@given(PATHS)
def test_a_clean_path_finds_the_route_of_the_normal_form(path: bytes) -> None:
    """So that the path may be cleaned once the route is known."""
    cleaned, read = clean(path), normalize(path, "rewrite")
    if read is not None:
        assert cleaned is not None
        assert cleaned[0] == read[0]
    if cleaned is not None:
        assert clean(cleaned[1]) == cleaned
        assert normalize(cleaned[1], "rewrite") == cleaned


@given(st.binary(max_size=30), st.sampled_from(get_args(PathNormalization)))
def test_any_bytes_are_read_or_refused(path: bytes, mode: PathNormalization) -> None:
    read = normalize(b"/" + path, mode)
    assert read is None or (read[0][:1] == read[1][:1] == b"/")


async def test_upstream_gets_the_path_that_the_route_was_chosen_for() -> None:
    async with proxied() as proxy:
        await proxy.talk(b"GET /public/../admin?x=/../y HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        assert proxy.router.asked == [(b"a", b"/admin")]
        assert proxy.origin.heads[0].startswith(b"GET /admin?x=/../y HTTP/1.1\r\n")


async def test_ambiguous_path_is_a_400_and_the_connection_goes_on() -> None:
    async with proxied() as proxy:
        client = await proxy.connect()
        await client.send(b"POST /a/..%2fb HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi")
        head, _ = await client.answer()
        assert head.startswith(b"HTTP/1.1 400 ")
        await client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert (await client.answer())[1] == b"ok"
        assert proxy.router.asked == [(b"a", b"/")]


async def test_path_of_a_url_is_read_alike() -> None:
    async with proxied() as proxy:
        await proxy.talk(b"GET http://b/x/../y HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        assert proxy.origin.heads[0].startswith(b"GET /y HTTP/1.1\r\nHost: b\r\n")


async def test_match_forwards_what_was_sent() -> None:
    async with proxied(config=ProxyConfig(path_normalization="match")) as proxy:
        await proxy.talk(b"GET /x/../y HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        assert proxy.router.asked == [(b"a", b"/y")]
        assert proxy.origin.heads[0].startswith(b"GET /x/../y HTTP/1.1\r\n")


async def test_http2_paths_are_read_alike() -> None:
    async with proxied() as proxy, http2_client(proxy.port) as client:
        assert (await client.fetch(request(b"GET", b"/public/%2e%2e/admin"))).status == 200
        assert (await client.fetch(request(b"GET", b"/public/..%2fadmin"))).status == 400
        assert [head.split(b" ")[1] for head in proxy.origin.heads] == [b"/admin"]


@pytest.mark.parametrize("character", ":/?#[]@!$&'()*+,;=%")
def test_escapes_of_reserved_characters_stay(character: str) -> None:
    assert decode_path(f"/%{ord(character):02X}".encode()) == f"/%{ord(character):02X}".encode()


@given(st.binary(max_size=8).map(lambda path: b"/" + path))
def test_all_other_escapes_are_decoded(path: bytes) -> None:
    escaped = b"".join(b"%%%02X" % byte for byte in path)
    decoded = decode_path(plain_escapes(escaped))
    assert unquote_to_bytes(decoded) == path
    assert all(b"%%%02X" % byte not in decoded for byte in path if byte not in b":/?#[]@!$&'()*+,;=%")
