"""The Gateway that converted routes are attached to, and the grants that it needs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from headgate.cli.converting.documents import GATEWAY_API, Document, manifest
from headgate.cli.converting.sources import Place, Table
from headgate.common.resources import GATEWAY_GROUP, SECRET, JsonObject
from headgate.common.table import Certificate
from headgate.common.table.hosts import ANY_HOST, is_pattern
from headgate.common.table.listener import HTTP_LISTENER, HTTPS_LISTENER

CONTROLLER: Final = "headgate.dev/gateway-controller"
MAX_LISTENERS: Final = 64
"""Of one Gateway, as its definition has it."""
_PORTS: Final = {HTTP_LISTENER: 80, HTTPS_LISTENER: 443}
_FROM_ALL: Final = {"namespaces": {"from": "All"}}


class GatewayName(NamedTuple):
    """Where Gateways are written."""

    namespace: str
    name: str
    class_name: str


class ListenerName(NamedTuple):
    """A listener that routes need."""

    port: int
    protocol: str
    hostname: str
    """Empty: any."""
    mode: str = ""
    """Of TLS."""


@dataclass
class Gateways:
    """Listeners that converted routes need; Gateways are written from them in the end."""

    name: GatewayName
    table: Table
    needed: dict[ListenerName, Certificate | None] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    granted: dict[tuple[str, str, str, str], set[str]] = field(default_factory=dict)
    """Names of Services and Secrets that may be referred to, by their namespace and kind, and the kind and namespace of
    those who do."""

    def need(self, hosts: Sequence[str], keys: Sequence[str]) -> list[ListenerName]:
        """Have listeners for some hosts, and return them.

        Args:
            hosts: patterns.
            keys: of listeners of the table; none: the gateways' own two.
        """
        found: list[ListenerName] = []
        for key in keys or (HTTP_LISTENER, HTTPS_LISTENER):
            entry = self.table.listeners.get(key)
            port = _PORTS.get(key) or (entry.port if entry is not None else 0)
            if key == HTTPS_LISTENER or (entry is not None and entry.protocol == "https"):
                found += filter(None, [self._secure(port, host, is_asked=bool(keys)) for host in hosts])
            else:
                found.append(ListenerName(port, "HTTP", ""))
                self.needed.setdefault(found[-1], None)
        return found

    def parents(self, listeners: Iterable[ListenerName], namespace: str) -> list[JsonObject]:
        """Return what a route of a namespace is attached to; all that is needed has to be known."""
        names, order = self.names, sorted(self.needed)
        where = {"namespace": self.name.namespace} if self.name.namespace != namespace else {}
        ports: dict[int, set[int]] = {}
        for one in listeners:
            ports.setdefault(order.index(one) // MAX_LISTENERS, set()).add(one.port)
        found: list[JsonObject] = []
        for index, wanted in sorted(ports.items()):
            there = {one.port for one in order[index * MAX_LISTENERS : (index + 1) * MAX_LISTENERS]}
            parent = {"name": names[index], **where}
            # Without a port a route is attached to whatever listener has its hostnames.
            found += [parent] if wanted == there else [{**parent, "port": port} for port in sorted(wanted)]
        return found

    def _secure(self, port: int, host: str, *, is_asked: bool) -> ListenerName | None:
        """Have a listener for HTTPS, if there is a certificate."""
        certificate = certificate_of(host, self.table.certificates)
        if certificate is None:
            text = f"no listener for https://{host}: there is no certificate for it among the objects"
            if is_asked and text not in self.remarks:
                self.remarks.append(text)
            return None
        listener = ListenerName(port, "HTTPS", hostname_of(host))
        self.needed[listener] = certificate
        return listener

    def grant(self, kind: str, namespace: str, name: str, by_kind: str, by_namespace: str) -> None:
        """Let objects of another namespace refer to a Service or a Secret."""
        if namespace != by_namespace:
            self.granted.setdefault((namespace, kind, by_kind, by_namespace), set()).add(name)

    @property
    def names(self) -> list[str]:
        """Of all Gateways: one has room for so many listeners."""
        count = max(1, -(-len(self.needed) // MAX_LISTENERS))
        return [self.name.name if number == 1 else f"{self.name.name}-{number}" for number in range(1, count + 1)]

    def documents(self) -> Iterable[Document]:
        """Yield the class, the Gateways and the grants."""
        namespace, _, class_name = self.name
        yield Document(manifest(GATEWAY_API, "GatewayClass", "", class_name, {"controllerName": CONTROLLER}))
        listeners = [self._listener(one, self.needed[one]) for one in sorted(self.needed)]
        for index, name in enumerate(self.names):
            own = listeners[index * MAX_LISTENERS : (index + 1) * MAX_LISTENERS]
            spec = {"gatewayClassName": class_name, "listeners": own}
            yield Document(manifest(GATEWAY_API, "Gateway", namespace, name, spec), [] if index else self.remarks)
        for (owner, kind, by_kind, by_namespace), names in sorted(self.granted.items()):
            spec = {
                "from": [{"group": GATEWAY_GROUP, "kind": by_kind, "namespace": by_namespace}],
                "to": [{"group": "", "kind": kind, "name": name} for name in sorted(names)],
            }
            name = f"{by_kind.lower()}-{by_namespace}-to-{kind.lower()}s"
            yield Document(manifest(GATEWAY_API, "ReferenceGrant", owner, name, spec))

    def _listener(self, one: ListenerName, certificate: Certificate | None) -> JsonObject:
        said: JsonObject = {"name": _name_of(one), "port": one.port, "protocol": one.protocol}
        if one.hostname:
            said["hostname"] = one.hostname
        if one.mode:
            said["tls"] = {"mode": one.mode}
        if certificate is not None:
            source = certificate.provenance
            reference = {"name": source.name}
            if source.namespace != self.name.namespace:
                reference["namespace"] = source.namespace
            self.grant(SECRET.kind, source.namespace, source.name, "Gateway", self.name.namespace)
            said["tls"] = {**said.get("tls", {}), "certificateRefs": [reference]}
        return {**said, "allowedRoutes": _FROM_ALL}


def _name_of(one: ListenerName) -> str:
    parts = [one.protocol.lower()]
    if one.port not in _PORTS.values() or one.protocol not in ("HTTP", "HTTPS"):
        parts.append(str(one.port))
    if one.hostname:
        parts.append(one.hostname.replace("*.", "any."))
    return ".".join(parts)


def hostname_of(host: str) -> str:
    """Return a host pattern as a hostname of Gateway API, whose wildcards stand for one or more labels."""
    return "" if host == ANY_HOST else host.replace("**.", "*.")


def is_hostname(host: str) -> bool:
    """Whether a host pattern can be a hostname."""
    return not is_pattern(host)


def certificate_of(host: str, certificates: Iterable[Certificate]) -> Certificate | None:
    """Return the certificate that is presented for a host: one for its name goes before one for a wildcard."""
    above = host.partition(".")[2]
    names = (host, hostname_of(host), f"*.{above}") if above else (host,)
    for name in names:
        for one in certificates:
            if name in one.server_names and one.provenance.kind == SECRET.kind:
                return one
    return None


def places_by_listeners(places: Iterable[Place]) -> dict[tuple[str, ...], list[str]]:
    """Return hosts by the listeners at which they are asked for."""
    found: dict[tuple[str, ...], list[str]] = {}
    for place in places:
        found.setdefault(place.listeners, []).append(place.host)
    return found
