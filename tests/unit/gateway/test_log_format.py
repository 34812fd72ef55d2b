"""Formats of one's own for the access log, and which requests it has."""

import json
import re

import pytest

from fakes.gateway.proxied import OK, Proxied, answering, proxied
from headgate.common.log_variables import LOG_VARIABLES, unknown_log_variables
from headgate.gateway.observability.log_format import VARIABLES, BadFormat, LogEscape, LogFormat
from headgate.gateway.proxy.config import ProxyConfig
from headgate.gateway.proxy.policies import RoutePolicies
from headgate.gateway.settings import GatewaySettings
from unit.gateway.test_access_log import logged

GET = b"GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
NGINX = (
    '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent" '
    "$request_length $request_time [$upstream_name] $upstream_addr $upstream_status $request_id"
)


async def line(text: str, request: bytes | None = None) -> str:
    given = {} if request is None else {"request": request}
    return (await logged("combined", own=LogFormat(text, as_json=False), **given)).decode()


async def entry(fields: dict[str, str]) -> dict[str, object]:
    return json.loads(await logged("json", own=LogFormat(json.dumps(fields), as_json=True)))  # type: ignore[no-any-return]


async def test_the_format_of_ingress_nginx_is_followed() -> None:
    assert re.fullmatch(
        r'127\.0\.0\.1 - - \[[^]]+ \+0000\] "GET /x\?y HTTP/1\.1" 200 2 "http://b/" "curl \\x228\\x22\\x5C" '
        r"0 0\.\d+ \[test\] 127\.0\.0\.1:\d+ 200 id-1\n",
        await line(NGINX),
    )


@pytest.mark.parametrize("name", VARIABLES)
async def test_every_variable_has_a_value_or_a_dash(name: str) -> None:
    written = await line(f"<${{{name}}}>")
    assert re.fullmatch(r"<.+>\n" if name != "proxy_alternative_upstream_name" else r"<>\n", written)


async def test_headers_parameters_and_cookies_are_read() -> None:
    request = (
        b"GET /?a=1&b=2 HTTP/1.1\r\nHost: a\r\nX-Two: x\r\nX-Two: y\r\nCookie: c=3; d=4\r\nConnection: close\r\n\r\n"
    )
    assert await line("$http_x_two|$arg_b|$cookie_d|$http_none|$arg_z", request) == "x, y|2|4|-|-\n"


async def test_headers_that_are_not_passed_on_as_they_came_are_read() -> None:
    request = (
        b"PUT / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 6.6.6.6\r\nX-Real-IP: 7.7.7.7\r\nX-Request-ID: mine\r\n"
        b"Content-Length: 2\r\nConnection: close\r\nX-Empty:\r\n\r\nhi"
    )
    text = (
        "$http_x_forwarded_for|$http_x_real_ip|$http_x_request_id|$http_content_length|$http_connection|$http_x_empty"
    )
    assert await line(text, request) == "6.6.6.6|7.7.7.7|mine|2|close|\n"
    assert await line(text, GET) == "-|-|-|-|close|-\n"


async def test_headers_of_framing_and_of_protocols_are_read() -> None:
    request = (
        b"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\nUpgrade: other\r\n"
        b"Connection: close\r\n\r\n0\r\n\r\n"
    )
    text = "$http_transfer_encoding|$http_expect|$http_upgrade"
    assert await line(text, request) == "chunked|100-continue|other\n"
    assert await line(text, GET) == "-|-|-\n"


BYTES = b'Zo\xc3\xab\xff\t"\\'
WITH_BYTES = b"GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: Zo\xc3\xab\r\nX-A: %b\r\nConnection: close\r\n\r\n" % BYTES


@pytest.mark.parametrize(
    ("escape", "written"),
    [
        ("default", rb"Zo\xC3\xAB\xFF\x09\x22\x5C"),
        ("json", b'Zo\xc3\xab\xff\\t\\"\\\\'),
        ("none", BYTES),
    ],
)
async def test_bytes_are_written_as_by_nginx(escape: LogEscape, written: bytes) -> None:
    """nginx 1.22.1 writes these for `log_format ... escape=... '$http_x_a'`."""
    own = LogFormat("$http_x_a", as_json=False, escape=escape)
    assert await logged("combined", WITH_BYTES, own=own) == written + b"\n"


async def test_objects_are_unicode_whatever_a_client_sends() -> None:
    own = LogFormat('{"agent": "$http_user_agent", "other": "$http_x_a", "both": "<$http_x_a>"}', as_json=True)
    other = 'Zo\xeb\ufffd\t"\\'
    found = json.loads(await logged("json", WITH_BYTES, own=own))
    assert found == {"agent": "Zo\xeb", "other": other, "both": f"<{other}>"}


async def test_what_a_client_sends_makes_no_line_of_its_own() -> None:
    request = b'GET / HTTP/1.1\r\nHost: a\r\nX-A: \xc3\xa9"\t\\\r\nConnection: close\r\n\r\n'
    written = await line("$http_x_a", request)
    assert written.isascii()
    assert written.count("\n") == 1
    assert "\\x22" in written


async def test_json_fields_keep_their_types_and_absent_ones_are_left_out() -> None:
    found = await entry(
        {"code": "$status", "took": "$request_time", "what": "$request_method $uri", "no": "$http_none"}
    )
    assert found.pop("took") == pytest.approx(0, abs=30)
    assert found == {"code": 200, "what": "GET /x"}


@pytest.mark.parametrize(
    ("text", "as_json", "told"),
    [
        ("$statuz", False, r"no variable \$statuz; the nearest is \$status"),
        ("$sent_http_x", False, r"no variable \$sent_http_x"),
        ("plain", True, "must be a JSON object"),
        ('{"a": 1}', True, "must be a JSON object of texts"),
        ("x" * 9000, False, "at most 8192 characters"),
    ],
)
def test_a_format_that_cannot_be_followed_is_refused_with_advice(text: str, as_json: bool, told: str) -> None:
    with pytest.raises(BadFormat, match=told):
        LogFormat(text, as_json=as_json)


def test_settings_refuse_a_format_without_a_log() -> None:
    with pytest.raises(ValueError, match="needs access_log=combined"):
        GatewaySettings(access_log_format="$status")
    with pytest.raises(ValueError, match="the nearest is"):
        GatewaySettings(access_log="json", access_log_format='{"a": "$statuz"}')
    assert GatewaySettings(access_log="combined", access_log_format="$status").own_log_format() is not None


async def lines(proxy: Proxied, count: int, request: bytes = GET) -> int:
    for _ in range(count):
        await proxy.talk(request)
    return len(proxy.log.records)


async def test_a_share_of_the_requests_that_went_well_is_logged() -> None:
    async with proxied(answering(OK), config=ProxyConfig(access_log_share=0.5)) as proxy:
        assert 10 < await lines(proxy, 80) < 70


async def test_requests_that_failed_are_logged_whatever_the_share() -> None:
    async with proxied(config=ProxyConfig(access_log_share=1e-9)) as proxy:
        assert await lines(proxy, 3, GET.replace(b"Host: a", b"Host: unknown")) == 3


@pytest.mark.parametrize(("share", "expected"), [(0.0, 0), (1.0, 3)])
async def test_a_route_says_what_is_logged_of_it(share: float, expected: int) -> None:
    async with proxied(answering(OK), config=ProxyConfig(access_log_share=1 - share)) as proxy:
        proxy.target.policies = RoutePolicies()
        proxy.target.policies.log_share = share
        assert await lines(proxy, 3) == expected


def test_formats_and_whoever_checks_them_know_the_same_variables() -> None:
    assert set(VARIABLES) == LOG_VARIABLES
    assert list(unknown_log_variables("$status ${nope} $http_a $arg_b$cookie_c $other")) == ["nope", "other"]
