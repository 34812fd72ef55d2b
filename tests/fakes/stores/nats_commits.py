"""Writers of tables on a real NATS server that end, or are overtaken, at any message of a commit."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from fakes.stores.chunks import content_of
from fakes.stores.faulty_nats import NOW
from headgate.common.bus.connection import Bus
from headgate.common.errors import StoreUnavailable
from headgate.common.snapshot import Chunk, Manifest, Pointer, Version, digest_of
from headgate.common.stores.nats import Upkeep
from headgate.common.stores.nats.answers import Ack
from headgate.common.stores.nats.jetstream import Outgoing, Stream
from headgate.common.stores.nats.keys import TABLES_BUCKET, pointer_key
from headgate.common.stores.nats.snapshots import NatsSnapshotStore, bucket_config
from headgate.common.stores.revision_change import RevisionChange

POINTER = pointer_key("default")


def hosts_chunk(name: str, prefix: str = "") -> Chunk:
    content = f'[{{"host":"{name}"}}]'.encode()
    return Chunk("hosts", prefix, digest_of(content), content)


def manifest(epoch: int, revision: int, *used: Chunk) -> Manifest:
    names = tuple(chunk.name for chunk in used)
    return Manifest(table="default", version=Version(epoch, revision), created_at=NOW, chunks=names)


A, B, C = map(hosts_chunk, "abc")


class Watched(Stream):
    """A stream of which each message is shown before it goes, and which says afterwards what it had to say."""

    def __init__(
        self,
        bus: Bus,
        before: Callable[[Outgoing], Awaitable[Any]],
        after: Callable[[Outgoing], Awaitable[Any]] | None = None,
    ) -> None:
        super().__init__(bus, bucket_config(TABLES_BUCKET, "Tables"), Upkeep())
        self._before, self._after = before, after

    async def publish(self, message: Outgoing) -> Ack:
        await self._before(message)
        ack = await super().publish(message)
        if self._after is not None:
            await self._after(message)
        return ack

    async def publish_pipelined(self, messages: Sequence[Outgoing]) -> list[Ack]:
        for message in messages:
            await self._before(message)
        return await super().publish_pipelined(messages)


def only(*parts: str) -> Callable[[Outgoing], Awaitable[None]]:
    """Let messages of these kinds pass: the writer ends before any other."""

    async def check(message: Outgoing) -> None:
        if message.subject.split(".")[2] not in parts:
            raise StoreUnavailable("the writer ends here")

    return check


async def lose_answer(message: Outgoing) -> None:
    if message.subject == POINTER:
        raise StoreUnavailable("the answer is lost")


async def passing(_: Outgoing) -> None:
    """Let everything pass."""


async def commit_first(store: NatsSnapshotStore) -> Pointer:
    await store.put_chunks([A])
    return await store.commit(manifest(1, 1, A), None)


def change_of(chunk: Chunk, parent: Chunk = A, revision: int = 1) -> RevisionChange:
    return RevisionChange(manifest(1, revision, parent), [chunk])


async def keys_of(bus: Bus) -> set[str]:
    return await Watched(bus, passing).subjects(f"$KV.{TABLES_BUCKET}.>")


async def read_all(bus: Bus) -> tuple[Manifest, list[bytes]]:
    """Read the current revision as a gateway does that has just started."""
    reader = NatsSnapshotStore(Watched(bus, passing))
    pointer = await reader.read_pointer("default")
    assert pointer is not None
    found = await reader.manifest_of(pointer)
    assert found.version == pointer.version
    return found, [await content_of(reader, name) for name in found.chunks]
