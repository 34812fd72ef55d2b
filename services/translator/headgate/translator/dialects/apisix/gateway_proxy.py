"""One GatewayProxy to one fragment: its plugins, where an IngressClass of ours refers to it."""

from headgate.common.problems import Problem
from headgate.common.resources import APISIX_GROUP, GATEWAY_PROXY, JsonObject, ObjectRef
from headgate.translator.classes import ALL_CLASSES, INGRESS_CLASSES, ClassParameters, ClassSettings
from headgate.translator.dialects.apisix.context import Context, identify
from headgate.translator.dialects.apisix.models.gateway_proxy import GatewayProxySpec, ProxyPlugin
from headgate.translator.dialects.apisix.models.plugin import Plugin
from headgate.translator.dialects.apisix.plugins import read_all
from headgate.translator.dialects.apisix.reading import Part, Spec, warn
from headgate.translator.fragment import Fragment
from headgate.translator.graph import Lookups


def is_referred_to(ref: ObjectRef, lookups: Lookups, settings: ClassSettings) -> bool:
    """Whether an IngressClass of ours names a GatewayProxy as its parameters."""
    wanted = ClassParameters(APISIX_GROUP, GATEWAY_PROXY.kind, ref.namespace, ref.name)
    classes = lookups.find(INGRESS_CLASSES, "", ALL_CLASSES)
    return any(one.parameters == wanted and settings.owns(one.controller) for one in classes)


def translate_gateway_proxy(ref: ObjectRef, manifest: JsonObject, context: Context) -> Fragment:
    """Return the plugins of a GatewayProxy that is ours."""
    problems: list[Problem] = []
    spec = Spec(manifest.get("spec"), problems)
    rest = spec.rest(GatewayProxySpec, "plugins")
    if rest is not None and (rest.publish_service or rest.status_address):
        field = "spec.publishService" if rest.publish_service else "spec.statusAddress"
        message = "not used: addresses for the status are said by HEADGATE_PUBLISH_ADDRESSES of the translator"
        problems.append(warn("UnsupportedField", field, message))
    if rest is not None and rest.plugin_metadata:
        message = "not used: say it in the configuration of the plugins"
        problems.append(warn("UnsupportedField", "spec.pluginMetadata", message))
    plugins = [
        Part(Plugin(name=part.value.name, enable=part.value.enabled, config=part.value.config), part.field)
        for part in spec.each("plugins", ProxyPlugin)
    ]
    uses = read_all(plugins, ref.namespace, context, problems).guarded
    return Fragment(identify(ref, manifest), problems=tuple(problems), falls_through=True, global_plugins=uses)
