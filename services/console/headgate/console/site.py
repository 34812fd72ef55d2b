"""The console's site: the API and the pages, behind what keeps strangers out."""

from functools import partial

from aiohttp import web

from headgate.console.access.guard import Guard
from headgate.console.access.openid_login import OpenIdLogin
from headgate.console.access.openid_provider import OpenIdProvider
from headgate.console.access.pages import add_access
from headgate.console.access.people import People
from headgate.console.api.site import add_api
from headgate.console.live.view import LiveView
from headgate.console.pages.site import Pages
from headgate.console.settings import ConsoleSettings

MAX_BODY = 64 * 1024


def make_site(view: LiveView, settings: ConsoleSettings) -> web.Application:
    """Return the site.

    Raises:
        SettingsError: the file of people cannot be used.
    """
    people = People(settings.console_people_file) if settings.console_people_file is not None else None
    openid = OpenIdLogin(settings, OpenIdProvider(settings)) if settings.console_oidc_issuer else None
    guard = Guard(people, settings.console_host, has_provider=openid is not None)
    app = web.Application(middlewares=[guard.middleware()], client_max_size=MAX_BODY)
    pages = Pages(view)
    add_api(app, view)
    pages.add(app)
    has_tokens = people is not None or openid is None
    render = partial(pages.login, has_tokens=has_tokens, has_provider=openid is not None)
    add_access(app, guard, render, openid)
    return app
