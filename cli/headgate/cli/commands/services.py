"""`headgate watcher`, `translator`, `gateway` and `console`: the same as `headgate-watcher` and so on.

The arguments go through untouched, so that each service's settings are defined in one place, its own.
"""

from collections.abc import Callable
from importlib import import_module

import click


def _pass_through(service: str) -> click.Command:
    def run(arguments: tuple[str, ...]) -> None:
        main: Callable[[list[str]], int] = import_module(f"headgate.{service}.__main__").main
        raise SystemExit(main(list(arguments)))

    return click.Command(
        service,
        callback=run,
        params=[click.Argument(["arguments"], nargs=-1, type=click.UNPROCESSED)],
        add_help_option=False,
        context_settings={"ignore_unknown_options": True, "help_option_names": []},
    )


watcher = _pass_through("watcher")
translator = _pass_through("translator")
gateway = _pass_through("gateway")
console = _pass_through("console")
