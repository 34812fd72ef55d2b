"""How `openid-connect` keeps the sessions of browsers."""

from typing import Literal, Self

from pydantic import Field, model_validator

from headgate.common.plugins.authentication.authenticator import CredentialSecret
from headgate.common.plugins.config import SEALED, PluginConfig, SecretText

_MIN_SECRET = 16


class SessionRedisConfig(PluginConfig):
    """The Redis that keeps sessions."""

    host: str = Field(default="127.0.0.1", min_length=2)
    port: int = Field(default=6379, ge=1, le=65535)
    username: str | None = Field(default=None, min_length=1)
    password: SecretText | None = None
    database: int = Field(default=0, ge=0)
    prefix: str = Field(default="sessions", pattern="^[!-~]*$", max_length=256)
    """What the keys begin with."""
    ssl: bool = False
    ssl_verify: bool = True
    server_name: str | None = None
    """Only the `host` itself: certificates are checked by that."""
    connect_timeout: int = Field(default=1000, ge=1)
    """Milliseconds; an answer is waited for as long as this and the next two say together."""
    send_timeout: int = Field(default=1000, ge=1)
    read_timeout: int = Field(default=1000, ge=1)
    keepalive_timeout: int = Field(default=10000, ge=1000)
    """Taken for compatibility: one connection is kept for all."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.server_name not in (None, self.host):
            raise ValueError("server_name differs from host; name the server in host as its certificate does")
        return self

    @property
    def timeout_s(self) -> float:
        """Seconds in which Redis has to answer."""
        return (self.connect_timeout + self.send_timeout + self.read_timeout) / 1000


class SessionCookieConfig(PluginConfig):
    """As configurations of old have it."""

    lifetime: int | None = Field(default=None, ge=0)
    """As `absolute_timeout`, where that is not set."""


class SessionConfig(PluginConfig):
    """How the session of a browser is kept: sealed, where every gateway can open it."""

    secret: CredentialSecret
    """At least 16 characters; all gateways have the same."""
    storage: Literal["cookie", "redis"] = "cookie"
    """`cookie`: with the browser. `redis`: there, and the browser has its number: it ends for every copy of the cookie
    when the user logs out."""
    redis: SessionRedisConfig | None = None
    """Needed with `redis`."""
    cookie_name: str = Field(default="session", pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$", max_length=64)
    cookie_path: str = Field(default="/", pattern=r"^/[!-:<-~]*$")
    cookie_domain: str | None = Field(default=None, pattern=r"^[A-Za-z0-9.-]+$")
    cookie_secure: bool | None = None
    """By default where the request came over HTTPS."""
    cookie_http_only: bool = True
    cookie_same_site: Literal["Lax", "Strict", "None", "Default"] = "Lax"
    """`Default`: as the browser does it."""
    idling_timeout: int = Field(default=900, ge=0)
    """Seconds without a request after which it ends; 0: never."""
    rolling_timeout: int = Field(default=3600, ge=0)
    """Seconds after which its tokens have to be renewed, or the user asked again; 0: never."""
    absolute_timeout: int = Field(default=86400, ge=0)
    """Seconds after which it ends in any case; 0: never."""
    cookie: SessionCookieConfig = SessionCookieConfig()

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.secret is not SEALED and len(self.secret.reveal()) < _MIN_SECRET:
            raise ValueError(f"secret needs at least {_MIN_SECRET} characters")
        if self.storage == "redis":
            if self.redis is None:
                raise ValueError("storage redis needs redis.host")
            if not (self.idling_timeout or self.age_s):
                raise ValueError("storage redis needs idling_timeout or absolute_timeout, or sessions would never go")
        return self

    @property
    def age_s(self) -> int:
        """Seconds after which a session ends in any case; 0: never."""
        lifetime = self.cookie.lifetime
        return self.absolute_timeout if lifetime is None or "absolute_timeout" in self.model_fields_set else lifetime


class SessionContents(PluginConfig):
    """What of a login is kept; what is not named is not."""

    access_token: bool = False
    """With the token for renewal."""
    id_token: bool = False
    """Its claims."""
    enc_id_token: bool = False
    """The token itself; kept too where `set_raw_id_token_header` wants it."""
    user: bool = False
    """What the provider says of the user."""
