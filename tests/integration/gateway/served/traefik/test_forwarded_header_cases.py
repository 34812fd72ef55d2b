"""What servers hear of a request's origin: the cases of Traefik's own tests (`pkg/middlewares/forwardedheaders`).

The remote address of every request is 127.0.0.1, and networks that take a case's own address are made to take this one.
"""

import socket
from typing import Any, NamedTuple

import pytest

from fakes.gateway.entry_points import ANY, site
from fakes.gateway.served import HOST, read_answer
from fakes.translator.traefik import middleware, route

ABSENT = ""
CLAIMED = {
    "X-Forwarded-For": "10.0.1.0, 10.0.1.12",
    "X-Forwarded-Uri": "/bar",
    "X-Forwarded-Method": "GET",
    "X-Forwarded-Tls-Client-Cert": "Cert",
    "X-Forwarded-Tls-Client-Cert-Info": "CertInfo",
    "X-Forwarded-Prefix": "/prefix",
}
NAMES = (
    *("X-Forwarded-Proto", "X-Forwarded-For", "X-Forwarded-Uri", "X-Forwarded-Method", "X-Forwarded-Host"),
    *("X-Forwarded-Port", "X-Forwarded-Tls-Client-Cert", "X-Forwarded-Tls-Client-Cert-Info", "X-Forwarded-Prefix"),
    "X-Real-Ip",
)
FOO = dict.fromkeys(NAMES, "foo")
LISTED = {**FOO, "Connection": ", ".join(NAMES)}
NOT_FOO = {
    **dict.fromkeys(NAMES, ABSENT),
    "X-Forwarded-Proto": "http",
    "X-Forwarded-Port": "80",
    "X-Forwarded-For": "127.0.0.1",
    "X-Forwarded-Host": HOST,
    "X-Real-Ip": "127.0.0.1",
    "Connection": ABSENT,
}
PASSED_FOO = {**FOO, "X-Forwarded-For": "foo, 127.0.0.1", "Connection": ABSENT}
WEBSOCKET = {
    "Connection": "upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Version": "13",
}
BELIEVED = {**CLAIMED, "X-Forwarded-For": "10.0.1.0, 10.0.1.12, 127.0.0.1"}
DROPPED = {**dict.fromkeys(CLAIMED, ABSENT), "X-Forwarded-For": "127.0.0.1"}
ALL = {"insecure": True}
SCHEMES = {"addXForwardedSchemeHeaders": True}


class Case(NamedTuple):
    """Options of the entry point, what is sent, and what the server gets."""

    options: dict[str, Any]
    sent: dict[str, str]
    heard: dict[str, str]
    tls: bool = False
    host: str = HOST


def _schemes(scheme: str) -> dict[str, str]:
    return dict.fromkeys(("X-Forwarded-Proto", "X-Forwarded-Scheme", "X-Scheme"), scheme)


CASES = {
    "all Empty": Case(ALL, {}, {**DROPPED, "X-Forwarded-For": "127.0.0.1"}),
    "insecure true with incoming X-Forwarded headers": Case(ALL, CLAIMED, BELIEVED),
    "insecure false with incoming X-Forwarded headers": Case({}, CLAIMED, DROPPED),
    "insecure false with incoming X-Forwarded headers and valid Trusted Ips": Case(
        {"trustedIPs": ["127.0.0.1"]}, CLAIMED, BELIEVED
    ),
    "insecure false with incoming X-Forwarded headers and invalid Trusted Ips": Case(
        {"trustedIPs": ["10.0.1.100"]}, CLAIMED, DROPPED
    ),
    "insecure false with incoming X-Forwarded headers and valid Trusted Ips CIDR": Case(
        {"trustedIPs": ["127.0.0.4/24"]}, CLAIMED, BELIEVED
    ),
    "insecure false with incoming X-Forwarded headers and invalid Trusted Ips CIDR": Case(
        {"trustedIPs": ["1.2.3.4/24"]}, CLAIMED, DROPPED
    ),
    "xRealIP populated from remote address": Case({}, {}, {"X-Real-Ip": "127.0.0.1"}),
    "xRealIP was already populated from previous headers": Case(
        ALL, {"X-Real-Ip": "10.0.1.12"}, {"X-Real-Ip": "10.0.1.12"}
    ),
    "xForwardedProto with no tls": Case({}, {}, {"X-Forwarded-Proto": "http"}),
    "xForwardedProto with tls": Case({}, {}, {"X-Forwarded-Proto": "https"}, tls=True),
    "xForwardedScheme headers with tls": Case(SCHEMES, {}, _schemes("https"), tls=True),
    "xForwardedScheme headers disabled keeps legacy headers absent": Case(
        {}, {}, {"X-Forwarded-Proto": "https", "X-Forwarded-Scheme": ABSENT, "X-Scheme": ABSENT}, tls=True
    ),
    "xForwardedProto with websocket": Case({}, WEBSOCKET, {"X-Forwarded-Proto": "ws"}),
    "xForwardedScheme headers with websocket": Case(SCHEMES, WEBSOCKET, _schemes("ws")),
    "xForwardedProto with websocket and tls": Case({}, WEBSOCKET, {"X-Forwarded-Proto": "wss"}, tls=True),
    "xForwardedScheme headers with websocket and tls": Case(SCHEMES, WEBSOCKET, _schemes("wss"), tls=True),
    "xForwardedProto with websocket and tls and already x-forwarded-proto with wss": Case(
        {}, {**WEBSOCKET, "X-Forwarded-Proto": "wss"}, {"X-Forwarded-Proto": "wss"}, tls=True
    ),
    "xForwardedScheme headers overwrite in insecure mode": Case(
        {**ALL, **SCHEMES}, {**_schemes("external-https"), "X-Forwarded-Proto": "https"}, _schemes("https")
    ),
    "xForwardedPort with explicit port": Case({}, {}, {"X-Forwarded-Port": "8080"}, host=f"{HOST}:8080"),
    "xForwardedPort with implicit tls port from proto header": Case(
        ALL, {"X-Forwarded-Proto": "https"}, {"X-Forwarded-Proto": "https", "X-Forwarded-Port": "443"}
    ),
    "xForwardedPort with implicit tls port from TLS in req": Case({}, {}, {"X-Forwarded-Port": "443"}, tls=True),
    "xForwardedHost from req host": Case({}, {}, {"X-Forwarded-Host": f"{HOST}:8080"}, host=f"{HOST}:8080"),
    "xForwardedServer from req XForwarded": Case({}, {}, {"X-Forwarded-Server": socket.gethostname()}),
    "Untrusted: Connection header has no effect on X- forwarded headers": Case({}, LISTED, NOT_FOO),
    "Trusted (insecure): Connection header has no effect on X- forwarded headers": Case(ALL, LISTED, PASSED_FOO),
    "Untrusted and Connection: Connection header has no effect on X- forwarded headers": Case(
        {"connection": list(NAMES)}, LISTED, NOT_FOO
    ),
    "Trusted (insecure) and Connection: Connection header has no effect on X- forwarded headers": Case(
        {**ALL, "connection": list(NAMES)}, LISTED, PASSED_FOO
    ),
    "Trusted (insecure) and Connection: Testing case sensitivity on connection Headers param": Case(
        {**ALL, "connection": [name.lower() for name in NAMES]}, LISTED, PASSED_FOO
    ),
    "Trusted (insecure) and Connection: Testing case sensitivity on X- forwarded headers": Case(
        ALL, {**LISTED, "Connection": LISTED["Connection"].lower()}, PASSED_FOO
    ),
    "fast: does not append RemoteAddr when notAppendXFF is true and no incoming XFF": Case(
        {"notAppendXForwardedFor": True}, {}, {"X-Forwarded-For": ABSENT}
    ),
    "fast: preserves existing XFF when notAppendXFF is true": Case(
        {**ALL, "notAppendXForwardedFor": True}, {"X-Forwarded-For": "1.2.3.4"}, {"X-Forwarded-For": "1.2.3.4"}
    ),
    "fast: preserves multiple XFF values when notAppendXFF is true": Case(
        {**ALL, "notAppendXForwardedFor": True},
        {"X-Forwarded-For": "1.2.3.4, 5.6.7.8"},
        {"X-Forwarded-For": "1.2.3.4, 5.6.7.8"},
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_servers_hear_of_a_request_as_from_traefik(case: Case) -> None:
    async with site(forwardedHeaders=case.options) as one:
        one.proxy.apply(route(ANY, spec={"entryPoints": ["api"], **({"tls": {}} if case.tls else {})}))
        await one.ask(tls=case.tls, host=case.host, **case.sent)
        assert {name: one.heard(name) for name in case.heard} == case.heard


async def test_several_headers_of_addresses_become_one() -> None:
    async with site(forwardedHeaders=ALL) as one:
        one.proxy.apply(route(ANY, spec={"entryPoints": ["api"]}))
        client = await one.connect()
        chain = "".join(f"X-Forwarded-For: {each}\r\n" for each in ("10.0.0.4, 10.0.0.3", "10.0.0.2", "10.0.0.0"))
        await client.send(f"GET / HTTP/1.1\r\nHost: {HOST}\r\n{chain}\r\n".encode())
        await read_answer(client)
        assert one.heard("X-Forwarded-For") == "10.0.0.4, 10.0.0.3, 10.0.0.2, 10.0.0.0, 127.0.0.1"


async def test_a_middleware_has_the_last_word_on_what_servers_hear() -> None:
    async with site() as one:
        said = {"X-Forwarded-Proto": "gopher", "X-Forwarded-Server": ""}
        one.proxy.apply(middleware("said", headers={"customRequestHeaders": said}))
        one.proxy.apply(route({**ANY, "middlewares": [{"name": "said"}]}, spec={"entryPoints": ["api"]}))
        await one.ask()
        assert (one.heard("X-Forwarded-Proto"), one.heard("X-Forwarded-Server")) == ("gopher", ABSENT)


@pytest.mark.parametrize("trusted", [ALL, {}])
async def test_no_name_with_an_underscore_stands_for_one_that_is_written(trusted: dict[str, Any]) -> None:
    async with site(forwardedHeaders=trusted, http={"underscoreHeadersStrategy": "keep"}) as one:
        one.proxy.apply(route(ANY, spec={"entryPoints": ["api"]}))
        client = await one.connect()
        forged = "X_Forwarded_Proto: forged\r\nX_Real_Ip: forged\r\nX_Own: 1\r\n"
        await client.send(f"GET / HTTP/1.1\r\nHost: {HOST}\r\n{forged}X-Forwarded-Uri: /\r\n\r\n".encode())
        await read_answer(client)
        assert (one.heard("X_Own"), one.heard("X_Forwarded_Proto"), one.heard("X_Real_Ip")) == ("1", ABSENT, ABSENT)
