"""Values of a request by name, for templates and keys: the names of nginx and Apache APISIX.

`http_<name>`, `arg_<name>` and `cookie_<name>` look at a header (with `_` for `-`), a query parameter (the first, as it
stands) and a cookie; the others are in the table below. What plugins put into `request.variables` goes first.
"""

from collections.abc import Callable
from urllib.parse import quote

from headgate.gateway.plugins.headers import Headers
from headgate.gateway.plugins.messages import Request

_OF_REQUEST: dict[str, Callable[[Request], str]] = {
    "args": lambda request: request.query,
    "best_http_host": lambda request: request.authority,
    "escaped_request_uri": lambda request: quote(request.original_target, safe=""),
    "host": lambda request: request.host,
    "http_host": lambda request: request.authority,
    "http_x_request_id": lambda request: request.id,
    "is_args": lambda request: "?" if request.query else "",
    "pass_access_scheme": lambda request: request.scheme,
    "query_string": lambda request: request.query,
    "remote_addr": lambda request: request.client,
    "request_id": lambda request: request.id,
    "request_method": lambda request: request.method,
    "request_uri": lambda request: request.original_target,
    "route_name": lambda request: request.route,
    "scheme": lambda request: request.scheme,
    "server_name": lambda request: request.host,
    "server_port": lambda request: str(request.port),
    "uri": lambda request: request.path,
}


def variable(request: Request, name: str) -> str | None:
    """Return a variable's value; None if the request has none, or if there is no such variable."""
    own = request.variables.get(name)
    if isinstance(own, str):
        return own
    read = _OF_REQUEST.get(name)
    if read is not None:
        return read(request)
    if name.startswith("http_"):
        return request.headers.get(name[5:].replace("_", "-"))
    if name.startswith("arg_"):
        return query_value(request.query, name[4:])
    if name.startswith("cookie_"):
        return cookie_value("; ".join(request.headers.get_all("Cookie")), name[7:])
    return None


def query_value(query: str, name: str) -> str | None:
    """Return the first value of a query parameter as it stands, not decoded."""
    for part in query.split("&"):
        key, _, value = part.partition("=")
        if key == name:
            return value
    return None


def without_query_value(query: str, name: str) -> str:
    """Return a query without a parameter."""
    return "&".join(part for part in query.split("&") if part.partition("=")[0] != name)


def cookie_value(cookies: str, name: str) -> str | None:
    """Return the first cookie of a name in a Cookie header."""
    for part in cookies.split(";"):
        key, _, value = part.strip(" \t").partition("=")
        if key == name:
            return value
    return None


def without_cookie(headers: Headers, name: str) -> None:
    """Take a cookie out of a head; the Cookie header too where nothing is left in it."""
    parts = [part.strip(" \t") for part in ";".join(headers.get_all("Cookie")).split(";")]
    left = [part for part in parts if part and part.partition("=")[0] != name]
    if left:
        headers.set("Cookie", "; ".join(left))
    else:
        headers.remove("Cookie")
