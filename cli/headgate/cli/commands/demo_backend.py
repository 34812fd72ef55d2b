"""`headgate demo-backend`: a small server whose answer says what reached it.

Made for trying things out: which backend answered, which headers a gateway added, what a slow or failing backend
looks like from outside.
"""

import asyncio
import json
import signal

import click
from aiohttp import web

from headgate.cli.terminal.errors import UsageMistake
from headgate.cli.terminal.group import TeachingCommand

BODY_LIMIT = 64 * 1024 * 1024
"""Bytes of a request's body that are read before a 413: plenty for trying uploads, too few to fill a laptop."""


@click.command(
    cls=TeachingCommand,
    examples=[
        "headgate demo-backend --name red --port 9101",
        "headgate demo-backend --name slow --port 9102 --delay-ms 800",
        "headgate demo-backend --name broken --port 9103 --status 503",
    ],
    read_more="docs/quickstart.md",
)
@click.option("--name", default="demo", help="Name in its answers.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    default=9101,
    help="Port to listen on; 0 takes a free one.",
)
@click.option("--host", default="127.0.0.1", help="Address to listen on.")
@click.option("--delay-ms", type=click.IntRange(0), metavar="MS", default=0, help="Wait before each answer.")
@click.option(
    "--status",
    type=click.IntRange(200, 599),
    metavar="CODE",
    default=200,
    help="Status of each answer.",
)
def demo_backend(name: str, port: int, host: str, delay_ms: int, status: int) -> None:
    """Run a small HTTP server that answers every request with what it received, as JSON.

    GET /healthz always answers 200 at once.
    """
    asyncio.run(_serve(build_app(name, delay_ms=delay_ms, status=status), host, port, name))


def build_app(name: str, *, delay_ms: int = 0, status: int = 200) -> web.Application:
    """Make the application, without a socket."""

    async def echo(request: web.Request) -> web.Response:
        body = await request.read()
        if delay_ms:
            await asyncio.sleep(delay_ms / 1000)
        answer = {
            "name": name,
            "method": request.method,
            "path": request.raw_path,
            "host": request.headers.get("Host", ""),
            "headers": dict(request.headers),
            "body_bytes": len(body),
        }
        return web.Response(status=status, text=json.dumps(answer, indent=2) + "\n", content_type="application/json")

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    app = web.Application(client_max_size=BODY_LIMIT)
    app.router.add_get("/healthz", healthz)
    app.router.add_route("*", "/{path:.*}", echo)
    return app


async def _serve(app: web.Application, host: str, port: int, name: str) -> None:
    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=2)
    await runner.setup()
    try:
        await _start(web.TCPSite(runner, host, port), host, port)
        address = runner.addresses[0]
        click.echo(f"demo backend {name!r} listens on http://{address[0]}:{address[1]}/")
        await stopping.wait()
    finally:
        await runner.cleanup()


async def _start(site: web.TCPSite, host: str, port: int) -> None:
    try:
        await site.start()
    except OSError as error:
        raise UsageMistake(f"cannot listen on {host}:{port}: {error.strerror}; choose another --port") from error
