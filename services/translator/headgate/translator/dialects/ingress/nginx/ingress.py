"""One Ingress as ingress-nginx reads it: what its routes match, what is done with their requests, which more there are.

https://kubernetes.github.io/ingress-nginx/user-guide/ingress-path-matching/ describes patterns as paths.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Final

from headgate.common.perl_patterns import compile_perl_pattern, is_linear
from headgate.common.plugins.traffic.nginx_rewrite import NginxRewriteConfig
from headgate.common.plugins.traffic.proxy_rewrite import HeaderChanges, ProxyRewriteConfig
from headgate.common.plugins.traffic.redirect import RedirectConfig
from headgate.common.problems import Problem
from headgate.common.resources import INGRESS, JsonObject, ObjectRef
from headgate.common.table import (
    ANY_HOST,
    BackendGroup,
    BackendProtocol,
    BackendTls,
    Condition,
    FastCgi,
    PathMatch,
    PathType,
    PluginUse,
    Rank,
    Route,
    TlsPolicy,
)
from headgate.translator.annotations.nginx import NGINX_TABLE
from headgate.translator.annotations.nginx.reading import nginx_annotations
from headgate.translator.annotations.reading import Reading
from headgate.translator.dialects.ingress.document import class_name
from headgate.translator.dialects.ingress.nginx.access import NO_ACCESS, read_access
from headgate.translator.dialects.ingress.nginx.client_tls import CHALLENGES, client_tls
from headgate.translator.dialects.ingress.nginx.default_backend import DefaultBackend
from headgate.translator.dialects.ingress.nginx.facts import HostFacts, concerns_hosts, facts_of, is_nginx_class
from headgate.translator.dialects.ingress.nginx.fastcgi import fastcgi
from headgate.translator.dialects.ingress.nginx.headers import header_uses
from headgate.translator.dialects.ingress.nginx.hosts import has_tls, makes_patterns
from headgate.translator.dialects.ingress.nginx.inspection import forbidden_texts, mistyped_paths
from headgate.translator.dialects.ingress.nginx.options import options_of
from headgate.translator.dialects.ingress.nginx.plugins import early
from headgate.translator.dialects.ingress.nginx.policy import NginxPolicy, read_nginx_policy
from headgate.translator.dialects.ingress.nginx.rest import rest_of_hosts
from headgate.translator.dialects.ingress.nginx.snippets import Snippets, caught_as_variables, target_step
from headgate.translator.dialects.ingress.nginx.streams import stream_claims
from headgate.translator.dialects.ingress.nginx.upstream_tls import upstream_tls
from headgate.translator.dialects.ingress.parse import Backend, PathRule, ResourceBackend, ServiceBackend
from headgate.translator.fragments.fragment import BackendUse, RouteClaim, StreamClaim
from headgate.translator.manifests.patches import NO_ROUTE_PATCH, NO_UPSTREAM_PATCH, OVER_TLS, RoutePatch, UpstreamPatch
from headgate.translator.manifests.reading import shown
from headgate.translator.sources.sharing import find_service
from headgate.translator.upstreams.resolution import is_service_import
from headgate.translator.world.graph import Lookups

_WWW: Final = "www."
_EVERYTHING: Final = PathMatch(type=PathType.PREFIX, value="/")


class NginxIngress:
    """An Ingress with the annotations of ingress-nginx, or on hosts of which such an Ingress decides."""

    def __init__(self, ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> None:
        """Read the annotations of an Ingress, if it is one of ingress-nginx."""
        self._ref, self._lookups = ref, lookups
        self.policy: NginxPolicy | None = None
        self.tls: TlsPolicy | None = None
        """How TLS is spoken with clients of its hosts."""
        self.has_tls = has_tls(manifest)
        """Whether it has TLS for its hosts, whichever certificate is presented."""
        self._makes_patterns = False
        self._facts: dict[str, HostFacts] = {}
        self._forbidden: tuple[Problem, ...] = ()
        self._mistyped: tuple[Problem, ...] = ()
        self._upstream_tls: BackendTls | None = None
        self._fastcgi: FastCgi | None = None
        self._errors: DefaultBackend | None = None
        self._snippets: Snippets | None = None
        self._headers: tuple[PluginUse, ...] = ()
        self._access = NO_ACCESS
        annotations = nginx_annotations(manifest)
        if annotations or is_nginx_class(lookups, class_name(manifest)):
            self._read(manifest, read_nginx_policy(ref.name, annotations, options_of(lookups)))

    def _read(self, manifest: JsonObject, policy: NginxPolicy) -> None:
        ref, lookups, reading = self._ref, self._lookups, policy.reading
        self.policy = policy
        self._makes_patterns = makes_patterns(manifest)
        self._forbidden = forbidden_texts(manifest)
        if reading.group("inspection").get("is_strict", True):
            self._mistyped = mistyped_paths(manifest)
        has_default = bool(lookups.settings.nginx.default_backend)
        if policy.looks_up or has_default or concerns_hosts(lookups, ref.namespace):
            self._look_up(manifest, reading)

    def _look_up(self, manifest: JsonObject, reading: Reading) -> None:
        ref, lookups = self._ref, self._lookups
        self._upstream_tls = upstream_tls(ref, reading, lookups)
        self._fastcgi = fastcgi(ref, reading, lookups)
        self._errors = DefaultBackend(ref, reading, lookups)
        self._snippets = Snippets(ref, manifest, reading, lookups)
        self.tls = client_tls(ref, reading, lookups)
        if not lookups.settings.nginx.enable_ssl_passthrough:
            _warn_of_passthrough(reading)
        self._headers = header_uses(ref, reading, lookups)
        self._access = read_access(ref, reading, lookups)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with the annotations, with texts that ingress-nginx forbids, and with the types of paths."""
        return (*self.policy.reading.problems, *self._forbidden, *self._mistyped) if self.policy else ()

    @property
    def speaks_of_tls(self) -> bool:
        """Whether its annotations say how TLS is spoken, and not the ConfigMap alone."""
        return self.policy is not None and any(map(self.policy.reading.written, ("tls", "client_tls")))

    @property
    def is_dropped(self) -> bool:
        """Whether nothing of the object is served."""
        return self.policy is not None and bool(self.policy.reading.dropping or self._forbidden)

    @property
    def upstream(self) -> UpstreamPatch:
        """What is said of all upstreams."""
        if self.policy is None:
            return NO_UPSTREAM_PATCH
        upstream = self.policy.upstream
        if upstream.protocol is BackendProtocol.FCGI and self._fastcgi is not None:
            return upstream.model_copy(update={"fastcgi": self._fastcgi})
        said = self._snippets.upstream_tls(of_grpc=upstream.protocol is BackendProtocol.H2) if self._snippets else {}
        if self._upstream_tls is None and not said:
            return upstream
        return upstream.model_copy(update={"tls": (self._upstream_tls or BackendTls()).model_copy(update=said)})

    @property
    def uses_cluster_ip(self) -> bool:
        """Whether requests go to the address of a Service, and not to its endpoints."""
        return self.policy is not None and self.policy.reading.group("upstream").get("uses_cluster_ip", False)

    @property
    def follows_scheme(self) -> bool:
        """Whether upstreams are spoken to as the client speaks."""
        return self.policy is not None and self.policy.follows_scheme

    @property
    def secured_upstream(self) -> UpstreamPatch:
        """What is said of the upstreams of requests that came over TLS, where these are spoken to likewise."""
        return self.upstream.model_copy(update={"protocol": BackendProtocol.HTTPS})

    @property
    def is_passed_through(self) -> bool:
        """Whether TLS connections go to the Service as they are."""
        if self.policy is None or not self.policy.reading.group("passthrough").get("is_on", False):
            return False
        return self._lookups.settings.nginx.enable_ssl_passthrough

    def service_port(self, namespace: str, backend: ServiceBackend) -> int | str:
        """Return the port of a Service that a backend means: ingress-nginx also takes the target of one."""
        is_looked_up = self.policy is not None and not self._lookups.is_assumed
        service = find_service(self._lookups, namespace, backend.service) if is_looked_up else None
        if service is None or service.find_port(backend.port) is not None:
            return backend.port
        return next((port.port for port in service.ports if port.target == backend.port), backend.port)

    # What routes match

    @property
    def path_type(self) -> PathType:
        """How paths of type `ImplementationSpecific` are compared: ingress-nginx takes all that begin so."""
        return PathType.PREFIX if self.policy is None else PathType.STRING_PREFIX

    def leaves_out(self, backend: Backend) -> bool:
        """Whether there is no route for a backend: ingress-nginx takes only Services, and leaves others' paths out."""
        if self.policy is None or not isinstance(backend, ResourceBackend):
            return False
        return not is_service_import(backend.api_group, backend.kind)

    def has_patterns(self, host: str) -> bool:
        """Whether all paths of a host are patterns."""
        return self._makes_patterns or self._facts_of(host).has_patterns

    def _facts_of(self, host: str) -> HostFacts:
        if host not in self._facts:
            self._facts[host] = facts_of(self._lookups, self._ref.namespace, host)
        return self._facts[host]

    def match(self, host: str, rule: PathRule, problems: list[Problem]) -> PathMatch | None:
        """Return which paths a rule takes; None for a pattern that cannot be compiled, which is noted."""
        if not self.has_patterns(host):
            return _plain_match(rule.type, rule.path)
        try:
            compile_perl_pattern(rule.path, ignore_case=True)
        except ValueError as error:
            message = f"{error}; all paths of host {host} are patterns"
            field = f"{rule.field}.path"
            problems.append(Problem(reason="InvalidPath", field=field, value=shown(rule.path), message=message))
            return None
        return PathMatch(type=PathType.REGEX, value=rule.path, ignore_case=True, perl=not is_linear(rule.path))

    # What is done with their requests

    def patch(self, claim: RouteClaim) -> RoutePatch:
        """Return what is said of a route."""
        policy = self.policy
        if policy is None:
            return NO_ROUTE_PATCH
        redirect = self._elsewhere(policy)
        if redirect is not None:
            return RoutePatch(plugins=(redirect,))
        errors = self._errors.pages(claim.route) if self._errors is not None else ()
        rewrites, of_snippets = self._rewrite(policy, claim.route.path), NO_ROUTE_PATCH
        access: tuple[PluginUse, ...] = ()
        if (snippets := self._snippets) is not None:
            is_in_program = bool(rewrites) and snippets.has_program(claim)
            of_snippets = snippets.patch(claim, policy.rewrite["target"] if is_in_program else "")
            if is_in_program:
                rewrites = _prefix_told(policy)
            access = self._access.uses(claim.route.path.value, snippets.with_auth)
        forced = _to_https(policy, claim.route.path, policy.redirects.get("force_ssl", False))
        secured = _secured_uses(policy, claim) if self.has_tls else ()
        before, after = (*access, *errors), (*self._headers, *forced, *rewrites, *secured)
        patch = policy.patch
        if before or after:
            patch = patch.model_copy(update={"plugins": (*before, *patch.plugins, *after)})
        patch = of_snippets.over(patch)
        if patch.stickiness is not None and not patch.stickiness.path:
            sticky = patch.stickiness.model_copy(update={"path": self._cookie_path(claim)})
            patch = patch.model_copy(update={"stickiness": sticky})
        return patch

    def when_secured(self, claim: RouteClaim) -> tuple[PluginUse, ...]:
        """Return the plugins that a route has besides where not this Ingress but another has TLS for the host."""
        if self.policy is None or self.has_tls or self._elsewhere(self.policy) is not None:
            return ()
        return _secured_uses(self.policy, claim)

    def with_fallback(self, route: Route) -> Route:
        """Return a route whose requests go to the default backend while its own has no healthy endpoint."""
        return self._errors.with_fallback(route) if self._errors is not None else route

    @property
    def backends(self) -> tuple[BackendUse, ...]:
        """Upstreams besides those of the rules."""
        return self._errors.backends if self._errors is not None else ()

    @property
    def streams(self) -> tuple[tuple[BackendUse, StreamClaim], ...]:
        """Ports that its `stream-snippet` opens."""
        servers = self._snippets.streams if self._snippets is not None else ()
        if not servers:
            return ()
        return tuple(stream_claims(self._ref, INGRESS.kind, NGINX_TABLE.field("stream-snippet"), servers))

    @property
    def groups(self) -> tuple[BackendGroup, ...]:
        """Groups of backends that its routes refer to, once they are made."""
        return self._errors.groups if self._errors is not None else ()

    def _cookie_path(self, claim: RouteClaim) -> str:
        path = claim.route.path
        return path.value if path.type is not PathType.REGEX or re.fullmatch(r"[\w/.~-]+", path.value) else "/"

    def _elsewhere(self, policy: NginxPolicy) -> PluginUse | None:
        redirects = policy.redirects
        for kind, code in (("temporal", 302), ("permanent", 301)):
            if target := redirects.get(kind):
                url = self._absolute(target) if not redirects.get("relative") else target
                return _redirect_to(url, redirects.get(f"{kind}_code", code))
        return None

    @staticmethod
    def _absolute(target: str) -> str:
        return f"$scheme://$http_host{target}" if target.startswith("/") else target

    def _rewrite(self, policy: NginxPolicy, path: PathMatch) -> tuple[PluginUse, ...]:
        """Return the plugins that replace the whole path if the pattern is found in it, as nginx' `rewrite` does."""
        target = policy.rewrite.get("target")
        if not target or target == path.value or path.type is not PathType.REGEX:
            return ()
        if path.perl:
            program = NginxRewriteConfig(steps=(target_step(path, target),))
            return PluginUse.of(program), *_prefix_told(policy)
        if target.startswith(("http://", "https://")):
            return (_redirecting(path.value, target),)
        return (_rewriting(path.value, target, policy.rewrite.get("prefix")),)

    # Which more there are

    def rest(
        self, claims: Iterable[RouteClaim], with_policy: Callable[[RouteClaim], RouteClaim]
    ) -> Iterable[RouteClaim]:
        """Return the claims for paths of its hosts that no Ingress has; `with_policy` has the annotations hold."""
        if self.policy is None:
            return ()
        return rest_of_hosts(self.policy.reading, claims, with_policy, self._errors.of_all if self._errors else None)

    def further(self, claims: Iterable[RouteClaim]) -> Iterator[RouteClaim]:
        """Yield the routes besides those of the rules: redirects, and the same routes at further hosts."""
        claims = tuple(claims)
        yield from self.aliased(claims)
        if self.policy is None:
            return
        first: dict[str, RouteClaim] = {}
        for claim in claims:
            first.setdefault(claim.host, claim)
            yield from self._slash(claim)
        if self._snippets is not None:
            yield from self._snippets.further(first)
        for host, claim in first.items():
            if app_root := self.policy.redirects.get("app_root"):
                exact = PathMatch(type=PathType.EXACT, value="/")
                target = app_root if self.policy.redirects.get("relative") else self._absolute(app_root)
                yield _answering(claim, exact, _redirect_to(target, 302), Rank(path_priority=1))
            if self.policy.redirects.get("from_to_www") and host != ANY_HOST and not host.startswith("*."):
                yield from self._from_to_www(host, claim)

    def aliases(self, host: str) -> tuple[str, ...]:
        """Return further hosts that have the routes of a host."""
        return self._facts_of(host).aliases

    def aliased(self, claims: Iterable[RouteClaim]) -> Iterator[RouteClaim]:
        """Yield the same routes at the aliases of their hosts."""
        for claim in claims:
            for alias in self.aliases(claim.host):
                yield claim._replace(host=alias, is_alias=True)

    def _slash(self, claim: RouteClaim) -> Iterator[RouteClaim]:
        """Yield what redirects `/x` to `/x/`, as nginx does for a location with a slash at its end."""
        path = claim.route.path
        if (
            path.type is PathType.REGEX
            or path.value == "/"
            or not path.value.endswith("/")
            or claim.route.rank.is_default
        ):
            return
        exact = PathMatch(type=PathType.EXACT, value=path.value.rstrip("/"))
        target = f"$scheme://$http_host{path.value.replace('$', '')}$is_args$args"
        yield _answering(claim, exact, _redirect_to(target, 301), Rank(is_default=True))

    def _from_to_www(self, host: str, claim: RouteClaim) -> Iterator[RouteClaim]:
        twin = host.removeprefix(_WWW) if host.startswith(_WWW) else f"{_WWW}{host}"
        for scheme, port, when in (("https", 443, OVER_TLS), ("http", 80, None)):
            config = RedirectConfig(
                regex_uri=("^(.*?)/?$", f"{scheme}://{host}:{port}$1"), append_query_string=True, ret_code=308
            )
            redirecting = _answering(claim, _EVERYTHING, early(config), Rank(is_default=True), when)
            yield redirecting._replace(host=twin, is_alias=True)

    def twins(self, host: str) -> tuple[str, ...]:
        """Return the further hosts for which the certificate of a host is presented."""
        twin = host.removeprefix(_WWW) if host.startswith(_WWW) else f"{_WWW}{host}"
        is_redirected = self.policy is not None and self.policy.redirects.get("from_to_www")
        return (*self.aliases(host), *((twin,) if is_redirected else ()))


def _warn_of_passthrough(reading: Reading) -> None:
    if reading.group("passthrough").get("is_on", False):
        reading.caution("ssl-passthrough", "counts only with the setting nginx_enable_ssl_passthrough")


def _to_https(policy: NginxPolicy, path: PathMatch, is_wanted: bool) -> tuple[PluginUse, ...]:
    is_exempt = path.value.startswith(policy.redirects.get("exempt", (CHALLENGES,)))
    return (policy.https_redirect,) if is_wanted and not is_exempt else ()


def _secured_uses(policy: NginxPolicy, claim: RouteClaim) -> tuple[PluginUse, ...]:
    """Return what TLS for a host brings its routes: requests without are redirected, and answers say to keep to it.

    Rules without a host get nothing, as ingress-nginx looks for TLS by the host of the request.
    """
    if claim.host == ANY_HOST:
        return ()
    redirects, path = policy.redirects, claim.route.path
    is_redirected = redirects.get("ssl", True) and not redirects.get("force_ssl", False)
    return (*_to_https(policy, path, is_redirected), *((policy.hsts,) if policy.hsts is not None else ()))


def _prefix_told(policy: NginxPolicy) -> tuple[PluginUse, ...]:
    """Return what says the prefix of a path that a program rewrites."""
    prefix = policy.rewrite.get("prefix")
    if not prefix:
        return ()
    headers = HeaderChanges(set={"X-Forwarded-Prefix": caught_as_variables(prefix)})
    return (PluginUse.of(ProxyRewriteConfig(headers=headers)),)


@lru_cache(maxsize=4096)
def _plain_match(kind: PathType, path: str) -> PathMatch:
    """Return the one value for all routes with a path, which is `/` of most."""
    return PathMatch(type=kind, value=path)


@lru_cache(maxsize=1024)
def _rewriting(path: str, target: str, prefix: str | None) -> PluginUse:
    headers = HeaderChanges(set={"X-Forwarded-Prefix": prefix}) if prefix else HeaderChanges()
    pattern = f"(?s)^.*?(?:{path}).*$"
    return PluginUse.of(ProxyRewriteConfig(regex_uri=(pattern, target), regex_ignore_case=True, headers=headers))


def _redirecting(path: str, target: str) -> PluginUse:
    """Return what a rewrite to a URL is in nginx: a redirect."""
    pattern = f"(?is)^.*?(?:{path}).*$"
    return early(RedirectConfig(regex_uri=(pattern, target), append_query_string=True, ret_code=302))


def _redirect_to(url: str, code: int) -> PluginUse:
    return early(RedirectConfig(uri=url, ret_code=code))


def _answering(
    claim: RouteClaim, match: PathMatch, use: PluginUse, rank: Rank, when: Condition | None = None
) -> RouteClaim:
    """Return a route that a plugin answers, beside one of the same rule."""
    provenance = claim.route.provenance
    name = f"{provenance.cluster}/{provenance.namespace}/{provenance.name} {match.type} {match.value}"
    route = Route(name=name, path=match, when=when, plugins=(use,), rank=rank, provenance=provenance)
    return RouteClaim(claim.host, route, claim.field)
