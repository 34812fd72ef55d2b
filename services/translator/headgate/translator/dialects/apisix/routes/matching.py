"""`match` of a rule as the table has it: hosts, paths, and what else a request has to satisfy.

Order follows Apache APISIX' default router (`radixtree_host_uri`): host first, with fall-through to the next one; then
exact paths, then prefixes as plain text, the longest first; then priority among rules for the same path. A `*` inside
of a path stands for any number of segments; for the order such a path counts as its beginning before the first `*`.
"""

import re
from collections.abc import Iterator
from ipaddress import ip_network
from typing import NamedTuple
from urllib.parse import quote

from headgate.common.patterns import bounded_patterns
from headgate.common.problems import Problem
from headgate.common.table import ANY_HOST, Compare, Condition, Operator, PathMatch, PathType, Subject
from headgate.translator.dialects.apisix.models.route import Match
from headgate.translator.dialects.apisix.routes.exprs import all_of, read_expr
from headgate.translator.manifests.specs import refuse

MAX_PATH = 4096
_LABEL = r"[a-z0-9_]([-a-z0-9_]{0,61}[a-z0-9_])?"
_HOST = re.compile(rf"(\*\.)?{_LABEL}(\.{_LABEL})*")
_SENT_AS_THEY_ARE = "".join(map(chr, range(0x21, 0x7F)))


class PathRule(NamedTuple):
    """One path of a rule."""

    written: str
    match: PathMatch
    when: Condition | None
    """What the path has to satisfy besides."""
    field: str


class MatchRule(NamedTuple):
    """What a rule takes."""

    hosts: tuple[str, ...]
    """As virtual hosts are called."""
    paths: tuple[PathRule, ...]
    conditions: tuple[Condition, ...]

    def when(self, path: PathRule) -> Condition | None:
        """Return what requests for one of the paths have to satisfy."""
        return all_of([*([path.when] if path.when else ()), *self.conditions])


@bounded_patterns()
def read_match(match: Match, field: str, problems: list[Problem]) -> MatchRule | None:
    """Return what a rule takes; None where some of it cannot be read, which goes to `problems`."""
    found: list[Problem] = []
    hosts = [_read_host(host, f"{field}.hosts[{index}]", found) for index, host in enumerate(match.hosts)]
    paths = [_read_path(path, f"{field}.paths[{index}]", found) for index, path in enumerate(match.paths)]
    rule = MatchRule(
        tuple(dict.fromkeys(filter(None, hosts))) or (ANY_HOST,),
        tuple({path.written: path for path in paths if path is not None}.values()),
        tuple(_conditions(match, field, found)),
    )
    problems += found
    return None if found else rule


def _read_host(written: str, field: str, problems: list[Problem]) -> str | None:
    host = written.lower().removesuffix(".")
    if len(host) > 253 or not _HOST.fullmatch(host):
        remedy = f"; write {host[1:]} and *.{host[1:]}" if re.fullmatch(r"\*[^.].*", host) else ""
        message = f"must be a DNS name such as shop.example.com, or *.example.com for all below it{remedy}"
        problems.append(refuse("InvalidHost", field, message, written))
        return None
    return f"*{host}" if host.startswith("*.") else host


def _read_path(written: str, field: str, problems: list[Problem]) -> PathRule | None:
    path = quote(written, safe=_SENT_AS_THEY_ARE)
    path = "/*" if path == "*" else path
    literal, star, rest = path.partition("*")
    fault = ""
    if not path.startswith("/"):
        fault = f"must start with '/', such as '/{written}'"
    elif len(path) > MAX_PATH:
        fault = f"must not be longer than {MAX_PATH} characters"
    elif rest and any("*" in segment[1:] for segment in path.removesuffix("*").split("/")):
        fault = "must have * at its end or at the beginning of a segment, such as /shop* or /shop/*/items"
    if fault:
        problems.append(refuse("InvalidPath", field, fault, written))
        return None
    if not star:
        return PathRule(written, PathMatch(type=PathType.EXACT, value=path), None, field)
    match = PathMatch(type=PathType.STRING_PREFIX, value=literal)
    return PathRule(written, match, _whole_path(path) if rest else None, field)


def _whole_path(path: str) -> Condition:
    """Return the condition that the whole path is as written, each * for any text."""
    pattern = "(?s:.*)".join(re.escape(part) for part in path.split("*"))
    return Compare(subject=Subject.PATH, operator=Operator.REGEX, values=(f"^{pattern}$",))


def _conditions(match: Match, field: str, problems: list[Problem]) -> Iterator[Condition]:
    if match.methods:
        yield Compare(subject=Subject.METHOD, values=tuple(dict.fromkeys(match.methods)))
    if match.remote_addrs:
        networks = [
            _read_network(one, f"{field}.remoteAddrs[{i}]", problems) for i, one in enumerate(match.remote_addrs)
        ]
        if found := tuple(dict.fromkeys(filter(None, networks))):
            yield Compare(subject=Subject.CLIENT, operator=Operator.NETWORK, values=found)
    for index, expr in enumerate(match.exprs):
        condition = read_expr(expr, f"{field}.exprs[{index}]", problems)
        if condition is not None:
            yield condition


def _read_network(written: str, field: str, problems: list[Problem]) -> str | None:
    try:
        return str(ip_network(written, strict=False))
    except ValueError:
        message = "must be an address or a network such as 10.0.0.1, 10.0.0.0/8 or 2001:db8::/32"
        problems.append(refuse("InvalidNetwork", field, message, written))
        return None
