"""Spots: on which listeners the routes of an object are, and what they ask of all requests there."""

from typing import NamedTuple

from headgate.common.table import Condition
from headgate.common.table.hosts import HostKey
from headgate.translator.world.entry_points import Observed


class Spot(NamedTuple):
    """Virtual hosts in which the routes of an object are."""

    listeners: tuple[str, ...] = ()
    """None: the gateways' own two."""
    only: Condition | None = None
    """What the routes ask of all requests there."""
    middlewares: tuple[str, ...] = ()
    """Of all routes there, before their own, as the dialect names them."""
    tls_options: str = ""
    """Of routes that say nothing of TLS, as the dialect names it."""
    refused_escapes: tuple[str, ...] = ()
    """Two hexadecimal digits each: requests whose paths have one of these escapes are refused."""
    observed: Observed = Observed()
    keeps_semicolons: bool = False
    """Whether `;` separates no parameters of queries there, where the dialect has it separate them elsewhere."""

    def key(self, host: str) -> str:
        """Return a host as claims have it."""
        return str(HostKey(host, self.listeners)) if self.listeners else host
