"""Logging in and out."""

from collections.abc import Callable

from aiohttp import web

from headgate.console.access.guard import Guard
from headgate.console.access.sessions import COOKIE

Render = Callable[[web.Request, str], web.Response]


def add_access(app: web.Application, guard: Guard, render: Render) -> None:
    """Add the pages to a site.

    Args:
        app: the site.
        guard: that knows the people.
        render: makes the page, with what went wrong.
    """

    async def show(request: web.Request) -> web.Response:
        return render(request, "")

    async def log_in(request: web.Request) -> web.Response:
        token = str((await request.post()).get("token", "")).strip()
        response = guard.log_in(token, request)
        return response if response is not None else render(request, "nobody has this token")

    async def log_out(request: web.Request) -> web.Response:
        response = web.Response(status=303, headers={"Location": "/login"})
        response.del_cookie(COOKIE)
        return response

    app.router.add_get("/login", show)
    app.router.add_post("/login", log_in)
    app.router.add_post("/logout", log_out)
