"""One Consumer of v1alpha1 to one consumer of the table, beside those of ApisixConsumers.

Whose it is goes by its Gateway, as with Apache APISIX. One whose Gateway does not exist belongs to no controller: it
recognises no client until the Gateway is there, and its status says so.
"""

from dataclasses import replace

from headgate.common.problems import Problem
from headgate.common.resources import APISIX_GROUP, GATEWAY_CONSUMER, SECRET, JsonObject, ObjectRef
from headgate.translator.dialects.apisix.consumers.credentials import (
    WrittenCredential,
    contribute,
    from_secret,
    read_sealed,
    renamed,
    split_plugins,
)
from headgate.translator.dialects.apisix.context import Context
from headgate.translator.dialects.apisix.models.gateway_consumer import GatewayCredential, GatewayRef
from headgate.translator.dialects.apisix.models.plugin import NamedPlugin, Plugin
from headgate.translator.fragments.fragment import Fragment
from headgate.translator.manifests.models import Model
from headgate.translator.manifests.reading import as_object, as_text
from headgate.translator.manifests.specs import Part, Spec, refuse
from headgate.translator.sources.gateways import GATEWAYS, Party, is_granted, owns_gateway
from headgate.translator.world.graph import Lookups


class _Gateway(Model):
    """What of a spec says whose it is."""

    gateway_ref: GatewayRef


def is_of_our_gateway(ref: ObjectRef, manifest: JsonObject, lookups: Lookups) -> bool:
    """Whether a Consumer is ours by its Gateway, or its Gateway does not exist."""
    written = as_object(as_object(manifest.get("spec")).get("gatewayRef"))
    gateway = lookups.get(GATEWAYS, as_text(written.get("namespace")) or ref.namespace, as_text(written.get("name")))
    return gateway is None or owns_gateway(gateway, lookups)


def translate_gateway_consumer(ref: ObjectRef, manifest: JsonObject, context: Context) -> Fragment:
    """Return what a Consumer that is ours contributes."""
    problems: list[Problem] = []
    spec = Spec(manifest.get("spec"), problems)
    found = spec.rest(_Gateway, "credentials", "plugins")
    is_there = found is not None and _is_there(found.gateway_ref, ref, context, problems)
    gateway = (
        ""
        if found is None
        else f"{ref.cluster}/{found.gateway_ref.namespace or ref.namespace}/{found.gateway_ref.name}"
    )
    parts = [
        Part(Plugin(name=part.value.name, config=part.value.config, **_sealed(part.value)), part.field)
        for part in spec.each("plugins", NamedPlugin)
    ]
    plugins, credentials = split_plugins(parts, ref.cluster)
    written = [_read(ref, part, context, problems) for part in spec.each("credentials", GatewayCredential)]
    known = [*(one for one in written if one is not None), *credentials]
    is_anonymous = not (written or credentials or as_object(manifest.get("spec")).get("credentials"))
    fragment = contribute(ref, manifest, context, known, plugins, problems, is_anonymous=is_anonymous, gateway=gateway)
    return fragment if is_there else replace(fragment, entries=(), backends=())


def _sealed(plugin: NamedPlugin) -> JsonObject:
    return {name: value for name, value in (plugin.model_extra or {}).items() if name == "sealed"}


def _is_there(gateway: GatewayRef, ref: ObjectRef, context: Context, problems: list[Problem]) -> bool:
    namespace = gateway.namespace or ref.namespace
    if context.lookups.is_assumed or context.lookups.get(GATEWAYS, namespace, gateway.name) is not None:
        return True
    message = f"Gateway {namespace}/{gateway.name} is not there, or may not be read: nobody is recognised by this"
    problems.append(refuse("GatewayNotFound", "spec.gatewayRef.name", message, gateway.name))
    return False


def _read(
    ref: ObjectRef, part: Part[GatewayCredential], context: Context, problems: list[Problem]
) -> WrittenCredential | None:
    credential, field = part.value, part.field
    if credential.secret_ref is None:
        sealed = read_sealed(credential, ref.cluster)
        config = {name: value for name, value in renamed(credential.config or {}).items() if name not in sealed}
        return WrittenCredential(credential.type, config, sealed, f"{field}.config", credential.name)
    if context.lookups.is_assumed:
        return None
    secret = Part(credential.secret_ref, f"{field}.secretRef")
    namespace = secret.value.namespace or ref.namespace
    if namespace != ref.namespace and not _is_granted(ref, namespace, secret.value.name, context.lookups):
        message = f"Secret {namespace}/{secret.value.name}: no ReferenceGrant there allows Consumers of {ref.namespace}"
        problems.append(refuse("RefNotPermitted", f"{secret.field}.namespace", message, namespace))
        return None
    found = from_secret(credential.type, namespace, secret, context.lookups, problems)
    return found and found._replace(name=credential.name)


def _is_granted(ref: ObjectRef, namespace: str, name: str, lookups: Lookups) -> bool:
    source = Party(APISIX_GROUP, GATEWAY_CONSUMER.kind, ref.namespace)
    return is_granted(lookups, source, Party(SECRET.group, SECRET.kind, name), namespace)
