"""The public keys to which Secrets are sealed: given as such, or in files that a gateway makes."""

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path

from nacl.public import PublicKey

from headgate.common.errors import SealingError, SettingsError
from headgate.common.sealing import PUBLIC_KEY_FILE, parse_public_key

POLL_S = 0.2
_KEY_CHARACTERS = 44
"""32 bytes in base64."""

_log = logging.getLogger(__name__)


async def wait_for_recipients(keys: Sequence[str], data_dir: Path) -> tuple[PublicKey, ...]:
    """Return the gateways' public keys; waits until those that are in files are there.

    Args:
        keys: keys in base64, or paths of files that hold one; if empty, `gateway.pub` in the data directory.
        data_dir: where a gateway of the same machine leaves its public key.

    Raises:
        SettingsError: one is neither a key nor a path.
    """
    sources = [_parse(key) for key in keys or (str(data_dir / PUBLIC_KEY_FILE),)]
    return tuple([await _wait_for(one) if isinstance(one, Path) else one for one in sources])


def _parse(text: str) -> PublicKey | Path:
    try:
        return parse_public_key(text)
    except SealingError as error:
        # A path has a dot or a slash in a place where it is no base64, or is of another length.
        if not text.strip() or (len(text) == _KEY_CHARACTERS and text.endswith("=")):
            raise SettingsError(f"sealing_public_keys: {error}") from error
        return Path(text)


async def _wait_for(path: Path) -> PublicKey:
    is_told = False
    while True:
        try:
            return parse_public_key(await asyncio.to_thread(path.read_text))
        except (OSError, SealingError, UnicodeDecodeError) as error:
            if not is_told:
                _log.info("waiting for a gateway's public key", extra={"file": str(path), "reason": str(error)})
            is_told = True
        await asyncio.sleep(POLL_S)
