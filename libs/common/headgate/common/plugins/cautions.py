"""Configurations of plugins that gateways follow and that probably do not do what their author wants."""

import difflib
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from headgate.common.plugins.templates import Mention, mentions
from headgate.common.plugins.variables import VARIABLES, Phase, phase_of
from headgate.common.table import PluginUse

_SINCE: Final[Mapping[Phase, str]] = MappingProxyType(
    {Phase.ANSWER: "once the upstream has answered", Phase.END: "in loggers"}
)


class Caution(NamedTuple):
    """Something to look at in a configuration."""

    field: str
    """Where it stands, or would stand, below the plugin: `config.trusted_addresses`."""
    message: str


def cautions(use: PluginUse) -> Iterator[Caution]:
    """Yield what the author of a use that `checking.check_use` has accepted should look at."""
    if use.name == "real-ip" and not use.config.get("trusted_addresses"):
        yield Caution(
            "config.trusted_addresses",
            "any client may name its own address, and so pass plugins that go by addresses (ip-restriction, "
            "limit-count); give the networks of the proxies that may name one",
        )
    seen: set[str] = set()
    for mention in mentions(use.name, use.config):
        doubt = _doubt(mention)
        if doubt is not None and mention.variable not in seen:
            seen.add(mention.variable)
            yield Caution(mention.field, doubt)


def _doubt(mention: Mention) -> str | None:
    """Say why a variable is nothing where it is named; None: it may be something."""
    name = mention.variable
    phase = phase_of(name)
    if phase is None:
        near = difflib.get_close_matches(name, VARIABLES, 1)
        hint = f"the nearest is ${near[0]}" if near else "docs/plugins.md has those that there are"
        return f"there is no variable ${name}, so it is empty; {hint}"
    if phase > mention.phase:
        return f"${name} is known only {_SINCE[phase]}, so it is empty here"
    return None
