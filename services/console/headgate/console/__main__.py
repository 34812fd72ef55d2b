"""`headgate console`: the console as a service."""

import sys
from collections.abc import Sequence

from aiohttp import web

from headgate.common.bus.connection import Bus
from headgate.common.errors import SettingsError
from headgate.common.service.service import ServiceContext, run_service
from headgate.common.service.settings import load_settings
from headgate.common.service.tasks import run_together
from headgate.common.stores.nats import NatsStores, Upkeep
from headgate.common.stores.opening import combine, open_tables
from headgate.console.commands import Commands
from headgate.console.live.gateway_site import GatewaySite
from headgate.console.live.view import LiveView
from headgate.console.settings import ConsoleSettings
from headgate.console.site import make_site

SUMMARY = "Show what is served, by whom, and why: pages and an HTTP API. It is not on the path of traffic."


def main(argv: Sequence[str] | None = None) -> int:
    """Run the console until it is told to stop; return the exit code."""
    try:
        settings = load_settings(ConsoleSettings, argv, program="headgate console", summary=SUMMARY)
    except SettingsError as error:
        print(f"headgate console: {error}", file=sys.stderr)
        return 2

    async def serve(context: ServiceContext) -> None:
        await run_together(_work(context, settings), context.stopping.wait())

    return run_service("console", settings, serve)


async def _work(context: ServiceContext, settings: ConsoleSettings) -> None:
    name = f"headgate console {settings.instance}"
    context.admin.add_readiness("stores", lambda: "not connected to NATS yet")
    bus = await Bus.connect(settings.nats, name=name)
    try:
        stores = NatsStores(bus, upkeep=Upkeep(makes_streams=False))
        async with open_tables(settings, stores, name) as tables:
            gateway = GatewaySite(settings.gateway_url)
            view = LiveView(combine(stores, tables), settings.table, gateway, Commands(settings, settings.table))
            context.admin.add_readiness("stores", lambda: view.trouble or None)
            runner = web.AppRunner(
                make_site(view, settings), access_log=None, handle_signals=False, shutdown_timeout=1.0
            )
            await runner.setup()
            try:
                await _listen(runner, settings)
                await view.run()
            finally:
                await runner.cleanup()
                await gateway.close()
    finally:
        await bus.close()


async def _listen(runner: web.AppRunner, settings: ConsoleSettings) -> None:
    try:
        await web.TCPSite(runner, settings.console_host, settings.console_port).start()
    except OSError as error:
        raise SettingsError(
            f"console_port: {settings.console_port} cannot be bound on {settings.console_host}: "
            f"{error.strerror or error}"
        ) from error


if __name__ == "__main__":
    sys.exit(main())
