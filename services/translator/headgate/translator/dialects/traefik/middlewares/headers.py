"""The middleware `headers`, as `proxy-rewrite`, `response-rewrite`, `cors`, `workflow` and `hsts` say it."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from headgate.common.plugins.limits.workflow import WorkflowConfig
from headgate.common.plugins.security.cors import CorsConfig
from headgate.common.plugins.security.hsts import HstsConfig
from headgate.common.plugins.traffic.proxy_rewrite import ProxyRewriteConfig
from headgate.common.plugins.transformation.response_rewrite import ResponseRewriteConfig
from headgate.common.table import PluginUse
from headgate.translator.dialects.traefik.middlewares.making import Making, Unfollowed, literal
from headgate.translator.dialects.traefik.models.headers import Headers

_CORS: Final = (
    "access_control_allow_credentials",
    "access_control_allow_headers",
    "access_control_allow_methods",
    "access_control_allow_origin_list",
    "access_control_allow_origin_list_regex",
    "access_control_expose_headers",
    "access_control_max_age",
    "add_vary_header",
)
_OF_CONNECTIONS: Final = frozenset(
    ("connection", "content-length", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade")
)
_OVER_TLS: Final = ["scheme", "==", "https"]
_EVEN_EMPTY: Final = frozenset(("access_control_max_age",))
"""Fields that say something even where they are 0."""


def headers(written: Headers, making: Making) -> tuple[PluginUse, ...]:
    """Change headers of requests and answers. A custom header of answers goes before one for browsers."""
    if not written.model_fields_set:
        raise Unfollowed("InvalidValue", "", "must have a field")
    return tuple(_uses(written))


def _uses(written: Headers) -> Iterator[PluginUse]:
    if of_requests := _literal(written.custom_request_headers):
        yield PluginUse.of(ProxyRewriteConfig.model_validate({"headers": {"set": of_requests}}))
    if cors := _cors(written):
        yield PluginUse.of(CorsConfig.model_validate(cors))
    if written.allowed_hosts and not written.is_development:
        rule = {"case": [_other_host(written)], "actions": [["return", {"code": 500}]]}
        yield PluginUse.of(WorkflowConfig.model_validate({"rules": [rule]}))
    browser = {name.lower(): (name, value) for name, value in _browser_headers(written)}
    for name in written.custom_response_headers:
        browser.pop(name.lower(), None)
    changed = _literal(written.custom_response_headers) | _literal(dict(browser.values()))
    if changed:
        yield PluginUse.of(ResponseRewriteConfig.model_validate({"headers": {"set": changed}}))
    if written.public_key and not written.is_development:
        pins = {"set": _literal({"Public-Key-Pins": written.public_key})}
        yield PluginUse.of(ResponseRewriteConfig.model_validate({"headers": pins, "vars": [_OVER_TLS]}))
    if written.sts_seconds and not written.is_development:
        yield PluginUse.of(
            HstsConfig(
                max_age=written.sts_seconds,
                include_subdomains=written.sts_include_subdomains,
                preload=written.sts_preload,
                force=written.force_sts_header,
                secure_headers=written.ssl_proxy_headers,
            )
        )


def _literal(written: Mapping[str, str]) -> dict[str, str]:
    """Return values as templates; headers of the connection are left out, as they never pass in Traefik either."""
    return {name: literal(value) for name, value in written.items() if name.lower() not in _OF_CONNECTIONS}


def _browser_headers(written: Headers) -> Iterator[tuple[str, str]]:
    """Yield headers by which browsers are stricter."""
    values = (
        ("X-Frame-Options", written.custom_frame_options_value or ("DENY" if written.frame_deny else "")),
        ("X-Content-Type-Options", "nosniff" if written.content_type_nosniff else ""),
        (
            "X-XSS-Protection",
            written.custom_browser_xss_value or ("1; mode=block" if written.browser_xss_filter else ""),
        ),
        ("Content-Security-Policy", written.content_security_policy),
        ("Content-Security-Policy-Report-Only", written.content_security_policy_report_only),
        ("Referrer-Policy", written.referrer_policy),
        ("Permissions-Policy", written.permissions_policy),
    )
    return ((name, value) for name, value in values if value)


def _cors(written: Headers) -> dict[str, Any]:
    """Return what the plugin is told; nothing where nothing is said of other origins."""
    if not any(getattr(written, field) or field in _EVEN_EMPTY & written.model_fields_set for field in _CORS):
        return {}
    has_age = "access_control_max_age" in written.model_fields_set
    return {
        "by_phase": True,
        "allow_origins": ",".join(written.access_control_allow_origin_list),
        "allow_origins_by_regex": written.access_control_allow_origin_list_regex,
        "allow_methods": ",".join(written.access_control_allow_methods),
        "allow_headers": ",".join(written.access_control_allow_headers),
        "expose_headers": ",".join(written.access_control_expose_headers),
        "max_age": written.access_control_max_age if has_age else None,
        "allow_credential": written.access_control_allow_credentials,
        "vary": written.add_vary_header,
    }


def _other_host(written: Headers) -> list[Any]:
    """Return the condition of requests whose host is not allowed: the one that a proxy names in a header first."""
    allowed = "^(?:" + "|".join(re.escape(host) for host in written.allowed_hosts) + ")$"
    condition: list[Any] = ["http_host", "!", "~*", allowed]
    for name in reversed(written.hosts_proxy_headers):
        variable = f"http_{name.lower().replace('-', '_')}"
        is_named = [variable, "~~", "."]
        other = ["AND", is_named, [variable, "!", "~*", allowed]]
        condition = ["OR", other, ["AND", [variable, "!", "~~", "."], condition]]
    return condition
