"""A dynamic configuration of Traefik as the objects of Kubernetes that say the same."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fakes.translator.applied import secret
from fakes.translator.traefik import middleware, resource, route, rule
from fakes.translator.traefik_streams import rule as stream_rule
from fakes.translator.traefik_streams import tcp

Part = Mapping[str, Any]
_OF_ROUTERS: Final = {"priority": "priority", "ruleSyntax": "syntax"}
_USERS: Final = ("basicAuth", "digestAuth")
_OF_SERVERS: Final = ("sticky", "passHostHeader", "strategy", "healthCheck")


def objects_of(dynamic: Part) -> list[Any]:
    """Return IngressRoutes, Middlewares, TraefikServices, TLSOptions and the Secrets that these name."""
    return [*_http(dynamic.get("http", {})), *_options(dynamic.get("tls", {})), *_tcp(dynamic.get("tcp", {}))]


def servers_of(dynamic: Part) -> list[str]:
    """Return the names of the services that have servers."""
    services = {**dynamic.get("http", {}).get("services", {}), **dynamic.get("tcp", {}).get("services", {})}
    return [name for name, each in services.items() if "loadBalancer" in each]


def _http(part: Part) -> Iterator[Any]:
    services = part.get("services", {})
    for name, spec in part.get("middlewares", {}).items():
        yield from _middleware(name, spec)
    for name, service in services.items():
        if "loadBalancer" not in service:
            yield _combined(name, service, services)
    for name, router in part.get("routers", {}).items():
        said = {ours: router[theirs] for theirs, ours in _OF_ROUTERS.items() if theirs in router}
        to = _reference({"name": router["service"]}, services)
        made = rule(router["rule"], to, middlewares=router.get("middlewares", ()), **said)
        yield route(made, name=name, spec=_of_object(router))


def _of_object(router: Part) -> dict[str, Any]:
    """Return what an IngressRoute says once for all of its routes."""
    spec: dict[str, Any] = {"entryPoints": router["entryPoints"]} if "entryPoints" in router else {}
    if "tls" in router:
        tls = dict(router["tls"] or {})
        if "options" in tls:
            tls["options"] = {"name": tls["options"]}
        spec["tls"] = tls
    return spec


def _middleware(name: str, written: Part) -> Iterator[Any]:
    ((kind, fields),) = written.items()
    fields = dict(fields or {})
    if kind in _USERS and "users" in fields:
        yield secret(f"users-of-{name}", users="\n".join(fields.pop("users")))
        fields["secret"] = f"users-of-{name}"
    if kind == "errors":
        fields["service"] = {"name": fields["service"], "port": 80}
    if kind == "chain":
        fields["middlewares"] = [{"name": each} for each in fields["middlewares"]]
    yield middleware(name, **{kind: fields})


def _reference(named: Part, services: Part) -> dict[str, Any]:
    """Return a reference to a service, with what its servers' balancer says."""
    service = services.get(named["name"], {})
    if service and "loadBalancer" not in service:
        return {**named, "kind": "TraefikService"}
    balancer = service.get("loadBalancer", {})
    return {**named, "port": 80, **{field: balancer[field] for field in _OF_SERVERS if field in balancer}}


def _combined(name: str, written: Part, services: Part) -> Any:
    ((kind, fields),) = written.items()
    spec = dict(fields)
    if kind in ("weighted", "highestRandomWeight"):
        spec["services"] = [_reference(each, services) for each in spec["services"]]
    elif kind == "mirroring":
        main = _reference({"name": spec.pop("service")}, services)
        spec = {**main, **spec, "mirrors": [_reference(each, services) for each in spec.get("mirrors", ())]}
    else:
        spec |= {role: _reference({"name": spec[role]}, services) for role in ("service", "fallback")}
    return resource("TraefikService", name, {kind: spec})


def _options(part: Part) -> Iterator[Any]:
    return (resource("TLSOption", name, spec) for name, spec in part.get("options", {}).items())


def _tcp(part: Part) -> Iterator[Any]:
    for name, router in part.get("routers", {}).items():
        said = {ours: router[theirs] for theirs, ours in _OF_ROUTERS.items() if theirs in router}
        to = {"name": router["service"], "port": 80}
        yield tcp(stream_rule(router["rule"], to, **said), name=name, **_of_object(router))
