"""Where requests go: endpoints, and how they are chosen, watched and spoken to."""

import math
from enum import StrEnum
from typing import Literal, Self

from pydantic import Field, model_validator

from headgate.common.sealing import ClusterValue
from headgate.common.table.base import Entry, Provenance
from headgate.common.table.fastcgi import FastCgi


class BackendProtocol(StrEnum):
    """What a gateway speaks with an endpoint."""

    HTTP = "http"
    HTTPS = "https"
    H2C = "h2c"
    """HTTP/2 with prior knowledge over plain TCP; gRPC without TLS."""
    H2 = "h2"
    """HTTP/2 over TLS."""
    FCGI = "fcgi"
    """FastCGI over plain TCP."""
    TCP = "tcp"
    """For stream routes, as the two that follow."""
    TLS = "tls"
    UDP = "udp"


class Endpoint(Entry):
    """One address that answers for an upstream."""

    address: str
    """IPv4 or IPv6 address, or a DNS name that the gateway resolves."""
    port: int = Field(ge=1, le=65535)
    weight: int = Field(default=1, ge=0, le=65535)
    zone: str = ""
    cluster: str = ""
    priority: int = Field(default=0, ge=0, le=127)
    """Failover level: endpoints of a greater number get requests when too few of the smaller ones are healthy."""
    ready: bool = True
    serving: bool = True
    """May still answer although not ready, as a terminating pod that drains."""
    terminating: bool = False
    is_local: bool = False
    """Only gateways of the endpoint's own cluster reach it."""
    hop: Literal["", "http", "https"] = ""
    """Set: this is a gateway of its cluster and speaks that; gateways of other clusters ask it for endpoints that they
    cannot reach."""


class BalancingPolicy(StrEnum):
    """How an endpoint is chosen."""

    ROUND_ROBIN = "round-robin"
    """Smooth, weighted."""
    RANDOM = "random"
    LEAST_REQUESTS = "least-requests"
    """Of two drawn at random the one with fewer requests under way for its weight."""
    PEAK_EWMA = "peak-ewma"
    """Of two drawn at random the one with the lower expected latency: a decaying average that jumps up, times load."""
    RING_HASH = "ring-hash"
    """Consistent hashing on a ketama ring, weighted."""
    RENDEZVOUS = "rendezvous"
    """Highest random weight: the best spread and the least movement, at a cost linear in the endpoints."""
    MAGLEV = "maglev"
    """Maglev's table: the best spread and the cheapest look-up; a change of the endpoints moves some more keys than it
    must."""

    @property
    def hashes(self) -> bool:
        """Whether requests are mapped to endpoints by a hash."""
        return self in (BalancingPolicy.RING_HASH, BalancingPolicy.RENDEZVOUS, BalancingPolicy.MAGLEV)


HASH_TABLE_SIZE = 65_537
"""As in Envoy, and the smaller one of the two that Maglev's paper measures."""
LARGEST_HASH_TABLE = 655_373
"""The larger one. Envoy allows 5,000,011."""


class HashKey(Entry):
    """What is hashed. A request that has none of it is balanced by round robin."""

    source: Literal[
        "header", "cookie", "query", "client", "host", "path", "uri", "query-string", "consumer", "mqtt-client-id"
    ]
    """`uri` is the path with its query; `consumer` the name of the one that the route recognised, `mqtt-client-id` what
    an MQTT client of a stream route calls itself, both the client's address where there is none."""
    name: str = ""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if bool(self.name) != (self.source in ("header", "cookie", "query")):
            raise ValueError(f"hashing by {self.source} {'needs a' if not self.name else 'has no'} name")
        return self


class Balancing(Entry):
    """How requests are spread over the endpoints."""

    policy: BalancingPolicy = BalancingPolicy.ROUND_ROBIN
    hash: tuple[HashKey, ...] = ()
    """Joined; for the hashing policies."""
    subset_size: int | None = Field(default=None, ge=1)
    """Hash to a group of so many endpoints, and balance within it at random (ingress-nginx
    `upstream-hash-by-subset`)."""
    hash_balance_factor: int | None = Field(default=None, ge=101, le=10_000)
    """With a hashing policy: no endpoint has more requests under way than so many percent of its share of all; further
    keys go on to the next one (consistent hashing with bounded loads, as HAProxy and Envoy call it)."""
    hash_table_size: int = Field(default=HASH_TABLE_SIZE, ge=101, le=LARGEST_HASH_TABLE)
    """Entries of Maglev's table, a prime; a hundred times the endpoints are even to 1 %."""
    slow_start_s: float | None = Field(default=None, gt=0)
    """Seconds in which a new endpoint's share grows to its full weight."""
    locality: Literal["none", "zone", "cluster"] = "none"
    """Prefer endpoints of the gateway's own zone (then its cluster), and let the rest take over what the healthy part
    of them cannot: from 70 % healthy on all stays local."""
    panic_threshold: float = Field(default=0.5, ge=0, le=1)
    """With less than this share of a level healthy, health is ignored there: better a chance than a certain refusal."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        hashes = self.policy.hashes
        if bool(self.hash) != hashes:
            raise ValueError(f"policy {self.policy} {'needs' if hashes else 'takes no'} hash")
        if self.hash_balance_factor is not None and not hashes:
            raise ValueError(f"policy {self.policy} takes no hash_balance_factor")
        if self.hash_table_size != HASH_TABLE_SIZE and self.policy is not BalancingPolicy.MAGLEV:
            raise ValueError(f"policy {self.policy} takes no hash_table_size")
        if not is_prime(self.hash_table_size):
            raise ValueError(f"hash_table_size {self.hash_table_size} is no prime")
        return self


def is_prime(number: int) -> bool:
    """Tell whether a whole number above 1 has no other divisors than 1 and itself."""
    return number % 2 > 0 and all(number % divisor for divisor in range(3, math.isqrt(number) + 1, 2))


class ActiveCheck(Entry):
    """Asks every endpoint from time to time."""

    type: Literal["http", "https", "tcp", "grpc"] = "http"
    method: str = Field(default="GET", pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")
    path: str = "/"
    host: str = ""
    """Host header and server name; the endpoint's address by default."""
    port: int | None = Field(default=None, ge=1, le=65535)
    """Instead of the endpoint's own."""
    headers: tuple[tuple[str, str], ...] = ()
    service: str = ""
    """For gRPC: name in the health service's request."""
    interval_s: float = Field(default=10.0, gt=0)
    unhealthy_interval_s: float | None = Field(default=None, gt=0)
    """While the endpoint is unhealthy; None: as `interval_s`."""
    timeout_s: float = Field(default=1.0, gt=0)
    healthy_after: int = Field(default=2, ge=1)
    """Successes in a row that make an unhealthy endpoint healthy."""
    unhealthy_after: int = Field(default=3, ge=1)
    """Failures in a row that make a healthy endpoint unhealthy."""
    statuses: tuple[int, ...] = ()
    """That count as success; 200 to 399 by default."""
    failing_statuses: tuple[int, ...] = ()
    """That count as failure; all others are then a success."""
    verify: bool = True
    """Check the certificate, for `https`."""


class Ejection(Entry):
    """Takes an endpoint that fails requests out for a while (Envoy's outlier detection, nginx's `max_fails`)."""

    consecutive_errors: int | None = Field(default=5, ge=1)
    """Answers of `statuses` and failures to connect, in a row."""
    consecutive_local_errors: int | None = Field(default=None, ge=1)
    """Failures to connect, resets and timeouts, counted apart; None counts them with the others."""
    statuses: tuple[int, ...] = (500, 502, 503, 504)
    window_s: float | None = Field(default=None, gt=0)
    """Count errors within this time instead of in a row (nginx `fail_timeout`)."""
    base_s: float = Field(default=30.0, gt=0)
    """Length of the first ejection; each further one is longer by this."""
    max_s: float = Field(default=300.0, gt=0)
    max_share: float = Field(default=0.5, gt=0, le=1)
    """Of the endpoints that may be out at once; one always may, if there are two or more."""


class CircuitBreaker(Entry):
    """Bounds of one gateway's load on the upstream; None is no bound. Beyond them a request is answered with 503."""

    max_connections: int | None = Field(default=None, ge=1)
    """To all endpoints together; requests beyond wait."""
    max_pending: int | None = Field(default=None, ge=0)
    """Requests that wait for a connection."""
    max_requests: int | None = Field(default=None, ge=1)
    """Under way."""


class RetryBudget(Entry):
    """Bounds the retries of one worker by what was sent to the upstream lately. Instead of `Retries.budget` of routes,
    and for retries after refused connections too.
    """

    share: float = Field(ge=0, le=1)
    """Of the requests that began within `interval_s`, retries among them, so many may be retries."""
    interval_s: float = Field(gt=0)
    least: int = Field(ge=0)
    """So many within `least_interval_s` may be made in any case."""
    least_interval_s: float = Field(gt=0)


class BackendTls(Entry):
    """TLS towards endpoints."""

    verify: bool = False
    """Check the certificate against `ca_pem`, or the system's authorities without one."""
    ca_pem: str = ""
    server_name: str = ""
    """Sent as SNI and checked; by default the Host that is sent, or the address."""
    subject_names: tuple[str, ...] = ()
    """Names of which the certificate must have one, instead of the server name."""
    depth: int | None = Field(default=None, ge=0)
    min_version: Literal["", "1.2", "1.3"] = ""
    ciphers: str = ""
    certificate_pem: str = ""
    private_key: ClusterValue | None = None
    """Of our own certificate."""


class Upstream(Entry):
    """A group of endpoints, as one port of a Service is."""

    key: str
    """Unique in the table: `<cluster>/<namespace>/<service>:<port as referred to>`."""
    protocol: BackendProtocol = BackendProtocol.HTTP
    endpoints: tuple[Endpoint, ...] = ()
    """Sorted by address and port."""
    balancing: Balancing = Balancing()
    active_check: ActiveCheck | None = None
    ejection: Ejection | None = None
    circuit_breaker: CircuitBreaker | None = None
    retry_budget: RetryBudget | None = None
    """None: that of each route bounds what is under way."""
    tls: BackendTls | None = None
    """For `https`, `h2` and `tls`; None: without verification."""
    host: str | None = None
    """Host sent instead of the client's; empty: the endpoint's own name or address."""
    proxy_protocol: Literal[1, 2] | None = None
    """Version of the PROXY protocol header that every connection begins with."""
    resolve_s: float | None = Field(default=None, gt=0)
    """Longest time for which the addresses of DNS names are kept; None: as long as the answer's TTL says."""
    max_idle: int | None = Field(default=None, ge=0)
    """Idle connections kept per endpoint; None leaves the gateway's own setting in force."""
    idle_timeout_s: float | None = Field(default=None, gt=0)
    max_requests_per_connection: int | None = Field(default=None, ge=1)
    sends_connection: bool = False
    """Say in `Connection` of HTTP/1.1 requests whether the connection is kept, though HTTP/1.1 needs no word of it."""
    fastcgi: FastCgi = FastCgi()
    """For `fcgi`."""
    unavailable: str | None = None
    """Why there is nothing to send to, for the 503's log line and header: `Service default/web not found`."""
    provenance: Provenance
