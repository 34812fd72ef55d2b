"""Parameters of a Gateway: those that it names itself, and those of its class.

They are objects of other vocabularies, such as a GatewayProxy of Apache APISIX, or a ConfigMap that names Plugins.
Plugins of both hold; of two with one name that of the Gateway's own parameters does, and its addresses go first.
While one of them cannot be had the Gateway is not accepted: plugins that keep requests out may be missing.
"""

import re
from typing import Final, NamedTuple

from headgate.common.problems import Problem
from headgate.common.resources import CONFIG_MAP, GATEWAY, GATEWAY_CLASS, PLUGIN, JsonObject, ObjectRef
from headgate.common.status import LoadBalancerAddress, is_address
from headgate.common.table import PluginUse
from headgate.translator.manifests.reading import as_object, as_text
from headgate.translator.manifests.specs import refuse
from headgate.translator.sources.addresses import parse_address
from headgate.translator.sources.config_maps import CONFIG_MAPS, ConfigMap
from headgate.translator.sources.gateway_parameters import GATEWAY_PARAMETERS, GatewayParameters
from headgate.translator.sources.gateways import GATEWAY_CLASSES, class_name, find_our_gateway
from headgate.translator.sources.plugin_bundles import PLUGIN_BUNDLES, BundleTarget
from headgate.translator.sources.policies import ObjectTarget
from headgate.translator.world.graph import Level, Lookups, Rule

INVALID: Final = "InvalidParameters"
_OF_GATEWAY, _OF_CLASS = "spec.infrastructure.parametersRef", "spec.parametersRef"
_SERVED: Final = "a ConfigMap, or a GatewayProxy of apisix.apache.org"
_PLUGINS, _ADDRESSES = "plugins", "addresses"
_MOST: Final = 16
"""Plugins, or addresses, that a ConfigMap may name."""


class _Question(NamedTuple):
    cluster: str
    namespace: str
    gateway: str


class Parameters(NamedTuple):
    """What holds for a Gateway."""

    plugins: tuple[PluginUse, ...] = ()
    addresses: tuple[LoadBalancerAddress, ...] | None = None
    fault: Problem | None = None
    named: tuple[ObjectTarget, ...] = ()
    """The objects that say it, those that go first before the others."""


NO_PARAMETERS: Final = Parameters()


def parameters_of(lookups: Lookups, namespace: str, gateway: str) -> Parameters:
    """Return the parameters of a Gateway that is ours. Each of its routes asks."""
    return lookups.derive(_PARAMETERS, _Question(lookups.cluster, namespace, gateway))


def fault_of_class(ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> Problem | None:
    """Return why the parameters of a GatewayClass cannot be followed; None if they can, or there are none."""
    target = _target_of_class(manifest)
    return None if target is None else _fault(_read(target, lookups), target, _OF_CLASS)


def _find(lookups: Lookups, question: _Question) -> Parameters:
    document = find_our_gateway(lookups, question.namespace, question.gateway)
    if document is None:
        return NO_PARAMETERS
    manifest = document.decode()
    name = class_name(manifest)
    above = lookups.get(GATEWAY_CLASSES, "", name)
    named = [(_target_of_gateway(manifest, question.namespace), _OF_GATEWAY, "")]
    if above is not None:
        why = f"parametersRef of {GATEWAY_CLASS.kind} {name}: "
        named.append((_target_of_class(above.decode()), "spec.gatewayClassName", why))
    plugins: dict[str, PluginUse] = {}
    addresses, targets = None, list[ObjectTarget]()
    for target, field, why in named:
        if target is None:
            continue
        found = _read(target, lookups)
        fault = _fault(found, target, field, why)
        if found is None or fault is not None:
            return Parameters(fault=fault)
        plugins = {use.name: use for use in found.plugins} | plugins
        addresses = found.addresses if addresses is None else addresses
        targets.append(target)
    uses = tuple(use.model_copy(update={"is_global": True}) for use in plugins.values())
    return Parameters(uses, addresses, named=tuple(targets))


_PARAMETERS: Final[Rule[_Question, Parameters]] = Rule(
    f"parameters of a {GATEWAY.kind}", Level.CLUSTER, _find, lambda *_: NO_PARAMETERS, is_memo=True
)


def _target_of_gateway(manifest: JsonObject, namespace: str) -> ObjectTarget | None:
    written = as_object(as_object(as_object(manifest.get("spec")).get("infrastructure")).get("parametersRef"))
    return _target(written, namespace) if written else None


def _target_of_class(manifest: JsonObject) -> ObjectTarget | None:
    written = as_object(as_object(manifest.get("spec")).get("parametersRef"))
    return _target(written, as_text(written.get("namespace"))) if written else None


def _target(written: JsonObject, namespace: str) -> ObjectTarget:
    group, kind, name = (as_text(written.get(field)) for field in ("group", "kind", "name"))
    return ObjectTarget(group, kind, namespace, name)


def _fault(found: GatewayParameters | None, target: ObjectTarget, field: str, why: str = "") -> Problem | None:
    what = f"{why}{target.kind} {target.namespace}/{target.name}"
    if found is None:
        message = f"{what} of group {target.group or 'core'} is not there, or has no parameters; name {_SERVED}"
        return refuse(INVALID, field, message, target.name)
    return refuse(INVALID, field, f"{what}: {found.fault}", target.name) if found.fault else None


def _read(target: ObjectTarget, lookups: Lookups) -> GatewayParameters | None:
    if (target.group, target.kind) != (CONFIG_MAP.group, CONFIG_MAP.kind):
        return lookups.attached(GATEWAY_PARAMETERS, target)
    config_map = lookups.get(CONFIG_MAPS, target.namespace, target.name)
    return None if config_map is None else _read_config_map(config_map, target.namespace, lookups)


def _read_config_map(config_map: ConfigMap, namespace: str, lookups: Lookups) -> GatewayParameters:
    data = config_map.as_dict()
    if unknown := sorted(data.keys() - {_PLUGINS, _ADDRESSES}):
        return GatewayParameters(fault=f"data.{unknown[0]}: is no parameter; there are {_PLUGINS} and {_ADDRESSES}")
    names, addresses = (_listed(data.get(key, "")) for key in (_PLUGINS, _ADDRESSES))
    for key, listed in ((_PLUGINS, names), (_ADDRESSES, addresses)):
        if len(listed) > _MOST:
            return GatewayParameters(fault=f"data.{key}: has {len(listed)} elements; {_MOST} are served")
    for address in addresses:
        if not is_address(address):
            return GatewayParameters(fault=f"data.{_ADDRESSES}: {address[:80]} is neither an address nor a DNS name")
    uses: list[PluginUse] = []
    for name in names:
        bundle = lookups.attached(PLUGIN_BUNDLES, BundleTarget(PLUGIN, namespace, name, None))
        if bundle.fault:
            return GatewayParameters(fault=f"data.{_PLUGINS}: {bundle.fault}")
        uses += bundle.uses
    return GatewayParameters(tuple(uses), tuple(map(parse_address, addresses)) or None)


def _listed(text: str) -> list[str]:
    """Return the words of a text, which commas or blanks set apart; each once."""
    return list(dict.fromkeys(filter(None, re.split(r"[\s,]+", text))))
