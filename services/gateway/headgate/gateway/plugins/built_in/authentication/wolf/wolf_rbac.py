"""`wolf-rbac`: a token of wolf, an RBAC server, says whose request it is, and wolf whether it may be made.

The token, `V1#application#...`, is in the query parameter `rbac_token`, in `Authorization`, in the header or in the
cookie `x-rbac-token`. Its application is a consumer, which says where wolf is; wolf is asked at each request.
"""

import asyncio
from typing import Any
from urllib.parse import quote, urlencode

from headgate.common.plugins.authentication.wolf_rbac import WolfRbacConfig, WolfRbacCredential
from headgate.gateway.plugins.built_in.authentication.wolf.server import (
    NAME,
    WolfFailed,
    ask_wolf,
    read_object,
    read_token,
    token_of,
)
from headgate.gateway.plugins.interface import Headers, Plugin, Request, Response
from headgate.gateway.plugins.interface.consumers import attach
from headgate.gateway.plugins.kit.decoded_paths import decoded_text

_TIMEOUT_S = 10.0
_ATTEMPTS = 3
_BETWEEN_S = 0.1
_TOLD = "wolf-rbac.told"


class WolfRbac(Plugin[WolfRbacConfig]):
    """Asks for a token, and wolf about it."""

    name = NAME
    order = 2555
    unforeseen = "asks another service"
    Config = WolfRbacConfig
    finds_consumer = True

    async def on_request(self, request: Request) -> Response | None:
        """Recognise the application, and ask wolf."""
        text = token_of(request)
        if not text:
            return Response.refusal(401, "Missing rbac token in request")
        parts = read_token(text)
        if parts is None:
            return Response.refusal(401, "invalid rbac token: parse failed")
        application, token = parts
        credential = self.services.find_credential(self.name, application.encode("latin-1", "replace"))
        if credential is None:
            return Response.refusal(401, "Invalid appid in rbac token")
        known: WolfRbacCredential = credential.config
        place = {"resName": decoded_text(request.path), "action": request.method}
        asked = {"appID": application, **place, "clientIP": request.client}
        try:
            answer = await self._ask(known, f"/wolf/rbac/access_check?{urlencode(asked)}", token)
        except WolfFailed as error:
            self.services.logger.error("wolf-rbac of %s: %s", request.route, error)
            return Response.refusal(500, str(error))
        told = read_object(answer)
        headers = self._tell(request, known.header_prefix, told)
        if answer.status != 200:
            return Response.refusal(answer.status, str(told.get("reason") or "refused by wolf"))
        attach(request, credential.consumer, credential)
        if headers:
            # One consumer has many users, who must not be taken for each other by what goes by `$remote_user`.
            request.variables["remote_user"] = "/".join([application, headers[0][1]])
        return None

    async def _ask(self, known: WolfRbacCredential, path: str, token: str) -> Response:
        """Ask wolf, and again where it fails. Raises WolfFailed."""
        for attempt in range(_ATTEMPTS):
            if attempt:
                await asyncio.sleep(_BETWEEN_S)
            question = Request(headers=Headers([("Content-Type", "application/json; charset=utf-8")]))
            answer = await ask_wolf(self.services, known, path, question, token, timeout_s=_TIMEOUT_S)
            if answer.status < 500:
                break
        if answer.status != 200 and not 400 <= answer.status < 500:
            raise WolfFailed(f"request to wolf-server failed, status:{answer.status}")
        return answer

    def on_response(self, request: Request, response: Response) -> None:
        """Tell the client who it is."""
        told = request.variables.get(_TOLD)
        for name, value in told if isinstance(told, list) else ():
            response.headers.set(name, value)

    def _tell(self, request: Request, prefix: str, told: dict[str, Any]) -> list[tuple[str, str]]:
        """Tell the upstream who it is; what the client says of it is dropped."""
        data = told.get("data")
        user = data.get("userInfo") if isinstance(data, dict) else None
        if isinstance(user, dict) and not user.get("nickname"):
            user = {**user, "nickname": user.get("username")}
        headers = []
        for name, field in (("UserId", "id"), ("Username", "username"), ("Nickname", "nickname")):
            request.headers.remove(prefix + name)
            value = user.get(field) if isinstance(user, dict) else None
            if value is not None:
                headers.append((prefix + name, _as_header(str(value), is_free=field == "nickname")))
        for name, value in headers:
            request.headers.set(name, value)
        request.variables[_TOLD] = headers
        return headers


def _as_header(value: str, *, is_free: bool) -> str:
    """Return a value as it stands; percent-encoded where it may have anything in it, and where it is not ASCII."""
    if is_free or not (value.isascii() and value.isprintable()):
        return quote(value, safe="")
    return value
