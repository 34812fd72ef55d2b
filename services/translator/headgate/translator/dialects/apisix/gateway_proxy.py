"""One GatewayProxy to one fragment: its plugins, where an IngressClass of ours refers to it."""

from typing import Any

from headgate.common.problems import Problem, Severity
from headgate.common.resources import APISIX_GROUP, GATEWAY_PROXY, JsonObject, ObjectRef
from headgate.translator.dialects.apisix.class_proxy import read_addresses, read_metadata
from headgate.translator.dialects.apisix.context import Context
from headgate.translator.dialects.apisix.models.gateway_proxy import Provider, ProxyPlugin
from headgate.translator.dialects.apisix.models.plugin import Plugin
from headgate.translator.dialects.apisix.plugins import read_all
from headgate.translator.fragments.fragment import Fragment
from headgate.translator.manifests.reading import as_object
from headgate.translator.manifests.specs import Part, Spec, read_part
from headgate.translator.objects.document import identify
from headgate.translator.sources.classes import INGRESS_CLASSES, ClassParameters
from headgate.translator.world.graph import Lookups
from headgate.translator.world.world import EVERY


def is_referred_to(ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> bool:
    """Whether an IngressClass of ours names a GatewayProxy as its parameters."""
    wanted = ClassParameters(APISIX_GROUP, GATEWAY_PROXY.kind, ref.namespace, ref.name)
    classes = lookups.find(INGRESS_CLASSES, EVERY)
    return any(one.parameters == wanted and lookups.settings.owns(one.controller) for one in classes)


def translate_gateway_proxy(ref: ObjectRef, manifest: JsonObject, context: Context) -> Fragment:
    """Return the plugins of a GatewayProxy that is ours."""
    problems: list[Problem] = []
    spec = Spec(manifest.get("spec"), problems)
    raw = as_object(manifest.get("spec"))
    _check_provider(raw.get("provider"), problems)
    metadata = read_metadata(raw.get("pluginMetadata"), context.settings, problems)
    read_addresses(spec, ref.namespace, context.lookups, problems)
    plugins = [
        Part(Plugin(name=part.value.name, enable=part.value.enabled, config=part.value.config), part.field)
        for part in spec.each("plugins", ProxyPlugin)
    ]
    uses = read_all(plugins, ref.namespace, context._replace(metadata=metadata), problems).guarded
    return Fragment(identify(ref, manifest), problems=tuple(problems), global_plugins=uses)


def _check_provider(value: Any, problems: list[Problem]) -> None:
    if value is None:
        return
    if read_part(Provider, value, "spec.provider", problems) is not None:
        message = "not needed: there is no Admin API to be reached"
        problems.append(Problem(severity=Severity.INFO, reason="NotNeeded", field="spec.provider", message=message))
