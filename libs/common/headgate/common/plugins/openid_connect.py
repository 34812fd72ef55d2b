"""What `openid-connect` is told."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from headgate.common.plugins.authentication import CredentialSecret
from headgate.common.plugins.config import SEALED, PluginConfig
from headgate.common.plugins.fields import HeaderValue, check_url
from headgate.common.plugins.jwt_auth import Algorithm
from headgate.common.plugins.request_validation import Schema

_MIN_SECRET = 16


def _checked_url(text: str) -> str:
    check_url(text)
    return text


def _checked_return(text: str) -> str:
    if not text.startswith("/"):
        check_url(text)
    return text


Url = Annotated[str, AfterValidator(_checked_url)]
UrlOrPath = Annotated[str, AfterValidator(_checked_return)]


class SessionConfig(PluginConfig):
    """How the session of a browser is kept: sealed, in its own cookies, so that every gateway can open it."""

    secret: CredentialSecret
    """At least 16 characters; all gateways have the same."""
    storage: Literal["cookie"] = "cookie"
    cookie_name: str = Field(default="session", pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$", max_length=64)
    cookie_path: str = Field(default="/", pattern=r"^/[!-:<-~]*$")
    cookie_domain: str | None = Field(default=None, pattern=r"^[A-Za-z0-9.-]+$")
    cookie_secure: bool | None = None
    """By default where the request came over HTTPS."""
    cookie_http_only: bool = True
    cookie_same_site: Literal["Lax", "Strict", "None"] = "Lax"
    idling_timeout: int = Field(default=900, ge=0)
    """Seconds without a request after which it ends; 0: never."""
    rolling_timeout: int = Field(default=3600, ge=0)
    """Seconds after which its tokens have to be renewed, or the user asked again; 0: never."""
    absolute_timeout: int = Field(default=86400, ge=0)
    """Seconds after which it ends in any case; 0: never."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.secret is not SEALED and len(self.secret.reveal()) < _MIN_SECRET:
            raise ValueError(f"secret needs at least {_MIN_SECRET} characters")
        return self


class IssuerRule(PluginConfig):
    """Whose tokens are taken."""

    valid_issuers: tuple[str, ...] = ()
    """By default the provider's own."""


class AudienceRule(PluginConfig):
    """For whom tokens have to be."""

    claim: str = Field(default="aud", min_length=1)
    required: bool = False
    match_with_client_id: bool = False
    """It has to be, or to have in it, `client_id`."""


class ClaimValidator(PluginConfig):
    """What claims have to say."""

    issuer: IssuerRule = IssuerRule()
    audience: AudienceRule = AudienceRule()


class OpenidConnectConfig(PluginConfig):
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
    """Take tokens in `Authorization` only; nobody is sent to the provider."""
    realm: HeaderValue = Field(default="apisix", max_length=256)
    use_jwks: bool = False
    """Check tokens with the keys that the provider publishes."""
    public_key: str | None = Field(default=None, pattern="^-----BEGIN ")
    """Check tokens with this key, in PEM."""
    token_signing_alg_values_expected: Algorithm | None = None
    """The only algorithm that is taken; by default all that have a public key."""
    introspection_endpoint: Url | None = None
    """Ask the provider about tokens (RFC 7662); without `use_jwks` and `public_key` that of `discovery`."""
    introspection_endpoint_auth_method: Literal["client_secret_basic", "client_secret_post"] = "client_secret_basic"
    introspection_interval: int = Field(default=0, ge=0)
    """Seconds that an answer is remembered for at most, but not beyond what it says itself; 0: as it says itself."""
    introspection_expiry_claim: str = Field(default="exp", min_length=1)
    claim_validator: ClaimValidator = ClaimValidator()
    claim_schema: Schema | None = None
    """JSON Schema of a token's claims, and of what a session has: `user`, `id_token` (claims both) and `access_token`.
    Others are refused with 401."""
    required_scopes: tuple[str, ...] = ()
    """Without them the answer is 403."""
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
    token_endpoint_auth_method: Literal["client_secret_basic", "client_secret_post"] = "client_secret_basic"
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
    session: SessionConfig | None = None
    """Needed unless `bearer_only`."""

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
    accept_none_alg: Literal[False] = False
    """Tokens without a signature are never taken."""
    accept_unsupported_alg: bool = True
    """Taken for compatibility: what cannot be checked is refused."""
    cache_segment: str | None = None
    """This and the next are taken for compatibility."""
    jwt_verification_cache_ignore: bool = False

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.bearer_only and self.session is None:
            raise ValueError("session.secret is required unless bearer_only is set")
        expected = self.token_signing_alg_values_expected
        if expected is not None and expected.startswith("HS") and self.client_secret is None:
            raise ValueError(f"algorithm {expected} needs client_secret")
        return self

    @property
    def checks_itself(self) -> bool:
        """Tokens are checked here, by their signature, and the provider is not asked about them."""
        return self.use_jwks or self.public_key is not None

    @property
    def takes_bearer_tokens(self) -> bool:
        """A token in `Authorization` is looked at."""
        return self.bearer_only or self.checks_itself or self.introspection_endpoint is not None
