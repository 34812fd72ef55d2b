"""Virtual hosts of one host: it may have several, on listeners of their own, and one owner."""

from collections.abc import Iterable, Iterator

from headgate.common.table.hosts import HostKey

_MARK = "@"
"""Between a host and its listeners, in keys of virtual hosts."""


def is_on_listeners(key: str) -> bool:
    """Tell whether a virtual host is on listeners that it names."""
    return _MARK in key


def name_of(key: str) -> str:
    """Return the host of a virtual host's key."""
    return HostKey.read(key).host if is_on_listeners(key) else key


class HostNames:
    """The keys of virtual hosts on listeners of their own, by host; the others are the hosts themselves."""

    def __init__(self) -> None:
        """Begin with none."""
        self._keys: dict[str, dict[str, None]] = {}

    def note(self, key: str, *, is_used: bool) -> None:
        """Note whether objects have to do with a virtual host that is on listeners of its own."""
        name = name_of(key)
        keys = self._keys.setdefault(name, {})
        if is_used:
            keys[key] = None
        else:
            keys.pop(key, None)
            if not keys:
                del self._keys[name]

    def others(self, key: str) -> tuple[str, ...]:
        """Return the keys of the other virtual hosts of a host."""
        name = name_of(key)
        if name not in self._keys:
            return (name,) if name != key else ()
        return tuple(each for each in (name, *self._keys[name]) if each != key)

    def others_of(self, keys: Iterable[str]) -> Iterator[str]:
        """Yield those of several hosts."""
        for key in keys:
            yield from self.others(key)
