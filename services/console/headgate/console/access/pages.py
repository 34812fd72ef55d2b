"""Logging in and out."""

import logging
from collections.abc import Callable
from typing import Final

from aiohttp import web

from headgate.console.access.errors import LoginRefused
from headgate.console.access.forms import read_fields
from headgate.console.access.guard import Guard
from headgate.console.access.openid_login import COOKIE as LOGIN_COOKIE
from headgate.console.access.openid_login import PATH, OpenIdLogin
from headgate.console.access.openid_provider import REDIRECT_PATH
from headgate.console.access.sessions import COOKIE

_log = logging.getLogger(__name__)
Render = Callable[[str], web.Response]
_ARRIVED: Final = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Headgate</title>'
    '<link rel="icon" href="data:,"><meta http-equiv="refresh" content="0; url=/"></head>'
    '<body><a href="/">Go on</a></body></html>'
)


def add_access(app: web.Application, guard: Guard, render: Render, openid: OpenIdLogin | None) -> None:
    """Add the pages to a site.

    Args:
        app: the site.
        guard: that knows the people.
        render: makes the page, with what went wrong.
        openid: how a provider lets people in, if one does.
    """

    async def show(request: web.Request) -> web.Response:
        return render("")

    async def log_in(request: web.Request) -> web.Response:
        token = (await read_fields(request)).get("token", "").strip()
        response = guard.log_in(token, request)
        return response if response is not None else render("nobody has this token")

    async def log_out(request: web.Request) -> web.Response:
        response = web.Response(status=303, headers={"Location": "/login"})
        response.del_cookie(COOKIE)
        return response

    app.router.add_get("/login", show)
    app.router.add_post("/login", log_in)
    app.router.add_post("/logout", log_out)
    if openid is not None:
        _add_openid(app, guard, render, openid)


def _add_openid(app: web.Application, guard: Guard, render: Render, openid: OpenIdLogin) -> None:
    async def begin(request: web.Request) -> web.Response:
        guard.count_way(request)
        try:
            return await openid.begin()
        except LoginRefused as error:
            return refuse(error)

    async def end(request: web.Request) -> web.Response:
        guard.count_way(request)
        try:
            person = await openid.end(request)
        except LoginRefused as error:
            return refuse(error)
        response = web.Response(text=_ARRIVED, content_type="text/html", headers={"Cache-Control": "no-store"})
        guard.let_in(person, response, is_secure=openid.is_secure)
        response.del_cookie(LOGIN_COOKIE, path=PATH)
        return response

    def refuse(error: LoginRefused) -> web.Response:
        _log.warning("a login was refused", extra={"reason": str(error)})
        return render(str(error))

    async def close(_: web.Application) -> None:
        await openid.provider.close()

    app.router.add_get(PATH, begin)
    app.router.add_get(REDIRECT_PATH, end)
    app.on_cleanup.append(close)
