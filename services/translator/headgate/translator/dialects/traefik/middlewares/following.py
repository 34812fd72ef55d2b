"""The middlewares that an object lists, in their order, chains taken apart."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from headgate.common.problems import Problem, Severity
from headgate.common.table import PluginUse
from headgate.translator.dialects.traefik.document import MIDDLEWARES
from headgate.translator.dialects.traefik.middlewares.making import Made, Making
from headgate.translator.dialects.traefik.middlewares.middleware import make, read_spec
from headgate.translator.dialects.traefik.models.fields import ObjectReference
from headgate.translator.dialects.traefik.references import BadReference, find_provided, find_referenced
from headgate.translator.manifests.specs import refuse
from headgate.translator.world.graph import Lookups

_FIRST_ORDER: Final = 30_000
_STEP: Final = 10
"""Between the orders of two plugins of a route, the first of which runs before all that gateways have of themselves."""
_MAX_MIDDLEWARES: Final = 256
"""Of one route, those within chains counted too."""


class _Refused(Exception):
    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class _Place(NamedTuple):
    namespace: str
    field: str
    """Of the object that lists them."""
    way: tuple[str, ...]
    """Chains on the way there."""


def follow_middlewares(
    listed: Sequence[ObjectReference], namespace: str, field: str, lookups: Lookups, problems: list[Problem]
) -> Made | None:
    """Return what listed middlewares stand for, so ordered that they run as listed; None if one cannot be followed.

    Args:
        listed: by an object of the namespace.
        namespace: of the object.
        field: where the list stands.
        lookups: where middlewares are found; where these are assumed, all is well.
        problems: gets what is wrong, at the element of the list.
    """
    if lookups.is_assumed:
        return Made()
    found = Made()
    budget = [_MAX_MIDDLEWARES]
    is_whole = True
    for index, reference in enumerate(listed):
        try:
            for made in _follow(reference, _Place(namespace, f"{field}[{index}].name", ()), lookups, budget):
                found = found.before(made)
        except (_Refused, BadReference) as error:
            problems.append(refuse(error.reason, f"{field}[{index}].name", str(error), reference.name))
            is_whole = False
    return found._replace(plugins=tuple(_ordered(found.plugins))) if is_whole else None


def follow_provided(
    names: Sequence[str], field: str, lookups: Lookups, problems: list[Problem], *, own: str = ""
) -> Made | None:
    """Return what middlewares stand for that are named `NAMESPACE-NAME@kubernetescrd`, as `follow_middlewares` does.

    `own`: namespace of the object whose annotation names them; empty: settings do.
    """
    found = Made()
    is_whole = True
    for name in () if lookups.is_assumed else names:
        try:
            at = find_provided(MIDDLEWARES, name, lookups, own=own)
        except BadReference as error:
            problems.append(refuse(error.reason, field, str(error), name))
            is_whole = False
            continue
        made = follow_middlewares([ObjectReference(name=at.name)], at.namespace, field, lookups, problems)
        is_whole = is_whole and made is not None
        found = found.before(made or Made())
    return in_order(found) if is_whole else None


def in_order(made: Made) -> Made:
    """Return the same with plugins that run one behind the other."""
    return made._replace(plugins=tuple(_ordered(made.plugins)))


def _ordered(uses: Sequence[PluginUse]) -> Iterator[PluginUse]:
    """Yield plugins that run in this order, each around those behind it."""
    for place, use in enumerate(uses):
        yield use.model_copy(update={"order": _FIRST_ORDER - _STEP * place, "is_nested": True})


def _follow(reference: ObjectReference, at: _Place, lookups: Lookups, budget: list[int]) -> Iterator[Made]:
    budget[0] -= 1
    if budget[0] < 0:
        raise _Refused("TooManyMiddlewares", f"a route has at most {_MAX_MIDDLEWARES} middlewares, chains included")
    found = find_referenced(MIDDLEWARES, at.namespace, reference.namespace, reference.name, lookups)
    name = f"{found.namespace}/{found.name}"
    if name in at.way:
        raise _Refused("InvalidMiddleware", f"Middleware {name} is a chain that leads back to itself")
    theirs: list[Problem] = []
    spec = read_spec(found.manifest, theirs)
    made = make(spec, Making(found.namespace, found.name, lookups, at.field), theirs) if spec is not None else Made()
    wrong = next((problem for problem in theirs if problem.severity is Severity.ERROR), None)
    if wrong is not None or spec is None:
        raise _Refused("InvalidMiddleware", f"Middleware {name} cannot be followed: {wrong}")
    yield made
    if spec.chain is not None:
        for each in spec.chain.middlewares:
            yield from _follow(each, _Place(found.namespace, at.field, (*at.way, name)), lookups, budget)
