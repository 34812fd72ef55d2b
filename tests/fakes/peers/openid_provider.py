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

CLIENT, SECRET = "shop", "client secret/with signs, long enough to sign tokens with it all the way to HS512 too"
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
        self.assertions: list[dict[str, Any]] = []
        """Claims of the tokens by which the client signed in."""
        self.client_key: Any = None
        """Its public key."""
        self.pushed: list[dict[str, str]] = []
        """What it gave beforehand."""
        self.nonce = ""
        """What has to be in a proof."""
        self.proven: list[str] = []
        """The requests that brought a proof, by the thumbprint of their key."""
        self.asked_with: dict[str, str] = {}
        """Headers of the last request."""

    def handle(self, method: str, target: str, headers: dict[str, str], body: bytes) -> web.Response:
        """Answer one request."""
        path = urlsplit(target).path
        self.asked.append(path)
        if self.is_down:
            return web.Response(status=500)
        self.asked_with = headers
        form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        if "DPoP" in headers and not self._is_proven(method, path, headers):
            return web.json_response({"error": "use_dpop_nonce"}, status=400, headers={"DPoP-Nonce": self.nonce})
        if method == "POST" and not self._is_client(headers, form):
            return web.json_response({"error": "invalid_client"}, status=401)
        match path:
            case "/.well-known/openid-configuration":
                return web.json_response(self.metadata())
            case "/jwks":
                return web.json_response({"keys": [self._public_key()]})
            case "/introspect":
                return web.json_response(self.active.get(form["token"], {"active": False}))
            case "/token":
                return self.token(form)
            case "/par":
                self.pushed.append(form)
                return web.json_response(
                    {"request_uri": f"urn:pushed:{len(self.pushed)}", "expires_in": 60}, status=201
                )
            case "/userinfo":
                return web.json_response(
                    {"sub": self.user, "name": "Jack", "token": headers["Authorization"].partition(" ")[2]}
                )
            case "/revoke":
                self.revoked.append(form["token"])
                return web.Response(status=200)
        return web.Response(status=404)

    def _is_proven(self, method: str, path: str, headers: dict[str, str]) -> bool:
        proof = headers["DPoP"]
        head = jwt.get_unverified_header(proof)
        claims = jwt.decode(proof, jwt.PyJWK(head["jwk"], algorithm=head["alg"]).key, algorithms=[head["alg"]])
        assert (head["typ"], claims["htm"], claims["htu"]) == ("dpop+jwt", method, f"{self.url}{path}")
        assert set(head["jwk"]) <= {"kty", "crv", "x", "y", "n", "e"}
        token = headers.get("Authorization", "").removeprefix("DPoP ")
        digest = base64.urlsafe_b64encode(hashlib.sha256(token.encode()).digest()).rstrip(b"=").decode()
        assert path != "/userinfo" or claims["ath"] == digest
        if claims.get("nonce", "") != self.nonce:
            return False
        canonical = json.dumps(head["jwk"], separators=(",", ":"), sort_keys=True).encode()
        self.proven.append(base64.urlsafe_b64encode(hashlib.sha256(canonical).digest()).rstrip(b"=").decode())
        return True

    def _is_client(self, headers: dict[str, str], form: dict[str, str]) -> bool:
        if "client_assertion" in form:
            key = SECRET if self.client_key is None else self.client_key
            algorithms = ["HS256", "HS512", "RS256", "RS512", "ES256", "ES512"]
            asked = f"{self.url}{self.asked[-1]}"
            claims = jwt.decode(form["client_assertion"], key, algorithms=algorithms, audience=asked)
            self.assertions.append({**claims, **jwt.get_unverified_header(form["client_assertion"])})
            return (claims["iss"], claims["sub"], form["client_id"]) == (CLIENT, CLIENT, CLIENT)
        if "client_secret" in form:
            return (form["client_id"], form["client_secret"]) == (CLIENT, SECRET)
        given = base64.b64decode(headers.get("Authorization", "").removeprefix("Basic ")).decode()
        return [unquote_plus(part) for part in given.split(":")] == [CLIENT, SECRET]

    def metadata(self) -> dict[str, str]:
        places = {"authorization": "authorize", "token": "token", "introspection": "introspect"}
        places |= {"pushed_authorization_request": "par"}
        places |= {"userinfo": "userinfo", "revocation": "revoke", "end_session": "logout"}
        endpoints = {f"{name}_endpoint": f"{self.url}/{place}" for name, place in places.items()}
        return {"issuer": self.url, "jwks_uri": f"{self.url}/jwks", **endpoints}

    def _public_key(self) -> dict[str, Any]:
        key: dict[str, Any] = jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key(), as_dict=True)
        return {**key, "kid": self.key_id, "use": "sig"}

    def token(self, form: dict[str, str]) -> web.Response:
        if form["grant_type"] == "refresh_token":
            if form["refresh_token"] != f"refresh-{self.refreshed}":
                return web.json_response({"error": "invalid_grant"}, status=400)
            self.refreshed += 1
            return self.tokens({})
        asked = self.codes.pop(form["code"], None)
        if asked is None or asked["redirect_uri"] != form["redirect_uri"]:
            return web.json_response({"error": "invalid_grant"}, status=400)
        if "code_challenge" in asked:
            digest = hashlib.sha256(form["code_verifier"].encode()).digest()
            assert base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == asked["code_challenge"]
        return self.tokens({"nonce": asked["nonce"]} if "nonce" in asked else {})

    def tokens(self, claims: dict[str, str]) -> web.Response:
        return web.json_response(
            {
                "access_token": f"access-{self.refreshed}",
                "refresh_token": f"refresh-{self.refreshed}",
                "expires_in": self.lifetime_s,
                "token_type": "DPoP" if "DPoP" in self.asked_with else "Bearer",
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
        if "request_uri" in asked:
            assert asked.keys() == {"client_id", "request_uri"}
            asked = self.pushed[int(asked["request_uri"].rpartition(":")[2]) - 1]
        assert location.startswith(f"{self.url}/authorize?")
        assert (asked["client_id"], asked["response_type"]) == (CLIENT, "code")
        self.codes[code] = asked
        return f"{urlsplit(asked['redirect_uri']).path}?code={code}&state={asked['state']}"


def decoded(header: str | None) -> Any:
    """Read JSON in base64."""
    return json.loads(base64.b64decode(header or ""))
