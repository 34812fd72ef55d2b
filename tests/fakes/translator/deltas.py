"""Deltas made from manifests, and short ways to write the usual manifests."""

import itertools
from datetime import UTC, datetime
from typing import Any

from headgate.common.clusters import ClusterSettings, Decision
from headgate.common.deltas import Delta, Operation
from headgate.common.resources import ALL_KINDS, JsonObject, ObjectRef

EPOCH = datetime(2024, 1, 1, tzinfo=UTC)
_sequences = itertools.count(1)


def ref_of(manifest: JsonObject, cluster: str = "a") -> ObjectRef:
    """Return the reference of a manifest's object."""
    group = manifest["apiVersion"].rpartition("/")[0]
    kind = ALL_KINDS.named(group, manifest["kind"])
    assert kind is not None, manifest["kind"]
    namespace = manifest["metadata"].get("namespace", "default") if kind.namespaced else ""
    return ObjectRef(cluster, group, kind.resource, namespace, manifest["metadata"]["name"])


def applied(manifest: JsonObject, cluster: str = "a", traceparent: str | None = None) -> Delta:
    """Return the delta that says that an object is as its manifest says."""
    return _delta(manifest, cluster, Operation.APPLY, manifest, traceparent)


def deleted(manifest: JsonObject, cluster: str = "a") -> Delta:
    """Return the delta that says that an object is gone."""
    return _delta(manifest, cluster, Operation.DELETE, None, None)


def _delta(
    manifest: JsonObject, cluster: str, operation: Operation, content: JsonObject | None, traceparent: str | None
) -> Delta:
    sequence = next(_sequences)
    return Delta(
        ref=ref_of(manifest, cluster),
        operation=operation,
        uid=manifest["metadata"].get("uid", "uid"),
        resource_version=str(sequence),
        observed_at=EPOCH,
        object=content,
        sequence=sequence,
        traceparent=traceparent,
    )


def ingress(name: str, *, host: str = "", path: str = "/", service: str = "web", port: Any = 80, **extra: Any) -> Any:
    """Return an Ingress with one rule.

    Args:
        name: its name.
        host: of the rule; empty for all.
        path: of type Prefix.
        service: backend.
        port: number or name.
        extra: `namespace`, `created`, `class_name`, `annotations`, `spec` (replaces all of it), `uid`.
    """
    reference = {"name": port} if isinstance(port, str) else {"number": port}
    backend = {"service": {"name": service, "port": reference}}
    rule = {"http": {"paths": [{"path": path, "pathType": "Prefix", "backend": backend}]}}
    spec = extra.get("spec", {"rules": [{"host": host, **rule} if host else rule]})
    if "class_name" in extra:
        spec = {**spec, "ingressClassName": extra["class_name"]}
    metadata = {"name": name, "namespace": extra.get("namespace", "default"), "uid": extra.get("uid", f"uid-{name}")}
    if "created" in extra:
        metadata["creationTimestamp"] = extra["created"]
    if "annotations" in extra:
        metadata["annotations"] = extra["annotations"]
    return {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": metadata, "spec": spec}


def decision(cluster: str, **settings: Any) -> JsonObject:
    """Return what the log has of a decision about a cluster; takes the fields of `ClusterSettings`."""
    found = Decision.make(ClusterSettings(**settings), "ada", EPOCH).as_delta(cluster).object
    assert found is not None
    return found


def service(name: str = "web", *, namespace: str = "default", port: int = 80, **spec: Any) -> Any:
    """Return a Service with one port named `http`."""
    ports = [{"name": "http", "port": port, "targetPort": 8080, "protocol": "TCP"}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"ports": ports, **spec},
    }


def endpoint_slice(
    service: str = "web",
    *addresses: str,
    namespace: str = "default",
    name: str = "",
    port: int = 8080,
    ready: Any = True,
) -> Any:
    """Return the EndpointSlice of a Service's port `http`."""
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "addressType": "IPv4",
        "metadata": {
            "name": name or f"{service}-1",
            "namespace": namespace,
            "labels": {"kubernetes.io/service-name": service},
        },
        "ports": [{"name": "http", "port": port, "protocol": "TCP"}],
        "endpoints": [{"addresses": [address], "conditions": {"ready": ready}} for address in addresses],
    }


def service_export(name: str = "web", *, namespace: str = "default") -> Any:
    """Return a ServiceExport."""
    return {
        "apiVersion": "multicluster.x-k8s.io/v1beta1",
        "kind": "ServiceExport",
        "metadata": {"name": name, "namespace": namespace},
    }


def service_import(name: str = "web", *, port: int = 80, namespace: str = "default", **fields: Any) -> Any:
    """Return a ServiceImport with a port."""
    return {
        "apiVersion": "multicluster.x-k8s.io/v1beta1",
        "kind": "ServiceImport",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"type": "ClusterSetIP", "ports": [{"name": "http", "port": port, **fields}]},
    }


def imported_slice(name: str, *addresses: str, source: str, port: int = 8080) -> Any:
    """Return a slice that a controller made for a ServiceImport, of endpoints in another cluster."""
    made = endpoint_slice(name, *addresses, port=port)
    labels = {"multicluster.kubernetes.io/service-name": name, "multicluster.kubernetes.io/source-cluster": source}
    metadata = {"name": f"imported-{name}-{source}", "namespace": "default", "labels": labels}
    return {**made, "metadata": metadata}


def ingress_class(name: str, controller: str = "headgate.dev/ingress-controller", **metadata: Any) -> Any:
    """Return an IngressClass; `metadata` goes into its metadata."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "IngressClass",
        "metadata": {"name": name, **metadata},
        "spec": {"controller": controller},
    }


def tls_secret(
    name: str, *names: str, namespace: str = "default", problem: str | None = None, **public: str | None
) -> Any:
    """Return a TLS Secret as a watcher seals it; its values are not really sealed.

    `public`: `authorities_pem`, `revocations_pem`.
    """
    value = {"boxes": {"recipient": f"sealed-{name}"}}
    certificate = {"chain_pem": f"chain of {name}", "names": list(names), "fingerprint": name, "problem": problem}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "type": "kubernetes.io/tls",
        "sealed": {"values": {"tls.crt": value, "tls.key": value}, "certificate": certificate, **public},
    }
