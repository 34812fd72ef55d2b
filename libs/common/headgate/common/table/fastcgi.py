"""What an application is told by FastCGI beside the request: parameters, and the script of a folder."""

import re
from typing import Final

from pydantic import Field

from headgate.common.table.base import Entry

VARIABLES: Final = frozenset(
    (
        "args",
        "best_http_host",
        "content_length",
        "content_type",
        "document_root",
        "document_uri",
        "fastcgi_path_info",
        "fastcgi_script_name",
        "host",
        "https",
        "is_args",
        "pass_access_scheme",
        "pass_port",
        "pass_server_port",
        "query_string",
        "realpath_root",
        "remote_addr",
        "remote_port",
        "remote_user",
        "req_id",
        "request_id",
        "request_method",
        "request_uri",
        "scheme",
        "server_addr",
        "server_name",
        "server_port",
        "server_protocol",
        "uri",
    )
)
"""nginx' variables that values may have; besides there are `$http_<name>`, a header, and `$arg_<name>`, a parameter of
the query."""
_FAMILIES: Final = ("http_", "arg_")
_VARIABLE: Final = re.compile(r"\$(?:\{(\w*)\}|(\w*))", re.ASCII)


class FastCgi(Entry):
    """Settings of an upstream that speaks FastCGI."""

    index: str = ""
    """Name of the script that serves paths which end with a slash; empty: such paths are sent as they are."""
    params: tuple[tuple[str, str], ...] = Field(default=(), max_length=1000)
    """Names and values, with nginx' variables; one goes before what nginx' own `fastcgi_params` says of its name."""


def unknown_variable(template: str) -> str | None:
    """Return the first unknown variable of a value, as it is written; None if all are known."""
    for found in _VARIABLE.finditer(template):
        name = found[1] or found[2] or ""
        is_of_family = name.startswith(_FAMILIES) and name not in _FAMILIES
        if name not in VARIABLES and not is_of_family:
            return found[0]
    return None
