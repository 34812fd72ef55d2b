"""What the plugins `gzip`, `brotli` and `zstd` have in common: whether an answer is compressed, and with which of them.

Each announces itself in the response hooks; then the best of those that the client takes is asked for a filter. So the
client's preference counts, whatever the order of the plugins.

Left as they are: bodies that are encoded already, partial ones, those marked `no-transform` (RFC 9111 section
5.2.2.6), types that were not listed, short ones. A compressed answer has a weak ETag, as its bytes are others (RFC 9110
section 8.8.1), and every answer that could have been compressed has `Vary: Accept-Encoding`.
"""

from abc import abstractmethod
from functools import lru_cache
from typing import ClassVar, Protocol, TypeVar

from headgate.common.plugins.transformation.compression import CompressionConfig
from headgate.gateway.plugins.interface import BodyFilter, Headers, Plugin, PluginServices, Request, Response

_CANDIDATES = "compression.candidates"


class Compressor(Protocol):
    """One stream of a library."""

    def compress(self, data: bytes) -> bytes:
        """Take bytes, give some."""

    def flush(self) -> bytes:
        """Give all that was taken, so that the other side can read it."""

    def finish(self) -> bytes:
        """End the stream."""


C = TypeVar("C", bound=CompressionConfig)


class Compression(Plugin[C]):
    """Base of the three."""

    coding: ClassVar[str]
    """In Accept-Encoding and Content-Encoding."""
    is_shareable = True

    def __init__(self, config: C, services: PluginServices) -> None:
        super().__init__(config, services)
        self._types = tuple(name.lower() for name in config.types)
        self._excluded = tuple(name.lower() for name in config.excluded_types)
        self._takes_1_0 = config.http_version == "1.0"

    @abstractmethod
    def make_compressor(self, response: Response) -> Compressor:
        """Begin a stream."""

    def on_response(self, request: Request, response: Response) -> None:
        """Announce the coding if the answer may be compressed."""
        if self._is_excluded(request):
            return
        if response.is_bodiless:
            if self.config.vary_if_taken and request.method != "HEAD" and self._is_taken(request):
                response.headers.add_to_list("Vary", "Accept-Encoding")
            return
        may_compress = self._may_compress(request, response)
        if self.config.vary and (self._is_taken(request) if self.config.vary_if_taken else may_compress):
            response.headers.add_to_list("Vary", "Accept-Encoding")
        if not may_compress:
            return
        candidates = request.variables.setdefault(_CANDIDATES, [])
        assert isinstance(candidates, list)
        candidates.append(self.coding)

    def body_filter(self, request: Request, response: Response) -> BodyFilter | None:
        """Compress, if this is the coding of choice."""
        candidates = request.variables.get(_CANDIDATES)
        if not isinstance(candidates, list) or self.coding not in candidates or _is_encoded(response):
            return None
        config = self.config
        accepted = request.headers.get("Accept-Encoding")
        if accepted is not None and not config.heeds_any:
            accepted = accepted.replace("*", "")
        if chosen_coding(accepted, tuple(candidates), config.preference, config.default) != self.coding:
            return None
        headers = response.headers
        headers.set("Content-Encoding", self.coding)
        tag = headers.get("ETag")
        if tag is not None and not tag.startswith("W/"):
            headers.set("ETag", f"W/{tag}")
        for name in ("Accept-Ranges", "Content-MD5", "Digest", "Content-Digest"):
            headers.remove(name)
        is_streamed = response.body is None and response.content_length is None
        return _Compressing(self.make_compressor(response), flushing=is_streamed)

    def _is_taken(self, request: Request) -> bool:
        accepted, config = request.headers.get("Accept-Encoding"), self.config
        return chosen_coding(accepted, (self.coding,), config.preference, config.default) is not None

    def _is_excluded(self, request: Request) -> bool:
        if not self.config.excludes_requests:
            return False
        return _is_listed(_media_type(request.headers), self._excluded)

    def _may_compress(self, request: Request, response: Response) -> bool:
        headers = response.headers
        length = response.content_length if response.body is None else len(response.body)
        if response.status == 206 or _is_encoded(response) or (length is not None and length < self.config.min_length):
            return False
        if request.http_version == "1.0" and not self._takes_1_0:
            return False
        if "no-transform" in (headers.get("Cache-Control") or "").lower():
            return False
        media_type = _media_type(headers)
        return _is_listed(media_type, self._types) and not _is_listed(media_type, self._excluded)


def _is_encoded(response: Response) -> bool:
    return response.headers.get("Content-Encoding", "identity") not in ("", "identity")


def _media_type(headers: Headers) -> str:
    return (headers.get("Content-Type") or "").partition(";")[0].strip().lower()


def _is_listed(media_type: str, listed: tuple[str, ...]) -> bool:
    kind = f"{media_type.partition('/')[0]}/*"
    return "*" in listed or media_type in listed or kind in listed


@lru_cache(1024)
def _qualities(accepted: str) -> dict[str, float]:
    """Read Accept-Encoding (RFC 9110 section 12.5.3): coding to quality; malformed members do not count."""
    qualities = {}
    for member in accepted.lower().split(","):
        coding, *parameters = (part.strip() for part in member.split(";"))
        quality = 1.0
        for parameter in parameters:
            name, _, value = parameter.partition("=")
            if name.strip() == "q":
                try:
                    quality = min(max(float(value), 0.0), 1.0)
                except ValueError:
                    quality = 0.0
        if coding:
            qualities["gzip" if coding == "x-gzip" else coding] = quality
    return qualities


@lru_cache(1024)
def chosen_coding(
    accepted: str | None, candidates: tuple[str, ...], preference: tuple[str, ...], default: str | None = None
) -> str | None:
    """Choose the coding that a client likes best; None if it takes none, or likes the plain answer better.

    Args:
        accepted: its Accept-Encoding, if it sent one.
        candidates: codings that an answer may have.
        preference: of codings that it likes equally.
        default: for clients that do not say what they like.
    """
    if accepted is None:
        return default if default in candidates else None
    qualities = _qualities(accepted)
    others = qualities.get("*", 0.0)
    order = (default, *preference) if default is not None and "*" in qualities else preference
    ranked = sorted(set(candidates), key=order.index)
    best = max(ranked, key=lambda coding: qualities.get(coding, others), default=None)
    if best is None:
        return None
    quality = qualities.get(best, others)
    return best if quality > 0 and quality >= qualities.get("identity", 0.0) else None


class _Compressing(BodyFilter):
    def __init__(self, stream: Compressor, *, flushing: bool) -> None:
        self._stream = stream
        self._flushing = flushing
        """An answer of unknown length may be one that is written bit by bit: what came goes out."""

    def feed(self, data: bytes) -> bytes:
        out = self._stream.compress(data)
        return out + self._stream.flush() if self._flushing and data else out

    def finish(self) -> bytes:
        return self._stream.finish()
