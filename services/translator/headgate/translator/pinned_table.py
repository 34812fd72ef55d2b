"""The table that is served while a pin is on: routes, certificates and ports of an old revision, endpoints of today.

An operator who goes back to yesterday's routes wants yesterday's routes, and not yesterday's pods: addresses of pods
are given to others within minutes. So a pinned table follows the endpoints of every Service that it refers to, also of
those that no live route names any more; policies (balancing, TLS, checks) stay those of the old revision. A frozen pin
follows nothing.

What is needed to go on after a restart stands in the current revision itself: following only ever replaces endpoints.
"""

from collections.abc import Iterable

from headgate.common.snapshot import Chunk, Pin, TableImage, entry_contents
from headgate.common.table import Upstream
from headgate.translator.fragment import ServicePortRef, parse_service_port
from headgate.translator.graph import Lookups, Rule
from headgate.translator.upstreams import UPSTREAM, ResolvedUpstream, resolve_upstream


class PinnedTable:
    """A pinned table's entries, kept encoded: most of them are never looked at."""

    def __init__(self, pin: Pin, chunks: Iterable[Chunk]) -> None:
        """Begin with the chunks of the current revision."""
        self.pin = pin
        self.image = TableImage()
        self._policies: dict[ServicePortRef, bytes] = {}
        for chunk in chunks:
            for key, content in entry_contents(chunk.content).items():
                self.image.put_encoded(chunk.kind, key, content)
                if chunk.kind == "upstreams" and not pin.is_frozen and (ref := parse_service_port(key)):
                    self._policies[ref] = content
        self.follows = frozenset(self._policies)
        """Upstreams whose endpoints are those of today."""

    def refresh(self, ref: ServicePortRef, current: Upstream) -> None:
        """Take the endpoints that an upstream has now, or the reason why it has none."""
        if content := self._policies.get(ref):
            policy = Upstream.model_validate_json(content)
            endpoints, unavailable = current.endpoints, current.unavailable
            self.image.put(policy.model_copy(update={"endpoints": endpoints, "unavailable": unavailable}))


def _resolve(lookups: Lookups, ref: ServicePortRef) -> ResolvedUpstream:
    # What a Service wishes for now, and a wish that cannot be followed, are not the pinned revision's business.
    return resolve_upstream(lookups, ref, heeds_wishes=False)


PINNED_UPSTREAM: Rule[ServicePortRef, ResolvedUpstream] = Rule(
    "pinned upstream", UPSTREAM.level, _resolve, UPSTREAM.on_error
)
"""The endpoints of today of an upstream that a pinned table refers to."""
