"""Where the tables are kept, as services are told."""

from dataclasses import replace
from pathlib import Path
from typing import Self

from pydantic import Field, SecretStr, field_validator, model_validator

from headgate.common.service.settings import ServiceSettings
from headgate.common.stores.redis.target import Login, RedisTarget, parse_redis_url

ON_NATS = "nats"


class StoreSettings(ServiceSettings):
    """Settings of every service that reads or writes tables."""

    store: str = Field(
        default=ON_NATS,
        description="Where tables and heartbeats are: nats, the default, or a URL of Redis: redis://host:6379/0, "
        "rediss:// for TLS, redis+sentinel://host:26379,host:26379/service/0.",
    )
    store_user: str = Field(default="", description="User of the Redis servers; empty by default: that of the URL.")
    store_password: SecretStr = Field(
        default=SecretStr(""),
        description="Password for the Redis servers; better given by environment than in the URL.",
    )
    store_sentinel_user: str = Field(default="", description="User of the Sentinels; empty by default.")
    store_sentinel_password: SecretStr = Field(
        default=SecretStr(""), description="Password for the Sentinels; empty by default: they rarely have one."
    )
    store_ca_file: Path | None = Field(
        default=None, description="Authorities for TLS to Redis, PEM, besides the system's; none by default."
    )
    store_certificate_file: Path | None = Field(
        default=None, description="Certificate that is shown to Redis, PEM, if it asks for one; none by default."
    )
    store_key_file: Path | None = Field(default=None, description="Key of that certificate, PEM; none by default.")

    @field_validator("store")
    @classmethod
    def _check_store(cls, value: str) -> str:
        if value != ON_NATS:
            parse_redis_url(value)
        return value

    @model_validator(mode="after")
    def _check_certificate(self) -> Self:
        if (self.store_certificate_file is None) != (self.store_key_file is None):
            raise ValueError("store_certificate_file and store_key_file go together: give both or neither")
        return self

    @property
    def redis(self) -> RedisTarget | None:
        """Where Redis is; None if tables are on NATS."""
        if self.store == ON_NATS:
            return None
        target = parse_redis_url(self.store)
        password = self.store_password.get_secret_value()
        sentinel_password = self.store_sentinel_password.get_secret_value()
        return replace(
            target,
            login=Login(self.store_user or target.login.user, password or target.login.password),
            sentinel_login=Login(self.store_sentinel_user, sentinel_password),
            ca_file=self.store_ca_file,
            certificate_file=self.store_certificate_file,
            key_file=self.store_key_file,
        )
