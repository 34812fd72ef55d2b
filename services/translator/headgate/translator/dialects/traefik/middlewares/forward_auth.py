"""The middleware `forwardAuth`, as `forward-auth` says it."""

from typing import Any, Final
from urllib.parse import urlsplit

from headgate.common.plugins.authentication.forward_auth import ForwardAuthConfig
from headgate.common.plugins.fields import check_url
from headgate.common.table import BackendProtocol, BackendTls, PluginUse
from headgate.translator.dialects.traefik.middlewares.auth_server import AuthServer
from headgate.translator.dialects.traefik.middlewares.client_tls import read_client_tls
from headgate.translator.dialects.traefik.middlewares.making import Made, Making, Unfollowed, literal
from headgate.translator.dialects.traefik.models.guards import ClientTls, ForwardAuth
from headgate.translator.fragments.fragment import BackendUse

_TIMEOUT_MS: Final = 30_000
_LONGEST_BODY: Final = 64 << 20
_LONGEST_ANSWER: Final = 16 << 20
"""Bytes, where nothing else is said."""


def forward_auth(written: ForwardAuth, making: Making) -> Made:
    """Ask another server whether a request may pass."""
    try:
        check_url(written.address)
    except ValueError as error:
        raise Unfollowed("InvalidValue", "address", str(error)) from error
    if written.tls is None:
        server_fields = {"uri": literal(written.address)}
        return Made((PluginUse.of(ForwardAuthConfig.model_validate(server_fields | _options(written))),))
    server = _server(written.address, written.tls, making)
    path = urlsplit(written.address)._replace(scheme="", netloc="").geturl()
    server_fields = {"upstream": server.key, "path": path or "/", "address": written.address}
    field = making.field_of("forwardAuth", "address")
    use = BackendUse(server, field, field)
    return Made((PluginUse.of(ForwardAuthConfig.model_validate(server_fields | _options(written))),), uses=(use,))


def _options(written: ForwardAuth) -> dict[str, Any]:
    """Return the fields of the plugin's configuration, without the server to ask."""
    return {
        "keeps_method": written.preserve_request_method,
        "request_body": written.forward_body,
        "max_req_body_size": _bound(written.max_body_size, _LONGEST_BODY),
        "max_answer_size": _bound(written.max_response_body_size, _LONGEST_ANSWER),
        "status_on_long_body": 401,
        "status_on_error": 500,
        "timeout": _TIMEOUT_MS,
        "all_headers": not written.auth_request_headers,
        "request_headers": written.auth_request_headers,
        "tells_rewritten": True,
        "trusts_forwarded": written.trust_forward_header,
        "upstream_headers": written.auth_response_headers,
        "upstream_headers_regex": written.auth_response_headers_regex or None,
        "answer_variables": {"remote_user": written.header_field} if written.header_field else {},
        "all_client_headers": True,
        "resolves_location": not written.preserve_location_header,
        "response_cookies": True,
        "always_set_cookie": True,
        "cookie_names": written.add_auth_cookies_to_response,
        "signin": literal(written.auth_signin_url) or None,
        "signs_in_others": False,
    }


def _bound(written: int | None, default: int) -> int:
    return default if written is None or written < 0 else written


def _server(address: str, tls: ClientTls, making: Making) -> AuthServer:
    url = urlsplit(address)
    is_secure = url.scheme == "https"
    return AuthServer(
        making.cluster,
        making.namespace,
        making.name,
        url.hostname or "",
        url.port or (443 if is_secure else 80),
        url.netloc,
        BackendProtocol.HTTPS if is_secure else BackendProtocol.HTTP,
        _tls(tls, making) if is_secure else None,
    )


def _tls(written: ClientTls, making: Making) -> BackendTls:
    ours = read_client_tls(written, "tls", making)
    said: dict[str, Any] = {"verify": not written.insecure_skip_verify}
    if ours.authorities_pem:
        said["ca_pem"] = ours.authorities_pem
    if ours.key is not None:
        said |= {"certificate_pem": ours.chain_pem, "private_key": ours.key}
    return BackendTls(**said)
