"""Where Redis is, as a URL says it, without connecting to it.

    redis://[USER:PASSWORD@]HOST[:6379][/DATABASE]
    redis+sentinel://[USER:PASSWORD@]HOST[:26379],HOST...[/]SERVICE[/DATABASE]

`rediss://` and `rediss+sentinel://` are the same over TLS. With Sentinels the hosts are theirs, and SERVICE is the name
under which they watch the primary; user and password are for the Redis servers, never for the Sentinels.
"""

import re
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

_URL = re.compile(
    r"(?P<scheme>rediss?)(?P<sentinel>\+sentinel)?://(?:(?P<login>[^/]*)@)?(?P<servers>[^/@\s]+)(?P<path>(?:/[^/\s]*)*)"
)
_SERVER = re.compile(r"(?:\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|(?P<host>[^:\[\]\s]+))(?::(?P<port>\d{1,5}))?")
_FORMS = "redis://host:port/0, rediss:// for TLS, or redis+sentinel://host:port,host:port/service/0"


Dial = Callable[[str, int], Awaitable[socket.socket]]
"""Connects to a port of a host; raises OSError."""


class Server(NamedTuple):
    """One server of Redis, or one Sentinel."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Login(NamedTuple):
    """User and password; an empty password is no authentication, an empty user the server's default one."""

    user: str = ""
    password: str = ""


class TlsIdentity(NamedTuple):
    """PEM texts instead of files."""

    authorities: str = ""
    """That are trusted instead of the system's; empty: those."""
    certificate: str = ""
    """Of this client, for servers that ask for one."""
    key: str = ""


@dataclass(frozen=True, slots=True)
class RedisTarget:
    """Everything that is needed to connect."""

    servers: tuple[Server, ...]
    """The one Redis server, or the Sentinels."""
    service: str = ""
    """What the Sentinels call the primary; empty without Sentinels."""
    database: int = 0
    is_tls: bool = False
    is_verified: bool = True
    """The servers' certificates are checked."""
    login: Login = field(default=Login(), repr=False)
    sentinel_login: Login = field(default=Login(), repr=False)
    ca_file: Path | None = None
    """Authorities that are trusted besides the system's, PEM."""
    certificate_file: Path | None = None
    """Certificate of this client, for servers that ask for one, PEM."""
    key_file: Path | None = None
    identity: TlsIdentity = field(default=TlsIdentity(), repr=False)
    """Goes before the files."""

    def __str__(self) -> str:
        """As in the URL, without login and database."""
        scheme = f"{'rediss' if self.is_tls else 'redis'}{'+sentinel' if self.service else ''}"
        return f"{scheme}://{','.join(map(str, self.servers))}" + (f"/{self.service}" if self.service else "")


@dataclass(frozen=True, slots=True)
class CountersTarget:
    """Where counts are kept, and how long an answer may take."""

    target: RedisTarget
    is_cluster: bool = False
    """The servers of the target are some nodes of a cluster."""
    timeout_s: float = 1.0


def parse_redis_url(url: str) -> RedisTarget:
    """Read a URL.

    Raises:
        ValueError: it is none of the forms; the message says what would be right, and repeats nothing of the URL.
    """
    found = _URL.fullmatch(url.strip())
    if found is None:
        raise ValueError(f"must be {_FORMS}")
    is_sentinel = found["sentinel"] is not None
    servers = tuple(_parse_server(server, 26379 if is_sentinel else 6379) for server in found["servers"].split(","))
    path = [part for part in found["path"].split("/") if part]
    service = path.pop(0) if is_sentinel and path else ""
    if is_sentinel and not service:
        raise ValueError("must name the service that the Sentinels watch: redis+sentinel://host:port/service")
    if not is_sentinel and len(servers) > 1:
        raise ValueError("must name one server; several are for redis+sentinel://")
    user, _, password = (found["login"] or "").partition(":")
    return RedisTarget(
        servers=servers,
        service=unquote(service),
        database=_parse_database(path),
        is_tls=found["scheme"] == "rediss",
        login=Login(unquote(user), unquote(password)),
    )


def _parse_server(text: str, default_port: int) -> Server:
    found = _SERVER.fullmatch(text)
    if found is None or not 0 < (port := int(found["port"] or default_port)) < 65536:
        raise ValueError(f"must name servers as host:port, as in {_FORMS}")
    return Server(found["ipv6"] or found["host"], port)


def _parse_database(path: list[str]) -> int:
    if len(path) > 1 or (path and not (path[0].isascii() and path[0].isdigit())):
        raise ValueError(f"must end with the number of a database, if with anything: {_FORMS}")
    return int(path[0]) if path else 0
