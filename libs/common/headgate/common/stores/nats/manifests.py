"""Manifests in the tables' bucket, and what has a SHA-256 for its key there: chunks, and pages of manifests."""

from headgate.common.errors import NotFound
from headgate.common.snapshot import Version
from headgate.common.stores.nats.answers import StreamMissing
from headgate.common.stores.nats.jetstream import Stream
from headgate.common.stores.nats.keys import chunk_key, manifest_key
from headgate.common.stores.paged_manifests import PagedManifests


async def stored_content(stream: Stream, digest: str) -> bytes | None:
    """Return a chunk or a page as it is stored; any replica may answer, the leader is asked when that one lacks it."""
    try:
        data = await stream.last_direct(chunk_key(digest))
        if data is None:
            stored = await stream.last(chunk_key(digest))
            data = stored.data if stored else None
    except StreamMissing:
        await stream.confirm_missing()
        return None
    return data


async def stored_manifest(stream: Stream, table: str, version: Version) -> bytes | None:
    """Return a manifest as it is stored; None if there is none."""
    try:
        stored = await stream.last(manifest_key(table, version))
    except StreamMissing:
        await stream.confirm_missing()
        return None
    return stored.data if stored is not None else None


def manifests_of(stream: Stream) -> PagedManifests:
    """Return what reads and writes the bucket's manifests."""

    async def fetch(digest: str) -> bytes:
        if (data := await stored_content(stream, digest)) is None:
            raise NotFound(f"page {digest[:12]} of a manifest is not in the store")
        return data

    return PagedManifests(fetch)
