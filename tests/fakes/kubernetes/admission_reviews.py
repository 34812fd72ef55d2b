"""An API server's side of a validating webhook: AdmissionReview requests as version 1.36 sends them."""

import copy
import io
import json
import ssl
from pathlib import Path
from typing import Any

import aiohttp

from fakes.gateway.tls import Authority
from headgate.common.resources import ALL_KINDS, Kinds

NAME = "headgate-admission.headgate.svc"
"""Of the webhook's Service, which its certificate must be for."""
JsonObject = dict[str, Any]


def review(
    manifest: JsonObject | None, before: JsonObject | None = None, kinds: Kinds = ALL_KINDS, **request: Any
) -> JsonObject:
    """The review of a creation, or of an update where `before` is given; `request` replaces fields of the request."""
    present = manifest or before or {}
    group, _, version = present.get("apiVersion", "networking.k8s.io/v1").rpartition("/")
    kind, metadata = present.get("kind", "Ingress"), present.get("metadata", {})
    row = kinds.named(group, kind)
    assert row is not None, kind
    resource = {"group": group, "version": version, "resource": row.resource}
    made = {
        "uid": "0df28fbd-5f5f-11e8-bc74-36e6bb280816",
        "kind": {"group": group, "version": version, "kind": kind},
        "resource": resource,
        "requestKind": {"group": group, "version": version, "kind": kind},
        "requestResource": resource,
        "name": metadata.get("name", ""),
        "namespace": metadata.get("namespace", "default"),
        "operation": "UPDATE" if before else "CREATE",
        "userInfo": {"username": "system:serviceaccount:ci:deployer", "uid": "u", "groups": ["system:authenticated"]},
        "object": copy.deepcopy(manifest),
        "oldObject": copy.deepcopy(before),
        "dryRun": False,
        "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions", "fieldManager": "kubectl-create"},
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": made | request}


class WebhookClient:
    """Asks the webhook on a port of loopback, over a connection of its own each time."""

    def __init__(self, port: int, authority: Authority, own: tuple[Path, Path] | None = None) -> None:
        self._url = f"https://127.0.0.1:{port}/validate"
        self.context = ssl.create_default_context(cadata=authority.pem.decode())
        if own:
            self.context.load_cert_chain(*own)

    async def post(self, body: bytes, query: str = "?timeout=10s") -> tuple[int, bytes]:
        """Return status and body of an answer."""
        headers = {"Content-Type": "application/json"}
        async with (
            aiohttp.ClientSession() as session,
            session.post(
                self._url + query, data=io.BytesIO(body), ssl=self.context, server_hostname=NAME, headers=headers
            ) as answer,
        ):
            return answer.status, await answer.read()

    async def review(self, sent: JsonObject, query: str = "?timeout=10s") -> Any:
        """Return the response to a review."""
        status, body = await self.post(json.dumps(sent).encode(), query)
        assert status == 200, body
        return json.loads(body)["response"]
