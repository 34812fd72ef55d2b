"""Plugins that objects of any dialect name with a configuration: merged, with their Secrets, and checked.

Requests are refused while the configuration of a plugin is wrong, or its name unknown: it may keep requests out.
Loggers, tracers and the like are left out with a warning instead, and so is what the setting `ignored_plugins` names.
"""

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from headgate.common.plugins.catalogue import CONFIGS
from headgate.common.plugins.cautions import cautions
from headgate.common.plugins.checking import check_use
from headgate.common.plugins.errors import PluginFault
from headgate.common.problems import LETS_IN, Problem, Severity
from headgate.common.resources import JsonObject
from headgate.common.sealing import ClusterValue
from headgate.common.table import PluginUse
from headgate.translator.fragments.fragment import BackendUse
from headgate.translator.manifests.specs import refuse, warn
from headgate.translator.sources.certificates import SECRETS, values_of
from headgate.translator.world.graph import Lookups

MISSING_SECRET = "is not there, or the watchers do not read Secrets of its type (HEADGATE_WATCH_SECRETS)"

_GUARDS = frozenset(
    (
        "acl",
        "ai-prompt-guard",
        "authz-casbin",
        "authz-keycloak",
        "basic-auth",
        "cas-auth",
        "client-control",
        "consumer-restriction",
        "csrf",
        "digest-auth",
        "ext-authz",
        "forward-auth",
        "hmac-auth",
        "ip-restriction",
        "jwe-decrypt",
        "jwt-auth",
        "key-auth",
        "ldap-auth",
        "multi-auth",
        "oas-validator",
        "opa",
        "openid-connect",
        "referer-restriction",
        "request-validation",
        "satisfy-any",
        "ua-restriction",
        "uri-blocker",
        "wolf-rbac",
        "workflow",
    )
)
"""Plugins of gateways that keep requests out."""
_HARMLESS = frozenset(
    (
        "batch-requests",
        "error-log-logger",
        "inspect",
        "lago",
        "log-rotate",
        "node-status",
        "proxy-buffering",
        "rocketmq-logger",
        "server-info",
        "skywalking",
        "sls-logger",
        "tencent-cloud-cls",
        "zipkin",
    )
)
"""Plugins of Apache APISIX that gateways lack and that change neither who is let in nor what goes through: loggers,
tracers, metrics. Any other unknown plugin may keep requests out, as `serverless-pre-function` often does."""


class WrittenPlugin(NamedTuple):
    """A plugin as an object names it."""

    name: str
    config: JsonObject
    field: str
    """Where it stands."""
    namespace: str
    """Of its Secret."""
    secret: str = ""
    """Name of a Secret whose values are merged into the configuration; empty for none."""


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
        return (*self.uses, *(use for use in self.refused if may_guard(use.name)))


def may_guard(name: str) -> bool:
    """Whether a plugin keeps requests out, or may do so, as it is unknown here."""
    return name in _GUARDS or not (name in CONFIGS or name in _HARMLESS)


Prepare = Callable[[WrittenPlugin, list[Problem]], tuple[WrittenPlugin, tuple[BackendUse, ...]]]
"""Returns a plugin as its dialect means it, and the upstreams that it chooses from. What is wrong goes to the list; a
plugin with an error is refused."""


def as_written(plugin: WrittenPlugin, problems: list[Problem]) -> tuple[WrittenPlugin, tuple[BackendUse, ...]]:
    """Return a plugin as it is."""
    return plugin, ()


def read_plugins(
    written: Iterable[WrittenPlugin], lookups: Lookups, problems: list[Problem], prepare: Prepare = as_written
) -> Plugins:
    """Merge plugins, of which the last of a name counts, and check them; what is wrong goes to `problems`."""
    merged = {plugin.name: plugin for plugin in written}
    uses: list[PluginUse] = []
    faults: list[str] = []
    refused: list[PluginUse] = []
    backends: list[BackendUse] = []
    for name, plugin in merged.items():
        found: list[Problem] = []
        prepared, chosen = prepare(plugin, found)
        backends += chosen
        use = None if _errors(found) else _read(prepared, lookups, found)
        problems += found
        if use is not None:
            uses.append(use)
        wrong = _errors(found)
        faults += wrong
        refused += [PluginUse(name=name, fault=fault.removeprefix(f"plugin {name}: ")) for fault in wrong[:1]]
    return Plugins(tuple(uses), tuple(faults), tuple(backends), tuple(refused))


def _errors(problems: Iterable[Problem]) -> list[str]:
    return [problem.message for problem in problems if problem.severity is Severity.ERROR]


def _read(plugin: WrittenPlugin, lookups: Lookups, problems: list[Problem]) -> PluginUse | None:
    name, config, field, *_ = plugin
    secrets = _secrets(plugin, lookups, problems) if plugin.secret else {}
    if secrets is None:
        return None
    use, settings = PluginUse(name=name, config=config, secrets=secrets), lookups.settings
    try:
        check_use(use, settings.plugin_names)
    except PluginFault as fault:
        if name in CONFIGS or name in settings.plugin_names:
            at = f"{field}.{fault.field}" if fault.field and not fault.field.startswith("secrets") else field
            problems.append(refuse("InvalidPlugin", at, f"plugin {name}: {fault.fault}"))
        else:
            problems.append(_unknown(name, f"{field}.name", fault.fault, settings.ignored_plugins))
        return None
    problems += [
        warn("PluginCaution", f"{field}.{one.field}", f"plugin {name}: {one.message}") for one in cautions(use)
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


def _secrets(plugin: WrittenPlugin, lookups: Lookups, problems: list[Problem]) -> dict[str, ClusterValue] | None:
    if lookups.is_assumed:
        return {}
    secret = lookups.get(SECRETS, plugin.namespace, plugin.secret)
    if secret is None or secret.held is None:
        message = f"Secret {plugin.namespace}/{plugin.secret} {MISSING_SECRET}"
        problems.append(refuse("SecretNotFound", f"{plugin.field}.secretRef", message, plugin.secret))
        return None
    return values_of(secret.held, lookups.cluster)
