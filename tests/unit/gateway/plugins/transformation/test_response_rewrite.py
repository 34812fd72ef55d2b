import time
from email.utils import parsedate_to_datetime

import pytest

from headgate.gateway.plugins.interface import Headers, Response
from headgate.gateway.plugins.interface.errors import PluginFailed, PluginRefused
from unit.gateway.plugins.running import answered, chain, request


async def changed(config, body: bytes | list[bytes] = b"Hello World", status: int = 200, headers=()) -> Response:
    plugins = chain(("response-rewrite", config))
    return await answered(plugins, request(), Response(status, Headers(headers)), body)


async def test_status_body_and_headers_change() -> None:
    headers = [("ETag", '"1"'), ("Gone", "1"), ("A", "0")]
    config = {
        "status_code": 202,
        "body": "new",
        "headers": {"set": {"A": "$remote_addr"}, "add": ["B: 1", "B: 2"], "remove": ["gone"]},
    }
    answer = await changed(config, headers=headers)
    assert (answer.status, answer.body) == (202, b"new")
    assert list(answer.headers) == [("A", "192.0.2.1"), ("B", "1"), ("B", "2")]


async def test_status_without_a_body_drops_the_upstreams() -> None:
    plugins = chain(("response-rewrite", {"status_code": 204}))
    answer = Response(200, body=None, from_upstream=True)
    plugins.on_response(request(), answer)
    assert (answer.status, answer.body) == (204, b"")


async def test_body_may_be_given_in_base64() -> None:
    assert (await changed({"body": "AAEC", "body_base64": True})).body == b"\x00\x01\x02"


async def test_filters_replace_over_the_borders_of_pieces() -> None:
    config = {"filters": [{"regex": "W(o)rld", "replace": "[$1]", "scope": "global"}]}
    assert (await changed(config, [b"a Wor", b"ld World"])).body == b"a [o] [o]"


async def test_filter_replaces_once_unless_told_otherwise() -> None:
    assert (await changed({"filters": [{"regex": "l", "replace": "L"}]})).body == b"HeLlo World"
    config = {"filters": [{"regex": "L", "replace": "_", "scope": "global", "options": "i"}]}
    assert (await changed(config)).body == b"He__o Wor_d"


async def test_replacement_refers_to_groups() -> None:
    config = {"filters": [{"regex": "(H\\w+) (W\\w+)", "replace": "$2 ${1} \\1"}]}
    assert (await changed(config)).body == b"World Hello \\1"


async def test_filtered_body_loses_its_etag() -> None:
    answer = await changed({"filters": [{"regex": "a", "replace": "b"}]}, headers=[("ETag", '"1"')])
    assert "ETag" not in answer.headers


async def test_compressed_body_is_left_alone() -> None:
    config = {"filters": [{"regex": "H", "replace": "J"}]}
    assert (await changed(config, headers=[("Content-Encoding", "gzip")])).body == b"Hello World"


async def test_body_that_is_too_long_to_collect_is_cut_off() -> None:
    with pytest.raises(PluginFailed, match="response-rewrite"):
        await changed({"filters": [{"regex": "a", "replace": "b"}], "max_resp_body_size": 5})


async def test_only_answers_that_the_conditions_take_change() -> None:
    config = {"body": "sorry", "vars": [["status", ">=", 500]]}
    assert (await changed(config, status=200)).body == b"Hello World"
    assert (await changed(config, status=502)).body == b"sorry"


@pytest.mark.parametrize(
    "config",
    [
        {"body": "a", "filters": [{"regex": "a", "replace": "b"}]},
        {"body": "%", "body_base64": True},
        {"headers": {"add": ["no colon"]}},
        {"vars": [["status", "===", 1]]},
        {"status_code": 99},
    ],
)
def test_bad_configuration_is_refused(config) -> None:
    with pytest.raises(PluginRefused):
        chain(("response-rewrite", config))


@pytest.mark.parametrize(
    ("config", "body"),
    [
        ({"regex": ".", "scope": "global", "replace": "x" * 1000}, b"a" * 20_000),
        ({"regex": "(.*)", "scope": "once", "replace": "$1" * 100}, b"a" * 200_000),
        ({"regex": "a", "scope": "global", "replace": ""}, b"a" * 50_001),
    ],
)
async def test_filters_neither_make_a_body_huge_nor_match_without_end(config, body) -> None:
    with pytest.raises(PluginFailed):
        await changed({"filters": [config]}, body)


async def test_many_filters_search_shorter_bodies() -> None:
    filters = [{"regex": f"{number}x", "replace": ""} for number in range(64)]
    with pytest.raises(PluginFailed):
        await changed({"filters": filters}, b"a" * ((1 << 20) + 1))
    assert (await changed({"filters": filters}, b"a" * (1 << 20))).status == 200


async def test_names_are_removed_by_their_beginning_and_empty_values_add_nothing() -> None:
    headers = [("X-A-1", "1"), ("x-a-2", "2"), ("X-B", "3"), ("X-A-1", "4")]
    answer = await changed({"headers": {"remove": ["X-A-*"], "add": ["B: $arg_none", "C: 1"]}}, headers=headers)
    assert list(answer.headers) == [("X-B", "3"), ("C", "1")]


@pytest.mark.parametrize(("seconds", "control"), [(3600, "max-age=3600"), (0, "max-age=0"), (-1, "no-cache")])
async def test_expiry_is_said_in_both_headers(seconds: int, control: str) -> None:
    answer = await changed({"expires_s": seconds}, headers=[("Expires", "0"), ("Cache-Control", "private")])
    until = parsedate_to_datetime(answer.headers.get("Expires") or "").timestamp()
    assert abs(until - time.time() - seconds) < 5
    assert answer.headers.get_all("Cache-Control") == [control]
