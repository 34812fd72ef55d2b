"""What `status` reads of kinds from a real NATS server."""

from datetime import UTC, datetime

from fakes.stores.nats import real_bus
from headgate.common.deltas import ClusterAnnouncement, KindName, SyncMarker, SyncState
from headgate.common.stores.nats import NatsStores
from headgate.operations.status.kinds import read_kinds

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECRETS, SERVICES = KindName(group="", resource="secrets"), KindName(group="", resource="services")


async def test_the_last_word_on_each_kind_of_each_cluster_is_read() -> None:
    async with real_bus() as (_, bus):
        stores = await NatsStores.open(bus)
        assert await read_kinds(bus) == []
        for cluster in ("paris", "london"):
            await stores.log_writer.announce(
                ClusterAnnouncement(
                    cluster=cluster, source="kubernetes", instance="a", kinds=(SECRETS, SERVICES), announced_at=NOW
                )
            )
        for state, message in ((SyncState.SYNCED, ""), (SyncState.FORBIDDEN, "no right to list")):
            await stores.log_writer.mark_synced(
                SyncMarker(cluster="paris", kind=SECRETS, state=state, message=message, at=NOW)
            )
        found = {(kind.cluster, kind.name): (kind.state, kind.message) for kind in await read_kinds(bus)}
        assert found == {
            ("london", "secrets"): ("awaited", ""),
            ("london", "services"): ("awaited", ""),
            ("paris", "secrets"): (SyncState.FORBIDDEN, "no right to list"),
            ("paris", "services"): ("awaited", ""),
        }
