"""The private keys that certificates are sealed to."""

from headgate.common.sealing import Unsealer, load_or_create_key_pair, read_private_key
from headgate.gateway.settings import GatewaySettings


def load_unsealer(settings: GatewaySettings) -> Unsealer:
    """Read the keys that the settings name, or the data folder's own, made on first use.

    Raises:
        SealingError: a file holds no private key.
    """
    if settings.sealing_private_keys:
        return Unsealer([read_private_key(path) for path in settings.sealing_private_keys])
    return Unsealer([load_or_create_key_pair(settings.data_dir)])
