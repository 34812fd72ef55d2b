"""The secrets in what plugins are told, opened."""

from headgate.common.errors import SealingError
from headgate.common.sealing import Purpose, Unseal
from headgate.common.table import PluginUse
from headgate.gateway.plugins.interface.errors import PluginRefused


def opened_secrets(use: PluginUse, unseal: Unseal, purpose: Purpose) -> dict[str, str]:
    """Return the secrets of a use by their places. Raises PluginRefused."""
    opened = {}
    for place, sealed in use.secrets.items():
        try:
            opened[place] = unseal(sealed, purpose).reveal().decode("utf-8")
        except SealingError as error:
            raise PluginRefused(use.name, f"secrets.{place}", f"cannot be opened: {error}") from error
        except UnicodeDecodeError:
            raise PluginRefused(use.name, f"secrets.{place}", "is not text in UTF-8") from None
    return opened
