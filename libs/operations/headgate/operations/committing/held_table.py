"""A table that is kept as it was while its endpoints go on: of a pin, or of a rollout.

An operator who goes back to yesterday's routes wants yesterday's routes, and not yesterday's pods: addresses of pods
are given to others within minutes. So a table that is held follows the endpoints of every Service that it refers to,
also of those that no live route names any more; policies (balancing, TLS, checks) stay as they were.

What is needed to go on after a restart stands in the current revision itself: following only ever replaces endpoints.
The endpoints of today are those that the live table has; only what it lacks, or has no endpoints of because of what
its Service policy for, is resolved besides.
"""

from collections.abc import Iterable

import msgspec

from headgate.common.snapshot import Chunk
from headgate.common.stores.chunk_entries import entry_contents
from headgate.common.table import Upstream
from headgate.common.table.shards import is_for_shards
from headgate.common.table.upstream_key import UpstreamKey
from headgate.common.table_image import TableImage

REFUSES = "refuses requests: its annotation"
"""In the reason of an upstream that has no endpoints because of an annotation of its Service."""
_FOLLOWED = frozenset({"endpoints", "unavailable"})
_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class HeldTable:
    """The entries of a table that is kept, encoded: most of them are never looked at."""

    def __init__(self, image: TableImage) -> None:
        self.image = image
        self.apart: set[UpstreamKey] = set()
        """Upstreams whose endpoints the live table does not tell."""
        self._refusing = frozenset(
            key for key in image.keys("upstreams") if is_refusal(image.get("upstreams", key) or b"")
        )
        """Those that refuse requests go on with that."""

    @classmethod
    def of(cls, chunks: Iterable[Chunk]) -> "HeldTable":
        """Begin with the chunks of a revision."""
        held = list(chunks)
        image = TableImage(is_for_shards=any(chunk.kind == "hosts" and is_for_shards(chunk.prefix) for chunk in held))
        for chunk in held:
            for key, content in entry_contents(chunk.content).items():
                image.put_encoded(chunk.kind, key, content)
        return cls(image)

    def refresh(self, key: str, current: bytes | None) -> None:
        """Take the endpoints that an upstream has now, or the reason why it has none, from an encoded entry.

        Where that is None, or does not say, they are to come from elsewhere: the upstream is `apart`.
        """
        held = self.image.get("upstreams", key)
        if held is None or key in self._refusing:
            return
        if current is not None and not is_refusal(current):
            self.image.put_encoded("upstreams", key, with_endpoints_of(held, current))
            self.apart.discard(UpstreamKey.parse(key))
        else:
            self.apart.add(UpstreamKey.parse(key))

    def supply(self, key: UpstreamKey, current: bytes) -> None:
        """Take the endpoints of an upstream that is `apart`."""
        held = self.image.get("upstreams", str(key))
        if held is not None and key in self.apart:
            self.image.put_encoded("upstreams", str(key), with_endpoints_of(held, current))


def with_endpoints_of(held: bytes, current: bytes) -> bytes:
    """Return an encoded upstream with the endpoints of another one, in canonical form."""
    if held == current:
        return current
    old, new = _decode_fields(held), _decode_fields(current)
    parts = ((name, (new if name in _FOLLOWED else old).get(name)) for name in Upstream.model_fields)
    merged = b",".join(b'"%b":%b' % (name.encode(), bytes(raw)) for name, raw in parts if raw is not None)
    return b"{" + merged + b"}"


def is_refusal(entry: bytes) -> bool:
    """Whether an encoded upstream has no endpoints because of an annotation of its Service."""
    return REFUSES.encode() in entry
