"""One GatewayProxy: its plugins, for all routes where an IngressClass of ours names it, else for those of Gateways."""

from typing import Any

from headgate.common.problems import Problem, Severity
from headgate.common.resources import APISIX_GROUP, GATEWAY_PROXY, JsonObject, ObjectRef
from headgate.common.table import PluginUse
from headgate.translator.dialects.apisix.class_proxy import read_addresses, read_metadata
from headgate.translator.dialects.apisix.context import Context
from headgate.translator.dialects.apisix.document import GATEWAY_PROXIES
from headgate.translator.dialects.apisix.models.gateway_proxy import Provider, ProxyPlugin
from headgate.translator.dialects.apisix.models.plugin import Plugin
from headgate.translator.dialects.apisix.plugins import read_all
from headgate.translator.fragments.fragment import Fragment
from headgate.translator.manifests.reading import as_object
from headgate.translator.manifests.specs import Part, Spec, read_part
from headgate.translator.objects.document import identify
from headgate.translator.sources.classes import INGRESS_CLASSES, ClassParameters
from headgate.translator.sources.gateway_parameters import GatewayParameters
from headgate.translator.sources.gateways import (
    BY_PARAMETERS,
    CLASSES_BY_PARAMETERS,
    GATEWAY_CLASSES,
    GATEWAYS,
    controller_of,
    owns_gateway,
    parameters_name,
)
from headgate.translator.sources.policies import ObjectTarget
from headgate.translator.world.graph import Lookups
from headgate.translator.world.world import EVERY


def is_referred_to(ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> bool:
    """Whether an IngressClass, a Gateway or a GatewayClass of ours names a GatewayProxy as its parameters."""
    return _is_of_ingress_class(ref.namespace, ref.name, lookups) or _is_of_gateway(ref, lookups)


def find_gateway_parameters(lookups: Lookups, target: ObjectTarget) -> GatewayParameters | None:
    """Return what a GatewayProxy says of the Gateways that name it."""
    if (target.group, target.kind) != (APISIX_GROUP, GATEWAY_PROXY.kind):
        return None
    document = lookups.get(GATEWAY_PROXIES, target.namespace, target.name)
    if document is None:
        return None
    raw, ignored = as_object(document.decode().get("spec")), list[Problem]()
    metadata = read_metadata(raw.get("pluginMetadata"), lookups.settings, ignored)
    plugins = _read_plugins(Spec(raw, ignored), target.namespace, Context(lookups, metadata=metadata), ignored)
    if _is_of_ingress_class(target.namespace, target.name, lookups):
        plugins = ()  # they run for the requests of all routes, once
    return GatewayParameters(plugins, read_addresses(Spec(raw, ignored), target.namespace, lookups, ignored))


def _is_of_gateway(ref: ObjectRef, lookups: Lookups) -> bool:
    named = parameters_name(APISIX_GROUP, GATEWAY_PROXY.kind, ref.namespace, ref.name)
    classes = lookups.find(GATEWAY_CLASSES, CLASSES_BY_PARAMETERS, named)
    if any(lookups.settings.owns_gateways_of(controller_of(one.decode())) for one in classes):
        return True
    return any(owns_gateway(one, lookups) for one in lookups.find(GATEWAYS, BY_PARAMETERS, named))


def _is_of_ingress_class(namespace: str, name: str, lookups: Lookups) -> bool:
    wanted = ClassParameters(APISIX_GROUP, GATEWAY_PROXY.kind, namespace, name)
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
    uses = _read_plugins(spec, ref.namespace, context._replace(metadata=metadata), problems)
    is_for_all = context.lookups.is_assumed or _is_of_ingress_class(ref.namespace, ref.name, context.lookups)
    return Fragment(identify(ref, manifest), problems=tuple(problems), global_plugins=uses if is_for_all else ())


def _read_plugins(spec: Spec, namespace: str, context: Context, problems: list[Problem]) -> tuple[PluginUse, ...]:
    plugins = [
        Part(Plugin(name=part.value.name, enable=part.value.enabled, config=part.value.config), part.field)
        for part in spec.each("plugins", ProxyPlugin)
    ]
    return read_all(plugins, namespace, context, problems).guarded


def _check_provider(value: Any, problems: list[Problem]) -> None:
    if value is None:
        return
    if read_part(Provider, value, "spec.provider", problems) is not None:
        message = "not needed: there is no Admin API to be reached"
        problems.append(Problem(severity=Severity.INFO, reason="NotNeeded", field="spec.provider", message=message))
