"""What operators write of the authorities of which certificates are ordered (ACME)."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Final, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from headgate.translator.world.settings import ChallengeType

DIRECTORIES: Final = {
    "letsencrypt": "https://acme-v02.api.letsencrypt.org/directory",
    "letsencrypt-staging": "https://acme-staging-v02.api.letsencrypt.org/directory",
}
_NAME = re.compile(r"[A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?")


class ResolverSettings(BaseModel):
    """One authority, with an account of ours."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    directory: str = Field(default="letsencrypt", description="URL, letsencrypt or letsencrypt-staging.")
    email: str = Field(default="", description="Where the authority writes to; none by default.")
    challenge: ChallengeType = Field(default="http-01", description="How it is shown that a name is ours.")
    dns_command: tuple[str, ...] = Field(
        default=(), description="Program and arguments that set and remove TXT records, for dns-01."
    )
    ca_file: Path | None = Field(default=None, description="Authorities for TLS to the directory, PEM.")
    eab_key_id: str = Field(
        default="", description="Identifier of an account that is there already with the authority; none by default."
    )
    eab_key_file: Path | None = Field(
        default=None, description="Key that the authority gave for that account, in base64url."
    )
    retry_s: float = Field(
        default=300.0, gt=0, description="Seconds after a first failure; each further one doubles them, up to a day."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.url.startswith("https://"):
            known = ", ".join(DIRECTORIES)
            raise ValueError(f"directory must be an https:// URL or one of {known}, but is {self.directory[:80]!r}")
        if self.challenge == "dns-01" and not self.dns_command:
            raise ValueError("dns-01 needs dns_command")
        if bool(self.eab_key_id) != (self.eab_key_file is not None):
            raise ValueError("eab_key_id and eab_key_file belong together: the authority gives both, or none")
        return self

    @property
    def url(self) -> str:
        """URL of the directory."""
        return DIRECTORIES.get(self.directory, self.directory)

    @property
    def first_pause(self) -> timedelta:
        """Time after a first failure."""
        return timedelta(seconds=self.retry_s)


def check_resolver_names(names: "set[str]") -> None:
    """Raise ValueError if a resolver has a name that no annotation can have."""
    for name in sorted(names):
        if not _NAME.fullmatch(name) or name == "true":
            raise ValueError(f"{name[:80]!r} cannot be the name of a resolver: letters, digits, - _ . and not true")
