"""The variables of access log formats, by name."""

import re
from collections.abc import Iterator
from typing import Final

LOG_VARIABLE: Final = re.compile(r"\$(?:\{([a-z0-9_]+)\}|([a-z0-9_]+))")
"""A reference to one in a format."""
LOG_VARIABLES: Final = frozenset(
    (
        "args",
        "best_http_host",
        "body_bytes_sent",
        "host",
        "hostname",
        "ingress_name",
        "msec",
        "namespace",
        "pass_access_scheme",
        "pass_server_port",
        "pid",
        "proxy_alternative_upstream_name",
        "proxy_upstream_name",
        "query_string",
        "reason",
        "remote_addr",
        "remote_user",
        "req_id",
        "request",
        "request_id",
        "request_length",
        "request_method",
        "request_time",
        "request_uri",
        "retries",
        "route_name",
        "scheme",
        "server_name",
        "server_port",
        "server_protocol",
        "service_name",
        "service_port",
        "ssl_protocol",
        "span_id",
        "status",
        "the_real_ip",
        "time_iso8601",
        "time_local",
        "trace_id",
        "upstream_addr",
        "upstream_name",
        "upstream_response_length",
        "upstream_response_time",
        "upstream_status",
        "uri",
    )
)
LOG_VARIABLE_PREFIXES: Final = ("http_", "arg_", "cookie_")
"""How the variables of headers, query parameters and cookies begin."""


def unknown_log_variables(text: str) -> Iterator[str]:
    """Yield the variables in a format that gateways do not know."""
    for found in LOG_VARIABLE.finditer(text):
        name = found[1] or found[2]
        if name not in LOG_VARIABLES and not name.startswith(LOG_VARIABLE_PREFIXES):
            yield name
