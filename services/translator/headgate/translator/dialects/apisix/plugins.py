"""Plugins of rules, shared configurations, global rules and consumers: merged, with their secrets, and checked.

Requests are refused while the configuration of a plugin is wrong, or its name unknown: it may keep requests out.
Loggers, tracers and the like are left out with a warning instead, and so is what the setting `ignored_plugins` names.
"""

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from headgate.common.plugins.catalogue import CONFIGS
from headgate.common.plugins.cautions import cautions
from headgate.common.plugins.checking import check_use
from headgate.common.plugins.errors import PluginFault
from headgate.common.problems import LETS_IN, Problem
from headgate.common.resources import JsonObject
from headgate.common.sealing import ClusterValue
from headgate.common.table import PluginUse
from headgate.translator.dialects.apisix.class_proxy import fill_in
from headgate.translator.dialects.apisix.context import Context
from headgate.translator.dialects.apisix.models.plugin import Plugin
from headgate.translator.dialects.apisix.models.route import Authentication
from headgate.translator.dialects.apisix.split import lift_upstreams
from headgate.translator.fragments.fragment import BackendUse
from headgate.translator.manifests.specs import Part, refuse, warn
from headgate.translator.sources.certificates import SECRETS, values_of

_GUARDS = frozenset(
    (
        "authz-casbin",
        "basic-auth",
        "client-control",
        "consumer-restriction",
        "csrf",
        "forward-auth",
        "hmac-auth",
        "ip-restriction",
        "jwe-decrypt",
        "jwt-auth",
        "key-auth",
        "ldap-auth",
        "multi-auth",
        "opa",
        "openid-connect",
        "referer-restriction",
        "request-validation",
        "ua-restriction",
        "uri-blocker",
        "wolf-rbac",
        "workflow",
    )
)
"""Plugins of gateways that keep requests out."""
_HARMLESS = frozenset(
    (
        "clickhouse-logger",
        "datadog",
        "elasticsearch-logger",
        "error-log-logger",
        "google-cloud-logging",
        "inspect",
        "lago",
        "log-rotate",
        "loggly",
        "loki-logger",
        "node-status",
        "proxy-buffering",
        "rocketmq-logger",
        "server-info",
        "skywalking",
        "skywalking-logger",
        "sls-logger",
        "splunk-hec-logging",
        "tencent-cloud-cls",
        "zipkin",
    )
)
"""Plugins of Apache APISIX that gateways lack and that change neither who is let in nor what goes through: loggers,
tracers, metrics. Any other unknown plugin may keep requests out, as `serverless-pre-function` often does."""
_AUTHENTICATIONS = {
    "keyAuth": ("key-auth", "key_auth"),
    "basicAuth": ("basic-auth", ""),
    "jwtAuth": ("jwt-auth", "jwt_auth"),
    "hmacAuth": ("hmac-auth", ""),
    "wolfRBAC": ("wolf-rbac", ""),
    "ldapAuth": ("ldap-auth", "ldap_auth"),
}


class PluginSource(NamedTuple):
    """A plugin, where it was written, and the namespace of its Secret."""

    plugin: Plugin
    field: str
    namespace: str


class Plugins(NamedTuple):
    """What is to run."""

    uses: tuple[PluginUse, ...]
    faults: tuple[str, ...]
    """Why requests are refused."""
    backends: tuple[BackendUse, ...] = ()
    """Upstreams that they choose from."""
    refused: tuple[PluginUse, ...] = ()
    """Those that cannot be followed, each with its fault."""

    @property
    def closed(self) -> tuple[PluginUse, ...]:
        """All of them: where no route refuses requests, those do that cannot be followed."""
        return (*self.uses, *self.refused)

    @property
    def guarded(self) -> tuple[PluginUse, ...]:
        """For all routes at once: of those that cannot be followed only such that keep requests out."""
        return (*self.uses, *(use for use in self.refused if _may_guard(use.name)))


def _may_guard(name: str) -> bool:
    """Whether a plugin keeps requests out, or may do so, as it is unknown here."""
    return name in _GUARDS or not (name in CONFIGS or name in _HARMLESS)


def sources(plugins: Iterable[Plugin], field: str, namespace: str) -> list[PluginSource]:
    """Return the plugins of a list with their places."""
    return [PluginSource(plugin, f"{field}[{index}]", namespace) for index, plugin in enumerate(plugins)]


def authentication(block: Authentication, field: str, namespace: str) -> list[PluginSource]:
    """Return the plugin that an `authentication` block stands for."""
    if not block.enable:
        return []
    name, part = _AUTHENTICATIONS[block.type]
    written: dict[str, Any] = getattr(block, part).model_dump(by_alias=True, exclude_defaults=True) if part else {}
    return [PluginSource(Plugin(name=name, config=written), field, namespace)]


def read_plugins(written: Iterable[PluginSource], context: Context, problems: list[Problem]) -> Plugins:
    """Merge plugins, of which the last of a name counts, and check them; what is wrong goes to `problems`."""
    merged = {source.plugin.name: source for source in written if source.plugin.enable}
    uses: list[PluginUse] = []
    faults: list[str] = []
    refused: list[PluginUse] = []
    backends: list[BackendUse] = []
    for source in merged.values():
        found: list[Problem] = []
        if source.plugin.name == "traffic-split":
            source, chosen = _lifted(source, context, found)
            backends += chosen
        broken = any(problem.severity == "error" for problem in found)
        use = None if broken else _read(source, context, found)
        problems += found
        if use is not None:
            uses.append(use)
        wrong = [problem.message for problem in found if problem.severity == "error"]
        faults += wrong
        name = source.plugin.name
        refused += [PluginUse(name=name, fault=fault.removeprefix(f"plugin {name}: ")) for fault in wrong[:1]]
    return Plugins(tuple(uses), tuple(faults), tuple(backends), tuple(refused))


def _lifted(
    source: PluginSource, context: Context, problems: list[Problem]
) -> tuple[PluginSource, tuple[BackendUse, ...]]:
    plugin = source.plugin
    field = f"{source.field}.config"
    config, backends = lift_upstreams(plugin.config, field, source.namespace, context, problems)
    return source._replace(plugin=plugin.model_copy(update={"config": config})), backends


def _read(source: PluginSource, context: Context, problems: list[Problem]) -> PluginUse | None:
    plugin, field, _ = source
    secrets = _secrets(source, context, problems) if plugin.secret_ref else {}
    if secrets is None:
        return None
    config = fill_in(plugin.name, plugin.config, context)
    for name in () if context.lookups.is_assumed else _unfound_lists(plugin.name, config):
        message = "there is no such list in the metadata of plugin cors (pluginMetadata of the class' GatewayProxy)"
        problems.append(warn("MetadataNotFound", f"{field}.config.allow_origins_by_metadata", message, name))
    use = PluginUse(name=plugin.name, config=config, secrets=secrets)
    try:
        check_use(use, context.settings.plugin_names)
    except PluginFault as fault:
        is_known = plugin.name in CONFIGS or plugin.name in context.settings.plugin_names
        if is_known:
            at = f"{field}.{fault.field}" if fault.field and not fault.field.startswith("secrets") else field
            problems.append(refuse("InvalidPlugin", at, f"plugin {plugin.name}: {fault.fault}"))
        else:
            problems.append(_unknown(plugin.name, f"{field}.name", fault.fault, context.settings.ignored_plugins))
        return None
    problems += [
        warn("PluginCaution", f"{field}.{one.field}", f"plugin {plugin.name}: {one.message}") for one in cautions(use)
    ]
    return use


def _unknown(name: str, field: str, fault: str, ignored: Collection[str]) -> Problem:
    if name in _HARMLESS:
        return warn("UnknownPlugin", field, f"{fault}; requests are served without it", name)
    if name in ignored:
        message = f"{fault}; requests are served without it, as ignored_plugins names it, and come in if it is a guard"
        return warn(LETS_IN, field, message, name)
    message = (
        f"{fault}; requests are refused, as it may keep requests out. "
        "If it does not, name it in ignored_plugins (HEADGATE_IGNORED_PLUGINS)"
    )
    return refuse("UnknownPlugin", field, message, name)


def _unfound_lists(name: str, config: JsonObject) -> list[str]:
    """Return the lists of origins that a use of cors names and that there are not."""
    named = config.get("allow_origins_by_metadata") if name == "cors" else None
    return [one for one in named if isinstance(one, str)] if isinstance(named, list) else []


def _secrets(source: PluginSource, context: Context, problems: list[Problem]) -> dict[str, ClusterValue] | None:
    name, namespace = source.plugin.secret_ref, source.namespace
    if context.lookups.is_assumed:
        return {}
    secret = context.lookups.get(SECRETS, namespace, name)
    if secret is None or secret.held is None:
        message = f"Secret {namespace}/{name} {MISSING_SECRET}"
        problems.append(refuse("SecretNotFound", f"{source.field}.secretRef", message, name))
        return None
    return values_of(secret.held, context.lookups.cluster)


MISSING_SECRET = "is not there, or the watcher is not told to read Secrets of its type (HEADGATE_WATCH_SECRETS=all)"


def read_all(parts: list[Part[Plugin]], namespace: str, context: Context, problems: list[Problem]) -> Plugins:
    """Read the plugins of an object that consists of them."""
    written = [PluginSource(part.value, part.field, namespace) for part in parts]
    return read_plugins(written, context, problems)
