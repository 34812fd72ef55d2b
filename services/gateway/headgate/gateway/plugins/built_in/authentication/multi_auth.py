"""`multi-auth`: several ways to be recognised, of which one is enough."""

from collections.abc import Awaitable, Mapping
from types import MappingProxyType
from typing import Any

from headgate.common.plugins.authentication.multi_auth import MultiAuthConfig
from headgate.gateway.plugins.built_in.authentication.authenticator import Authenticator
from headgate.gateway.plugins.built_in.authentication.basic_auth import BasicAuth
from headgate.gateway.plugins.built_in.authentication.hmac_auth import HmacAuth
from headgate.gateway.plugins.built_in.authentication.jwt_auth import JwtAuth
from headgate.gateway.plugins.built_in.authentication.key_auth import KeyAuth
from headgate.gateway.plugins.built_in.authentication.ldap_auth import LdapAuth
from headgate.gateway.plugins.interface import Foreseen, Plugin, PluginServices, Request, Response

_KINDS: Mapping[str, type[Authenticator[Any]]] = MappingProxyType(
    {kind.name: kind for kind in (BasicAuth, HmacAuth, JwtAuth, KeyAuth, LdapAuth)}
)


class MultiAuth(Plugin[MultiAuthConfig]):
    """Tries several plugins that recognise consumers."""

    name = "multi-auth"
    order = 2600
    Config = MultiAuthConfig
    finds_consumer = True

    def __init__(self, config: MultiAuthConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._tried = [_KINDS[name](told, services) for name, told in (each.named for each in config.auth_plugins)]

    def on_request(self, request: Request) -> Response | Awaitable[Response | None] | None:
        """Go on with the first that recognises somebody."""
        return self._try(request, [])

    async def foresee(self, request: Request) -> Foreseen:
        """Try them without asking other services."""
        refusals = []
        for plugin in self._tried:
            foreseen = plugin.foresee(request)
            outcome = await foreseen if isinstance(foreseen, Awaitable) else foreseen
            if not isinstance(outcome, Response):
                return outcome
            refusals.append(outcome)
        return _refusal(refusals)

    def _try(self, request: Request, refusals: list[Response]) -> Response | Awaitable[Response | None] | None:
        for plugin in self._tried[len(refusals) :]:
            outcome = plugin.on_request(request)
            if outcome is None:
                return None
            if not isinstance(outcome, Response):
                return self._try_later(request, outcome, refusals)
            refusals.append(outcome)
        return _refusal(refusals)

    async def _try_later(
        self, request: Request, pending: Awaitable[Response | None], refusals: list[Response]
    ) -> Response | None:
        refusal = await pending
        if refusal is None:
            return None
        outcome = self._try(request, [*refusals, refusal])
        return outcome if outcome is None or isinstance(outcome, Response) else await outcome


def _refusal(refusals: list[Response]) -> Response:
    response = Response.refusal(401, "Authorization Failed")
    for refusal in refusals:
        for challenge in refusal.headers.get_all("WWW-Authenticate"):
            response.headers.add("WWW-Authenticate", challenge)
    return response
