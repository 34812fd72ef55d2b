"""ApisixUpstream as fields of the table's upstreams, and as what routes take over from it: retries and timeouts."""

import re
from typing import Any

from headgate.common.problems import Problem
from headgate.common.resources import JsonObject
from headgate.common.table import (
    ActiveCheck,
    BackendProtocol,
    Balancing,
    BalancingPolicy,
    Ejection,
    HashKey,
    Retries,
    Timeouts,
)
from headgate.translator.dialects.apisix.context import find_referenced
from headgate.translator.dialects.apisix.document import UPSTREAMS
from headgate.translator.dialects.apisix.models.fields import DEFAULT_TIMEOUT_S, Timeout
from headgate.translator.dialects.apisix.models.upstream import (
    ActiveCheck as WrittenCheck,
)
from headgate.translator.dialects.apisix.models.upstream import (
    BackendSettings,
    HealthCheck,
    LoadBalancer,
    PassiveCheck,
    PortSettings,
    UpstreamSettings,
    UpstreamSpec,
)
from headgate.translator.manifests.specs import Spec, refuse, warn
from headgate.translator.world.graph import Lookups

MAX_ATTEMPTS = 10
PROTOCOLS = {
    "http": BackendProtocol.HTTP,
    "https": BackendProtocol.HTTPS,
    "grpc": BackendProtocol.H2C,
    "grpcs": BackendProtocol.H2,
    "tcp": BackendProtocol.TCP,
    "tls": BackendProtocol.TLS,
    "udp": BackendProtocol.UDP,
}
STREAM_SCHEMES = ("tcp", "tls", "udp")
_POLICIES = {
    "roundrobin": BalancingPolicy.ROUND_ROBIN,
    "chash": BalancingPolicy.RING_HASH,
    "ewma": BalancingPolicy.PEAK_EWMA,
    "least_conn": BalancingPolicy.LEAST_REQUESTS,
}
_HASHED_VARIABLES = {
    "consumer_name": HashKey(source="consumer"),
    "host": HashKey(source="host"),
    "mqtt_client_id": HashKey(source="mqtt-client-id"),
    "query_string": HashKey(source="query-string"),
    "remote_addr": HashKey(source="client"),
    "request_uri": HashKey(source="uri"),
    "server_name": HashKey(source="host"),
    "uri": HashKey(source="path"),
}
_CHANCE = ("hostname", "remote_port", "server_addr")
"""Variables that APISIX takes too, of which hashing makes nothing: each gateway or connection has its own."""
_VARIABLE = re.compile(r"\$\{?([a-z_][a-z0-9_]*)\}?", re.IGNORECASE)
_ACTIVE_UNHEALTHY = (429, 404, *range(500, 506))
_PASSIVE_UNHEALTHY = (429, 500, 503)
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\r\n\0]*)")


def read_upstream(manifest: JsonObject, problems: list[Problem]) -> UpstreamSpec | None:
    """Read an ApisixUpstream; None where it cannot be read as a whole."""
    spec = Spec(manifest.get("spec"), problems)
    ports = spec.each("portLevelSettings", PortSettings)
    found = spec.rest(UpstreamSpec, "portLevelSettings")
    return found.model_copy(update={"port_level_settings": tuple(part.value for part in ports)}) if found else None


def find_upstream(lookups: Lookups, namespace: str, name: str) -> UpstreamSpec | None:
    """Return the ApisixUpstream of a name, as far as it can be read; what is wrong with it is told to itself."""
    manifest = find_referenced(lookups, UPSTREAMS, namespace, name)
    return None if manifest is None else read_upstream(manifest, [])


def settings_for(spec: UpstreamSpec, port: int | None) -> UpstreamSettings:
    """Return what holds for one port: what is written for it, and for all else what is written for all."""
    for own in spec.port_level_settings:
        if own.port == port:
            written = own.model_fields_set & UpstreamSettings.model_fields.keys()
            return spec.model_copy(update={name: getattr(own, name) for name in written})
    return spec


def read_fields(settings: BackendSettings, field: str, problems: list[Problem]) -> dict[str, Any]:
    """Return the fields of a table's upstream but for its endpoints and TLS; mistakes go to `problems`."""
    fields: dict[str, Any] = {}
    if settings.scheme is not None:
        fields["protocol"] = PROTOCOLS[settings.scheme]
    if settings.loadbalancer is not None:
        balancing = _read_balancing(settings.loadbalancer, f"{field}.loadbalancer", problems)
        fields |= {"balancing": balancing} if balancing is not None else {}
    if settings.pass_host is not None:
        host = _read_host(settings, field, problems)
        fields |= {"host": host} if host is not None else {}
    if settings.health_check is not None:
        fields |= _read_checks(settings.health_check, f"{field}.healthCheck", problems)
    return fields


def _read_host(settings: BackendSettings, field: str, problems: list[Problem]) -> str | None:
    if settings.pass_host == "node":
        return ""
    if settings.pass_host == "rewrite":
        if not settings.upstream_host:
            message = "must be given with passHost rewrite: the Host that nodes see"
            problems.append(refuse("Required", f"{field}.upstreamHost", message))
        return settings.upstream_host or None
    return None


def _read_balancing(written: LoadBalancer, field: str, problems: list[Problem]) -> Balancing | None:
    policy = _POLICIES[written.type]
    if policy is not BalancingPolicy.RING_HASH:
        return Balancing(policy=policy)
    try:
        return Balancing(policy=policy, hash=_hash_keys(written))
    except ValueError as error:
        problems.append(refuse("InvalidValue", f"{field}.key", str(error), written.key))
        return None


def _hash_keys(written: LoadBalancer) -> tuple[HashKey, ...]:
    if written.hash_on == "consumer":
        return (HashKey(source="consumer"),)
    if not written.key:
        raise ValueError("must be given with chash: what is hashed")
    if written.hash_on == "header":
        return (HashKey(source="header", name=written.key.removeprefix("http_").replace("_", "-")),)
    if written.hash_on == "cookie":
        return (HashKey(source="cookie", name=written.key.removeprefix("cookie_")),)
    if written.hash_on == "vars":
        return (_hash_variable(written.key),)
    names = _VARIABLE.findall(written.key)
    if not names:
        raise ValueError("must be a text with variables such as $remote_addr$http_x_user")
    return tuple(map(_hash_variable, names))


def _hash_variable(name: str) -> HashKey:
    if name in _HASHED_VARIABLES:
        return _HASHED_VARIABLES[name]
    for prefix, source in (("arg_", "query"), ("http_", "header"), ("cookie_", "cookie")):
        rest = name.removeprefix(prefix)
        if rest and rest != name:
            rest = rest.replace("_", "-") if source == "header" else rest
            return HashKey.model_validate({"source": source, "name": rest})
    if name in _CHANCE:
        raise ValueError(f"${name} says nothing of who asks, and differs by gateway or connection; hash remote_addr")
    known = ", ".join((*_HASHED_VARIABLES, "arg_NAME", "http_NAME", "cookie_NAME"))
    raise ValueError(f"must be a variable that can be hashed: {known}")


def _read_checks(written: HealthCheck, field: str, problems: list[Problem]) -> dict[str, Any]:
    fields: dict[str, Any] = {"active_check": _read_active(written.active, f"{field}.active", problems)}
    if written.passive is not None:
        fields["ejection"] = _read_passive(written.passive)
    return fields


def _read_active(written: WrittenCheck, field: str, problems: list[Problem]) -> ActiveCheck:
    healthy, unhealthy = written.healthy, written.unhealthy
    failing = {*(unhealthy.http_codes or _ACTIVE_UNHEALTHY)} - {*healthy.http_codes}
    failures = unhealthy.http_failures or 5
    return ActiveCheck(
        type=written.type,
        path=written.http_path or "/",
        host=written.host,
        port=written.port,
        headers=tuple(_read_headers(written, field, problems)),
        interval_s=healthy.interval or 1.0,
        unhealthy_interval_s=unhealthy.interval or 1.0,
        timeout_s=written.timeout or 1.0,
        healthy_after=healthy.successes or 2,
        unhealthy_after=(unhealthy.tcp_failures or 2) if written.type == "tcp" else failures,
        failing_statuses=tuple(sorted(failing)),
        verify=written.strict_tls,
    )


def _read_headers(written: WrittenCheck, field: str, problems: list[Problem]) -> list[tuple[str, str]]:
    found = []
    for index, line in enumerate(written.request_headers):
        match = _HEADER.fullmatch(line)
        if match is None:
            at = f"{field}.requestHeaders[{index}]"
            problems.append(warn("InvalidValue", at, "must be a header such as `X-Probe: yes`; it is ignored", line))
        else:
            found.append((match[1], match[2]))
    return found


def _read_passive(written: PassiveCheck) -> Ejection:
    unhealthy = written.unhealthy
    return Ejection(
        consecutive_errors=unhealthy.http_failures or 5,
        consecutive_local_errors=unhealthy.tcp_failures or 2,
        statuses=unhealthy.http_codes or _PASSIVE_UNHEALTHY,
        max_share=1.0,
    )


def read_timeouts(written: Timeout | None) -> Timeouts:
    """Return a route's timeouts: what of a `timeout` is not written is 60 s; without one the gateway's own hold."""
    if written is None:
        return Timeouts()
    return Timeouts(
        connect_s=written.connect or DEFAULT_TIMEOUT_S,
        send_s=written.send or DEFAULT_TIMEOUT_S,
        read_s=written.read or DEFAULT_TIMEOUT_S,
    )


def read_retries(written: int | None) -> Retries:
    """Return a route's retries."""
    if written is None:
        return Retries()
    return Retries(attempts=min(written, MAX_ATTEMPTS), on=("connect", "reset", "timeout"))
