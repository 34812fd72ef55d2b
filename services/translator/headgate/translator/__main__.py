"""`headgate translator`: the translator as a service."""

import asyncio
import sys
from collections.abc import Callable, Sequence
from datetime import datetime

from headgate.common.bus.admission import Answering
from headgate.common.bus.connection import Bus
from headgate.common.bus.planning import PlanAnswering
from headgate.common.bus.resync import ask_for_resync
from headgate.common.errors import SettingsError
from headgate.common.leadership.leadership import Elector, Leadership, Sole, run_while_leading
from headgate.common.leadership.leases import translator_lease
from headgate.common.service import memory
from headgate.common.service.service import ServiceContext, leave, run_service
from headgate.common.service.settings import load_settings
from headgate.common.service.tasks import run_together
from headgate.common.stores import LeaseBoard
from headgate.common.stores.nats import NatsStores, Upkeep
from headgate.common.stores.opening import open_tables
from headgate.translator.admission.desk import AdmissionDesk
from headgate.translator.leading.housekeeping import keep_in_order
from headgate.translator.leading.stores import Stores
from headgate.translator.loop import TranslatorLoop
from headgate.translator.planning.desk import PlanningDesk
from headgate.translator.settings import TranslatorSettings

SUMMARY = (
    "Translate the routing resources of all clusters into one versioned route table. "
    "Run a pair for each table: one commits and the other follows, ready to go on where that one ends."
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the translator until it is told to stop, and end the process; return the exit code if it does not begin."""
    try:
        settings = load_settings(TranslatorSettings, argv, program="headgate translator", summary=SUMMARY)
    except SettingsError as error:
        print(f"headgate translator: {error}", file=sys.stderr)
        return 2

    async def serve(context: ServiceContext) -> None:
        await _serve(context, settings)

    leave(run_service("translator", settings, serve))


async def _serve(context: ServiceContext, settings: TranslatorSettings) -> None:
    memory.expect_growth()
    context.admin.add_readiness("table", lambda: "not connected to NATS yet")
    await run_together(_work(context, settings), context.stopping.wait())


async def _work(context: ServiceContext, settings: TranslatorSettings) -> None:
    name = f"headgate translator {settings.instance}"
    bus = await Bus.connect(settings.nats, name=name)
    try:
        stores = await NatsStores.open(bus, upkeep=Upkeep(replicas=settings.nats_replicas))
        context.admin.add_readiness("table", lambda: "not connected to the store of tables yet")
        async with open_tables(settings, stores, name) as tables:
            parts = Stores(
                *(stores.log_reader, stores.last_good, tables.snapshots, stores.statuses, tables.heartbeats),
                ask_watchers=lambda: ask_for_resync(bus),
                log_writer=stores.log_writer,
            )
            leadership = _leadership(
                settings, tables.leases, lambda: loop.readiness() is None, lambda: loop.inputs.uncommitted_since
            )
            loop = TranslatorLoop(parts, settings, leadership)
            context.admin.add_readiness("table", lambda: None if loop.awaits_first_cluster else loop.readiness())
            answering = Answering(bus, settings.table, AdmissionDesk(loop).judge)
            planning = PlanAnswering(bus, settings.table, PlanningDesk(loop).plan)
            try:
                await run_together(
                    run_while_leading(leadership, lambda: _order(settings, stores, loop)),
                    loop.run(),
                    memory.freeze_after(lambda: loop.readiness() is None, lambda: loop.is_idle),
                    leadership.run(),
                    run_while_leading(leadership, lambda: keep_in_order(stores, lambda: loop.inputs.clusters)),
                    answering.run(),
                    planning.run(),
                )
            finally:
                await leadership.release()
    finally:
        await bus.close()


async def _order(settings: TranslatorSettings, stores: NatsStores, loop: TranslatorLoop) -> None:
    """Order certificates, if there is a resolver."""
    if not settings.resolvers:
        await asyncio.Event().wait()
    # Its libraries take some megabytes.
    from headgate.translator.leading.acme.issuer import Issuer

    await Issuer(settings, stores.log_writer, loop).run()


def _leadership(
    settings: TranslatorSettings,
    leases: LeaseBoard,
    is_ready: Callable[[], bool],
    behind_since: Callable[[], datetime | None],
) -> Leadership:
    if not settings.leader_election:
        return Sole()
    name = translator_lease(settings.table)
    return Elector(leases, name, settings.instance, settings.timing, is_ready=is_ready, behind_since=behind_since)


if __name__ == "__main__":
    sys.exit(main())
