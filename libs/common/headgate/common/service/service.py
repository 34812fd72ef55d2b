"""What every service's process does around its own work: logs, traces, admin site, signals, exit code."""

import asyncio
import logging
import os
import platform
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn

from prometheus_client import Gauge

from headgate.common.errors import HeadgateError, SettingsError
from headgate.common.release import release
from headgate.common.service.admin import AdminSite, Health
from headgate.common.service.logs import configure_logging
from headgate.common.service.settings import ServiceSettings
from headgate.common.service.tasks import cancel
from headgate.common.service.telemetry import configure_telemetry, shutdown_telemetry
from headgate.common.service.variables import unknown_variables

_log = logging.getLogger(__name__)
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True, slots=True)
class ServiceContext:
    """What a service's main is given."""

    settings: ServiceSettings
    stopping: asyncio.Event
    """Set by the first SIGTERM or SIGINT: finish, within `grace_s`."""
    admin: AdminSite
    """Started already unless the admin port is 0; routes are added by `run_service`'s `prepare`."""
    health: Health
    grace_s: float


BUILD_INFO = Gauge("headgate_build_info", "1, with the release that runs", ["service", "version", "python"])

Main = Callable[[ServiceContext], Awaitable[None]]


def run_service(
    name: str,
    settings: ServiceSettings,
    main: Main,
    *,
    use_uvloop: bool = False,
    prepare: Callable[[AdminSite], None] | None = None,
) -> int:
    """Run a service until it returns or is told to stop; return the process's exit code.

    The first SIGTERM or SIGINT sets `context.stopping`, and readiness fails from then on; a main that has not returned
    `grace_s` seconds later, or when a second signal comes, is cancelled.

    Args:
        name: of the service, in logs, traces and errors.
        settings: what it was told.
        main: its work.
        use_uvloop: run on uvloop.
        prepare: adds pages to the admin site before it starts.

    Returns:
        0 when main returned, 1 when it raised or had to be cancelled.
    """
    configure_logging(name, settings.log_level, settings.log_format)
    configure_telemetry(name, settings.otlp_endpoint)
    if unknown := unknown_variables(os.environ):
        _log.warning(unknown)
    BUILD_INFO.labels(name, release(), platform.python_version()).set(1)
    end_export: Callable[[], None] | None = None
    try:
        end_export = _export_metrics(name, settings.otlp_endpoint)
        with asyncio.Runner(loop_factory=_uvloop_factory() if use_uvloop else None) as runner:
            return runner.run(_serve(settings, main, prepare))
    except HeadgateError as error:
        _log.error(str(error))
    except Exception:
        _log.exception("ended by an unexpected error")
    finally:
        if end_export is not None:
            end_export()
        shutdown_telemetry()
    return 1


def leave(code: int) -> NoReturn:
    """End the process with an exit code, without taking it apart object by object.

    Everything that has an end of its own has come to it by then. What is left is memory: with 30,000 Ingresses the
    interpreter would go through it for more than five seconds, and a Pod that is replaced would wait.
    """
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # nobody reads it any more
            stream.flush()
    os._exit(code)


def _export_metrics(name: str, otlp_endpoint: str) -> Callable[[], None] | None:
    """Begin to export metrics, if that is wanted; return what ends it."""
    if not otlp_endpoint:
        return None
    # Imported here: most processes never need the SDK's metrics.
    from headgate.common.service.metrics_export import otlp_exporter, start_metrics_export

    return start_metrics_export(name, otlp_exporter(otlp_endpoint))


def _uvloop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    import uvloop

    return uvloop.new_event_loop


async def _serve(settings: ServiceSettings, main: Main, prepare: Callable[[AdminSite], None] | None) -> int:
    stopping, hurry = asyncio.Event(), asyncio.Event()
    admin = AdminSite(settings.admin_host, settings.admin_port)
    admin.add_readiness("stopping", lambda: "asked to stop" if stopping.is_set() else None)
    if prepare:
        prepare(admin)
    _listen_to_signals(stopping, hurry)
    if settings.admin_port:
        await _start(admin, settings)
    try:
        context = ServiceContext(settings, stopping, admin, admin.health, settings.grace_s)
        return await _run_main(context, main, hurry)
    finally:
        await admin.stop()


async def _start(admin: AdminSite, settings: ServiceSettings) -> None:
    try:
        await admin.start()
    except OSError as error:
        raise SettingsError(
            f"admin_port: {settings.admin_port} cannot be bound on {settings.admin_host}: {error.strerror or error}"
        ) from error


def _listen_to_signals(stopping: asyncio.Event, hurry: asyncio.Event) -> None:
    def stop() -> None:
        (hurry if stopping.is_set() else stopping).set()

    for number in _SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, stop)


async def _run_main(context: ServiceContext, main: Main, hurry: asyncio.Event) -> int:
    work = asyncio.ensure_future(main(context))
    stopped = asyncio.create_task(context.stopping.wait())
    hurried = asyncio.create_task(hurry.wait())
    try:
        await asyncio.wait({work, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            _log.info("stopping")
            await asyncio.wait({work, hurried}, timeout=context.grace_s, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            work.result()
            return 0
        _log.warning("cancelled: not finished within the grace period", extra={"grace_s": context.grace_s})
        return 1
    finally:
        await cancel(work, stopped, hurried)
