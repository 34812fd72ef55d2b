import gzip
import zlib

import brotli
import pytest
import zstandard

from headgate.gateway.plugins.built_in.transformation.compression.compression import chosen_coding
from headgate.gateway.plugins.interface import Headers, Response
from headgate.gateway.plugins.interface.errors import PluginRefused
from unit.gateway.plugins.running import answered, chain, request

TEXT = b"all work and no play " * 100


def unzipped(data: bytes) -> bytes:
    return zstandard.ZstdDecompressor().decompressobj().decompress(data)


READERS = {"gzip": gzip.decompress, "br": brotli.decompress, "zstd": unzipped}
PLUGINS = {"gzip": "gzip", "brotli": "br", "zstd": "zstd"}


async def compressed(
    names="gzip",
    config=None,
    accepted="gzip, br, zstd",
    headers=(),
    status=200,
    content_length=None,
    body=TEXT,
    **asking,
) -> Response:
    plugins = chain(*((name, config or {}) for name in names.split()))
    given = request("/", [("Accept-Encoding", accepted)] if accepted else [], **asking)
    answer = Response(status, Headers([("Content-Type", "text/html; charset=utf-8"), *headers]))
    answer.content_length = content_length
    return await answered(plugins, given, answer, body)


def coding(response: Response) -> str | None:
    return response.headers.get("Content-Encoding")


@pytest.mark.parametrize(("name", "token"), PLUGINS.items())
async def test_body_is_compressed_and_reads_back(name, token) -> None:
    response = await compressed(name, body=[TEXT[:500], b"", TEXT[500:]])
    assert coding(response) == token
    assert response.headers.get("Vary") == "Accept-Encoding"
    assert READERS[token](response.body) == TEXT
    assert len(response.body or b"") < len(TEXT) / 4


@pytest.mark.parametrize("name", PLUGINS)
async def test_bytes_of_a_streamed_answer_go_out_as_they_come(name) -> None:
    plugins = chain((name, {}))
    asking = request("/", [("Accept-Encoding", PLUGINS[name])])
    answer = Response(200, Headers([("Content-Type", "text/html")]), None, from_upstream=True)
    plugins.on_response(asking, answer)
    joined = plugins.response_filter(asking, answer)
    assert joined is not None
    assert not joined.keeps_length
    first = joined.feed(b"first words")
    readers = {
        "gzip": lambda data: zlib.decompressobj(31).decompress(data),
        "brotli": lambda data: brotli.Decompressor().process(data),
        "zstd": unzipped,
    }
    assert readers[name](first) == b"first words"


async def test_answer_of_a_plugin_is_compressed_as_a_whole() -> None:
    plugins = chain(("gzip", {"types": "*"}), ("fault-injection", {"abort": {"http_status": 400, "body": "x" * 100}}))
    asking = request("/", [("Accept-Encoding", "gzip")])
    given = plugins.on_request(asking)
    assert isinstance(given, Response)
    given.headers.set("Content-Type", "text/html")
    answer = await answered(plugins, asking, given)
    assert gzip.decompress(answer.body or b"") == b"x" * 100


async def test_strong_etag_becomes_weak() -> None:
    headers = [("ETag", '"1"'), ("Accept-Ranges", "bytes")]
    response = await compressed(headers=headers)
    assert response.headers.get("ETag") == 'W/"1"'
    assert "Accept-Ranges" not in response.headers
    assert (await compressed(headers=[("ETag", 'W/"1"')])).headers.get("ETag") == 'W/"1"'


@pytest.mark.parametrize(
    "given",
    [
        {"headers": [("Content-Encoding", "br")]},
        {"headers": [("Cache-Control", "public, No-Transform")]},
        {"status": 206},
        {"content_length": 19},
        {"headers": [("Content-Type", "x")], "config": {"types": ["text/css"]}},
        {"config": {"types": "*", "excluded_types": ["text/*"]}},
        {"http_version": "1.0"},
    ],
)
async def test_answers_that_are_left_as_they_are(given) -> None:
    before = dict(given.get("headers", ())).get("Content-Encoding")
    response = await compressed(**given)
    assert coding(response) == before
    assert response.body == TEXT
    assert "Vary" not in response.headers


async def test_answer_that_the_client_takes_plain_only_varies_all_the_same() -> None:
    response = await compressed(accepted="")
    assert coding(response) is None
    assert response.body == TEXT
    assert response.headers.get("Vary") == "Accept-Encoding"


async def test_types_may_be_all() -> None:
    response = await compressed(config={"types": "*", "http_version": 1.0, "vary": False}, http_version="1.0")
    assert coding(response) == "gzip"
    assert "Vary" not in response.headers


async def test_head_gets_the_same_vary_and_no_coding() -> None:
    response = await compressed(method="HEAD", body=b"")
    assert response.headers.get("Vary") == "Accept-Encoding"
    assert coding(response) is None


@pytest.mark.parametrize(
    ("accepted", "expected"),
    [
        ("gzip, br, zstd", "zstd"),
        ("gzip, br", "br"),
        ("gzip, br;q=0.9", "gzip"),
        ("*", "zstd"),
        ("*, zstd;q=0", "br"),
        ("x-gzip", "gzip"),
        ("GZIP ; Q=0.5", "gzip"),
        ("gzip;q=0", None),
        ("identity, gzip;q=0.5", None),
        ("identity;q=0.5, gzip", "gzip"),
        ("gzip;q=x", None),
        ("deflate", None),
        ("", None),
    ],
)
async def test_client_chooses_by_quality_and_then_the_better_one(accepted, expected) -> None:
    assert chosen_coding(accepted, ("gzip", "br", "zstd"), ("zstd", "br", "gzip")) == expected
    response = await compressed("gzip brotli zstd", accepted=accepted)
    assert coding(response) == expected
    assert READERS[expected](response.body) == TEXT if expected else response.body == TEXT


async def test_rewritten_body_is_compressed_after_its_rewriting() -> None:
    plugins = chain(("gzip", {}), ("response-rewrite", {"filters": [{"regex": "all", "replace": "no"}]}))
    asking = request("/", [("Accept-Encoding", "gzip")])
    answer = await answered(plugins, asking, Response(200, Headers([("Content-Type", "text/html")])), TEXT)
    assert gzip.decompress(answer.body or b"") == TEXT.replace(b"all", b"no", 1)


@pytest.mark.parametrize(
    ("name", "config"), [("gzip", {"comp_level": 10}), ("brotli", {"lgwin": 9}), ("zstd", {"comp_level": 20})]
)
def test_bad_configuration_is_refused(name, config) -> None:
    with pytest.raises(PluginRefused):
        chain((name, config))


@pytest.mark.parametrize(("name", "highest", "taken_for"), [("brotli", 11, 9), ("zstd", 19, 12)])
async def test_levels_that_hold_others_up_are_taken_for_lower_ones(name, highest, taken_for) -> None:
    body = b"".join(b"%d %x " % (number, number * number) for number in range(20_000))
    sizes = []
    for level in (taken_for, highest):
        plugins = chain((name, {"comp_level": level, "types": ["*"]}))
        token = "br" if name == "brotli" else name
        answer = Response(200, Headers(), body, from_upstream=True)
        sizes.append(len((await answered(plugins, request(headers=[("Accept-Encoding", token)]), answer)).body or b""))
    assert 0 < sizes[0] == sizes[1] < len(body)
