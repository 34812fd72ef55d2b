"""Shards: one table divided over groups of gateways by the names of its hosts.

A name belongs to the shard that the first bits of its SHA-256 say, whatever listeners its virtual hosts are on. Hosts
with a wildcard, RE2 patterns and `*` take names of all shards, so every gateway holds these. A name is therefore
decided by the gateways of its shard alone: they know whether it has a host of its own, and which others take it.

Counts are powers of two, so that shards are halved or joined without any other host moving, and so that the shards of
gateways with different counts can be compared.

Rejected: ranges of names (`a` to `f`), which operators would have to balance; a ring with a position for each gateway,
as each start and end of a gateway would move hosts.
"""

import hashlib
from collections.abc import Iterable
from typing import Final, NamedTuple, Self

from headgate.common.table.hosts import is_pattern

MAX_SHARDS: Final = 1024
_PLACE_BITS: Final = 32
"""Of a digest, more than any shard looks at."""
BY_NAME: Final = "="
"""Begins the prefix of a chunk of hosts that are placed by name; the bits of the name's digest follow."""
OF_ALL: Final = "*"
"""Begins the prefix of a chunk of hosts that all shards hold."""


class Shard(NamedTuple):
    """One of so many shards."""

    number: int
    """From 0."""
    total: int

    def __str__(self) -> str:
        return f"{self.number}/{self.total}"

    @classmethod
    def parse(cls, written: str) -> Self:
        """Read what `str` writes.

        Raises:
            ValueError: it says what is wrong, and what would be right.
        """
        number_text, _, count_text = written.partition("/")
        if not (number_text.isdecimal() and count_text.isdecimal() and written.isascii()):
            raise ValueError("is no shard; write its number, a slash and how many there are: 0/4")
        number, count = int(number_text), int(count_text)
        if not 1 <= count <= MAX_SHARDS or count & (count - 1):
            raise ValueError(f"has {count} shards; the count is a power of two: 2, 4, 8, to {MAX_SHARDS}")
        if number >= count:
            raise ValueError(f"has no such number; numbers begin at 0, the last is {count - 1}")
        return cls(number, count)

    @property
    def bits(self) -> str:
        """The bits with which the digests of its names begin."""
        depth = self.total.bit_length() - 1
        return f"{self.number:0{depth}b}" if depth else ""

    def has_name(self, name: bytes) -> bool:
        """Whether a name belongs here: lower case, without port and trailing dot."""
        return _place(name) * self.total >> _PLACE_BITS == self.number

    def has_host(self, host: str) -> bool:
        """Whether gateways of this shard hold a host pattern."""
        return is_of_all(host) or self.has_name(host.encode())

    def needs_chunk(self, prefix: str) -> bool:
        """Whether a chunk of hosts may have some that are held here."""
        if not prefix.startswith(BY_NAME):
            return True
        bits = prefix.removeprefix(BY_NAME)
        return bits.startswith(self.bits) or self.bits.startswith(bits)


WHOLE: Final = Shard(0, 1)
"""What a gateway without a shard has."""


def is_of_all(host: str) -> bool:
    """Whether a host pattern takes names of all shards."""
    return host.startswith("*") or is_pattern(host)


def is_for_shards(prefix: str) -> bool:
    """Whether a chunk of hosts is of a table whose hosts are placed by name."""
    return prefix[:1] in (BY_NAME, OF_ALL)


def name_bits(name: str) -> str:
    """Return the bits by which the hosts of a name are placed."""
    return f"{_place(name.encode()):0{_PLACE_BITS}b}"


def missing_shards(live: Iterable[Shard]) -> tuple[Shard, ...]:
    """Return the shards of which none is live, of the greatest count that one of these has; none live: none missing."""
    known = set(live)
    count = max((shard.total for shard in known), default=1)
    covered: set[int] = set()
    for shard in known:
        size = count // shard.total
        covered.update(range(shard.number * size, (shard.number + 1) * size))
    return tuple(Shard(number, count) for number in range(count) if known and number not in covered)


def _place(name: bytes) -> int:
    return int.from_bytes(hashlib.sha256(name).digest()[: _PLACE_BITS // 8])
