"""What the levels of a location say together, as plugins and fields of its routes.

Inheritance is nginx's: `add_header`, `proxy_hide_header`, `allow` and `deny` hold from an outer level only where a
level has none of its own; settings hold unless the level has the same; the filters of headers-more add up, the outer
ones first; the rewrite phase of the server runs before that of the location. `proxy_set_header` of the server never
holds, as each location of ingress-nginx has its own.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import JsonValue, ValidationError

from headgate.common.plugins.checking import check_use
from headgate.common.plugins.errors import PluginFault
from headgate.common.plugins.meta import META
from headgate.common.plugins.traffic.nginx_rewrite import ErrorPage, NginxRewriteConfig
from headgate.common.plugins.traffic.proxy_rewrite import HeaderChanges, ProxyRewriteConfig
from headgate.common.plugins.transformation.compression import GzipConfig
from headgate.common.plugins.transformation.fault_injection import Abort, FaultInjectionConfig
from headgate.common.table import PluginUse, Timeouts
from headgate.translator.snippets.answers import changes_of_answers
from headgate.translator.snippets.conditions import is_branch, is_type
from headgate.translator.snippets.errors import SnippetError
from headgate.translator.snippets.level import (
    NOTHING,
    AccessRule,
    AddedHeader,
    Branch,
    ErrorAnswer,
    Expires,
    HiddenHeader,
    InputFilter,
    Level,
    LimitExcept,
    NamedLocation,
    PassedHeader,
    ProxyHeader,
    Substitution,
)

_INHERITED: Final = (AddedHeader, HiddenHeader, PassedHeader, Expires, AccessRule, Substitution, ErrorAnswer)
_FIELDS: Final = frozenset(("access_log_share", "buffer_request", "max_body"))
_INPUT_ORDER: Final = 20_990
"""Of changes by headers-more to requests: behind the rewrite phase, before all that reads headers."""
_PROXY_ORDER: Final = 1_007
_ACCESS_ORDER: Final = 3_000


def within(outer: Level, inner: Level) -> Level:
    """Return what a level says within another one that has no program, as one level."""
    own = {type(said) for said in inner}
    return Level((*(said for said in outer if not (isinstance(said, _INHERITED) and type(said) in own)), *inner.said))


@dataclass(frozen=True, slots=True)
class Composed:
    """What snippets say of the routes of one location."""

    plugins: tuple[PluginUse, ...] = ()
    fields: "Mapping[str, Any]" = ()  # type: ignore[assignment]
    """Of the route: `max_body`, `timeouts` and the like."""


def compose(server: Level, location: Level) -> Composed:
    """Put together what the levels of one location say. Raises SnippetError."""
    both = _Both(server, location)
    try:
        plugins = tuple(both.plugins())
        for use in plugins:
            check_use(use)
    except (ValidationError, PluginFault) as error:
        raise SnippetError(f"cannot be said in the table: {str(error).splitlines()[0]}", 1) from error
    return Composed(plugins, both.fields())


class _Both:
    def __init__(self, server: Level, location: Level) -> None:
        self._server = server
        self._location = location
        self._settings = server.settings() | location.settings()
        self._branches = location.of(Branch)

    def fields(self) -> dict[str, Any]:
        """Return the fields of the route that are said."""
        said = {name: value for name, value in self._settings.items() if name in _FIELDS}
        prefix = "timeouts."
        timeouts = {
            name.removeprefix(prefix): value for name, value in self._settings.items() if name.startswith(prefix)
        }
        return {**said, **({"timeouts": Timeouts.model_validate(timeouts)} if timeouts else {})}

    def plugins(self) -> Iterator[PluginUse]:
        """Yield the plugins, in the order in which requests meet them."""
        yield from self._program()
        yield from self._input()
        yield from self._access()
        yield from self._upstream()
        yield from self._compression()
        yield from changes_of_answers(self._server, self._location)

    def _program(self) -> Iterator[PluginUse]:
        server, location, errors = self._server.steps, self._location.steps, self._errors()
        if server or location or errors:
            given = {"server": server, "steps": location, "errors": errors}
            written: dict[str, Any] = {name: value for name, value in given.items() if value}
            if "default_type" in self._settings:
                written["default_type"] = self._settings["default_type"]
            yield PluginUse.of(NginxRewriteConfig.model_validate(written))

    def _errors(self) -> tuple[ErrorPage, ...]:
        named = {each.name: each for each in self._server.of(NamedLocation)}
        return tuple(
            _error_page(each, named) for each in self._location.of(ErrorAnswer) or self._server.of(ErrorAnswer)
        )

    def _input(self) -> Iterator[PluginUse]:
        filters = [(each, 0) for level in (self._server, self._location) for each in level.of(InputFilter)]
        filters += [(each, branch.number) for branch in self._branches for each in branch.level.of(InputFilter)]
        for at, (each, branch) in enumerate(filters):
            conditions: list[JsonValue] = [is_branch(branch)] if branch else []
            if each.types:
                conditions.append(is_type("content_type", each.types))
            if not each.is_replacing:
                yield _under(_requests(dict(each.set), each.removed), conditions, _INPUT_ORDER - at)
                continue
            for name, value in each.set:
                is_there: JsonValue = [f"http_{name.lower().replace('-', '_')}", "~~", ""]
                yield _under(_requests({name: value}, ()), [*conditions, is_there], _INPUT_ORDER - at)

    def _access(self) -> Iterator[PluginUse]:
        rules = self._location.of(AccessRule) or self._server.of(AccessRule)
        yield from _restrictions(rules, [])
        for limit in self._location.of(LimitExcept):
            yield from _restrictions(limit.rules, [["request_method", "!", "in", list(limit.methods)]])

    def _upstream(self) -> Iterator[PluginUse]:
        headers = self._location.of(ProxyHeader)
        changed = {each.name: each.value for each in _readers_first(headers)}
        host = self._location.settings().get("host")
        if changed or host:
            written: dict[str, Any] = {"host": host} if host else {}
            written |= {"headers": HeaderChanges(set=changed)} if changed else {}
            yield _ordered(ProxyRewriteConfig.model_validate(written), _PROXY_ORDER)

    def _compression(self) -> Iterator[PluginUse]:
        if self._settings.get("gzip") is True:
            prefix = "gzip."
            said = {name: value for name, value in self._settings.items() if name.startswith(prefix)}
            yield PluginUse.of(GzipConfig.model_validate({"vary": False} | _without(prefix, said)))


def _error_page(answer: ErrorAnswer, named: Mapping[str, NamedLocation]) -> ErrorPage:
    written: dict[str, Any] = {"statuses": answer.statuses}
    written |= {} if answer.status is None else {"status": answer.status}
    if not answer.target.startswith("@"):
        return ErrorPage.model_validate({**written, "url": answer.target})
    location = named.get(answer.target)
    if location is None:
        raise answer.directive.error(f"there is no location {answer.target} in the server's snippet")
    return ErrorPage.model_validate({**written, "steps": location.steps, "default_type": location.default_type})


def _requests(changed: dict[str, str], removed: tuple[str, ...]) -> ProxyRewriteConfig:
    given: dict[str, Any] = {"set": changed} if changed else {}
    given |= {"remove": removed} if removed else {}
    return ProxyRewriteConfig(headers=HeaderChanges.model_validate(given))


def _restrictions(rules: tuple[AccessRule, ...], conditions: list[JsonValue]) -> Iterator[PluginUse]:
    """Refuse whom rules deny: the first that takes an address decides, and without one it may come."""
    refusals: list[JsonValue] = []
    allowed: list[JsonValue] = []
    for rule in rules:
        if rule.allows and rule.network == "all":
            break
        if rule.allows:
            allowed.append(rule.network)
            continue
        others: list[JsonValue] = [["remote_addr", "!", "ipmatch", [*allowed]]] if allowed else []
        own: list[JsonValue] = [["remote_addr", "ipmatch", [rule.network]]] if rule.network != "all" else []
        refusals.append([*others, *own, *conditions])
        if rule.network == "all":
            break
    if refusals:
        everyone = [] in refusals
        abort: dict[str, Any] = {"http_status": 403, "body": "403 Forbidden\n"} | (
            {} if everyone else {"vars": refusals}
        )
        yield _ordered(FaultInjectionConfig(abort=Abort.model_validate(abort)), _ACCESS_ORDER)


def _readers_first(headers: tuple[ProxyHeader, ...]) -> list[ProxyHeader]:
    """Put headers whose values refer to others before those that are constants: nginx reads all before it sets any."""
    return sorted(headers, key=lambda each: "$" not in each.value)


def _under(config: ProxyRewriteConfig, conditions: list[JsonValue], order: int) -> PluginUse:
    use = _ordered(config, order)
    return use.model_copy(update={"config": {**use.config, META: {"filter": conditions}}}) if conditions else use


def _ordered(config: ProxyRewriteConfig | FaultInjectionConfig, order: int) -> PluginUse:
    return PluginUse.of(config).model_copy(update={"order": order})


def _without(prefix: str, said: Mapping[str, object]) -> dict[str, object]:
    return {name.removeprefix(prefix): value for name, value in said.items()}


def nowhere(level: Level, server: Level = NOTHING) -> Composed:
    """Return what a location without an upstream says: what it does not answer or refuse is not found.

    nginx looks for a file there, and ingress-nginx has none. Raises SnippetError.
    """
    composed = compose(server, level)
    missing = FaultInjectionConfig(abort=Abort(http_status=404))
    return Composed((*composed.plugins, PluginUse.of(missing).model_copy(update={"order": 0})), composed.fields)
