"""Manifests in the tables' bucket."""

from collections.abc import Sequence

from headgate.common.snapshot import Version
from headgate.common.stores.found import all_found
from headgate.common.stores.nats.answers import StreamMissing
from headgate.common.stores.nats.contents import Contents
from headgate.common.stores.nats.jetstream import Stream
from headgate.common.stores.nats.keys import manifest_key
from headgate.common.stores.paged_manifests import PagedManifests


async def stored_manifest(stream: Stream, table: str, version: Version) -> bytes | None:
    """Return a manifest as it is stored; None if there is none."""
    try:
        stored = await stream.last(manifest_key(table, version))
    except StreamMissing:
        await stream.confirm_missing()
        return None
    return stored.data if stored is not None else None


def manifests_of(contents: Contents) -> PagedManifests:
    """Return what reads and writes the bucket's manifests."""

    async def fetch(digests: Sequence[str]) -> Sequence[bytes]:
        return all_found("page {} of a manifest", digests, await contents.find(digests))

    return PagedManifests(fetch)
