"""The filter CORS, as the plugin `cors` says it."""

import re
from typing import Final

from headgate.common.plugins.security.cors import CorsConfig
from headgate.common.table import PluginUse
from headgate.translator.dialects.gateway_api.models.filters import Cors

_EVERY: Final = "*"
_SIMPLE_METHODS: Final = ("GET", "HEAD", "POST")
"""That the Fetch standard lets through without being asked."""


def cors_use(written: Cors) -> PluginUse:
    """Return the plugin that says it. Where credentials are allowed browsers take no `*`, so names are repeated."""
    every = "**" if written.allow_credentials else _EVERY
    wild = [origin for origin in written.allow_origins if _EVERY in origin and origin != _EVERY]
    plain = [origin for origin in written.allow_origins if origin not in wild]
    fields: dict[str, object] = {
        "allow_methods": _joined(written.allow_methods or _SIMPLE_METHODS, every),
        "allow_headers": _joined(written.allow_headers, every),
        "max_age": written.max_age,
        "allow_credential": written.allow_credentials,
        "every_preflight": True,
    }
    if written.expose_headers:
        fields["expose_headers"] = _joined(written.expose_headers, every)
    if wild:
        fields["allow_origins_by_regex"] = [_pattern(origin) for origin in wild]
    if plain or not wild:
        fields["allow_origins"] = _joined(plain, every)
    return PluginUse.of(CorsConfig.model_validate(fields))


def _joined(values: tuple[str, ...] | list[str], every: str) -> str:
    return every if _EVERY in values else ",".join(values)


def _pattern(origin: str) -> str:
    """Return an origin as a pattern; a `*` stands for labels of any number, as Gateway API has it."""
    return "^(?i:" + ".+".join(re.escape(part) for part in origin.split(_EVERY)) + ")$"
