"""`jwe-decrypt`: open an encrypted token (RFC 7516, compact, `dir` with `A256GCM`) for the upstream.

The token's `kid` names a consumer, whose secret opens it. The consumer is not recognised by that.
"""

import base64
import binascii
import json

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from headgate.common.plugins.authentication.jwe_decrypt import JweDecryptConfig
from headgate.common.plugins.fields import BadHeader
from headgate.gateway.plugins.interface import Plugin, Request, Response


class JweDecrypt(Plugin[JweDecryptConfig]):
    """Opens tokens."""

    name = "jwe-decrypt"
    order = 2509
    preview = "yes"
    Config = JweDecryptConfig

    def on_request(self, request: Request) -> Response | None:
        """Put what is in the token in its place."""
        given = request.headers.get(self.config.header)
        if not given:
            # Nobody but a token says what stands there.
            request.headers.remove(self.config.forward_header)
            return Response.refusal(403, "missing JWE token in request") if self.config.strict else None
        token = given[7:] if given[:7].lower() == "bearer " else given
        parts = token.split(".")
        try:
            head = json.loads(_decoded(parts[0]))
            _, initial, text, tag = (_decoded(part) for part in parts[1:])
        except (ValueError, binascii.Error, RecursionError):
            return Response.refusal(400, "JWE token invalid")
        if not isinstance(head, dict) or (head.get("alg"), head.get("enc")) != ("dir", "A256GCM") or parts[1]:
            return Response.refusal(400, "JWE token invalid")
        key_id = head.get("kid")
        if not isinstance(key_id, str):
            return Response.refusal(400, "missing kid in JWE token")
        credential = self.services.find_credential(self.name, key_id.encode("utf-8", "surrogatepass"))
        if credential is None:
            return Response.refusal(400, "invalid kid in JWE token")
        try:
            opened = AESGCM(credential.config.secret_bytes()).decrypt(initial, text + tag, parts[0].encode())
            request.headers.set(self.config.forward_header, opened.decode("latin-1"))
        except (InvalidTag, ValueError, BadHeader):
            return Response.refusal(400, "failed to decrypt JWE token")
        return None


def _decoded(part: str) -> bytes:
    """Read base64 for URLs without its padding. Raises ValueError."""
    return base64.b64decode(part.encode("latin-1") + b"=" * (-len(part) % 4), altchars=b"-_", validate=True)
