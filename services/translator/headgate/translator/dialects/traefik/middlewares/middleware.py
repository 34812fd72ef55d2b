"""A Middleware to plugins. A Middleware that cannot be followed closes the routes that use it, and is never followed in
part.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic import ValidationError

from headgate.common.problems import Problem
from headgate.common.resources import JsonObject
from headgate.common.table import PluginUse
from headgate.translator.dialects.traefik.middlewares import breaking, guards, resending, rewriting
from headgate.translator.dialects.traefik.middlewares.compression import compress, content_type
from headgate.translator.dialects.traefik.middlewares.error_pages import error_pages
from headgate.translator.dialects.traefik.middlewares.forward_auth import forward_auth
from headgate.translator.dialects.traefik.middlewares.headers import headers
from headgate.translator.dialects.traefik.middlewares.making import Made, Making, Unfollowed
from headgate.translator.dialects.traefik.middlewares.plugin import plugin
from headgate.translator.dialects.traefik.models.middleware import MiddlewareSpec
from headgate.translator.manifests.specs import read_part, refuse

CHAIN: Final = "chain"
_MAKERS: Final[Mapping[str, Callable[[Any, Making], Made | tuple[PluginUse, ...]]]] = {
    "add_prefix": rewriting.add_prefix,
    "strip_prefix": rewriting.strip_prefix,
    "strip_prefix_regex": rewriting.strip_prefix_regex,
    "replace_path": rewriting.replace_path,
    "replace_path_regex": rewriting.replace_path_regex,
    "redirect_regex": rewriting.redirect_regex,
    "redirect_scheme": rewriting.redirect_scheme,
    "basic_auth": guards.basic_auth,
    "digest_auth": guards.digest_auth,
    "in_flight_req": guards.in_flight_requests,
    "ip_allow_list": guards.ip_allow_list,
    "ip_white_list": guards.ip_allow_list,
    "rate_limit": guards.rate_limit,
    "headers": headers,
    "circuit_breaker": breaking.circuit_breaker,
    "encoded_characters": breaking.encoded_characters,
    "grpc_web": breaking.grpc_web,
    "pass_tls_client_cert": breaking.pass_client_certificate,
    "plugin": plugin,
    "buffering": resending.buffering,
    "compress": compress,
    "errors": error_pages,
    "forward_auth": forward_auth,
    "retry": resending.retry,
    "content_type": content_type,
}
"""By the fields of the model; most stand for plugins alone."""


def read_spec(manifest: JsonObject, problems: list[Problem]) -> MiddlewareSpec | None:
    """Return what a Middleware says; None where it cannot be read."""
    part = read_part(MiddlewareSpec, manifest.get("spec"), "spec", problems)
    return part.value if part is not None else None


def make(spec: MiddlewareSpec, making: Making, problems: list[Problem]) -> Made:
    """Return what a Middleware stands for; nothing where `problems` has an error. A chain stands for nothing of its
    own.
    """
    kinds = sorted(name for name in type(spec).model_fields if getattr(spec, name) is not None)
    written = [type(spec).model_fields[kind].alias or kind for kind in kinds]
    if len(kinds) != 1:
        message = f"must have one kind of middleware, but has {', '.join(written) or 'none'}"
        problems.append(refuse("InvalidValue", "spec", message))
        return Made()
    if kinds[0] == CHAIN:
        return Made()
    field = f"spec.{written[0]}"
    try:
        made = _MAKERS[kinds[0]](getattr(spec, kinds[0]), making)
        return made if isinstance(made, Made) else Made(made)
    except Unfollowed as error:
        problems.append(refuse(error.reason, f"{field}.{error.field}".removesuffix("."), str(error)))
    except ValidationError as error:
        message = error.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
        problems.append(refuse("InvalidValue", field, f"cannot be followed: {message}"))
    return Made()
