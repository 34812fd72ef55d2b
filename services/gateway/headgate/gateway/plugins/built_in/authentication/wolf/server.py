"""wolf, an RBAC server, as a gateway asks it, and the tokens that it is asked about: `V1#application#token`."""

import json
from typing import Any
from urllib.parse import unquote_plus

from headgate.common.plugins.authentication.wolf_rbac import WolfRbacCredential
from headgate.gateway.plugins.interface import PluginServices, Request, Response
from headgate.gateway.plugins.interface.variables import cookie_value, query_value
from headgate.gateway.plugins.kit.calls import CallFailed, call_url

NAME = "wolf-rbac"
"""Of the plugin whose consumers say where it is."""
_VERSION = "V1"
_MAX_ANSWER = 1 << 20


class WolfFailed(Exception):
    """There is no answer of wolf that can be used; the text is for the client."""


async def ask_wolf(
    services: PluginServices, known: WolfRbacCredential, path: str, question: Request, token: str, *, timeout_s: float
) -> Response:
    """Ask the wolf of an application, with a user's token if there is one. Raises WolfFailed."""
    try:
        if token:
            question.headers.set("x-rbac-token", token)
        return await call_url(
            services,
            f"{known.server}{path}",
            question,
            timeout_s=timeout_s,
            max_body=_MAX_ANSWER,
            verify=known.ssl_verify,
        )
    except (CallFailed, ValueError) as error:
        services.logger.error("wolf of application %s: %s", known.appid, error)
        raise WolfFailed("request to wolf-server failed!") from error


def token_of(request: Request) -> str:
    """Return the token that a request brings; empty if it has none."""
    given = query_value(request.query, "rbac_token")
    if given:
        return unquote_plus(given)
    cookies = "; ".join(request.headers.get_all("Cookie"))
    header = request.headers.get("Authorization") or request.headers.get("x-rbac-token")
    return header or unquote_plus(cookie_value(cookies, "x-rbac-token") or "")


def read_token(text: str) -> tuple[str, str] | None:
    """Return the application and the user's token of a token; None if it is none."""
    version, _, rest = text.partition("#")
    application, _, token = rest.partition("#")
    return (application, token) if version == _VERSION and application and token and "#" not in token else None


def make_token(application: str, token: str) -> str:
    """Return the token of an application's user."""
    return f"{_VERSION}#{application}#{token}"


def read_object(answer: Response) -> dict[str, Any]:
    """Return the JSON object that wolf answered; an empty one if it is none."""
    try:
        content = json.loads(answer.body or b"{}")
    except (ValueError, RecursionError):
        content = {}
    return content if isinstance(content, dict) else {}
