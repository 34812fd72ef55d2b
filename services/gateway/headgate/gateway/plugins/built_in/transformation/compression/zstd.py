"""`zstd`: as small as Brotli's middle levels for the time of gzip's low ones; newer browsers take it."""

from typing import Final

import zstandard

from headgate.common.plugins.transformation.compression import ZstdConfig
from headgate.gateway.plugins.built_in.transformation.compression.compression import Compression
from headgate.gateway.plugins.interface import Response

MAX_LEVEL: Final = 12
"""Above it 64 KiB, which are compressed at once, take tens of milliseconds."""


class _Stream:
    def __init__(self, level: int) -> None:
        self._stream = zstandard.ZstdCompressor(level=level).compressobj()

    def compress(self, data: bytes) -> bytes:
        return self._stream.compress(data)

    def flush(self) -> bytes:
        return self._stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)

    def finish(self) -> bytes:
        return self._stream.flush(zstandard.COMPRESSOBJ_FLUSH_FINISH)


class Zstd(Compression[ZstdConfig]):
    """Compresses with Zstandard (RFC 8878)."""

    name = "zstd"
    order = 997
    Config = ZstdConfig
    coding = "zstd"

    def make_compressor(self, response: Response) -> _Stream:
        """Begin a stream."""
        return _Stream(min(self.config.comp_level, MAX_LEVEL))
