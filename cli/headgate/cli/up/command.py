"""`headgate up`: flags, and the order of what happens."""

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import click

from headgate.cli.terminal.errors import ExitCode
from headgate.cli.terminal.group import TeachingCommand
from headgate.cli.up.banner import banner
from headgate.cli.up.data_dir import NATS_FOLDER, has_large_table, locked, nats_port, write_state
from headgate.cli.up.log_output import LogOutput
from headgate.cli.up.options import AccessLog, LogLevel, UpOptions, parse_demo_backend
from headgate.cli.up.plan import UpPlan, make_plan
from headgate.cli.up.ports import require_free, why_taken
from headgate.cli.up.process import ProcessSpec
from headgate.cli.up.readiness import wait_for_nats, wait_until_ready
from headgate.cli.up.route_flags import parse_route, write_routes
from headgate.cli.up.supervisor import Supervisor
from headgate.common.service.variables import unknown_variables
from headgate.operations.status.up_state import UpState

PORT = click.IntRange(1, 65535)
CONSOLE_PORT = 9090
GATEWAY_FIRST_S = 15.0
"""For a gateway to serve the table of before, until everything else starts all the same."""
_LOCAL = ("--demo-backend", "--console-port")
"""Flags of ports that are on loopback."""
FOLDER = click.Path(path_type=Path)


@click.command(
    cls=TeachingCommand,
    examples=[
        "headgate up --manifests examples/quickstart --demo-backend red=9101 --demo-backend blue=9102",
        "headgate up --route app.localhost=127.0.0.1:3000 --route app.localhost/api=127.0.0.1:4000",
        "headgate up --kubeconfig ~/.kube/config --context staging --cluster staging",
    ],
    read_more="docs/quickstart.md, docs/cli.md",
)
@click.option(
    "--route",
    multiple=True,
    metavar="HOST[/PATH]=ADDRESS:PORT",
    help="Serve an application without a manifest, by https://ADDRESS:PORT over TLS; repeatable.",
)
@click.option(
    "--manifests", type=FOLDER, multiple=True, metavar="PATH", help="Folder or file of manifests; repeatable."
)
@click.option("--kubeconfig", type=FOLDER, metavar="FILE", help="Follow the cluster of this kubeconfig instead.")
@click.option(
    "--context",
    default="",
    show_default=False,
    metavar="NAME",
    help="Context of the kubeconfig; by default its current one.",
)
@click.option(
    "--cluster", default="local", metavar="NAME", help="Name of the cluster, or of the folders, in routes and metrics."
)
@click.option("--http-port", type=PORT, metavar="PORT", default=8080, help="Port for plain HTTP.")
@click.option("--https-port", type=PORT, metavar="PORT", default=8443, help="Port for HTTPS.")
@click.option(
    "--admin-port",
    type=PORT,
    metavar="PORT",
    default=9080,
    help="Port of the gateway's /readyz and /metrics.",
)
@click.option(
    "--console-port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    default=CONSOLE_PORT,
    help="Port of the console, on loopback; 0 starts none.",
)
@click.option("--data-dir", type=FOLDER, default=".headgate", metavar="DIR", help="Folder for keys, log and tables.")
@click.option("--workers", type=click.IntRange(1, 256), metavar="N", default=1, help="Processes for traffic.")
@click.option(
    "--nats-url", default="", show_default=False, metavar="URL", help="Use this NATS server instead of starting one."
)
@click.option("--store", default="", show_default=False, metavar="URL", help="Keep tables in Redis: redis://HOST:PORT.")
@click.option(
    "--access-log", type=click.Choice(["combined", "json", "off"]), default="combined", help="Form of the access log."
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    help="Least severity that the services log.",
)
@click.option("--demo-backend", multiple=True, metavar="NAME=PORT", help="Start a demo backend too; repeatable.")
def up(
    route: tuple[str, ...],
    manifests: tuple[Path, ...],
    kubeconfig: Path | None,
    context: str,
    cluster: str,
    http_port: int,
    https_port: int,
    admin_port: int,
    console_port: int,
    data_dir: Path,
    workers: int,
    nats_url: str,
    store: str,
    access_log: AccessLog,
    log_level: LogLevel,
    demo_backend: tuple[str, ...],
) -> int:
    """Run all services on this machine, each a process of its own, until Ctrl-C.

    Serves what manifests, flags or a Kubernetes cluster say, and follows every change. A service that dies is
    started again. Settings that have no flag here are taken from HEADGATE_* variables, as `headgate gateway --help`
    and the others list them. Manifests may name this machine as a backend, objects of a cluster may not.
    """
    options = UpOptions(
        routes=tuple(map(parse_route, route)),
        manifests=manifests,
        kubeconfig=kubeconfig,
        context=context,
        cluster=cluster,
        http_port=http_port,
        https_port=https_port,
        admin_port=admin_port,
        console_port=_console_port(console_port),
        data_dir=data_dir.absolute(),
        workers=workers,
        nats_url=nats_url,
        store=store,
        access_log=access_log,
        log_level=log_level,
        environment=frozenset(name for name in os.environ if name.startswith("HEADGATE_")),
        demo_backends=tuple(parse_demo_backend(text) for text in demo_backend),
    )
    options.check()
    _drop_unknown_variables()
    return run(options)


def _console_port(port: int) -> int:
    """Return where the console is to be. One that nobody asked for is left out where something listens already."""
    source = click.get_current_context().get_parameter_source("console_port")
    if port and source is click.core.ParameterSource.DEFAULT and (reason := why_taken(port, "127.0.0.1")):
        click.echo(f"headgate: no console: port {port} {reason}; --console-port chooses another", err=True)
        return 0
    return port


def _drop_unknown_variables() -> None:
    """Name variables that no service reads, once instead of in the log of each."""
    if message := unknown_variables(os.environ):
        click.echo(f"headgate: {message}", err=True)
        for name in [name for name in os.environ if unknown_variables([name])]:
            del os.environ[name]


def run(options: UpOptions) -> int:
    """Run everything until a signal asks to end.

    Raises:
        UsageMistake: a port is taken, or the data directory is in use; nothing was started then.
    """
    from headgate.common.sealing import load_or_create_key_pair

    with locked(options.data_dir):
        host = os.environ.get("HEADGATE_HTTP_HOST", "0.0.0.0")  # noqa: S104 - where the gateway listens by default, too
        for flag, port in options.ports():
            require_free(flag, port, "127.0.0.1" if flag.startswith(_LOCAL) else host)
        load_or_create_key_pair(options.data_dir)
        if options.routes:
            write_routes(options.data_dir, options.routes)
        broker, nats_url = choose_broker(options)
        asyncio.run(_run(options, make_plan(options, nats_url, broker), nats_url))
    return ExitCode.OK


def choose_broker(options: UpOptions) -> tuple[ProcessSpec | None, str]:
    """Return the NATS server to start, None where one is given, and the address that services use."""
    if options.nats_url:
        return None, options.nats_url
    from headgate.cli.up.embedded_nats import EmbeddedNats, server_binary

    server = EmbeddedNats(options.data_dir / NATS_FOLDER, nats_port(options.data_dir))
    # Its folder and configuration are made again at every start: somebody may have removed them.
    return ProcessSpec(
        "nats", (server_binary(),), prepare=lambda: server.prepare()[1:], log_file=server.log_file
    ), server.url


async def _run(options: UpOptions, plan: UpPlan, nats_url: str) -> None:
    stopping = asyncio.Event()
    output = LogOutput(sys.stdout.buffer, width=max(map(len, [*plan.names, "headgate"])), colour=sys.stdout.isatty())
    own = output.channel("headgate")
    state = _StateFile(options, nats_url, plan)
    supervisor = Supervisor(plan, output, state.processes_changed)

    def stop() -> None:
        if stopping.is_set():
            supervisor.hurry()
        stopping.set()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stop)

    async def announce() -> None:
        await wait_until_ready(state.admin_url, own.say)
        state.became_ready()
        for line in await banner(options, state.admin_url, nats_url):
            own.say(line)

    announcement = asyncio.create_task(announce(), name="announcement")
    own.say("starting " + ", ".join(plan.names))
    try:
        gateway_first = _serve_known_table(state.admin_url) if has_large_table(options.data_dir) else None
        await supervisor.run(lambda: wait_for_nats(nats_url, own.say), stopping, gateway_first)
    finally:
        announcement.cancel()
    own.say("everything has ended")


def _serve_known_table(admin_url: str) -> Callable[[], Awaitable[None]]:
    """Return what waits until the table of before is served: reading all manifests again takes every core."""

    async def wait() -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(GATEWAY_FIRST_S):
                await wait_until_ready(admin_url, lambda told: None)

    return wait


class _StateFile:
    """Keeps `up.json` true."""

    def __init__(self, options: UpOptions, nats_url: str, plan: UpPlan) -> None:
        self._plan = plan
        self._data_dir = options.data_dir
        self.admin_url = f"http://127.0.0.1:{options.admin_port}"
        self._state = UpState(
            pid=os.getpid(),
            nats_url=nats_url,
            store=options.store,
            admin_url=self.admin_url,
            console_url=f"http://127.0.0.1:{options.console_port}" if options.console_port else "",
            http_port=options.http_port,
            https_port=options.https_port,
            processes={},
        )

    def processes_changed(self, running: dict[str, int], restarts: dict[str, int]) -> None:
        """Write what runs now."""
        admin_urls = {name: port.url for name, port in self._plan.admin_ports.items() if name in running}
        self._write(
            self._state.model_copy(update={"processes": running, "restarts": restarts, "admin_urls": admin_urls})
        )

    def became_ready(self) -> None:
        """Write that a table is served."""
        self._write(self._state.model_copy(update={"is_ready": True}))

    def _write(self, state: UpState) -> None:
        self._state = state
        write_state(self._data_dir, state)
