"""Upstreams behind backends: ports of Services as ApisixUpstreams shape them, and ApisixUpstreams with own nodes."""

import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from headgate.common.problems import Severity
from headgate.common.table import BackendProtocol, BackendTls, Balancing, Endpoint, Provenance, Upstream
from headgate.common.table.upstream_key import UpstreamKey
from headgate.translator.dialects.apisix.models.upstream import ExternalNode, Subset, UpstreamSettings, UpstreamSpec
from headgate.translator.dialects.apisix.upstreams.pods import POD_LABELS
from headgate.translator.dialects.apisix.upstreams.upstream import (
    STREAM_SCHEMES,
    find_upstream,
    read_fields,
    settings_for,
)
from headgate.translator.fragments.upstream_refs import ServicePortRef
from headgate.translator.sources.certificates import SECRETS
from headgate.translator.sources.endpoints import Address
from headgate.translator.sources.services import EXTERNAL_NAME, SERVICES, Service, ServicePort
from headgate.translator.sources.sharing import sharers
from headgate.translator.upstreams.resolution import (
    BackendFault,
    ResolvedUpstream,
    at_cluster_ip,
    resolve_upstream,
    unavailable,
)
from headgate.translator.world.graph import Lookups

Stream = Literal["", "tcp", "udp"]
_STREAMS: tuple[Stream, ...] = ("tcp", "udp")
_DIALECT, _SUBSET = "apisix", "subset="
_OVER_TLS = (BackendProtocol.HTTPS, BackendProtocol.H2, BackendProtocol.TLS)
_OF_STREAMS = ("client", "mqtt-client-id")
"""All that can be hashed of a connection."""
_DNS_NODE = re.compile(r"([a-zA-Z0-9._-]+)(?::([0-9]{1,5}))?")


class ServiceBackend(NamedTuple):
    """A port of a Service, with the settings of the ApisixUpstream of its name."""

    cluster: str
    namespace: str
    name: str
    port: int | str
    granularity: str = "endpoint"
    subset: str = ""
    stream: Stream = ""

    @property
    def kind(self) -> str:
        """Kind of the object that it is made of."""
        return "Service"

    @property
    def key(self) -> str:
        """Key of the upstream in the table."""
        granularity = "service" if self.granularity == "service" else ""
        subset = f"{_SUBSET}{self.subset}" if self.subset else ""
        variant = tuple(filter(None, (_DIALECT, self.stream, granularity, subset)))
        return str(UpstreamKey(self.cluster, self.namespace, self.name, port=self.port, variant=variant))

    @classmethod
    def of_key(cls, key: UpstreamKey) -> "ServiceBackend | None":
        """Return the reference with this key, if it is of this kind."""
        if key.port is None or key.variant[:1] != (_DIALECT,):
            return None
        stream: Stream = next((each for each in _STREAMS if each in key.variant), "")
        granularity = "service" if "service" in key.variant else "endpoint"
        subset = next((each.removeprefix(_SUBSET) for each in key.variant if each.startswith(_SUBSET)), "")
        return cls(key.cluster, key.namespace, key.name, key.port, granularity, subset, stream)

    def is_there(self, lookups: Lookups) -> bool:
        """Whether there is such a Service, here or in a cluster that shares its own, and it has the port."""
        clusters = sharers(lookups, self.namespace, self.name)
        service = lookups.elsewhere(clusters[0]).get(SERVICES, self.namespace, self.name) if clusters else None
        return service is not None and service.find_port(self.port, is_udp=self.stream == "udp") is not None

    def resolve(self, lookups: Lookups) -> ResolvedUpstream:
        """Find the endpoints, and put the settings to them."""
        spec = find_upstream(lookups, self.namespace, self.name)
        subset = _find_subset(spec, self.subset)
        if self.subset and subset is None:
            message = f"ApisixUpstream {self.namespace}/{self.name} has no subset {self.subset!r}"
            return unavailable(self, BackendFault("SubsetNotFound", message))
        resolved, port = self._resolve_service(lookups, subset)
        settings = settings_for(spec, port.port if port else None) if spec else None
        return self._shaped(lookups, resolved, settings)

    def resolve_endpoints(self, lookups: Lookups) -> ResolvedUpstream | None:
        """Find the endpoints alone; a subset that is no more says nothing of them."""
        subset = _find_subset(find_upstream(lookups, self.namespace, self.name), self.subset)
        if self.subset and subset is None:
            return None
        return self._resolve_service(lookups, subset, heeds_wishes=False)[0]

    def _resolve_service(
        self, lookups: Lookups, subset: Subset | None, *, heeds_wishes: bool = True
    ) -> tuple[ResolvedUpstream, ServicePort | None]:
        wanted = {*subset.labels.items()} if subset is not None else set()

        def selects(where: Lookups, address: Address) -> bool:
            labels = where.get(POD_LABELS, self.namespace, address.pod) if address.pod else None
            return labels is not None and wanted <= {*labels}

        ref = ServicePortRef(self.cluster, self.namespace, self.name, self.port, self.stream)
        chosen = selects if subset else None
        resolved = resolve_upstream(lookups, ref, heeds_wishes=heeds_wishes, selects=chosen)
        service = lookups.get(SERVICES, self.namespace, self.name)
        port = service.find_port(self.port, is_udp=self.stream == "udp") if service is not None else None
        if service is not None and port is not None and self.granularity == "service":
            resolved = self._as_one(service, port, resolved)
        return resolved, port

    def _as_one(self, service: Service, port: ServicePort, resolved: ResolvedUpstream) -> ResolvedUpstream:
        if service.type == EXTERNAL_NAME:
            return resolved
        if (found := at_cluster_ip(service, port, resolved)) is not None:
            return found
        message = f"Service {self.namespace}/{self.name} has no cluster IP; resolveGranularity must be endpoint"
        return unavailable(self, BackendFault("NoClusterIP", message))

    def _shaped(
        self, lookups: Lookups, resolved: ResolvedUpstream, settings: UpstreamSettings | None
    ) -> ResolvedUpstream:
        fields: dict[str, Any] = {}
        if settings is not None:
            fields |= read_fields(settings, "spec", [])
        if self.stream and any(key.source not in _OF_STREAMS for key in fields.get("balancing", Balancing()).hash):
            del fields["balancing"]
        if self.stream and fields.get("protocol") != BackendProtocol.TLS:
            fields["protocol"] = BackendProtocol(self.stream)
        elif not self.stream and settings is not None and settings.scheme in STREAM_SCHEMES:
            message = f"ApisixUpstream {self.namespace}/{self.name} has scheme {settings.scheme}, which is not for HTTP"
            return unavailable(self, BackendFault("UnsupportedScheme", message))
        return _finished(self, lookups, resolved, settings, fields, self.namespace)


class NodesBackend(NamedTuple):
    """An ApisixUpstream with external nodes, or with nodes that a registry knows."""

    cluster: str
    namespace: str
    name: str

    @property
    def kind(self) -> str:
        """Kind of the object that it is made of."""
        return "ApisixUpstream"

    @property
    def port(self) -> None:
        """It is no port of a Service."""
        return None

    @property
    def key(self) -> str:
        """Key of the upstream in the table."""
        return str(UpstreamKey(self.cluster, self.namespace, self.name, self.kind))

    @classmethod
    def of_key(cls, key: UpstreamKey) -> "NodesBackend | None":
        """Return the reference with this key, if it is of this kind."""
        if key.kind != "ApisixUpstream" or key.variant:
            return None
        return cls(key.cluster, key.namespace, key.name)

    def is_there(self, lookups: Lookups) -> bool:
        """Whether there is such an ApisixUpstream, and it is ours."""
        return find_upstream(lookups, self.namespace, self.name) is not None

    def resolve(self, lookups: Lookups) -> ResolvedUpstream:
        """Find the nodes."""
        spec = find_upstream(lookups, self.namespace, self.name)
        if spec is None:
            message = f"ApisixUpstream {self.namespace}/{self.name} not found, or it is another controller's"
            return unavailable(self, BackendFault("UpstreamNotFound", message))
        if spec.discovery is not None:
            resolved = self._discover(lookups, spec)
        elif spec.external_nodes:
            resolved = self._external(lookups, spec)
        else:
            message = f"ApisixUpstream {self.namespace}/{self.name} has neither externalNodes nor discovery"
            return unavailable(self, BackendFault("NoNodes", f"{message}; name a Service under backends instead"))
        return _finished(self, lookups, resolved, spec, read_fields(spec, "spec", []), self.namespace)

    def resolve_endpoints(self, lookups: Lookups) -> ResolvedUpstream | None:
        """Find the nodes alone; an ApisixUpstream that is no more says nothing of them."""
        return self.resolve(lookups) if self.is_there(lookups) else None

    def _external(self, lookups: Lookups, spec: UpstreamSpec) -> ResolvedUpstream:
        faults: list[str] = []
        endpoints = tuple(self._endpoints(lookups, spec, faults))
        entry = Upstream(key=self.key, endpoints=endpoints, provenance=_provenance(self))
        if not faults:
            return ResolvedUpstream(entry, None)
        severity = Severity.WARNING if endpoints else Severity.ERROR
        fault = BackendFault("InvalidNode", "; ".join(faults), severity)
        return ResolvedUpstream(entry if endpoints else unavailable(self, fault).entry, fault)

    def _endpoints(self, lookups: Lookups, spec: UpstreamSpec, faults: list[str]) -> Iterator[Endpoint]:
        default_port = _default_port(spec)
        for node in spec.external_nodes:
            address = node.name if node.type == "Domain" else self._external_name(lookups, node, faults)
            if address:
                weight = 100 if node.weight is None else node.weight
                yield Endpoint(
                    address=address.lower(), port=node.port or default_port, weight=weight, cluster=self.cluster
                )

    def _external_name(self, lookups: Lookups, node: ExternalNode, faults: list[str]) -> str:
        service = lookups.get(SERVICES, self.namespace, node.name)
        if service is None or service.type != EXTERNAL_NAME or not service.external_name:
            what = "not found" if service is None else "is not of type ExternalName; name it under backends"
            faults.append(f"Service {self.namespace}/{node.name} {what}")
            return ""
        return service.external_name

    def _discover(self, lookups: Lookups, spec: UpstreamSpec) -> ResolvedUpstream:
        assert spec.discovery is not None
        found = read_discovery(spec, self.cluster)
        if isinstance(found, ServicePortRef):
            return resolve_upstream(lookups.elsewhere(found.cluster), found)
        if isinstance(found, Endpoint):
            return ResolvedUpstream(Upstream(key=self.key, endpoints=(found,), provenance=_provenance(self)), None)
        return unavailable(self, BackendFault("UnsupportedDiscovery", found))


def read_discovery(spec: UpstreamSpec, cluster: str) -> ServicePortRef | Endpoint | str:
    """Return the Service, or the host name, that a registry's service name stands for; else why there is none."""
    assert spec.discovery is not None
    name = spec.discovery.service_name
    if spec.discovery.type == "dns":
        match = _DNS_NODE.fullmatch(name)
        number = int(match[2] or _default_port(spec)) if match is not None else 0
        if match is not None and 0 < number < 65536:
            return Endpoint(address=match[1].lower(), port=number, cluster=cluster)
        return "the service name of type dns must be a host name, perhaps with a port, such as shop.example.com:80"
    if spec.discovery.type != "kubernetes":
        return f"discovery of type {spec.discovery.type} cannot be had; there are kubernetes and dns"
    place, _, port = name.rpartition(":")
    parts = place.split("/")
    if not port or len(parts) not in (2, 3) or not all(parts):
        return "the service name of type kubernetes must be namespace/name:port, or cluster/namespace/name:port"
    where = parts[0] if len(parts) == 3 else cluster
    return ServicePortRef(where, parts[-2], parts[-1], int(port) if port.isdecimal() else port)


def _default_port(spec: UpstreamSpec) -> int:
    return 443 if spec.scheme in ("https", "grpcs", "tls") else 80


def _finished(
    ref: "ServiceBackend | NodesBackend",
    lookups: Lookups,
    resolved: ResolvedUpstream,
    settings: UpstreamSettings | None,
    fields: dict[str, Any],
    namespace: str,
) -> ResolvedUpstream:
    entry = resolved.entry.model_copy(update={"key": ref.key, "provenance": _provenance(ref)} | fields)
    if settings is None or settings.tls_secret is None or entry.protocol not in _OVER_TLS:
        return ResolvedUpstream(entry, resolved.fault)
    name = settings.tls_secret.name
    namespace = settings.tls_secret.namespace or namespace
    secret = lookups.get(SECRETS, namespace, name)
    if secret is None or secret.sealed is None or secret.sealed.certificate is None:
        why = "not found" if secret is None else secret.problem
        message = f"Secret {namespace}/{name} of the tlsSecret of ApisixUpstream {ref.namespace}/{ref.name}: {why}"
        return unavailable(ref, BackendFault("InvalidTlsSecret", message))
    tls = (entry.tls or BackendTls()).model_copy(
        update={
            "certificate_pem": secret.sealed.certificate.chain_pem,
            "private_key": secret.sealed.values[secret.key_field].of(lookups.cluster),
        }
    )
    return ResolvedUpstream(entry.model_copy(update={"tls": tls}), resolved.fault)


def _find_subset(spec: UpstreamSpec | None, name: str) -> Subset | None:
    return next((subset for subset in spec.subsets if subset.name == name), None) if spec and name else None


def _provenance(ref: "ServiceBackend | NodesBackend") -> Provenance:
    return Provenance(cluster=ref.cluster, kind=ref.kind, namespace=ref.namespace, name=ref.name)
