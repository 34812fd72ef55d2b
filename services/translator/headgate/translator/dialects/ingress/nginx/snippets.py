"""Snippets of one Ingress, and the server's of its hosts, applied to routes.

`configuration-snippet` holds for the routes of its Ingress, `server-snippet` for the routes of a host, whatever Ingress
with annotations of ingress-nginx, or of its class, they are of; of several the oldest Ingress has it. They are followed
only if the setting `nginx_allow_snippets` is on, as ingress-nginx does not follow them either unless its operator
allows it.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from headgate.common.plugins.security.satisfy_any import SatisfyAnyConfig
from headgate.common.plugins.traffic.nginx_rewrite import CAUGHT, NginxRewriteConfig, RewriteStep
from headgate.common.resources import JsonObject, ObjectRef
from headgate.common.table import PathMatch, PathType, PluginUse, Rank, Route
from headgate.common.table.upstream_key import UpstreamKey
from headgate.translator.annotations.nginx.row import Risk
from headgate.translator.annotations.reading import Reading
from headgate.translator.dialects.ingress.nginx.facts import facts_of
from headgate.translator.dialects.ingress.nginx.hosts import rule_paths
from headgate.translator.fragments.fragment import RouteClaim
from headgate.translator.manifests.patches import NO_ROUTE_PATCH, RoutePatch
from headgate.translator.snippets.compose import Composed, compose, nowhere, within
from headgate.translator.snippets.errors import SnippetError
from headgate.translator.snippets.interpret import interpret
from headgate.translator.snippets.level import NOTHING, AuthVariable, Level, Location, ProxyHeader, UpstreamTlsSetting
from headgate.translator.snippets.scope import ANY_CONSTANTS, Context, Scope
from headgate.translator.snippets.streams import StreamServer, read_streams
from headgate.translator.world.graph import Lookups

_NOT_ALLOWED: Final = (
    "snippets are followed only if the translator's setting nginx_allow_snippets is on, or the ConfigMap's "
    "allow-snippet-annotations"
)
_LEFT_OUT: Final = f"is left out, as ingress-nginx does with annotations-risk-level Critical: {_NOT_ALLOWED}"
_CATCH_ALL: Final = PathMatch(type=PathType.PREFIX, value="/")
_ASKING: Final = "forward-auth"


class Snippets:
    """What the snippets of an Ingress say, or those of its hosts."""

    def __init__(self, ref: ObjectRef, manifest: JsonObject, reading: Reading, lookups: Lookups) -> None:
        """Read the snippets; what cannot be followed goes to the reading."""
        self._ref, self._reading, self._lookups = ref, reading, lookups
        self._location = self._server = ""
        self._locations: tuple[Location, ...] = ()
        self._upstream_tls: tuple[UpstreamTlsSetting, ...] = ()
        self._variables: dict[str, str] = {}
        self._auth = NOTHING
        self.streams: tuple[StreamServer, ...] = ()
        """Ports that are opened."""
        written = reading.group("snippets")
        # An Ingress by itself does not know the ConfigMap, which may allow them.
        is_allowed = lookups.settings.nginx.allow_snippets or lookups.is_assumed
        self._is_allowed = is_allowed or written.get("are_allowed", False)
        self._of_http: str = written.get("of_http", "")
        self._of_servers: str = written.get("of_servers", "")
        self._of_locations: str = written.get("of_locations", "")
        of_auth: str = written.get("of_auth", "")
        if not self._is_allowed:
            is_left_out = reading.group("security").get("risk") is Risk.CRITICAL
            for name in reading.written("snippets"):
                if is_left_out:
                    reading.caution(name, _LEFT_OUT)
                else:
                    reading.refuse(name, _NOT_ALLOWED)
            written = {}
        if written:
            self._read(written, manifest)
        if not reading.group("asking").get("url"):
            self._auth = interpret(of_auth, Scope(Context.AUTH)) if of_auth else NOTHING

    def _read(self, written: Mapping[str, str], manifest: JsonObject) -> None:
        self._location, self._server = written.get("location", ""), written.get("server", "")
        level = NOTHING
        if self._server:
            level = self._check("server-snippet", self._server, Context.SERVER)
            self._locations = self._check_locations(level, rule_paths(manifest))
        if self._location:
            level = self._check("configuration-snippet", self._location, Context.LOCATION, level)
            self._upstream_tls = level.of(UpstreamTlsSetting)
            self._variables = {each.name: each.header for each in level.of(AuthVariable)}
        self.streams = self._read_streams(written.get("stream", ""))
        if "auth" in written:
            self._auth = self._check("auth-snippet", written["auth"], Context.AUTH)

    def _read_streams(self, text: str) -> tuple[StreamServer, ...]:
        try:
            return read_streams(text) if text else ()
        except SnippetError as error:
            self._reading.refuse("stream-snippet", str(error))
            return ()

    def _check(self, name: str, text: str, context: Context, server: Level = NOTHING) -> Level:
        """Read a snippet, and look whether it can be said in the table."""
        constants = ANY_CONSTANTS if context is not Context.SERVER else {}
        try:
            level = interpret(text, Scope(context, constants))
            is_server = context is Context.SERVER
            compose(*((level, NOTHING) if is_server else (server, level)))
        except SnippetError as error:
            self._reading.refuse(name, str(error))
            return NOTHING
        return level

    def _check_locations(self, level: Level, taken: frozenset[str]) -> tuple[Location, ...]:
        locations = level.of(Location)
        for location in locations:
            path = location.path
            if path.type is not PathType.REGEX and path.value in taken:
                error = location.directive.error(
                    f"{path.value} is a path of the Ingress too, which nginx does not take"
                )
                self._reading.refuse("server-snippet", str(error))
                return ()
            try:
                for setting in location.level.of(UpstreamTlsSetting):
                    raise setting.directive.error("is followed in a configuration-snippet only")
                nowhere(location.level)
            except SnippetError as error:
                self._reading.refuse("server-snippet", str(error))
                return ()
        return locations

    def upstream_tls(self, *, of_grpc: bool) -> dict[str, str]:
        """Return fields of `BackendTls` that the location says of endpoints that speak gRPC, or of others."""
        return {each.name: each.value for each in self._upstream_tls if each.of_grpc is of_grpc}

    # Routes of rules

    def patch(self, claim: RouteClaim, target: str) -> RoutePatch:
        """Return what the snippets say of a route.

        Args:
            claim: the route.
            target: what `rewrite-target` makes of its path, if it is rewritten: nginx does so at the end of the program
                of the rewrite phase.
        """
        composed = self._composed(claim)
        if composed is None:
            return NO_ROUTE_PATCH
        plugins = composed.plugins
        if target:
            plugins = tuple(_with_target(use, claim.route.path, target) for use in plugins)
        return RoutePatch(plugins=plugins, **composed.fields)

    def has_program(self, claim: RouteClaim) -> bool:
        """Whether the snippets have a program for a route, so that its path is rewritten there."""
        composed = self._composed(claim)
        return composed is not None and any(use.name == NginxRewriteConfig.plugin for use in composed.plugins)

    def _composed(self, claim: RouteClaim) -> Composed | None:
        server = self._server_of(claim.host)
        text = _joined(self._of_locations, self._location)
        if not text and (server is NOTHING or server == NOTHING):
            return None
        try:
            return compose(server, interpret(text, Scope(Context.LOCATION, _constants(claim))))
        except SnippetError as error:
            return self._refused(error)

    def _server_of(self, host: str) -> Level:
        """Return what is said in the server of a host, and around it.

        A snippet of an Ingress that cannot be followed refuses requests of its Ingress alone.
        """
        outer = interpret(self._of_http, Scope(Context.HTTP)) if self._of_http else NOTHING
        own = facts_of(self._lookups, self._ref.namespace, host).server_snippet if self._is_allowed else ""
        if not own and not self._of_servers:
            return outer
        for text in (_joined(own, self._of_servers), self._of_servers):
            try:
                return within(outer, interpret(text, Scope(Context.SERVER)))
            except SnippetError:
                continue
        return outer

    # Questions to a service

    def with_auth(self, use: PluginUse) -> PluginUse:
        """Return the use of a plugin with what the snippets say of questions to a service, and of its answers."""
        if use.name == _ASKING:
            return use.model_copy(update={"config": self._asking(use.config)})
        if use.name == SatisfyAnyConfig.plugin and isinstance(asking := use.config.get(_ASKING), dict):
            return use.model_copy(update={"config": {**use.config, _ASKING: self._asking(asking)}})
        return use

    def _asking(self, before: Mapping[str, Any]) -> dict[str, Any]:
        config = dict(before)
        headers = {each.name: each.value for each in self._auth.of(ProxyHeader)}
        timeout_s = self._auth.settings().get("timeouts.read_s")
        if headers:
            config["extra_headers"] = _changed(config.get("extra_headers", {}), headers)
        if isinstance(timeout_s, float):
            config["timeout"] = max(1, min(int(timeout_s * 1000), 600_000))
        if self._variables:
            config["answer_variables"] = self._variables
        return config

    # Further routes

    def further(self, claims: Mapping[str, RouteClaim]) -> Iterator[RouteClaim]:
        """Yield the location blocks of the server's snippet, for hosts of which this Ingress has it.

        Where the server has a program there is a route for all else too, as nginx has a location for it.
        """
        for host, claim in claims.items():
            if not self._server or facts_of(self._lookups, self._ref.namespace, host).server_snippet != self._server:
                continue
            server = self._server_of(host)
            for location in self._locations:
                composed = self._nowhere(location.level, server)
                yield _location_claim(claim, location.path, composed, Rank(path_priority=1))
            if server.steps:
                yield _location_claim(claim, _CATCH_ALL, self._nowhere(NOTHING, server), Rank(is_default=True))

    def _nowhere(self, level: Level, server: Level) -> Composed:
        try:
            return nowhere(level, server)
        except SnippetError as error:
            return self._refused(error)

    def _refused(self, error: SnippetError) -> Composed:
        """Return what refuses the requests of a route on which a snippet cannot be followed that can be elsewhere."""
        fault = f"snippet of Ingress {self._ref.namespace}/{self._ref.name}: {error}"
        return Composed((PluginUse(name=NginxRewriteConfig.plugin, fault=fault),), {})


def _joined(*texts: str) -> str:
    """Return snippets of one block as one: each is a whole by itself, as it was read alone before."""
    return "\n".join(text for text in texts if text)


def _changed(before: Mapping[str, str], headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers with others in their place; one without a value takes away what the client sent."""
    replaced = {name.lower() for name in headers}
    kept = {name: value for name, value in before.items() if name.lower() not in replaced}
    return kept | dict(headers)


def _constants(claim: RouteClaim) -> dict[str, str]:
    """Return the variables that ingress-nginx sets in the location of a path."""
    source = claim.route.provenance
    known = {"namespace": source.namespace, "ingress_name": source.name, "location_path": claim.route.path.value}
    if claim.route.backends:
        key = UpstreamKey.parse(claim.route.backends[0].upstream)
        port = "" if key.port is None else str(key.port)
        known |= {"service_name": key.name, "service_port": port}
        known["proxy_upstream_name"] = known["proxy_host"] = f"{key.namespace}-{key.name}-{port}"
    return known


def _with_target(use: PluginUse, path: PathMatch, target: str) -> PluginUse:
    """Return a program with the rewriting of `rewrite-target` at its end."""
    if use.name != NginxRewriteConfig.plugin or use.fault:
        return use
    step = target_step(path, target)
    return use.model_copy(
        update={"config": {**use.config, "steps": [*use.config.get("steps", ()), step.model_dump(exclude_unset=True)]}}  # type: ignore[misc]
    )


def target_step(path: PathMatch, target: str) -> RewriteStep:
    """Return the step that rewrites a path as `rewrite-target` says."""
    return RewriteStep(do="rewrite", pattern=f"(?i){path.value}", replacement=target, flag="break")


def caught_as_variables(text: str) -> str:
    """Return a template in which `$1` stands for what the program's last pattern caught."""
    return re.sub(r"\$([1-9])", lambda found: f"${{{CAUGHT}{found[1]}}}", text)


def _location_claim(claim: RouteClaim, path: PathMatch, composed: Composed, rank: Rank) -> RouteClaim:
    """Return a route that plugins answer, beside those of rules."""
    source = claim.route.provenance
    kind = f"{path.type}{'*' if path.ignore_case else ''}"
    route = Route(
        name=f"{source.cluster}/{source.namespace}/{source.name} location {kind} {path.value}",
        path=path,
        plugins=composed.plugins,
        rank=rank,
        provenance=source,
        **composed.fields,
    )
    return RouteClaim(claim.host, route, claim.field)
