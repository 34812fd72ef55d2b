"""Where the routes of an IngressRoute are asked: on the gateways' own ports, and on entry points of their own.

On `web` and `websecure` routes say by a condition which of the two they are for, so that the hosts of IngressRoutes and
those of other objects are the same virtual hosts, with one TLS policy. On other entry points they are virtual hosts of
the listener for plain connections, or of that for those over TLS, which a route with `tls` is for.
"""

from collections.abc import Iterator, Sequence

from headgate.common.problems import Problem
from headgate.common.table import Compare, Subject
from headgate.translator.dialects.traefik.entry_points import FIELD, entry_points_of
from headgate.translator.fragments.spots import Spot
from headgate.translator.manifests.specs import refuse, warn
from headgate.translator.world.entry_points import EntryPoint


def spots_of(
    named: Sequence[str],
    points: Sequence[EntryPoint],
    *,
    has_tls: bool,
    problems: list[Problem],
    field: str = FIELD,
    fits_both: bool = False,
) -> tuple[Spot, ...]:
    """Return where the routes of an object are asked; nothing where no entry point serves them.

    Without entry points these are the default ones, of the gateways' own two that which fits: a route with `tls` is for
    TLS connections, any other for plain ones, as Traefik speaks no TLS for routes without it. Those that there are not
    are left out with a warning, and so is the HTTP port for routes with TLS.

    Args:
        named: by the object.
        points: that there are.
        has_tls: whether the routes are for TLS connections.
        problems: gets what is wrong.
        field: where they are named.
        fits_both: without entry points, routes without TLS are on both of the gateways' own.
    """
    found = entry_points_of(named, points, problems, is_udp=False, field=field)
    own = [point for point in found if point.protocol in ("http", "https")]
    if not (named or has_tls or fits_both):
        own = [point for point in own if point.protocol == "http"]
    if has_tls and (plain := next((point for point in own if point.protocol == "http"), None)) is not None:
        own.remove(plain)
        if named:
            message = f"the port of {plain.name} speaks no TLS, so that routes with tls are not served there"
            problems.append(warn("EntryPointNotFound", field, message, plain.name))
    spots = [*_own_spots(own), *(_spot(point, has_tls) for point in found if point.protocol == "tcp")]
    if found and not spots:
        problems.append(refuse("EntryPointNotFound", field, "must name an entry point that serves these routes"))
    return tuple(spots)


def _own_spots(points: Sequence[EntryPoint]) -> Iterator[Spot]:
    """Yield where routes on the gateways' own ports are: one spot for both if these say the same of all routes."""
    by_defaults: dict[Spot, dict[str, None]] = {}
    for point in points:
        by_defaults.setdefault(_spot_of(point), {})[point.protocol] = None
    for spot, transports in by_defaults.items():
        only = Compare(subject=Subject.TRANSPORT, values=tuple(transports)) if len(transports) == 1 else None
        yield spot._replace(only=only)


def _spot(point: EntryPoint, has_tls: bool) -> Spot:
    return _spot_of(point)._replace(listeners=(point.listener(is_tls=has_tls or point.speaks_tls),))


def _spot_of(point: EntryPoint) -> Spot:
    """Return what an entry point says of all routes on it."""
    return Spot(
        middlewares=point.middlewares,
        tls_options=point.tls_options,
        refused_escapes=point.refused_escapes,
        observed=point.observed,
        keeps_semicolons=bool(point.options.connections.encode_semicolons),
    )
