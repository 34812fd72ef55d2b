"""What middlewares say of requests to one backend of a route: its plugins, and how requests are sent there."""

from headgate.common.plugins.limits.client_control import ClientControlConfig
from headgate.common.table import Backend, PluginUse
from headgate.translator.dialects.traefik.middlewares.following import in_order
from headgate.translator.dialects.traefik.middlewares.making import Made


def onto_backend(backend: Backend, made: Made, keeps_body: int = 0) -> Backend:
    """Return a backend whose requests go through middlewares first.

    Args:
        backend: perhaps with plugins of its own, which are behind those of the middlewares.
        made: the middlewares.
        keeps_body: bytes of a body that is sent again for another reason than theirs.
    """
    said = made.route
    limits = () if said.max_body is None else (PluginUse.of(ClientControlConfig(max_body_size=said.max_body)),)
    fields = {
        "plugins": in_order(Made((*limits, *made.plugins, *backend.plugins))).plugins,
        "retries": said.retries or backend.retries,
        "keeps_body": max(said.keeps_body or 0, keeps_body, backend.keeps_body),
    }
    return backend.model_copy(update=fields)
