"""`headgate-gateway`: one gateway replica, as one process or as a parent with several workers."""

import sys
from collections.abc import Sequence

from headgate.common.errors import SettingsError
from headgate.common.service.service import ServiceContext, run_service
from headgate.common.service.settings import load_settings
from headgate.gateway.processes.workers import run_workers
from headgate.gateway.role import WorkerRole, role_of_this_process
from headgate.gateway.settings import GatewaySettings
from headgate.gateway.worker.process import run_worker

SUMMARY = (
    "Serve traffic by the current route table: follow the snapshot store, swap tables without dropping a request, "
    "start from the last good table on disk when the bus is away."
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a gateway until it is told to stop; return the exit code.

    Args:
        argv: flags without the program's name; None takes those of this process.
    """
    flags = list(sys.argv[1:] if argv is None else argv)
    try:
        settings = load_settings(GatewaySettings, flags, program="headgate gateway", summary=SUMMARY)
    except SettingsError as error:
        print(f"headgate gateway: {error}", file=sys.stderr)
        return 2
    role = role_of_this_process()
    is_parent = role is None and settings.workers > 1

    async def serve(context: ServiceContext) -> None:
        if is_parent:
            await run_workers(context, settings, flags)
        else:
            await run_worker(context, settings, role or WorkerRole())

    # The gateway has pages of its own on its admin site, so it makes that itself. The parent carries no traffic, and
    # uvloop's way of starting processes runs Python between fork and exec, where a lock of another thread is for ever.
    shell_settings = settings.model_copy(update={"admin_port": 0})
    return run_service("gateway", shell_settings, serve, use_uvloop=not is_parent)


if __name__ == "__main__":
    sys.exit(main())
