"""Entry points: the ports of the gateways by the names that Traefik's resources give them."""

import re
from collections.abc import Iterable
from typing import Any, Final, Literal, NamedTuple

from headgate.common.table import HttpsRedirect
from headgate.common.table.listener import ClientConnections

EntryProtocol = Literal["http", "https", "tcp", "udp"]
_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_ADDRESS: Final = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<host>[0-9A-Za-z.-]*)):(?P<port>[0-9]{1,5})")
_MAX_PORT: Final = 65535
FORMS: Final = "must be PORT/tcp, PORT/udp, ADDRESS:PORT/tcp, or http or https for the gateways' own port"


class ListenerOptions(NamedTuple):
    """How connections and requests on an entry point are treated. None leaves the gateways' own settings in force."""

    trusted_proxies: tuple[str, ...] | None = None
    proxy_protocol: bool | None = None
    connections: ClientConnections = ClientConnections()
    redirect: HttpsRedirect | None = None
    """All plain requests are redirected to HTTPS."""

    @property
    def of_port(self) -> dict[str, Any]:
        """The fields of a listener that are said of its port."""
        said: dict[str, Any] = {"trusted_proxies": self.trusted_proxies, "proxy_protocol": self.proxy_protocol}
        if self.connections != ClientConnections():
            said["connections"] = self.connections
        return {name: value for name, value in said.items() if value is not None}


class Observed(NamedTuple):
    """What is seen of requests whose routes do not say it."""

    access_logs: bool = True
    tracing: bool = True


class EntryPoint(NamedTuple):
    """A port of the gateways, by the name that objects give it."""

    name: str
    protocol: EntryProtocol
    """`http` and `https` are the gateways' own ports. On others of TCP both are spoken, and streams too."""
    port: int = 0
    """0: the gateways' own, whatever its number is."""
    address: str = ""
    """That is listened on; empty is that of the gateways' own ports."""
    is_default: bool = True
    """Whether objects that name no entry points mean it too."""
    options: ListenerOptions = ListenerOptions()
    middlewares: tuple[str, ...] = ()
    """Of all routes on it, before their own: `NAMESPACE-NAME@kubernetescrd`."""
    speaks_tls: bool = False
    """Whether routes without TLS have it here."""
    tls_options: str = ""
    """TLSOption of these."""
    refused_escapes: tuple[str, ...] = ()
    """Two hexadecimal digits each: requests whose paths have one of these escapes are refused."""
    observed: Observed = Observed()
    udp_timeout_s: float | None = None
    """After which sessions end."""

    def listener(self, *, is_tls: bool) -> str:
        """Return the key of the listener for its plain connections, or for those over TLS."""
        return f"{self.name}:{'https' if is_tls else 'http'}"


OWN_ENTRY_POINTS: Final = (EntryPoint("web", "http"), EntryPoint("websecure", "https"))
"""Those that there are without settings."""


def read_address(name: str, written: str) -> EntryPoint:
    """Return the entry point that an address is, as Traefik writes it (`:5432/tcp`), or a port alone (`5432/tcp`).

    Raises:
        ValueError: it is none.
    """
    if written in ("http", "https"):
        return EntryPoint(name, "http" if written == "http" else "https")
    where, _, protocol = written.partition("/")
    found = _ADDRESS.fullmatch(where if ":" in where else f":{where}")
    port = int(found["port"]) if found is not None else 0
    if found is None or not 0 < port <= _MAX_PORT or protocol.lower() not in ("", "tcp", "udp"):
        raise ValueError(f"{name}={written[:40]}: {FORMS}")
    return EntryPoint(name, "udp" if protocol.lower() == "udp" else "tcp", port, found["six"] or found["host"] or "")


def check_entry_points(points: Iterable[EntryPoint]) -> tuple[EntryPoint, ...]:
    """Return entry points, with `web` and `websecure` where these are not among them.

    Raises:
        ValueError: two have one port, or a name is none.
    """
    known = {one.name: one for one in points}
    owners: dict[tuple[bool, int | EntryProtocol, str], str] = {}
    for one in known.values():
        if not _NAME.fullmatch(one.name):
            raise ValueError(f"{one.name[:40]!r} is no name of an entry point: letters, digits, -, _ and . make one")
        place = one.protocol == "udp", one.port or one.protocol, one.address
        owner = owners.setdefault(place, one.name)
        if owner != one.name:
            raise ValueError(f"{one.name} has the port of {owner}: give each a port of its own")
    own = tuple(one for one in OWN_ENTRY_POINTS if one.name not in known)
    return (*own, *known.values())
