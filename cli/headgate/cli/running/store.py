"""Asking a running Headgate: the flags that say where it is, and a bound for the answer."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from headgate.cli.terminal.errors import Unreachable
from headgate.cli.up.data_dir import read_state
from headgate.common.service.settings import load_settings
from headgate.common.service.uncollected import uncollected
from headgate.common.stores.opening import Stores
from headgate.common.stores.settings import StoreSettings
from headgate.operations.connection import ANSWER_S, connected

_STORE_FLAG = "headgate.cli.running.store"

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])


def store_options(command: Command) -> Command:
    """Add the flags that say where the store is."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print JSON for programs."),
        click.option("--table", default="default", metavar="NAME", help="Table to ask about."),
        click.option(
            *("--data-dir",),
            type=click.Path(path_type=Path),
            default=".headgate",
            metavar="DIR",
            help="Data directory of the `headgate up` to ask.",
        ),
        click.option(
            *("--store",),
            default="",
            show_default=False,
            metavar="URL",
            help="Store of the tables: redis://HOST:PORT or nats; by default that of `up`, or HEADGATE_STORE.",
            # Kept in the context, as nothing but `ask_stores` needs it.
            expose_value=False,
            callback=lambda context, _, value: context.meta.update({_STORE_FLAG: value}),
        ),
        click.option(
            "--nats-url",
            default="",
            show_default=False,
            metavar="URL",
            help="NATS server to ask; by default that of `up`, or HEADGATE_NATS_URL.",
        ),
    ):
        command = option(command)
    return command


def ask_stores(
    nats_url: str,
    data_dir: Path,
    question: Callable[[Stores], Awaitable[T]],
    *,
    answer_s: float | None = ANSWER_S,
) -> T:
    """Connect, ask, close, return the answer.

    Args:
        nats_url: of the flag; empty: as a running `up` says, or the settings.
        data_dir: of an `up`.
        question: what to ask.
        answer_s: seconds that the answer may take; None: for ever.

    Raises:
        Unreachable: neither flags nor settings say where a server is.
        StoresUnreachable: no server is there, or it does not answer in time.
    """
    # What is listened to for ever is another matter: there the collector has something to find.
    with _silent_bus(), nullcontext() if answer_s is None else uncollected():
        return asyncio.run(_ask(_place(nats_url, data_dir), question, answer_s))


@contextmanager
def _silent_bus() -> Iterator[None]:
    """Silence the bus, which would log a failure before the command prints its one line about it."""
    logger = logging.getLogger("headgate")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


class _Place(NamedTuple):
    """Where to ask."""

    nats_url: str
    settings: StoreSettings
    """Everything else about NATS and the store."""


def _place(nats_url: str, data_dir: Path) -> _Place:
    """As the flags say, else a running `up`, else the services' own settings."""
    state = None if nats_url else read_state(data_dir)
    store = click.get_current_context().meta.get(_STORE_FLAG) or (state.store if state else "")
    settings = load_settings(StoreSettings, [f"--store={store}"] if store else [], program="headgate", summary="")
    if state is not None:
        return _Place(state.nats_url, settings)
    if not nats_url and "nats_url" not in settings.model_fields_set:
        raise Unreachable(f"no `headgate up` runs on {data_dir}: start one, or give --data-dir DIR or --nats-url URL")
    return _Place(nats_url or settings.nats_url, settings)


async def _ask(place: _Place, question: Callable[[Stores], Awaitable[T]], answer_s: float | None) -> T:
    async with connected(place.settings, place.nats_url, answer_s=answer_s) as stores:
        return await question(stores)
