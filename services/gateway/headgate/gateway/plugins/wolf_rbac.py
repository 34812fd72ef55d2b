"""`wolf-rbac`: a token of wolf, an RBAC server, says whose request it is, and wolf whether it may be made.

The token, `V1#application#...`, is in the query parameter `rbac_token`, in `Authorization`, in the header or in the
cookie `x-rbac-token`. Its application is a consumer, which says where wolf is; wolf is asked at each request.
"""

import json
from typing import Any
from urllib.parse import quote, unquote_plus, urlencode

from headgate.common.plugins.wolf_rbac import WolfRbacConfig, WolfRbacCredential
from headgate.gateway.plugins.calls import CallFailed, call_url
from headgate.gateway.plugins.consumers import attach
from headgate.gateway.plugins.decoded_paths import decoded_text
from headgate.gateway.plugins.interface import Headers, Plugin, Request, Response
from headgate.gateway.plugins.variables import cookie_value, query_value

_TIMEOUT_S = 5.0
_MAX_ANSWER = 1 << 20
_TOLD = "wolf-rbac.told"


class WolfRbac(Plugin[WolfRbacConfig]):
    """Asks for a token, and wolf about it."""

    name = "wolf-rbac"
    order = 2555
    Config = WolfRbacConfig
    finds_consumer = True

    async def on_request(self, request: Request) -> Response | None:
        """Recognise the application, and ask wolf."""
        text = _token(request)
        if not text:
            return Response.refusal(401, "Missing rbac token in request")
        version, _, rest = text.partition("#")
        application, _, token = rest.partition("#")
        if version != "V1" or not application or not token or "#" in token:
            return Response.refusal(401, "invalid rbac token: parse failed")
        credential = self.services.consumers.find(self.name, application.encode("latin-1", "replace"))
        if credential is None:
            return Response.refusal(401, "Invalid appid in rbac token")
        known: WolfRbacCredential = credential.config
        place = {"resName": decoded_text(request.path), "action": request.method}
        asked = {"appID": application, **place, "clientIP": request.client}
        url = f"{known.server}/wolf/rbac/access_check?{urlencode(asked)}"
        try:
            question = Request(headers=Headers([("x-rbac-token", token)]))
            answer = await call_url(self.services, url, question, timeout_s=_TIMEOUT_S, max_body=_MAX_ANSWER)
        except (CallFailed, ValueError) as error:
            self.services.logger.error("wolf-rbac of %s: %s", request.route, error)
            return Response.refusal(500, "request to wolf-server failed!")
        if answer.status not in (200, 401):
            return Response.refusal(500, f"request to wolf-server failed, status: {answer.status}")
        told = _read(answer)
        headers = self._tell(request, known.header_prefix, told)
        if answer.status != 200:
            return Response.refusal(401, str(told.get("reason") or "refused by wolf"))
        attach(request, credential.consumer, credential)
        if headers:
            # One consumer has many users, who must not be taken for each other by what goes by `$remote_user`.
            request.variables["remote_user"] = "/".join([application, headers[0][1]])
        return None

    def on_response(self, request: Request, response: Response) -> None:
        """Tell the client who it is."""
        told = request.variables.get(_TOLD)
        for name, value in told if isinstance(told, list) else ():
            response.headers.set(name, value)

    def _tell(self, request: Request, prefix: str, told: dict[str, Any]) -> list[tuple[str, str]]:
        """Tell the upstream who it is; what the client says of it is dropped."""
        data = told.get("data")
        user = data.get("userInfo") if isinstance(data, dict) else None
        headers = []
        for name, field in (("UserId", "id"), ("Username", "username"), ("Nickname", "nickname")):
            request.headers.remove(prefix + name)
            value = user.get(field) if isinstance(user, dict) else None
            if value is not None:
                headers.append((prefix + name, quote(str(value))))
        for name, value in headers:
            request.headers.set(name, value)
        request.variables[_TOLD] = headers
        return headers


def _token(request: Request) -> str | None:
    given = query_value(request.query, "rbac_token")
    if given:
        return unquote_plus(given)
    cookies = "; ".join(request.headers.get_all("Cookie"))
    header = request.headers.get("Authorization") or request.headers.get("x-rbac-token")
    return header or unquote_plus(cookie_value(cookies, "x-rbac-token") or "")


def _read(answer: Response) -> dict[str, Any]:
    try:
        content = json.loads(answer.body or b"{}")
    except ValueError:
        content = {}
    return content if isinstance(content, dict) else {}
