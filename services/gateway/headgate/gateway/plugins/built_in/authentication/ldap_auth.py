"""`ldap-auth`: a name and a password that an LDAP server accepts say which consumer it is.

The server is asked at each request, by a simple bind.
"""

import re
from typing import Any

from headgate.common.plugins.authentication.ldap_auth import LdapAuthConfig
from headgate.gateway.plugins.built_in.authentication.authenticator import Authenticator, Identified, basic_credentials
from headgate.gateway.plugins.built_in.authentication.ldap_bind import bind
from headgate.gateway.plugins.interface import Request, Response
from headgate.gateway.plugins.interface.errors import Unforeseeable

_SPECIAL = re.compile(r'[,+"\\<>;=\x00-\x1f]|^[ #]| $')


class LdapAuth(Authenticator[LdapAuthConfig]):
    """Asks for a name and a password, and a server whether they are right."""

    name = "ldap-auth"
    order = 2540
    unforeseen = "asks an LDAP server"
    Config = LdapAuthConfig
    scheme = "Basic"

    def foresee(self, request: Request) -> Any:
        """Ask no server: only a request without name and password is known to be refused."""
        if basic_credentials(request) is not None:
            raise Unforeseeable(self.unforeseen)
        return self.on_request(request)

    async def identify(self, request: Request) -> Identified:
        """Look the name up, and have the password checked."""
        given = basic_credentials(request)
        if given is None:
            return self.refusal("Missing authorization in request")
        name, password = (part.decode("utf-8", "replace") for part in given)
        user_dn = f"{self.config.uid}={escape_value(name)},{self.config.base_dn}"
        credential = self.services.find_credential(self.name, user_dn.encode())
        # A bind without a password succeeds, as nobody's (RFC 4513 section 5.1.2).
        if credential is None or not password:
            return self.refusal("Invalid user authorization")
        try:
            is_right = await bind(self.services.dialler, self.config, user_dn, password)
        except OSError as error:
            self.services.logger.error("ldap-auth of %s: %s", request.route, error or "no answer in time")
            return Response.refusal(503, "the LDAP server did not answer")
        return credential if is_right else self.refusal("Invalid user authorization")


def escape_value(text: str) -> str:
    """Write a text as a value in a distinguished name (RFC 4514 section 2.4)."""
    return _SPECIAL.sub(lambda found: f"\\{ord(found[0]):02x}" if found[0] < " " else f"\\{found[0]}", text)
