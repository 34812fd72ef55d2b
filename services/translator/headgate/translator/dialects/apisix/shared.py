"""Objects that others refer to, or that hold for all: ApisixUpstream, ApisixPluginConfig, ApisixGlobalRule.

What they say takes effect elsewhere; here is what their authors are told of them.
"""

from collections.abc import Mapping

from headgate.common.plugins.metadata import PluginMetadata
from headgate.common.problems import Problem, Severity
from headgate.common.resources import APISIX_PLUGIN_CONFIG, ROUTE_PLUGIN_CONFIG, JsonObject, ObjectRef
from headgate.common.table import ConsumerGroup, Provenance
from headgate.translator.dialects.apisix.class_proxy import metadata_of
from headgate.translator.dialects.apisix.context import Context, find_referenced
from headgate.translator.dialects.apisix.document import PLUGIN_CONFIGS, ROUTE_PLUGIN_CONFIGS
from headgate.translator.dialects.apisix.labels import CONSUMER_GROUP, group_name, labels_of
from headgate.translator.dialects.apisix.models.cluster import ClusterConfigSpec
from headgate.translator.dialects.apisix.models.plugin import NamedPlugin, Plugin
from headgate.translator.dialects.apisix.plugins import read_all
from headgate.translator.dialects.apisix.upstreams.backends import read_discovery
from headgate.translator.dialects.apisix.upstreams.upstream import read_fields, read_upstream, settings_for
from headgate.translator.fragments.fragment import Fragment
from headgate.translator.manifests.models import Model
from headgate.translator.manifests.reading import creation_time
from headgate.translator.manifests.specs import Part, Spec, refuse, warn
from headgate.translator.objects.document import identify
from headgate.translator.objects.plugin_uses import Plugins
from headgate.translator.sources.plugin_bundles import BundleTarget, PluginBundle
from headgate.translator.world.graph import Lookups

KIND = "ApisixPluginConfig"


class _Rest(Model):
    """What of a spec is not plugins."""

    ingress_class_name: str = ""


class _NoMore(Model):
    """What of a spec that holds nothing but plugins is not plugins."""


def translate_upstream(ref: ObjectRef, manifest: JsonObject, context: Context) -> Fragment:
    """Return what is wrong with an ApisixUpstream."""
    problems: list[Problem] = []
    spec = read_upstream(manifest, problems)
    if spec is not None:
        read_fields(spec, "spec", problems)
        for index, port in enumerate(spec.port_level_settings):
            own: list[Problem] = []
            read_fields(settings_for(spec, port.port), f"spec.portLevelSettings[{index}]", own)
            problems += own
        if spec.discovery is not None and isinstance(fault := read_discovery(spec, ref.cluster), str):
            problems.append(refuse("UnsupportedDiscovery", "spec.discovery", fault, spec.discovery.service_name))
        names = [subset.name for subset in spec.subsets]
        for index, name in enumerate(names):
            if name in names[:index]:
                message = "must be its own among the subsets"
                problems.append(refuse("DuplicateName", f"spec.subsets[{index}].name", message, name))
    return Fragment(identify(ref, manifest), problems=tuple(dict.fromkeys(problems)))


def translate_plugin_config(ref: ObjectRef, manifest: JsonObject, context: Context) -> Fragment:
    """Return what is wrong with an ApisixPluginConfig, and the group of consumers that it is for, if it is for one."""
    problems: list[Problem] = []
    plugins = _read(ref, manifest, context, problems)
    group = ConsumerGroup(
        key=f"{ref.cluster}/{ref.namespace}/{ref.name}",
        name=group_name(ref.namespace, ref.name),
        plugins=plugins.closed,
        created_at=creation_time(manifest),
        provenance=Provenance(cluster=ref.cluster, kind=KIND, namespace=ref.namespace, name=ref.name),
    )
    is_for_group = CONSUMER_GROUP in labels_of(manifest)
    return Fragment(
        identify(ref, manifest),
        entries=(group,) if is_for_group else (),
        problems=tuple(problems),
        backends=plugins.backends if is_for_group else (),
    )


def translate_route_plugin_config(ref: ObjectRef, manifest: JsonObject, context: Context) -> Fragment:
    """Return what is wrong with a PluginConfig of v1alpha1."""
    problems: list[Problem] = []
    _read_route_plugins(manifest, ref.namespace, context, problems)
    return Fragment(identify(ref, manifest), problems=tuple(problems))


def _read_route_plugins(manifest: JsonObject, namespace: str, context: Context, problems: list[Problem]) -> Plugins:
    spec = Spec(manifest.get("spec"), problems)
    parts = [
        Part(Plugin(name=part.value.name, config=part.value.config), part.field)
        for part in spec.each("plugins", NamedPlugin)
    ]
    if not parts and not problems:
        problems.append(refuse("Required", "spec.plugins", "must be given: what the routes that name this run"))
    spec.rest(_NoMore, "plugins")
    return read_all(parts, namespace, context, problems)


def translate_global_rule(ref: ObjectRef, manifest: JsonObject, context: Context) -> Fragment:
    """Return the plugins of an ApisixGlobalRule that is ours."""
    problems: list[Problem] = []
    plugins = _read(ref, manifest, context, problems)
    return Fragment(
        identify(ref, manifest),
        problems=tuple(problems),
        backends=plugins.backends,
        global_plugins=plugins.guarded,
    )


def translate_cluster_config(ref: ObjectRef, manifest: JsonObject, context: Context) -> Fragment:
    """Return the plugins of an ApisixClusterConfig that is ours."""
    problems: list[Problem] = []
    spec = Spec(manifest.get("spec"), problems).rest(ClusterConfigSpec)
    plugins: list[Part[Plugin]] = []
    if spec is not None:
        prometheus = spec.monitoring.prometheus
        if prometheus.enable:
            plugin = Plugin(name="prometheus", config={"prefer_name": prometheus.prefer_name})
            plugins.append(Part(plugin, "spec.monitoring.prometheus"))
        if spec.monitoring.skywalking.get("enable"):
            message = "there is no such plugin; run opentelemetry by an ApisixGlobalRule instead"
            problems.append(warn("UnknownPlugin", "spec.monitoring.skywalking", message))
        if spec.admin:
            problems.append(warn("UnsupportedField", "spec.admin", "not needed: there is no Admin API to be reached"))
    uses = read_all(plugins, "", context, problems).uses
    return Fragment(identify(ref, manifest), problems=tuple(problems), global_plugins=uses)


def find_plugins(lookups: Lookups, target: BundleTarget) -> PluginBundle:
    """Return the plugins of an ApisixPluginConfig for an object that names one; metadata are those of its class."""
    kind, namespace, name, class_name, parameters = target
    if kind is ROUTE_PLUGIN_CONFIG:
        return _find_route_plugins(lookups, namespace, name, metadata_of(lookups, parameters))
    if kind is not APISIX_PLUGIN_CONFIG:
        return PluginBundle()
    context = Context(lookups, class_name)
    what = f"ApisixPluginConfig {namespace}/{name}"
    manifest = find_referenced(lookups, PLUGIN_CONFIGS, namespace, name)
    if manifest is None:
        return PluginBundle(fault=f"{what} not found, or it is another controller's")
    problems: list[Problem] = []
    parts = Spec(manifest.get("spec"), problems).each("plugins", Plugin)
    plugins = read_all(parts, namespace, context, problems)
    errors = [problem for problem in problems if problem.severity == "error"]
    return PluginBundle(plugins.uses, plugins.backends, f"{what}: {errors[0]}" if errors else "")


def _find_route_plugins(
    lookups: Lookups, namespace: str, name: str, metadata: Mapping[str, PluginMetadata]
) -> PluginBundle:
    """Return the plugins of a PluginConfig, for a route of Gateway API that names it."""
    what = f"PluginConfig {namespace}/{name}"
    document = lookups.get(ROUTE_PLUGIN_CONFIGS, namespace, name)
    if document is None:
        return PluginBundle(fault=f"{what} not found", is_missing=True)
    problems: list[Problem] = []
    plugins = _read_route_plugins(document.decode(), namespace, Context(lookups, metadata=metadata), problems)
    errors = [problem for problem in problems if problem.severity is Severity.ERROR]
    return PluginBundle(plugins.uses, plugins.backends, f"{what}: {errors[0]}" if errors else "")


def _read(ref: ObjectRef, manifest: JsonObject, context: Context, problems: list[Problem]) -> Plugins:
    spec = Spec(manifest.get("spec"), problems)
    spec.rest(_Rest, "plugins")
    return read_all(spec.each("plugins", Plugin), ref.namespace, context, problems)
