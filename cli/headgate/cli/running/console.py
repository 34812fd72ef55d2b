"""Asking a console, which has heard already what gateways say each second."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import click

from headgate.cli.terminal.errors import CommandError, Unreachable, UsageMistake
from headgate.cli.up.data_dir import read_state

ASK_S: Final = 10.0
TOKEN_VARIABLE: Final = "HEADGATE_CONSOLE_TOKEN"
_PAGE: Final = 1000
Command = TypeVar("Command", bound=Callable[..., Any])


def server_option(command: Command) -> Command:
    """Add the flag that says where the console is."""
    return click.option(
        "--server",
        default="",
        show_default=False,
        metavar="URL",
        help=f"Console to ask instead of NATS; its token in {TOKEN_VARIABLE}. By default that of a running `up`.",
    )(command)


class Console:
    """A console that is there.

    Args:
        url: its address, without a path.
    """

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")

    def ask(self, path: str, **query: object) -> Any:
        """Return an answer.

        Raises:
            Unreachable: the console does not answer, or cannot.
            UsageMistake: it does not know the token, or what is asked for cannot be.
            CommandError: there is no such thing.
        """
        asked = {name: str(value).lower() if isinstance(value, bool) else value for name, value in query.items()}
        request = Request(f"{self.url}/api/v1{path}?{urlencode(asked)}")  # noqa: S310 - the URL is one of HTTP
        if token := os.environ.get(TOKEN_VARIABLE):
            request.add_unredirected_header("Authorization", f"Bearer {token}")  # a redirect may lead to another host
        try:
            with urlopen(request, timeout=ASK_S) as answer:  # noqa: S310
                return json.load(answer)
        except HTTPError as error:
            raise _failure(self.url, error) from error
        except (URLError, OSError, ValueError) as error:
            raise Unreachable(f"no console answers at {self.url}: give --server URL, or leave it out") from error

    def items(self, path: str, **query: object) -> Iterator[Any]:
        """Yield the items of all pages; raises what `ask` does."""
        after: int | None = 0
        while after is not None:
            page = self.ask(path, limit=_PAGE, after=after, **query)
            yield from page["items"]
            after = page["next"]


def find_console(server: str, nats_url: str, data_dir: Path, table: str) -> Console | None:
    """Return the console of the flag, else that of a running `up` with this table; None: there is none.

    Raises:
        UsageMistake: the flag is no URL, or another flag names a NATS server.
    """
    if server:
        if not server.startswith(("http://", "https://")):
            raise UsageMistake(f"--server {server!r} is not a URL: expected http://HOST:PORT")
        if nats_url:
            raise UsageMistake("--server and --nats-url exclude each other: the console asks NATS itself")
        return Console(server)
    state = None if nats_url else read_state(data_dir)
    if state is None or not state.console_url or "console" not in state.processes:
        return None
    console = Console(state.console_url)
    try:
        return console if console.ask("/now")["table"] == table else None
    except CommandError:
        return None  # it may have begun a moment ago; NATS is asked


def _failure(url: str, error: HTTPError) -> CommandError:
    try:
        detail = str(json.load(error)["detail"])
    except (ValueError, KeyError, TypeError):
        detail = error.reason
    match error.code:
        case 401 | 403:
            return UsageMistake(f"the console at {url} does not let us in: is {TOKEN_VARIABLE} right?")
        case 400:
            return UsageMistake(detail)
        case 404:
            return CommandError(detail)
        case _:
            return Unreachable(f"the console at {url} answers {error.code}: {detail}")
