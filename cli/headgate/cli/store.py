"""Reading from the store and the boards of a running Headgate: where it is, and never waiting for ever."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from headgate.cli.errors import CommandError, Unreachable
from headgate.cli.up.data_dir import read_state
from headgate.common.bus import Bus
from headgate.common.errors import NotFound, StoreUnavailable
from headgate.common.settings import ServiceSettings, load_settings
from headgate.common.snapshot import Manifest, Pointer, decode_chunk
from headgate.common.stores import SnapshotStore
from headgate.common.stores.nats import NatsStores
from headgate.common.table import TableEntry

CONNECT_S = 3.0
"""A server that is there answers in milliseconds; somebody waits at the terminal."""
ANSWER_S = 30.0

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])


def store_options(command: Command) -> Command:
    """Add the flags that say where the store is."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print JSON for programs."),
        click.option("--table", default="default", metavar="NAME", help="Which table."),
        click.option(
            *("--data-dir",),
            type=click.Path(path_type=Path),
            default=".headgate",
            metavar="DIR",
            help="Of a `headgate up`; tells where its NATS server is.",
        ),
        click.option("--nats-url", default="", show_default=False, metavar="URL", help="NATS server to ask instead."),
    ):
        command = option(command)
    return command


def ask_stores(nats_url: str, data_dir: Path, question: Callable[[NatsStores], Awaitable[T]]) -> T:
    """Connect, ask, close, return the answer.

    Raises:
        Unreachable: no server there, or no answer in time.
    """
    # What goes wrong is told in one line by the error; the bus would tell it in its own words before.
    logging.getLogger("headgate").setLevel(logging.CRITICAL)
    return asyncio.run(_ask(nats_url or _url_of(data_dir), question))


def _url_of(data_dir: Path) -> str:
    """Where NATS is: as a running `up` says, else as the services' own settings do."""
    state = read_state(data_dir)
    if state is not None:
        return state.nats_url
    settings = load_settings(ServiceSettings, [], program="headgate", summary="")
    if "nats_url" not in settings.model_fields_set:
        raise Unreachable(f"no `headgate up` runs on {data_dir}: start one, or give --data-dir DIR or --nats-url URL")
    return settings.nats_url


async def _ask(url: str, question: Callable[[NatsStores], Awaitable[T]]) -> T:
    settings = load_settings(ServiceSettings, [], program="headgate", summary="")
    bus = await Bus.connect(replace(settings.nats, url=url), name="headgate", wait_s=CONNECT_S)
    try:
        if not bus.is_connected:
            raise Unreachable(f"no NATS server answers at {bus.address}")
        async with asyncio.timeout(ANSWER_S):
            return await question(await NatsStores.open(bus))
    except (StoreUnavailable, TimeoutError) as error:
        raise Unreachable(f"NATS at {bus.address} did not answer: {error or 'timeout'}") from error
    finally:
        await bus.close()


async def current_manifest(snapshots: SnapshotStore, table: str) -> tuple[Pointer, Manifest]:
    """Return what a table's pointer points to.

    Raises:
        CommandError: the table was never published.
    """
    pointer = await snapshots.read_pointer(table)
    if pointer is None:
        raise CommandError(f"table {table!r} was never published; `headgate status` says what is waited for")
    try:
        return pointer, await snapshots.get_manifest(table, pointer.version)
    except NotFound as error:
        raise CommandError(f"table {table!r}: revision {pointer.version} was collected meanwhile; ask again") from error


async def read_entries(snapshots: SnapshotStore, manifest: Manifest) -> list[TableEntry]:
    """Return all entries of a revision."""
    contents = await asyncio.gather(*(snapshots.get_chunk(name) for name in manifest.chunks))
    return [
        entry
        for name, content in zip(manifest.chunks, contents, strict=True)
        for entry in decode_chunk(name.kind, content)
    ]
