"""Requests that come by a connection which was made for another HTTPS listener (RFC 9110 section 15.5.20).

Clients of HTTP/2 use a connection for all hosts of its certificate. A request belongs to the listener of its host, and
the connection to the listener of its server name: if these are two listeners of one port of a Gateway, the request is
answered with 421, and the client asks again on a connection of its own. Without a server name nothing is refused.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from pydantic import JsonValue

from headgate.common.plugins.transformation.fault_injection import FaultInjectionConfig
from headgate.common.table import PluginUse
from headgate.translator.dialects.gateway_api.gateways.listeners import GatewayListener, narrower
from headgate.translator.dialects.gateway_api.hostnames import EVERY_HOST, name_pattern

_NAME: Final = "ssl_server_name"
_STATUS: Final = 421


class OtherListeners(NamedTuple):
    """HTTPS listeners of the port of one, by their hostnames."""

    own: str
    """Hostname of the one."""
    narrower: tuple[str, ...]
    """Whose server names are among its own, and theirs all the same."""
    others: tuple[str, ...]
    """Whose server names are not its own."""

    def refusal(self) -> PluginUse:
        """Return the plugin that refuses requests of their connections."""
        alternatives: list[JsonValue] = []
        if self.narrower:
            alternatives.append([[_NAME, "~~", _any_of(self.narrower)]])
        if self.others:
            alternatives.append([[_NAME, "!", "~~", _any_of((self.own,))], [_NAME, "~~", _any_of(self.others)]])
        abort: JsonValue = {"http_status": _STATUS, "vars": alternatives}
        return PluginUse.of(FaultInjectionConfig.model_validate({"abort": abort}))


def other_listeners(listener: GatewayListener, listeners: Iterable[GatewayListener]) -> OtherListeners | None:
    """Return the other HTTPS listeners of a listener's port; None if there are none, and for other protocols."""
    if listener.transport != "https":
        return None
    here = [one for one in listeners if one.transport == "https" and one.spec.port == listener.spec.port]
    below = sorted(set(narrower(listener, here)))
    others = sorted({one.hostname for one in here} - {listener.hostname, *below})
    if listener.hostname == EVERY_HOST:
        others = []
    return OtherListeners(listener.hostname, tuple(below), tuple(others)) if below or others else None


def _any_of(hostnames: Iterable[str]) -> str:
    return f"^(?:{'|'.join(map(name_pattern, hostnames))})$"
