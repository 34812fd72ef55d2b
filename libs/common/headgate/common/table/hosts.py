r"""Host patterns: what virtual hosts and listeners say of the hosts that they take, and in which order these are asked.

A pattern is `foo.com`; `*.foo.com` for exactly one more label; `**.foo.com` for one or more; `~` and an RE2 pattern,
which is looked for anywhere in the host (`~^shop-[0-9]+\.foo\.com$`), as nginx spells it; or `*`, which takes what no
other takes. Exact ones go first, then wildcards, the longer suffix first and of equal ones that for one label, then
RE2 patterns, the longer first and of equal length by their text, then `*`.
"""

from typing import Annotated, Final, NamedTuple

from pydantic import AfterValidator

ANY_HOST: Final = "*"
PATTERN_MARK: Final = "~"
"""What a host begins with that is an RE2 pattern."""
MAX_HOST_PATTERN: Final = 1024
"""Characters of one."""
MAX_HOST_PATTERNS: Final = 256
"""RE2 patterns of one listener: all of them are asked for a host that neither an exact one nor a wildcard takes."""
_BAR: Final = "%7C"
"""Stands for `|` in keys: in names of routes a bar parts host and route. No host has a percent sign."""


def is_pattern(host: str) -> bool:
    """Tell whether a host is an RE2 pattern."""
    return host.startswith(PATTERN_MARK)


def pattern_order(host: str) -> tuple[int, str]:
    """Return the sort key among RE2 patterns: longer ones first."""
    return -len(host), host


def host_name(host: str) -> str:
    """Return a host pattern as keys and names of routes have it."""
    return host.replace("|", _BAR) if is_pattern(host) else host


class HostKey(NamedTuple):
    """The key of a virtual host, read."""

    host: str
    listeners: tuple[str, ...]

    def __str__(self) -> str:
        name = host_name(self.host)
        return f"{name}@{','.join(self.listeners)}" if self.listeners else name

    @classmethod
    def read(cls, key: str) -> "HostKey":
        """Return what a key says."""
        name, _, listeners = key.partition("@")
        host = name.replace(_BAR, "|") if is_pattern(name) else name
        return cls(host, tuple(listeners.split(",")) if listeners else ())


def name_in(key: str) -> str:
    """Return the `host_name` of a virtual host's key."""
    return key.partition("@")[0]


def _check_host(host: str) -> str:
    if "@" in host:
        raise ValueError(f"{host[:80]!r} has an @, which is in no host")
    if len(host) > MAX_HOST_PATTERN:
        raise ValueError(f"{host[:80]!r}... has {len(host)} characters, at most {MAX_HOST_PATTERN}")
    return host


HostPattern = Annotated[str, AfterValidator(_check_host)]
