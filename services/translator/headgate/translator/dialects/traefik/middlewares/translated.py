"""A Middleware as an object of its own: what is wrong with it, and the group of backends that its plugin asks."""

from headgate.common.problems import Problem
from headgate.common.resources import JsonObject, ObjectRef
from headgate.common.table import BackendGroup
from headgate.translator.dialects.traefik.middlewares.error_pages import PAGES
from headgate.translator.dialects.traefik.middlewares.making import Made, Making
from headgate.translator.dialects.traefik.middlewares.middleware import make, read_spec
from headgate.translator.dialects.traefik.services.backends import read_service
from headgate.translator.fragments.fragment import Fragment
from headgate.translator.objects.document import identify
from headgate.translator.world.graph import Lookups


def translate_middleware(ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> Fragment:
    """Return what a Middleware contributes by itself. What else it says takes effect in the routes that use it."""
    problems: list[Problem] = []
    spec = read_spec(manifest, problems)
    made = Made()
    if spec is not None:
        made = make(spec, Making(ref.namespace, ref.name, lookups), problems)
    uses, groups = made.uses, tuple[BackendGroup, ...]()
    pages = spec.errors.service if spec is not None and spec.errors is not None else None
    if pages is not None and pages.is_traefik_service:
        found = read_service(pages, ref, PAGES, "spec.errors.service", lookups, problems)
        if found is not None:
            uses, groups = found.uses, found.groups
    return Fragment(identify(ref, manifest), backends=uses, entries=groups, problems=tuple(problems))
