"""The `caBundle` of the ValidatingWebhookConfiguration, which says whose certificates API servers trust.

https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#contacting-the-webhook
"""

import base64

from headgate.common.resources import JsonObject
from headgate.watcher.api.transport import FIELD_MANAGER, KubernetesTransport
from headgate.watcher.api.wire import decode_object
from headgate.watcher.errors import Absent, CertificateUnusable

INJECTED = "cert-manager.io/inject-"
REQUEST_S = 10.0


class TrustedBundle:
    """The `caBundle` of all webhooks of one configuration, which is read and patched and never made."""

    def __init__(self, transport: KubernetesTransport, name: str) -> None:
        """Choose the configuration."""
        self._transport = transport
        self._path = f"/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/{name}"
        self._name = f"ValidatingWebhookConfiguration {name}"

    def __str__(self) -> str:
        """The configuration, as messages name it."""
        return self._name

    async def put(self, bundle_pem: bytes) -> bool:
        """Have these authorities trusted, and no others; return whether they were already.

        Raises:
            CertificateUnusable: there is no such configuration, or somebody else writes it.
            WriteConflict: it was written meanwhile.
            WatcherError: the API server does not answer, or does not permit it.
        """
        try:
            found = decode_object(await self._transport.request("GET", self._path, timeout_s=REQUEST_S))
        except Absent as error:
            raise CertificateUnusable(f"{self} is not there, so no API server asks the webhook") from error
        bundle = base64.b64encode(bundle_pem).decode()
        webhooks = found.get("webhooks") or []
        stale = [one["name"] for one in webhooks if one["clientConfig"].get("caBundle") != bundle]
        if not stale:
            return True
        _check_is_ours(found)
        # Merged by name, so that nothing else of them is written (a strategic merge patch).
        changes = [{"name": name, "clientConfig": {"caBundle": bundle}} for name in stale]
        await self._transport.request(
            "PATCH",
            self._path,
            query={"fieldManager": FIELD_MANAGER},
            body={"metadata": {"resourceVersion": found["metadata"]["resourceVersion"]}, "webhooks": changes},
            content_type="application/strategic-merge-patch+json",
            timeout_s=REQUEST_S,
        )
        return False


def _check_is_ours(configuration: JsonObject) -> None:
    metadata = configuration["metadata"]
    for name in metadata.get("annotations") or {}:
        if name.startswith(INJECTED):
            raise CertificateUnusable(
                f"ValidatingWebhookConfiguration {metadata['name']} has the annotation {name}, so cert-manager "
                "writes its caBundle: take it away, or give admission_certificate_file in place of admission_secret"
            )
