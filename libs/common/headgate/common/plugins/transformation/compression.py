"""Configuration of `gzip`, `brotli` and `zstd`."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from headgate.common.plugins.config import PluginConfig


def _as_types(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


def _as_version(value: Any) -> Any:
    return str(value) if isinstance(value, float) else value


class CompressionConfig(PluginConfig):
    """Fields of all three."""

    types: Annotated[tuple[str, ...], BeforeValidator(_as_types)] = ("text/html",)
    """Content types; `*` for all, `text/*` for all of a kind."""
    excluded_types: tuple[str, ...] = ()
    min_length: int = Field(default=20, ge=1)
    """Bytes; shorter answers, if their length is known, are left as they are."""
    http_version: Annotated[Literal["1.0", "1.1"], BeforeValidator(_as_version)] = "1.1"
    """Clients that speak an older one get no compressed answers."""
    vary: bool = True
    """Add `Vary: Accept-Encoding`, which caches between here and the client need (Apache APISIX: only if asked for)."""

    vary_if_taken: bool = False
    """Add it to all answers to clients that take the coding, compressed or not, and to no others (Traefik)."""
    preference: tuple[Literal["gzip", "br", "zstd"], ...] = ("zstd", "br", "gzip")
    """Of codings that the client likes equally the first of these compresses. All compressing plugins of a route have
    the same."""
    default: Literal["gzip", "br", "zstd"] | None = None
    """Compresses for clients that send no `Accept-Encoding`, and for those that take anything (`*`)."""
    heeds_any: bool = True
    """`*` in `Accept-Encoding` stands for all codings."""
    excludes_requests: bool = False
    """Answers to requests that have a body of one of `excluded_types` are left as they are, too."""


class GzipBuffers(PluginConfig):
    """Taken for compatibility with Apache APISIX; there is nothing to set."""

    number: int = Field(default=32, ge=1)
    size: int = Field(default=4096, ge=1)


class GzipConfig(CompressionConfig, plugin="gzip"):
    """Fields of `gzip`."""

    comp_level: int = Field(default=1, ge=1, le=9)
    buffers: GzipBuffers = GzipBuffers()


class BrotliConfig(CompressionConfig, plugin="brotli"):
    """Fields of `brotli`."""

    comp_level: int = Field(default=6, ge=0, le=11)
    """10 and 11 are taken for 9: they take longer than others can wait."""
    mode: Literal[0, 1, 2] = 0
    """0 for anything, 1 for text, 2 for fonts."""
    lgwin: int = Field(default=19, ge=10, le=24)
    """Logarithm of the window's size, to base 2."""
    lgblock: int = Field(default=0, ge=0, le=24)


class ZstdConfig(CompressionConfig, plugin="zstd"):
    """Fields of `zstd`."""

    comp_level: int = Field(default=3, ge=1, le=19)
    """Those above 12 are taken for 12: they take longer than others can wait."""
