"""The TLSOption that holds for routes: the one that their object names, or that named `default`.

One that is missing, or cannot be followed, lets no client in, as it may be there to keep some out.
"""

from typing import Final

from headgate.common.problems import Problem
from headgate.common.resources import JsonObject, ObjectRef
from headgate.common.table import TlsPolicy
from headgate.translator.dialects.traefik.document import BY_NAME, TLS_OPTIONS, is_read
from headgate.translator.dialects.traefik.models.fields import ObjectReference
from headgate.translator.dialects.traefik.references import BadReference, Found, find_referenced
from headgate.translator.dialects.traefik.tls.options import DEFAULT, NOBODY, read_tls_option
from headgate.translator.manifests.reading import as_text, creation_time, metadata
from headgate.translator.manifests.specs import refuse
from headgate.translator.world.graph import Lookups

FIELD: Final = "spec.tls.options"


def read_options(
    named: ObjectReference | None, ref: ObjectRef, lookups: Lookups, problems: list[Problem]
) -> TlsPolicy | None:
    """Return what the TLSOption says that an object names; `NOBODY` if it cannot be followed, None without one."""
    if named is None or lookups.is_assumed:
        return None
    try:
        found = find_referenced(TLS_OPTIONS, ref.namespace, named.namespace, named.name, lookups)
    except BadReference as error:
        problems.append(refuse(error.reason, f"{FIELD}.name", f"{error}; no client is let in", named.name))
        return NOBODY
    return policy_of(found, f"{FIELD}.name", lookups, problems)


def policy_of(found: Found, field: str, lookups: Lookups, problems: list[Problem]) -> TlsPolicy:
    """Return what a TLSOption says that a field names; `NOBODY` if it cannot be followed."""
    theirs: list[Problem] = []
    policy = read_tls_option(found.namespace, found.manifest, lookups, theirs)
    if policy is None or policy == NOBODY:
        message = f"TLSOption {found.namespace}/{found.name} cannot be followed, and no client is let in: {theirs[0]}"
        problems.append(refuse("InvalidTLSOption", field, message, found.name))
        return NOBODY
    return policy


def default_policy(field: str, lookups: Lookups, problems: list[Problem]) -> TlsPolicy | None:
    """Return what the TLSOption `default` says; of several the oldest. None without one, and where it asks nothing of
    clients and cannot be read.
    """
    found: dict[str, JsonObject] = {}
    for stored in () if lookups.is_assumed else TLS_OPTIONS:
        for document in lookups.find(stored, BY_NAME, DEFAULT):
            manifest = document.decode()
            namespace = as_text(metadata(manifest).get("namespace"))
            if is_read(namespace, manifest, lookups):
                found.setdefault(namespace, manifest)
    if not found:
        return None
    namespace = min(found, key=lambda each: (creation_time(found[each]), each))
    theirs: list[Problem] = []
    policy = read_tls_option(namespace, found[namespace], lookups, theirs)
    if policy == NOBODY:
        message = f"TLSOption {namespace}/{DEFAULT} cannot be followed, and no client is let in: {theirs[0]}"
        problems.append(refuse("InvalidTLSOption", field, message))
    return policy
