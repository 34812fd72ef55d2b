"""Whether a token is good: its signature by the provider's keys, or what the provider says of it when asked; its times,
its issuer, whom it is for, and its scopes.
"""

import hashlib
import json
import time
from collections.abc import Collection, Mapping
from typing import Any

import jwt

from headgate.common.plugins.authentication.openid_connect import OpenidConnectConfig
from headgate.common.plugins.transformation.request_validation import compile_schema
from headgate.gateway.plugins.built_in.authentication.openid_connect.provider import Provider
from headgate.gateway.plugins.built_in.authentication.signing_keys import read_public_key
from headgate.gateway.plugins.interface import Headers
from headgate.gateway.plugins.kit.keyed import Keyed

_ASYMMETRIC = ("RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512", "EdDSA")
_REMEMBERED = 10_000

Claims = Mapping[str, Any]


class TokenRefused(Exception):
    """A token that is not good; the text says why."""


class TokenChecker:
    """Checks the tokens of one use of the plugin."""

    def __init__(self, config: OpenidConnectConfig, provider: Provider) -> None:
        self._config = config
        self._provider = provider
        self._schema = compile_schema(config.claim_schema) if config.claim_schema is not None else None
        self._public_keys: dict[str, Any] = {}
        """The configured one, by algorithms."""
        self._introspected: Keyed[tuple[float, Claims]] = Keyed(_REMEMBERED)
        """What the provider said of tokens, until when, by their digests."""

    async def check_bearer(self, token: str, addon: Headers) -> Claims:
        """Return the claims of a token that a request brought; `addon` goes along where the provider is asked.

        Raises:
            TokenRefused: it is not good.
            ProviderFailed: the provider cannot be asked.
        """
        config = self._config
        claims = await self._verify(token) if config.checks_itself else await self._introspect(token, addon)
        rule = config.claim_validator.issuer
        if rule.valid_issuers or (config.checks_itself and config.use_jwks):
            issuers = rule.valid_issuers or ((await self._provider.metadata()).get("issuer"),)
            if claims.get("iss") not in issuers:
                raise TokenRefused("the token is of another issuer")
        self._check_audience(claims)
        self._check_schema(dict(claims))
        return claims

    def check_session(self, access_token: str, id_claims: Claims, user: Claims) -> None:
        """Look whether a session will do for this use of the plugin: another one may have begun it.

        Raises:
            TokenRefused: it will not.
        """
        self._check_audience(id_claims)
        told = {"access_token": access_token, "id_token": dict(id_claims)}
        self._check_schema({**told, "user": dict(user)} if user else told)

    def _check_schema(self, content: dict[str, Any]) -> None:
        if self._schema is not None and not self._schema.is_valid(content):
            raise TokenRefused("the token's claims do not keep to claim_schema")

    def lacks_scope(self, scope: object) -> bool:
        """Tell whether what a token or the provider says of scopes lacks one that is required."""
        has = scope.split() if isinstance(scope, str) else scope if isinstance(scope, list) else ()
        return not set(self._config.required_scopes).issubset(map(str, has))

    async def check_id_token(self, token: str, nonce: str | None) -> Claims:
        """Return the claims of an ID token that came for a code (OpenID Connect Core 3.1.3.7).

        Raises:
            TokenRefused: it is not good.
            ProviderFailed: the provider cannot be asked.
        """
        claims = await self._verify(token)
        audience = claims.get("aud")
        client_id = self._config.client_id
        if claims.get("iss") != (await self._provider.metadata()).get("issuer"):
            raise TokenRefused("the ID token is of another issuer")
        if client_id not in (audience if isinstance(audience, list) else [audience]):
            raise TokenRefused("the ID token is for another client")
        if claims.get("azp", client_id) != client_id:
            raise TokenRefused("the ID token is for another party")
        if not {"exp", "iat", "sub"} <= claims.keys():
            raise TokenRefused("the ID token lacks one of exp, iat and sub")
        if nonce is not None and claims.get("nonce") != nonce:
            raise TokenRefused("the ID token is of another request")
        self._check_audience(claims)
        return claims

    def _check_audience(self, claims: Claims) -> None:
        rule = self._config.claim_validator.audience
        audience = claims.get(rule.claim)
        if audience is None and rule.required:
            raise TokenRefused(f"the token has no claim {rule.claim}")
        named = audience if isinstance(audience, list) else [audience]
        if rule.match_with_client_id and self._config.client_id not in named:
            raise TokenRefused("the token is for another client")

    async def _verify(self, token: str) -> Claims:
        config = self._config
        expected = config.token_signing_alg_values_expected
        algorithms: Collection[str] = (expected,) if expected is not None else _ASYMMETRIC
        try:
            head = jwt.get_unverified_header(token)
            algorithm = str(head.get("alg"))
            if algorithm not in algorithms:
                raise TokenRefused(f"the token is signed by algorithm {algorithm[:20]}")
            key = await self._key(head, algorithm)
            claims: Claims = jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                leeway=config.iat_slack,
                options={"verify_aud": False, "verify_iss": False, "verify_sub": False, "verify_jti": False},
            )
        except (jwt.PyJWTError, ValueError) as error:
            raise TokenRefused(f"the token is not good: {error}") from error
        return claims

    async def _key(self, head: Mapping[str, Any], algorithm: str) -> Any:
        config = self._config
        if algorithm.startswith("HS"):
            assert config.client_secret is not None
            return config.client_secret.reveal()
        if config.public_key is not None:
            return self._public_key(config.public_key, algorithm)
        key_id = head.get("kid")
        return await self._provider.key(key_id if isinstance(key_id, str) else None, algorithm)

    def _public_key(self, pem: str, algorithm: str) -> Any:
        key = self._public_keys.get(algorithm)
        if key is None:
            key = self._public_keys[algorithm] = read_public_key(pem, algorithm)
        return key

    async def _introspect(self, token: str, addon: Headers) -> Claims:
        config, now = self._config, time.time()
        asked = json.dumps([token, *addon])
        digest = hashlib.sha256(asked.encode()).hexdigest()
        held = self._introspected.get(digest)
        if held is not None and now < held[0]:
            return held[1]
        claims = await self._provider.introspect(token, addon)
        if claims.get("active") is not True:
            raise TokenRefused("the provider does not know the token, or not any more")
        expires = claims.get(config.introspection_expiry_claim)
        until = float(expires) if isinstance(expires, int | float) else now
        if until <= now and expires is not None:
            raise TokenRefused("the token has expired")
        if config.introspection_interval:
            until = min(until, now + config.introspection_interval)
        self._introspected.put(digest, (until, claims))
        return claims


def granted_scope(answer: Claims, access_token: str, id_claims: Claims) -> str:
    """Return the scopes that a login was granted: by the provider's answer, the access token, or else the ID token.

    The tokens came from the provider itself, so that nothing is checked of them here.
    """
    try:
        claims: Claims = jwt.decode(access_token, options={"verify_signature": False})
    except (jwt.PyJWTError, ValueError):
        claims = {}
    for told in (answer, claims, id_claims):
        scope = told.get("scope")
        if isinstance(scope, str):
            return scope
        if isinstance(scope, list):
            return " ".join(map(str, scope))
    return ""
