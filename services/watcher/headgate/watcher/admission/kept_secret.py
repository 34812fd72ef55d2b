"""The Secret in which the watchers of a cluster keep the webhook's certificate, as the API server has it.

It is made empty by the installation, so that the right to one name is enough, and has a type of its own: no other
Secret is written to by mistake, and none of its content gets into the log of Secrets.
"""

import base64
from collections.abc import Mapping
from typing import Final

from cryptography import x509

from headgate.common.secret import Secret
from headgate.watcher.admission.issuing import Pair
from headgate.watcher.admission.rotation import Kept
from headgate.watcher.api.transport import FIELD_MANAGER, KubernetesTransport
from headgate.watcher.api.wire import decode_object
from headgate.watcher.errors import Absent, CertificateUnusable
from headgate.watcher.objects.certificates import UNREADABLE
from headgate.watcher.objects.secrets import decode_data

SECRET_TYPE: Final = "headgate.dev/admission"
AUTHORITIES = "ca.crt"
PRESENT = ("tls.crt", "tls.key")
UPCOMING = ("next.crt", "next.key")
REQUEST_S = 10.0


class KeptSecret:
    """One Secret, which is read and written and never made."""

    def __init__(self, transport: KubernetesTransport, namespace: str, name: str) -> None:
        """Choose the Secret."""
        self._transport = transport
        self._path = f"/api/v1/namespaces/{namespace}/secrets/{name}"
        self._name = f"Secret {namespace}/{name}"

    def __str__(self) -> str:
        """The Secret, as messages name it."""
        return self._name

    async def read(self) -> tuple[Kept, str]:
        """Return what is kept and its resourceVersion. What cannot be read of it is as good as absent.

        Raises:
            CertificateUnusable: there is no such Secret, or it is somebody else's.
            WatcherError: the API server does not answer, or does not permit it.
        """
        try:
            found = decode_object(await self._transport.request("GET", self._path, timeout_s=REQUEST_S))
        except Absent as error:
            raise CertificateUnusable(f"{self} is not there: make it, without data, of type {SECRET_TYPE}") from error
        if found.get("type") != SECRET_TYPE:
            raise CertificateUnusable(
                f"{self} is of type {found.get('type')}, so somebody else's: name one of type {SECRET_TYPE}"
            )
        values, _ = decode_data(found)
        kept = Kept(_pair(values, PRESENT), _pair(values, UPCOMING), _authorities(values))
        return kept, found["metadata"]["resourceVersion"]

    async def write(self, kept: Kept, version: str) -> None:
        """Replace what is kept, if the Secret is still as it was read.

        Raises:
            WriteConflict: it is not.
            WatcherError: the API server does not take it, or does not answer.
        """
        data = {
            **_encoded(PRESENT, kept.present),
            **_encoded(UPCOMING, kept.upcoming),
            AUTHORITIES: base64.b64encode(kept.bundle_pem).decode(),
        }
        await self._transport.request(
            "PATCH",
            self._path,
            query={"fieldManager": FIELD_MANAGER},
            body={"metadata": {"resourceVersion": version}, "data": data},
            content_type="application/merge-patch+json",
            timeout_s=REQUEST_S,
        )


def _pair(values: Mapping[str, bytes], names: tuple[str, str]) -> Pair | None:
    chain, key = names
    return Pair(values[chain], Secret(values[key])) if values.get(chain) and values.get(key) else None


def _authorities(values: Mapping[str, bytes]) -> tuple[x509.Certificate, ...]:
    try:
        found = tuple(x509.load_pem_x509_certificates(values.get(AUTHORITIES, b"")))
        for one in found:
            one.not_valid_after_utc  # noqa: B018 - raises for what is no date
    except UNREADABLE:
        return ()
    return found


def _encoded(names: tuple[str, str], pair: Pair | None) -> dict[str, str | None]:
    """What a merge patch says of a pair; null takes it out."""
    if pair is None:
        return dict.fromkeys(names)
    values = (pair.chain_pem, pair.key_pem.reveal())
    return {name: base64.b64encode(value).decode() for name, value in zip(names, values, strict=True)}
