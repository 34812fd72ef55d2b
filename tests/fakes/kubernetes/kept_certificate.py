"""What is installed for a webhook certificate that the watchers keep: an empty Secret, and the configuration."""

import base64
from typing import Any

from cryptography import x509

from fakes.kubernetes.api import FakeKubernetes
from headgate.watcher.admission.kept_secret import SECRET_TYPE

NAMESPACE, SECRET, CONFIGURATION = "headgate", "headgate-admission", "headgate"
JsonObject = dict[str, Any]


def secret(kind: str = SECRET_TYPE, data: dict[str, bytes] | None = None) -> JsonObject:
    metadata = {"name": SECRET, "namespace": NAMESPACE}
    encoded = {name: base64.b64encode(value).decode() for name, value in (data or {}).items()}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "type": kind,
        **({"data": encoded} if data else {}),
    }


def configuration(**metadata: Any) -> JsonObject:
    """Two webhooks, with a field that is none of the watchers' business."""
    service = {"namespace": NAMESPACE, "name": "headgate-admission", "path": "/validate"}
    webhooks = [
        {"name": f"{kind}.admission.headgate.dev", "clientConfig": {"service": service}, "timeoutSeconds": 5}
        for kind in ("ingresses", "services")
    ]
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": CONFIGURATION, **metadata},
        "webhooks": webhooks,
    }


def kept(api: FakeKubernetes) -> dict[str, bytes]:
    """What the Secret holds."""
    data = api.get("secrets", SECRET, NAMESPACE).get("data", {})
    return {name: base64.b64decode(value) for name, value in data.items()}


def bundles(api: FakeKubernetes) -> list[bytes]:
    """The `caBundle` of each webhook; empty where there is none."""
    found = api.get("validatingwebhookconfigurations", CONFIGURATION)["webhooks"]
    return [base64.b64decode(one["clientConfig"].get("caBundle", "")) for one in found]


def trusted(api: FakeKubernetes) -> bytes:
    """The `caBundle` that all webhooks have; empty where they do not have the same."""
    first, *others = bundles(api)
    return first if all(other == first for other in others) else b""


def authorities(bundle: bytes) -> list[x509.Certificate]:
    return x509.load_pem_x509_certificates(bundle) if bundle else []
