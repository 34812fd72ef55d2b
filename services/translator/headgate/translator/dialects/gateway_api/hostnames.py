"""Hostnames of Gateway API: an exact one, `*.` and a domain for all names below it, or empty for every host."""

import re
from collections.abc import Iterable
from typing import Final

from headgate.common.table import ANY_HOST

EVERY_HOST: Final = ""
_WILDCARD: Final = "*."
_LABEL: Final = "[A-Za-z0-9](?:[-A-Za-z0-9]{0,61}[A-Za-z0-9])?"
_HOSTNAME: Final = re.compile(rf"(?:\*\.)?{_LABEL}(?:\.{_LABEL})*")
_LONGEST: Final = 253


def check_hostname(hostname: str) -> str:
    """Return a hostname as it was written. Raises ValueError if it is none."""
    if hostname in (EVERY_HOST, ANY_HOST) or (len(hostname) <= _LONGEST and _HOSTNAME.fullmatch(hostname)):
        return hostname
    raise ValueError("must be a DNS name, or *. and one")


def normal(hostname: str) -> str:
    """Return a hostname as it is compared: lower case; `*` is every host."""
    return EVERY_HOST if hostname == ANY_HOST else hostname.lower()


def takes(pattern: str, hostname: str) -> bool:
    """Whether all hosts of a hostname are among those of a pattern.

    A wildcard takes names of any depth below its domain, and not the domain itself.
    """
    if pattern in (EVERY_HOST, hostname):
        return True
    return pattern.startswith(_WILDCARD) and hostname.endswith(pattern[1:])


def intersect(one: str, other: str) -> str | None:
    """Return the hosts that two hostnames have in common, as a hostname; None if there are none."""
    if takes(one, other):
        return other
    return one if takes(other, one) else None


def precedence(hostname: str, written: Iterable[str]) -> int:
    """Return the precedence of a route at a hostname: 0 if it is one of the route's, the less the wider that is.

    Gateway API 1.7 compares the hostnames that routes have, not those that are left of them at a listener.

    Args:
        hostname: that a route and a listener have in common.
        written: those of the route; none: every host.
    """
    widths = [_depth(each) for each in written if takes(each, hostname)]
    return max(widths, default=0) - _depth(hostname)


def _depth(hostname: str) -> int:
    """Return how many labels of a hostname are fixed."""
    return len(list(filter(None, hostname.removeprefix("*").split("."))))


def name_pattern(hostname: str) -> str:
    """Return a pattern of the names of a hostname, without `^` and `$`."""
    if hostname == EVERY_HOST:
        return ".+"
    escaped = hostname.removeprefix("*").replace(".", "[.]")
    return f".+{escaped}" if hostname.startswith(_WILDCARD) else escaped


def table_host(hostname: str) -> str:
    """Return a hostname as the table writes it."""
    if hostname == EVERY_HOST:
        return ANY_HOST
    return f"*{hostname}" if hostname.startswith(_WILDCARD) else hostname
