"""`brotli`: compresses text better than gzip, for all browsers over HTTPS."""

from typing import Literal

import brotli
from pydantic import Field

from headgate.gateway.plugins.compression import Compression, CompressionConfig
from headgate.gateway.plugins.interface import Response

_MODES = (brotli.MODE_GENERIC, brotli.MODE_TEXT, brotli.MODE_FONT)


class BrotliConfig(CompressionConfig):
    """Fields of `brotli`."""

    comp_level: int = Field(default=5, ge=0, le=11)
    """From 9 on it costs more time than a gateway has."""
    mode: Literal[0, 1, 2] = 0
    """0 for anything, 1 for text, 2 for fonts."""
    lgwin: int = Field(default=19, ge=10, le=24)
    """Logarithm of the window's size, to base 2."""
    lgblock: int = Field(default=0, ge=0, le=24)


class _Stream:
    def __init__(self, config: BrotliConfig) -> None:
        self._compressor = brotli.Compressor(
            mode=_MODES[config.mode], quality=config.comp_level, lgwin=config.lgwin, lgblock=config.lgblock
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
