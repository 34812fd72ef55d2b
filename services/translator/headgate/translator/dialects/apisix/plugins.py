"""Plugins of rules, shared configurations, global rules and consumers, as the kinds of this dialect name them."""

from collections.abc import Iterable
from typing import Any

from headgate.common.problems import Problem
from headgate.common.resources import JsonObject
from headgate.translator.dialects.apisix.class_proxy import fill_in
from headgate.translator.dialects.apisix.context import Context
from headgate.translator.dialects.apisix.models.plugin import Plugin
from headgate.translator.dialects.apisix.models.route import Authentication
from headgate.translator.dialects.apisix.upstreams.split import lift_upstreams
from headgate.translator.fragments.fragment import BackendUse
from headgate.translator.manifests.specs import Part, warn
from headgate.translator.objects import plugin_uses
from headgate.translator.objects.plugin_uses import Plugins, WrittenPlugin

_AUTHENTICATIONS = {
    "keyAuth": ("key-auth", "key_auth"),
    "basicAuth": ("basic-auth", ""),
    "jwtAuth": ("jwt-auth", "jwt_auth"),
    "hmacAuth": ("hmac-auth", ""),
    "wolfRBAC": ("wolf-rbac", ""),
    "ldapAuth": ("ldap-auth", "ldap_auth"),
}


def sources(plugins: Iterable[Plugin], field: str, namespace: str) -> list[WrittenPlugin]:
    """Return the plugins of a list that are to run, with their places."""
    return [_written(plugin, f"{field}[{index}]", namespace) for index, plugin in enumerate(plugins) if plugin.enable]


def parts(found: Iterable[Part[Plugin]], namespace: str) -> list[WrittenPlugin]:
    """Return the plugins of an object that consists of them, as far as they are to run."""
    return [_written(part.value, part.field, namespace) for part in found if part.value.enable]


def _written(plugin: Plugin, field: str, namespace: str) -> WrittenPlugin:
    return WrittenPlugin(plugin.name, plugin.config, field, namespace, plugin.secret_ref)


def authentication(block: Authentication, field: str, namespace: str) -> list[WrittenPlugin]:
    """Return the plugin that an `authentication` block stands for."""
    if not block.enable:
        return []
    name, part = _AUTHENTICATIONS[block.type]
    written: dict[str, Any] = getattr(block, part).model_dump(by_alias=True, exclude_defaults=True) if part else {}
    return [WrittenPlugin(name, written, field, namespace)]


def read_plugins(written: Iterable[WrittenPlugin], context: Context, problems: list[Problem]) -> Plugins:
    """Merge plugins, of which the last of a name counts, and check them; what is wrong goes to `problems`."""

    def prepare(plugin: WrittenPlugin, found: list[Problem]) -> tuple[WrittenPlugin, tuple[BackendUse, ...]]:
        config, backends = plugin.config, tuple[BackendUse, ...]()
        if plugin.name == "traffic-split":
            config, backends = lift_upstreams(config, f"{plugin.field}.config", plugin.namespace, context, found)
        config = fill_in(plugin.name, config, context)
        for name in () if context.lookups.is_assumed else _unfound_lists(plugin.name, config):
            message = "there is no such list in the metadata of plugin cors (pluginMetadata of the class' GatewayProxy)"
            found.append(warn("MetadataNotFound", f"{plugin.field}.config.allow_origins_by_metadata", message, name))
        return plugin._replace(config=config), backends

    return plugin_uses.read_plugins(written, context.lookups, problems, prepare)


def _unfound_lists(name: str, config: JsonObject) -> list[str]:
    """Return the lists of origins that a use of cors names and that there are not."""
    named = config.get("allow_origins_by_metadata") if name == "cors" else None
    return [one for one in named if isinstance(one, str)] if isinstance(named, list) else []


def read_all(found: list[Part[Plugin]], namespace: str, context: Context, problems: list[Problem]) -> Plugins:
    """Read the plugins of an object that consists of them."""
    return read_plugins(parts(found, namespace), context, problems)
