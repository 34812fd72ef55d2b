"""`satisfy-any`: let a request in if one of several plugins does, as nginx's `satisfy any`.

They are asked in nginx's order: the address, a name and password, another service. The first that lets a request in
ends the questions. If none does, the answer is a 401 with all challenges if one of them would be satisfied by
credentials, and a 403 otherwise. A service that fails, or a redirect to a page where one signs in, is the answer at
once. What only a plugin that was asked may tell the upstream is taken out of the client's request in any case.
"""

from collections.abc import Awaitable
from typing import Any, Final, NamedTuple

from headgate.common.plugins.security.satisfy_any import SatisfyAnyConfig
from headgate.gateway.plugins.built_in.authentication.basic_auth import BasicAuth
from headgate.gateway.plugins.built_in.authentication.digest_auth import DigestAuth
from headgate.gateway.plugins.built_in.authentication.forward_auth import ForwardAuth
from headgate.gateway.plugins.built_in.security.ip_restriction import IpRestriction
from headgate.gateway.plugins.interface import Plugin, PluginServices, Request, Response

_REFUSALS: Final = (401, 403)


class _Part(NamedTuple):
    """One of the plugins."""

    plugin: Plugin[Any]
    lets_in: bool = True
    """A request that it does not refuse is let in by it."""


class SatisfyAny(Plugin[SatisfyAnyConfig]):
    """Asks several plugins, of which one is enough."""

    name = "satisfy-any"
    order = 3000
    unforeseen = "asks several plugins, of which one is enough"
    Config = SatisfyAnyConfig

    def __init__(self, config: SatisfyAnyConfig, services: PluginServices) -> None:
        super().__init__(config, services)
        self._forward = None if config.forward_auth is None else ForwardAuth(config.forward_auth, services)
        self._parts = tuple(self._make_parts())
        self._hides = any(auth and auth.hide_credentials for auth in (config.basic_auth, config.digest_auth))

    def _make_parts(self) -> list[_Part]:
        config, services, parts = self.config, self.services, []
        if config.ip_restriction is not None:
            addresses = IpRestriction(config.ip_restriction, services)
            parts.append(_Part(addresses, lets_in=bool(config.ip_restriction.whitelist)))
        if config.basic_auth is not None:
            parts.append(_Part(BasicAuth(config.basic_auth, services)))
        if config.digest_auth is not None:
            parts.append(_Part(DigestAuth(config.digest_auth, services)))
        if self._forward is not None:
            parts.append(_Part(self._forward))
        return parts

    def on_request(self, request: Request) -> Response | Awaitable[Response | None] | None:
        """Ask one after the other."""
        return self._ask(request, 0, [])

    def on_response(self, request: Request, response: Response) -> None:
        """Hand on what the service gives to the client."""
        if self._forward is not None:
            self._forward.on_response(request, response)

    def _ask(
        self, request: Request, first: int, refusals: list[Response]
    ) -> Response | Awaitable[Response | None] | None:
        for position, part in enumerate(self._parts[first:], first):
            outcome = part.plugin.on_request(request)
            if not (outcome is None or isinstance(outcome, Response)):
                return self._ask_later(request, outcome, position, refusals)
            if self._is_decided(part, outcome, refusals):
                return outcome if outcome is not None else self._let_in(request, part)
        return _refusal(refusals) if refusals else self._let_in(request, None)

    async def _ask_later(
        self, request: Request, pending: Awaitable[Response | None], position: int, refusals: list[Response]
    ) -> Response | None:
        part, outcome = self._parts[position], await pending
        if self._is_decided(part, outcome, refusals):
            return outcome if outcome is not None else self._let_in(request, part)
        later = self._ask(request, position + 1, refusals)
        return later if later is None or isinstance(later, Response) else await later

    @staticmethod
    def _is_decided(part: _Part, outcome: Response | None, refusals: list[Response]) -> bool:
        if outcome is None:
            return part.lets_in
        if outcome.status not in _REFUSALS:
            return True
        refusals.append(outcome)
        return False

    def _let_in(self, request: Request, by: _Part | None) -> Response | None:
        """Return None, that the request goes on."""
        if self._hides:
            request.headers.remove("Authorization")
        if self._forward is not None and (by is None or by.plugin is not self._forward):
            self._forward.drop_unverified(request)
        return None


def _refusal(refusals: list[Response]) -> Response:
    """Choose the answer of a request that none lets in: the first 401, or else the first."""
    chosen = next((each for each in refusals if each.status == 401), refusals[0])
    challenges = [challenge for each in refusals for challenge in each.headers.get_all("WWW-Authenticate")]
    chosen.headers.remove("WWW-Authenticate")
    for challenge in challenges:
        chosen.headers.add("WWW-Authenticate", challenge)
    return chosen
