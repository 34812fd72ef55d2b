"""The pages of `wolf-rbac` that users log in by, change their password, and see who they are.

Routes show them by `public-api`, as in Apache APISIX. What users send goes on to the wolf that the application's
consumer names, and nowhere else; nothing of it is logged.
"""

import json
from collections.abc import Awaitable, Callable
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qsl

from headgate.common.plugins.authentication.wolf_rbac import WolfRbacCredential
from headgate.gateway.plugins.built_in.authentication.wolf.server import (
    NAME,
    WolfFailed,
    ask_wolf,
    make_token,
    read_object,
    read_token,
    token_of,
)
from headgate.gateway.plugins.interface import Headers, PluginServices, Request, Response

_PLACE = "/apisix/plugin/wolf-rbac/"
_TIMEOUT_S = 5.0
_MAX_BODY = 64 * 1024
_MAX_FIELDS = 64
_FAILED = "request to wolf-server failed!"


class _Refused(Exception):
    """A request that goes no further: its status and what the client is told."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def find_wolf_page(path: str) -> str:
    """Return the name of the page at a path; empty if there is none."""
    name = path.removeprefix(_PLACE)
    return name if name != path and name in _PAGES else ""


async def show_wolf_page(name: str, services: PluginServices, request: Request) -> Response:
    """Answer a request for a page."""
    method, show = _PAGES[name]
    if request.method != method:
        return Response.refusal(404, f"{name} of wolf-rbac is asked with {method}")
    try:
        return _answer(200, await show(services, request))
    except _Refused as refused:
        return _answer(refused.status, {"message": str(refused)})
    except WolfFailed as failed:
        return _answer(500, {"message": str(failed)})


def _answer(status: int, content: dict[str, Any]) -> Response:
    response = Response.json(status, content, reason=str(content.get("message") or "answered by wolf-rbac"))
    response.headers.set("Cache-Control", "no-store")
    return response


async def _log_in(services: PluginServices, request: Request) -> dict[str, Any]:
    given = await _read(request)
    application = given.get("appid")
    if not isinstance(application, str) or not application:
        raise _Refused(400, "appid is missing")
    data = await _ask(services, application, "POST", "login.rest", given)
    token = data.get("token")
    if not isinstance(token, str) or not token:
        raise WolfFailed(_FAILED)
    return {"rbac_token": make_token(application, token), "user_info": data.get("userInfo")}


async def _change_password(services: PluginServices, request: Request) -> dict[str, Any]:
    application, token = _token(request)
    await _ask(services, application, "POST", "change_pwd", await _read(request), token)
    return {"message": "success to change password"}


async def _show_user(services: PluginServices, request: Request) -> dict[str, Any]:
    application, token = _token(request)
    data = await _ask(services, application, "GET", "user_info", {}, token)
    return {"user_info": data.get("userInfo")}


_Show = Callable[[PluginServices, Request], Awaitable[dict[str, Any]]]
_PAGES: MappingProxyType[str, tuple[str, _Show]] = MappingProxyType(
    {"login": ("POST", _log_in), "change_pwd": ("PUT", _change_password), "user_info": ("GET", _show_user)}
)
"""The method of each, and what shows it."""


def _token(request: Request) -> tuple[str, str]:
    text = token_of(request)
    if not text:
        raise _Refused(401, "Missing rbac token in request")
    parts = read_token(text)
    if parts is None:
        raise _Refused(401, "invalid rbac token: parse failed")
    return parts


async def _read(request: Request) -> dict[str, Any]:
    """Return what a form or a JSON object says."""
    body = await request.read_body(_MAX_BODY)
    kind = (request.headers.get("Content-Type") or "").lower()
    try:
        if "application/json" in kind:
            content = json.loads(body)
        else:
            content = dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_MAX_FIELDS))
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise _Refused(400, "invalid request")
    return content


async def _ask(
    services: PluginServices, application: str, method: str, page: str, content: dict[str, Any], token: str = ""
) -> dict[str, Any]:
    """Ask the wolf of an application, and return the data of its answer."""
    credential = services.find_credential(NAME, application.encode("latin-1", "replace"))
    if credential is None:
        raise _Refused(400, "appid not found")
    known: WolfRbacCredential = credential.config
    headers = Headers([("Content-Type", "application/json; charset=utf-8")])
    question = Request(method=method, headers=headers, body=json.dumps(content).encode())
    answer = await ask_wolf(services, known, f"/wolf/rbac/{page}", question, token, timeout_s=_TIMEOUT_S)
    told = read_object(answer)
    if answer.status != 200 or not told:
        services.logger.error("wolf of application %s answered %s with %d", application, page, answer.status)
        raise WolfFailed(_FAILED)
    if told.get("ok") is not True:
        # As in Apache APISIX: wolf has answered, and says no.
        raise _Refused(200, _FAILED)
    data = told.get("data")
    return data if isinstance(data, dict) else {}
