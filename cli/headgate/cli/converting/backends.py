"""Where requests of a route go, as references of an HTTPRoute."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import lcm
from typing import Final, NamedTuple

from headgate.cli.converting.documents import NoEqual
from headgate.cli.converting.filters import standard_filters
from headgate.cli.converting.sources import Table
from headgate.common.resources import JsonObject
from headgate.common.table import Backend, Mirror
from headgate.common.table.upstream_key import UpstreamKey

MAX_WEIGHT: Final = 1_000_000
MAX_BACKENDS: Final = 16
"""Of one rule, as the definition of HTTPRoute has it."""


class ServicePort(NamedTuple):
    """A port of a Service."""

    namespace: str
    name: str
    port: int


def service_of(upstream: str, table: Table) -> ServicePort:
    """Return the Service that an upstream is made of. Raises NoEqual if it is none."""
    try:
        key = UpstreamKey.parse(upstream)
    except ValueError:
        key = None
    if key is None or key.port is None:
        raise NoEqual(f"the backend {upstream}, which is no port of a Service")
    if isinstance(key.port, int):
        return ServicePort(key.namespace, key.name, key.port)
    service = table.services.get((key.namespace, key.name), {})
    for port in service.get("spec", {}).get("ports") or ():
        if port.get("name") == key.port:
            return ServicePort(key.namespace, key.name, int(port["port"]))
    raise NoEqual(f"the port {key.port} by its name, of Service {key.namespace}/{key.name}, which is not there")


class Share(NamedTuple):
    """An upstream with its share of the requests."""

    backend: Backend
    share: Fraction


def shares_of(backends: Sequence[Backend], table: Table, remarks: list[str]) -> list[Share]:
    """Return upstreams with their shares, those of groups too; what else groups do goes to the remarks.

    Raises:
        NoEqual: conditions choose among the backends of a group.
    """
    return [each for each in _shares(backends, Fraction(1), table, remarks) if each.share]


def _shares(backends: Sequence[Backend], of: Fraction, table: Table, remarks: list[str]) -> Iterator[Share]:
    total = sum(each.weight for each in backends) or 1
    for each in backends:
        share = of * each.weight / total
        if each.upstream:
            yield Share(each, share)
            continue
        group = table.groups[each.group]
        if group.first_match is not None or each.plugins or each.mirrors:
            raise NoEqual(f"the group of backends {each.group}, of which conditions choose")
        if group.failover is not None:
            remarks.append(f"not said: the fallback {group.failover.fallback.target} of {group.failover.main.target}")
            yield from _shares([group.failover.main], share, table, remarks)
            continue
        if group.hashed is not None:
            remarks.append(f"backends of {each.group} get requests by weights, and not by a hash")
        if group.stickiness is not None:
            remarks.append(
                f"not said: clients keep to a backend of {each.group} by the cookie {group.stickiness.cookie}"
            )
        inner = [one.model_copy(update={"mirrors": (*one.mirrors, *group.mirrors)}) for one in group.backends]
        yield from _shares(inner, share, table, remarks)


def references(shares: Sequence[Share], namespace: str, prefix: str | None, table: Table) -> list[JsonObject]:
    """Return references to Services with weights in whole numbers. Raises NoEqual."""
    if len(shares) > MAX_BACKENDS:
        raise NoEqual(f"{len(shares)} backends, where a rule has {MAX_BACKENDS}")
    found = []
    for each, weight in zip(shares, whole_weights([one.share for one in shares]), strict=True):
        said = reference(service_of(each.backend.upstream, table), namespace)
        if len(shares) > 1:
            said["weight"] = weight
        if filters := _filters(each.backend, namespace, prefix, table):
            said["filters"] = filters
        found.append(said)
    return found


def whole_weights(shares: Sequence[Fraction]) -> list[int]:
    """Return the least whole numbers with the proportions of shares; rounded where they would be too great."""
    scale = lcm(*(share.denominator for share in shares))
    weights = [int(share * scale) for share in shares]
    if max(weights, default=0) <= MAX_WEIGHT:
        return weights
    return [round(share * MAX_WEIGHT) for share in shares]


def reference(service: ServicePort, namespace: str) -> JsonObject:
    """Return a reference to a Service from an object of a namespace."""
    said: JsonObject = {"name": service.name}
    if service.namespace != namespace:
        said["namespace"] = service.namespace
    return {**said, "port": service.port}


def mirror_filter(mirror: Mirror, namespace: str, table: Table) -> JsonObject:
    """Return the filter that copies requests. Raises NoEqual."""
    plain = Mirror(upstream=mirror.upstream, share=mirror.share) if mirror.upstream else None
    if mirror != plain:
        raise NoEqual(f"a mirror to {mirror.target} with more than a share")
    said: JsonObject = {"backendRef": reference(service_of(mirror.upstream, table), namespace)}
    percent = mirror.share * 100
    if percent != round(percent):
        said["fraction"] = {"numerator": round(mirror.share * MAX_WEIGHT), "denominator": MAX_WEIGHT}
    elif percent != 100:
        said["percent"] = round(percent)
    return {"type": "RequestMirror", "requestMirror": said}


def _filters(backend: Backend, namespace: str, prefix: str | None, table: Table) -> list[JsonObject]:
    found = [mirror_filter(each, namespace, table) for each in backend.mirrors]
    for use in backend.plugins:
        filters = standard_filters(use, prefix)
        if filters is None:
            raise NoEqual(f"the plugin {use.name} for one of several backends")
        found += filters
    return found
