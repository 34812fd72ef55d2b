"""What a Service's annotations make of its upstreams and its stream port."""

from typing import Any, NamedTuple

from headgate.common.problems import Problem
from headgate.common.resources import JsonObject
from headgate.common.table import (
    ActiveCheck,
    BackendProtocol,
    BackendTls,
    Balancing,
    BalancingPolicy,
    CircuitBreaker,
    Ejection,
)
from headgate.translator.annotations.reading import Reading, ours, read_annotations
from headgate.translator.manifests.patches import UpstreamPatch
from headgate.translator.manifests.reading import as_text, creation_time, metadata

_HASHING = "ring-hash, rendezvous or maglev"
_ONLY_HASHING = {"subset_size": "hash-subset-size", "hash_balance_factor": "hash-balance-factor"}
_OVER_TLS = (BackendProtocol.HTTPS, BackendProtocol.H2)
_EJECTIONS_AT_MOST = 10


class StreamPolicy(NamedTuple):
    """What a Service wants of a port of the gateways."""

    protocol: str
    """`tcp`, `udp`, `tls-passthrough` or `tls-terminate`."""
    port: int
    """0 for the HTTPS port."""
    backend_port: int | str | None
    fields: JsonObject
    """Further fields of the `StreamRoute`."""


class ServicePolicy(NamedTuple):
    """The annotations of a Service, read once when it arrives."""

    uid: str
    created_at: str
    written: JsonObject
    """The annotations as they were written."""
    upstream: UpstreamPatch
    """What is said of the upstreams of all its ports."""
    refusal: str | None
    """Why none of its ports may get requests: an annotation's name."""
    stream: StreamPolicy | None
    is_global: bool
    """It is one with the Services of its namespace and name that other clusters export."""
    problems: tuple[Problem, ...]


def read_service_policy(manifest: JsonObject) -> ServicePolicy | None:
    """Read a Service's annotations; None where there are none of ours."""
    annotations = ours(manifest)
    if not annotations:
        return None
    reading = read_annotations("Service", annotations)
    upstream = _upstream_patch(reading)
    stream = _stream(reading)
    refused = [name for name in reading.unreadable if not name.startswith("stream-")]
    return ServicePolicy(
        uid=as_text(metadata(manifest).get("uid")),
        created_at=creation_time(manifest),
        written=annotations,
        upstream=upstream,
        refusal=refused[0] if refused else None,
        stream=stream,
        is_global=reading.group("sharing").get("is_global", False),
        problems=tuple(reading.problems),
    )


def _upstream_patch(reading: Reading) -> UpstreamPatch:
    fields = reading.group()
    parts: dict[str, BackendTls | Balancing | ActiveCheck | Ejection | CircuitBreaker | None] = {
        "tls": _tls(reading, fields.get("protocol", BackendProtocol.HTTP)),
        "balancing": _balancing(reading),
        "active_check": _active_check(reading),
        "ejection": _ejection(reading),
    }
    if limits := reading.group("circuit_breaker"):
        parts["circuit_breaker"] = CircuitBreaker(**limits)
    return UpstreamPatch(**fields, **parts)


def _tls(reading: Reading, protocol: BackendProtocol) -> BackendTls | None:
    written = reading.group("tls")
    if not written:
        return None
    if protocol not in _OVER_TLS:
        reading.refuse(reading.written("tls")[0], "must be together with backend-protocol https, h2 or grpcs")
        return None
    return BackendTls(**{"verify": "ca_pem" in written, **written})


def _balancing(reading: Reading) -> Balancing | None:
    written = reading.group("balancing")
    policy = written.get("policy", BalancingPolicy.RING_HASH if "hash" in written else BalancingPolicy.ROUND_ROBIN)
    if policy.hashes and "hash" not in written:
        reading.refuse("load-balance", f"must be together with hash-by, as it is {policy}")
        policy = written["policy"] = BalancingPolicy.ROUND_ROBIN
    if "hash" in written and not policy.hashes:
        reading.refuse("hash-by", f"must be together with load-balance {_HASHING}, but that is {policy}")
        del written["hash"]
    for field, name in _ONLY_HASHING.items():
        if field in written and not policy.hashes:
            reading.refuse(name, f"must be together with hash-by and load-balance {_HASHING}")
            del written[field]
    if "hash_table_size" in written and policy is not BalancingPolicy.MAGLEV:
        reading.refuse("hash-table-size", f"must be together with load-balance maglev, but that is {policy}")
        del written["hash_table_size"]
    return Balancing(**written | {"policy": policy}) if written else None


def _active_check(reading: Reading) -> ActiveCheck | None:
    written = reading.group("active_check")
    return ActiveCheck(**written) if written else None


def _ejection(reading: Reading) -> Ejection | None:
    written = reading.group("ejection")
    if "base_s" in written:
        written["max_s"] = written["base_s"] * _EJECTIONS_AT_MOST
    return Ejection(**written) if written else None


def _stream(reading: Reading) -> StreamPolicy | None:
    names = reading.written("stream")
    if not names:
        return None
    written: dict[str, Any] = reading.group("stream")
    protocol, port = written.pop("protocol", "tcp"), written.pop("port", 0)
    backend = written.pop("backend_port", None)
    is_tls = protocol.startswith("tls-")
    has_port = bool(port or (is_tls and "server_names" in written))
    if not reading.closed("stream"):
        if "server_names" in written and not is_tls:
            message = "must be together with stream-protocol tls-passthrough or tls-terminate"
            reading.refuse("stream-server-names", message)
        elif not has_port:
            _refuse_portless(reading, names[0], is_tls)
        elif protocol == "udp" and reading.group().get("proxy_protocol") == 1:
            reading.refuse("stream-protocol", "must be together with proxy-protocol 2 if it is udp, as 1 is for TCP")
    if reading.closed("stream") or not has_port:
        return None
    number = int(backend) if backend and backend.isascii() and backend.isdigit() else backend
    return StreamPolicy(protocol, port, number, written)


def _refuse_portless(reading: Reading, name: str, is_tls: bool) -> None:
    remedy = "stream-port or stream-server-names" if is_tls else "stream-port"
    reading.refuse(name, f"must be together with {remedy}")
