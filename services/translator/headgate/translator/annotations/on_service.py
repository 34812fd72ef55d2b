"""The annotations of a Service. They are for all of its ports."""

from headgate.common.table import BackendProtocol, Policy
from headgate.translator.annotations import values
from headgate.translator.annotations.annotation import Annotation

_TIME = "time"
_CHECKS = "Any `health-check-*` turns checks on."

_PROTOCOLS = {
    "http": BackendProtocol.HTTP,
    "https": BackendProtocol.HTTPS,
    "h2c": BackendProtocol.H2C,
    "h2": BackendProtocol.H2,
    "grpc": BackendProtocol.H2C,
    "grpcs": BackendProtocol.H2,
}

_SHARING = (
    Annotation(
        name="global",
        sets="sharing.is_global",
        read=values.boolean,
        value="`true`, `false`",
        default="false",
        does="Make this Service one with those of its namespace and name that other clusters export, as a "
        "ServiceExport does ([clusters.md](clusters.md)).",
        example="true",
    ),
)
_CONNECTING = (
    Annotation(
        name="backend-protocol",
        sets="protocol",
        read=values.one_of(_PROTOCOLS),
        value="`http`, `https`, `h2c`, `h2`, `grpc`, `grpcs`",
        default="what the port's `appProtocol` says, or http",
        does="What the endpoints speak. `h2c` and `grpc` are HTTP/2 without TLS, `h2` and `grpcs` with it.",
        example="grpc",
    ),
    Annotation(
        name="backend-host",
        sets="host",
        read=values.host,
        value="host name",
        default="the client's",
        does="Host header that the endpoints get.",
        example="internal.example.com",
    ),
    Annotation(
        name="backend-tls-verify",
        sets="tls.verify",
        read=values.boolean,
        value="`true`, `false`",
        default="false",
        does="Check the endpoints' certificates, with `https`, `h2` and `grpcs`.",
        example="true",
        guards=True,
    ),
    Annotation(
        name="backend-tls-ca",
        sets="tls.ca_pem",
        read=values.certificates,
        value="certificates in PEM",
        default="the system's",
        does="Authorities that the endpoints' certificates come from. Turns `backend-tls-verify` on.",
        example="-----BEGIN CERTIFICATE-----…",
        guards=True,
    ),
    Annotation(
        name="backend-tls-server-name",
        sets="tls.server_name",
        read=values.host,
        value="host name",
        default="the Host that is sent",
        does="Name that is sent in the handshake and that the certificate must have.",
        example="internal.example.com",
        guards=True,
    ),
    Annotation(
        name="proxy-protocol",
        sets="proxy_protocol",
        read=values.one_of({"1": 1, "2": 2}),
        value="`1`, `2`",
        default="none",
        does="Begin every connection to an endpoint with a PROXY protocol header of this version. For TCP: a Service "
        "with `stream-protocol: udp` cannot have it.",
        example="2",
    ),
    Annotation(
        name="resolve",
        sets="resolve_s",
        read=values.duration,
        value=_TIME,
        default="the answer's TTL",
        does="Longest time for which the addresses of an ExternalName are kept.",
        example="30s",
    ),
)

_BALANCING = (
    Annotation(
        name="load-balance",
        sets="balancing.policy",
        read=values.one_of({policy.value: policy for policy in Policy}),
        value=", ".join(f"`{policy}`" for policy in Policy),
        default="`round-robin`; `ring-hash` with `hash-by`",
        does="How an endpoint is chosen.",
        example="least-requests",
    ),
    Annotation(
        name="hash-by",
        sets="balancing.hash",
        read=values.hash_keys,
        value="list of `header:NAME`, `cookie:NAME`, `query:NAME`, `client`, `host`, `path`, `uri`",
        default="none",
        does="What `ring-hash` and `rendezvous` hash, joined.",
        example="header:x-user, client",
    ),
    Annotation(
        name="hash-subset-size",
        sets="balancing.subset_size",
        read=values.whole(1, 65535),
        value="1 to 65535",
        default="none",
        does="Hash to a group of so many endpoints, and take one of it at random.",
        example="3",
    ),
    Annotation(
        name="slow-start",
        sets="balancing.slow_start_s",
        read=values.duration,
        value=_TIME,
        default="none",
        does="Time in which a new endpoint's share grows to its full weight.",
        example="30s",
    ),
    Annotation(
        name="locality",
        sets="balancing.locality",
        read=values.word("none", "zone", "cluster"),
        value="`none`, `zone`, `cluster`",
        default="none",
        does="Prefer endpoints of the gateway's own zone, or cluster, as far as they are healthy.",
        example="zone",
    ),
)

_HEALTH = (
    Annotation(
        name="health-check-type",
        sets="active_check.type",
        read=values.word("http", "https", "tcp", "grpc"),
        value="`http`, `https`, `tcp`, `grpc`",
        default="http",
        does=f"How every endpoint is asked from time to time. {_CHECKS}",
        example="grpc",
    ),
    Annotation(
        name="health-check-path",
        sets="active_check.path",
        read=values.health_path,
        value="path",
        default="/",
        does=f"What is asked for, with `http` and `https`. {_CHECKS}",
        example="/healthz",
    ),
    Annotation(
        name="health-check-port",
        sets="active_check.port",
        read=values.whole(1, 65535),
        value="1 to 65535",
        default="the endpoint's own",
        does="Port that is asked.",
        example="9090",
    ),
    Annotation(
        name="health-check-interval",
        sets="active_check.interval_s",
        read=values.duration,
        value=_TIME,
        default="10s",
        does="Time between two questions.",
        example="5s",
    ),
    Annotation(
        name="health-check-timeout",
        sets="active_check.timeout_s",
        read=values.duration,
        value=_TIME,
        default="1s",
        does="Time for an answer.",
        example="500ms",
    ),
    Annotation(
        name="health-check-healthy-after",
        sets="active_check.healthy_after",
        read=values.whole(1, 100),
        value="1 to 100",
        default="2",
        does="Successes in a row that make an endpoint healthy again.",
        example="1",
    ),
    Annotation(
        name="health-check-unhealthy-after",
        sets="active_check.unhealthy_after",
        read=values.whole(1, 100),
        value="1 to 100",
        default="3",
        does="Failures in a row that make an endpoint unhealthy.",
        example="2",
    ),
    Annotation(
        name="ejection-errors",
        sets="ejection.consecutive_errors",
        read=values.whole(1, 1000),
        value="1 to 1000",
        default="none; 5 with `ejection-time`",
        does="Answers with 500, 502, 503 or 504 and failures to connect, in a row, that take an endpoint out for a "
        "while.",
        example="5",
    ),
    Annotation(
        name="ejection-time",
        sets="ejection.base_s",
        read=values.duration,
        value=_TIME,
        default="30s",
        does="Length of the first time out; each further one is longer by this, up to ten times it.",
        example="10s",
    ),
)

_LIMITS = (
    Annotation(
        name="max-connections",
        sets="circuit_breaker.max_connections",
        read=values.whole(1, 1_000_000),
        value="1 to 1000000",
        default="no bound",
        does="Connections of one worker to all endpoints; requests beyond wait.",
        example="200",
    ),
    Annotation(
        name="max-requests",
        sets="circuit_breaker.max_requests",
        read=values.whole(1, 1_000_000),
        value="1 to 1000000",
        default="no bound",
        does="Requests of one worker under way; those beyond are answered with 503.",
        example="500",
    ),
    Annotation(
        name="max-pending",
        sets="circuit_breaker.max_pending",
        read=values.whole(0, 1_000_000),
        value="0 to 1000000",
        default="no bound",
        does="Requests of one worker that wait for a connection; those beyond are answered with 503.",
        example="50",
    ),
)

_STREAMS = (
    Annotation(
        name="stream-protocol",
        sets="stream.protocol",
        read=values.word("tcp", "udp", "tls-passthrough", "tls-terminate"),
        value="`tcp`, `udp`, `tls-passthrough`, `tls-terminate`",
        default="tcp",
        does="What comes in at `stream-port`. The two of TLS tell connections apart by their server name; "
        "`tls-passthrough` hands them on as they are, `tls-terminate` decrypts them with the certificate for the name.",
        example="tls-passthrough",
        guards=True,
    ),
    Annotation(
        name="stream-port",
        sets="stream.port",
        read=values.whole(1, 65535),
        value="1 to 65535",
        default="none; the HTTPS port for TLS with `stream-server-names`",
        does="Port of the gateways that is open for this Service.",
        example="5432",
        guards=True,
    ),
    Annotation(
        name="stream-backend-port",
        sets="stream.backend_port",
        read=str,
        value="number or name of a port of the Service",
        default="its only port, or that of the same number",
        does="Port of the Service that gets the connections.",
        example="postgres",
        guards=True,
    ),
    Annotation(
        name="stream-server-names",
        sets="stream.server_names",
        read=values.server_names,
        value="list of names; `*.` stands for one label",
        default="all",
        does="Server names whose TLS connections come here.",
        example="db.example.com",
        guards=True,
    ),
    Annotation(
        name="stream-client-networks",
        sets="stream.allowed_networks",
        read=values.networks,
        value="list of addresses and networks",
        default="all",
        does="Clients that may connect.",
        example="10.0.0.0/8",
        guards=True,
    ),
    Annotation(
        name="stream-idle-timeout",
        sets="stream.idle_timeout_s",
        read=values.duration,
        value=_TIME,
        default="10m",
        does="Connections without a byte either way for so long are closed; the end of a UDP session.",
        example="1h",
    ),
)

SERVICE_ANNOTATIONS = (*_SHARING, *_CONNECTING, *_BALANCING, *_HEALTH, *_LIMITS, *_STREAMS)
