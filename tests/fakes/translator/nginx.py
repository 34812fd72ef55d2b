"""Ingresses as users of ingress-nginx write them."""

from typing import Any

from fakes.gateway.served import HOST
from fakes.translator.deltas import ingress
from headgate.translator.annotations.nginx import NGINX_PREFIX


def nginx_ingress(name: str = "web", *, to: str = "one", path: str = "/", host: str = HOST, **more: Any) -> Any:
    """Return an Ingress with one path; further arguments are annotations (`rewrite_target`), or those of `ingress`."""
    own = {key: more.pop(key) for key in ("namespace", "created", "class_name", "spec", "uid", "port") if key in more}
    annotations = {f"{NGINX_PREFIX}{key.replace('_', '-')}": value for key, value in more.items()}
    return ingress(name, host=host, path=path, service=to, annotations=annotations, **own)
