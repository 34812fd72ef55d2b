"""Virtual hosts by hostname and listeners: one that is on several listeners is stored once.

Listeners on addresses of a Gateway's own have hosts of their own: another Gateway's are none of theirs.
"""

from collections.abc import Iterator

from headgate.common.table import OWN_LISTENERS, HostKey
from headgate.translator.dialects.gateway_api.hostnames import table_host
from headgate.translator.fragments.own_addresses import place_of


class HostKeys:
    """Hostnames, and the keys of the table's listeners that each is on. Iteration gives hosts as claims have them."""

    def __init__(self) -> None:
        """Begin with none."""
        self._listeners: dict[tuple[str, str], set[str]] = {}
        """By host and place."""

    def add(self, hostname: str, listener: str) -> None:
        """Note a hostname on a listener."""
        self._listeners.setdefault((table_host(hostname), place_of(listener)), set()).add(listener)

    def __iter__(self) -> Iterator[str]:
        for (host, _), listeners in self._listeners.items():
            yield host if listeners == set(OWN_LISTENERS) else str(HostKey(host, tuple(sorted(listeners))))
