"""What routes say of all requests to a Service, as BackendTrafficPolicies: rules of HTTPRoutes have no words for it."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from headgate.cli.converting.backends import ServicePort, service_of
from headgate.cli.converting.documents import Document, NoEqual, manifest
from headgate.cli.converting.rules import Rule, duration
from headgate.cli.converting.sources import Table
from headgate.common.resources import APISIX_GROUP, BACKEND_TRAFFIC_POLICY, JsonObject
from headgate.common.table import BackendProtocol, BalancingPolicy, HashKey, Timeouts, Upstream
from headgate.gateway.settings import GatewaySettings

_API: Final = f"{APISIX_GROUP}/v1alpha1"
_SCHEMES: Final = {BackendProtocol.HTTPS: "https", BackendProtocol.H2C: "grpc", BackendProtocol.H2: "grpcs"}
_BALANCERS: Final = {BalancingPolicy.LEAST_REQUESTS: "least_conn", BalancingPolicy.PEAK_EWMA: "ewma"}
_HASHED: Final = {
    "client": "remote_addr",
    "uri": "request_uri",
    "path": "uri",
    "host": "host",
    "query-string": "query_string",
}
_TIMEOUTS: Final = {"connect": "connect_s", "send": "send_s", "read": "read_s"}
_SETTINGS: Final = {"connect_s": "connect_timeout_s", "send_s": "send_timeout_s", "read_s": "read_timeout_s"}
Name = tuple[str, str]
"""Namespace and name of a Service."""


def traffic_policies(rules: Iterable[Rule], table: Table, manifests: Iterable[JsonObject]) -> Iterator[Document]:
    """Yield a policy for each Service of which all routes say the same, and something.

    Args:
        rules: that are written.
        table: that they are made of.
        manifests: of all objects: a Service that has a policy keeps it, and no policy is written over another.
    """
    taken = {name for one in manifests for name in _targets(one)}
    said: dict[Name, list[JsonObject]] = {}
    for rule in rules:
        for upstream in _upstreams(rule):
            try:
                service = service_of(upstream, table)
            except NoEqual:
                continue
            wanted = _wanted(table.upstreams.get(upstream), rule.route.timeouts)
            said.setdefault(_name(service), []).append(wanted)
    for (namespace, name), wishes in sorted(said.items()):
        first = wishes[0]
        if first and all(wish == first for wish in wishes) and (namespace, name) not in taken:
            target = {"group": "", "kind": "Service", "name": name}
            spec = {"targetRefs": [target], **first}
            yield Document(manifest(_API, BACKEND_TRAFFIC_POLICY.kind, namespace, name, spec))


def as_served(timeouts: Timeouts) -> Timeouts:
    """Return timeouts with what gateways do where nothing is said, by their defaults."""
    fields = GatewaySettings.model_fields
    own = {field: getattr(timeouts, field) or fields[_SETTINGS[field]].default for field in _TIMEOUTS.values()}
    return timeouts.model_copy(update=own)


def _name(service: ServicePort) -> Name:
    return service.namespace, service.name


def _upstreams(rule: Rule) -> Iterator[str]:
    yield from (backend.upstream for backend in rule.route.backends if backend.upstream)
    yield from (canary.upstream for canary in rule.route.canaries)


def _targets(written: JsonObject) -> Iterator[Name]:
    """Yield the Services that a policy among the objects is for, and the one whose policy would have its name."""
    if written.get("kind") == BACKEND_TRAFFIC_POLICY.kind:
        namespace, spec = written["metadata"].get("namespace", "default"), written.get("spec")
        yield namespace, written["metadata"]["name"]
        targets = spec.get("targetRefs") if isinstance(spec, dict) else None
        for target in targets if isinstance(targets, list) else ():
            if isinstance(target, dict):
                yield namespace, str(target.get("name", ""))


def _wanted(upstream: Upstream | None, timeouts: Timeouts) -> JsonObject:
    """Return what a policy has to say; nothing if a Service is spoken to like this without one."""
    said: dict[str, Any] = {}
    if any(getattr(timeouts, field) for field in _TIMEOUTS.values()):
        # A policy that says one of them says 60 seconds of the others, which gateways do not.
        whole = as_served(timeouts)
        said["timeout"] = {name: duration(getattr(whole, field)) for name, field in _TIMEOUTS.items()}
    if upstream is None:
        return said
    if upstream.protocol in _SCHEMES and upstream.tls is None:
        said["scheme"] = _SCHEMES[upstream.protocol]
    if balancer := _balancer(upstream):
        said["loadbalancer"] = balancer
    if upstream.host == "":
        said["passHost"] = "node"
    elif upstream.host is not None:
        said |= {"passHost": "rewrite", "upstreamHost": upstream.host}
    return said


def _balancer(upstream: Upstream) -> JsonObject:
    balancing = upstream.balancing
    if balancing.policy in _BALANCERS:
        return {"type": _BALANCERS[balancing.policy]}
    if balancing.policy is not BalancingPolicy.RING_HASH or len(balancing.hash) != 1:
        return {}
    return {"type": "chash", **_hashed(balancing.hash[0])}


def _hashed(key: HashKey) -> Mapping[str, str]:
    if key.source in ("header", "cookie"):
        return {"hashOn": key.source, "key": key.name}
    if key.source == "query":
        return {"hashOn": "vars", "key": f"arg_{key.name}"}
    if key.source == "consumer":
        return {"hashOn": "consumer"}
    return {"hashOn": "vars", "key": _HASHED.get(key.source, "remote_addr")}
