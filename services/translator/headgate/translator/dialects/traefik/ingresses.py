"""Ingresses with annotations of Traefik, as Traefik reads them: each path is a rule, whose length is its priority."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import ValidationError

from headgate.common.problems import Problem
from headgate.common.table import Timeouts, TlsPolicy
from headgate.translator.annotations.reading import Reading
from headgate.translator.annotations.traefik import TRAEFIK_PREFIX, TRAEFIK_TABLE, read_traefik_annotations
from headgate.translator.dialects.traefik.document import TLS_OPTIONS
from headgate.translator.dialects.traefik.middlewares.following import follow_provided, in_order
from headgate.translator.dialects.traefik.middlewares.making import Made
from headgate.translator.dialects.traefik.models.service import LoadBalancer
from headgate.translator.dialects.traefik.references import BadReference, find_provided
from headgate.translator.dialects.traefik.routes.entry_points import spots_of
from headgate.translator.dialects.traefik.routes.observed import observed
from headgate.translator.dialects.traefik.routes.on_spot import made_of_spot
from headgate.translator.dialects.traefik.rules import RuleError, alternatives, parse_rule
from headgate.translator.dialects.traefik.services.sticky import stickiness_of
from headgate.translator.dialects.traefik.services.upstreams import BadService, upstream_of
from headgate.translator.dialects.traefik.tls.following import policy_of
from headgate.translator.dialects.traefik.tls.options import NOBODY
from headgate.translator.fragments.spots import Spot
from headgate.translator.manifests.patches import RoutePatch
from headgate.translator.manifests.specs import refuse, warn
from headgate.translator.sources.ingress_routing import (
    IngressPath,
    IngressRouting,
    PathRouting,
    RoutePlace,
    RoutingQuestion,
)
from headgate.translator.sources.sharing import find_service
from headgate.translator.world.graph import Lookups

_PATH_MATCHERS: Final = ("PathPrefix", "Path", "PathRegexp")
_MATCHERS: Final = {"Exact": "Path", "Prefix": "PathPrefix"}
_NAMED: Final = 5
_DOMAIN: Final = re.compile(r"router\.tls\.domains[.\[]([0-9]+)\]?\.(?:main|sans)")


def routing_of(lookups: Lookups, question: RoutingQuestion) -> tuple[IngressRouting, ...]:
    """Return what becomes of an Ingress that is Traefik's, for each of the spots where its routes are."""
    return tuple(_Reading(lookups, question).routings())


class _Reading:
    """One Ingress, taken apart."""

    def __init__(self, lookups: Lookups, question: RoutingQuestion) -> None:
        self._lookups, self._question = lookups, question
        self._annotations = read_traefik_annotations("Ingress", dict(question.annotations))
        self._said = self._annotations.group("router")
        self._problems: list[Problem] = list(self._annotations.problems)
        self._made = Made()

    def routings(self) -> Iterator[IngressRouting]:
        said, problems, lookups = self._said, self._problems, self._lookups
        self._check_matcher()
        spots = spots_of(
            said.get("entrypoints", ()),
            lookups.settings.entry_points,
            has_tls=self._has_tls,
            problems=problems,
            field=_ENTRY_POINTS,
            fits_both=True,
        )
        tls = self._tls()
        for spot in spots:
            yield self._routing(spot, tls)
        if not spots:
            yield IngressRouting(None, {}, RoutePatch(), problems=tuple(problems))

    def _routing(self, spot: Spot, tls: TlsPolicy | None) -> IngressRouting:
        problems, lookups, field = self._problems, self._lookups, _field("router.middlewares")
        before = made_of_spot(spot, _ENTRY_POINTS, lookups, problems)
        named, namespace = self._said.get("middlewares", ()), self._question.namespace
        own = follow_provided(named, field, lookups, problems, own=namespace)
        made = None if before is None or own is None else before.before(own)
        if tls is None and not self._has_tls and spot.tls_options:
            tls = self._policy(spot.tls_options, _ENTRY_POINTS)
        refusal = _why_closed(self._annotations, problems, made)
        if tls == NOBODY:
            refusal = refusal or "its TLSOption cannot be followed, and may keep clients out"
        self._made = in_order(made or Made())
        paths = {path.field: self._path(path) for path in self._question.paths}
        seen = observed(self._said.get("access_logs"), self._said.get("tracing"), spot)
        return IngressRouting(
            spot=spot,
            paths=paths,
            patch=RoutePatch(plugins=self._made.plugins, as_traefik=True, **seen).over(self._made.route),
            refusal=refusal,
            tls=tls,
            tls_field=_field("router.tls.options"),
            resolver=self._said.get("resolver", ""),
            resolver_field=_field("router.tls.certresolver"),
            domains=self._domains(),
            uses=self._made.uses,
            problems=tuple(dict.fromkeys(problems)),
        )

    @property
    def _has_tls(self) -> bool:
        names = {key.removeprefix(TRAEFIK_PREFIX).lower() for key, _ in self._question.annotations}
        return bool(self._said.get("tls")) or any(name.startswith("router.tls.") for name in names)

    @property
    def _has_bad_matcher(self) -> bool:
        return self._said.get("pathmatcher", _PATH_MATCHERS[0]) not in _PATH_MATCHERS

    def _check_matcher(self) -> None:
        if self._has_bad_matcher:
            untyped = [path.field for path in self._question.paths if path.type not in _MATCHERS]
            what = f"{', '.join(untyped[:_NAMED])}: not served" if untyped else "no path has a type that it is for"
            message = f"must be one of {', '.join(_PATH_MATCHERS)}; {what}"
            say = refuse if untyped else warn
            matcher = self._said["pathmatcher"]
            self._problems.append(say("InvalidAnnotation", _field("router.pathmatcher"), message, matcher))

    def _domains(self) -> tuple[tuple[str, ...], ...]:
        """Return the names that are written as `tls.domains[0].main` and so on, in order of their numbers."""
        found: dict[str, list[str]] = {}
        for key, value in sorted(self._question.annotations):
            name = _DOMAIN.fullmatch(key.removeprefix(TRAEFIK_PREFIX).lower())
            if name is not None and isinstance(value, str):
                found.setdefault(name[1], []).extend(each.strip() for each in value.split(",") if each.strip())
        return tuple(map(tuple, found.values()))

    def _tls(self) -> TlsPolicy | None:
        named = self._said.get("options")
        if not named or self._lookups.is_assumed:
            return None
        return self._policy(named, _field("router.tls.options"), self._question.namespace)

    def _policy(self, named: str, field: str, own: str = "") -> TlsPolicy:
        try:
            found = find_provided(TLS_OPTIONS, named, self._lookups, own=own)
            return policy_of(found, field, self._lookups, self._problems)
        except BadReference as error:
            self._problems.append(refuse(error.reason, field, f"{error}; no client is let in", named))
            return NOBODY

    # Paths

    def _path(self, path: IngressPath) -> PathRouting:
        if path.type not in _MATCHERS and self._has_bad_matcher:
            return PathRouting((), 0, is_dropped=True)
        places, priority = self._places(path)
        if not path.port:
            return PathRouting(places, priority)
        service = find_service(self._lookups, self._question.namespace, path.service)
        reading = read_traefik_annotations("Service", dict(service.of_traefik) if service is not None else {})
        own: list[Problem] = list(reading.problems)
        said = reading.group("service")
        field = f"{path.field}.backend.service"
        named, namespace = said.get("middlewares", ()), self._question.namespace
        made = follow_provided(named, f"{field}.name", self._lookups, own, own=namespace)
        refusal = _why_closed(reading, own, made)
        made = made or Made()
        both = in_order(self._made.before(made))
        self._problems += own
        self._made = self._made._replace(uses=self._made.uses + made.uses)
        try:
            written = _load_balancer(path, said, reading.group("cookie"))
        except ValidationError:
            # No Service has such a name or port, of which the Ingress itself hears.
            return PathRouting(places, priority, refusal=f"{field} cannot be read")
        try:
            lookups = self._lookups
            upstream, timeouts = upstream_of(written, lookups.cluster, namespace, lookups, is_annotated=True)
            stickiness = stickiness_of(written.sticky, f"{namespace}-{path.service}-{path.port}", names="url")
        except (BadService, BadReference) as error:
            self._problems.append(refuse(error.reason, f"{field}.name", str(error), path.service))
            return PathRouting(places, priority, refusal=refusal or str(error))
        plugins = both.plugins if made.plugins else ()
        patch = RoutePatch(
            plugins=plugins, stickiness=stickiness, timeouts=timeouts if timeouts != Timeouts() else None
        ).over(made.route)
        return PathRouting(places, priority, patch, upstream, refusal)

    def _places(self, path: IngressPath) -> tuple[tuple[RoutePlace, ...], int]:
        default = self._lookups.settings.traefik.default_rule_syntax
        syntax = {"": default, "default": default}.get(self._said.get("rulesyntax", ""), self._said.get("rulesyntax"))
        matcher = _MATCHERS.get(path.type) or self._said.get("pathmatcher", _PATH_MATCHERS[0])
        parts = [f"Host({_quoted(path.host)})"] if path.host else []
        if path.host.startswith("*.") and syntax == "v2":
            parts = [f"HostRegexp({_quoted('{subdomain:[a-zA-Z0-9-]+}.' + path.host[2:])})"]
        parts += [self._path_rule(matcher, path.path)] if path.path else []
        try:
            rule = parse_rule(" && ".join(parts) or 'PathPrefix("/")', "v2" if syntax == "v2" else "v3")
            found = alternatives(rule)
        except (RuleError, ValueError) as error:
            self._problems.append(refuse("InvalidRule", f"{path.field}.path", str(error), path.path))
            return (), 0
        return tuple(RoutePlace(*place) for place in found), rule.priority(self._said.get("priority", 0))

    def _path_rule(self, matcher: str, path: str) -> str:
        if matcher != "PathPrefix" or path == "/" or not self._lookups.settings.traefik.strict_prefix_matching:
            return f"{matcher}({_quoted(path)})"
        whole = path.removesuffix("/")
        return f"(Path({_quoted(whole)}) || PathPrefix({_quoted(whole + '/')}))"


_ENTRY_POINTS: Final = TRAEFIK_TABLE.field("router.entrypoints")


def _field(name: str) -> str:
    return TRAEFIK_TABLE.field(name)


def _why_closed(reading: Reading, problems: list[Problem], made: Made | None) -> str:
    """Return why what annotations are about is closed; empty if it is not."""
    if reading.unreadable:
        return f"{TRAEFIK_PREFIX}{reading.unreadable[0]} cannot be read"
    return "" if made is not None else next((str(each) for each in problems if each.reason.startswith(_CLOSING)), "")


_CLOSING: Final = ("Middleware", "InvalidMiddleware", "RefNotPermitted", "TooManyMiddlewares")


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _load_balancer(path: IngressPath, said: Mapping[str, Any], cookie: Mapping[str, Any]) -> LoadBalancer:
    """Return what the annotations of a Service say as a reference of an IngressRoute says it."""
    return LoadBalancer.model_validate({"name": path.service, "port": path.port, **dict(_options(said, cookie))})


def _options(said: Mapping[str, Any], cookie: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    names = {
        "scheme": "scheme",
        "passHostHeader": "pass_host",
        "nativeLB": "native_lb",
        "serversTransport": "transport",
    }
    yield from ((name, said[source]) for name, source in names.items() if source in said)
    if said.get("sticky") or cookie:
        spelt = {"httponly": "httpOnly", "samesite": "sameSite", "maxage": "maxAge"}
        yield "sticky", {"cookie": {spelt.get(name, name): value for name, value in cookie.items()}}
