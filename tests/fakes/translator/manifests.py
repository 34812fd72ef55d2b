"""Manifests as text, for tests that serve folders."""

from pathlib import Path

INGRESS = """\
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {{name: {name}}}
spec:
  rules:
    - host: {host}
      http:
        paths:
          - {{path: {path}, pathType: Prefix, backend: {{service: {{name: {service}, port: {{name: http}}}}}}}}
"""
SERVICE = """\
apiVersion: v1
kind: Service
metadata: {{name: {name}}}
spec: {{ports: [{{name: http, port: 80}}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: {name}-1, labels: {{kubernetes.io/service-name: {name}}}}}
addressType: IPv4
ports: [{{name: http, port: {port}}}]
endpoints: [{{addresses: [127.0.0.1]}}]
"""


def ingress(name: str, host: str, service: str, path: str = "/") -> str:
    """One Ingress with one rule, in a document."""
    return INGRESS.format(name=name, host=host, service=service, path=path)


def service(name: str, port: int) -> str:
    """A Service with one endpoint on loopback, in two documents."""
    return SERVICE.format(name=name, port=port)


def write(folder: Path, name: str, *documents: str) -> Path:
    """Write a file in one step, as editors and tools do that cannot leave half a file."""
    path = folder / name
    draft = folder / f".{name}.draft"
    draft.write_text("---\n".join(documents))
    draft.replace(path)
    return path
