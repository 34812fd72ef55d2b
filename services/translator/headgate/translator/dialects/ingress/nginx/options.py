"""The options of ingress-nginx' ConfigMap, as look-ups: a change translates the Ingresses again that it holds for."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from headgate.common.problems import Problem, Severity
from headgate.common.resources import ObjectRef
from headgate.common.table import (
    ANY_HOST,
    OTHER_NAMES,
    Backend,
    PathMatch,
    PathType,
    Provenance,
    Rank,
    Route,
    StreamRoute,
    WeightedUpstream,
)
from headgate.translator.annotations.nginx.options import OPTIONS
from headgate.translator.annotations.nginx.reading import says_something
from headgate.translator.annotations.nginx.row import NginxAnnotation
from headgate.translator.annotations.reading import Reading
from headgate.translator.dialects.ingress.nginx.client_connections import own_listeners
from headgate.translator.dialects.ingress.nginx.default_backend import default_backend_of_all
from headgate.translator.dialects.ingress.nginx.rest import NOT_FOUND
from headgate.translator.dialects.ingress.nginx.streams import stream_claims
from headgate.translator.fragments.fragment import (
    BackendUse,
    CertificateRef,
    Fragment,
    Identity,
    NameClaim,
    RouteClaim,
    StreamClaim,
)
from headgate.translator.fragments.upstream_refs import ServicePortRef
from headgate.translator.manifests.reading import shown
from headgate.translator.snippets.streams import read_streams
from headgate.translator.sources.certificates import SECRETS
from headgate.translator.sources.config_maps import CONFIG_MAPS, ConfigMap
from headgate.translator.world.graph import Level, Lookups, Rule
from headgate.translator.world.settings import TranslationSettings

_PROXY: Final = "PROXY"


class ClusterQuestion(NamedTuple):
    """Something about a whole cluster."""

    cluster: str


@dataclass(frozen=True, slots=True, eq=False)
class NginxOptions:
    """What the ConfigMap says. `eq=False`: policies that were read are found again by these very options."""

    groups: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Fields by group, as those of annotations."""
    unreadable: tuple[str, ...] = ()
    """Keys that keep requests out and cannot be followed."""

    def group(self, name: str) -> Mapping[str, Any]:
        """Return the fields of a group."""
        return self.groups.get(name, {})


NO_OPTIONS: Final = NginxOptions()


def read_options(config_map: ConfigMap) -> Reading:
    """Read the keys of the controller's ConfigMap."""
    reading, written = Reading(OPTIONS), config_map.as_dict()
    for name, row in OPTIONS.rows.items():
        if name not in written or not isinstance(row, NginxAnnotation):
            continue
        value = written[name].strip()
        if row.refused and says_something(value):
            reading.note(name, value)
            reading.refuse(name, row.refused)
        elif not row.ignored and not row.refused and value:
            reading.take(name, value)
    for name in sorted(written.keys() - OPTIONS.rows.keys()):
        reading.warn_unknown(name, written[name])
    return reading


def _find_options(lookups: Lookups, question: ClusterQuestion) -> NginxOptions:
    namespace, _, name = lookups.settings.nginx.config_map.partition("/")
    found = lookups.get(CONFIG_MAPS, namespace, name) if name else None
    if found is None:
        return NO_OPTIONS
    reading = read_options(found)
    groups = {row.group for row in OPTIONS.rows.values() if row.sets}
    return NginxOptions({group: reading.group(group) for group in sorted(groups)}, tuple(reading.unreadable))


_OPTIONS: Rule[ClusterQuestion, NginxOptions] = Rule(
    "options of ingress-nginx", Level.CLUSTER, _find_options, lambda *_: NO_OPTIONS, is_memo=True
)


def options_of(lookups: Lookups) -> NginxOptions:
    """Return what the ConfigMap of ingress-nginx says in a cluster."""
    return NO_OPTIONS if lookups.is_assumed else lookups.derive(_OPTIONS, ClusterQuestion(lookups.cluster))


# ConfigMaps as objects


def is_named(ref: ObjectRef, config_map: ConfigMap, lookups: Lookups) -> bool:
    """Whether a ConfigMap is one of those that the settings name."""
    return is_named_by(ref, lookups.settings)


def is_named_by(ref: ObjectRef, settings: TranslationSettings) -> bool:
    """Whether settings name a ConfigMap."""
    nginx = settings.nginx
    return f"{ref.namespace}/{ref.name}" in (nginx.config_map, nginx.tcp_services, nginx.udp_services)


def identify_config_map(ref: ObjectRef, config_map: ConfigMap) -> Identity:
    """Return which object a ConfigMap is."""
    return Identity(ref, "v1", "ConfigMap", config_map.uid, config_map.created_at)


def translate_config_map(ref: ObjectRef, config_map: ConfigMap, lookups: Lookups) -> Fragment:
    """Return what a ConfigMap contributes.

    Those with TCP and UDP services contribute ports. That with the options says how clients' connections are treated,
    which certificate is the default, and what becomes of requests for unknown hosts.
    """
    identity, place, nginx = identify_config_map(ref, config_map), f"{ref.namespace}/{ref.name}", lookups.settings.nginx
    if place == nginx.config_map:
        reading = read_options(config_map)
        names, faults = _default_certificate(ref.cluster, lookups)
        servers = read_streams(reading.group("snippets").get("of_streams", ""))
        streams = tuple(stream_claims(ref, "ConfigMap", OPTIONS.field("stream-snippet"), servers))
        fragment = _of_other_hosts(ref, identity, reading.group("logging"), lookups)
        return replace(
            fragment,
            backends=(*fragment.backends, *(use for use, _ in streams)),
            streams=tuple(claim for _, claim in streams),
            names=names,
            own_listeners=own_listeners(ref, reading),
            problems=(*reading.problems, *faults),
        )
    problems: list[Problem] = []
    found = [
        service
        for key, value in config_map.data
        if (service := _stream(ref, key, value, place == nginx.udp_services, problems)) is not None
    ]
    return Fragment(
        identity,
        backends=tuple(use for use, _ in found),
        streams=tuple(claim for _, claim in found),
        problems=tuple(problems),
    )


def _of_other_hosts(ref: ObjectRef, identity: Identity, logging: Mapping[str, Any], lookups: Lookups) -> Fragment:
    """Return the route for hosts that no object has: to the default backend, or to no backend if it is not logged."""
    backend = default_backend_of_all(ref.cluster, lookups)
    is_off = logging.get("is_off", False) or logging.get("is_http_off", False)
    is_logged = logging.get("has_other_hosts", True) and not is_off
    if backend is None and is_logged:
        return Fragment(identity)
    route = Route(
        name=f"{ref.cluster}/{ref.namespace}/{ref.name} default backend",
        path=PathMatch(type=PathType.PREFIX, value="/"),
        backends=(Backend(upstream=backend.key),) if backend is not None else (),
        plugins=() if backend is not None else (NOT_FOUND,),
        access_log_share=None if is_logged else 0.0,
        rank=Rank(is_default=True),
        provenance=Provenance(cluster=ref.cluster, kind="ConfigMap", namespace=ref.namespace, name=ref.name),
    )
    claim = RouteClaim(ANY_HOST, route, "", is_rest=True, is_for_all=True)
    uses = (BackendUse(backend, "", ""),) if backend is not None else ()
    return Fragment(identity, routes=(claim,), backends=uses)


def _default_certificate(cluster: str, lookups: Lookups) -> tuple[tuple[NameClaim, ...], tuple[Problem, ...]]:
    """Return the claim of the certificate for names that have none, and what is wrong with it."""
    place = lookups.settings.nginx.default_certificate
    if not place or lookups.is_assumed:
        return (), ()
    namespace, _, name = place.partition("/")
    secret = lookups.get(SECRETS, namespace, name)
    if secret is None or secret.problem:
        fault = "not found; it must be of type kubernetes.io/tls" if secret is None else secret.problem
        message = f"Secret {place} of the setting nginx_default_ssl_certificate {fault}; gateways present their own"
        return (), (Problem(reason="InvalidCertificate", field="data", value=shown(place), message=message),)
    return (NameClaim(OTHER_NAMES, CertificateRef(cluster, namespace, name), "data"),), ()


def _stream(
    ref: ObjectRef, key: str, value: str, is_udp: bool, problems: list[Problem]
) -> tuple[BackendUse, StreamClaim] | None:
    """Read one service: a port of the gateways, and `namespace/name:port`, with `:PROXY` for either side."""
    field = f"data[{key}]"
    place, *rest = value.split(":")
    namespace, slash, name = place.partition("/")
    port = int(key) if key.isascii() and key.isdecimal() else 0
    flags = [flag.upper() for flag in rest[1:]]
    if not 0 < port < 65536:
        problems.append(_wrong(field, key, "must be a port from 1 to 65535"))
        return None
    if not slash or not namespace or not name or not rest or not rest[0]:
        problems.append(_wrong(field, value, "must be namespace/service:port, such as default/db:5432"))
        return None
    if any(flag not in ("", _PROXY) for flag in flags) or len(flags) > 2 or (flags and is_udp):
        problems.append(_wrong(field, value, "may have :PROXY and :PROXY behind the port of a TCP service only"))
        return None
    number: int | str = int(rest[0]) if rest[0].isdecimal() else rest[0]
    backend = ServicePortRef(ref.cluster, namespace, name, number, "udp" if is_udp else "tcp")
    if flags[1:] == [_PROXY]:
        problems.append(_warning(field, value, "the second PROXY is not sent to the Service yet"))
    route = StreamRoute(
        key=f"{ref.cluster}/{ref.namespace}/{ref.name}:{port}/{'udp' if is_udp else 'tcp'}",
        protocol="udp" if is_udp else "tcp",
        port=port,
        backends=(WeightedUpstream(upstream=backend.key),),
        accept_proxy_protocol=flags[:1] == [_PROXY],
        provenance=Provenance(
            cluster=ref.cluster, kind="ConfigMap", namespace=ref.namespace, name=ref.name, rule=field
        ),
    )
    return BackendUse(backend, field, field), StreamClaim(route, field)


def _wrong(field: str, value: str, message: str) -> Problem:
    return Problem(reason="InvalidValue", field=field, value=shown(value), message=message)


def _warning(field: str, value: str, message: str) -> Problem:
    return Problem(severity=Severity.WARNING, reason="Unsupported", field=field, value=shown(value), message=message)
