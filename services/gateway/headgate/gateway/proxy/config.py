"""Limits and habits of the proxy. All times are seconds, all sizes bytes."""

import re
from dataclasses import dataclass
from typing import Final, Literal

from headgate.gateway.proxy.heads.paths import PathNormalization

DEFAULT_MAX_HEAD: Final = 64 * 1024
"""nginx allows 4 buffers of 8 KiB, HAProxy 16 KiB, Envoy 60 KiB, Go 1 MiB."""

UnderscoreNames = Literal["allow", "drop", "refuse"]
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9-]+")


@dataclass(frozen=True)
class ProxyConfig:
    """Settings of one `ProxyServer`; the defaults follow nginx where it has the setting."""

    trust_forwarded: bool = False
    """Every peer is a trusted proxy."""
    trusted_proxies: tuple[str, ...] = ()
    """Networks (CIDR) of the proxies in front, whose `X-Forwarded-*`, `X-Real-IP` and `Forwarded` are believed and
    kept; those of all others are replaced."""
    real_ip_header: str = "X-Forwarded-For"
    """Where trusted proxies name the client: a list of addresses, to which each adds the one it was connected to, or
    `Forwarded` (RFC 7239)."""
    forwarded_address: bool = True
    """Whether trusted proxies are believed what they say in that header."""
    forwarded_headers: bool = True
    """Whether they are believed what they say of scheme, host and port."""
    full_forwarded_for: bool = False
    """Whether upstreams of ingress-nginx get the list of addresses that such proxies pass on, and not the client's
    alone. Other upstreams get the list in any case."""
    append_forwarded_for: bool = True
    """Whether upstreams of Traefik's routes get the peer's address at the end of `X-Forwarded-For`."""
    forwarded_scheme: bool = False
    """Whether these get `X-Scheme` and `X-Forwarded-Scheme` too."""
    encode_semicolons: bool = False
    """Whether these get `;` in queries as `%3B`, instead of as `&`."""
    path_normalization: PathNormalization = "rewrite"
    """How paths are read that servers understand in different ways; see `paths`."""
    underscore_names: UnderscoreNames = "drop"
    """What becomes of request headers with `_` in their names, which CGI and WSGI cannot tell from `-`; nginx drops
    them as well."""
    access_log_share: float = 1.0
    """Of the requests that went well, how many are logged; those with a status from 400 on always are. 0: none is."""
    detailed_errors: bool = False
    """Clients read why a request failed behind the gateway: addresses, Services, faults of plugins."""
    max_connections: int | None = None
    """Clients' connections open at once; more are closed as they come. None is no limit."""
    max_connections_per_client: int | None = None
    """The same for each client address; trusted proxies that are believed something have no limit."""
    tls_handshake_timeout_s: float = 15.0
    """How long a TLS handshake may take; as long as a head."""
    min_body_rate: int = 240
    """Bytes per second, in each period of `body_timeout_s`, at which a body of known length has to come (408), and at
    which a client has to take what waits for it (reset); 0 is no limit. Kestrel's and IIS's number."""

    max_head: int = DEFAULT_MAX_HEAD
    """Longest head of a request (431) or an answer (502)."""
    max_target: int = 16 * 1024
    """Longest request target (414)."""
    max_header_count: int = 128
    """Most header fields in a request (431) or an answer (502)."""
    max_streams: int = 128
    """Requests under way at once on one connection of HTTP/2, both sides; nginx's number."""
    max_body: int | None = None
    """Longest request body (413); None is no limit."""
    max_buffered: int = 1024 * 1024
    """Longest request body that is held back as a whole (413), where a route asks for that."""
    max_buffered_bytes: int = 128 * 1024 * 1024
    """Bytes of bodies held in memory at once, over all requests (503); twice the longest that a plugin may hold."""
    max_pipelined: int = 64 * 1024
    """Bytes of further requests kept while one is being served; beyond it the connection is not read."""
    buffer_high: int = 64 * 1024
    """Unsent bytes to one peer at which reading from the other pauses."""

    header_timeout_s: float = 15.0
    """From a request's first byte to the end of its head (408); also the wait for a new connection's first byte."""
    idle_timeout_s: float = 75.0
    """How long a client's connection may rest between two requests."""
    body_timeout_s: float = 60.0
    """Between two reads of a request's body (408); a client that takes nothing for so long is reset."""
    keep_alive_requests: int = 100_000
    """Requests on one client connection of HTTP/1 before it is closed."""
    keep_alive_time_s: float = 0.0
    """How old one may be when a request comes, before it is closed behind the answer; 0 is any age."""

    connect_timeout_s: float = 5.0
    send_timeout_s: float = 60.0
    """Between two successful writes to an upstream (504)."""
    read_timeout_s: float = 60.0
    """Between two successful reads from an upstream while its answer is awaited (504)."""
    tunnel_idle_timeout_s: float = 3600.0
    """Without a byte through a tunnel (WebSocket), after which it is closed; HAProxy's usual `timeout tunnel`."""
    upstream_max_idle: int = 512
    """Idle connections kept per endpoint."""
    upstream_idle_timeout_s: float = 55.0
    """How long one is kept; under the 60 s or more after which most servers close."""
    drain_quiet_s: float = 1.0
    """How long connections that rest are kept when a drain begins, as their clients' next requests may be on their way;
    nginx's `keepalive_min_timeout`. A request that comes is answered with `Connection: close`."""
    lingering_s: float = 2.0
    """How long what a refused client still sends is read and dropped, so that it can read our answer."""

    @property
    def min_taken(self) -> int:
        """Bytes that a client has to take in each `body_timeout_s` of what waits for it.

        At most half of what makes it wait: who took that may have caught up since.
        """
        return max(1, min(int(self.min_body_rate * self.body_timeout_s), self.buffer_high // 2))

    @property
    def tick_s(self) -> float:
        """Seconds between two looks at all deadlines: a quarter of the shortest, at most half a second."""
        shortest = min(
            self.header_timeout_s,
            self.idle_timeout_s,
            self.body_timeout_s,
            self.send_timeout_s,
            self.read_timeout_s,
            self.upstream_idle_timeout_s,
            self.lingering_s,
        )
        return max(0.01, min(0.5, shortest / 4))

    def __post_init__(self) -> None:
        for name in (
            "max_head",
            "max_target",
            "max_header_count",
            "buffer_high",
            "max_pipelined",
            "max_buffered_bytes",
        ):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be positive, not {getattr(self, name)}")
        if not _HEADER_NAME.fullmatch(self.real_ip_header):
            raise ValueError(f"real_ip_header is no name of a header: {self.real_ip_header!r}")
