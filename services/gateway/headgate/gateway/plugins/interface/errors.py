"""The errors of plugins.

GatewayError
└── PluginRefused                a use of a plugin that cannot be compiled: unknown, bad configuration, sealed to others
Unforeseeable (an Exception)     what a plugin does with a request cannot be said without sending it
PluginFailed (an Exception)      a plugin raised while a body was passing; the message it worked on is cut off
"""

from headgate.gateway.errors import GatewayError


class PluginRefused(GatewayError):
    """A use of a plugin that cannot be compiled. Costs the route, which answers with 500 and this text."""

    def __init__(self, plugin: str, field: str, message: str) -> None:
        super().__init__(f"plugin {plugin}{f', {field}' if field else ''}: {message}")
        self.plugin = plugin
        self.field = field
        """Path in the use: `config.rate`; empty if it is the use itself."""
        self.message = message


class Unforeseeable(Exception):
    """What a plugin does with a request cannot be said without sending it; the text says why."""


class PluginFailed(Exception):
    """A plugin raised while a body was passing through it; the text names it."""
