"""The Ingress dialect with a mistake of ours in it, or counted."""

from dataclasses import replace
from typing import Any

from headgate.common.resources import ObjectRef
from headgate.translator.dialects.ingress import INGRESSES
from headgate.translator.objects.dialect import Dialect


def failing_on(word: str) -> Dialect:
    """Return a dialect whose translation raises for every Ingress in which a word stands."""
    ingresses, *_ = INGRESSES.kinds

    def fail(ref: ObjectRef, manifest: Any, lookups: Any) -> Any:
        if word in f"{ref.name} {manifest}":
            raise RecursionError("deep")
        return ingresses.translate(ref, manifest, lookups)

    return INGRESSES._replace(kinds=(replace(ingresses, translate=fail),))


def counted(translated: list[str]) -> Dialect:
    """Return a dialect that notes the name of each Ingress whenever it translates it."""
    ingresses, *_ = INGRESSES.kinds

    def note(ref: ObjectRef, manifest: Any, lookups: Any) -> Any:
        translated.append(ref.name)
        return ingresses.translate(ref, manifest, lookups)

    return INGRESSES._replace(kinds=(replace(ingresses, translate=note),))
