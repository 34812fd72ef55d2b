"""The variables that templates, keys and conditions of plugins may name: those of nginx and Apache APISIX.

Gateways read them (`headgate.gateway.plugins.interface.variables`); here is which ones there are, and from when on.
"""

import re
from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final

from headgate.common.plugins.expressions import body_field

REFERENCE: Final = re.compile(
    r"\$(?:(\d)|(post_arg(?:\.\w++)++|[A-Za-z_]\w*+)"
    r"|\{ *(?:(\d{1,2})|(post_arg\.[\w.\[\]*-]++|[A-Za-z_]\w*+)(?: *\?\? *([^}]*?))?) *\})",
    re.ASCII,
)
"""What a template refers to: what a pattern caught (groups 1 and 3), or a variable (2 and 4) with its default (5)."""


class Phase(IntEnum):
    """From when on something is known."""

    REQUEST = 0
    """As long as the request is on its way to the upstream."""
    ANSWER = 1
    """Once an answer has begun."""
    END = 2
    """When the request has ended: for loggers."""


_PHASES: Final[Mapping[Phase, str]] = MappingProxyType(
    {
        Phase.REQUEST: (
            "apisix_request_id args best_http_host consumer_group_id consumer_name content_length content_type "
            "document_uri escaped_request_uri host hostname http_host http_x_request_id https is_args "
            "jwt_auth_payload method msec opentelemetry_trace_id original_x_forwarded_for pass_access_scheme "
            "query_string real_request_uri realip_remote_addr realip_remote_port remote_addr remote_port remote_user "
            "request request_body request_id request_line request_method request_uri route_id route_name scheme "
            "server_addr server_name server_port server_protocol service_id service_name ssl_protocol "
            "ssl_server_name time_iso8601 time_local upstream_host upstream_uri uri"
        ),
        Phase.ANSWER: (
            "balancer_ip balancer_port llm_model llm_stream request_llm_model request_type status upstream_addr "
            "upstream_status"
        ),
        Phase.END: (
            "apisix_upstream_response_time body_bytes_sent bytes_sent llm_completion_tokens llm_prompt_tokens "
            "llm_time_to_first_token llm_total_tokens request_length request_time resp_body "
            "response_body upstream_header_time upstream_response_time"
        ),
    }
)
VARIABLES: Final[Mapping[str, Phase]] = MappingProxyType(
    {name: phase for phase, names in _PHASES.items() for name in names.split()}
)
_BY_PREFIX: Final = (
    ("http_", Phase.REQUEST),
    ("arg_", Phase.REQUEST),
    ("cookie_", Phase.REQUEST),
    ("sent_http_", Phase.ANSWER),
    ("upstream_http_", Phase.ANSWER),
)


def field_of_body(name: str) -> str | None:
    """Return the field of the request's body that a variable stands for; None: for none."""
    try:
        return body_field(name)
    except ValueError:
        return None


def phase_of(name: str) -> Phase | None:
    """Return from when on a variable is known; None: there is no such variable."""
    phase = VARIABLES.get(name)
    if phase is None:
        found = (when for prefix, when in _BY_PREFIX if name.startswith(prefix) and name != prefix)
        phase = next(found, Phase.REQUEST if field_of_body(name) is not None else None)
    return phase
