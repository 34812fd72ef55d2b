"""`brotli`: compresses text better than gzip, for all browsers over HTTPS."""

from typing import Final

import brotli

from headgate.common.plugins.transformation.compression import BrotliConfig
from headgate.gateway.plugins.built_in.transformation.compression.compression import Compression
from headgate.gateway.plugins.interface import Response

MAX_LEVEL: Final = 9
"""Above it 64 KiB, which are compressed at once, take tens of milliseconds."""
_MODES = (brotli.MODE_GENERIC, brotli.MODE_TEXT, brotli.MODE_FONT)


class _Stream:
    def __init__(self, config: BrotliConfig) -> None:
        self._compressor = brotli.Compressor(
            mode=_MODES[config.mode],
            quality=min(config.comp_level, MAX_LEVEL),
            lgwin=config.lgwin,
            lgblock=config.lgblock,
        )

    def compress(self, data: bytes) -> bytes:
        compressed: bytes = self._compressor.process(data)
        return compressed

    def flush(self) -> bytes:
        flushed: bytes = self._compressor.flush()
        return flushed

    def finish(self) -> bytes:
        rest: bytes = self._compressor.finish()
        return rest


class Brotli(Compression[BrotliConfig]):
    """Compresses with Brotli (RFC 7932)."""

    name = "brotli"
    order = 996
    Config = BrotliConfig
    coding = "br"

    def make_compressor(self, response: Response) -> _Stream:
        """Begin a stream."""
        return _Stream(self.config)
