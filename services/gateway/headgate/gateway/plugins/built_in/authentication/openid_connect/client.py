"""By what a gateway is known to a provider: a secret, or a token that it signs (RFC 7523).

And the key of its own that tokens are bound to (DPoP, RFC 9449).
"""

import base64
import hashlib
import json
import secrets
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote_plus, urlsplit

import jwt

from headgate.common.plugins.authentication.openid_client import ClientAuth, DpopConfig
from headgate.common.plugins.authentication.openid_connect import OpenidConnectConfig
from headgate.common.secret import Secret
from headgate.gateway.plugins.built_in.authentication.signing_keys import MAX_PRIVATE_PEM
from headgate.gateway.plugins.interface import Headers

_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_MEMBERS = {"EC": ("crv", "kty", "x", "y"), "RSA": ("e", "kty", "n")}
"""What the thumbprint of a key is made of (RFC 7638 section 3.2)."""


class ClientIdentity:
    """The client that a use of the plugin is. Raises ValueError if its key cannot be used."""

    def __init__(self, config: OpenidConnectConfig) -> None:
        self._config = config
        self._key_algorithm, self._secret_algorithm = "RS256", "HS256"
        algorithm = config.client_jwt_assertion_alg
        if algorithm is not None and algorithm.startswith("HS"):
            self._secret_algorithm = algorithm
        elif algorithm is not None:
            self._key_algorithm = algorithm
        pem = config.client_rsa_private_key
        self._key: Any = None if pem is None else _private_key("client_rsa_private_key", pem, self._key_algorithm)

    def sign_in(self, url: str, form: Mapping[str, str], method: ClientAuth, headers: Headers) -> dict[str, str]:
        """Return a form with what says who asks; it may be in a header instead."""
        config = self._config
        secret = config.client_secret.reveal() if config.client_secret is not None else ""
        if method == "client_secret_basic" and secret:
            pair = f"{quote_plus(config.client_id)}:{quote_plus(secret)}"
            headers.set("Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}")
            return dict(form)
        known = {**form, "client_id": config.client_id}
        if method == "private_key_jwt":
            headed = {"kid": config.client_rsa_private_key_id} if config.client_rsa_private_key_id else None
            assertion = jwt.encode(self._claims(url), self._key, algorithm=self._key_algorithm, headers=headed)
        elif method == "client_secret_jwt":
            assertion = jwt.encode(self._claims(url), secret, algorithm=self._secret_algorithm)
        else:
            return {**known, **({"client_secret": secret} if secret else {})}
        return {**known, "client_assertion_type": _ASSERTION, "client_assertion": assertion}

    def _claims(self, url: str) -> dict[str, Any]:
        config, now = self._config, int(time.time())
        return {
            "iss": config.client_id,
            "sub": config.client_id,
            "aud": config.client_jwt_assertion_audience or url,
            "jti": secrets.token_urlsafe(16),
            "iat": now,
            "exp": now + config.client_jwt_assertion_expires_in,
        }


class TokenBinding:
    """The key that tokens are bound to. Raises ValueError if it cannot be used, or if its two halves do not fit."""

    def __init__(self, config: DpopConfig) -> None:
        assert config.private_key is not None
        assert config.public_jwk is not None
        self._algorithm = config.signing_alg
        self._key = _private_key("dpop.private_key", config.private_key, config.signing_alg)
        own = jwt.get_algorithm_by_name(config.signing_alg).to_jwk(self._key.public_key(), as_dict=True)
        self._jwk = {name: own[name] for name in _MEMBERS[own["kty"]]}
        if any(config.public_jwk.get(name) != value for name, value in self._jwk.items()):
            raise ValueError("dpop.public_jwk is not the public half of dpop.private_key")
        self._nonces: dict[str, str] = {}
        """What the provider wants to see in a proof, by its origins."""

    @property
    def thumbprint(self) -> str:
        """The key's digest (RFC 7638)."""
        canonical = json.dumps(self._jwk, separators=(",", ":"), sort_keys=True)
        return _digest(canonical)

    def prove(self, method: str, url: str, token: str | None = None) -> str:
        """Make a proof for one request, and for the token that it brings."""
        claims: dict[str, Any] = {"jti": secrets.token_urlsafe(16), "htm": method, "iat": int(time.time())}
        claims["htu"] = urlsplit(url)._replace(query="", fragment="").geturl()
        nonce = self._nonces.get(_origin(url))
        if nonce is not None:
            claims["nonce"] = nonce
        if token is not None:
            claims["ath"] = _digest(token)
        return jwt.encode(claims, self._key, algorithm=self._algorithm, headers={"typ": "dpop+jwt", "jwk": self._jwk})

    def take_nonce(self, url: str, nonce: str | None) -> bool:
        """Note what the provider wants to see from now on; tell whether it is something new."""
        if nonce is None or self._nonces.get(_origin(url)) == nonce:
            return False
        self._nonces[_origin(url)] = nonce
        return True


def _private_key(name: str, pem: Secret[str], algorithm: str) -> Any:
    text = pem.reveal().strip()
    if len(text) > MAX_PRIVATE_PEM:
        raise ValueError(f"{name} has more than {MAX_PRIVATE_PEM} characters: take RSA with 4,096 bits at most")
    try:
        key = jwt.get_algorithm_by_name(algorithm).prepare_key(text)
        jwt.encode({}, key, algorithm=algorithm)
    except (jwt.PyJWTError, ValueError, TypeError, AttributeError):
        # Without the cause, whose words may hold something of the key.
        raise ValueError(f"{name} is no private key in PEM for {algorithm}") from None
    return key


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
