"""Requests to services of AWS are signed: Signature Version 4.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html has the steps. botocore would
do it, with 15 MB of descriptions of services; it is four digests.
"""

import hashlib
import hmac
from datetime import UTC, datetime
from typing import Final
from urllib.parse import parse_qsl, quote, urlsplit

from headgate.common.plugins.ai.proxy import AiAwsAuth
from headgate.gateway.plugins.interface import Headers

_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_UNRESERVED: Final = "-_.~"
_OWN: Final = "x-amz-"


def sign(
    auth: AiAwsAuth, region: str, service: str, method: str, url: str, headers: Headers, body: bytes, now: datetime
) -> None:
    """Add the headers that sign a request; what there is of `Authorization` and `X-Amz-*` is dropped.

    Args:
        auth: keys.
        region: of the service.
        service: as the scope names it: `bedrock`.
        method: of the request.
        url: as it is sent.
        headers: of the request; `Content-Type` is signed too.
        body: as it is sent.
        now: the present time.
    """
    headers.remove_named(f"{_OWN}*")
    parts, at = urlsplit(url), now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    headers.set("X-Amz-Date", at)
    if auth.session_token is not None:
        headers.set("X-Amz-Security-Token", auth.session_token.reveal())
    signed = {"host": parts.netloc.rpartition("@")[2], "x-amz-date": at}
    for name in ("content-type", "x-amz-security-token"):
        if (value := headers.get(name)) is not None:
            signed[name] = " ".join(value.split())
    names = ";".join(sorted(signed))
    canonical = "\n".join(
        (
            method,
            # The path is encoded once more: it is escaped already.
            quote(parts.path or "/", safe=f"/{_UNRESERVED}"),
            _query(parts.query),
            *(f"{name}:{signed[name]}" for name in sorted(signed)),
            "",
            names,
            hashlib.sha256(body).hexdigest(),
        )
    )
    scope = f"{at[:8]}/{region}/{service}/aws4_request"
    text = "\n".join((_ALGORITHM, at, scope, hashlib.sha256(canonical.encode()).hexdigest()))
    key = f"AWS4{auth.secret_access_key.reveal()}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.new(key, text.encode(), "sha256").hexdigest()
    credential = f"{auth.access_key_id.reveal()}/{scope}"
    headers.set("Authorization", f"{_ALGORITHM} Credential={credential}, SignedHeaders={names}, Signature={signature}")


def _query(query: str) -> str:
    pairs = sorted(
        (quote(name, safe=_UNRESERVED), quote(value, safe=_UNRESERVED))
        for name, value in parse_qsl(query, keep_blank_values=True)
    )
    return "&".join(f"{name}={value}" for name, value in pairs)
