"""The middleware `plugin`: a plugin of the gateways by its name, built in or of a package of its own."""

from typing import Any

from headgate.common.problems import Severity
from headgate.common.table import PluginUse
from headgate.translator.dialects.traefik.middlewares.making import Making, Unfollowed
from headgate.translator.objects.plugin_uses import WrittenPlugin, read_plugins


def plugin(written: dict[str, Any], making: Making) -> tuple[PluginUse, ...]:
    """Look the plugin up, and check what can be checked of its configuration."""
    if len(written) != 1:
        raise Unfollowed("InvalidValue", "", f"must name one plugin, but has {', '.join(sorted(written)) or 'none'}")
    ((name, config),) = written.items()
    if not isinstance(config, dict):
        raise Unfollowed("InvalidValue", name, "must be an object: the plugin's configuration")
    problems: list[Any] = []
    found = read_plugins([WrittenPlugin(name, config, name, making.namespace)], making.lookups, problems)
    wrong = next((problem for problem in problems if problem.severity is Severity.ERROR), None)
    if wrong is not None:
        raise Unfollowed(wrong.reason, name, wrong.message)
    return found.uses
