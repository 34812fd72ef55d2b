"""What a gateway keeps of its table if it serves a shard of it.

Hosts are kept by their names. Upstreams and groups of backends are kept as long as an entry refers to them that is
kept itself; references are counted by chunk, so that a revision costs what it changes. Certificates are kept for names
of the shard, and for listeners and streams, which all gateways have. Entries of all other kinds are few, and are kept.

References are found in encoded entries by the names of their fields, wherever they are: routes, canaries, mirrors and
the configurations of plugins have them. That may find more than is meant, and never less; a test holds the names to
what the models have.

Rejected: keeping what compiled routes hold. Consumers' plugins take their upstreams when they are first used, and
routes of requests under way would keep theirs.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from headgate.common.snapshot import ChunkName
from headgate.common.table import OTHER_NAMES, EntryKind
from headgate.common.table.shards import Shard
from headgate.gateway.table.chunks import ALL_ENTRIES, ChunkStage, Reference, Selection

REFERRING_FIELDS: Final[Mapping[str, EntryKind]] = {
    "upstream": "upstreams",
    "upstream_id": "upstreams",
    "group": "backend_groups",
}
"""Fields of entries, and of the configurations of plugins, that have the key of an entry."""
_REFERENCE: Final = re.compile(rb'"(%b)":("(?:[^"\\]|\\.)*")' % "|".join(REFERRING_FIELDS).encode())
_CHOSEN: Final = frozenset[EntryKind]({"backend_groups", "upstreams", "certificates"})
"""Kinds of which is kept what others refer to."""
_NAME: Final = "certificates by name"
"""The kind of a reference to whatever certificate a server name has; an empty one refers to all."""
Stages = Mapping[EntryKind, ChunkStage[Any, Any]]


class _Host(msgspec.Struct):
    host: str


class _Keyed(msgspec.Struct):
    key: str


class _Certificate(msgspec.Struct):
    key: str
    server_names: tuple[str, ...]


class _Listener(msgspec.Struct):
    certificates: tuple[str, ...] = ()


class _Stream(msgspec.Struct):
    terminate: bool = False
    server_names: tuple[str, ...] = ()


_decode_host = msgspec.json.Decoder(_Host).decode
_decode_keyed = msgspec.json.Decoder(_Keyed).decode
_decode_certificate = msgspec.json.Decoder(_Certificate).decode
_decode_listener = msgspec.json.Decoder(_Listener).decode
_decode_stream = msgspec.json.Decoder(_Stream).decode
_decode_text = msgspec.json.Decoder(str).decode


def references_of(raw: bytes) -> Iterator[Reference]:
    """Yield what an encoded entry refers to by fields of `REFERRING_FIELDS`."""
    for field, text in _REFERENCE.findall(raw):
        yield REFERRING_FIELDS[field.decode()], _decode_text(text)


def _references_of_listener(raw: bytes) -> Iterator[Reference]:
    yield from references_of(raw)
    for key in _decode_listener(raw).certificates:
        yield "certificates", key


def _references_of_stream(raw: bytes) -> Iterator[Reference]:
    yield from references_of(raw)
    stream = _decode_stream(raw)
    if stream.terminate:
        for name in stream.server_names or ("",):
            yield _NAME, "" if _is_wildcard(name) else name


def _is_wildcard(name: str) -> bool:
    return name[:1] in ("*", "~")


class ShardPart:
    """The part of a table that a gateway keeps, as it is served.

    Args:
        shard: of the gateway.
        certificate: key of one that is kept in any case.
    """

    def __init__(self, shard: Shard, certificate: str = "") -> None:
        self.shard = shard
        self._certificate = certificate
        self.counts: Counter[Reference] = Counter()
        """In how many chunks an entry is referred to."""

    def needs(self, name: ChunkName) -> bool:
        """Whether a chunk may have entries that are kept."""
        return name.kind != "hosts" or self.shard.needs_chunk(name.prefix)

    def keeps_host(self, raw: bytes) -> bool:
        """Tell whether an encoded virtual host is kept."""
        return self.shard.has_host(_decode_host(raw).host)

    def keeps_certificate(self, raw: bytes, is_referred_to: Callable[[Reference], bool]) -> bool:
        """Tell whether an encoded certificate is kept."""
        certificate = _decode_certificate(raw)
        if certificate.key == self._certificate or is_referred_to(("certificates", certificate.key)):
            return True
        return is_referred_to((_NAME, "")) or any(
            self._has_server_name(name) or is_referred_to((_NAME, name)) for name in certificate.server_names
        )

    def _has_server_name(self, name: str) -> bool:
        # Names with a space are those of challenges, which authorities ask any gateway.
        return name == OTHER_NAMES or " " in name or _is_wildcard(name) or self.shard.has_name(name.encode())


class PartUpdate:
    """The way from one revision's part to the next one's."""

    def __init__(self, part: ShardPart) -> None:
        self._part = part
        self._change: Counter[Reference] = Counter()

    def needs(self, name: ChunkName) -> bool:
        """Whether a chunk may have entries that are kept."""
        return self._part.needs(name)

    def selection(self, kind: EntryKind) -> Selection:
        """Return what is kept of a kind."""
        if kind == "hosts":
            return Selection(self._part.keeps_host, references_of)
        if kind == "certificates":
            return Selection(lambda raw: self._part.keeps_certificate(raw, self._is_referred_to))
        if kind == "upstreams":
            return Selection(lambda raw: self._is_referred_to(("upstreams", _decode_keyed(raw).key)))
        if kind == "backend_groups":
            return Selection(
                lambda raw: self._is_referred_to(("backend_groups", _decode_keyed(raw).key)), references_of
            )
        return _REFERRING.get(kind, ALL_ENTRIES)

    def _is_referred_to(self, reference: Reference) -> bool:
        return self._part.counts[reference] + self._change[reference] > 0

    def rounds(self, stages: Stages) -> Iterator[Sequence[ChunkName]]:
        """Yield the chunks to be added; those of each round are to be there before the next one is asked for."""
        yield sum((stage.needed for kind, stage in stages.items() if kind not in _CHOSEN), ())
        yield from self._close_groups(stages)
        arrived, gone = self._news("upstreams")
        upstreams = stages["upstreams"]
        upstreams.release(gone)
        yield (*upstreams.needed, *upstreams.require(arrived))
        certificates = stages["certificates"]
        yield (*certificates.needed, *self._certificates(certificates))

    def _close_groups(self, stages: Stages) -> Iterator[Sequence[ChunkName]]:
        """Yield the chunks of groups until all are there that groups within groups refer to."""
        groups = stages["backend_groups"]
        self._recount(stages)
        names = groups.needed
        while True:
            yield names
            self._recount(stages)
            arrived, gone = self._news("backend_groups")
            is_released = groups.release(gone)
            if is_released:
                self._recount(stages)
            names = groups.require(arrived)
            if not names and not is_released:
                return

    def _certificates(self, stage: ChunkStage[Any, Any]) -> Iterator[ChunkName]:
        if self._news(_NAME)[0]:
            yield from stage.require_all()
        else:
            yield from stage.require(self._news("certificates")[0])

    def _recount(self, stages: Stages) -> None:
        self._change = Counter()
        for stage in stages.values():
            before, after = stage.references
            for references in before:
                self._change.subtract(references)
            for references in after:
                self._change.update(references)

    def _news(self, kind: str) -> tuple[list[str], list[str]]:
        """Return the keys of a kind that are referred to now, and were not, and the other way round."""
        arrived, gone = [], []
        for (of, key), change in self._change.items():
            if of == kind and change:
                before = self._part.counts[of, key]
                if before <= 0 < before + change:
                    arrived.append(key)
                elif before + change <= 0 < before:
                    gone.append(key)
        return arrived, gone

    def commit(self) -> None:
        """Make it the part that is served."""
        counts = self._part.counts
        counts.update(self._change)
        for reference in [reference for reference in self._change if not counts[reference]]:
            del counts[reference]


_REFERRING: Final[Mapping[EntryKind, Selection]] = {
    "listeners": Selection(refer=_references_of_listener),
    "streams": Selection(refer=_references_of_stream),
    **{kind: Selection(refer=references_of) for kind in ("consumers", "consumer_groups", "challenges")},
}
"""Kinds that all gateways keep, and that refer to others."""
