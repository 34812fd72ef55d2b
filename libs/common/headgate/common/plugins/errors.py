"""What is wrong with a use of a plugin.

PluginFault (a ValueError)
"""


class PluginFault(ValueError):
    """A use of a plugin that cannot be followed.

    Attributes:
        plugin: its name.
        field: path in the use: `config.rate`; empty if it is the use itself.
        fault: what is wrong there, without what may be a secret.
    """

    def __init__(self, plugin: str, field: str, fault: str) -> None:
        super().__init__(f"plugin {plugin}{f', {field}' if field else ''}: {fault}")
        self.plugin = plugin
        self.field = field
        self.fault = fault
