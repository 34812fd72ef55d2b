import gzip
import zlib
from typing import Any

import brotli
import pytest
import zstandard

from headgate.gateway.plugins.built_in.transformation.body_transformer.content_codings import CodingFault, decompress
from headgate.gateway.plugins.built_in.transformation.body_transformer.formats import (
    BodyFault,
    decode_fields,
    decode_query,
    format_of,
)
from headgate.gateway.plugins.interface import BodyTooLarge

SOAP = b"""<?xml version="1.0" encoding="utf-8"?>
<soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/">
  <soap:Body><m:Answer xmlns:m="urn:m" m:id="7"><m:text xml:lang="en"> hi </m:text><n>1</n><n>2</n><e/></m:Answer>
  </soap:Body>
</soap:Envelope>"""
FORM = "multipart/form-data; boundary=B"
PART = b'--B\r\nContent-Disposition: form-data; name="%b"\r\nContent-Type: text/plain\r\n\r\n%b\r\n'
TEXT = b"hello world " * 1000


def test_xml_is_a_table_of_tables_without_prefixes() -> None:
    answer = {"_attr": {"id": "7"}, "text": {1: "hi", "_attr": {"lang": "en"}}, "n": ["1", "2"], "e": ""}
    assert decode_fields(SOAP, "xml", "text/xml") == {"Envelope": {"Body": {"Answer": answer}}}


def test_xml_may_have_another_encoding() -> None:
    assert decode_fields(b'<?xml version="1.0" encoding="iso-8859-1"?><a>\xe4</a>', "xml", "") == {"a": "\xe4"}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "DOCTYPE"),
        (b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>', "DOCTYPE"),
        (b"<!DOCTYPE html><a/>", "DOCTYPE"),
        (b"<a>&b;</a>", "no XML"),
        (b"<a>", "no XML"),
        (b"", "no XML"),
        (b'<?xml version="1.0" encoding="nonsense"?><a/>', "no XML"),
        (b"<a>" * 50_000 + b"</a>" * 50_000, "nested"),
        (b"<a>" * 129 + b"</a>" * 129, "nested deeper"),
        (b"<a>" + b"<b/>" * 20_000 + b"</a>", "more than 20000 elements"),
    ],
)
def test_xml_that_is_none_or_is_a_weapon_is_not_taken(body: bytes, words: str) -> None:
    with pytest.raises(BodyFault, match=words):
        decode_fields(body, "xml", "")


@pytest.mark.parametrize(
    "body", [b"[1", b"1", b'"text"', b"null", b"\xff", b"[" * 100_000, b"[" * 5000 + b"]" * 5000, b"9" * 5000]
)
def test_json_is_an_object_or_a_list(body: bytes) -> None:
    assert decode_fields(b'{"a": [1, null]}', "json", "") == {"a": [1, None]}
    with pytest.raises(BodyFault):
        decode_fields(body, "json", "")


def test_parameters_that_come_several_times_are_lists() -> None:
    fields = {"a": ["1", "2", "3"], "b": "A b", "c": ""}
    assert decode_query("a=1&a=2&b=%41+b&a=3&c") == fields
    assert decode_fields(b"a=1&a=2&b=%41+b&a=3&c", "encoded", "") == fields


@pytest.mark.parametrize("query", ["a=%ff", "a&" * 1025])
def test_parameters_that_cannot_be_read_are_refused(query: str) -> None:
    with pytest.raises(BodyFault):
        decode_query(query)


def test_parts_are_fields_by_their_names() -> None:
    body = PART % (b"age", b"22") + PART % (b"text", b"a\r\n\xc3\xa4") + PART % (b"age", b"23") + b"--B--\r\n"
    assert decode_fields(body, "multipart", FORM) == {"age": ["22", "23"], "text": "a\r\n\xe4"}


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (PART % (b"a", b"1") + b"--B--\r\n", "multipart/form-data"),
        (PART % (b"a", b"1") + b"--B--\r\n", "multipart/form-data; boundary=C"),
        (PART % (b"a", b"1"), FORM),
        (PART % (b"a", b"1") * 1025 + b"--B--\r\n", FORM),
        (b"--B\r\n" + b"a" * 100_000, FORM),
        (b"nothing", FORM),
    ],
)
def test_parts_that_cannot_be_read_are_refused(
    body: bytes, content_type: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(BodyFault):
        decode_fields(body, "multipart", content_type)
    assert caplog.records == []


@pytest.mark.parametrize(
    ("content_type", "format_"),
    [
        ("application/json; charset=utf-8", "json"),
        ("Application/Problem+JSON", "json"),
        ("text/xml", "xml"),
        ("application/soap+xml; action=x", "xml"),
        ("application/x-www-form-urlencoded", "encoded"),
        ("multipart/form-data; boundary=x", "multipart"),
        ("text/plain", None),
        ("", None),
    ],
)
def test_a_content_type_stands_for_a_format(content_type: str, format_: str | None) -> None:
    assert format_of(content_type) == format_


CODED: Any = [
    ("gzip", gzip.compress(TEXT)),
    ("deflate", zlib.compress(TEXT)),
    ("br", brotli.compress(TEXT)),
    ("zstd", zstandard.ZstdCompressor().compress(TEXT)),
    ("zstd", zstandard.ZstdCompressor(write_content_size=False).compress(TEXT)),
]


@pytest.mark.parametrize(("coding", "body"), CODED, ids=[coding for coding, _ in CODED])
def test_compressed_bodies_are_decompressed_up_to_a_bound(coding: str, body: bytes) -> None:
    assert decompress(body, coding.upper(), len(TEXT)) == TEXT
    with pytest.raises(BodyTooLarge):
        decompress(body, coding, len(TEXT) - 1)


@pytest.mark.parametrize(("coding", "body"), CODED, ids=[coding for coding, _ in CODED])
def test_bodies_that_are_not_what_their_coding_says_are_refused(coding: str, body: bytes) -> None:
    for other in (body[:-3], body[:10], TEXT, body + b"more", b""):
        with pytest.raises(CodingFault, match=f"its Content-Encoding is {coding}"):
            decompress(other, coding, 100_000)


def test_codings_may_lie_on_top_of_each_other() -> None:
    assert decompress(gzip.compress(brotli.compress(TEXT)), "br, gzip", len(TEXT)) == TEXT
    assert decompress(TEXT, "identity", len(TEXT)) == TEXT


@pytest.mark.parametrize("encoding", ["compress", "gzip, x", "gzip," * 4])
def test_other_codings_are_refused(encoding: str) -> None:
    with pytest.raises(CodingFault):
        decompress(gzip.compress(gzip.compress(TEXT)), encoding, 100_000)
