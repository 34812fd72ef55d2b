"""Small valid objects."""

from typing import Any

JsonObject = dict[str, Any]


def ingress(
    name: str, host: str = "", *, namespace: str = "default", service: str = "web", **metadata: Any
) -> JsonObject:
    backend = {"service": {"name": service, "port": {"number": 80}}}
    paths = [{"path": "/", "pathType": "Prefix", "backend": backend}]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "spec": {"ingressClassName": "headgate", "rules": [{"host": host or f"{name}.test", "http": {"paths": paths}}]},
    }


def service(name: str, *, namespace: str = "default", port: int = 80) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"ports": [{"port": port}], "selector": {"app": name}},
    }


def config_map(name: str, namespace: str = "default", **data: str) -> JsonObject:
    """Return a ConfigMap."""
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def secret(name: str, type_: str = "kubernetes.io/tls", *, namespace: str = "default") -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "type": type_,
        "data": {"tls.crt": "Yw==", "tls.key": "aw=="},
    }


def endpoint_slice(name: str, *addresses: str, service: str = "web", namespace: str = "default") -> JsonObject:
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": name, "namespace": namespace, "labels": {"kubernetes.io/service-name": service}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}} for address in addresses],
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
    }
