"""Consumers in a directory, and chains that know them."""

import base64
from typing import Any

from fakes.gateway.table import ORIGIN
from headgate.common.table import Consumer, ConsumerGroup, Credential, PluginUse
from headgate.gateway.model.steps import finish
from headgate.gateway.plugins.interface import PluginServices, Request
from headgate.gateway.plugins.interface.consumers import ConsumerDirectory, KnownGroup
from headgate.gateway.plugins.runtime.chain import PluginChain
from unit.gateway.plugins.running import chain, request, unsealed

Use = tuple[str, dict[str, Any]]


def consumer(name: str, *credentials: Use, plugins: tuple[Use, ...] = (), **fields: Any) -> Consumer:
    held = tuple(Credential(use=PluginUse(name=plugin, config=config)) for plugin, config in credentials)
    return Consumer(
        key=fields.pop("key", f"c1/default/{name}"),
        name=name,
        credentials=held,
        plugins=tuple(PluginUse(name=plugin, config=config) for plugin, config in plugins),
        provenance=fields.pop("provenance", ORIGIN.model_copy(update={"name": name})),
        **fields,
    )


def group(name: str, *plugins: Use, **fields: Any) -> ConsumerGroup:
    uses = tuple(PluginUse(name=plugin, config=config) for plugin, config in plugins)
    return ConsumerGroup(key=f"c1/default/{name}", name=name, plugins=uses, provenance=ORIGIN, **fields)


def directory(*entries: Consumer | ConsumerGroup) -> ConsumerDirectory:
    found = ConsumerDirectory()
    people = [entry for entry in entries if isinstance(entry, Consumer)]
    groups = [entry for entry in entries if isinstance(entry, ConsumerGroup)]
    finish(found.replace({entry.key: found.read(entry, unsealed) for entry in people}, ()))
    found.replace_groups({entry.key: KnownGroup(entry) for entry in groups}, ())
    return found


def chain_for(people: ConsumerDirectory, *uses: Use, **services: Any) -> PluginChain:
    return chain(*uses, services=PluginServices(consumers=people, **services))


def with_key(key: str, target: str = "/", **given: Any) -> Request:
    return request(target, [("apikey", key)], **given)


def basic(name: str, password: str) -> tuple[str, str]:
    return "Authorization", "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()
