"""What happens to an object of any dialect: which version is translated, whose it is, and what stands in on failure.

A version with errors of its own does not replace the last good one (`last_good`). Ownership is asked of the present
version first: an object that was given to another controller is not kept, and a version that was another controller's
never stands in.
"""

from collections.abc import Iterable
from typing import Any

from headgate.common.effort import bounded_effort
from headgate.common.problems import Problem
from headgate.common.resources import JsonObject, ObjectRef
from headgate.translator.fragments.fragment import Fragment, with_versions
from headgate.translator.objects.dialect import TranslatedKind
from headgate.translator.world.graph import Lookups
from headgate.translator.world.last_good import ObjectVersions


def translate_object(kind: TranslatedKind[Any, Any], ref: ObjectRef, lookups: Lookups) -> Fragment | None:
    """Return what an object contributes; None if it is gone or another controller's."""
    versions = _versions(kind, ref, lookups)
    if versions is None:
        return None
    present = versions.present.form
    decoded = None if present is None else kind.decode(present)
    if decoded is not None and not kind.ownership.owns(ref, decoded, lookups):
        return None
    good = versions.good
    if good is None:
        served = present
    elif not _owns(kind, ref, good.form, lookups):
        versions, served = ObjectVersions(versions.present), present
    else:
        served = lookups.get(kind.stored, ref.namespace, ref.name)
    if served is None:
        return None
    if served is not present or decoded is None:  # else one decoding serves both questions
        decoded = kind.decode(served)
    return with_versions(_translate(kind, ref, decoded, lookups), versions)


def is_ours(kind: TranslatedKind[Any, Any], ref: ObjectRef, lookups: Lookups) -> bool | None:
    """Return whether an object is ours; None if it is not there."""
    form = lookups.get(kind.stored, ref.namespace, ref.name)
    return None if form is None else _owns(kind, ref, form, lookups)


def check_object(kind: TranslatedKind[Any, Any], ref: ObjectRef, form: Any, lookups: Lookups) -> Iterable[Problem]:
    """Return what is wrong with one version of an object by itself; the look-ups assume everything else in place."""
    return _translate(kind, ref, kind.decode(form), lookups).problems


def refuse_object(kind: TranslatedKind[Any, Any], ref: ObjectRef, form: Any, error: Exception) -> Fragment:
    """Return the fragment that stands in for an object whose translation failed for a reason of ours."""
    message = f"Headgate failed on this object ({type(error).__name__}); its log has the details"
    decoded = kind.decode(form)
    return Fragment(
        kind.identify(ref, decoded),
        hosts=tuple(dict.fromkeys(kind.hosts(decoded))),
        problems=(Problem(reason="InternalError", message=message),),
    )


def _versions(kind: TranslatedKind[Any, Any], ref: ObjectRef, lookups: Lookups) -> ObjectVersions | None:
    other = kind.yields_to
    if other is not None and lookups.versions(other, ref.namespace, ref.name) is not None:
        return None
    return lookups.versions(kind.stored, ref.namespace, ref.name)


def _owns(kind: TranslatedKind[Any, Any], ref: ObjectRef, form: Any, lookups: Lookups) -> bool:
    return kind.ownership.owns(ref, kind.decode(form), lookups)


def _translate(kind: TranslatedKind[Any, Any], ref: ObjectRef, decoded: JsonObject, lookups: Lookups) -> Fragment:
    with bounded_effort():
        return kind.translate(ref, decoded, lookups)
