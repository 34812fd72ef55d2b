"""Configuration of `cas-auth`."""

from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from headgate.common.plugins.authentication.authenticator import CredentialSecret
from headgate.common.plugins.config import SEALED, PluginConfig
from headgate.common.plugins.fields import HeaderName, check_url

_MIN_SECRET = 32


class CasCookieConfig(PluginConfig):
    """The cookies that browsers get."""

    secret: CredentialSecret
    """At least 32 characters; all gateways have the same."""
    secure: bool = True
    """Over HTTPS only."""
    samesite: Literal["Lax", "None"] = "Lax"

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.secret is not SEALED and len(self.secret.reveal()) < _MIN_SECRET:
            raise ValueError(f"secret needs at least {_MIN_SECRET} characters")
        if self.samesite == "None" and not self.secure:
            raise ValueError("browsers take samesite None with secure alone")
        return self


class CasAuthConfig(PluginConfig, plugin="cas-auth"):
    """Fields of `cas-auth`."""

    idp_uri: str
    """Of the CAS server: `/login`, `/logout` and `/serviceValidate` are below it."""
    cas_callback_uri: str
    """Where it sends browsers back: a path of the route, or a whole URL with such a path. With a path the server
    hears of the host that the client has named."""
    logout_uri: str
    """A path of the route, or a whole URL, that ends the session here and at the CAS server."""
    cookie: CasCookieConfig
    validate_path: str = Field(default="/serviceValidate", pattern="^/[!-~]*$")
    """Below `idp_uri`; `/p3/serviceValidate` has attributes (CAS 3)."""
    user_header: HeaderName | None = None
    """Header in which the upstream gets the user's name. What the client sends under this name and the following is
    dropped."""
    attribute_headers: dict[HeaderName, str] = Field(default_factory=dict, max_length=32)
    """Headers in which it gets attributes, by their names; several values have commas between them."""
    idle_timeout: int = Field(default=3600, ge=60)
    """Seconds without a request after which a session ends."""
    ssl_verify: bool = True
    """Check the certificate of the CAS server."""
    timeout: int = Field(default=5000, ge=1, le=600_000)
    """Milliseconds in which it has to answer."""
    max_req_body_size: int = Field(default=1 << 20, ge=1)
    """Of its message that a session has ended."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        check_url(self.idp_uri)
        for name in ("cas_callback_uri", "logout_uri"):
            place = getattr(self, name)
            if not place.startswith("/"):
                check_url(place)
        if self.callback_path == self.logout_path:
            raise ValueError("cas_callback_uri and logout_uri need different paths")
        return self

    @property
    def callback_path(self) -> str:
        """Path of `cas_callback_uri`."""
        return urlsplit(self.cas_callback_uri).path or "/"

    @property
    def logout_path(self) -> str:
        """Path of `logout_uri`."""
        return urlsplit(self.logout_uri).path or "/"
