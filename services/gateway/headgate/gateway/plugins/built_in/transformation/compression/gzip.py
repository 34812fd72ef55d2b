"""`gzip`: compression that every client understands."""

import zlib

from headgate.common.plugins.transformation.compression import GzipConfig
from headgate.gateway.plugins.built_in.transformation.compression.compression import Compression
from headgate.gateway.plugins.interface import Response


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
