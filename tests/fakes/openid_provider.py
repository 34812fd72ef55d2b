"""An OpenID provider: what it says of itself, its keys, and its endpoints, on top of a real server."""

import base64
import hashlib
import json
import time
from typing import Any
from urllib.parse import parse_qs, unquote_plus, urlsplit

import jwt
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT, SECRET = "shop", "client secret/with signs"
KEY = rsa.generate_private_key(65537, 2048)


class OpenidProvider:
    """Knows one user, jack, and one client."""

    def __init__(self) -> None:
        self.url = ""
        self.key_id = "one"
        self.asked: list[str] = []
        """Paths."""
        self.codes: dict[str, dict[str, str]] = {}
        """What browsers were sent with, by the code that they come back with."""
        self.active: dict[str, dict[str, Any]] = {}
        self.revoked: list[str] = []
        self.refreshed = 0
        self.lifetime_s = 300
        self.user = "jack"
        self.is_down = False

    def handle(self, method: str, target: str, headers: dict[str, str], body: bytes) -> web.Response:
        """Answer one request."""
        path = urlsplit(target).path
        self.asked.append(path)
        if self.is_down:
            return web.Response(status=500)
        form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        if method == "POST" and not self._is_client(headers, form):
            return web.json_response({"error": "invalid_client"}, status=401)
        match path:
            case "/.well-known/openid-configuration":
                return web.json_response(self._metadata())
            case "/jwks":
                return web.json_response({"keys": [self._public_key()]})
            case "/introspect":
                return web.json_response(self.active.get(form["token"], {"active": False}))
            case "/token":
                return self._token(form)
            case "/userinfo":
                return web.json_response({"sub": self.user, "name": "Jack", "token": headers["Authorization"][7:]})
            case "/revoke":
                self.revoked.append(form["token"])
                return web.Response(status=200)
        return web.Response(status=404)

    def _is_client(self, headers: dict[str, str], form: dict[str, str]) -> bool:
        if "client_secret" in form:
            return (form["client_id"], form["client_secret"]) == (CLIENT, SECRET)
        given = base64.b64decode(headers.get("Authorization", "").removeprefix("Basic ")).decode()
        return [unquote_plus(part) for part in given.split(":")] == [CLIENT, SECRET]

    def _metadata(self) -> dict[str, str]:
        places = {"authorization": "authorize", "token": "token", "introspection": "introspect"}
        places |= {"userinfo": "userinfo", "revocation": "revoke", "end_session": "logout"}
        endpoints = {f"{name}_endpoint": f"{self.url}/{place}" for name, place in places.items()}
        return {"issuer": self.url, "jwks_uri": f"{self.url}/jwks", **endpoints}

    def _public_key(self) -> dict[str, Any]:
        key: dict[str, Any] = jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key(), as_dict=True)
        return {**key, "kid": self.key_id, "use": "sig"}

    def _token(self, form: dict[str, str]) -> web.Response:
        if form["grant_type"] == "refresh_token":
            if form["refresh_token"] != f"refresh-{self.refreshed}":
                return web.json_response({"error": "invalid_grant"}, status=400)
            self.refreshed += 1
            return self._tokens({})
        asked = self.codes.pop(form["code"], None)
        if asked is None or asked["redirect_uri"] != form["redirect_uri"]:
            return web.json_response({"error": "invalid_grant"}, status=400)
        if "code_challenge" in asked:
            digest = hashlib.sha256(form["code_verifier"].encode()).digest()
            assert base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == asked["code_challenge"]
        return self._tokens({"nonce": asked["nonce"]} if "nonce" in asked else {})

    def _tokens(self, claims: dict[str, str]) -> web.Response:
        return web.json_response(
            {
                "access_token": f"access-{self.refreshed}",
                "refresh_token": f"refresh-{self.refreshed}",
                "expires_in": self.lifetime_s,
                "id_token": self.sign(aud=CLIENT, **claims),
            }
        )

    def sign(self, **claims: Any) -> str:
        """Make a token."""
        now = int(time.time())
        content = {"iss": self.url, "sub": self.user, "iat": now, "exp": now + 300, **claims}
        return jwt.encode(content, KEY, algorithm="RS256", headers={"kid": self.key_id})

    def log_in(self, location: str, code: str = "code") -> str:
        """Let the user that a browser was sent with pass; return where it is sent back to."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}
        assert location.startswith(f"{self.url}/authorize?")
        assert (asked["client_id"], asked["response_type"]) == (CLIENT, "code")
        self.codes[code] = asked
        return f"{urlsplit(asked['redirect_uri']).path}?code={code}&state={asked['state']}"


def decoded(header: str | None) -> Any:
    """Read JSON in base64."""
    return json.loads(base64.b64decode(header or ""))
