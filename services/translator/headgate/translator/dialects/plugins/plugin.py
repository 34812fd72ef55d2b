"""A Plugin: what is wrong with it, and what the objects that name it get.

A Plugin with a mistake refuses the requests of the rules that name it, as any of its plugins may keep requests out.
"""

from collections import Counter
from typing import Final

from headgate.common.problems import Problem, Severity
from headgate.common.resources import PLUGIN, JsonObject, ObjectRef
from headgate.translator.dialects.plugins.models import MAX_PLUGINS, NamedPlugin
from headgate.translator.fragments.fragment import BackendUse, Fragment
from headgate.translator.manifests.models import Model
from headgate.translator.manifests.specs import Spec, refuse
from headgate.translator.objects.document import identify
from headgate.translator.objects.plugin_uses import Plugins, WrittenPlugin, read_plugins
from headgate.translator.sources.plugin_bundles import BundleTarget, PluginBundle
from headgate.translator.world.documents import Document, document_kind
from headgate.translator.world.graph import Lookups
from headgate.translator.world.world import StoredKind

STORED: Final[StoredKind[Document]] = document_kind(PLUGIN)
_ROUTED_BY_RULES: Final = "traffic-split"


class _NoMore(Model):
    """What of a spec that holds nothing but plugins is not plugins."""


def translate_plugin(ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> Fragment:
    """Return what is wrong with a Plugin; what it says takes effect in the routes that name it."""
    problems: list[Problem] = []
    _read(manifest, ref.namespace, lookups, problems)
    return Fragment(identify(ref, manifest), problems=tuple(dict.fromkeys(problems)))


def find_plugin(lookups: Lookups, target: BundleTarget) -> PluginBundle:
    """Return the plugins of a Plugin for an object that names it."""
    if target.kind is not PLUGIN:
        return PluginBundle()
    what = f"{PLUGIN.kind} {target.namespace}/{target.name}"
    document = lookups.get(STORED, target.namespace, target.name)
    if document is None:
        return PluginBundle(fault=f"{what} not found", is_missing=True)
    problems: list[Problem] = []
    plugins = _read(document.decode(), target.namespace, lookups, problems)
    errors = [problem for problem in problems if problem.severity is Severity.ERROR]
    return PluginBundle(plugins.uses, plugins.backends, f"{what}: {errors[0]}" if errors else "")


def _read(manifest: JsonObject, namespace: str, lookups: Lookups, problems: list[Problem]) -> Plugins:
    spec = Spec(manifest.get("spec"), problems)
    spec.rest(_NoMore, "plugins")
    parts = spec.each("plugins", NamedPlugin)
    if not parts and not problems:
        problems.append(refuse("Required", "spec.plugins", "must name a plugin: what the routes that name this run"))
    if len(parts) > MAX_PLUGINS:
        message = f"has {len(parts)} plugins; {MAX_PLUGINS} are served of one object"
        problems.append(refuse("TooMuchWork", "spec.plugins", message))
        parts = parts[:MAX_PLUGINS]
    named = Counter(plugin.name for plugin, _ in parts)
    problems += [
        refuse("DuplicateName", f"{field}.name", "must be there once: put all of it into one", plugin.name)
        for plugin, field in parts
        if named[plugin.name] > 1
    ]
    written = (
        WrittenPlugin(
            plugin.name,
            plugin.config,
            field,
            namespace,
            plugin.secret_ref.name if plugin.secret_ref is not None else "",
        )
        for plugin, field in parts
    )
    return read_plugins(written, lookups, problems, _prepare)


def _prepare(plugin: WrittenPlugin, problems: list[Problem]) -> tuple[WrittenPlugin, tuple[BackendUse, ...]]:
    """Refuse what would send requests past the route's own backends: the keys of a table's upstreams are nobody's
    names for Services, and no ReferenceGrant stands behind them.
    """
    if plugin.name == _ROUTED_BY_RULES:
        message = "plugin traffic-split: write backendRefs with weights in the rule of the route"
        problems.append(refuse("UnsupportedValue", f"{plugin.field}.name", message, plugin.name))
    elif plugin.name == "proxy-mirror" and "upstream" in plugin.config:
        message = "plugin proxy-mirror: names an upstream of the table; write a filter RequestMirror, or host"
        problems.append(refuse("UnsupportedValue", f"{plugin.field}.config.upstream", message))
    return plugin, ()
