"""Which addresses connections may go to that routes and plugins cause.

Routes are written by many, the gateway stands where few may be: whoever writes a route must not reach by it what only
the gateway can. What was written says little, as names resolve to whatever their owner likes and to something else the
next time. So the address is judged that is dialled, once per connection, in whatever form it is written: an IPv4
address within an IPv6 one is judged as both. `Dialler` is what asks.

What the operator configures (store, NATS, collectors of traces, name servers) is not judged.
"""

import errno
import logging
import socket
import time
from collections.abc import Collection
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final

from prometheus_client import Counter

from headgate.gateway.model.networks import Network, parse_networks

_log = logging.getLogger(__name__)
_DENIED = Counter("headgate_denied_connections", "Connections that were not made, as their destination is denied")

DENIED_BY_DEFAULT: Final = (
    # What Kubernetes takes for no address of an endpoint (ValidateEndpointIP).
    "0.0.0.0/8",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "224.0.0.0/24",
    "::/128",
    "::1/128",
    "fe80::/10",
    "ff02::/16",
    # Metadata services of clouds that are elsewhere: of EC2, of Compute Engine, the WireServer of Azure.
    "fd00:ec2::254/128",
    "fd20:ce::254/128",
    "168.63.129.16/32",
)
_TRANSLATED: Final = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"))
"""Prefixes of NAT64 (RFC 6052, RFC 8215); behind them the IPv4 address stands in the last 32 bits."""
_TELL_AGAIN_S: Final = 60.0
_MOST_TOLD: Final = 1024


class DestinationDenied(PermissionError):
    """A connection that may not be made, as to say of it where it would have gone and which setting is against it."""

    def __init__(self, reason: str) -> None:
        super().__init__(errno.EACCES, reason)
        self.reason: Final = reason

    def __str__(self) -> str:
        return self.reason


class Destinations:
    """The settings `denied_destinations` and `allowed_destinations`. Without arguments all may be connected to.

    Args:
        denied: networks in CIDR notation; ValueError if one is wrong.
        allowed: networks that may be connected to although they are within those.
        own_port: port of this gateway's own that no route leads to, on whichever of the host's addresses; 0 is none.
    """

    def __init__(self, denied: Collection[str] = (), allowed: Collection[str] = (), own_port: int = 0) -> None:
        self._denied = parse_networks(denied)
        self._allowed = parse_networks(allowed)
        self._own_port = own_port if denied else 0
        self._find_denial = lru_cache(maxsize=4096)(self._judge)
        self._told: dict[tuple[str, str], float] = {}

    def check(self, address: str, port: int) -> None:
        """Say whether an IP address may be connected to.

        Raises:
            DestinationDenied: it may not.
        """
        network = self._find_denial(address)
        if network is not None:
            reason = f"{address} is within {network} of the setting denied_destinations"
        elif port == self._own_port and port and _is_own(address):
            reason = f"{address} port {port} is the gateway's own admin port"
        else:
            return
        _DENIED.inc()
        raise DestinationDenied(reason)

    def tell(self, denied: DestinationDenied, who: str) -> None:
        """Log that somebody's connection was not made; the same not more often than once a minute."""
        what, now = (who, denied.reason), time.monotonic()
        if now - self._told.get(what, -_TELL_AGAIN_S) < _TELL_AGAIN_S:
            return
        if len(self._told) >= _MOST_TOLD:
            self._told.clear()
        self._told[what] = now
        _log.warning("a connection was denied", extra={"of": who, "reason": denied.reason})

    def _judge(self, address: str) -> Network | None:
        """Return the network that denies an address."""
        if not self._denied:
            return None
        for form in _forms(ip_address(address.partition("%")[0])):
            found = _find(form, self._denied)
            if found is not None and _find(form, self._allowed) is None:
                return found
        return None


def _forms(address: IPv4Address | IPv6Address) -> list[IPv4Address | IPv6Address]:
    """Return an address, and the IPv4 address that connections to it reach, if it stands for one."""
    if isinstance(address, IPv4Address):
        return [address]
    if address.ipv4_mapped is not None:
        return [address, address.ipv4_mapped]
    if any(address in prefix for prefix in _TRANSLATED):
        return [address, IPv4Address(int(address) & 0xFFFFFFFF)]
    return [address]


def _find(address: IPv4Address | IPv6Address, networks: Collection[Network]) -> Network | None:
    return next((network for network in networks if address in network), None)


def _is_own(address: str) -> bool:
    """Say whether an address is one of this host's: only such can be bound to."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True


ANYWHERE: Final = Destinations()
