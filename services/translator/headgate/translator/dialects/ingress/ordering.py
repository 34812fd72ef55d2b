"""Certificates that Ingresses have ordered: for TLS entries without a Secret."""

from headgate.common.problems import Problem
from headgate.translator.annotations.annotation import PREFIX
from headgate.translator.dialects.ingress.parse import IngressSpec
from headgate.translator.dialects.ingress.routing import Routings
from headgate.translator.fragments.fragment import NameClaim
from headgate.translator.sources.ordered import claim_ordered
from headgate.translator.world.graph import Lookups

_FIELD = f"metadata.annotations[{PREFIX}acme]"


def ordered_names(
    resolver: str, routings: Routings, spec: IngressSpec, lookups: Lookups, problems: list[Problem]
) -> tuple[NameClaim, ...]:
    """Return the server names of the certificates that are ordered for an Ingress.

    Args:
        resolver: as our annotation says; empty for none.
        routings: what another dialect says.
        spec: of the Ingress.
        lookups: where certificates are found.
        problems: gets what is wrong, and what is awaited.
    """
    said = next((routing for routing in routings if routing.resolver), None)
    field = _FIELD if resolver or said is None else said.resolver_field
    named = resolver or (said.resolver if said is not None else "")
    if not named:
        return ()
    of_rules = tuple(rule.host for rule in spec.rules if rule.host)
    entries = [tuple(host.name for host in entry.hosts) or of_rules for entry in spec.tls if entry.secret is None]
    if said is not None:
        entries = list(said.domains) or entries or ([] if spec.tls else [of_rules])
    sets = dict.fromkeys(tuple(sorted(set(names))) for names in entries if names)
    return tuple(claim for names in sets for claim in claim_ordered(named, names, field, lookups, problems))
