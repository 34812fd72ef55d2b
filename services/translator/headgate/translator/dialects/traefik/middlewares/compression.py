"""The middlewares `compress`, as `gzip`, `brotli` and `zstd` say it, and `contentType`."""

from typing import Any, Final

from headgate.common.plugins.transformation.compression import (
    BrotliConfig,
    CompressionConfig,
    GzipConfig,
    ZstdConfig,
)
from headgate.common.plugins.transformation.content_type import ContentTypeConfig
from headgate.common.table import PluginUse
from headgate.translator.dialects.traefik.middlewares.making import Making, Unfollowed
from headgate.translator.dialects.traefik.models.exchanges import Compress, ContentType

_PLUGINS: Final[dict[str, type[CompressionConfig]]] = {"gzip": GzipConfig, "br": BrotliConfig, "zstd": ZstdConfig}
_LEAST: Final = 1024
_GRPC: Final = "application/grpc"


def compress(written: Compress, making: Making) -> tuple[PluginUse, ...]:
    """Compress answers: a plugin for each coding, of which the client's choice counts."""
    if written.excluded_content_types and written.included_content_types:
        raise Unfollowed("InvalidValue", "includedContentTypes", "excludes excludedContentTypes: give one of the two")
    codings = written.encodings or tuple(_PLUGINS)
    if "encodings" in written.model_fields_set and not written.encodings:
        raise Unfollowed("InvalidValue", "encodings", f"must have one of {', '.join(_PLUGINS)}")
    unknown = next((coding for coding in codings if coding not in _PLUGINS), None)
    if unknown is not None:
        raise Unfollowed("InvalidValue", "encodings", f"must be of {', '.join(_PLUGINS)}, but has {unknown[:40]!r}")
    if written.default_encoding and written.default_encoding not in codings:
        message = f"must be one of the encodings, but is {written.default_encoding[:40]!r}"
        raise Unfollowed("InvalidValue", "defaultEncoding", message)
    others = tuple(coding for coding in _PLUGINS if coding not in codings)
    told: dict[str, Any] = {
        "types": [_media_type(text) for text in written.included_content_types] or ["*"],
        "excluded_types": [_GRPC, *(_media_type(text) for text in written.excluded_content_types)],
        "excludes_requests": True,
        "min_length": written.min_response_body_bytes or _LEAST,
        "http_version": "1.0",
        "vary_if_taken": True,
        "preference": [*dict.fromkeys(codings), *others],
        # Traefik takes gzip for clients that name it, and for no others.
        "default": None if written.default_encoding == "gzip" else written.default_encoding or None,
        "heeds_any": (written.default_encoding or codings[0]) != "gzip",
    }
    return tuple(PluginUse.of(_PLUGINS[coding].model_validate(told)) for coding in dict.fromkeys(codings))


def _media_type(text: str) -> str:
    return text.partition(";")[0].strip().lower()


def content_type(written: ContentType, making: Making) -> tuple[PluginUse, ...]:
    """Find the types of answers by their content, unless the deprecated field says not to."""
    return () if written.auto_detect is False else (PluginUse.of(ContentTypeConfig()),)
