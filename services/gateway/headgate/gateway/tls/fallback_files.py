"""The fallback certificate from two files, loaded again when they change.

Read every few seconds instead of watched: what mounts Secrets into a container swaps symbolic links of whole folders,
which every kind of file watching sees differently, and two small files cost nothing to read.
"""

import asyncio
import logging
from pathlib import Path

from headgate.common.errors import SettingsError
from headgate.gateway.tls.server import CertificateStore

_log = logging.getLogger(__name__)

LOOK_S = 5.0
"""Between two looks."""


class FallbackFiles:
    """Keeps a store's fallback certificate as the files have it."""

    def __init__(self, store: CertificateStore, chain: Path, key: Path, look_s: float = LOOK_S) -> None:
        self._store = store
        self._paths = (chain, key)
        self._look_s = look_s
        self._seen: tuple[bytes, bytes] | None = None

    def load(self) -> None:
        """Load the files for the first time.

        Raises:
            SettingsError: they cannot be read or are no pair.
        """
        try:
            self._take(self._read())
        except (OSError, ValueError) as error:
            chain, key = self._paths
            raise SettingsError(f"default_certificate_file: {chain} and {key} cannot be used: {error}") from error

    async def run(self) -> None:
        """Load them again whenever they changed; what cannot be used leaves the certificate before in force."""
        while True:
            await asyncio.sleep(self._look_s)
            try:
                content = await asyncio.to_thread(self._read)
                if content != self._seen:
                    self._take(content)
                    _log.info("fallback certificate loaded", extra={"file": str(self._paths[0])})
            except (OSError, ValueError) as error:
                _log.warning(
                    "fallback certificate not loaded", extra={"file": str(self._paths[0]), "error": str(error)}
                )

    def _read(self) -> tuple[bytes, bytes]:
        chain, key = self._paths
        return chain.read_bytes(), key.read_bytes()

    def _take(self, content: tuple[bytes, bytes]) -> None:
        # ssl.SSLError is an OSError.
        self._store.set_fallback(*content)
        self._seen = content
