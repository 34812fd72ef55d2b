r"""Hosts of rules as host patterns of the table.

A pattern of RE2 is asked for every request that no plain host takes, and a listener has a bounded number. So a pattern
that ends with plain labels, as `^[a-z]+\.example\.com$` does, becomes the wildcard for these with the pattern as a
condition, which an index finds.
"""

import re
from ipaddress import IPv6Address
from typing import Final

from headgate.common.patterns import compile_pattern
from headgate.common.table import ANY_HOST, Compare, Operator, Subject
from headgate.common.table.hosts import MAX_HOST_PATTERN, PATTERN_MARK
from headgate.translator.dialects.traefik.rules.request_tests import ALWAYS, NEVER, RequestTest

_NAME: Final = re.compile(r"[0-9a-z_~-][0-9a-z._~-]*")
"""What gateways take for a host."""
_LITERAL: Final = re.compile(r"\^((?:[0-9a-z_-]|\\[.-])+)\$")
_LITERAL_END: Final = re.compile(r"(?<!\\)(?:\\\\)*((?:\\\.(?:[0-9A-Za-z_-]|\\-)+)+)\$\)*")


def host_test(host: str, *, wildcards: bool = True) -> RequestTest:
    """Return the test for a host, any case, with or without a dot at its end.

    Args:
        host: as the rule has it.
        wildcards: `*` takes every host, and `*.` at the beginning one label.

    Raises:
        ValueError: it is not ASCII.
    """
    check_ascii(host)
    if wildcards and host == ANY_HOST:
        return RequestTest(ALWAYS, ANY_HOST, is_whole_host=True)
    name = host.lower().removesuffix(".")
    if wildcards and name.startswith("*.") and _NAME.fullmatch(name[2:]):
        one_label = rf"^[^.]*{re.escape(name[1:])}$"
        return RequestTest(Compare(subject=Subject.HOST, operator=Operator.REGEX, values=(one_label,)), name, True)
    name = f"[{name}]" if _is_ipv6(name) else name
    if not (_NAME.fullmatch(name) or name.startswith("[")):
        return RequestTest(NEVER)
    return RequestTest(Compare(subject=Subject.HOST, values=(name,)), name, is_whole_host=True)


def host_pattern_test(pattern: str) -> RequestTest:
    """Return the test for a pattern that is looked for anywhere in the host.

    Raises:
        ValueError: it is not ASCII, or no RE2 pattern.
    """
    check_ascii(pattern)
    compile_pattern(pattern)
    literal = _LITERAL.fullmatch(pattern)
    if literal is not None and _NAME.fullmatch(name := literal[1].replace("\\", "")):
        return RequestTest(Compare(subject=Subject.HOST, values=(name,)), name, is_whole_host=True)
    condition = Compare(subject=Subject.HOST, operator=Operator.REGEX, values=(pattern,))
    end = _literal_end(pattern)
    if end:
        return RequestTest(condition, f"**{end}")
    if "@" in pattern or len(pattern) >= MAX_HOST_PATTERN:
        return RequestTest(condition, ANY_HOST)
    return RequestTest(condition, f"{PATTERN_MARK}{pattern}", is_whole_host=True)


def _literal_end(pattern: str) -> str:
    """Return the labels, each behind its dot, that end all hosts which a pattern takes; empty if unknown."""
    found = next((found for found in _LITERAL_END.finditer(pattern) if found.end() == len(pattern)), None)
    if found is None or "|" in pattern or r"\Q" in pattern:
        return ""
    return found[1].replace("\\", "").lower()


def check_ascii(host: str) -> None:
    """Raise ValueError for characters that no host of a request has."""
    if host.isascii():
        return
    try:
        remedy = f"write {host.encode('idna').decode()!r}"
    except UnicodeError:
        remedy = "write it in Punycode"
    raise ValueError(f"{host!r} has characters beyond ASCII, and no request has them in its host: {remedy}")


def _is_ipv6(name: str) -> bool:
    try:
        IPv6Address(name)
    except ValueError:
        return False
    return "%" not in name
