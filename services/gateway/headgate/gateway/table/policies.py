"""What a route asks of the proxy beyond the plain way, compiled."""

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from headgate.common.table import Retries, Route, Tracing
from headgate.gateway.proxy.policies import RetryPolicy, RoutePolicies

if TYPE_CHECKING:
    from headgate.gateway.proxy.hooks import RequestHooks
    from headgate.gateway.tls.policy import ClientGuard

_GATEWAY_ERRORS = frozenset({502, 503, 504})
_DEFAULT_RETRIES = Retries()
_DEFAULT_TRACING = Tracing()


def compile_policies(
    route: Route, guard: "ClientGuard | None" = None, hooks: "RequestHooks | None" = None
) -> RoutePolicies | None:
    """Return a route's policies; None if it has none, as nearly all."""
    timeouts, tracing = route.timeouts, route.tracing
    # A group may have a cookie, and may get one later.
    sets_cookie = route.stickiness is not None or any(backend.group for backend in route.backends)
    asks = (
        route.retries != _DEFAULT_RETRIES,
        route.max_body is not None,
        route.buffer_request,
        route.keeps_body > 0,
        route.needs_length,
        route.buffer_response > 0,
        not route.websocket,
        route.request_trailers,
        route.nginx_headers,
        route.as_traefik,
        timeouts.request_s is not None,
        timeouts.idle_s is not None,
        tracing != _DEFAULT_TRACING,
        route.access_log_share is not None,
        not route.backends,
        sets_cookie,
        guard is not None,
        hooks is not None,
    )
    if not any(asks):
        return None
    return RoutePolicies(
        retries=compile_retries(route.retries),
        hooks=hooks,
        guard=guard,
        sets_cookie=sets_cookie,
        max_body=route.max_body,
        buffer_request=route.buffer_request,
        keeps_body=route.keeps_body,
        needs_length=route.needs_length,
        buffer_response=route.buffer_response,
        websocket=route.websocket,
        request_trailers=route.request_trailers,
        nginx_headers=route.nginx_headers,
        as_traefik=route.as_traefik,
        request_s=timeouts.request_s,
        idle_s=timeouts.idle_s,
        log_share=route.access_log_share,
        trace_share=tracing.share,
        trace_heeds_parent=tracing.heeds_parent,
        trace_attributes=tracing.attributes,
        trace_headers=tuple(name.lower() for name in tracing.headers),
    )


def guard_policies(policies: RoutePolicies | None, guard: "ClientGuard") -> RoutePolicies:
    """Return a route's policies for requests of another host, whose clients have to show what that host asks for."""
    return replace(policies or RoutePolicies(), guard=guard)


@lru_cache(256)
def compile_retries(retries: Retries) -> RetryPolicy:
    """Return a retry policy in the proxy's form; routes that ask for the same share it."""
    statuses = frozenset(retries.statuses) if "status" in retries.on else frozenset()
    if "gateway-error" in retries.on:
        statuses |= _GATEWAY_ERRORS
    reasons = frozenset(retries.on) & {"connect", "reset", "timeout", "refused-stream"}
    if "connect" in reasons:
        reasons |= {"refused-stream"}
    return RetryPolicy(
        retries.attempts,
        reasons,
        statuses,
        retries.unsafe,
        retries.per_try_s,
        retries.total_s,
        retries.budget,
        retries.backoff_s,
    )
