"""Configuration of `wolf-rbac`, and of a consumer's credentials for it."""

from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from headgate.common.plugins.authentication.authenticator import CredentialConfig
from headgate.common.plugins.config import PluginConfig
from headgate.common.plugins.fields import HEADER_NAME, check_url


def _checked_server(text: str) -> str:
    check_url(text)
    return text.rstrip("/")


def _checked_prefix(text: str) -> str:
    if not HEADER_NAME.fullmatch(text):
        raise ValueError(f"{text[:80]!r} is not the beginning of a header's name")
    return text


class WolfRbacConfig(PluginConfig, plugin="wolf-rbac"):
    """Fields of `wolf-rbac`: none, all is said of the consumer."""


class WolfRbacCredential(CredentialConfig):
    """A consumer's `wolf-rbac`."""

    identified_by: ClassVar[str] = "appid"

    appid: str = Field(default="unset", min_length=1)
    """Application in wolf; tokens name it."""
    server: Annotated[str, AfterValidator(_checked_server)] = "http://127.0.0.1:12180"
    """Where wolf is."""
    ssl_verify: bool = True
    """Check its certificate."""
    header_prefix: Annotated[str, AfterValidator(_checked_prefix)] = "X-"
    """Upstream and client learn the user from `X-UserId`, `X-Username` and `X-Nickname`."""
