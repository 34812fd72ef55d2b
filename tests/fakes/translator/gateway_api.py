"""Short ways to write objects of Gateway API, and to read the status that they get."""

from datetime import UTC, datetime
from typing import Any

from fakes.gateway.tls import Authority
from fakes.translator.deltas import applied, deleted, ref_of
from headgate.common.resources import ALL_KINDS, JsonObject, StatusShape
from headgate.common.snapshot import Version
from headgate.translator.composition import DIALECTS
from headgate.translator.serving.fleet import Fleet, Replica
from headgate.translator.status.conditions import Facts
from headgate.translator.status.desired import report, to_update
from headgate.translator.translation import Translation
from headgate.translator.world.settings import DEFAULT_SETTINGS, TranslationSettings
from headgate.watcher.status.conditions import acceptance_status, export_status
from headgate.watcher.status.parts import gateway_ancestors_status, listeners_status, parents_status

GROUP = "gateway.networking.k8s.io"
CONTROLLER = "headgate.dev/gateway-controller"
NOW = datetime(2026, 3, 1, tzinfo=UTC)
_VERSION = Version(epoch=1, revision=1)
_FLEET = Fleet((Replica("replica", _VERSION),))
_WRITERS = {
    StatusShape.ACCEPTANCE: acceptance_status,
    StatusShape.LISTENERS: listeners_status,
    StatusShape.PARENTS: parents_status,
    StatusShape.GATEWAY_ANCESTORS: gateway_ancestors_status,
    StatusShape.EXPORT: export_status,
}


def resource(kind: str, name: str, spec: Any, version: str = "v1", **metadata: Any) -> Any:
    """Return an object in the namespace `default`, or another one of `metadata`."""
    placed = {} if kind == "GatewayClass" else {"namespace": "default"}
    return {
        "apiVersion": f"{GROUP}/{version}",
        "kind": kind,
        "metadata": {"name": name, "uid": f"uid-{name}", "generation": 1, **placed, **metadata},
        "spec": spec,
    }


def gateway_class(name: str = "edge", controller: str = CONTROLLER, **spec: Any) -> Any:
    """Return a GatewayClass, by default of ours."""
    return resource("GatewayClass", name, {"controllerName": controller, **spec})


def definition(version: str, name: str = "gatewayclasses.gateway.networking.k8s.io") -> Any:
    """Return a definition of upstream's, with the version of Gateway API that it is of."""
    annotations = {"gateway.networking.k8s.io/bundle-version": version}
    kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return {**kind, "metadata": {"name": name, "annotations": annotations}, "spec": {"group": GROUP}}


def listener(name: str = "http", port: int = 80, protocol: str = "HTTP", **fields: Any) -> Any:
    """Return a listener."""
    return {"name": name, "port": port, "protocol": protocol, **fields}


def https(name: str = "https", *secrets: Any, port: int = 443, **fields: Any) -> Any:
    """Return a listener for HTTPS; certificates by the names of their Secrets."""
    refs = [{"name": one} if isinstance(one, str) else one for one in secrets]
    return listener(name, port, "HTTPS", tls={"certificateRefs": refs}, **fields)


def gateway(*listeners: Any, name: str = "gw", spec: Any = None, **metadata: Any) -> Any:
    """Return a Gateway of the class `edge`, by default with one listener."""
    written = {"gatewayClassName": "edge", "listeners": list(listeners) or [listener()], **(spec or {})}
    return resource("Gateway", name, written, **metadata)


def listener_set(*listeners: Any, name: str = "more", parent: Any = None, **metadata: Any) -> Any:
    """Return a ListenerSet, by default of the Gateway `gw`."""
    spec = {"parentRef": parent or {"name": "gw"}, "listeners": list(listeners)}
    return resource("ListenerSet", name, spec, **metadata)


def of_set(name: str = "more", **fields: Any) -> Any:
    """Return a reference of a route to a ListenerSet."""
    return {"kind": "ListenerSet", "name": name, **fields}


def allowing(from_: str, **selector: Any) -> Any:
    """Return what a Gateway says of ListenerSets that it lets in."""
    return {"allowedListeners": {"namespaces": {"from": from_, **selector}}}


def to(*services: Any, **fields: Any) -> Any:
    """Return a rule to Services, each a name, a name with a weight, or a reference."""
    refs = [_reference(one) for one in services]
    return {**({"backendRefs": refs} if refs else {}), **fields}


def _reference(written: Any) -> Any:
    if isinstance(written, tuple):
        return {"name": written[0], "port": 80, "weight": written[1]}
    return {"name": written, "port": 80} if isinstance(written, str) else written


def prefix(path: str, **fields: Any) -> Any:
    """Return a match of a prefix."""
    return {"path": {"type": "PathPrefix", "value": path}, **fields}


def exact(path: str, **fields: Any) -> Any:
    """Return a match of a whole path."""
    return {"path": {"type": "Exact", "value": path}, **fields}


def route(*rules: Any, name: str = "route", parents: Any = None, hostnames: Any = (), **metadata: Any) -> Any:
    """Return an HTTPRoute, by default of the Gateway `gw`."""
    spec: JsonObject = {"parentRefs": parents or [{"name": "gw"}], "rules": list(rules)}
    if hostnames:
        spec["hostnames"] = list(hostnames)
    return resource("HTTPRoute", name, spec, **metadata)


def grpc_route(*rules: Any, name: str = "calls", parents: Any = None, hostnames: Any = (), **metadata: Any) -> Any:
    """Return a GRPCRoute, by default of the Gateway `gw`."""
    return {**route(*rules, name=name, parents=parents, hostnames=hostnames, **metadata), "kind": "GRPCRoute"}


def stream_route(kind: str, *services: Any, name: str = "stream", parents: Any = None, **spec: Any) -> Any:
    """Return a TLSRoute, TCPRoute or UDPRoute with one rule, by default of the Gateway `gw`."""
    return resource(kind, name, {"parentRefs": parents or [{"name": "gw"}], "rules": [to(*services)], **spec})


def call(service: str = "", method: str = "", **fields: Any) -> Any:
    """Return a match of a GRPCRoute."""
    named = {name: value for name, value in (("service", service), ("method", method)) if value}
    return {"method": named, **fields} if named else fields


def plugins(name: str, *uses: Any, **metadata: Any) -> Any:
    """Return a Plugin of ours, each plugin a name with its configuration."""
    written = [{"name": plugin, "config": config} if config else {"name": plugin} for plugin, config in uses]
    made = resource("Plugin", name, {"plugins": written}, **metadata)
    return {**made, "apiVersion": "headgate.dev/v1"}


def extension(name: str, kind: str = "Plugin", group: str = "headgate.dev") -> Any:
    """Return a filter that names an object with plugins."""
    return {"type": "ExtensionRef", "extensionRef": {"group": group, "kind": kind, "name": name}}


def tls_policy(
    name: str = "policy", service: str = "web", section: str = "", spec: Any = None, **validation: Any
) -> Any:
    """Return a BackendTLSPolicy for a Service, by default with the authorities of the system."""
    target = {"group": "", "kind": "Service", "name": service, **({"sectionName": section} if section else {})}
    known = {"hostname": "web.example", "wellKnownCACertificates": "System", **validation}
    checked = {key: value for key, value in known.items() if value is not None}
    return resource("BackendTLSPolicy", name, {"targetRefs": [target], "validation": checked, **(spec or {})})


def authorities(name: str, authority: Authority) -> Any:
    """Return a ConfigMap with an authority that policies may name."""
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"ca.crt": authority.pem.decode()}}


def traffic_policy(name: str = "traffic", *services: str, **spec: Any) -> Any:
    """Return an XBackendTrafficPolicy for Services, by default for `web`."""
    targets = [{"group": "", "kind": "Service", "name": one} for one in services or ("web",)]
    metadata = {"creationTimestamp": spec.pop("creationTimestamp")} if "creationTimestamp" in spec else {}
    made = resource("XBackendTrafficPolicy", name, {"targetRefs": targets, **spec}, **metadata)
    return {**made, "apiVersion": "gateway.networking.x-k8s.io/v1alpha1"}


def by_config_maps(*names: Any) -> Any:
    """Return the part of a validation that names ConfigMaps as authorities."""
    refs = [{"group": "", "kind": "ConfigMap", "name": name} if isinstance(name, str) else name for name in names]
    return {"wellKnownCACertificates": None, "caCertificateRefs": refs}


def grant(kind: str, source: str, target: str, *names: str, namespace: str) -> Any:
    """Return a ReferenceGrant of a namespace: objects of a kind and namespace may refer to a kind there."""
    group = "" if target in ("Secret", "Service") else GROUP
    to_them = [{"group": group, "kind": target, "name": one} for one in names] or [{"group": group, "kind": target}]
    spec = {"from": [{"group": GROUP, "kind": kind, "namespace": source}], "to": to_them}
    return resource("ReferenceGrant", f"from-{source}", spec, "v1beta1", namespace=namespace)


class Cluster:
    """Objects, and the status that each gets while gateways serve what becomes of them."""

    def __init__(self, *manifests: Any, settings: TranslationSettings = DEFAULT_SETTINGS) -> None:
        self.translation = Translation(DIALECTS, settings)
        self.translation.activate("a")
        self.apply(gateway_class(), *manifests)

    def apply(self, *manifests: Any, cluster: str = "a") -> None:
        """Make or change objects."""
        for manifest in manifests:
            self.translation.apply(applied(manifest, cluster))
        self.translation.activate(cluster)
        self._settle()

    def delete(self, *manifests: Any) -> None:
        """Delete objects."""
        for manifest in manifests:
            self.translation.apply(deleted(manifest))
        self._settle()

    def _settle(self) -> None:
        for _ in self.translation.settle():
            pass

    def status(self, manifest: Any) -> JsonObject | None:
        """Return what a watcher writes into the status of an object that has what it has; None for nothing."""
        ref = ref_of(manifest)
        condition, fragment = self.translation.condition(ref), self.translation.assembly.fragments.get(ref)
        if condition is None or fragment is None:
            return None
        known = (fragment.identity, condition, fragment.stand_in, "content", _VERSION, None)
        more = {"parts": fragment.parts, "listeners": fragment.listener_reports, "said": fragment.said}
        more |= {"attached_listener_sets": fragment.attached_listener_sets}
        facts = Facts(*known, **more, addresses=fragment.addresses, features=fragment.features)
        update = to_update(report(facts, None, _FLEET, None), None, NOW, None)
        kind = ALL_KINDS.find(ref.group, ref.resource)
        assert kind is not None
        return _WRITERS[kind.status](update, manifest)

    def conditions(self, manifest: Any) -> dict[str, str]:
        """Return the conditions of an object as a whole: `True Accepted` and the like."""
        return _short((self.status(manifest) or {}).get("conditions", ()))

    def listeners(self, manifest: Any) -> dict[str, dict[str, str]]:
        """Return the conditions of a Gateway's listeners."""
        status = self.status(manifest) or {}
        return {one["name"]: _short(one["conditions"]) for one in status.get("listeners", ())}

    def parents(self, manifest: Any) -> list[dict[str, str]]:
        """Return the conditions of a route's parents that are ours, in order."""
        status = self.status(manifest) or {}
        entries = status.get("parents", ())
        return [_short(one["conditions"]) for one in entries if one["controllerName"] == CONTROLLER]

    def ancestors(self, manifest: Any) -> dict[str, dict[str, str]]:
        """Return the conditions of a policy for each Gateway, by its name."""
        entries = (self.status(manifest) or {}).get("ancestors") or ()
        return {one["ancestorRef"]["name"]: _short(one["conditions"]) for one in entries}

    def addresses(self, manifest: Any) -> list[str]:
        """Return the addresses that a Gateway's status shows."""
        return [one["value"] for one in (self.status(manifest) or {}).get("addresses", ())]

    def keep(self, *manifests: Any) -> list[Any]:
        """Have the log show the addresses of Gateways, as it does once their statuses are written; return them so."""
        kept = [
            {**one, "status": {"addresses": [{"type": "IPAddress", "value": each} for each in self.addresses(one)]}}
            for one in manifests
        ]
        self.apply(*kept)
        return kept

    def attached(self, manifest: Any) -> dict[str, int]:
        """Return how many routes each listener of a Gateway has."""
        status = self.status(manifest) or {}
        return {one["name"]: one["attachedRoutes"] for one in status.get("listeners", ())}


def _short(conditions: Any) -> dict[str, str]:
    return {one["type"]: f"{one['status']} {one['reason']}" for one in conditions}
