"""One Ingress as ingress-nginx reads it: what its routes match, what is done with their requests, which more there are.

https://kubernetes.github.io/ingress-nginx/user-guide/ingress-path-matching/ describes patterns as paths.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

from headgate.common.perl_patterns import compile_perl_pattern, is_linear
from headgate.common.plugins.traffic.nginx_rewrite import NginxRewriteConfig
from headgate.common.plugins.traffic.proxy_rewrite import HeaderChanges, ProxyRewriteConfig
from headgate.common.plugins.traffic.redirect import RedirectConfig
from headgate.common.problems import Problem
from headgate.common.resources import JsonObject, ObjectRef
from headgate.common.table import (
    ANY_HOST,
    BackendGroup,
    BackendProtocol,
    Compare,
    Condition,
    PathMatch,
    PathType,
    PluginUse,
    Rank,
    Route,
    Subject,
    TlsPolicy,
)
from headgate.translator.annotations.nginx.reading import nginx_annotations
from headgate.translator.annotations.reading import Reading
from headgate.translator.dialects.ingress.document import class_name
from headgate.translator.dialects.ingress.nginx.access import NO_ACCESS, read_access
from headgate.translator.dialects.ingress.nginx.client_tls import CHALLENGES, client_tls
from headgate.translator.dialects.ingress.nginx.default_backend import DefaultBackend
from headgate.translator.dialects.ingress.nginx.facts import facts_of, has_certificate, is_nginx_class
from headgate.translator.dialects.ingress.nginx.headers import header_uses
from headgate.translator.dialects.ingress.nginx.hosts import makes_patterns
from headgate.translator.dialects.ingress.nginx.inspection import forbidden_texts
from headgate.translator.dialects.ingress.nginx.options import options_of
from headgate.translator.dialects.ingress.nginx.policy import NginxPolicy, read_nginx_policy
from headgate.translator.dialects.ingress.nginx.snippets import Snippets, caught_as_variables, target_step
from headgate.translator.dialects.ingress.nginx.upstream_tls import upstream_tls
from headgate.translator.dialects.ingress.parse import Backend, PathRule, ResourceBackend
from headgate.translator.fragments.fragment import BackendUse, RouteClaim
from headgate.translator.manifests.patches import NO_ROUTE_PATCH, NO_UPSTREAM_PATCH, RoutePatch, UpstreamPatch
from headgate.translator.manifests.reading import shown
from headgate.translator.upstreams.resolution import is_service_import
from headgate.translator.world.graph import Lookups

_REDIRECT_ORDER: Final = 3900
"""After `cors`, and before whatever lets requests in: nginx redirects in the phase before that of access."""
_WWW: Final = "www."
OVER_TLS: Final = Compare(subject=Subject.SCHEME, values=("https",))
_EVERYTHING: Final = PathMatch(type=PathType.PREFIX, value="/")


class NginxIngress:
    """An Ingress with the annotations of ingress-nginx, or on hosts of which such an Ingress decides."""

    def __init__(self, ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> None:
        """Read the annotations of an Ingress, if it is one of ingress-nginx."""
        self._ref, self._lookups = ref, lookups
        annotations = nginx_annotations(manifest)
        is_spoken = bool(annotations) or is_nginx_class(lookups, class_name(manifest))
        self._makes_patterns = is_spoken and makes_patterns(manifest)
        self._forbidden = forbidden_texts(manifest) if is_spoken else ()
        self.policy: NginxPolicy | None = (
            read_nginx_policy(ref.name, annotations, options_of(lookups)) if is_spoken else None
        )
        self._upstream_tls = upstream_tls(ref, self.policy.reading, lookups) if self.policy is not None else None
        self._errors = DefaultBackend(ref, self.policy.reading, lookups) if self.policy is not None else None
        self._snippets = Snippets(ref, manifest, self.policy.reading, lookups) if self.policy is not None else None
        self.tls: TlsPolicy | None = client_tls(ref, self.policy.reading, lookups) if self.policy is not None else None
        """How TLS is spoken with clients of its hosts."""
        if self.policy is not None and not lookups.settings.nginx.enable_ssl_passthrough:
            _warn_of_passthrough(self.policy.reading)
        self._headers = header_uses(ref, self.policy.reading, lookups) if self.policy is not None else ()
        self._access = read_access(ref, self.policy.reading, lookups) if self.policy is not None else NO_ACCESS

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with the annotations, and with texts that ingress-nginx forbids."""
        return (*self.policy.reading.problems, *self._forbidden) if self.policy else ()

    @property
    def speaks_of_tls(self) -> bool:
        """Whether its annotations say how TLS is spoken, and not the ConfigMap alone."""
        return self.policy is not None and any(map(self.policy.reading.written, ("tls", "client_tls")))

    @property
    def unreadable(self) -> tuple[str, ...]:
        """Annotations because of which all requests are refused."""
        return tuple(self.policy.reading.unreadable) if self.policy else ()

    @property
    def is_dropped(self) -> bool:
        """Whether nothing of the object is served."""
        return self.policy is not None and bool(self.policy.reading.dropping or self._forbidden)

    @property
    def upstream(self) -> UpstreamPatch:
        """What is said of all upstreams."""
        if self.policy is None:
            return NO_UPSTREAM_PATCH
        if self._upstream_tls is None:
            return self.policy.upstream
        return self.policy.upstream.model_copy(update={"tls": self._upstream_tls})

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

    # What routes match

    def leaves_out(self, backend: Backend) -> bool:
        """Whether there is no route for a backend: ingress-nginx takes only Services, and leaves others' paths out."""
        if self.policy is None or not isinstance(backend, ResourceBackend):
            return False
        return not is_service_import(backend.api_group, backend.kind)

    def has_patterns(self, host: str) -> bool:
        """Whether all paths of a host are patterns."""
        return self._makes_patterns or facts_of(self._lookups, host).has_patterns

    def match(self, host: str, rule: PathRule, problems: list[Problem]) -> PathMatch | None:
        """Return which paths a rule takes; None for a pattern that cannot be compiled, which is noted."""
        if not self.has_patterns(host):
            return PathMatch(type=rule.type, value=rule.path)
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
        redirect = self._redirect(policy, claim)
        if redirect is not None and not redirect.config.get("http_to_https"):
            return RoutePatch(plugins=(redirect,))
        errors = self._errors.pages(claim.route) if self._errors is not None else ()
        assert self._snippets is not None
        hsts = policy.hsts if has_certificate(self._lookups, claim.host) else None
        rewrites = self._rewrite(policy, claim.route.path)
        is_in_program = bool(rewrites) and self._snippets.has_program(claim)
        snippets = self._snippets.patch(claim, policy.rewrite["target"] if is_in_program else "")
        if is_in_program:
            rewrites = _prefix_told(policy)
        depending = tuple(use for use in (redirect, *rewrites, hsts) if use is not None)
        access = self._access.uses(claim.route.path.value, self._snippets.with_auth)
        plugins = (*access, *errors, *policy.patch.plugins, *self._headers, *depending)
        patch = snippets.over(policy.patch.model_copy(update={"plugins": plugins}))
        if patch.stickiness is not None and not patch.stickiness.path:
            sticky = patch.stickiness.model_copy(update={"path": self._cookie_path(claim)})
            patch = patch.model_copy(update={"stickiness": sticky})
        return patch

    def with_fallback(self, route: Route) -> Route:
        """Return a route whose requests go to the default backend while its own has no healthy endpoint."""
        return self._errors.with_fallback(route) if self._errors is not None else route

    @property
    def backends(self) -> tuple[BackendUse, ...]:
        """Upstreams besides those of the rules."""
        return self._errors.backends if self._errors is not None else ()

    @property
    def groups(self) -> tuple[BackendGroup, ...]:
        """Groups of backends that its routes refer to, once they are made."""
        return self._errors.groups if self._errors is not None else ()

    def _cookie_path(self, claim: RouteClaim) -> str:
        path = claim.route.path
        return path.value if path.type is not PathType.REGEX or re.fullmatch(r"[\w/.~-]+", path.value) else "/"

    def _redirect(self, policy: NginxPolicy, claim: RouteClaim) -> PluginUse | None:
        redirects = policy.redirects
        for kind, code in (("temporal", 302), ("permanent", 301)):
            if target := redirects.get(kind):
                url = self._absolute(target) if not redirects.get("relative") else target
                return _redirect_to(url, redirects.get(f"{kind}_code", code))
        if claim.route.path.value.startswith(redirects.get("exempt", (CHALLENGES,))):
            return None
        is_secured = redirects.get("ssl", True) and has_certificate(self._lookups, claim.host)
        if not redirects.get("force_ssl", False) and not is_secured:
            return None
        config = RedirectConfig(
            http_to_https=True,
            ret_code=redirects.get("ssl_code", 308),
            strip_trailing_slash=not redirects.get("keeps_slash", False),
        )
        return PluginUse.of(config).model_copy(update={"order": _REDIRECT_ORDER})

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
        return (_rewriting(path.value, target, policy.rewrite.get("prefix")),)

    # Which more there are

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
        return facts_of(self._lookups, host).aliases

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
            use = PluginUse.of(config).model_copy(update={"order": _REDIRECT_ORDER})
            redirecting = _answering(claim, _EVERYTHING, use, Rank(is_default=True), when)
            yield redirecting._replace(host=twin, is_alias=True)

    def twins(self, host: str) -> tuple[str, ...]:
        """Return the further hosts for which the certificate of a host is presented."""
        twin = host.removeprefix(_WWW) if host.startswith(_WWW) else f"{_WWW}{host}"
        is_redirected = self.policy is not None and self.policy.redirects.get("from_to_www")
        return (*self.aliases(host), *((twin,) if is_redirected else ()))


def _warn_of_passthrough(reading: Reading) -> None:
    if reading.group("passthrough").get("is_on", False):
        reading.caution("ssl-passthrough", "counts only with the setting nginx_enable_ssl_passthrough")


def _prefix_told(policy: NginxPolicy) -> tuple[PluginUse, ...]:
    """Return what says the prefix of a path that a program rewrites."""
    prefix = policy.rewrite.get("prefix")
    if not prefix:
        return ()
    headers = HeaderChanges(set={"X-Forwarded-Prefix": caught_as_variables(prefix)})
    return (PluginUse.of(ProxyRewriteConfig(headers=headers)),)


@lru_cache(maxsize=4096)
def _rewriting(path: str, target: str, prefix: str | None) -> PluginUse:
    headers = HeaderChanges(set={"X-Forwarded-Prefix": prefix}) if prefix else HeaderChanges()
    pattern = f"(?s)^.*?(?:{path}).*$"
    return PluginUse.of(ProxyRewriteConfig(regex_uri=(pattern, target), regex_ignore_case=True, headers=headers))


def _redirect_to(url: str, code: int) -> PluginUse:
    return PluginUse.of(RedirectConfig(uri=url, ret_code=code)).model_copy(update={"order": _REDIRECT_ORDER})


def _answering(
    claim: RouteClaim, match: PathMatch, use: PluginUse, rank: Rank, when: Condition | None = None
) -> RouteClaim:
    """Return a route that a plugin answers, beside one of the same rule."""
    provenance = claim.route.provenance
    name = f"{provenance.cluster}/{provenance.namespace}/{provenance.name} {match.type} {match.value}"
    route = Route(name=name, path=match, when=when, plugins=(use,), rank=rank, provenance=provenance)
    return RouteClaim(claim.host, route, claim.field)
