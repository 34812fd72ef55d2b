"""What plugins have in common that recognise consumers.

Such a plugin says in `identify` whose request it is, or gives the refusal. Upstreams are told by headers, later plugins
by `request.consumer` and by the variables `consumer_name` and `consumer_group_id`.
"""

import base64
from collections.abc import Awaitable
from typing import ClassVar, TypeVar

from headgate.common.plugins.authentication.authenticator import AuthenticationConfig
from headgate.gateway.plugins.interface import Plugin, PluginServices, Request, Response
from headgate.gateway.plugins.interface.consumers import KnownCredential, attach

A = TypeVar("A", bound=AuthenticationConfig)
Identified = KnownCredential | Response


class Authenticator(Plugin[A]):
    """Recognises consumers."""

    finds_consumer = True
    preview = "yes"
    scheme: ClassVar[str]
    """That a refusal asks for: `Basic`."""

    def __init__(self, config: A, services: PluginServices) -> None:
        super().__init__(config, services)
        realm = getattr(config, "realm", self.name).replace("\\", "\\\\").replace('"', '\\"')
        self._challenge = f'{self.scheme} realm="{realm}"'

    def identify(self, request: Request) -> Identified | Awaitable[Identified]:
        """Return the credential that a request brings, or why there is none; the request stays as it is."""
        raise NotImplementedError

    def hide(self, request: Request) -> None:
        """Take away what a request brought as its credential."""
        request.headers.remove("Authorization")

    def on_request(self, request: Request) -> Response | Awaitable[Response | None] | None:
        """Recognise the consumer, or refuse."""
        found = self.identify(request)
        if isinstance(found, KnownCredential | Response):
            return self.conclude(request, found)
        return self._conclude_later(request, found)

    async def _conclude_later(self, request: Request, finding: Awaitable[Identified]) -> Response | None:
        return self.conclude(request, await finding)

    def conclude(self, request: Request, found: Identified) -> Response | None:
        """Go on as the consumer that was recognised, or as the anonymous one, or refuse."""
        if isinstance(found, KnownCredential):
            if self.config.hide_credentials:
                self.hide(request)
            attach(request, found.consumer, found)
            return None
        name = self.config.anonymous_consumer
        if name is None or found.status != 401:
            return found
        consumer = self.services.find_consumer(name)
        if consumer is None:
            self.services.logger.error("%s of %s: there is no consumer %s", self.name, request.route, name)
            return self.refusal("Invalid user authorization")
        attach(request, consumer)
        return None

    def refusal(self, reason: str) -> Response:
        """Make a 401."""
        response = Response.refusal(401, reason)
        response.headers.set("WWW-Authenticate", self._challenge)
        return response


def basic_credentials(request: Request) -> tuple[bytes, bytes] | None:
    """Read name and password of an Authorization header (RFC 7617); None if it has none."""
    scheme, _, text = (request.headers.get("Authorization") or "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        decoded = base64.b64decode(text.strip(), validate=True)
    except ValueError:
        return None
    name, colon, password = decoded.partition(b":")
    return (name, password) if colon else None
