"""The endpoints of today of upstreams that a held table names, and the live table does not tell of.

Nothing but the key of such an upstream is known, as the objects that referred to it may be gone.
"""

from collections.abc import Callable, Sequence

from headgate.common.resources import SERVICE_IMPORT
from headgate.common.table.upstream_key import UpstreamKey
from headgate.translator.fragments.upstream_refs import DialectRef, ResourceRef, ServicePortRef
from headgate.translator.upstreams.entries import UPSTREAM
from headgate.translator.upstreams.imported import ImportedService
from headgate.translator.upstreams.overridden import OverriddenService
from headgate.translator.upstreams.resolution import ResolvedUpstream, resolve_upstream
from headgate.translator.world.graph import Lookups, Rule

ReadKey = Callable[[UpstreamKey], DialectRef | None]
"""Returns the reference that has a key, or None if the key is of another kind of reference."""

HeldUpstream = Rule[UpstreamKey, ResolvedUpstream | None]


def held_upstream(of_dialects: Sequence[ReadKey] = ()) -> HeldUpstream:
    """Return the rule that resolves a key; None where the key does not say whose endpoints the upstream has.

    What the annotations of a Service say now does not concern a held table, even if they cannot be followed.
    """

    def resolve(lookups: Lookups, key: UpstreamKey) -> ResolvedUpstream | None:
        ref = ServicePortRef.of_key(key) or _service_import(key)
        if ref is not None:
            return resolve_upstream(lookups, ref, heeds_wishes=False)
        for read in (ImportedService.of_key, OverriddenService.of_key, *of_dialects):
            if (found := read(key)) is not None:
                return found.resolve_endpoints(lookups)
        return None

    return Rule("held upstream", UPSTREAM.level, resolve, lambda _, __: None)


def _service_import(key: UpstreamKey) -> ResourceRef | None:
    if key.port is not None or key.variant or key.kind != f"{SERVICE_IMPORT.kind}.{SERVICE_IMPORT.group}":
        return None
    return ResourceRef(key.cluster, key.namespace, SERVICE_IMPORT.group, SERVICE_IMPORT.kind, key.name)
