"""Virtual hosts of one host: it may have several, on listeners of their own, and one owner.

At addresses that are an object's own (`own_addresses`) a host is another one than at those of the gateways.
"""

from collections.abc import Iterable, Iterator

from headgate.common.table.hosts import HostKey
from headgate.translator.fragments.own_addresses import place_of

_MARK = "@"
"""Between a host and its listeners, in keys of virtual hosts."""


def is_on_listeners(key: str) -> bool:
    """Tell whether a virtual host is on listeners that it names."""
    return _MARK in key


def name_of(key: str) -> str:
    """Return the host of a virtual host's key."""
    return HostKey.read(key).host if is_on_listeners(key) else key


def _group_of(key: str) -> tuple[str, str]:
    """Return the host of a virtual host's key, and whose addresses it is at. All of its listeners are at one place."""
    if not is_on_listeners(key):
        return key, ""
    host, listeners = HostKey.read(key)
    return host, place_of(listeners[0])


class HostNames:
    """The keys of virtual hosts on listeners of their own, by host; the others are the hosts themselves."""

    def __init__(self) -> None:
        """Begin with none."""
        self._keys: dict[tuple[str, str], dict[str, None]] = {}

    def note(self, key: str, *, is_used: bool) -> None:
        """Note whether objects have to do with a virtual host that is on listeners of its own."""
        group = _group_of(key)
        keys = self._keys.setdefault(group, {})
        if is_used:
            keys[key] = None
        else:
            keys.pop(key, None)
            if not keys:
                del self._keys[group]

    def others(self, key: str) -> tuple[str, ...]:
        """Return the keys of the other virtual hosts of a host."""
        if not is_on_listeners(key):
            return tuple(self._keys.get((key, ""), ()))
        name, place = _group_of(key)
        there = () if place else (name,)
        return tuple(each for each in (*there, *self._keys.get((name, place), ())) if each != key)

    def others_of(self, keys: Iterable[str]) -> Iterator[str]:
        """Yield those of several hosts."""
        for key in keys:
            yield from self.others(key)
