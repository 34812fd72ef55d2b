"""The rule by which upstreams that are referred to come into the table, each on the shortest way to its entry."""

from headgate.translator.fragments.upstream_refs import ServicePortRef, UpstreamRef
from headgate.translator.upstreams.plain import PlainUpstream, resolve_plainly
from headgate.translator.upstreams.resolution import BackendFault, ResolvedUpstream, resolve_upstream, unavailable
from headgate.translator.world.graph import Level, Lookups, Rule


def _resolve_entry(lookups: Lookups, ref: UpstreamRef) -> ResolvedUpstream | PlainUpstream:
    plain = resolve_plainly(lookups, ref) if isinstance(ref, ServicePortRef) else None
    return resolve_upstream(lookups, ref) if plain is None else plain


def _give_up(ref: UpstreamRef, error: Exception) -> ResolvedUpstream:
    message = f"internal error while resolving {ref.key}: {type(error).__name__}"
    return unavailable(ref, BackendFault("InternalError", message))


UPSTREAM: Rule[UpstreamRef, ResolvedUpstream | PlainUpstream] = Rule(
    "upstream", Level.REFERENCE, _resolve_entry, _give_up
)
