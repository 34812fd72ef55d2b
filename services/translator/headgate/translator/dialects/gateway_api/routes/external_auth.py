"""Filters of type ExternalAuth: over HTTP as the plugin `forward-auth` says them, over gRPC as `ext-authz` does.

Over HTTP the Service is asked with the method, the path and the host of the request; 200 lets in, and any other answer
is the client's. Over gRPC it is asked by Envoy's protocol, over HTTP/2.
"""

import re
from typing import Final, TypeVar

from pydantic import ValidationError

from headgate.common.plugins.authentication.ext_authz import ExtAuthzConfig
from headgate.common.plugins.authentication.forward_auth import ForwardAuthConfig
from headgate.common.plugins.config import PluginConfig
from headgate.common.problems import Problem
from headgate.common.table import PluginUse
from headgate.translator.dialects.gateway_api.models.filters import ExternalAuth
from headgate.translator.dialects.gateway_api.routes.backends import FoundService, find_service_port
from headgate.translator.dialects.gateway_api.routes.context import RouteContext
from headgate.translator.manifests.specs import refuse

_PATH: Final = re.compile(r"(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|%[0-9a-fA-F]{2})*")
_UNKNOWN: Final = "-"
"""Key of the upstream until it is found."""
C = TypeVar("C", bound=PluginConfig)


def find_external_auth(
    written: ExternalAuth, field: str, context: RouteContext, problems: list[Problem]
) -> tuple[PluginUse, FoundService] | None:
    """Return the plugin that asks, and whom it asks; None if there is nobody to ask, which `problems` say."""
    is_grpc = written.protocol == "GRPC"
    config = _ask_by_grpc(written, field, problems) if is_grpc else _ask_by_http(written, field, problems)
    if config is None:
        return None
    spoken = context._replace(is_grpc=is_grpc)
    service = find_service_port(written.backend_ref, f"{field}.backendRef", spoken, problems)
    if service is None:
        return None
    return PluginUse.of(config.model_copy(update={"upstream": service.use.upstream.key})), service


def _ask_by_http(written: ExternalAuth, field: str, problems: list[Problem]) -> ForwardAuthConfig | None:
    if not _PATH.fullmatch(written.http.path):
        message = "must be a path of letters, digits, slashes, the marks of RFC 3986 and escapes such as %20"
        problems.append(refuse("UnsupportedValue", f"{field}.http.path", message, written.http.path))
        return None
    http = written.http
    fields = {
        "upstream": _UNKNOWN,
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
    return _checked(ForwardAuthConfig, fields, f"{field}.http", problems)


def _ask_by_grpc(written: ExternalAuth, field: str, problems: list[Problem]) -> ExtAuthzConfig | None:
    fields = {
        "upstream": _UNKNOWN,
        "request_headers": written.grpc.allowed_headers,
        "max_req_body_size": written.forward_body.max_size,
    }
    return _checked(ExtAuthzConfig, fields, f"{field}.grpc", problems)


def _checked(model: type[C], fields: dict[str, object], field: str, problems: list[Problem]) -> C | None:
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        message = f"{'.'.join(map(str, first['loc']))}: {first['msg'].removeprefix('Value error, ')}"
        problems.append(refuse("UnsupportedValue", field, message))
        return None
