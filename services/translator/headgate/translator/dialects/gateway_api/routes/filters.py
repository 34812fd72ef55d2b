"""Filters of a rule or of a backend: what is done with requests and answers.

A filter that cannot be followed is never left out: requests that it is for are refused.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from headgate.common.plugins.traffic.proxy_rewrite import ProxyRewriteConfig
from headgate.common.plugins.transformation.response_rewrite import ResponseRewriteConfig
from headgate.common.problems import Problem
from headgate.common.table import Mirror, PluginUse
from headgate.translator.dialects.gateway_api.models.filters import (
    Cors,
    ExtensionReference,
    ExternalAuth,
    HeaderModifier,
    HeaderValue,
    PathModifier,
    RequestMirror,
    RequestRedirect,
    RouteFilter,
    UrlRewrite,
)
from headgate.translator.dialects.gateway_api.routes.backends import find_service_port
from headgate.translator.dialects.gateway_api.routes.context import RouteContext
from headgate.translator.dialects.gateway_api.routes.cors import cors_use
from headgate.translator.dialects.gateway_api.routes.extensions import find_extension
from headgate.translator.dialects.gateway_api.routes.external_auth import find_external_auth
from headgate.translator.dialects.gateway_api.routes.literals import literal
from headgate.translator.dialects.gateway_api.routes.redirects import Origin, depends_on_origin, redirect_use
from headgate.translator.fragments.fragment import BackendUse
from headgate.translator.manifests.specs import refuse

_FIELDS: Final = {
    "RequestHeaderModifier": "request_header_modifier",
    "ResponseHeaderModifier": "response_header_modifier",
    "RequestRedirect": "request_redirect",
    "URLRewrite": "url_rewrite",
    "RequestMirror": "request_mirror",
    "CORS": "cors",
    "ExtensionRef": "extension_ref",
    "ExternalAuth": "external_auth",
}
_WRITTEN: Final = {name: "urlRewrite" if name == "URLRewrite" else name[0].lower() + name[1:] for name in _FIELDS}
_WRITTEN["CORS"] = "cors"
_PLACES: Final = {
    "RequestHeaderModifier": "request_headers",
    "ResponseHeaderModifier": "response_headers",
    "RequestRedirect": "redirect",
    "URLRewrite": "rewrite",
    "CORS": "cors",
}
"""In `Filters`, by type."""


class Filters(NamedTuple):
    """Filters that can be followed."""

    request_headers: HeaderModifier | None = None
    response_headers: HeaderModifier | None = None
    redirect: RequestRedirect | None = None
    rewrite: UrlRewrite | None = None
    cors: Cors | None = None
    mirrors: tuple[Mirror, ...] = ()
    uses: tuple[BackendUse, ...] = ()
    """Services that get copies, or that plugins refer to."""
    extensions: tuple[PluginUse, ...] = ()
    """Plugins of objects that filters name, in the order of these."""

    @property
    def replaces_prefix(self) -> bool:
        """Whether it depends on the prefix that a match asks for what becomes of the path."""
        paths = (each.path for each in (self.redirect, self.rewrite) if each is not None)
        return any(path is not None and path.type == "ReplacePrefixMatch" for path in paths)

    @property
    def depends_on_origin(self) -> bool:
        """Whether it depends on the listener where a redirect leads to."""
        return self.redirect is not None and depends_on_origin(self.redirect)

    def plugins(self, prefix: str | None, origin: Origin | None = None) -> tuple[PluginUse, ...]:
        """Return the plugins that say it.

        Args:
            prefix: that the match asks for; None for a match of another kind.
            origin: where clients come from, if it depends on that.
        """
        return tuple(self._plugins(prefix, origin))

    def _plugins(self, prefix: str | None, origin: Origin | None) -> Iterator[PluginUse]:
        if self.cors is not None:
            yield cors_use(self.cors)
        if self.redirect is not None:
            yield redirect_use(self.redirect, prefix, origin)
        if rewrite := _rewrite(self.request_headers, self.rewrite, prefix):
            yield PluginUse.of(ProxyRewriteConfig.model_validate(rewrite))
        if self.response_headers is not None:
            yield PluginUse.of(ResponseRewriteConfig.model_validate({"headers": _of_answers(self.response_headers)}))
        yield from self.extensions


def read_filters(
    written: Sequence[RouteFilter],
    field: str,
    context: RouteContext,
    problems: list[Problem],
    *,
    is_of_backend: bool = False,
) -> Filters | None:
    """Return what filters say; None if one of them cannot be followed, which `problems` then say."""
    own: list[Problem] = []
    found: dict[str, object] = {}
    mirrors: list[Mirror] = []
    uses: list[BackendUse] = []
    extensions: list[PluginUse] = []
    for index, each in enumerate(written):
        at = f"{field}[{index}]"
        value = _value_of(each, at, context.filter_types, own)
        if isinstance(value, RequestMirror):
            service = find_service_port(value.backend_ref, f"{at}.requestMirror.backendRef", context, problems)
            if service is not None:
                mirrors.append(Mirror(upstream=service.use.upstream.key, share=_share(value)))
                uses.append(service.use)
        elif isinstance(value, ExtensionReference):
            bundle = find_extension(value, f"{at}.extensionRef", context, own, is_of_backend=is_of_backend)
            if bundle is not None:
                extensions += bundle.uses
                uses += bundle.backends
        elif isinstance(value, ExternalAuth):
            asking = find_external_auth(value, f"{at}.externalAuth", context, own)
            if asking is not None:
                extensions.append(asking[0])
                uses.append(asking[1].use)
        elif value is not None and each.type in found:
            own.append(refuse("UnsupportedValue", f"{at}.type", "can be given once; put all of it into one", each.type))
        elif value is not None:
            found[each.type] = value
    if "RequestRedirect" in found and "URLRewrite" in found:
        message = "RequestRedirect and URLRewrite exclude each other: take one of them away"
        own.append(refuse("IncompatibleFilters", field, message))
    said: dict[str, Any] = {_PLACES[name]: value for name, value in found.items()}
    filters = Filters(**said, mirrors=tuple(mirrors), uses=tuple(uses), extensions=tuple(extensions))
    own += _refused(filters, field) if not own else ()
    problems += own
    return None if own else filters


def _refused(filters: Filters, field: str) -> Iterator[Problem]:
    """Yield what plugins do not take of filters: a name of a header with a blank, a host with a slash."""
    try:
        filters.plugins("/", Origin("http", 80))
    except ValidationError as error:
        for each in error.errors(include_url=False, include_input=False):
            message = each["msg"].removeprefix("Value error, ")
            yield refuse("UnsupportedValue", field, f"{'.'.join(map(str, each['loc']))}: {message}")


def _value_of(written: RouteFilter, at: str, served: Sequence[str], problems: list[Problem]) -> object | None:
    name = _FIELDS.get(written.type) if written.type in served else None
    if name is None:
        message = f"filters of this type are not served; these are: {', '.join(served)}"
        problems.append(refuse("UnsupportedValue", f"{at}.type", message, written.type))
        return None
    value: object | None = getattr(written, name)
    if value is None:
        problems.append(refuse("Required", f"{at}.{_WRITTEN[written.type]}", f"must be given with type {written.type}"))
        return None
    path = getattr(value, "path", None)
    if isinstance(path, PathModifier) and (missing := _missing(path)):
        problems.append(refuse("Required", f"{at}.{_WRITTEN[written.type]}.path.{missing}", "must be given"))
        return None
    return value


def _missing(path: PathModifier) -> str:
    """Return the field that the type of a change needs and that is not there."""
    if path.type == "ReplaceFullPath":
        return "replaceFullPath" if path.replace_full_path is None else ""
    return "replacePrefixMatch" if path.replace_prefix_match is None else ""


def _share(written: RequestMirror) -> float:
    if written.fraction is not None:
        return min(1.0, written.fraction.numerator / written.fraction.denominator)
    return 1.0 if written.percent is None else written.percent / 100


def _rewrite(headers: HeaderModifier | None, rewrite: UrlRewrite | None, prefix: str | None) -> dict[str, object]:
    said: dict[str, object] = {}
    if headers is not None:
        added: dict[str, list[str]] = {}
        for each in headers.add:
            added.setdefault(each.name, []).append(literal(each.value))
        said["headers"] = _given({"set": _values(headers.set), "add": added, "remove": list(headers.remove)})
    if rewrite is None:
        return said
    if rewrite.hostname:
        said["host"] = literal(rewrite.hostname)
    if rewrite.path is not None and rewrite.path.type == "ReplaceFullPath":
        said["uri"] = literal(f"/{(rewrite.path.replace_full_path or '').lstrip('/')}")
    elif rewrite.path is not None:
        said["replace_prefix"] = {"prefix": prefix or "/", "replacement": rewrite.path.replace_prefix_match or ""}
    return said


def _of_answers(headers: HeaderModifier) -> dict[str, object]:
    added = [f"{each.name}: {literal(each.value)}" for each in headers.add]
    return _given({"set": _values(headers.set), "add": added, "remove": list(headers.remove)})


def _given(changes: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in changes.items() if value}


def _values(headers: Sequence[HeaderValue]) -> dict[str, str]:
    return {each.name: literal(each.value) for each in headers}
