"""Objects with streams as TLSRoutes, TCPRoutes and UDPRoutes."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from headgate.cli.converting.backends import reference, service_of, whole_weights
from headgate.cli.converting.documents import GATEWAY_API, Document, NoEqual, manifest
from headgate.cli.converting.gateways import Gateways, ListenerName, certificate_of, hostname_of, is_hostname
from headgate.cli.converting.sources import Source, Table
from headgate.common.resources import TCP_ROUTE, TLS_ROUTE, UDP_ROUTE, JsonObject, ResourceKind
from headgate.common.table import StreamRoute

_KINDS: Final[dict[str, ResourceKind]] = {"tls": TLS_ROUTE, "tcp": TCP_ROUTE, "udp": UDP_ROUTE}
_HTTPS: Final = 443
_GUARDS: Final = ("allowed_networks", "alpn", "when", "mqtt", "max_connections", "max_connections_per_client")
"""Fields that keep clients out and that no route of Gateway API has."""


def convert_streams(source: Source, table: Table, gateways: Gateways) -> Iterator[Document]:
    """Yield a route for each stream of an object; what cannot be one is a remark of the Gateway."""
    for number, stream in enumerate(source.streams, 1):
        name = source.object.name if number == 1 else f"{source.object.name}-{number}"
        try:
            document = _convert(stream, source.object.namespace, name, table, gateways)
        except NoEqual as what:
            gateways.remarks.append(f"{source.object}: not written, as it has {what}")
            continue
        document.remark(f"from {source.object}")
        yield document


def _convert(stream: StreamRoute, namespace: str, name: str, table: Table, gateways: Gateways) -> Document:
    plain = StreamRoute.model_construct(**stream.model_dump())
    for field in _GUARDS:
        if getattr(stream, field) != StreamRoute.model_fields[field].get_default(call_default_factory=True):
            raise NoEqual(f"{field.replace('_', ' ')} ({getattr(plain, field)})")
    names = [host for host in stream.server_names if is_hostname(host)]
    if len(names) < len(stream.server_names):
        raise NoEqual("patterns of server names")
    kind = _KINDS[stream.protocol]
    port = stream.port or _HTTPS
    for listener in _listeners(stream, port, names, table):
        certificate = certificate_of(listener.hostname, table.certificates) if stream.terminate else None
        gateways.needed.setdefault(listener, certificate)
    services = [service_of(each.upstream, table) for each in stream.backends]
    total = sum(each.weight for each in stream.backends) or 1
    weights = whole_weights([Fraction(each.weight, total) for each in stream.backends])
    backends: list[JsonObject] = []
    for service, weight in zip(services, weights, strict=True):
        said = reference(service, namespace)
        gateways.grant("Service", service.namespace, service.name, kind.kind, namespace)
        backends.append({**said, "weight": weight} if len(services) > 1 else said)
    gateway = gateways.name
    parent: JsonObject = {"name": gateway.name, "port": port}
    if gateway.namespace != namespace:
        parent["namespace"] = gateway.namespace
    spec: JsonObject = {"parentRefs": [parent]}
    if names:
        spec["hostnames"] = [hostname_of(host) for host in names]
    spec["rules"] = [{"backendRefs": backends}]
    return Document(manifest(GATEWAY_API, kind.kind, namespace, name, spec))


def _listeners(stream: StreamRoute, port: int, names: list[str], table: Table) -> Iterator[ListenerName]:
    if stream.protocol != "tls":
        yield ListenerName(port, stream.protocol.upper(), "")
        return
    mode = "Terminate" if stream.terminate else "Passthrough"
    for host in names or [""]:
        if stream.terminate and certificate_of(host, table.certificates) is None:
            raise NoEqual(f"no certificate for {host or 'any name'} among the objects")
        yield ListenerName(port, "TLS", hostname_of(host), mode)
