"""Plugins of a route as filters of an HTTPRoute.

A standard filter is written where Headgate makes the very same plugin of it again; that is tried for each. What is left
is written into an object of the kind Plugin, which routes name by `extensionRef`.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from pydantic import ValidationError

from headgate.common.plugins.catalogue import CONFIGS
from headgate.common.plugins.meta import META
from headgate.common.resources import JsonObject
from headgate.common.table import PluginUse
from headgate.translator.dialects.gateway_api.models.filters import RouteFilter
from headgate.translator.dialects.gateway_api.routes.filters import Filters
from headgate.translator.dialects.gateway_api.routes.literals import literal
from headgate.translator.dialects.gateway_api.routes.redirects import Origin

_DOLLAR: Final = literal("$")
_ORIGIN: Final = Origin("http", 80)
_REDIRECT: Final = re.compile(
    r"(?P<scheme>https?|\$\{scheme\}|\$scheme)://(?P<host>\$\{host\}|\$host|[^/$:]+)(?::(?P<port>\d+))?"
    r"(?P<path>\$\{request_uri\}|\$request_uri|/[^$]*)"
)


def standard_filters(use: PluginUse, prefix: str | None) -> list[JsonObject] | None:
    """Return standard filters that say what a plugin does; None if there are none.

    Args:
        use: of a plugin.
        prefix: that the match asks for; None for a match of another kind.
    """
    make = _FILTERS.get(use.name)
    if make is None or use != PluginUse(name=use.name, config=use.config):
        return None
    try:
        filters = list(make(use.config))
        made = _translated(filters, prefix)
    except (ValidationError, _Unlike):
        return None
    return filters if [each.name for each in made] == [use.name] and same_config(made[0], use) else None


def same_config(one: PluginUse, other: PluginUse) -> bool:
    """Whether two uses of a plugin tell it the same."""
    model = CONFIGS.get(one.name)
    if one.name != other.name or model is None:
        return one == other
    try:
        return bool(model.model_validate(one.config) == model.model_validate(other.config))
    except ValidationError:
        return one.config == other.config


def as_named(use: PluginUse) -> JsonObject:
    """Return a plugin as objects name it."""
    config = {name: value for name, value in use.config.items() if name != META}
    meta = dict(_dict(use.config.get(META)))
    if use.order is not None:
        meta["priority"] = use.order
    return {"name": use.name, "config": {**config, META: meta} if meta else config}


class _Unlike(Exception):
    """A plugin does what no standard filter does."""


def _translated(filters: Sequence[JsonObject], prefix: str | None) -> Sequence[PluginUse]:
    found: dict[str, Any] = {}
    for each in filters:
        read = RouteFilter.model_validate(each)
        found |= {
            "request_headers": read.request_header_modifier or found.get("request_headers"),
            "response_headers": read.response_header_modifier or found.get("response_headers"),
            "redirect": read.request_redirect or found.get("redirect"),
            "rewrite": read.url_rewrite or found.get("rewrite"),
            "cors": read.cors or found.get("cors"),
        }
    return Filters(**found).plugins(prefix, _ORIGIN)


def _rewrite(config: Mapping[str, Any]) -> Iterator[JsonObject]:
    rewrite: JsonObject = {}
    if changes := _changes(_dict(config.get("headers")), _added_by_name):
        yield {"type": "RequestHeaderModifier", "requestHeaderModifier": changes}
    if config.get("host"):
        rewrite["hostname"] = _plain(config["host"])
    if config.get("uri"):
        rewrite["path"] = {"type": "ReplaceFullPath", "replaceFullPath": _plain(config["uri"])}
    elif replaced := _dict(config.get("replace_prefix")):
        rewrite["path"] = {"type": "ReplacePrefixMatch", "replacePrefixMatch": replaced.get("replacement", "")}
    if rewrite:
        yield {"type": "URLRewrite", "urlRewrite": rewrite}


def _answer(config: Mapping[str, Any]) -> Iterator[JsonObject]:
    if changes := _changes(_dict(config.get("headers")), _added_by_line):
        yield {"type": "ResponseHeaderModifier", "responseHeaderModifier": changes}


def _changes(headers: Mapping[str, Any], added: Callable[[Any], list[JsonObject]]) -> JsonObject:
    """Return changes of headers. Without one of the three fields they are names and values to set."""
    if headers and not headers.keys() & {"set", "add", "remove"}:
        headers = {"set": headers}
    said = {
        "set": [{"name": name, "value": _plain(value)} for name, value in _dict(headers.get("set")).items()],
        "add": added(headers.get("add")),
        "remove": list(headers.get("remove") or ()),
    }
    return {name: value for name, value in said.items() if value}


def _added_by_name(added: Any) -> list[JsonObject]:
    found = []
    for name, values in _dict(added).items():
        found += [{"name": name, "value": _plain(one)} for one in ([values] if isinstance(values, str) else values)]
    return found


def _added_by_line(added: Any) -> list[JsonObject]:
    lines = [str(line).partition(":") for line in added or ()]
    return [{"name": name.strip(), "value": _plain(value.strip())} for name, _, value in lines]


def _redirect(config: Mapping[str, Any]) -> Iterator[JsonObject]:
    found = _REDIRECT.fullmatch(str(config.get("uri") or ""))
    if found is None:
        raise _Unlike
    said: JsonObject = {}
    if not found["scheme"].startswith("$"):
        said["scheme"] = found["scheme"]
    if not found["host"].startswith("$"):
        said["hostname"] = found["host"]
    if not found["path"].startswith("$"):
        said["path"] = {"type": "ReplaceFullPath", "replaceFullPath": found["path"]}
    if found["port"]:
        said["port"] = int(found["port"])
    yield {"type": "RequestRedirect", "requestRedirect": {**said, "statusCode": config.get("ret_code", 302)}}


def _cors(config: Mapping[str, Any]) -> Iterator[JsonObject]:
    said = {
        "allowOrigins": _listed(config.get("allow_origins")),
        "allowCredentials": config.get("allow_credential", False),
        "allowMethods": _listed(config.get("allow_methods")),
        "allowHeaders": _listed(config.get("allow_headers")),
        "exposeHeaders": _listed(config.get("expose_headers")),
        "maxAge": config.get("max_age", 5),
    }
    yield {"type": "CORS", "cors": {name: value for name, value in said.items() if value}}


def _listed(text: Any) -> list[str]:
    values = [each.strip() for each in str(text or "").split(",") if each.strip()]
    return ["*"] if values == ["**"] else values


def _plain(template: Any) -> str:
    """Return what a template stands for, if that is the same for all requests."""
    text = template if isinstance(template, str) else _unlike()
    if "$" in text.replace(_DOLLAR, ""):
        raise _Unlike
    return text.replace(_DOLLAR, "$")


def _unlike() -> str:
    raise _Unlike


def _dict(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


_FILTERS: Final[Mapping[str, Callable[[Mapping[str, Any]], Iterator[JsonObject]]]] = {
    "proxy-rewrite": _rewrite,
    "response-rewrite": _answer,
    "redirect": _redirect,
    "cors": _cors,
}
