"""Filters of type ExtensionRef: an object in the route's namespace whose plugins run.

Gateway API has it that such a filter is never skipped: while the object cannot be had or followed, the requests that it
is for are answered with an error.
"""

from typing import Final

from headgate.common.problems import Problem
from headgate.common.resources import PLUGIN, ROUTE_PLUGIN_CONFIG
from headgate.common.table import PluginUse
from headgate.translator.dialects.gateway_api.models.filters import ExtensionReference
from headgate.translator.dialects.gateway_api.routes.context import RouteContext
from headgate.translator.manifests.specs import refuse
from headgate.translator.sources.plugin_bundles import PLUGIN_BUNDLES, BundleTarget, PluginBundle

_KINDS: Final = {(kind.group, kind.kind): kind for kind in (PLUGIN, ROUTE_PLUGIN_CONFIG)}
_SERVED: Final = ", ".join(f"{kind}.{group}" for group, kind in _KINDS)
FILTER_NOT_FOUND: Final = "FilterNotFound"
INVALID_FILTER: Final = "InvalidFilter"
RECOGNISERS: Final = frozenset(
    ("basic-auth", "hmac-auth", "jwt-auth", "key-auth", "ldap-auth", "multi-auth", "wolf-rbac")
)
"""Plugins that recognise consumers: gateways refuse them for backends."""
ASKS_FOR_CONSUMERS: Final = RECOGNISERS | {"jwe-decrypt", "public-api"}
"""Plugins that ask which consumers there are."""


def held_to(uses: tuple[PluginUse, ...], gateways: tuple[str, ...]) -> tuple[PluginUse, ...]:
    """Return plugins of a route that recognise consumers of these Gateways alone; without any as they are."""
    if not gateways:
        return uses
    held = {"gateways": gateways}
    return tuple(each.model_copy(update=held) if each.name in ASKS_FOR_CONSUMERS else each for each in uses)


def find_extension(
    written: ExtensionReference, field: str, context: RouteContext, problems: list[Problem], *, is_of_backend: bool
) -> PluginBundle | None:
    """Return the plugins of the object that a filter names; None if there are none to be had, which `problems` say."""
    ref, lookups = context.ref, context.lookups
    if lookups.is_assumed:
        return PluginBundle()
    kind = _KINDS.get((written.group, written.kind))
    if kind is None:
        what = f"{written.kind}.{written.group}" if written.group else written.kind
        problems.append(refuse("InvalidKind", f"{field}.kind", f"no filter of ours; these are: {_SERVED}", what))
        return None
    found = lookups.attached(PLUGIN_BUNDLES, BundleTarget(kind, ref.namespace, written.name, None, context.parameters))
    fault = found.fault
    if not fault and is_of_backend and (wrong := [use.name for use in found.uses if use.name in RECOGNISERS]):
        fault = f"plugin {wrong[0]} recognises consumers before a backend is chosen: name it in the filters of the rule"
    if fault:
        reason = FILTER_NOT_FOUND if found.is_missing else INVALID_FILTER
        problems.append(refuse(reason, f"{field}.name", fault, written.name))
        return None
    return found
