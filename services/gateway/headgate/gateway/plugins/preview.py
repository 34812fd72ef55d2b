"""What the plugins of a route do with a request that is not sent.

Plugins that decide by the request and their configuration alone (`Plugin.preview`) are asked as they are for requests,
one after the other, so that `proxy-rewrite` and `real-ip` are heard by those behind them. Others are named in their
place: they ask a server, count, or look at a credential.

Rejected: rules of `explain` beside those of the plugins, which would differ from them sooner or later.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from headgate.common.plugins.checking import read_meta
from headgate.common.plugins.errors import PluginFault
from headgate.common.sealing import ClusterValue, Purpose
from headgate.common.secret import Secret
from headgate.common.table import PluginUse, Route
from headgate.gateway.plugins.chain import GLOBAL
from headgate.gateway.plugins.errors import PluginRefused
from headgate.gateway.plugins.headers import Headers
from headgate.gateway.plugins.interface import Plugin, PluginServices, Request, Response
from headgate.gateway.plugins.registry import PluginRegistry, order_of
from headgate.gateway.plugins.verdicts import PluginVerdict
from headgate.gateway.proxy.facts import RequestFacts
from headgate.gateway.steps import finish

_Kind = type[Plugin[Any]]
_REFUSED: Final = 500
"""What requests get where a plugin of their route cannot be made."""


@cache
def _registry() -> PluginRegistry:
    return PluginRegistry()


def preview_plugins(route: Route, facts: RequestFacts) -> Sequence[PluginVerdict]:
    """Return the verdicts of a route's plugins, in the order in which they are asked; see `Preview`."""
    request = _request(facts)
    try:
        kinds = [(use, _registry().find(use.name)) for use in route.plugins if not use.fault]
        placed = _placed(kinds)
    except (PluginRefused, PluginFault) as error:
        return (PluginVerdict(name=error.plugin, verdict="answers", status=_REFUSED, detail=str(error)),)
    faults = [
        PluginVerdict(name=use.name, verdict="answers", status=_REFUSED, detail=use.fault)
        for use in route.plugins
        if use.fault
    ]
    return (*faults, *(_verdict(use, kind, request) for use, kind in placed))


def _placed(kinds: Sequence[tuple[PluginUse, _Kind]]) -> list[tuple[PluginUse, _Kind]]:
    """Order plugins as chains do: those that wait for a consumer come behind those that recognise one."""
    orders = [order_of(use, read_meta(use), kind) for use, kind in kinds]
    finders = [order for order, (_, kind) in zip(orders, kinds, strict=True) if kind.finds_consumer]
    last = min(finders, default=GLOBAL)

    def place(number: int) -> int:
        waits = kinds[number][1].waits_for_consumer and last <= orders[number] < GLOBAL
        return -(last - 1 if waits else orders[number])

    # By their orders first, as plugins that wait keep their order among each other.
    first = sorted(range(len(kinds)), key=lambda number: -orders[number])
    return [kinds[number] for number in sorted(first, key=place)]


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


def _verdict(use: PluginUse, kind: _Kind, request: Request) -> PluginVerdict:
    name = use.name
    if read_meta(use).disable:
        return PluginVerdict(name=name, verdict="off", detail="disabled by _meta.disable")
    if kind.on_request is Plugin.on_request:
        return PluginVerdict(name=name, verdict="passes", detail="looks at answers only")
    if reason := _why_unknown(use, kind, request):
        return PluginVerdict(name=name, verdict="unknown", detail=reason)
    try:
        [(_, plugin)] = finish(_registry().parts([use], PluginServices(), _no_key))
        answer = _ask(plugin, request)
    except Exception as error:  # as chains do, whatever a plugin raises
        return PluginVerdict(name=name, verdict="answers", status=_REFUSED, detail=str(error) or type(error).__name__)
    if answer is None:
        return PluginVerdict(name=name, verdict="passes")
    location = answer.headers.get("Location")
    reason = f"{answer.reason} to {location}" if location else answer.reason
    return PluginVerdict(name=name, verdict="answers", status=answer.status, detail=reason)


def _why_unknown(use: PluginUse, kind: _Kind, request: Request) -> str:
    if kind.finds_consumer:
        return "needs the credential of a consumer, which is not looked at here"
    if kind.preview == "no":
        return "cannot be known: asks a server, counts, draws by chance or needs a consumer"
    if use.secrets:
        return "cannot be known: has secrets, which only requests open"
    return "give --client ADDRESS" if kind.preview == "with-client" and not request.client else ""


def _ask(plugin: Plugin[Any], request: Request) -> Response | None:
    """Ask a plugin, which has all it needs and so never waits."""
    outcome = plugin.on_request(request)
    if outcome is None or isinstance(outcome, Response):
        return outcome
    steps = outcome.__await__()
    try:
        next(steps)
    except StopIteration as end:
        found: Response | None = end.value
        return found
    raise PluginRefused(plugin.name, "", "waits for something that a request that is not sent lacks")


def _no_key(value: ClusterValue, purpose: Purpose) -> Secret[bytes]:
    raise AssertionError("only plugins without secrets are asked")
