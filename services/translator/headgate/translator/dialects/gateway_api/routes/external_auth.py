"""Filters of type ExternalAuth over HTTP, as the plugin `forward-auth` says them.

The Service is asked with the method, the path and the host of the request; 200 lets in, and any other answer is the
client's. Over gRPC it would have to be asked by Envoy's protocol, which is not spoken here.
"""

import re
from typing import Final

from pydantic import ValidationError

from headgate.common.plugins.authentication.forward_auth import ForwardAuthConfig
from headgate.common.problems import Problem
from headgate.common.table import PluginUse
from headgate.translator.dialects.gateway_api.models.filters import ExternalAuth
from headgate.translator.dialects.gateway_api.routes.backends import FoundService, find_service_port
from headgate.translator.dialects.gateway_api.routes.context import RouteContext
from headgate.translator.manifests.specs import refuse

_PATH: Final = re.compile(r"(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|%[0-9a-fA-F]{2})*")
_ASSUMED: Final = "-"
"""Key of the upstream where it is not asked which one it is."""


def find_external_auth(
    written: ExternalAuth, field: str, context: RouteContext, problems: list[Problem]
) -> tuple[PluginUse, FoundService] | None:
    """Return the plugin that asks, and whom it asks; None if there is nobody to ask, which `problems` say."""
    if written.protocol != "HTTP":
        message = "is not spoken; a Service that answers by HTTP can be asked (protocol HTTP)"
        problems.append(refuse("UnsupportedValue", f"{field}.protocol", message, written.protocol))
        return None
    if not _PATH.fullmatch(written.http.path):
        message = "must be a path of letters, digits, slashes, the marks of RFC 3986 and escapes such as %20"
        problems.append(refuse("UnsupportedValue", f"{field}.http.path", message, written.http.path))
        return None
    service = find_service_port(written.backend_ref, f"{field}.backendRef", context, problems)
    if service is None and not context.lookups.is_assumed:
        return None
    http = written.http
    fields = {
        "upstream": service.use.upstream.key if service is not None else _ASSUMED,
        "path": f"/{http.path.strip('/')}",
        "keeps_path": True,
        "keeps_method": True,
        "request_body": written.forward_body.max_size > 0,
        "max_req_body_size": written.forward_body.max_size,
        "request_headers": ("Authorization", *http.allowed_headers),
        "forwarded_headers": False,
        "upstream_headers": http.allowed_response_headers,
        "all_upstream_headers": not http.allowed_response_headers,
        "all_client_headers": True,
        "only_200": True,
    }
    try:
        use = PluginUse.of(ForwardAuthConfig.model_validate(fields))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        message = f"{'.'.join(map(str, first['loc']))}: {first['msg'].removeprefix('Value error, ')}"
        problems.append(refuse("UnsupportedValue", f"{field}.http", message))
        return None
    return None if service is None else (use, service)
