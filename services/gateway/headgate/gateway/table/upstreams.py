"""Upstreams as routes use them: compiled from their entries.

An upstream may have ten thousand endpoints, of which one changed. Then whatever takes long is done for that one: the
others are recognised by their encoded bytes and keep their seats, as routes do within a virtual host.
"""

import logging
from collections.abc import Callable, Sequence

from headgate.common.table import Provenance, Upstream
from headgate.gateway.balancing.compile import balance, compile_upstream
from headgate.gateway.balancing.endpoints import EndpointDirectory
from headgate.gateway.balancing.levels import Place
from headgate.gateway.balancing.on_use import OnUse, SlotSource
from headgate.gateway.balancing.planning import Marks
from headgate.gateway.balancing.seats import Seat, Seating
from headgate.gateway.balancing.upstream import UpstreamBalancer, UpstreamHolder
from headgate.gateway.errors import BadMatch
from headgate.gateway.health.policies import NO_POLICIES, HealthPolicies, policies_of
from headgate.gateway.model.connection import PLAIN, ConnectionSpec
from headgate.gateway.model.steps import Steps, finish
from headgate.gateway.table.backends import Holders
from headgate.gateway.table.chunks import FindPrevious, Previous, decode_entry
from headgate.gateway.table.connections import connection_spec, hop_specs
from headgate.gateway.table.encoded.upstream import (
    SMALL,
    EncodedUpstream,
    PlainUpstream,
    decode_endpoints,
    read_plain,
    split_upstream,
)
from headgate.gateway.table.names import NamedUpstream, NameFollower, is_name, named_upstream
from headgate.gateway.tls.backend import BackendContexts
from headgate.gateway.tls.errors import TlsConfigError

_log = logging.getLogger(__name__)

_PLAIN = Upstream(key="", provenance=Provenance(cluster="", kind="", namespace="", name=""))
"""With the defaults of all upstreams."""
ENDPOINTS_AT_ONCE = 256
"""Endpoints decoded and seated between two turns of the event loop: about a millisecond."""


class BoundUpstream:
    """A compiled upstream and the holder that routes find it in."""

    __slots__ = ("balancer", "holder", "named", "policies", "seats", "spec")

    def __init__(
        self,
        holder: UpstreamHolder,
        balancer: UpstreamBalancer,
        policies: HealthPolicies,
        spec: ConnectionSpec,
        named: NamedUpstream | None,
        seats: Sequence[Seat],
    ) -> None:
        self.holder = holder
        self.balancer = balancer
        """Replaced whenever a name of the upstream has other addresses."""
        self.policies = policies
        self.spec = spec
        self.named = named
        """None: no endpoint is a name."""
        self.seats = seats
        """Of a large upstream, in the order of its endpoints, for the next revision; else none."""


class UpstreamCompiler:
    """Compiles the upstreams of one table.

    Args:
        directory: where endpoints and their pools are found.
        holders: where routes find upstreams.
        contexts: how TLS is spoken to endpoints.
        place: where this gateway is, for upstreams that prefer what is near.
        next_offset: how many turns a new upstream begins with.
        names: knows the addresses of endpoints that are names; None: they are looked up by each connection.
    """

    def __init__(
        self,
        directory: EndpointDirectory,
        holders: Holders,
        contexts: BackendContexts,
        place: Place,
        next_offset: Callable[[], int],
        names: NameFollower | None,
    ) -> None:
        self._directory = directory
        self._holders = holders
        self._contexts = contexts
        self._place = place
        self._next_offset = next_offset
        self._names = names
        self._hops = hop_specs(contexts)
        self._slots = SlotSource(directory, connection_spec(_PLAIN, contexts), next_offset)

    def bind(self, raw: bytes, find_previous: FindPrevious[BoundUpstream]) -> Steps[tuple[str, BoundUpstream]]:
        """Compile an encoded upstream in steps.

        Raises:
            DecodeError: it does not follow the contract.
        """
        plain = read_plain(raw) if len(raw) <= SMALL else None
        if plain is not None:
            known = find_previous(plain.key)
            if known is None or known.compiled.balancer.is_at_rest:
                return plain.key, self._bind_plain(plain, known.compiled.balancer if known is not None else None)
        encoded = (yield from split_upstream(raw)) if len(raw) > SMALL else None
        upstream = decode_entry(Upstream, raw) if encoded is None else encoded.decode()
        previous = find_previous(upstream.key)
        before = previous.compiled.balancer if previous is not None else None
        try:
            spec = connection_spec(upstream, self._contexts)
        except (BadMatch, TlsConfigError) as error:
            reason = f"{upstream.provenance}: {error}"
            _log.error("upstream %s cannot be connected to: %s", upstream.key, reason)
            upstream = upstream.model_copy(update={"endpoints": (), "unavailable": reason})
            spec, encoded = PLAIN, None
        seats: Sequence[Seat] | None = None
        if encoded is not None:
            seats = yield from self._seat_large(encoded, upstream, spec, previous)
            if seats is None:
                upstream = decode_entry(Upstream, raw)
        named = named_upstream(upstream, spec) if self._names is not None else None
        if named is not None:
            return upstream.key, self._bound(upstream, self.balance_named(named, before), spec, named)
        if seats is None:
            seats = self._seating(upstream, spec).seat(upstream.endpoints)
        balancer = yield from balance(upstream, seats, self._directory, self._next_offset(), before)
        return upstream.key, self._bound(upstream, balancer, spec, seats=seats if encoded is not None else ())

    def _bind_plain(self, plain: PlainUpstream, before: UpstreamBalancer | None) -> BoundUpstream:
        """Bind an upstream whose endpoints nobody needs before its first request."""
        turns = OnUse(self._slots, plain.addresses, plain.size)
        clock, chance = self._directory.clock, self._directory.chance
        balancer = UpstreamBalancer(plain.key, _PLAIN.balancing, turns, Marks(), (), (), "", clock, chance)
        if before is not None:
            finish(balancer.prepare(before))
        return BoundUpstream(self._holders.holder(plain.key), balancer, NO_POLICIES, PLAIN, None, ())

    def _seating(self, upstream: Upstream, spec: ConnectionSpec) -> Seating:
        return Seating(upstream.balancing, self._directory, self._place, spec, hops=self._hops)

    def _seat_large(
        self,
        encoded: EncodedUpstream,
        upstream: Upstream,
        spec: ConnectionSpec,
        previous: Previous[BoundUpstream] | None,
    ) -> Steps[list[Seat] | None]:
        """Seat an upstream's endpoints; those that are as they were keep their seats. None: some have names."""
        seats: dict[bytes, Seat] = {}
        if previous is not None and previous.compiled.seats and previous.compiled.spec == spec:
            before = yield from split_upstream(previous.raw)
            if before.header == encoded.header:
                seats = dict(zip(before.endpoints, previous.compiled.seats, strict=True))
                yield
        seating = self._seating(upstream, spec)
        new = [endpoint for endpoint in encoded.endpoints if endpoint not in seats]
        for start in range(0, len(new), ENDPOINTS_AT_ONCE):
            part = new[start : start + ENDPOINTS_AT_ONCE]
            endpoints = decode_endpoints(part)
            if self._names is not None and any(is_name(endpoint.address) for endpoint in endpoints):
                return None
            seats.update(zip(part, seating.seat(endpoints), strict=True))
            yield
        return [seats[endpoint] for endpoint in encoded.endpoints]

    def _bound(
        self,
        upstream: Upstream,
        balancer: UpstreamBalancer,
        spec: ConnectionSpec,
        named: NamedUpstream | None = None,
        seats: Sequence[Seat] = (),
    ) -> BoundUpstream:
        holder = self._holders.holder(upstream.key)
        return BoundUpstream(holder, balancer, policies_of(upstream), spec, named, seats)

    def balance_named(self, named: NamedUpstream, previous: UpstreamBalancer | None) -> UpstreamBalancer:
        """Make the balancer of an upstream with names, for the addresses that they have now."""
        assert self._names is not None
        upstream, specs = self._names.expand(named)
        return compile_upstream(
            upstream, self._directory, self._next_offset(), self._place, previous, named.spec, specs, self._hops
        )
