"""ApisixConsumer: who uses routes, and how that is known."""

from typing import Generic, TypeVar

from pydantic import Field

from headgate.common.plugins.authentication.jwt_auth import Algorithm
from headgate.translator.dialects.apisix.models.fields import LocalSecret
from headgate.translator.dialects.apisix.models.plugin import Plugin
from headgate.translator.manifests.models import KEEPS_UNKNOWN, Model, Name

V = TypeVar("V", bound=Model)


class KeyAuthValue(Model):
    """A key."""

    key: Name = Field(description="The key.")


class BasicAuthValue(Model):
    """A name and a password."""

    username: Name = Field(description="Name of the user.")
    password: Name = Field(description="The password.")


class JwtAuthValue(Model):
    """What tokens are signed with."""

    key: Name = Field(description="Identifies the consumer: the claim `key` of its tokens.")
    secret: str = Field(default="", description="Shared secret, for HS256 and HS512.")
    public_key: str = Field(default="", alias="public_key", description="Key of the signer in PEM, for other methods.")
    private_key: str = Field(default="", alias="private_key", description="Not needed: tokens are checked, not made.")
    algorithm: Algorithm = Field(default="HS256", description="How tokens are signed; HS256 by default.")
    exp: int = Field(default=0, ge=0, description="Lifetime of tokens in seconds; 86400 by default.")
    base64_secret: bool = Field(default=False, alias="base64_secret", description="The secret is written in base64.")
    lifetime_grace_period: int = Field(
        default=0, ge=0, alias="lifetime_grace_period", description="Seconds by which clocks may differ."
    )


class WolfRbacValue(Model):
    """A wolf server."""

    server: str = Field(default="", description="Address of the wolf server.")
    appid: str = Field(default="", description="Identifier of the application there.")
    header_prefix: str = Field(default="", alias="header_prefix", description="Of the headers with who the user is.")


class HmacAuthValue(Model):
    """What requests are signed with."""

    key_id: str = Field(default="", alias="key_id", description="Identifies the consumer.")
    secret_key: str = Field(default="", alias="secret_key", description="The secret.")
    access_key: str = Field(default="", alias="access_key", description="Older name of key_id.")
    algorithm: str = Field(default="", description="Of older releases; which are allowed is said on the route.")
    clock_skew: int = Field(default=0, ge=0, alias="clock_skew", description="Of older releases; said on the route.")
    signed_headers: tuple[str, ...] = Field(
        default=(), alias="signed_headers", description="Of older releases; said on the route."
    )
    keep_headers: bool = Field(default=False, alias="keep_headers", description="Of older releases.")
    encode_uri_params: bool = Field(default=False, alias="encode_uri_params", description="Of older releases.")
    validate_request_body: bool = Field(
        default=False, alias="validate_request_body", description="Of older releases; said on the route."
    )
    max_req_body: int = Field(
        default=0, ge=0, alias="max_req_body", description="Of older releases; said on the route."
    )


class LdapAuthValue(Model):
    """An entry of a directory."""

    user_dn: Name = Field(alias="user_dn", description="Distinguished name of the user.")


class Credential(Model, Generic[V]):
    """A credential, written here or in a Secret."""

    secret_ref: LocalSecret | None = Field(default=None, description="Secret with the same fields as keys.")
    value: V | None = Field(default=None, description="The credential itself.")


class AuthParameter(Model):
    """How the consumer is known; of several the first counts, in this order."""

    model_config = KEEPS_UNKNOWN

    key_auth: Credential[KeyAuthValue] | None = Field(default=None, description="By a key.")
    basic_auth: Credential[BasicAuthValue] | None = Field(default=None, description="By a name and a password.")
    jwt_auth: Credential[JwtAuthValue] | None = Field(default=None, description="By a signed token.")
    wolf_rbac: Credential[WolfRbacValue] | None = Field(
        default=None, alias="wolfRBAC", description="By a wolf server; refused."
    )
    hmac_auth: Credential[HmacAuthValue] | None = Field(default=None, description="By the requests' signatures.")
    ldap_auth: Credential[LdapAuthValue] | None = Field(default=None, description="By a directory.")


class ConsumerSpec(Model):
    """Who uses routes."""

    ingress_class_name: str = Field(default="", description="Class of the object; the default class without one.")
    auth_parameter: AuthParameter | None = Field(default=None, description="How the consumer is known.")
    plugins: tuple[Plugin, ...] = Field(default=(), description="Plugins of the consumer's requests.")
