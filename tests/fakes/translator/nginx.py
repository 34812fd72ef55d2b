"""Ingresses as users of ingress-nginx write them."""

from typing import Any

from fakes.gateway.served import HOST
from fakes.translator.applied import World
from fakes.translator.deltas import ingress, ingress_class
from headgate.translator.annotations.nginx import NGINX_PREFIX
from headgate.translator.dialects.ingress.nginx.facts import NGINX_CONTROLLER
from headgate.translator.world.settings import NginxSettings, TranslationSettings

ADOPTED = TranslationSettings(controller_names=frozenset({NGINX_CONTROLLER}), nginx=NginxSettings(allow_snippets=True))
"""Classes of ingress-nginx are ours, and snippets are followed."""
NGINX_CLASS = ingress_class("nginx", NGINX_CONTROLLER)


def nginx_ingress(name: str = "web", *, to: str = "one", path: str = "/", host: str = HOST, **more: Any) -> Any:
    """Return an Ingress with one path; further arguments are annotations (`rewrite_target`), or those of `ingress`."""
    own = {key: more.pop(key) for key in ("namespace", "created", "class_name", "spec", "uid", "port") if key in more}
    annotations = {f"{NGINX_PREFIX}{key.replace('_', '-')}": value for key, value in more.items()}
    return ingress(name, host=host, path=path, service=to, annotations=annotations, **own)


def classed(name: str = "web", **more: Any) -> Any:
    """Return an Ingress of `NGINX_CLASS`, which needs no annotations to be one of ingress-nginx."""
    return nginx_ingress(name, class_name="nginx", **more)


def options(**data: str) -> Any:
    """Return the controller's ConfigMap; keys have `_` for `-`."""
    named = {key.replace("_", "-"): value for key, value in data.items()}
    metadata = {"name": "ingress-nginx-controller", "namespace": "ingress-nginx"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": named}


def request_line(made: World, name: str = "one") -> str:
    """Return the request line that a server got last."""
    return made.servers[name].heads[-1].split(b"\r\n")[0].decode()


def headers(made: World, name: str = "one") -> dict[str, str]:
    """Return the headers that a server got last, by their names in lower case."""
    lines = made.servers[name].heads[-1].decode().rstrip().split("\r\n")[1:]
    return {key.lower(): value for key, _, value in (line.partition(": ") for line in lines)}
