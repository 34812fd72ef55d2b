"""Services in stored form, and which of their ports a reference means."""

import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from headgate.common.problems import Problem
from headgate.common.resources import SERVICE, JsonObject
from headgate.translator.annotations.service import ServicePolicy, read_service_policy
from headgate.translator.annotations.traefik import traefik_annotations
from headgate.translator.manifests.reading import as_list, as_object, as_text, metadata
from headgate.translator.manifests.specs import refuse, wrong_type
from headgate.translator.world.world import StoredKind

EXTERNAL_NAME = "ExternalName"
_PROTOCOLS = ("TCP", "UDP", "SCTP")


class ServicePort(NamedTuple):
    """One TCP or UDP port of a Service."""

    name: str
    """Empty for the only, unnamed port."""
    port: int
    target: int | str
    """Number, or name of a container port."""
    protocol: str = "TCP"
    app_protocol: str = ""


class Service(NamedTuple):
    """What translation needs of a Service."""

    type: str
    ports: tuple[ServicePort, ...]
    """Of TCP."""
    udp_ports: tuple[ServicePort, ...]
    other_ports: tuple[Any, ...]
    """Numbers and names of ports that are not TCP."""
    external_name: str
    is_headless: bool
    families: tuple[str, ...]
    """`IPv4`, `IPv6`: the first is the Service's own; empty where the API server did not say."""
    cluster_ip: str = ""
    """Empty for a headless Service."""
    policy: ServicePolicy | None = None
    """Its annotations, where it has any of ours."""
    addresses: tuple[str, ...] = ()
    """Of its load balancer: addresses and host names."""
    of_traefik: tuple[tuple[str, Any], ...] = ()
    """Its annotations of Traefik, by their full names."""

    def find_port(self, port: int | str, is_udp: bool = False) -> ServicePort | None:
        """Return the port with a number or a name.

        Services without any ports, as ExternalName and headless ones may be, have whatever port is asked for by number.
        """
        for candidate in self.udp_ports if is_udp else self.ports:
            if port in (candidate.port, candidate.name):
                return candidate
        if isinstance(port, int) and self._takes_any_port():
            return ServicePort("", port, port, "UDP" if is_udp else "TCP")
        return None

    def is_for_tcp_alone(self, port: int | str) -> bool:
        """Whether there is a port with a number or a name, and none of them for UDP."""
        return self.find_port(port, is_udp=True) is None and self.find_port(port) is not None

    def _takes_any_port(self) -> bool:
        if self.type == EXTERNAL_NAME:
            return True
        return self.is_headless and not self.ports and not self.other_ports


def port_names(ports: Iterable[ServicePort]) -> str:
    """Return ports as a message lists them: `80 (http), 443`."""
    texts = (f"{port.port} ({port.name})" if port.name else str(port.port) for port in ports)
    return ", ".join(texts) or "none"


def read_service(manifest: JsonObject) -> Service:
    """Strip a Service; malformed ports are left out."""
    spec = as_object(manifest.get("spec"))
    tcp: list[ServicePort] = []
    udp: list[ServicePort] = []
    others: list[Any] = []
    for port in map(as_object, as_list(spec.get("ports"))):
        protocol, number = port.get("protocol"), port.get("port")
        if protocol in (None, "TCP") and is_port(number):
            tcp.append(_read_port(port))
            continue
        if protocol == "UDP" and is_port(number):
            udp.append(_read_port(port))
        others += (number, port.get("name"))
    is_annotated = bool(metadata(manifest).get("annotations"))
    return Service(
        type=sys.intern(as_text(spec.get("type"))) or "ClusterIP",
        ports=_the_same(tuple(tcp)),
        udp_ports=_the_same(tuple(udp)),
        other_ports=tuple(others),
        external_name=as_text(spec.get("externalName")),
        is_headless=spec.get("clusterIP") == "None",
        families=tuple(family for family in as_list(spec.get("ipFamilies")) if isinstance(family, str)),
        cluster_ip="" if spec.get("clusterIP") == "None" else as_text(spec.get("clusterIP")),
        policy=read_service_policy(manifest) if is_annotated else None,
        addresses=tuple(_balancer_addresses(manifest)) if manifest.get("status") else (),
        of_traefik=tuple(traefik_annotations(manifest).items()) if is_annotated else (),
    )


@lru_cache(maxsize=1024)
def _the_same(ports: tuple[ServicePort, ...]) -> tuple[ServicePort, ...]:
    """Return the one value for equal ones: most Services have the ports of many others."""
    return ports


def _balancer_addresses(manifest: JsonObject) -> Iterator[str]:
    balancer = as_object(as_object(manifest.get("status")).get("loadBalancer"))
    for point in map(as_object, as_list(balancer.get("ingress"))):
        yield from filter(None, (as_text(point.get("ip")), as_text(point.get("hostname"))))


def _read_port(port: JsonObject) -> ServicePort:
    target = port.get("targetPort")
    number: int = port["port"]
    named = as_text(target) or number
    meant = target if target and is_port(target) else named
    protocol = as_text(port.get("protocol")) or "TCP"
    return ServicePort(as_text(port.get("name")), number, meant, protocol, as_text(port.get("appProtocol")))


def restore_service(service: Service) -> JsonObject:
    """Return a manifest of a Service without errors."""
    spec: JsonObject = {
        "type": service.type,
        "ports": [*map(_restore_port, service.ports), *_restore_other_ports(service)],
        "externalName": service.external_name,
        "clusterIP": "None" if service.is_headless else service.cluster_ip,
        "ipFamilies": list(service.families),
    }
    restored: JsonObject = {"spec": spec}
    if service.addresses:
        points = [{"hostname": address} for address in service.addresses]
        restored["status"] = {"loadBalancer": {"ingress": points}}
    if (policy := service.policy) is not None:
        annotated = {"uid": policy.uid, "creationTimestamp": policy.created_at, "annotations": policy.written}
        restored["metadata"] = annotated
    if service.of_traefik:
        kept = restored.setdefault("metadata", {})
        kept["annotations"] = {**kept.get("annotations", {}), **dict(service.of_traefik)}
    return restored


def _restore_port(port: ServicePort) -> JsonObject:
    restored = {"name": port.name, "port": port.port, "targetPort": port.target, "protocol": port.protocol}
    return {**restored, "appProtocol": port.app_protocol} if port.app_protocol else restored


def _restore_other_ports(service: Service) -> Iterator[JsonObject]:
    udp = iter(service.udp_ports)
    following = next(udp, None)
    for number, name in zip(service.other_ports[::2], service.other_ports[1::2], strict=True):
        if following is not None and (following.port, following.name) == (number, as_text(name)):
            yield {**_restore_port(following), "name": name}
            following = next(udp, None)
        else:
            yield {"name": name, "port": number, "protocol": "SCTP"}


def check_service(manifest: JsonObject, service: Service) -> list[Problem]:
    """Return what is wrong with a Service: what an API server refuses of the fields that are read, and annotations."""
    spec = manifest.get("spec")
    if spec is None:
        found = [refuse("Required", "spec", "a Service needs a spec")]
    elif not isinstance(spec, dict):
        found = [wrong_type("spec", spec, "an object")]
    else:
        found = [*_check_ports(spec.get("ports"))]
        if service.type == EXTERNAL_NAME and not service.external_name:
            remedy = "a Service of type ExternalName needs the name of a host"
            found.append(refuse("Required", "spec.externalName", remedy, spec.get("externalName")))
    return [*found, *(service.policy.problems if service.policy else ())]


def _check_ports(ports: Any) -> Iterator[Problem]:
    if ports is not None and not isinstance(ports, list):
        yield wrong_type("spec.ports", ports, "a list")
        return
    for position, port in enumerate(ports or ()):
        field = f"spec.ports[{position}]"
        if isinstance(port, dict):
            yield from _check_port(port, field)
        elif port is not None:
            yield wrong_type(field, port, "an object")


def _check_port(port: JsonObject, field: str) -> Iterator[Problem]:
    number, protocol = port.get("port"), port.get("protocol")
    if not is_port(number):
        yield refuse("InvalidPort", f"{field}.port", "must be a number from 1 to 65535", number)
    if protocol is not None and protocol not in _PROTOCOLS:
        yield refuse("InvalidPort", f"{field}.protocol", f"must be one of {', '.join(_PROTOCOLS)}", protocol)


def is_port(value: Any) -> bool:
    """Whether a value is a port number."""
    return type(value) is int and 0 < value < 65536


def is_global(service: Service) -> bool:
    """Whether an annotation exports it to all clusters."""
    return service.policy is not None and service.policy.is_global


SERVICES = StoredKind(SERVICE, read_service, check=check_service, restore=restore_service, is_shared=is_global)
