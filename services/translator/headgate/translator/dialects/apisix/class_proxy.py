"""What the GatewayProxy of a class says for its objects: addresses for statuses, and metadata of plugins."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from headgate.common.plugins.catalogue import CONFIGS
from headgate.common.plugins.checking import read_config, unknown_plugin
from headgate.common.plugins.errors import PluginFault
from headgate.common.plugins.metadata import METADATA, PluginMetadata
from headgate.common.problems import Problem
from headgate.common.resources import APISIX_GROUP, GATEWAY_PROXY, JsonObject
from headgate.common.status import LoadBalancerAddress, is_address
from headgate.common.table import PluginUse
from headgate.translator.dialects.apisix.context import Context
from headgate.translator.dialects.apisix.document import GATEWAY_PROXIES
from headgate.translator.dialects.apisix.models.gateway_proxy import GatewayProxySpec
from headgate.translator.manifests.reading import as_object
from headgate.translator.manifests.specs import Spec, refuse, warn
from headgate.translator.sources.addresses import parse_address
from headgate.translator.sources.classes import ClassQuestion, find_class
from headgate.translator.sources.policies import ObjectTarget
from headgate.translator.sources.services import SERVICES
from headgate.translator.world.graph import Level, Lookups, Rule
from headgate.translator.world.settings import TranslationSettings

_METADATA_FIELD = "spec.pluginMetadata"


class ProxySettings(NamedTuple):
    """What a GatewayProxy says beside its plugins."""

    addresses: tuple[LoadBalancerAddress, ...] | None = None
    """For statuses; None where it says nothing of them."""
    metadata: Mapping[str, PluginMetadata] = {}
    """By plugin."""


def _find_settings(lookups: Lookups, question: ClassQuestion) -> ProxySettings:
    """Find what the GatewayProxy of a class says; what is wrong with it is said of it, not of those it holds for."""
    found = find_class(lookups, question.name)
    parameters = found.parameters if found is not None else None
    if parameters is None or parameters[:2] != (APISIX_GROUP, GATEWAY_PROXY.kind):
        return ProxySettings()
    document = lookups.get(GATEWAY_PROXIES, parameters.namespace, parameters.name)
    if document is None:
        return ProxySettings()
    raw, ignored = as_object(document.decode().get("spec")), list[Problem]()
    return ProxySettings(
        read_addresses(Spec(raw, ignored), parameters.namespace, lookups, ignored),
        read_metadata(raw.get("pluginMetadata"), lookups.settings, ignored),
    )


PROXY_SETTINGS: Rule[ClassQuestion, ProxySettings] = Rule(
    "gateway proxy of a class", Level.CLUSTER, _find_settings, lambda *_: ProxySettings(), is_memo=True
)


def find_addresses(lookups: Lookups, class_name: str | None) -> tuple[LoadBalancerAddress, ...] | None:
    """Return the addresses that the GatewayProxy of a class gives for statuses; None if it gives none."""
    return lookups.derive(PROXY_SETTINGS, ClassQuestion(lookups.cluster, class_name)).addresses


def metadata_of(lookups: Lookups, parameters: ObjectTarget | None) -> Mapping[str, PluginMetadata]:
    """Return the metadata of plugins that the GatewayProxy of a Gateway has."""
    if parameters is None or parameters[:2] != (APISIX_GROUP, GATEWAY_PROXY.kind):
        return {}
    document = lookups.get(GATEWAY_PROXIES, parameters.namespace, parameters.name)
    written = None if document is None else as_object(document.decode().get("spec")).get("pluginMetadata")
    return read_metadata(written, lookups.settings, [])


def fill_in(name: str, config: JsonObject, context: Context) -> JsonObject:
    """Return a plugin's configuration with what the metadata say for all of its uses."""
    model = METADATA.get(name)
    if model is None:
        return config
    if context.metadata is not None:
        found = context.metadata.get(name)
    elif context.lookups.is_assumed:
        return {**model.likely, **config}
    else:
        question = ClassQuestion(context.lookups.cluster, context.class_name)
        found = context.lookups.derive(PROXY_SETTINGS, question).metadata.get(name)
    return config if found is None else found.fill(config)


def read_addresses(
    spec: Spec, namespace: str, lookups: Lookups, problems: list[Problem]
) -> tuple[LoadBalancerAddress, ...] | None:
    """Return the addresses for the statuses of a class' Ingresses; None where nothing is said of them."""
    rest = spec.rest(GatewayProxySpec, "plugins", "provider", "pluginMetadata")
    if rest is None:
        return None
    written = dict.fromkeys(rest.status_address)
    for index, address in enumerate(rest.status_address):
        if address and not is_address(address):
            message = "must be an IP address, or a DNS name in lower case"
            problems.append(refuse("InvalidValue", f"spec.statusAddress[{index}]", message, address))
    if rest.status_address:
        return tuple(parse_address(one) for one in written if one and is_address(one))
    return _published_by(rest.publish_service, namespace, lookups, problems) if rest.publish_service else None


def _published_by(
    written: str, namespace: str, lookups: Lookups, problems: list[Problem]
) -> tuple[LoadBalancerAddress, ...]:
    """Return the addresses of a Service; none where it has none, as those of gateways are not meant then."""
    field = "spec.publishService"
    first, slash, rest = written.partition("/")
    place, name = (first, rest) if slash else (namespace, first)
    if not place or not name or "/" in name:
        problems.append(refuse("InvalidValue", field, "must be a Service, as namespace/name", written))
        return ()
    service = lookups.get(SERVICES, place, name)
    if service is None and not lookups.is_assumed:
        message = f"Service {place}/{name} is not there: statuses show no addresses"
        problems.append(warn("ServiceNotFound", field, message, written))
    elif service is not None and not service.addresses and service.type != "LoadBalancer":
        message = (
            f"Service {place}/{name} is a {service.type} and has no load balancer: statuses show no addresses; "
            "say them under statusAddress"
        )
        problems.append(warn("NoAddresses", field, message, written))
    return tuple(map(parse_address, dict.fromkeys(service.addresses))) if service is not None else ()


def read_metadata(value: Any, settings: TranslationSettings, problems: list[Problem]) -> dict[str, PluginMetadata]:
    """Return the metadata by plugin, of those that have any and whose can be read."""
    if value is not None and not isinstance(value, dict):
        problems.append(refuse("WrongType", _METADATA_FIELD, "must be an object: metadata by plugin"))
    found = {}
    for name, written in as_object(value).items():
        model, field = METADATA.get(name), f"{_METADATA_FIELD}.{name}"
        if model is None:
            problems.append(_unused(name, field, settings))
            continue
        if not isinstance(written, dict):
            problems.append(refuse("WrongType", field, "must be an object"))
            continue
        try:
            found[name] = read_config(model, PluginUse(name=name, config=written), {})
        except PluginFault as fault:
            at = f"{field}{fault.field.removeprefix('config')}"
            problems.append(refuse("InvalidPlugin", at, f"metadata of plugin {name}: {fault.fault}"))
    return found


def _unused(name: str, field: str, settings: TranslationSettings) -> Problem:
    if name in CONFIGS or name in settings.plugin_names:
        message = "not used: this plugin has no metadata here; what can be said is said in its configuration"
        return warn("UnsupportedField", field, message)
    known = (*CONFIGS, *settings.plugin_names)
    fault = unknown_plugin(name, known, f"those with metadata are {', '.join(METADATA)}")
    return warn("UnknownPlugin", field, fault.fault, name)
