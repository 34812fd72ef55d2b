"""`hmac-auth`: a signature over chosen headers, made with a secret key, says which consumer it is.

    Authorization: Signature keyId="jack-key",algorithm="hmac-sha256",headers="@request-target date",signature="..."

The signature, in base64, is over these lines, each with a line feed behind it (Apache APISIX 3): the key's id; for each
name in `headers` its value as `name: value`; for `@request-target` the method and the path with its query, as sent.
"""

import base64
import hashlib
import hmac
import re
import time
from collections.abc import Awaitable, Callable, Iterator
from email.utils import parsedate_to_datetime
from types import MappingProxyType
from typing import Any, Final

from headgate.common.plugins.authentication.hmac_auth import HmacAuthConfig
from headgate.gateway.plugins.built_in.authentication.authenticator import Authenticator, Identified
from headgate.gateway.plugins.interface import PluginServices, Request, Response
from headgate.gateway.plugins.interface.consumers import KnownCredential

_SCHEME = "Signature "
_FIELD = re.compile(r'\s*(\w+)="([^"]*)"\s*')
_HASHES: MappingProxyType[str, Callable[..., Any]] = MappingProxyType(
    {"hmac-sha1": hashlib.sha1, "hmac-sha256": hashlib.sha256, "hmac-sha512": hashlib.sha512}
)
MAX_SIGNED: Final = 64
"""Headers that one signature covers at most, each once: a client that knows a key's id chooses them."""
_REFUSED = "client request can't be validated"


class HmacAuth(Authenticator[HmacAuthConfig]):
    """Asks for a signature."""

    name = "hmac-auth"
    order = 2530
    Config = HmacAuthConfig
    is_shareable = True
    is_of_owner = True
    scheme = "hmac"

    def __init__(self, config: HmacAuthConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        # A date that is looked at but not signed could be put in anew, and the signature used for ever.
        self._required = {name.lower() for name in config.signed_headers} | ({"date"} if config.clock_skew else set())

    def identify(self, request: Request) -> Identified | Awaitable[Identified]:
        """Check the signature, and the digest of the body where that is asked for."""
        given = _fields(request.headers.get("Authorization") or "")
        key_id, algorithm = given.get("keyId"), given.get("algorithm")
        if not key_id or algorithm is None or "signature" not in given:
            return self._refuse("no keyId, algorithm or signature")
        credential = self.services.find_credential(self.name, key_id.encode("latin-1"))
        if credential is None:
            return self._refuse("Invalid key_id")
        fault = self._fault(request, given, credential)
        if fault:
            return self._refuse(fault)
        return self._with_body(request, credential) if self.config.validate_request_body else credential

    def _refuse(self, fault: str) -> Response:
        return self.refusal(f"{_REFUSED}: {fault}")

    def _fault(self, request: Request, given: dict[str, str], credential: KnownCredential) -> str:
        """Say what is wrong with a signature; empty if nothing is."""
        algorithm, signed = given["algorithm"], given.get("headers", "").split()
        if algorithm not in self.config.allowed_algorithms:
            return "Invalid algorithm"
        if self.config.clock_skew and not self._is_timely(request.headers.get("Date")):
            return "Date header missing, or Clock skew exceeded"
        names = {name.lower() for name in signed}
        if len(signed) > MAX_SIGNED or len(names) < len(signed):
            return f"more than {MAX_SIGNED} headers, or one of them twice, in signing"
        missing = self._required - names
        if missing:
            return f'expected header "{min(missing)}" missing in signing'
        text = "".join(f"{line}\n" for line in _signed_lines(request, given["keyId"], signed))
        secret = credential.config.secret_key.reveal().encode()
        expected = hmac.new(secret, text.encode("latin-1"), _HASHES[algorithm]).digest()
        try:
            signature = base64.b64decode(given["signature"], validate=True)
        except ValueError:
            signature = b""
        return "" if hmac.compare_digest(signature, expected) else "Invalid signature"

    def _is_timely(self, date: str | None) -> bool:
        try:
            moment = parsedate_to_datetime(date or "").timestamp()
        except (ValueError, OverflowError):
            return False
        return abs(time.time() - moment) <= self.config.clock_skew

    async def _with_body(self, request: Request, credential: KnownCredential) -> Identified:
        body = await request.read_body(self.config.max_req_body_size)
        digest = f"SHA-256={base64.b64encode(hashlib.sha256(body).digest()).decode()}"
        return credential if request.headers.get("Digest") == digest else self._refuse("Invalid digest")


def _fields(value: str) -> dict[str, str]:
    """Read the parameters of an Authorization header; none if it is of another scheme, or is not well formed."""
    if not value.startswith(_SCHEME):
        return {}
    found = [_FIELD.fullmatch(part) for part in value.removeprefix(_SCHEME).split(",")]
    fields = {match[1]: match[2] for match in found if match is not None}
    return fields if len(fields) == len(found) else {}


def _signed_lines(request: Request, key_id: str, names: list[str]) -> Iterator[str]:
    yield key_id
    for name in names:
        value = request.headers.get(name) if name.lower() != "host" else request.authority
        if value is not None:
            yield f"{name}: {value}"
        elif name == "@request-target":
            yield f"{request.method} {request.original_target}"
