"""Certificates by `certResolver`: for the domains that are written, else for the hosts of each rule."""

from collections.abc import Iterable

from headgate.common.problems import Problem
from headgate.common.table import ANY_HOST
from headgate.common.table.hosts import is_pattern
from headgate.translator.dialects.traefik.models.fields import Domain
from headgate.translator.fragments.fragment import NameClaim
from headgate.translator.sources.ordered import claim_ordered
from headgate.translator.world.graph import Lookups

FIELD = "spec.tls.certResolver"


def claim_resolved(
    resolver: str,
    domains: Iterable[Domain],
    rules: Iterable[Iterable[str]],
    lookups: Lookups,
    problems: list[Problem],
    field: str = FIELD,
) -> tuple[NameClaim, ...]:
    """Return the server names of the certificates that a resolver orders.

    Args:
        resolver: who is asked; empty for none.
        domains: one certificate for each.
        rules: without domains, the hosts of each rule, with one certificate for each rule that has any.
        lookups: where certificates are found.
        problems: gets what is wrong, and what is awaited.
        field: where the resolver is written.
    """
    if not resolver:
        return ()
    written = [[name for name in (domain.main, *domain.sans) if name] for domain in domains]
    wanted = [names for names in written if names] or [list(filter(_is_name, hosts)) for hosts in rules]
    sets = dict.fromkeys(tuple(sorted(set(names))) for names in wanted if names)
    return tuple(claim for names in sets for claim in claim_ordered(resolver, names, field, lookups, problems))


def _is_name(host: str) -> bool:
    return bool(host) and host != ANY_HOST and not is_pattern(host)
