"""Services in stored form, and which of their ports a reference means."""

from typing import Any, NamedTuple

from headgate.common.resources import SERVICE, JsonObject
from headgate.translator.manifest import as_list, as_object, as_text
from headgate.translator.world import StoredKind

EXTERNAL_NAME = "ExternalName"


class ServicePort(NamedTuple):
    """One TCP port of a Service."""

    name: str
    """Empty for the only, unnamed port."""
    port: int
    target: int | str
    """Number, or name of a container port."""


class Service(NamedTuple):
    """What translation needs of a Service."""

    type: str
    ports: tuple[ServicePort, ...]
    other_ports: tuple[Any, ...]
    """Numbers and names of ports that are not TCP."""
    external_name: str
    is_headless: bool
    families: tuple[str, ...]
    """`IPv4`, `IPv6`: the first is the Service's own; empty where the API server did not say."""

    def find_port(self, port: int | str) -> ServicePort | None:
        """Return the port with a number or a name.

        Services without any ports, as ExternalName and headless ones may be, have whatever port is asked for by number.
        """
        for candidate in self.ports:
            if port in (candidate.port, candidate.name):
                return candidate
        if isinstance(port, int) and self._takes_any_port():
            return ServicePort("", port, port)
        return None

    def _takes_any_port(self) -> bool:
        if self.type == EXTERNAL_NAME:
            return True
        return self.is_headless and not self.ports and not self.other_ports

    @property
    def port_names(self) -> str:
        """The ports as a message lists them: `80 (http), 443`."""
        texts = (f"{port.port} ({port.name})" if port.name else str(port.port) for port in self.ports)
        return ", ".join(texts) or "none"


def read_service(manifest: JsonObject) -> Service:
    """Strip a Service; malformed ports are left out."""
    spec = as_object(manifest.get("spec"))
    ports = [as_object(port) for port in as_list(spec.get("ports"))]
    tcp = [port for port in ports if port.get("protocol") in (None, "TCP") and is_port(port.get("port"))]
    return Service(
        type=as_text(spec.get("type")) or "ClusterIP",
        ports=tuple(_read_port(port) for port in tcp),
        other_ports=tuple(found for port in ports if port not in tcp for found in (port.get("port"), port.get("name"))),
        external_name=as_text(spec.get("externalName")),
        is_headless=spec.get("clusterIP") == "None",
        families=tuple(family for family in as_list(spec.get("ipFamilies")) if isinstance(family, str)),
    )


def _read_port(port: JsonObject) -> ServicePort:
    target = port.get("targetPort")
    number: int = port["port"]
    named = as_text(target) or number
    return ServicePort(as_text(port.get("name")), number, target if target and is_port(target) else named)


def is_port(value: Any) -> bool:
    """Whether a value is a port number."""
    return type(value) is int and 0 < value < 65536


SERVICES = StoredKind(SERVICE, read_service)
