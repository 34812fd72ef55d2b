"""Configuration of `openid-connect`."""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from headgate.common.plugins.authentication.authenticator import CredentialSecret
from headgate.common.plugins.authentication.jwt_auth import Algorithm
from headgate.common.plugins.authentication.openid_client import (
    AddonHeader,
    AssertionAlgorithm,
    ClientAuth,
    DpopConfig,
    ParConfig,
    PrivateKey,
    ProxyOpts,
    Url,
    checked_url,
)
from headgate.common.plugins.authentication.openid_session import SessionConfig, SessionContents
from headgate.common.plugins.config import PluginConfig
from headgate.common.plugins.fields import HeaderValue
from headgate.common.plugins.transformation.request_validation import Schema

_FLAT = {
    "use_par": "par.enabled",
    "pushed_authorization_request_endpoint": "par.endpoint",
    "pushed_authorization_request_endpoint_auth_method": "par.endpoint_auth_method",
    "use_dpop": "dpop.enabled",
    "dpop_signing_alg": "dpop.signing_alg",
    "dpop_private_key": "dpop.private_key",
    "dpop_public_jwk": "dpop.public_jwk",
}
"""Names that the documentation of Apache APISIX refuses too, and where these things are said."""


def _checked_return(text: str) -> str:
    if not text.startswith("/"):
        checked_url(text)
    return text


def _refused_unsigned(value: bool) -> bool:
    if value:
        raise ValueError("must be false: anybody could write a token that is not signed; have the provider sign")
    return value


UrlOrPath = Annotated[str, AfterValidator(_checked_return)]


class IssuerRule(PluginConfig):
    """Whose tokens are taken."""

    valid_issuers: tuple[str, ...] = ()
    """By default the provider's own."""


class AudienceRule(PluginConfig):
    """For whom tokens have to be."""

    claim: str = Field(default="aud", min_length=1)
    required: bool = False
    match_with_client_id: bool = False
    """It has to be there, and to be `client_id` or to have it in it."""


class ClaimValidator(PluginConfig):
    """What claims have to say."""

    issuer: IssuerRule = IssuerRule()
    audience: AudienceRule = AudienceRule()


class OpenidConnectConfig(PluginConfig, plugin="openid-connect"):
    """Fields of `openid-connect`."""

    client_id: str = Field(min_length=1)
    client_secret: CredentialSecret | None = None
    discovery: Url
    """Where the provider says what it is: `https://id.example/.well-known/openid-configuration`."""
    scope: str = Field(default="openid", min_length=1)
    """Asked for, with spaces between."""
    ssl_verify: bool = True
    timeout: float = Field(default=3, gt=0, le=600)
    """Seconds for each question to the provider."""

    bearer_only: bool = False
    """Take tokens in `Authorization` only; no client is sent to the provider."""
    realm: HeaderValue = Field(default="apisix", max_length=256)
    use_jwks: bool = False
    """Check tokens with the keys that the provider publishes."""
    public_key: str | None = Field(default=None, pattern="^-----BEGIN ")
    """Check tokens with this key, in PEM."""
    token_signing_alg_values_expected: Algorithm | None = None
    """The only algorithm that is taken; by default all that have a public key."""
    introspection_endpoint: Url | None = None
    """Ask the provider about tokens (RFC 7662); without `use_jwks` and `public_key` that of `discovery`."""
    introspection_endpoint_auth_method: ClientAuth = "client_secret_basic"
    introspection_addon_headers: tuple[AddonHeader, ...] = ()
    """Headers of the request that go along when the provider is asked about its token."""
    introspection_interval: int = Field(default=0, ge=0)
    """Seconds that an answer is remembered for at most, but not beyond what it says itself; 0: as it says itself."""
    introspection_expiry_claim: str = Field(default="exp", min_length=1)
    claim_validator: ClaimValidator = ClaimValidator()
    claim_schema: Schema | None = None
    """JSON Schema of a token's claims, and of what a session has: `user`, `id_token` (claims both) and `access_token`.
    Others are refused with 401."""
    required_scopes: tuple[str, ...] = ()
    """Without them the answer is 403. Those of a session are in the provider's answer, in its access token, or else in
    its ID token."""
    iat_slack: int = Field(default=120, ge=0)
    """Seconds by which clocks may differ."""
    jwk_expires_in: int = Field(default=86400, ge=1)
    """Seconds after which the provider's keys are fetched again; an unknown key has them fetched at once."""

    unauth_action: Literal["auth", "deny", "pass"] = "auth"
    """What happens to a request without session and token: it is sent to the provider, gets a 401, or passes. What a
    page fetches (`Sec-Fetch-Mode` other than `navigate`) gets a 401 instead of being sent."""
    redirect_uri: UrlOrPath | None = None
    """Where the provider sends browsers back to: a URL or a path that this route takes. By default the path of the
    request with `/.apisix/redirect` behind it."""
    logout_path: str = Field(default="/logout", pattern="^/")
    post_logout_redirect_uri: UrlOrPath | None = None
    revoke_tokens_on_logout: bool = False
    token_endpoint_auth_method: ClientAuth = "client_secret_basic"
    """As it says; another one is never tried."""
    client_rsa_private_key: PrivateKey | None = None
    """For `private_key_jwt`, in PEM."""
    client_rsa_private_key_id: str | None = Field(default=None, min_length=1)
    """What the provider calls it."""
    client_jwt_assertion_expires_in: int = Field(default=60, ge=1)
    """Seconds."""
    client_jwt_assertion_alg: AssertionAlgorithm | None = None
    """By default RS256 with the key and HS256 with the secret."""
    client_jwt_assertion_audience: str | None = Field(default=None, min_length=1)
    """By default the endpoint."""
    par: ParConfig = ParConfig()
    dpop: DpopConfig = DpopConfig()
    proxy_opts: ProxyOpts = ProxyOpts()
    use_pkce: bool = False
    """Bind the answer to the browser that asked (RFC 7636)."""
    use_nonce: bool = False
    authorization_params: dict[str, str] = Field(default_factory=dict)
    """More that the provider is asked with."""
    force_reauthorize: bool = False
    """Ask the provider again rather than renew."""
    renew_access_token_on_expiry: bool = True
    access_token_expires_in: int = Field(default=3600, ge=1)
    """Seconds, where the provider does not say."""
    access_token_expires_leeway: int = Field(default=0, ge=0)
    """Seconds before their end in which tokens are renewed."""
    refresh_session_interval: int | None = Field(default=None, ge=1)
    """As `session.rolling_timeout`; the shorter one counts."""
    session: SessionConfig | None = None
    """Needed unless `bearer_only`."""
    session_contents: SessionContents | None = None
    """By default all is kept."""

    set_access_token_header: bool = True
    """The upstream gets the token in `X-Access-Token`."""
    access_token_in_authorization_header: bool = False
    """In `Authorization` instead."""
    set_id_token_header: bool = True
    """The claims of the ID token in `X-ID-Token`, JSON in base64."""
    set_raw_id_token_header: bool = False
    """The ID token itself in `X-Raw-ID-Token`."""
    set_userinfo_header: bool = True
    """What the provider says of the user, or the claims of the token, in `X-Userinfo`, JSON in base64."""
    set_refresh_token_header: bool = False
    """The token for renewal in `X-Refresh-Token`."""
    accept_none_alg: Annotated[bool, AfterValidator(_refused_unsigned)] = False
    """Only `false`: tokens without a signature are never taken."""
    accept_unsupported_alg: bool = True
    """Taken for compatibility: what cannot be checked is refused."""
    cache_segment: str | None = None
    """This and the next are taken for compatibility."""
    jwt_verification_cache_ignore: bool = False

    @model_validator(mode="before")
    @classmethod
    def _refuse_flat(cls, written: Any) -> Any:
        for name in written if isinstance(written, dict) else ():
            if name in _FLAT:
                raise ValueError(f"{name} is not taken; say it in {_FLAT[name]}")
        return written

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.bearer_only and self.session is None:
            raise ValueError("session.secret is required unless bearer_only is set")
        expected = self.token_signing_alg_values_expected
        if expected is not None and expected.startswith("HS") and self.client_secret is None:
            raise ValueError(f"algorithm {expected} needs client_secret")
        for name, method in self._methods():
            self._check_method(name, method)
        return self

    def _methods(self) -> list[tuple[str, ClientAuth]]:
        """Return how the provider is told who asks, by the fields that say so, as far as it is ever asked."""
        methods: list[tuple[str, ClientAuth]] = []
        if self.takes_bearer_tokens and not self.checks_itself:
            methods.append(("introspection_endpoint_auth_method", self.introspection_endpoint_auth_method))
        if not self.bearer_only:
            methods.append(("token_endpoint_auth_method", self.token_endpoint_auth_method))
            if self.par.enabled and self.par.endpoint_auth_method is not None:
                methods.append(("par.endpoint_auth_method", self.par.endpoint_auth_method))
        return methods

    def _check_method(self, name: str, method: ClientAuth) -> None:
        algorithm = self.client_jwt_assertion_alg or ""
        if method == "private_key_jwt":
            if self.client_rsa_private_key is None:
                raise ValueError(f"{name} private_key_jwt needs client_rsa_private_key")
            if algorithm.startswith("HS"):
                raise ValueError(f"{name} private_key_jwt cannot be signed by {algorithm}")
        if method == "client_secret_jwt":
            if self.client_secret is None:
                raise ValueError(f"{name} client_secret_jwt needs client_secret")
            if algorithm and not algorithm.startswith("HS"):
                raise ValueError(f"{name} client_secret_jwt cannot be signed by {algorithm}")

    @property
    def checks_itself(self) -> bool:
        """Tokens are checked here, by their signature, and the provider is not asked about them."""
        return self.use_jwks or self.public_key is not None

    @property
    def takes_bearer_tokens(self) -> bool:
        """A token in `Authorization` is looked at."""
        return self.bearer_only or self.checks_itself or self.introspection_endpoint is not None
