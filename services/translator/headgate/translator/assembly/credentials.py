"""Whom a credential recognises where several consumers have the same: the oldest, as gateways have it too.

Only what is no secret can be compared here: the name of a user, the id of a key. Gateways alone see that two have one
sealed key; they log it.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from headgate.common.plugins.credentials import CREDENTIALS
from headgate.common.plugins.hiding import secret_fields
from headgate.common.problems import Problem, Severity
from headgate.common.resources import ObjectRef
from headgate.common.table import Consumer
from headgate.translator.fragments.fragment import Fragment, Identity
from headgate.translator.fragments.seniority import describe, seniority_of
from headgate.translator.manifests.reading import shown


class CredentialName(NamedTuple):
    """What a credential is found by."""

    plugin: str
    value: str
    scope: str = ""
    """Owner of the routes that it is for; empty: all."""

    def __str__(self) -> str:
        return f"{self.plugin} {self.value} {self.scope}"


def credential_names(fragment: Fragment | None) -> dict[CredentialName, None]:
    """Return what the consumers of an object are found by, as far as it is not sealed."""
    return dict.fromkeys(name for _, name in _claims(fragment)) if fragment is not None else {}


def award_credential(name: CredentialName, fragments: Iterable[Fragment]) -> Mapping[ObjectRef, tuple[Problem, ...]]:
    """Return what those hear who have a credential in vain; one consumer in several clusters is no conflict."""
    claims = sorted(
        (
            (fragment.identity, consumer.name)
            for fragment in fragments
            for consumer, claimed in _claims(fragment)
            if claimed == name
        ),
        key=lambda claim: claim[0].seniority,
    )
    if not claims:
        return {}
    (owner, owner_name), *others = claims
    return {each.ref: (_lost(name, each, owner),) for each, called in others if called != owner_name}


def _claims(fragment: Fragment) -> Iterable[tuple[Consumer, CredentialName]]:
    for consumer in fragment.entries:
        if not isinstance(consumer, Consumer):
            continue
        scope = consumer.provenance.owner if consumer.is_scoped else ""
        for credential in consumer.credentials:
            use = credential.use
            model = CREDENTIALS.get(use.name)
            value = use.config.get(model.identified_by) if model is not None else None
            if model is not None and isinstance(value, str) and model.identified_by not in secret_fields(model):
                yield consumer, CredentialName(use.name, value, scope)


def _lost(name: CredentialName, loser: Identity, owner: Identity) -> Problem:
    field = CREDENTIALS[name.plugin].identified_by
    return Problem(
        severity=Severity.WARNING,
        reason="CredentialConflict",
        field="spec",
        value=shown(name.value),
        message=f"{field} of {name.plugin} recognises {describe(owner)}, {seniority_of(owner, loser)}",
    )
