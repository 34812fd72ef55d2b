"""`key-auth`: a key in a header or in the query says which consumer it is."""

from urllib.parse import unquote_to_bytes

from headgate.common.plugins.authentication.key_auth import KeyAuthConfig
from headgate.gateway.plugins.built_in.authentication.authenticator import Authenticator, Identified
from headgate.gateway.plugins.interface import Request
from headgate.gateway.plugins.interface.variables import query_value, without_query_value


class KeyAuth(Authenticator[KeyAuthConfig]):
    """Asks for a key."""

    name = "key-auth"
    order = 2500
    Config = KeyAuthConfig
    is_shareable = True
    is_of_owner = True
    scheme = "apikey"

    def identify(self, request: Request) -> Identified:
        """Look the key up."""
        key = self._key(request)
        if not key:
            return self.refusal("Missing API key in request")
        return self.services.find_credential(self.name, key) or self.refusal("Invalid API key in request")

    def _key(self, request: Request) -> bytes | None:
        text = request.headers.get(self.config.header)
        if text is not None:
            return text.encode("latin-1")
        text = query_value(request.query, self.config.query)
        return None if text is None else unquote_to_bytes(text.replace("+", " "))

    def hide(self, request: Request) -> None:
        """Take the key away from where it was."""
        if not request.headers.remove(self.config.header):
            request.query = without_query_value(request.query, self.config.query)
