"""Settings of the translator about ordering certificates (ACME)."""

from pathlib import Path
from typing import Self

from pydantic import Field, field_validator, model_validator

from headgate.common.service.settings import ServiceSettings
from headgate.translator.world.resolver_settings import ResolverSettings, check_resolver_names
from headgate.translator.world.settings import ChallengeType


class AcmeSettings(ServiceSettings):
    """The authorities of which certificates are ordered: one by settings of its own, others by tables."""

    acme_directory: str = Field(
        default="letsencrypt",
        description="Authority of which certificates are ordered: the URL of its directory, letsencrypt (the default) "
        "or letsencrypt-staging, whose certificates no client trusts.",
    )
    acme_email: str = Field(
        default="",
        description="Address that the authority writes to. With it, or another directory, there is the resolver "
        "default; by default no certificates are ordered. Its terms of service count as agreed to.",
    )
    acme_challenge: ChallengeType = Field(
        default="http-01",
        description="How the authority is shown that a name is ours: http-01, the default, tls-alpn-01 or dns-01.",
    )
    acme_dns_command: list[str] = Field(
        default=[],
        description="Program and its arguments that set and remove TXT records for dns-01; none by default.",
    )
    acme_ca_file: Path | None = Field(
        default=None, description="Authorities for TLS to the directory, PEM; by default those of certifi."
    )
    acme_eab_key_id: str = Field(
        default="",
        description="Identifier of an account that is there already with the authority, to which ours is bound "
        "(external account binding, RFC 8555, section 7.3.4); none by default.",
    )
    acme_eab_key_file: Path | None = Field(
        default=None, description="File with the key that the authority gave for it, in base64url; none by default."
    )
    acme_retry_s: float = Field(
        default=300.0,
        gt=0,
        description="Seconds after a first failed order; each further failure doubles them, up to a day. 300 stays "
        "far under Let's Encrypt's 5 failures of a name in an hour once they have doubled twice.",
    )
    acme: dict[str, ResolverSettings] = Field(
        default={},
        description="Further resolvers: tables [acme.NAME] of the TOML file (docs/acme.md); none by default.",
    )
    acme_key_file: Path | None = Field(
        default=None,
        description="Key to which the keys of accounts are sealed, as gateway.key is for gateways; a pair of "
        "translators needs the same. By default translator.key in the data directory, made on first use.",
    )

    @field_validator("acme")
    @classmethod
    def _check_resolvers(cls, value: dict[str, ResolverSettings]) -> dict[str, ResolverSettings]:
        check_resolver_names(set(value))
        return value

    @model_validator(mode="after")
    def _check_acme(self) -> Self:
        assert self.resolvers is not None  # raises ValueError for what the default resolver cannot be
        return self

    @property
    def resolvers(self) -> dict[str, ResolverSettings]:
        """The authorities of which certificates are ordered, by name."""
        if not self.acme_email and self.acme_directory == "letsencrypt":
            return self.acme
        default = ResolverSettings(
            directory=self.acme_directory,
            email=self.acme_email,
            challenge=self.acme_challenge,
            dns_command=tuple(self.acme_dns_command),
            ca_file=self.acme_ca_file,
            eab_key_id=self.acme_eab_key_id,
            eab_key_file=self.acme_eab_key_file,
            retry_s=self.acme_retry_s,
        )
        return {"default": default, **self.acme}
