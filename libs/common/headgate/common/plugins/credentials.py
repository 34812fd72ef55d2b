"""What authentication plugins know of a consumer, by plugin."""

from collections.abc import Mapping
from types import MappingProxyType

from headgate.common.plugins.authentication.authenticator import CredentialConfig
from headgate.common.plugins.authentication.basic_auth import BasicAuthCredential
from headgate.common.plugins.authentication.hmac_auth import HmacAuthCredential
from headgate.common.plugins.authentication.jwe_decrypt import JweDecryptCredential
from headgate.common.plugins.authentication.jwt_auth import JwtAuthCredential
from headgate.common.plugins.authentication.key_auth import KeyAuthCredential
from headgate.common.plugins.authentication.ldap_auth import LdapAuthCredential
from headgate.common.plugins.authentication.wolf_rbac import WolfRbacCredential

CREDENTIALS: Mapping[str, type[CredentialConfig]] = MappingProxyType(
    {
        "basic-auth": BasicAuthCredential,
        "hmac-auth": HmacAuthCredential,
        "jwe-decrypt": JweDecryptCredential,
        "jwt-auth": JwtAuthCredential,
        "key-auth": KeyAuthCredential,
        "ldap-auth": LdapAuthCredential,
        "wolf-rbac": WolfRbacCredential,
    }
)
