"""What authentication plugins know of a consumer, by plugin."""

from collections.abc import Mapping
from types import MappingProxyType

from headgate.common.plugins.authentication import CredentialConfig
from headgate.common.plugins.basic_auth import BasicAuthCredential
from headgate.common.plugins.hmac_auth import HmacAuthCredential
from headgate.common.plugins.jwe_decrypt import JweDecryptCredential
from headgate.common.plugins.jwt_auth import JwtAuthCredential
from headgate.common.plugins.key_auth import KeyAuthCredential
from headgate.common.plugins.ldap_auth import LdapAuthCredential
from headgate.common.plugins.wolf_rbac import WolfRbacCredential

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
