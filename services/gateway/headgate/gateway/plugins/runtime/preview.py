"""What the plugins of a route do with a request that is not sent.

Plugins that decide by the request, their configuration and consumers alone (`Plugin.preview`) are asked as they are for
requests, one after the other, so that `proxy-rewrite`, `real-ip` and plugins that recognise consumers are heard by
those behind them. Others are named in their place with the reason: they ask a server, or count.

Rejected: rules of `explain` beside those of the plugins, which would differ from them sooner or later.
"""

from collections.abc import Awaitable, Collection, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from headgate.common.plugins.checking import read_meta
from headgate.common.plugins.errors import PluginFault
from headgate.common.sealing import ClusterValue, Purpose, Unseal
from headgate.common.secret import Secret
from headgate.common.table import PluginUse, Route
from headgate.gateway.model.steps import finish
from headgate.gateway.plugins.interface import Foreseen, Passes, Plugin, PluginServices, Request, Response
from headgate.gateway.plugins.interface.consumers import ConsumerDirectory, KnownConsumer, KnownCredential
from headgate.gateway.plugins.interface.errors import PluginRefused, Unforeseeable
from headgate.gateway.plugins.interface.headers import Headers
from headgate.gateway.plugins.runtime.chain import GLOBAL
from headgate.gateway.plugins.runtime.registry import PluginRegistry, order_of
from headgate.gateway.plugins.runtime.verdicts import PluginVerdict
from headgate.gateway.proxy.heads.facts import RequestFacts

_Kind = type[Plugin[Any]]
_REFUSED: Final = 500
"""What requests get where a plugin of their route cannot be made."""


@cache
def _registry() -> PluginRegistry:
    return PluginRegistry()


def preview_plugins(
    route: Route,
    facts: RequestFacts,
    scope: str,
    *,
    consumers: ConsumerDirectory | None = None,
    unseal: Unseal | None = None,
) -> Sequence[PluginVerdict]:
    """Return the verdicts of a route's plugins, in the order in which they are asked; see `Preview`.

    Args:
        route: whose plugins are asked.
        facts: what is known of the request.
        scope: `host|route name`.
        consumers: those of the table that is served; None: they are not known.
        unseal: opens secrets of plugins; None: they cannot be opened.
    """
    services = PluginServices(
        scope=scope,
        owner=route.provenance.owner if route.provenance else "",
        path=route.path,
        consumers=_UnknownConsumers() if consumers is None else consumers,
    )
    request = _request(facts)
    request.route, request.upstreams = scope, ",".join(backend.target for backend in route.backends)
    try:
        return _Previewed(route.plugins, request, services, unseal).verdicts
    except (PluginRefused, PluginFault) as error:
        return (PluginVerdict(name=error.plugin, verdict="answers", status=_REFUSED, detail=str(error)),)


class _UnknownConsumers(ConsumerDirectory):
    """Stands for the consumers of a gateway that is not asked."""

    def find(
        self, plugin: str, value: bytes, owner: str = "", gateways: Collection[str] = ()
    ) -> KnownCredential | None:
        raise Unforeseeable("consumers are known to gateways only: ask one with --admin-url")

    def named(self, name: str, owner: str = "", gateways: Collection[str] = ()) -> KnownConsumer | None:
        raise Unforeseeable("consumers are known to gateways only: ask one with --admin-url")


class _Placed(NamedTuple):
    """A plugin, where it is asked."""

    order: int
    use: PluginUse
    kind: _Kind


class _Previewed:
    """The plugins of one request, asked one after the other."""

    def __init__(
        self, uses: Sequence[PluginUse], request: Request, services: PluginServices, unseal: Unseal | None
    ) -> None:
        self._request = request
        self._services = services
        self._unseal = unseal
        self._is_consumer_unknown = False
        self.verdicts = [
            PluginVerdict(name=use.name, verdict="answers", status=_REFUSED, detail=use.fault)
            for use in uses
            if use.fault
        ]
        self._ask_all(_placed([use for use in uses if not use.fault]))

    def _ask_all(self, placed: list[_Placed]) -> None:
        for index, (_, use, kind) in enumerate(placed):
            verdict = self._verdict(use, kind)
            self.verdicts.append(verdict)
            if kind.finds_consumer and verdict.verdict == "unknown":
                self._is_consumer_unknown = True
            finders_follow = any(one.kind.finds_consumer for one in placed[index + 1 :])
            if kind.finds_consumer and self._request.consumer is not None and not finders_follow:
                asked = {one.use.name for one in placed[: index + 1] if one.order < GLOBAL}
                self._ask_all(self._merged(placed[index + 1 :], asked, self._request.consumer))
                return

    def _merged(self, rest: list[_Placed], asked: Collection[str], consumer: KnownConsumer) -> list[_Placed]:
        """Return the plugins behind those that recognise consumers: the consumer's and its group's replace others."""
        group = self._services.consumers.group(consumer.group)
        own = {use.name: use for use in (*(group.plugins if group else ()), *consumer.plugins)}
        added = _placed([use for name, use in own.items() if name not in asked])
        kept = [one for one in rest if one.use.name not in own]
        last = max((one.order for one in rest), default=0)
        return sorted((*added, *kept), key=lambda one: -min(one.order, last))

    def _verdict(self, use: PluginUse, kind: _Kind) -> PluginVerdict:
        name = use.name
        if read_meta(use).disable:
            return PluginVerdict(name=name, verdict="off", detail="disabled by _meta.disable")
        if kind.on_request is Plugin.on_request:
            changes = kind.request_body_filter is not Plugin.request_body_filter
            return PluginVerdict(name=name, verdict="passes", detail=_COPIES if changes else "looks at answers only")
        if kind.preview == "passes":
            return PluginVerdict(name=name, verdict="passes", detail="refuses no requests")
        try:
            foreseen = self._foresee(use, kind)
        except Unforeseeable as reason:
            return PluginVerdict(name=name, verdict="unknown", detail=str(reason))
        except Exception as error:  # as chains do, whatever a plugin raises
            detail = str(error) or type(error).__name__
            return PluginVerdict(name=name, verdict="answers", status=_REFUSED, detail=detail)
        return self._told(name, foreseen, kind)

    def _told(self, name: str, foreseen: Foreseen, kind: _Kind) -> PluginVerdict:
        if isinstance(foreseen, Response):
            location = foreseen.headers.get("Location")
            reason = f"{foreseen.reason} to {location}" if location else foreseen.reason
            return PluginVerdict(name=name, verdict="answers", status=foreseen.status, detail=reason)
        detail = foreseen.detail if foreseen is not None else ""
        if kind.finds_consumer and self._request.consumer is not None:
            detail = self._request.consumer.title
        return PluginVerdict(name=name, verdict="passes", detail=detail)

    def _foresee(self, use: PluginUse, kind: _Kind) -> Foreseen:
        """Ask a plugin. Raises Unforeseeable."""
        if kind.preview == "with-client" and not self._request.client:
            raise Unforeseeable("give --client ADDRESS")
        if use.secrets and self._unseal is None:
            raise Unforeseeable("has secrets, which gateways open: ask one with --admin-url")
        if self._is_consumer_unknown and kind.decides_by_consumer:
            raise Unforeseeable("depends on the consumer, which is not known")
        [(_, plugin)] = finish(_registry().parts([use], self._services, self._unseal or _no_key))
        return _outcome(plugin.foresee(self._request))


_COPIES: Final = "looks at bodies and refuses no requests"


def _placed(uses: Sequence[PluginUse]) -> list[_Placed]:
    """Order plugins as chains do: those that wait for a consumer come behind those that recognise one."""
    kinds = [(use, _registry().find(use.name)) for use in uses]
    found = [_Placed(order_of(use, read_meta(use), kind), use, kind) for use, kind in kinds]
    last = min((one.order for one in found if one.kind.finds_consumer), default=GLOBAL)

    def place(one: _Placed) -> int:
        waits = one.kind.waits_for_consumer and last <= one.order < GLOBAL
        return -(last - 1 if waits else one.order)

    # By their orders first, as plugins that wait keep their order among each other.
    return sorted(sorted(found, key=lambda one: -one.order), key=place)


def _request(facts: RequestFacts) -> Request:
    lines = facts.lines.decode("latin-1").split("\r\n")
    pairs = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines if line)]
    body = facts.body or b""
    host = facts.host.decode("latin-1")
    scheme = facts.scheme.decode()
    return Request(
        method=facts.method.decode("latin-1"),
        scheme=scheme,
        host=host,
        port=443 if scheme == "https" else 80,
        path=facts.target.partition(b"?")[0].decode("latin-1"),
        query=facts.query.decode("latin-1"),
        headers=Headers(pairs),
        client=facts.client.decode("latin-1"),
        content_length=len(body),
        body=body,
        claims={name.lower().encode(): value.encode() for name, value in pairs if name.lower().startswith("x-")},
    )


def _outcome(foreseen: Foreseen | Awaitable[Foreseen]) -> Foreseen:
    """Return what a plugin says that waits for nothing but the body, which is there."""
    if foreseen is None or isinstance(foreseen, Response | Passes):
        return foreseen
    steps = foreseen.__await__()
    try:
        next(steps)
    except StopIteration as end:
        found: Foreseen = end.value
        return found
    raise Unforeseeable("waits for something that a request that is not sent lacks")


def _no_key(value: ClusterValue, purpose: Purpose) -> Secret[bytes]:
    raise AssertionError("only plugins without secrets are asked")
