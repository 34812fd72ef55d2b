"""The matchers of both syntaxes for TCP. The source is Traefik's documentation of rules for TCP, v3.7 and v2.11."""

import re
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

from headgate.common.patterns import compile_pattern
from headgate.translator.dialects.traefik.rules.clients import read_network
from headgate.translator.dialects.traefik.rules.hosts import check_ascii
from headgate.translator.dialects.traefik.rules.matchers import Matcher, each
from headgate.translator.dialects.traefik.rules.templates import HOST_PART, expand_template

ANY_NAME: Final = "*"
_NAME: Final = re.compile(r"[\w.:-]+", re.ASCII)
_ACME: Final = "acme-tls/1"

Asks = Literal["server name", "server name pattern", "network", "application protocol"]


class ConnectionTest(NamedTuple):
    """One question to a connection."""

    asks: Asks
    value: str
    """A server name in lower case, with `*.` for one label, or `*`, which connections without TLS satisfy too; a
    pattern of RE2 for anywhere in it; a network; or a name in ALPN, one of those that the client offers."""


def _server_name(value: str) -> ConnectionTest:
    return _plain_name(value, value.removeprefix("*."))


def _plain_name(value: str, name: str) -> ConnectionTest:
    if value != ANY_NAME and not _NAME.fullmatch(name):
        raise ValueError(f"{value!r} is no server name")
    return ConnectionTest("server name", value.lower().removesuffix("."))


def _pattern(value: str) -> ConnectionTest:
    check_ascii(value)
    compile_pattern(value)
    return ConnectionTest("server name pattern", value)


def _template(value: str) -> ConnectionTest:
    return _pattern(f"(?i)^{expand_template(value, HOST_PART)}$")


def _network(value: str) -> ConnectionTest:
    return ConnectionTest("network", read_network(value))


def _protocol(value: str) -> ConnectionTest:
    if value == _ACME:
        raise ValueError(f"{_ACME!r} is for certificates by ACME alone")
    return ConnectionTest("application protocol", value)


CONNECTION_MATCHERS: Final[Mapping[str, Mapping[str, Matcher[ConnectionTest]]]] = {
    "v3": {
        "ALPN": Matcher(1, 1, "ALPN(`h2`)", each(_protocol)),
        "ClientIP": Matcher(1, 1, "ClientIP(`10.0.0.0/8`)", each(_network)),
        "HostSNI": Matcher(1, 1, "HostSNI(`example.com`)", each(_server_name)),
        "HostSNIRegexp": Matcher(1, 1, r"HostSNIRegexp(`^[a-z]+\.example\.com$`)", each(_pattern)),
    },
    "v2": {
        "ALPN": Matcher(1, None, "ALPN(`h2`, `http/1.1`)", each(_protocol)),
        "ClientIP": Matcher(1, None, "ClientIP(`10.0.0.0/8`, `::1`)", each(_network)),
        "HostSNI": Matcher(
            1, None, "HostSNI(`example.com`, `example.org`)", each(lambda name: _plain_name(name, name))
        ),
        "HostSNIRegexp": Matcher(1, None, "HostSNIRegexp(`{name:[a-z]+}.example.com`)", each(_template)),
    },
}
