"""`headgate up --route app.localhost=127.0.0.1:3000`: an application served without a manifest.

A flag becomes the objects that a manifest would have, in a file of the data directory that the watcher follows like any
other, so that `explain`, `status` and `history` know the route as they know all others.
"""

import ipaddress
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from headgate.cli.terminal.errors import UsageMistake

_CLASS: Final = "headgate"
"""Ours where no IngressClass has the name, whatever else the folders beside it hold."""
ROUTES_FILE: Final = "routes.json"
_HOST: Final = re.compile(r"(\*\.)?[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_FORM: Final = "expected HOST[/PATH]=[https://]ADDRESS:PORT, such as app.localhost=127.0.0.1:3000"


@dataclass(frozen=True)
class RouteFlag:
    """Requests for a host, below a path, go to one application."""

    host: str
    """Empty for requests that no other route takes."""
    path: str
    address: str
    port: int
    is_tls: bool


def parse_route(text: str) -> RouteFlag:
    """Read `HOST[/PATH]=[https://]ADDRESS:PORT`.

    Raises:
        UsageMistake: it is not of this form.
    """
    source, equals, target = text.partition("=")
    host, slash, path = source.partition("/")
    scheme, address, port = _read_target(target)
    is_source = bool(equals) and (host in ("", "*") or bool(_HOST.fullmatch(host)))
    if not is_source or scheme not in ("http", "https") or not (address and port):
        raise UsageMistake(f"--route {text!r}: {_FORM}")
    return RouteFlag("" if host == "*" else host, f"{slash}{path}" or "/", address, port, scheme == "https")


def _read_target(target: str) -> tuple[str, str, int]:
    try:
        url = urlsplit(target if "://" in target else f"http://{target}")
        return url.scheme, _address(url.hostname or ""), url.port or 0 if not (url.path or url.query) else 0
    except ValueError:
        return "", "", 0


def _address(host: str) -> str:
    return "127.0.0.1" if host == "localhost" else host


def write_routes(folder: Path, routes: Iterable[RouteFlag]) -> Path:
    """Write the objects of the routes to a file of the data directory, and return its path."""
    items = [one for number, route in enumerate(routes, 1) for one in objects_of(route, f"headgate-route-{number}")]
    path = folder / ROUTES_FILE
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=1) + "\n")
    return path


def objects_of(route: RouteFlag, name: str) -> list[dict[str, Any]]:
    """Return the Ingress of a route, its Service, and where its endpoint is an address the EndpointSlice."""
    backend = {"service": {"name": name, "port": {"number": route.port}}}
    paths = [{"path": route.path, "pathType": "Prefix", "backend": backend}]
    rule = {"host": route.host} if route.host else {}
    ingress = _object("networking.k8s.io/v1", "Ingress", name)
    ingress["spec"] = {"ingressClassName": _CLASS, "rules": [{**rule, "http": {"paths": paths}}]}
    service = _object("v1", "Service", name)
    if route.is_tls:
        service["metadata"]["annotations"] = {"headgate.dev/backend-protocol": "https"}
    ports = [{"port": route.port, "protocol": "TCP"}]
    if not _is_ip(route.address):
        service["spec"] = {"type": "ExternalName", "externalName": route.address, "ports": ports}
        return [ingress, service]
    service["spec"] = {"ports": ports}
    slice_ = _object("discovery.k8s.io/v1", "EndpointSlice", name)
    slice_["metadata"]["labels"] = {"kubernetes.io/service-name": name}
    slice_ |= {"addressType": "IPv6" if ":" in route.address else "IPv4", "ports": ports}
    slice_["endpoints"] = [{"addresses": [route.address]}]
    return [ingress, service, slice_]


def _object(version: str, kind: str, name: str) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": "default"}}


def _is_ip(address: str) -> bool:
    try:
        ipaddress.ip_address(address)
    except ValueError:
        return False
    return True
