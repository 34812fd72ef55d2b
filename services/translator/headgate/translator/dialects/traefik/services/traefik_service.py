"""A TraefikService as an object of its own. What it says takes effect in the routes that lead to it."""

from headgate.common.problems import Problem
from headgate.common.resources import JsonObject, ObjectRef
from headgate.translator.dialects.traefik.middlewares.making import Unfollowed
from headgate.translator.dialects.traefik.middlewares.resending import statuses_of
from headgate.translator.dialects.traefik.models.traefik_service import FailoverErrors, TraefikServiceSpec
from headgate.translator.fragments.fragment import Fragment
from headgate.translator.manifests.specs import read_part, refuse
from headgate.translator.objects.document import identify
from headgate.translator.world.graph import Lookups


def translate_traefik_service(ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> Fragment:
    """Return what is wrong with a TraefikService."""
    problems: list[Problem] = []
    read_traefik_service(manifest, problems)
    return Fragment(identify(ref, manifest), problems=tuple(problems))


def read_traefik_service(manifest: JsonObject, problems: list[Problem]) -> TraefikServiceSpec | None:
    """Return a TraefikService; None for one that cannot be followed."""
    part = read_part(TraefikServiceSpec, manifest.get("spec"), "spec", problems)
    if part is None:
        return None
    spec = part.value
    ways = {
        "weighted": spec.weighted,
        "highestRandomWeight": spec.highest_random_weight,
        "mirroring": spec.mirroring,
        "failover": spec.failover,
    }
    given = [name for name, way in ways.items() if way is not None]
    if len(given) != 1:
        message = f"must have one of {', '.join(ways)}, but has {', '.join(given) or 'none'}"
        problems.append(refuse("InvalidValue", "spec", message))
        return None
    fault = _fault(spec, given[0])
    if fault is not None:
        problems.append(fault)
    return None if fault is not None else spec


def _fault(spec: TraefikServiceSpec, way: str) -> Problem | None:
    """Return what is wrong with the way that is used."""
    listed = spec.weighted or spec.highest_random_weight
    if listed is not None and not listed.services:
        return refuse("Required", f"spec.{way}.services", "must have a service")
    for index, mirror in enumerate(spec.mirroring.mirrors if spec.mirroring is not None else ()):
        if not 0 <= mirror.percent <= 100:
            field = f"spec.mirroring.mirrors[{index}].percent"
            return refuse("InvalidValue", field, "must be from 0 to 100", mirror.percent)
    errors = spec.failover.errors if spec.failover is not None else None
    try:
        failover_statuses(errors)
    except Unfollowed as error:
        return refuse(error.reason, f"spec.failover.errors.{error.field}", str(error))
    return None


def failover_statuses(errors: FailoverErrors | None) -> tuple[int, ...]:
    """Return the statuses after which a fallback is asked.

    Raises:
        Unfollowed: one cannot be read.
    """
    texts = errors.status if errors is not None else ()
    return tuple(dict.fromkeys(code for text in texts for code in statuses_of(text, "status")))
