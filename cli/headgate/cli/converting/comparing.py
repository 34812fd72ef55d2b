"""What was read and what was written, both translated, field by field."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from headgate.cli.converting.backends import service_of
from headgate.cli.converting.documents import Document, NoEqual
from headgate.cli.converting.filters import same_config
from headgate.cli.converting.http_routes import HttpRoutes
from headgate.cli.converting.ordering import reordered, rule_name
from headgate.cli.converting.policies import as_served
from headgate.cli.converting.rules import Rule
from headgate.cli.converting.sources import Table
from headgate.common.plugins.meta import META
from headgate.common.resources import HTTP_ROUTE
from headgate.common.table import PluginUse, Route, Timeouts, Upstream, VirtualHost

_ELSEWHERE: Final = frozenset(
    ("name", "path", "when", "rank", "backends", "canaries", "plugins", "provenance", "mirrors")
)
"""Fields of routes that are compared otherwise, or that rules and matches say by themselves."""
_UPSTREAM_ELSEWHERE: Final = frozenset(("key", "provenance", "endpoints", "unavailable"))
_HINTS: Final[Mapping[str, str]] = {
    "timeouts": "BackendTrafficPolicy of apisix.apache.org has timeout, for a Service",
    "nginx_headers": "X-Scheme, X-Forwarded-Scheme and X-Original-Forwarded-For are not sent",
    "as_traefik": "paths, queries and X-Forwarded-* are sent as from any other route, not as from Traefik",
    "protocol": "give the Service's port an appProtocol",
    "balancing": "BackendTrafficPolicy of apisix.apache.org has loadbalancer",
    "host": "URLRewrite has hostname",
    "active_check": "BackendTrafficPolicy of apisix.apache.org has healthCheck",
    "ejection": "BackendTrafficPolicy of apisix.apache.org has healthCheck.passive",
    "tls": "a BackendTLSPolicy says how TLS is spoken with a Service",
}


def compare(before: Table, after: Table, routes: HttpRoutes) -> None:
    """Add to converted routes what differs when they are served."""
    documents = {document.place: document for documents in routes.written.values() for document in documents}
    by_upstream: dict[str, list[Document]] = {}
    told: dict[tuple[int, str], tuple[Document, set[int]]] = {}
    for name, rule, new in _pairs(after, routes):
        document = documents[HTTP_ROUTE.kind, name[0], name[1]]
        for text in (*_fields(rule.route, new), *_plugins(rule, new.plugins)):
            told.setdefault((id(document), text), (document, set()))[1].add(name[2])
        for backend in rule.route.backends:
            by_upstream.setdefault(backend.upstream, []).append(document)
    for (_, text), (document, rules) in told.items():
        document.remark(f"{_rules(document, rules)}{text}")
    for key, users in by_upstream.items():
        for text in _upstream(key, before, after):
            for user in users:
                user.remark(text)
    for first, second, where in reordered(before, after, routes.origins):
        text = f"{where}: {_named(second)} goes before {_named(first)} now"
        for document in routes.documents_of(second):
            document.remark(text)
    for place, host in before.hosts.items():
        _wider(host, before, routes, place.listeners)


def _rules(document: Document, indexes: set[int]) -> str:
    """Return a prefix that names rules, empty for all of a route."""
    is_all = len(indexes) == len(document.manifest["spec"]["rules"])
    return "" if is_all else f"{', '.join(f'rules[{index}]' for index in sorted(indexes))}: "


def _pairs(after: Table, routes: HttpRoutes) -> Iterator[tuple[tuple[str, str, int, int], Rule, Route]]:
    """Yield each match of each rule, what it is made of, and the route that it makes."""
    seen: set[tuple[str, str, int, int]] = set()
    for source in after.sources:
        for route, _ in source.routes:
            name = rule_name(route)
            if name in routes.origins and name not in seen:
                seen.add(name)
                yield name, routes.origins[name], route
    for name in routes.origins.keys() - seen:
        document = next(
            one for written in routes.written.values() for one in written if one.place == (HTTP_ROUTE.kind, *name[:2])
        )
        document.remark(f"rules[{name[2]}].matches[{name[3]}]: is not served")


def _fields(old: Route, new: Route) -> Iterator[str]:
    for name in Route.model_fields.keys() - _ELSEWHERE:
        before, after = getattr(old, name), getattr(new, name)
        if name == "timeouts":
            before, after = as_served(old.timeouts), as_served(_timeouts(new))
        if before == after or (name == "max_body" and after is None):
            continue
        yield from _changes(name, before, after)


def _timeouts(route: Route) -> Timeouts:
    """Return a route's timeouts with what all of its backends say alike."""
    said = {backend.timeouts for backend in route.backends}
    own = said.pop().model_dump(exclude_none=True) if len(said) == 1 else {}
    return route.timeouts.model_copy(update=own)


def _changes(name: str, before: Any, after: Any) -> Iterator[str]:
    """Yield what changed, of values with fields by field."""
    fields = type(before).model_fields if hasattr(type(before), "model_fields") and type(before) is type(after) else {}
    for each in fields:
        if getattr(before, each) != getattr(after, each):
            yield from _changes(f"{name}.{each}", getattr(before, each), getattr(after, each))
    if not fields:
        hint = _HINTS.get(name.partition(".")[0])
        yield f"{name} was {_shown(before)}, and is {_shown(after)}" + (f" ({hint})" if hint else "")


def _shown(value: Any) -> str:
    if value is None or value == ():
        return "not said"
    if value == "":
        return "empty"
    if hasattr(value, "model_dump"):
        return str(value.model_dump(mode="json", exclude_defaults=True))
    return str(list(value)) if isinstance(value, tuple) else str(value)


def _plugins(rule: Rule, after: Iterable[PluginUse]) -> Iterator[str]:
    left = list(after)
    for use in rule.expected:
        found = next((one for one in left if _is_same(one, use, is_alone=len(rule.route.plugins) == 1)), None)
        if found is not None:
            left.remove(found)
            continue
        other = next((one for one in left if one.name == use.name), None)
        if other is None:
            yield f"plugin {use.name} does not run"
        else:
            left.remove(other)
            yield f"plugin {use.name} has another configuration"


def _is_same(new: PluginUse, old: PluginUse, *, is_alone: bool) -> bool:
    meta = new.config.get(META)
    order = meta.get("priority") if isinstance(meta, dict) else new.order
    rest = {name: value for name, value in new.config.items() if name != META}
    if isinstance(meta, dict) and (others := {name: value for name, value in meta.items() if name != "priority"}):
        rest[META] = others
    is_ordered = order == old.order or is_alone
    return is_ordered and same_config(new.model_copy(update={"config": rest}), old)


def _upstream(key: str, before: Table, after: Table) -> Iterator[str]:
    old = before.upstreams.get(key)
    try:
        service = service_of(key, before)
    except NoEqual:
        return
    cluster = key.partition("/")[0]
    new = after.upstreams.get(f"{cluster}/{service.namespace}/{service.name}:{service.port}")
    if old is None or new is None:
        return
    for name in Upstream.model_fields.keys() - _UPSTREAM_ELSEWHERE:
        if getattr(old, name) != getattr(new, name):
            for text in _changes(name, getattr(old, name), getattr(new, name)):
                yield f"Service {service.namespace}/{service.name}: {text}"


def _wider(host: VirtualHost, before: Table, routes: HttpRoutes, listeners: tuple[str, ...]) -> None:
    """Remark that other paths of a host, which got a 404, are now those of a wider host."""
    if host.unmatched != "404" or any(one.path.value == "/" and one.when is None for one in host.routes):
        return
    above = f"*.{host.host.partition('.')[2]}"
    wider = [one.host for place, one in before.hosts.items() if place.host in (above, f"*{above}", "*")]
    if not wider or host.host in wider or not host.routes:
        return
    text = f"paths of {host.host} that no rule takes were answered with 404, and are now those of {wider[0]}"
    for route in host.routes:
        for document in routes.documents_of(route)[:1]:
            document.remark(text)


def _named(route: Route) -> str:
    return f"{route.path.type} {route.path.value} of {route.provenance.kind} {route.provenance.name}"
