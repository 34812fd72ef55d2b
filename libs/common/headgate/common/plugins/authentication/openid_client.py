"""How `openid-connect` speaks to a provider: by which proxy, and by what it is known there."""

from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, JsonValue, model_validator

from headgate.common.plugins.authentication.authenticator import CredentialSecret
from headgate.common.plugins.config import SEALED, PluginConfig, SecretText
from headgate.common.plugins.fields import check_url, checked_name, checked_value
from headgate.common.secret import Secret

ClientAuth = Literal["client_secret_basic", "client_secret_post", "client_secret_jwt", "private_key_jwt"]
"""By a secret in a header or in the form, or by a token (RFC 7523) that is signed with the secret or with a key."""
AssertionAlgorithm = Literal["HS256", "HS512", "RS256", "RS512", "ES256", "ES512"]
_OWN_HEADERS = ("accept", "authorization", "content-type", "dpop")


def checked_url(text: str) -> str:
    """Return a text that is a URL. Raises ValueError."""
    check_url(text)
    return text


def _checked_proxy(text: str) -> str:
    check_url(text)
    if urlsplit(text).scheme != "http":
        raise ValueError("a proxy is spoken to over HTTP: http://proxy:3128")
    return text


def _checked_authorization(value: Secret[str]) -> Secret[str]:
    if value is not SEALED:
        checked_value(value.reveal())
    return value


def _checked_addon(name: str) -> str:
    if checked_name(name).lower() in _OWN_HEADERS:
        raise ValueError(f"header {name} is written by the gateway alone in questions about tokens")
    return name


def _checked_pem(value: Secret[str]) -> Secret[str]:
    if value is not SEALED and not value.reveal().lstrip().startswith("-----BEGIN "):
        raise ValueError("is no private key in PEM: -----BEGIN PRIVATE KEY-----")
    return value


Url = Annotated[str, AfterValidator(checked_url)]
AddonHeader = Annotated[str, AfterValidator(_checked_addon)]
PrivateKey = Annotated[CredentialSecret, AfterValidator(_checked_pem)]
_Proxy = Annotated[str, AfterValidator(_checked_proxy)]
_ProxyLogin = Annotated[SecretText, AfterValidator(_checked_authorization)]


class ProxyOpts(PluginConfig):
    """The proxies by which the provider is reached."""

    http_proxy: _Proxy | None = None
    """For a provider at `http://`."""
    https_proxy: _Proxy | None = None
    """For one at `https://`, by CONNECT; it sees nothing of what is said."""
    http_proxy_authorization: _ProxyLogin | None = None
    """For the proxy: `Basic`, and user and password in base64."""
    https_proxy_authorization: _ProxyLogin | None = None
    no_proxy: str = ""
    """Hosts, with commas between, that are asked directly, and those below them; `*`: all."""


class ParConfig(PluginConfig):
    """What browsers are sent with is given to the provider beforehand (RFC 9126)."""

    enabled: bool = False
    endpoint: Url | None = None
    """By default the provider's own."""
    endpoint_auth_method: ClientAuth | None = None
    """By default as `token_endpoint_auth_method`."""


class DpopConfig(PluginConfig):
    """Tokens are bound to a key of the gateways' (RFC 9449)."""

    enabled: bool = False
    signing_alg: Literal["ES256", "RS256", "PS256"] = "ES256"
    private_key: PrivateKey | None = None
    """In PEM; all gateways have the same."""
    public_jwk: dict[str, JsonValue] | None = None
    """Its public half, as a JWK."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.public_jwk is not None and self.public_jwk.keys() & {"d", "p", "q", "dp", "dq", "qi", "oth", "k"}:
            raise ValueError("public_jwk has private parts in it; take the public half")
        if self.enabled and (self.private_key is None or self.public_jwk is None):
            raise ValueError("dpop needs private_key and public_jwk")
        return self
