"""A port of a Service that is spoken to in another way than its own objects say."""

import hashlib
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from headgate.common.problems import Severity
from headgate.common.table import BackendProtocol
from headgate.common.table.upstream_key import UpstreamKey
from headgate.translator.fragments.upstream_refs import ServicePortRef, Stream
from headgate.translator.manifests.patches import NO_UPSTREAM_PATCH, UpstreamPatch
from headgate.translator.sources.policies import BACKEND_POLICIES, ServicePortTarget
from headgate.translator.sources.services import SERVICES
from headgate.translator.sources.sharing import find_service
from headgate.translator.upstreams.resolution import ResolvedUpstream, at_cluster_ip, resolve_upstream
from headgate.translator.world.graph import Lookups

_OF_STREAMS = (BackendProtocol.TCP, BackendProtocol.TLS, BackendProtocol.UDP)
"""Protocols that say nothing of requests."""
_AS, _WITH, _POLICY, _CLUSTER_IP = "as=", "with=", "policy", "cluster-ip"


@dataclass(frozen=True, slots=True)
class Override:
    """What the object that refers to a Service says of the upstream; goes before what the Service's annotations say."""

    digest: str
    """By which it is told from others."""
    patch: UpstreamPatch = field(compare=False)

    @classmethod
    def of(cls, patch: UpstreamPatch) -> "Override":
        """Return the override with a patch."""
        text = patch.model_dump_json(exclude_defaults=True).encode()
        return cls(hashlib.blake2b(text, digest_size=9).hexdigest(), patch)


class OverriddenService(NamedTuple):
    """A port of a Service with a policy, or with a protocol or other settings of the object that refers to it."""

    cluster: str
    namespace: str
    name: str
    port: int | str
    protocol: BackendProtocol | None = None
    has_policy: bool = False
    override: Override | None = None
    uses_cluster_ip: bool = False
    """Whether requests go to the Service's own address, if it has one, and not to its endpoints."""

    @property
    def kind(self) -> str:
        """Kind of the object that it is made of."""
        return "Service"

    @property
    def key(self) -> str:
        """Key of the upstream in the table."""
        protocol = (f"{_AS}{self.protocol}",) if self.protocol is not None else ()
        override = (f"{_WITH}{self.override.digest}",) if self.override is not None else ()
        flags = ((_POLICY, self.has_policy), (_CLUSTER_IP, self.uses_cluster_ip))
        variant = (*protocol, *override, *(name for name, is_set in flags if is_set))
        return str(UpstreamKey(self.cluster, self.namespace, self.name, port=self.port, variant=variant))

    @classmethod
    def of_key(cls, key: UpstreamKey) -> "OverriddenService | None":
        """Return the reference with this key, if it is of this kind."""
        protocols = [part.removeprefix(_AS) for part in key.variant if part.startswith(_AS)]
        digests = [part.removeprefix(_WITH) for part in key.variant if part.startswith(_WITH)]
        has_policy, uses_cluster_ip = _POLICY in key.variant, _CLUSTER_IP in key.variant
        known = len(protocols[:1]) + len(digests[:1]) + has_policy + uses_cluster_ip
        if key.port is None or not key.variant or len(key.variant) != known:
            return None
        protocol = BackendProtocol(protocols[0]) if protocols else None
        override = Override(digests[0], NO_UPSTREAM_PATCH) if digests else None
        return cls(key.cluster, key.namespace, key.name, key.port, protocol, has_policy, override, uses_cluster_ip)

    def resolve(self, lookups: Lookups) -> ResolvedUpstream:
        """Find the endpoints. What the Service's annotations say goes before a policy."""
        resolved = self._find(lookups)
        fields: dict[str, Any] = {"key": self.key}
        target = ServicePortTarget(self.namespace, self.name, self.port)
        policy = lookups.attached(BACKEND_POLICIES, target) if self.has_policy else None
        if policy:
            service = find_service(lookups, self.namespace, self.name)
            said = service.policy.upstream if service is not None and service.policy else NO_UPSTREAM_PATCH
            both = said.over(policy.upstream).said
            fields |= both if both.get("protocol") not in _OF_STREAMS else {**both, "protocol": resolved.entry.protocol}
        if self.override is not None:
            fields |= self.override.patch.said
        if self.protocol is not None:
            fields["protocol"] = self.protocol
        return resolved._replace(entry=resolved.entry.model_copy(update=fields))

    def resolve_endpoints(self, lookups: Lookups) -> ResolvedUpstream:
        """Find the endpoints alone."""
        return self._find(lookups, heeds_wishes=False)

    def _find(self, lookups: Lookups, *, heeds_wishes: bool = True) -> ResolvedUpstream:
        ref, is_udp = self._port, self.protocol is BackendProtocol.UDP
        if is_udp:
            # Datagrams reach the endpoints of a port that is declared for TCP all the same, as with Traefik.
            declared = find_service(lookups, self.namespace, self.name)
            if declared is not None and declared.is_for_tcp_alone(self.port):
                ref, is_udp = ref._replace(stream="tcp"), False
        resolved = resolve_upstream(lookups, ref, heeds_wishes=heeds_wishes)
        is_local = self.uses_cluster_ip and set(resolved.clusters) <= {self.cluster}
        service = lookups.get(SERVICES, self.namespace, self.name) if is_local else None
        port = service.find_port(self.port, is_udp=is_udp) if service is not None else None
        is_refused = resolved.fault is not None and resolved.fault.severity is Severity.ERROR
        if service is None or port is None or is_refused:
            return resolved
        return at_cluster_ip(service, port, resolved) or resolved

    @property
    def _port(self) -> ServicePortRef:
        return ServicePortRef(self.cluster, self.namespace, self.name, self.port, stream_of(self.protocol))


def stream_of(protocol: BackendProtocol | None) -> Stream:
    """Return what is spoken in streams, for which other ports count than for requests."""
    match protocol:
        case BackendProtocol.TCP:
            return "tcp"
        case BackendProtocol.TLS:
            return "tls"
        case BackendProtocol.UDP:
            return "udp"
        case _:
            return ""
