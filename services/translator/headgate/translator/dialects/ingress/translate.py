"""One Ingress to one fragment: https://kubernetes.io/docs/concepts/services-networking/ingress/.

Services are looked up here only for what an Ingress of ingress-nginx means by a port. What is wrong with a backend is
known to its upstream, and comes back to the object from there. So no endpoint ever runs this again, and a Service only
if its ports or addresses change.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from sys import intern

from headgate.common.problems import Problem, Severity
from headgate.common.resources import JsonObject, ObjectRef
from headgate.common.table import (
    ANY_HOST,
    Canary,
    ClientAuth,
    Condition,
    Not,
    PathMatch,
    PathType,
    Provenance,
    Rank,
    Route,
    TlsPolicy,
    count_comparisons,
)
from headgate.common.table import (
    Backend as TableBackend,
)
from headgate.translator.dialects.ingress.canary import narrow
from headgate.translator.dialects.ingress.document import class_name
from headgate.translator.dialects.ingress.legacy import is_legacy, restore_field, restore_problems, upgrade
from headgate.translator.dialects.ingress.nginx.client_tls import TLS_FIELD, over
from headgate.translator.dialects.ingress.nginx.facts import is_of_nginx_controller
from headgate.translator.dialects.ingress.nginx.ingress import NginxIngress
from headgate.translator.dialects.ingress.nginx.mains import Speech, speech_of, speech_of_canary
from headgate.translator.dialects.ingress.nginx.passthrough import passed_through
from headgate.translator.dialects.ingress.ordering import ordered_names
from headgate.translator.dialects.ingress.parse import (
    Backend,
    IngressSpec,
    ResourceBackend,
    ServiceBackend,
    TlsRule,
    parse_ingress,
)
from headgate.translator.dialects.ingress.policy import IngressPolicy, read_policy
from headgate.translator.dialects.ingress.routing import ask_routing, routed, upstreams_of
from headgate.translator.dialects.ingress.unknown_fields import find_unknown_fields
from headgate.translator.fragments.fragment import (
    BackendUse,
    CanaryClaim,
    CertificateRef,
    Fragment,
    NameClaim,
    RouteClaim,
    TlsClaim,
)
from headgate.translator.fragments.route_cost import MAX_COST, TOO_COSTLY, host_cost, route_cost
from headgate.translator.fragments.upstream_refs import RefusalRef, ResourceRef, ServicePortRef, UpstreamRef
from headgate.translator.manifests.patches import NO_ROUTE_PATCH, OVER_TLS, all_of
from headgate.translator.manifests.reading import shown
from headgate.translator.objects.document import identify
from headgate.translator.sources.addresses import CLASS_ADDRESSES
from headgate.translator.sources.certificates import PAIR, SECRETS, covers, stand_in
from headgate.translator.sources.policies import BACKEND_POLICIES, BackendPolicy, ServicePortTarget
from headgate.translator.upstreams.overridden import OverriddenService
from headgate.translator.world.graph import Lookups

KIND = "Ingress"
_SHOWN_NAMES = 5
_SHARED_BACKENDS = 16_384
_RULE, _DEFAULT_BACKEND = Rank(), Rank(is_default=True)
_CATCH_ALL_DISABLED = Problem(
    severity=Severity.WARNING,
    reason="CatchAllDisabled",
    field="spec.defaultBackend",
    message="an Ingress with a default backend is left out, rules and all, as the setting nginx_disable_catch_all says",
)
_CATCH_ALL = PathMatch(type=PathType.PREFIX, value="/")


def translate_ingress(ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> Fragment:
    """Return what an Ingress that is ours contributes."""
    legacy, class_named = is_legacy(manifest), class_name(manifest)
    nginx = NginxIngress(ref, manifest, lookups)
    policy = read_policy(ref, manifest, lookups, nginx.policy)
    problems: list[Problem] = []
    upgraded = upgrade(manifest) if legacy else manifest
    is_others = nginx.policy is not None or policy.canary is not None
    upgraded, routings = (upgraded, ()) if is_others else ask_routing(ref, upgraded, lookups)
    spec = parse_ingress(upgraded, problems, policy.path_type or nginx.path_type)
    if legacy:
        problems = restore_problems(problems)
    policy = _within_bounds(ref, policy, spec, problems)
    problems = [*nginx.problems, *policy.problems, *problems]
    if nginx.policy is not None and lookups.settings.nginx.disable_catch_all and spec.default_backend is not None:
        return Fragment(identity=identify(ref, manifest), problems=(*problems, _CATCH_ALL_DISABLED))
    if nginx.is_dropped:
        return Fragment(identity=identify(ref, manifest), problems=tuple(problems))
    if legacy or not spec.is_clean:
        problems += find_unknown_fields(manifest)
    written: Callable[[str], str] = restore_field if legacy else str
    speeches = {} if policy.canary is None else speech_of_canary(ref, spec, nginx, lookups)
    backends = _Backends(ref, policy, lookups, nginx, speeches, upstreams_of(routings))
    routes = [
        *_rule_routes(ref, spec, backends, nginx, problems),
        *_default_routes(ref, spec, backends, nginx, written),
    ]
    hosts, is_canary = tuple(dict.fromkeys(rule.host for rule in spec.rules)), policy.canary is not None
    streams = nginx.streams
    if nginx.is_passed_through and not is_canary:
        streams = (*streams, *passed_through(ref, spec.rules, nginx.service_port))
    fragment = Fragment(
        identity=identify(ref, manifest),
        shares_hosts_with=policy.shares_hosts_with,
        hosts=hosts,
        # A check of an object by itself reads nothing of the fragment but its problems; policies of routes add none.
        routes=tuple(routes if is_canary or lookups.is_assumed else _with_policies(routes, ref, policy, nginx)),
        backends=(
            *_backend_uses(spec, backends, written),
            *policy.backends,
            *nginx.backends,
            *(use for use, _ in streams),
            *(() if is_canary else _refusal_uses(ref, policy)),
        ),
        streams=tuple(claim for _, claim in streams),
        entries=nginx.groups,
        tls=() if is_canary else _tls_claims(hosts or (ANY_HOST,), policy, nginx),
        names=(
            *(claim for entry in spec.tls for claim in _claim_names(ref, entry, lookups, nginx, problems)),
            *ordered_names(policy.resolver, routings, spec, lookups, problems),
        ),
        problems=tuple(problems),
        addresses=lookups.attached(CLASS_ADDRESSES, class_named),
        leaves_addresses=_leaves_addresses(class_named, lookups),
        secures_hosts=nginx.has_tls,
    )
    if routings:
        return routed(fragment, routings, may_be_empty=lookups.settings.traefik.allow_empty_services)
    return fragment if policy.canary is None else _as_canary(fragment, policy, policy.canary, nginx)


def _with_policies(
    routes: list[RouteClaim], ref: ObjectRef, policy: IngressPolicy, nginx: NginxIngress
) -> Iterator[RouteClaim]:
    """Yield the routes with what annotations and policies say of them, and the routes that there are besides."""
    if policy.concerns_routes or nginx.policy is not None:
        changed = [_with_policy(claim, ref, policy, nginx) for claim in routes]
        changed += nginx.rest(routes, lambda claim: _with_policy(claim, ref, policy, nginx))
        routes = changed
    yield from routes
    yield from nginx.further(routes)


def _leaves_addresses(class_named: str | None, lookups: Lookups) -> bool:
    """Whether an ingress-nginx beside us goes on writing the addresses of Ingresses of a class."""
    return not lookups.settings.nginx.take_status and is_of_nginx_controller(lookups, class_named)


def _within_bounds(ref: ObjectRef, policy: IngressPolicy, spec: IngressSpec, problems: list[Problem]) -> IngressPolicy:
    """Return the policy, or one that refuses all requests of an object that makes too much work."""
    of_hosts = host_cost(policy.tls) * max(1, len(spec.rules)) if policy.tls else 0
    routes = sum(len(rule.paths) for rule in spec.rules) + (max(1, len(spec.rules)) if spec.default_backend else 0)
    if of_hosts + routes * route_cost(policy.patch.when, policy.patch.plugins) <= MAX_COST:
        return policy
    message = f"what the annotations say of {len(spec.rules)} rules with {routes} paths {TOO_COSTLY}"
    problems.append(Problem(reason="TooMuchWork", field="metadata.annotations", message=message))
    return replace(
        policy,
        patch=NO_ROUTE_PATCH,
        tls=TlsPolicy(client_auth=ClientAuth(ca_pem="")) if policy.tls else None,
        refusal=f"{KIND} {ref.namespace}/{ref.name} makes too much work and refuses requests",
        is_unreadable=True,
    )


class _Backends:
    """What the backends of one Ingress are in the table."""

    def __init__(
        self,
        ref: ObjectRef,
        policy: IngressPolicy,
        lookups: Lookups,
        nginx: NginxIngress,
        speeches: Mapping[str, Speech],
        upstreams: Mapping[str, UpstreamRef],
    ) -> None:
        self._ref, self._policy, self._lookups, self._nginx = ref, policy, lookups, nginx
        self._own_speech, self._speeches = speech_of(nginx), speeches
        self._uses_cluster_ip = nginx.uses_cluster_ip
        self._namespace = policy.namespace or ref.namespace
        self._found: dict[tuple[str, int | str], BackendPolicy | None] = {}
        self._ports: dict[tuple[str, int | str], int | str] = {}
        self._upstreams: dict[tuple[Backend, bool], UpstreamRef] = {}
        self._said_upstreams = upstreams

    def _policy_of(self, backend: ServiceBackend) -> BackendPolicy | None:
        key = (backend.service, backend.port)
        if key not in self._found:
            target = ServicePortTarget(self._namespace, backend.service, self._port_of(backend))
            self._found[key] = self._lookups.attached(BACKEND_POLICIES, target)
        return self._found[key]

    def _port_of(self, backend: ServiceBackend) -> int | str:
        key = (backend.service, backend.port)
        if key not in self._ports:
            self._ports[key] = self._nginx.service_port(self._namespace, backend)
        return self._ports[key]

    def _speech(self, backend: Backend) -> Speech:
        return self._speeches.get(backend.field, self._own_speech)

    def follows_scheme(self, backend: Backend) -> bool:
        """Whether a backend is a second upstream for requests that came over TLS."""
        return self._speech(backend).follows_scheme

    def upstream(self, backend: Backend, *, is_secured: bool = False) -> UpstreamRef:
        """Return the upstream that a backend stands for; `is_secured`: for requests that came over TLS."""
        key = backend, is_secured
        if key not in self._upstreams:
            said = self._said_upstreams.get(backend.field)
            self._upstreams[key] = said if said is not None else self._find(backend, is_secured)
        return self._upstreams[key]

    def _find(self, backend: Backend, is_secured: bool) -> UpstreamRef:
        speech = self._speech(backend)
        override = speech.secured if is_secured else speech.plain
        cluster, protocol = self._ref.cluster, self._policy.protocol
        if isinstance(backend, ResourceBackend):
            return ResourceRef(cluster, self._ref.namespace, backend.api_group, backend.kind, backend.name)
        has_policy = self._policy_of(backend) is not None
        if protocol is not None or has_policy or override is not None or self._uses_cluster_ip:
            named = (cluster, self._namespace, backend.service, self._port_of(backend))
            return OverriddenService(*named, protocol, has_policy, override, self._uses_cluster_ip)
        return ServicePortRef(cluster, self._namespace, backend.service, self._port_of(backend))

    def route_fields(self, backend: Backend) -> JsonObject:
        """Return what of a route a policy for its backend says."""
        policy = None if isinstance(backend, ResourceBackend) else self._policy_of(backend)
        return policy.route.fields if policy else {}


def _tls_claims(hosts: tuple[str, ...], policy: IngressPolicy, nginx: NginxIngress) -> tuple[TlsClaim, ...]:
    tls = over(policy.tls, nginx.tls)
    field = policy.tls_field if policy.tls is not None else TLS_FIELD
    is_default = policy.tls is None and not nginx.speaks_of_tls
    if tls is None:
        return ()
    aliases = dict.fromkeys(alias for host in hosts for alias in nginx.aliases(host))
    own = (TlsClaim(host, tls, field, is_default) for host in hosts)
    return (*own, *(TlsClaim(alias, tls, field, is_default, is_alias=True) for alias in aliases))


def _with_policy(claim: RouteClaim, ref: ObjectRef, policy: IngressPolicy, nginx: NginxIngress) -> RouteClaim:
    patch = policy.patch
    if nginx.policy is not None:
        patch = nginx.patch(claim) if patch is NO_ROUTE_PATCH else patch.over(nginx.patch(claim))
        if policy.refusal is None:
            claim = claim._replace(when_secured=nginx.when_secured(claim))
    if not patch.said and policy.refusal is None:
        return claim._replace(route=nginx.with_fallback(claim.route))
    when = all_of(filter(None, (claim.route.when, policy.patch.when)))
    change: JsonObject = {"when": when, "rank": _rank(claim.route.rank, policy, when)}
    if policy.refusal is not None:
        change["backends"] = (TableBackend(upstream=_refusal(ref, policy.refusal).key),)
        return claim._replace(route=claim.route.model_copy(update=change), is_refused=True)
    return claim._replace(route=nginx.with_fallback(claim.route.model_copy(update=change | patch.fields)))


def _rank(rank: Rank, policy: IngressPolicy, when: Condition | None) -> Rank:
    """Return the rank of a route by the annotations and policies; one that is refused has none by its priorities."""
    if when is None and rank is _RULE and policy.patch is NO_ROUTE_PATCH and policy.refusal is None:
        return rank
    change: JsonObject = {"comparisons": count_comparisons(when)}
    if policy.refusal is not None:
        change["is_unreadable"] = policy.is_unreadable
    else:
        change |= {"priority": policy.patch.priority or 0, "path_priority": policy.patch.path_priority or 0}
    return rank.model_copy(update=change)


def _refusal(ref: ObjectRef, reason: str) -> RefusalRef:
    return RefusalRef(ref.cluster, KIND, ref.namespace, ref.name, reason)


def _refusal_uses(ref: ObjectRef, policy: IngressPolicy) -> Iterator[BackendUse]:
    if policy.refusal is not None:
        yield BackendUse(_refusal(ref, policy.refusal), "metadata.annotations", "metadata.annotations")


def _as_canary(fragment: Fragment, policy: IngressPolicy, canary: Canary, nginx: NginxIngress) -> Fragment:
    """A canary has no routes, hosts and TLS of its own. One that cannot be read takes nothing."""
    narrowed = narrow(canary, policy.patch.when)
    secured = {claim.field for claim in fragment.routes if claim.route.when is OVER_TLS}
    claims = (
        CanaryClaim(
            claim.host,
            claim.route.path,
            _taking(narrowed, claim.route, has_secured=claim.field in secured),
            claim.field,
            claim.is_alias,
        )
        for claim in (*fragment.routes, *nginx.aliased(fragment.routes))
    )
    return replace(
        fragment, hosts=(), routes=(), names=(), secures_hosts=False, canaries=() if policy.refusal else tuple(claims)
    )


def _taking(canary: Canary, route: Route, *, has_secured: bool) -> Canary:
    """Return what a route says as a canary; `has_secured`: there is another route for requests over TLS."""
    when = Not(negated=OVER_TLS) if has_secured and route.when is None else route.when
    return narrow(canary, when).model_copy(update={"upstream": route.backends[0].upstream})


def _rule_routes(
    ref: ObjectRef, spec: IngressSpec, backends: _Backends, nginx: NginxIngress, problems: list[Problem]
) -> Iterator[RouteClaim]:
    seen: dict[tuple[str, PathType, str], str] = {}
    for rule in spec.rules:
        for path in rule.paths:
            if nginx.leaves_out(path.backend):
                continue
            first = seen.setdefault((rule.host, path.type, path.path), path.field)
            if first != path.field:
                message = f"the same host, path and path type are taken by {first} of this object"
                field = f"{path.field}.path"
                problems.append(Problem(reason="DuplicatePath", field=field, value=shown(path.path), message=message))
                continue
            match = nginx.match(rule.host, path, problems)
            if match is None:
                continue
            claim = _claim(ref, rule.host, match, path.backend, backends, path.field)
            yield claim
            if backends.follows_scheme(path.backend):
                yield _secured(claim, backends.upstream(path.backend, is_secured=True))


def _secured(claim: RouteClaim, upstream: UpstreamRef) -> RouteClaim:
    """Return the route for the same requests over TLS."""
    change = {"when": OVER_TLS, "backends": (TableBackend(upstream=upstream.key),), "rank": Rank(comparisons=1)}
    return claim._replace(route=claim.route.model_copy(update=change))


def _default_routes(
    ref: ObjectRef, spec: IngressSpec, backends: _Backends, nginx: NginxIngress, written: Callable[[str], str]
) -> Iterator[RouteClaim]:
    """The defaultBackend: everything of every host where there are no rules, else what is left of the rules' hosts."""
    if spec.default_backend is None or nginx.leaves_out(spec.default_backend):
        return
    field = intern(written("spec.defaultBackend"))
    own = {rule.host for rule in spec.rules for path in rule.paths if (path.type, path.path) == (PathType.PREFIX, "/")}
    for host in dict.fromkeys(rule.host for rule in spec.rules) or (ANY_HOST,):
        if host not in own:
            yield _claim(ref, host, _CATCH_ALL, spec.default_backend, backends, field, is_default=True)


@lru_cache(maxsize=_SHARED_BACKENDS)
def _backends_of(upstream: str) -> tuple[TableBackend, ...]:
    """Return the one value for all routes with an upstream: many Ingresses have the same few."""
    return (TableBackend.of_valid(upstream=upstream),)


def _claim(
    ref: ObjectRef,
    host: str,
    match: PathMatch,
    backend: Backend,
    backends: _Backends,
    field: str,
    is_default: bool = False,
) -> RouteClaim:
    # The provenance has no resourceVersion: it changes with every status that is written to the object, and each of
    # those would then be a revision of the table.
    source = Provenance.of_valid(cluster=ref.cluster, kind=KIND, namespace=ref.namespace, name=ref.name, rule=field)
    route = Route.of_valid(
        name=f"{ref.cluster}/{ref.namespace}/{ref.name} {match.type} {match.value}",
        path=match,
        backends=_backends_of(backends.upstream(backend).key),
        provenance=source,
        rank=_DEFAULT_BACKEND if is_default else _RULE,
        **backends.route_fields(backend),
    )
    return RouteClaim(host, route, intern(field if is_default else f"{field}.path"))


def _backend_uses(spec: IngressSpec, backends: _Backends, written: Callable[[str], str]) -> Iterator[BackendUse]:
    named = [path.backend for rule in spec.rules for path in rule.paths]
    for backend in [spec.default_backend, *named] if spec.default_backend else named:
        upstream = backends.upstream(backend)
        if isinstance(backend, ResourceBackend):
            yield BackendUse(upstream, intern(backend.field), intern(backend.field))
            continue
        port = "name" if isinstance(backend.port, str) else "number"
        name_field, port_field = written(f"{backend.field}.name"), written(f"{backend.field}.port.{port}")
        yield BackendUse(upstream, intern(name_field), intern(port_field))
        if backends.follows_scheme(backend):
            yield BackendUse(backends.upstream(backend, is_secured=True), intern(name_field), intern(port_field))


def _claim_names(
    ref: ObjectRef, entry: TlsRule, lookups: Lookups, nginx: NginxIngress, problems: list[Problem]
) -> Iterator[NameClaim]:
    """The server names of one TLS entry. Hosts of an unusable Secret get the gateway's fallback certificate."""
    if entry.secret is None:
        return
    field = f"{entry.field}.secretName"
    secret = lookups.get(SECRETS, ref.namespace, entry.secret)
    fault = "not found; it must be of type kubernetes.io/tls" if secret is None else secret.problem
    if secret is None or fault:
        reason = "SecretNotFound" if secret is None else "InvalidCertificate"
        message = f"Secret {ref.namespace}/{entry.secret} {fault}; the fallback certificate is presented instead"
        problems.append(Problem(reason=reason, field=field, value=shown(entry.secret), message=message))
        return
    if instead := stand_in(lookups, ref.namespace, entry.secret, PAIR):
        message = f"Secret {ref.namespace}/{entry.secret} {instead}"
        problems.append(Problem(reason="InvalidCertificate", field=field, value=shown(entry.secret), message=message))
    certificate = CertificateRef(ref.cluster, ref.namespace, entry.secret)
    if entry.names_all:
        yield from (NameClaim(name, certificate, field) for name in secret.names if name)
    names = frozenset(secret.names)
    # ingress-nginx presents its default certificate where the one that is written is for other names.
    presents_any = nginx.policy is None
    for host in entry.hosts:
        is_covered = covers(names, host.name)
        if not is_covered:
            problem = _uncovered(ref, entry.secret, host.name, host.field, secret.names[:_SHOWN_NAMES], presents_any)
            problems.append(problem)
        if is_covered or presents_any:
            yield NameClaim(host.name, certificate, host.field)
        yield from (NameClaim(twin, certificate, host.field) for twin in nginx.twins(host.name) if covers(names, twin))


def _uncovered(
    ref: ObjectRef, secret: str, host: str, field: str, names: tuple[str, ...], is_presented: bool
) -> Problem:
    instead = "" if is_presented else "; the default certificate is presented instead"
    valid_for = ", ".join(names) or "no name"
    return Problem(
        severity=Severity.WARNING,
        reason="CertificateNameMismatch",
        field=field,
        value=shown(host),
        message=f"the certificate of Secret {ref.namespace}/{secret} is not valid for {host}, only for {valid_for}"
        f"{instead}",
    )
