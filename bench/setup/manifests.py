"""Kubernetes manifests that Headgate is measured on, written as text: tens of thousands of documents in a second."""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import MappingProxyType

from bench.setup.workload import DOMAIN, TLS_SERVER_NAME, Workload

_CLASS = """\
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: headgate}
spec: {controller: headgate.dev/ingress-controller}
"""
_INGRESS = """\
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {{name: {name}, namespace: bench, annotations: {annotations}}}
spec:
  ingressClassName: headgate{tls}
  rules:
  - host: {host}
    http:
      paths:
{paths}"""
_PATH = """\
      - path: {path}
        pathType: Prefix
        backend: {{service: {{name: {service}, port: {{number: 80}}}}}}
"""
_TLS = """
  tls:
  - hosts: [{host}]
    secretName: bench"""
_SERVICE = """\
apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: bench{annotations}}}
spec:
  selector: {{app: {name}}}
  ports:
  - {{name: http, port: 80, targetPort: http}}
"""
_SLICE = """\
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: {name}-1
  namespace: bench
  labels: {{kubernetes.io/service-name: {name}}}
addressType: IPv4
ports:
- {{name: http, port: {port}, protocol: TCP}}
endpoints:
{endpoints}"""
_ENDPOINT = """\
- addresses: [{address}]
  conditions: {{ready: true, serving: true, terminating: false}}
"""
_SECRET = """\
apiVersion: v1
kind: Secret
metadata: {{name: bench, namespace: bench}}
type: kubernetes.io/tls
stringData:
  tls.crt: |
{certificate}
  tls.key: |
{key}
"""
SEPARATOR = "---\n"
LOOPBACK = ("127.0.0.1",)


def ingress(
    name: str,
    host: str,
    service: str,
    *,
    has_tls: bool = False,
    paths: Sequence[str] = ("/",),
    annotations: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """An Ingress of one host that leads to one Service."""
    listed = "".join(_PATH.format(path=path, service=service) for path in paths)
    tls = _TLS.format(host=host) if has_tls else ""
    return _INGRESS.format(name=name, host=host, paths=listed, tls=tls, annotations=json.dumps(dict(annotations)))


def service(name: str, protocol: str = "") -> str:
    """A Service with the port 80, named `http`; `protocol` is what the endpoints speak instead of HTTP/1.1."""
    annotations = f', annotations: {{headgate.dev/backend-protocol: "{protocol}"}}' if protocol else ""
    return _SERVICE.format(name=name, annotations=annotations)


def endpoint_slice(name: str, port: int, addresses: Sequence[str] = LOOPBACK) -> str:
    """The one EndpointSlice of a Service, with ready endpoints."""
    endpoints = "".join(_ENDPOINT.format(address=address) for address in addresses)
    return _SLICE.format(name=name, port=port, endpoints=endpoints)


@dataclass(frozen=True)
class Dialect:
    """What the hosts of sites are written in."""

    title: str
    """Name of its objects, in the plural."""
    write: Callable[[int, str, str, str], str]
    """Writes the object of a site's number, with this name, host and Service."""


NGINX_ANNOTATIONS = {
    f"nginx.ingress.kubernetes.io/{name}": value
    for name, value in (
        ("enable-cors", "true"),
        ("limit-rps", "100000"),
        ("proxy-body-size", "8m"),
        ("proxy-read-timeout", "120"),
        ("proxy-send-timeout", "120"),
        ("ssl-redirect", "false"),
    )
}
"""Six of those that manifests for ingress-nginx have most often."""
INGRESS = Dialect("Ingresses", lambda _, name, host, service: ingress(name, host, service))

ANNOTATED = Dialect(
    "annotated",
    lambda _, name, host, service: ingress(name, host, service, annotations=NGINX_ANNOTATIONS),
)
"""Ingresses with these annotations each."""


def loopback_address(number: int) -> str:
    """One of 16 million addresses of the loopback interface, from 127.1.0.0 on."""
    return f"127.{1 + (number >> 16)}.{number >> 8 & 255}.{number & 255}"


def site_addresses(index: int, endpoints: int) -> tuple[str, ...]:
    """Addresses of a site's endpoints: each address belongs to one site, unless a site has one endpoint only."""
    if endpoints == 1:
        return LOOPBACK
    return tuple(loopback_address(index * endpoints + number) for number in range(endpoints))


def site_name(index: int) -> str:
    """Name of a site's three objects."""
    return f"site-{index:05d}"


def site_host(index: int) -> str:
    """Host of a site."""
    return f"{site_name(index)}.{DOMAIN}"


def site(index: int, port: int, endpoints: int = 1, dialect: Dialect = INGRESS) -> tuple[str, str, str]:
    """A host of its own with a Service and an EndpointSlice of its own."""
    name = site_name(index)
    addresses = site_addresses(index, endpoints)
    return service(name), endpoint_slice(name, port, addresses), dialect.write(index, name, site_host(index), name)


def write_class(folder: Path) -> None:
    """Write the IngressClass."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "class.yaml").write_text(_CLASS)


def write_sites(
    folder: Path,
    count: int,
    ports: Sequence[int],
    documents_per_file: int,
    *,
    endpoints: int = 1,
    dialect: Dialect = INGRESS,
) -> None:
    """Write so many sites with so many endpoints each, the ports given to them in turn."""
    sites = (site(index, ports[index % len(ports)], endpoints, dialect) for index in range(count))
    documents = chain.from_iterable(sites)
    folder.mkdir(parents=True, exist_ok=True)
    for number, group in enumerate(_grouped(documents, documents_per_file)):
        (folder / f"sites-{number:05d}.yaml").write_text(SEPARATOR.join(group))


def _grouped(documents: Iterator[str], size: int) -> Iterator[list[str]]:
    group: list[str] = []
    for document in documents:
        group.append(document)
        if len(group) == size:
            yield group
            group = []
    if group:
        yield group


def write_workload(folder: Path, workload: Workload) -> None:
    """Write what the proxies of a comparison serve, all hosts over TLS too."""
    write_class(folder)
    for index, port in enumerate(workload.origin_ports):
        name = f"service-{index}"
        (folder / f"{name}.yaml").write_text(SEPARATOR.join((service(name), endpoint_slice(name, port))))
    hosts = (*workload.hosts, TLS_SERVER_NAME)
    routes = (
        ingress(f"route-{index:04d}", host, f"service-{workload.service_of(index)}", has_tls=True)
        for index, host in enumerate(hosts)
    )
    (folder / "routes.yaml").write_text(SEPARATOR.join(routes))
    for extra in workload.extras:
        protocol = "h2c" if extra.speaks_http2 else ""
        documents = (service(extra.name, protocol), endpoint_slice(extra.name, extra.port))
        annotations = {"headgate.dev/plugins": extra.plugins} if extra.plugins else {}
        route = ingress(extra.name, extra.host, extra.name, annotations=annotations)
        (folder / f"extra-{extra.name}.yaml").write_text(SEPARATOR.join((*documents, route)))
    secret = _SECRET.format(certificate=_indented(workload.certificate), key=_indented(workload.key))
    (folder / "secret.yaml").write_text(secret)


def _indented(pem: Path) -> str:
    return "\n".join("    " + line for line in pem.read_text().splitlines())


def replace_file(path: Path, content: str) -> None:
    """Put new content in place in one step, as editors and Kubernetes' own volumes do."""
    draft = path.with_name(f".{path.name}.new")
    draft.write_text(content)
    os.replace(draft, path)
