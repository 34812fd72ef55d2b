"""`gzip`: compression that every client understands."""

import zlib

from pydantic import Field

from headgate.gateway.plugins.compression import Compression, CompressionConfig
from headgate.gateway.plugins.interface import PluginConfig, Response


class GzipBuffers(PluginConfig):
    """Taken for compatibility with Apache APISIX; there is nothing to set."""

    number: int = Field(default=32, ge=1)
    size: int = Field(default=4096, ge=1)


class GzipConfig(CompressionConfig):
    """Fields of `gzip`."""

    comp_level: int = Field(default=1, ge=1, le=9)
    buffers: GzipBuffers = GzipBuffers()


class _Stream:
    def __init__(self, level: int) -> None:
        self._deflate = zlib.compressobj(level, zlib.DEFLATED, zlib.MAX_WBITS | 16)

    def compress(self, data: bytes) -> bytes:
        return self._deflate.compress(data)

    def flush(self) -> bytes:
        return self._deflate.flush(zlib.Z_SYNC_FLUSH)

    def finish(self) -> bytes:
        return self._deflate.flush()


class Gzip(Compression[GzipConfig]):
    """Compresses with gzip (RFC 1952)."""

    name = "gzip"
    order = 995
    Config = GzipConfig
    coding = "gzip"

    def make_compressor(self, response: Response) -> _Stream:
        """Begin a stream."""
        return _Stream(self.config.comp_level)
