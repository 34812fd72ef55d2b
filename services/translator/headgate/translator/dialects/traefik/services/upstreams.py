"""What a reference to a Service says of its upstream: scheme, balancing, checks, the host that is sent."""

import re
from typing import Any, Final

from headgate.common.table import (
    ActiveCheck,
    BackendProtocol,
    BackendTls,
    Balancing,
    BalancingPolicy,
    HashKey,
    Timeouts,
)
from headgate.common.table.upstream import Ejection
from headgate.translator.dialects.traefik.models.service import HealthCheck, LoadBalancer, PassiveHealthCheck
from headgate.translator.dialects.traefik.references import (
    BadReference,
    check_namespace,
    check_service_type,
    uses_cluster_ip,
)
from headgate.translator.dialects.traefik.services.transport import BadTransport, Transport, find_transport
from headgate.translator.manifests.patches import NO_UPSTREAM_PATCH, UpstreamPatch
from headgate.translator.sources.services import Service
from headgate.translator.sources.sharing import find_service
from headgate.translator.upstreams.overridden import OverriddenService, Override
from headgate.translator.world.graph import Lookups

_SCHEMES: Final = {
    "http": BackendProtocol.HTTP,
    "https": BackendProtocol.HTTPS,
    "h2c": BackendProtocol.H2C,
}
_BALANCING: Final = {
    "p2c": Balancing(policy=BalancingPolicy.LEAST_REQUESTS),
    "leasttime": Balancing(policy=BalancingPolicy.PEAK_EWMA),
    "hrw": Balancing(policy=BalancingPolicy.RENDEZVOUS, hash=(HashKey(source="client"),)),
}
_VERIFIED: Final = BackendTls(verify=True)
_METHOD: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_ABSOLUTE: Final = re.compile(r"[^/?#]*:|//|.*[^!-~]", re.DOTALL)
_INTERVAL_S: Final = 30.0
_TIMEOUT_S: Final = 5.0
_WINDOW_S: Final = 10.0
_FAILURES: Final = (500, 502, 503, 504)


class BadService(ValueError):
    """A reference to a Service cannot be followed; `field` is the one to mend."""

    def __init__(self, reason: str, field: str, message: str) -> None:
        super().__init__(message)
        self.reason, self.field = reason, field


def upstream_of(
    written: LoadBalancer, cluster: str, own: str, lookups: Lookups, *, is_annotated: bool = False
) -> tuple[OverriddenService, Timeouts]:
    """Return the upstream of a Service that an object of the namespace `own` refers to, and how long it is waited for.

    Args:
        written: the reference.
        cluster: of the object.
        own: namespace of the object.
        lookups: where Services and ServersTransports are found.
        is_annotated: annotations say it, whose names may mean objects of any namespace.

    Raises:
        BadService: the reference cannot be followed.
        BadReference: it is in a namespace that must not be referred to.
    """
    _check(written)
    namespace = check_namespace(own, written.namespace, lookups)
    assert written.port is not None
    service = None if lookups.is_assumed else find_service(lookups, namespace, written.name)
    try:
        check_service_type(service, namespace, written.name, lookups)
    except BadReference as error:
        raise BadService(error.reason, "name", str(error)) from error
    protocol = protocol_of(written, service)
    transport = _transport_of(written, cluster, own, lookups, is_annotated=is_annotated)
    patch = patch_of(written, protocol, transport)
    upstream = OverriddenService(
        cluster,
        namespace,
        written.name,
        written.port,
        protocol=protocol,
        has_policy=True,
        override=Override.of(patch) if patch != NO_UPSTREAM_PATCH else None,
        uses_cluster_ip=uses_cluster_ip(written.native_lb, lookups),
    )
    return upstream, transport.timeouts if transport is not None else Timeouts()


def _transport_of(
    written: LoadBalancer, cluster: str, own: str, lookups: Lookups, *, is_annotated: bool
) -> Transport | None:
    if not written.servers_transport or lookups.is_assumed:
        return None
    try:
        return find_transport(written.servers_transport, own, cluster, lookups, is_annotated=is_annotated)
    except BadReference as error:
        raise BadService(error.reason, "serversTransport", str(error)) from error
    except BadTransport as error:
        message = f"ServersTransport {written.servers_transport} cannot be followed: {error}"
        raise BadService("InvalidServersTransport", "serversTransport", message) from error


def _check(written: LoadBalancer) -> None:
    """Raise BadService for what cannot be followed."""
    if "@" in written.name:
        message = "services of Traefik's own and of its other providers are not read: name a Service of this cluster"
        raise BadService("UnsupportedBackend", "name", message)
    if written.port is None:
        raise BadService("Required", "port", "must be given: a port of the Service, by number or name")


def protocol_of(written: LoadBalancer, service: Service | None) -> BackendProtocol | None:
    """Return what is spoken with the servers; None leaves that to the Service.

    Raises:
        BadService: there is no such scheme.
    """
    if written.scheme:
        if written.scheme not in _SCHEMES:
            message = f"must be http, https or h2c, but is {written.scheme[:80]!r}"
            raise BadService("InvalidValue", "scheme", message)
        return _SCHEMES[written.scheme]
    port = service.find_port(written.port) if service is not None and written.port is not None else None
    if port is not None and (port.port == 443 or port.name.startswith("https")):
        return BackendProtocol.HTTPS
    return None


def patch_of(
    written: LoadBalancer, protocol: BackendProtocol | None, transport: Transport | None = None
) -> UpstreamPatch:
    """Return what is said of the upstream. Without a ServersTransport certificates of servers are checked, as Traefik
    does.

    Raises:
        BadService: a check cannot be made.
    """
    said: dict[str, Any] = dict(transport.upstream) if transport is not None else {}
    if written.strategy in _BALANCING:
        said["balancing"] = _BALANCING[written.strategy]
    if written.pass_host_header is False:
        said["host"] = ""
    if protocol is BackendProtocol.HTTPS:
        said["tls"] = transport.tls if transport is not None else _VERIFIED
    if written.health_check is not None:
        said["active_check"] = _active_check(written.health_check, protocol)
    if written.passive_health_check is not None:
        said["ejection"] = _ejection(written.passive_health_check)
    return UpstreamPatch(**said)


def _active_check(written: HealthCheck, protocol: BackendProtocol | None) -> ActiveCheck:
    if written.mode not in ("", "http", "grpc"):
        raise BadService("InvalidValue", "healthCheck.mode", f"must be http or grpc, but is {written.mode[:80]!r}")
    if not _METHOD.fullmatch(written.method or "GET"):
        raise BadService("InvalidValue", "healthCheck.method", f"must be one such as HEAD: {written.method[:80]!r}")
    if _ABSOLUTE.match(written.path):
        raise BadService("InvalidValue", "healthCheck.path", "must be a path such as /health, and no whole URL")
    if written.mode != "grpc" and not written.path:
        raise BadService("Required", "healthCheck.path", "must be given, such as /health")
    own = "https" if protocol is BackendProtocol.HTTPS else "http"
    interval, timeout = written.interval or _INTERVAL_S, written.timeout or _TIMEOUT_S
    if interval < 0 or timeout < 0:
        raise BadService("InvalidValue", "healthCheck.interval", "must be longer than 0, and so must be the timeout")
    return ActiveCheck.model_validate(
        {
            "type": "grpc" if written.mode == "grpc" else written.scheme or own,
            "method": written.method or "GET",
            "path": written.path if written.path.startswith("/") else f"/{written.path}",
            "host": written.hostname,
            "port": written.port or None,
            "headers": tuple(written.headers.items()),
            "interval_s": interval,
            "unhealthy_interval_s": written.unhealthy_interval,
            "timeout_s": timeout,
            "healthy_after": 1,
            "unhealthy_after": 1,
            "statuses": (written.status,) if written.status else (),
        }
    )


def _ejection(written: PassiveHealthCheck) -> Ejection:
    window = written.failure_window or _WINDOW_S
    if window <= 0:
        raise BadService("InvalidValue", "passiveHealthCheck.failureWindow", "must be longer than 0")
    attempts = written.max_failed_attempts or 1
    if attempts < 1:
        raise BadService("InvalidValue", "passiveHealthCheck.maxFailedAttempts", "must be 1 at least")
    return Ejection(consecutive_errors=attempts, statuses=_FAILURES, window_s=window, base_s=window, max_share=1.0)
