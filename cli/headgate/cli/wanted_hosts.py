"""The hosts that an object asks for, read from its text: also of one of which nothing is served."""

from collections.abc import Iterator
from typing import Any


def wanted_hosts(manifest: Any) -> frozenset[str]:
    """Return the hosts of an Ingress, ApisixRoute or ApisixTls, lower case; `*` stands for a rule for all hosts.

    Malformed parts are passed over.
    """
    spec = _mapping(_mapping(manifest).get("spec"))
    return frozenset(host.lower() for host in _hosts(spec) if isinstance(host, str))


def is_wanted(host: str, manifest: Any) -> bool:
    """Whether an object asks for a host, by its name, by a wildcard or for all hosts."""
    wanted = wanted_hosts(manifest)
    return any(name in wanted for name in (host, f"*.{host.partition('.')[2]}", "*"))


def _hosts(spec: dict[str, Any]) -> Iterator[Any]:
    for rule in _list(spec.get("rules")):
        yield _mapping(rule).get("host") or "*"
    for tls in _list(spec.get("tls")):
        yield from _list(_mapping(tls).get("hosts"))
    for rule in _list(spec.get("http")):
        yield from _list(_mapping(_mapping(rule).get("match")).get("hosts"))
    yield from _list(spec.get("hosts"))


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
