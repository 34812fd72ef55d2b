"""The middleware `errors`, as `error-page` says it."""

from typing import Any, Final

from headgate.common.plugins.transformation.error_page import ErrorPageConfig
from headgate.common.resources.traefik import MIDDLEWARE
from headgate.common.table import PluginUse
from headgate.translator.dialects.traefik.middlewares.making import Made, Making, Unfollowed
from headgate.translator.dialects.traefik.middlewares.resending import statuses_of
from headgate.translator.dialects.traefik.models.exchanges import ErrorPages
from headgate.translator.dialects.traefik.models.service import LoadBalancer
from headgate.translator.dialects.traefik.references import BadReference
from headgate.translator.dialects.traefik.services.upstreams import BadService, upstream_of
from headgate.translator.fragments.fragment import BackendUse

PAGES: Final = "errors"
"""Name of the group that pages come from, within its Middleware."""


def error_pages(written: ErrorPages, making: Making) -> Made:
    """Have a Service write the pages of errors."""
    if not written.status:
        return Made()  # Traefik takes it so, and nothing is an error then
    if written.service is None:
        raise Unfollowed("Required", "service", "must be given: the Service with the pages")
    target, uses = _target(written.service, making)
    told: dict[str, Any] = {
        **target,
        "statuses": [_range(text, "status") for text in written.status],
        "rewrites": {_range(text, "statusRewrites"): to for text, to in written.status_rewrites.items()},
        "path": f"/{written.query.removeprefix('/')}",
        "whole_url": True,
        "tells_case": False,
        "request_headers": written.error_request_headers,
        "kept_headers": (),
        "keep_status": True,
    }
    return Made((PluginUse.of(ErrorPageConfig.model_validate(told)),), uses=uses)


def _target(service: LoadBalancer, making: Making) -> tuple[dict[str, str], tuple[BackendUse, ...]]:
    """Return whom the plugin asks, and which upstream that is; the Middleware itself makes the group of a
    TraefikService, once for all routes.
    """
    if service.is_traefik_service:
        return {"group": f"{making.cluster}/{making.namespace}/{MIDDLEWARE.resource}/{making.name}/{PAGES}"}, ()
    try:
        upstream, _ = upstream_of(service, making.cluster, making.namespace, making.lookups)
    except BadService as error:
        raise Unfollowed(error.reason, f"service.{error.field}", str(error)) from error
    except BadReference as error:
        raise Unfollowed(error.reason, "service.namespace", str(error)) from error
    name_field, port_field = (making.field_of("errors", f"service.{name}") for name in ("name", "port"))
    use = BackendUse(upstream, name_field, port_field, making.lookups.settings.traefik.allow_empty_services)
    return {"upstream": upstream.key}, (use,)


def _range(text: str, field: str) -> str:
    found = statuses_of(text, field)
    if found.start < 200:
        raise Unfollowed("InvalidValue", field, f"must be from 200 to 599: {text[:40]!r}")
    return f"{found.start}-{found.stop - 1}"
