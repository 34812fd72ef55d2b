"""What stands between the head of a request and the choice of an endpoint: its path, its route, what the route asks."""

from typing import TYPE_CHECKING, Final

from headgate.common.perl_patterns import PatternTooCostly
from headgate.gateway.proxy.context import ProxyContext
from headgate.gateway.proxy.heads.forward import came_by_hop, nginx_lines
from headgate.gateway.proxy.heads.paths import clean, has_bad_escape, is_plain, normalize
from headgate.gateway.proxy.policies import RoutePolicies
from headgate.gateway.proxy.seam import NeedsBody, RouteTarget
from headgate.gateway.tls.identity import MISDIRECTED, check, identity_lines, without_claims
from headgate.gateway.tls.policy import ClientGuard

if TYPE_CHECKING:
    from headgate.gateway.proxy.exchange.exchange import Exchange


def admit(exchange: "Exchange", context: ProxyContext, path: bytes) -> None:
    """Find the route of a request with this path, and do what it asks; then an endpoint is chosen."""
    exchange.path = path
    exchange.needs_cleaning = False
    if not is_plain(path) and not _normalize(exchange, context):
        return
    fields = exchange.fields
    if fields.upgrade and fields.wants_websocket and exchange.method == b"GET" and exchange.request_done:
        exchange.upgrade = fields.upgrade
    _find_route(exchange, context)


def admit_with_body(exchange: "Exchange", context: ProxyContext) -> None:
    """Go on with a request whose body was waited for: it is whole now, or too long to be kept."""
    body, fields = exchange.body, exchange.fields
    if body.is_held:
        body.is_held = body.passes_on = False
        if fields.chunked and not body.trailers and exchange.request_done:
            fields.chunked = False
            fields.content_length = body.size
    route, run = exchange.route, exchange.run
    if route is None:
        exchange.facts().body = body.at_hand()
        _find_route(exchange, context)
    elif run is not None:
        run.body_read(body.at_hand())
    elif route.policies is None or _start_hooks(exchange, route.policies):
        exchange.attempts.choose(route)


def _normalize(exchange: "Exchange", context: ProxyContext) -> bool:
    """Read a path that not all servers read alike; False: the request was refused."""
    path = exchange.path
    mode = context.config.path_normalization
    read = normalize(path, mode)
    if read is None and mode == "rewrite":
        read = clean(path)
        exchange.needs_cleaning = read is not None
    if read is None:
        exchange.refuse(400, _AMBIGUOUS)
        return False
    exchange.path = read[0]
    if read[1] != path:
        exchange.target = read[1] + exchange.target[len(path) :]
    return True


_AMBIGUOUS: Final = "path that servers read in different ways"


def _find_route(exchange: "Exchange", context: ProxyContext) -> None:
    router = context.holder.router
    if router is None:
        exchange.refuse(503, "no route table yet")
        return
    try:
        route = router.match(exchange.fields.host, exchange.path, exchange)
    except PatternTooCostly as error:
        exchange.accounting.routed(None)
        exchange.refuse(500, str(error))
        return
    if exchange.needs_cleaning and not _is_traefiks(route):
        exchange.accounting.routed(None)
        exchange.refuse(400, _AMBIGUOUS)
    elif route is None:
        exchange.accounting.routed(None)
        exchange.refuse(404, "no route takes this host and path")
    elif isinstance(route, NeedsBody):
        _hold_body(exchange, context)
    else:
        exchange.route = route
        exchange.accounting.routed(route)
        policies = route.policies
        if policies is None or _apply(exchange, context, policies):
            exchange.attempts.choose(route)


def _is_traefiks(route: RouteTarget | NeedsBody | None) -> bool:
    if route is None:
        return False
    if isinstance(route, NeedsBody):
        return True
    return route.policies is not None and route.policies.as_traefik


def _hold_body(exchange: "Exchange", context: ProxyContext) -> None:
    """Wait for all of the body."""
    if exchange.request_done:
        admit_with_body(exchange, context)
    else:
        exchange.intake.hold(context.config.max_buffered)


def _apply(exchange: "Exchange", context: ProxyContext, policies: RoutePolicies) -> bool:
    """Apply what a route asks before an endpoint is chosen; False: the request is answered, or waits."""
    if policies.fault:
        exchange.refuse(policies.fault_status, policies.fault)
        return False
    if policies.guard is not None and not _check_client(exchange, policies.guard):
        return False
    if policies.nginx_headers and exchange.rerouting is None:
        exchange.change_lines(exchange.fields.lines + nginx_lines(exchange.fields, exchange.origin))
    if policies.as_traefik and exchange.fields.traefik_forwarding is None and not _read_as_traefik(exchange, context):
        return False
    if policies.max_body is not None and not exchange.intake.limit(policies.max_body):
        return False
    if policies.request_s is not None:
        exchange.deadlines.allow(policies.request_s)
    if not policies.websocket:
        exchange.upgrade = b""
    holds = policies.buffer_request or (policies.needs_length and exchange.fields.chunked)
    if holds and not exchange.request_done:
        _hold_body(exchange, context)
        return False
    keeps = min(policies.keeps_body, context.config.max_buffered)
    is_long = max(exchange.fields.content_length, exchange.body.size) > keeps
    if keeps > 0 and not is_long and not exchange.request_done:
        exchange.intake.hold(keeps, passes_on=True)
        return False
    return _start_hooks(exchange, policies)


def _read_as_traefik(exchange: "Exchange", context: ProxyContext) -> bool:
    """Make of a request what Traefik's entry points make of it; False: it was refused."""
    config, tls, fields = context.config, exchange.client.peer.tls, exchange.fields
    if tls is not None and not tls.suits(fields.host.decode("latin-1")) and not came_by_hop(fields):
        # Gateways of other clusters send requests for all hosts by the same connections, and name none.
        exchange.refuse(421, MISDIRECTED)
        return False
    fields.traefik_forwarding = config
    exchange.change_lines(fields.lines)
    path, mark, query = exchange.target.partition(b"?")
    if b";" in query:
        # Before plugins see it: what they let in by one reading must not reach the upstream by another.
        query = query.replace(b";", b"%3B" if config.encode_semicolons else b"&")
        exchange.change_query(query)
    if not is_plain(path):
        if has_bad_escape(path):
            exchange.refuse(400, "path with a % that begins no escape")
            return False
        if config.path_normalization == "rewrite" and (read := clean(path)) is not None:
            exchange.target = read[1] + mark + query
    return True


def _check_client(exchange: "Exchange", guard: ClientGuard) -> bool:
    """Let in whom the host's rules for client certificates let in, and tell the upstream who it is."""
    tls = exchange.client.peer.tls
    secure_url, host = b"", exchange.fields.host
    if tls is None and host and exchange.origin.scheme == b"http":
        secure_url = b"https://" + host + exchange.target
    refusal = check(guard, tls, exchange.path, secure_url)
    if refusal is not None:
        exchange.refuse(refusal[0], refusal[1], refusal[2])
        return False
    exchange.change_lines(without_claims(exchange.fields.lines) + identity_lines(guard, tls))
    return True


def _start_hooks(exchange: "Exchange", policies: RoutePolicies) -> bool:
    """Run the route's hooks, if it has any; False: the request is answered, waits for one, or went on by itself."""
    if policies.hooks is None:
        return True
    run = exchange.run = policies.hooks.begin(exchange)
    if run is None:
        exchange.go_on()
        return False
    return run.start()
