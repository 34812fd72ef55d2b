"""What entry points say of all routes on them: escapes that are refused, and middlewares before the routes' own."""

from typing import NamedTuple

from headgate.common.problems import Problem
from headgate.common.resources import ObjectRef
from headgate.translator.dialects.traefik.middlewares.breaking import refuse_escapes
from headgate.translator.dialects.traefik.middlewares.following import follow_provided
from headgate.translator.dialects.traefik.middlewares.making import Made
from headgate.translator.fragments.fragment import BackendUse
from headgate.translator.fragments.spots import Spot
from headgate.translator.fragments.upstream_refs import RefusalRef
from headgate.translator.world.graph import Lookups

FIELD = "spec.entryPoints"


class OnSpot(NamedTuple):
    """What holds for all routes at a spot."""

    made: Made = Made()
    refusal: RefusalRef | None = None
    """Has the requests of all routes there, as a middleware cannot be followed."""

    @property
    def uses(self) -> tuple[BackendUse, ...]:
        """Upstreams that it refers to."""
        return self.made.uses if self.refusal is None else (BackendUse(self.refusal, FIELD, FIELD),)


def on_spot(spot: Spot, ref: ObjectRef, kind: str, lookups: Lookups, problems: list[Problem]) -> OnSpot:
    """Return what holds for all routes of an object at a spot."""
    own: list[Problem] = []
    made = made_of_spot(spot, FIELD, lookups, own)
    problems += own
    if made is not None:
        return OnSpot(made)
    why = f"{kind} {ref.namespace}/{ref.name} refuses requests: a middleware of the entry point: {own[0].message}"
    where = ",".join(spot.listeners) or "own"
    return OnSpot(refusal=RefusalRef(ref.cluster, kind, ref.namespace, f"{ref.name}/{where}", why))


def made_of_spot(spot: Spot, field: str, lookups: Lookups, problems: list[Problem]) -> Made | None:
    """Return what stands before the middlewares of all routes at a spot, in no order; None if it cannot be followed."""
    made = follow_provided(spot.middlewares, field, lookups, problems)
    return None if made is None else Made(refuse_escapes(spot.refused_escapes)).before(made)
