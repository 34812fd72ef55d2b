"""`jwt-auth`: a signed token (RFC 7519) says which consumer it is.

The algorithm is the consumer's, whatever the token says. Tokens are made elsewhere.
"""

import json
import warnings
from typing import Any

import jwt
from jwt.warnings import InsecureKeyLengthWarning

from headgate.common.plugins.authentication.jwt_auth import JwtAuthConfig, JwtAuthCredential
from headgate.gateway.plugins.built_in.authentication.authenticator import Authenticator, Identified
from headgate.gateway.plugins.built_in.authentication.signing_keys import read_public_key
from headgate.gateway.plugins.interface import PluginServices, Request
from headgate.gateway.plugins.interface.consumers import KnownCredential
from headgate.gateway.plugins.interface.variables import cookie_value, query_value, without_cookie, without_query_value

# Said once of each consumer, in the log.
warnings.filterwarnings("ignore", category=InsecureKeyLengthWarning)


class JwtAuth(Authenticator[JwtAuthConfig]):
    """Asks for a token."""

    name = "jwt-auth"
    order = 2510
    Config = JwtAuthConfig
    is_shareable = True
    is_of_owner = True
    scheme = "Bearer"

    def __init__(self, config: JwtAuthConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._decoder = jwt.PyJWT(
            {
                "verify_exp": "exp" in config.claims_to_verify,
                "verify_nbf": "nbf" in config.claims_to_verify,
                "verify_aud": False,
                "verify_iat": False,
                "verify_iss": False,
                "verify_jti": False,
                "verify_sub": False,
            }
        )

    def identify(self, request: Request) -> Identified:
        """Look up whose token it is, and check it."""
        token = self._token(request)
        if not token:
            return self.refusal("Missing JWT token in request")
        try:
            claims = self._decoder.decode(token, options={"verify_signature": False})
        except (jwt.PyJWTError, ValueError):
            return self.refusal("JWT token invalid")
        key = claims.get(self.config.key_claim_name)
        if not isinstance(key, str) or not key:
            return self.refusal("Missing user key in JWT token")
        credential = self.services.find_credential(self.name, key.encode("utf-8", "surrogatepass"))
        if credential is None:
            return self.refusal("Invalid user key in JWT token")
        return self._checked(request, credential, token, claims)

    def _checked(self, request: Request, credential: KnownCredential, token: str, claims: Any) -> Identified:
        known: JwtAuthCredential = credential.config
        try:
            if credential.prepared is None:
                credential.prepared = _prepared_key(known)
                self._note_short(credential)
            self._decoder.decode(
                token, credential.prepared, algorithms=[known.algorithm], leeway=known.lifetime_grace_period
            )
        except jwt.InvalidKeyError as error:
            self.services.logger.error("jwt-auth: the key of %s cannot be used: %s", credential.consumer.title, error)
            return self.refusal("failed to verify jwt")
        except jwt.PyJWTError:
            return self.refusal("failed to verify jwt")
        if self.config.store_in_ctx:
            request.variables["jwt_auth_payload"] = json.dumps(claims)
        return credential

    def _note_short(self, credential: KnownCredential) -> None:
        known: JwtAuthCredential = credential.config
        if known.algorithm.startswith("HS") and len(known.secret_bytes()) * 8 < int(known.algorithm[2:]):
            text = "jwt-auth: the secret of %s is shorter than %s needs to be safe (RFC 7518 section 3.2)"
            self.services.logger.warning(text, credential.consumer.title, known.algorithm)

    def _token(self, request: Request) -> str | None:
        config = self.config
        given = request.headers.get(config.header)
        if given is not None:
            return given[7:] if given[:7].lower() == "bearer " else given
        cookies = "; ".join(request.headers.get_all("Cookie"))
        return query_value(request.query, config.query) or cookie_value(cookies, config.cookie)

    def hide(self, request: Request) -> None:
        """Take the token away from where it was."""
        config = self.config
        if request.headers.remove(config.header):
            return
        if query_value(request.query, config.query):
            request.query = without_query_value(request.query, config.query)
        else:
            without_cookie(request.headers, config.cookie)


def _prepared_key(known: JwtAuthCredential) -> Any:
    """Return the key in the form that need not be read again. Raises jwt.InvalidKeyError."""
    if not known.algorithm.startswith("HS"):
        return read_public_key(known.public_key or "", known.algorithm)
    try:
        return jwt.get_algorithm_by_name(known.algorithm).prepare_key(known.secret_bytes())
    except (ValueError, TypeError) as error:
        raise jwt.InvalidKeyError(str(error)) from error
