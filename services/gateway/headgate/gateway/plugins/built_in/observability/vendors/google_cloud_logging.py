"""`google-cloud-logging`: what requests were, written to Cloud Logging by a service account.

https://cloud.google.com/logging/docs/reference/v2/rest/v2/entries/write and
https://developers.google.com/identity/protocols/oauth2/service-account
"""

import asyncio
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlencode

import jwt
import msgspec

from headgate.common.plugins.observability.vendor_loggers import GoogleAccount, GoogleCloudLoggingConfig
from headgate.gateway.plugins.built_in.observability.batched_logger import BatchedLogger
from headgate.gateway.plugins.built_in.observability.posted_logger import post
from headgate.gateway.plugins.interface import Headers, PluginServices, Request

_TIMEOUT_S: Final = 10.0
_LIFETIME_S: Final = 3600
_SPARE_S: Final = 60
"""Before the end of a token, from which on another is asked for."""


class GoogleCloudLogging(BatchedLogger[GoogleCloudLoggingConfig]):
    """Writes entries."""

    name = "google-cloud-logging"
    order = 407
    Config = GoogleCloudLoggingConfig

    def __init__(self, config: GoogleCloudLoggingConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._login = ""
        """`Authorization` of the last token."""
        self._login_ends = 0.0

    @property
    def target(self) -> str:
        """The URL, without its query."""
        return self.config.auth_config.entries_uri.partition("?")[0]

    def write(self, entry: bytes, request: Request) -> None:
        """Take an entry."""
        config, said = self.config, msgspec.json.decode(entry)
        resource = config.resource
        made = {
            **({"jsonPayload": said} if config.log_format is not None else _of_request(said)),
            "labels": {"source": "apache-apisix-google-cloud-logging"},
            "timestamp": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "resource": {"type": resource.type, **({"labels": resource.labels} if resource.labels else {})},
            "insertId": request.id,
            "logName": f"projects/{config.auth_config.project_id}/logs/{config.log_id}",
        }
        super().write(msgspec.json.encode(made), request)

    async def send(self, entries: Sequence[bytes]) -> None:
        """Write a batch."""
        config = self.config
        headers = Headers([("Content-Type", "application/json"), ("Authorization", await self._authorization())])
        body = b'{"entries":[' + b",".join(entries) + b'],"partialSuccess":false}'
        url = config.auth_config.entries_uri
        await post(self.services, url, headers, body, timeout_s=_TIMEOUT_S, verify=config.ssl_verify)

    async def _authorization(self) -> str:
        """Return what Google gives for an assertion that the account has signed."""
        if self.services.clock() < self._login_ends:
            return self._login
        account = self.config.auth_config
        assertion = await asyncio.to_thread(_assertion, account)
        form = {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": assertion}
        headers = Headers([("Content-Type", "application/x-www-form-urlencoded")])
        raw = await post(
            self.services,
            account.token_uri,
            headers,
            urlencode(form).encode(),
            timeout_s=_TIMEOUT_S,
            verify=self.config.ssl_verify,
        )
        try:
            said = msgspec.json.decode(raw, type=dict[str, Any])
            token, seconds = str(said["access_token"]), float(said["expires_in"])
        except (msgspec.MsgspecError, KeyError, TypeError, ValueError):
            raise OSError("Google gave no token for the service account") from None
        self._login = f"{said.get('token_type') or 'Bearer'} {token}"
        self._login_ends = self.services.clock() + seconds - _SPARE_S
        return self._login


def _assertion(account: GoogleAccount) -> str:
    now = int(time.time())
    claims = {
        "iss": account.client_email,
        "aud": account.token_uri,
        "scope": " ".join(account.scopes or account.scope),
        "iat": now,
        "exp": now + _LIFETIME_S,
    }
    try:
        return jwt.encode(claims, account.private_key.reveal(), algorithm="RS256")
    except (ValueError, TypeError, jwt.PyJWTError):
        # Without the cause, whose text may hold a part of the key.
        raise OSError("the private_key of the service account is no RSA key in PEM") from None


def _of_request(entry: dict[str, Any]) -> dict[str, Any]:
    """Return what is written of an entry without a format of its own."""
    asked, answered = entry["request"], entry["response"]
    return {
        "httpRequest": {
            "requestMethod": asked["method"],
            "requestUrl": asked["url"],
            "requestSize": asked["size"],
            "status": answered["status"],
            "responseSize": answered["size"],
            "userAgent": asked["headers"].get("user-agent"),
            "remoteIp": entry["client_ip"],
            "serverIp": entry["upstream"],
            "latency": f"{entry['latency'] / 1000:.3f}s",
        },
        "jsonPayload": {"route_id": entry["route_id"], "service_id": entry["service_id"]},
    }
