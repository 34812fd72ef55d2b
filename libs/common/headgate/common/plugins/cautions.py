"""Configurations of plugins that gateways follow and that probably do not do what their author wants."""

from collections.abc import Iterator
from typing import NamedTuple

from headgate.common.table import PluginUse


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
