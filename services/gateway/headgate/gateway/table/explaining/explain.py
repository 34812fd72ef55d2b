"""Why a request goes where it goes: every candidate, what it lost by, and what the winner would send to.

Decides with the same index and the same choice of endpoints as requests do, so that it cannot explain something that
does not happen. Works on any `TableView`, with or without a running gateway.
"""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from headgate.common.table import HostKey, Route, VirtualHost
from headgate.common.table.shards import Shard
from headgate.gateway.balancing.levels import NOWHERE, Place
from headgate.gateway.plugins.runtime.verdicts import PluginVerdict, Preview, first_answer
from headgate.gateway.proxy.heads.facts import RequestFacts
from headgate.gateway.proxy.heads.paths import PathNormalization, clean, has_bad_escape, normalize
from headgate.gateway.table.conditions import compile_condition
from headgate.gateway.table.explaining.backends import (
    BackendExplainer,
    HealthOf,
    backends_verdict,
    no_health,
)
from headgate.gateway.table.explaining.explanation import Candidate, Explanation
from headgate.gateway.table.explaining.hosts import addresses_with, find_hosts, find_listener
from headgate.gateway.table.explaining.requests import bare_host, fault_of_target, port_of, refusal_of_method
from headgate.gateway.table.explaining.routes import compare_routes
from headgate.gateway.table.listener_ports import OwnPorts
from headgate.gateway.table.listeners import with_defaults
from headgate.gateway.table.shards.elsewhere import MISDIRECTED, reason_of
from headgate.gateway.table.view import TableView

_NAMED: Final = 3
"""Addresses in a verdict."""


def no_preview(route: Route, facts: RequestFacts, scope: str) -> Sequence[PluginVerdict]:
    """Stand for `Preview` where plugins are not asked."""
    return ()


def explain(
    table: TableView,
    method: str,
    host: str,
    target: str,
    headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
    *,
    scheme: str = "http",
    client: str = "",
    body: bytes = b"",
    path_normalization: PathNormalization = "rewrite",
    place: Place = NOWHERE,
    preview: Preview = no_preview,
    health_of: HealthOf = no_health,
    own_ports: OwnPorts = MappingProxyType({}),
    shard: Shard | None = None,
) -> Explanation:
    """Explain what happens to a request.

    Args:
        table: what to decide by.
        method: of the request; one that the gateway refuses decides before any route does.
        host: of the URL, with or without port; a `Host` among the headers goes before it. The port says which listeners
            are asked, and so does the host if it is the address of some.
        target: raw path, with or without query.
        headers: of the request.
        scheme: `http` or `https`.
        client: address of the client.
        body: of the request.
        path_normalization: the gateway's setting.
        place: where the gateway is.
        preview: asks the winner's plugins.
        health_of: what the gateway knows of endpoints.
        own_ports: numbers of the gateway's own ports.
        shard: what the gateway serves of the table; None: all of it.
    """
    address, port = bare_host(host).strip("[]"), port_of(host)
    pairs = list(headers.items()) if isinstance(headers, Mapping) else list(headers)
    host = bare_host(next((value for name, value in pairs if name.lower() == "host"), host))
    lines = "".join(f"{name}: {value}\r\n" for name, value in pairs if name.lower() != "host")
    method, target = method.upper(), target if target[:1] == "/" else f"/{target}"
    path, mark, query = target.partition("?")
    answer = {"version": table.version_label, "method": method, "host": host, "path": path}
    refusal = refusal_of_method(method) or fault_of_target(target)
    unclear = f"400: path that servers read in different ways (path_normalization {path_normalization})"
    read = None if refusal else normalize(path.encode(), path_normalization)
    needs_cleaning = read is None and path_normalization == "rewrite" and not refusal
    cleaned = clean(path.encode()) if path_normalization == "rewrite" and not refusal else None
    read = read or cleaned
    if read is None:
        refusal = refusal or unclear
        return Explanation(**answer, virtual_host=None, winner=None, verdict=refusal, candidates=())
    for field, changed in zip(("read_path", "forwarded_path"), read, strict=True):
        answer[field] = "" if changed == path.encode() else changed.decode()
    target = (answer["forwarded_path"] or path) + mark + query
    facts = RequestFacts(*(part.encode() for part in (method, scheme, host, target, lines, client)))
    facts.path, facts.body = read[0], body
    listener = find_listener(table, scheme, address, port, host, own_ports)
    if listener is None:
        where = f"port {port}" if port else "the gateway's own port" if address in ("", host) else address
        verdict = f"404: no listener of {where} takes {scheme} requests for {host!r}"
        return Explanation(**answer, virtual_host=None, winner=None, verdict=verdict, candidates=())
    answer["listener"] = listener.key
    if shard is not None and host and not shard.has_name(host.encode()):
        verdict = f"{MISDIRECTED}: {reason_of(shard)}; ask a gateway of that shard"
        return Explanation(**answer, virtual_host=None, winner=None, verdict=verdict, candidates=())
    if listener.https_redirect is not None and scheme == "http":
        status = listener.https_redirect.status or (301 if method in ("GET", "HEAD") else 308)
        verdict = f"{status}: listener {listener.key} redirects all requests over plain HTTP"
        return Explanation(**answer, virtual_host=None, winner=None, verdict=verdict, candidates=())
    names, found = find_hosts(table, listener, host)
    if not found:
        nearest = _nearest(host, table)
        hint = f"; nearest: {nearest}" if nearest else ""
        if addresses := addresses_with(table, names):
            listed = ", ".join(addresses[:_NAMED])
            hint = f"; listeners at {listed} do: name the address in the URL, and the host in the header Host"
        verdict = f"404: no virtual host takes {host!r} (looked for {', '.join(names)}){hint}"
        return Explanation(**answer, virtual_host=None, winner=None, verdict=verdict, candidates=(), nearest=nearest)
    candidates: tuple[Candidate, ...] = ()
    for chosen in found:
        best, compared = compare_routes(chosen, facts)
        candidates = compared + candidates if best is not None else candidates + compared
        if best is not None or chosen.unmatched == "404":
            break
    passed_over = tuple(
        Candidate(host=other.host, reason=f"{chosen.host} matches {host or 'the request'} better, and hosts go first")
        for other in found[found.index(chosen) + 1 :]
    )
    answer["virtual_host"] = chosen.host if best is None else chosen.hosts[best.position]
    is_traefiks = best is not None and chosen.routes[best.position].as_traefik
    if (needs_cleaning and not is_traefiks) or (is_traefiks and has_bad_escape(read[1])):
        return Explanation(**answer, winner=None, verdict=unclear, candidates=candidates + passed_over)
    answer["forwarded_path"] = _forwarded(path.encode(), read if cleaned is None or not is_traefiks else cleaned)
    if best is None:
        what = "path" if not any(candidate.takes_path for candidate in candidates) else "request"
        verdict = f"404: {chosen.host} takes the host, none of its {len(chosen.routes)} routes takes the {what}"
        return Explanation(**answer, winner=None, verdict=verdict, candidates=candidates + passed_over)
    winner = with_defaults(chosen.routes[best.position], listener.defaults)
    name = chosen.name_of(best.position)
    plugins = () if best.fault else tuple(preview(winner, facts, name))
    explainer = BackendExplainer(
        table,
        place,
        health_of,
        lambda uses: preview(winner.model_copy(update={"plugins": uses}), facts, name),
        lambda condition: compile_condition(condition).takes(facts),
    )
    backends = () if best.fault else explainer.backends(winner)
    return Explanation(
        **answer,
        winner=name,
        verdict=f"500: {winner.name} cannot be compiled: {best.fault}"
        if best.fault
        else _answer_of(winner, plugins) or backends_verdict(winner, backends),
        candidates=candidates + passed_over,
        plugins=plugins,
        backends=backends,
        mirrors=() if best.fault else explainer.mirrors(winner),
    )


def _forwarded(path: bytes, read: tuple[bytes, bytes]) -> str:
    """Return the path that upstreams get; empty: it is the request's."""
    return "" if read[1] == path else read[1].decode()


def _nearest(host: str, table: TableView) -> str:
    """Return the name of a host that is spelt nearly so; empty: none is."""
    names = {HostKey.read(key).host for key in table.keys(VirtualHost)}
    return next(iter(difflib.get_close_matches(host, names, 1, 0.7)), "")


def _answer_of(winner: Route, plugins: Sequence[PluginVerdict]) -> str:
    """Say which plugin ends the request; empty: none is known to."""
    answer = first_answer(plugins)
    return f"{answer.status}: plugin {answer.name} of {winner.name} answers: {answer.detail}" if answer else ""
