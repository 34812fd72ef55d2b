"""Types of fields that several plugins have: headers, patterns, networks, URLs."""

import re
from functools import lru_cache
from ipaddress import ip_network
from socket import AF_INET, AF_INET6, inet_pton
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from headgate.common.patterns import compile_pattern

HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]++")
"""A token (RFC 9110 section 5.6.2)."""
_HEADER_VALUE: Final = re.compile("[\t\x20-\x7e\x80-\xff]*+")
_OWN: Final = frozenset(
    {
        "connection",
        "content-length",
        "host",
        "http2-settings",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)


class BadHeader(ValueError):
    """A name or a value that must not stand in a head; the text says which and why."""


def is_reserved(name: str) -> bool:
    """Say whether a field is written by the gateway alone: Host and all that frames a message or belongs to one hop."""
    return name.lower() in _OWN


@lru_cache(4096)
def checked_name(name: str) -> str:
    """Return a field's name if plugins may set it. Raises BadHeader."""
    if not HEADER_NAME.fullmatch(name):
        raise BadHeader(f"{name[:80]!r} is not the name of a header: letters, digits and !#$%&'*+-.^_`|~ only")
    if name.lower() in _OWN:
        raise BadHeader(f"header {name} is written by the gateway alone")
    return name


def checked_value(value: str) -> str:
    """Return a field's value without the spaces around it, if it has no control characters. Raises BadHeader."""
    # Nearly all are printable ASCII, which is told faster than by a pattern.
    if not (value.isascii() and value.isprintable()) and not _HEADER_VALUE.fullmatch(value):
        raise BadHeader("a header's value has no line breaks, no control characters and no characters above U+00FF")
    return value.strip(" \t")


def configured_value(text: str) -> str:
    """Turn what a user wrote into a value: characters beyond ASCII go out as UTF-8. Raises BadHeader."""
    return checked_value(text.encode("utf-8").decode("latin-1"))


def check_pattern(text: str) -> str:
    """Return a text that is a pattern. Raises ValueError."""
    compile_pattern(text)
    return text


def read_network(text: str) -> tuple[int, int, int]:
    """Return an address or a network as version, bits that differ within, and what is before them as a number.

    The usual forms are read without the objects of `ipaddress`, as lists of networks may be long. Raises ValueError.
    """
    address, slash, length = text.partition("/")
    family, version, width = (AF_INET6, 6, 128) if ":" in address else (AF_INET, 4, 32)
    if not slash or (length.isascii() and length.isdecimal() and len(length) <= 3 and int(length) <= width):
        try:
            number = int.from_bytes(inet_pton(family, address))
        except (OSError, ValueError):
            pass  # said below, or a rare form
        else:
            shift = width - int(length) if slash else 0
            return version, shift, number >> shift
    network = ip_network(text, strict=False)
    shift = network.max_prefixlen - network.prefixlen
    return network.version, shift, int(network.network_address) >> shift


def check_network(text: str) -> str:
    """Return a text that is an address or a network. Raises ValueError."""
    try:
        read_network(text)
    except ValueError:
        raise ValueError(f"{text[:60]!r} is neither an address nor a network as 10.0.0.0/8") from None
    return text


def check_url(text: str) -> None:
    """Raise ValueError unless a text is the URL of a service."""
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable or parts.username is not None:
        raise ValueError(f"{text[:80]!r} is not a URL as http://service.namespace:8080/path")


def _as_text(value: object) -> object:
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


HeaderName = Annotated[str, AfterValidator(checked_name)]
"""The name of a header that is set."""
HeaderValue = Annotated[str, AfterValidator(configured_value)]
"""The value of a header."""
HeaderTemplate = Annotated[str, BeforeValidator(_as_text), Field(max_length=8192)]
"""A value with `$` references; numbers are taken too."""
NetworkText = Annotated[str, AfterValidator(check_network)]
"""An address or a network."""
PatternText = Annotated[str, AfterValidator(check_pattern)]
"""An RE2 pattern."""
