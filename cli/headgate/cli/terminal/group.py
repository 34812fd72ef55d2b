"""A click group that imports a command only when it is used, so that `headgate --help` is quick.

The one-line summaries therefore stand here and not with the commands.
"""

import difflib
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import click

from headgate.common.service.uncollected import uncollected

COMMANDS = "headgate.cli.commands"


class LazyCommand(NamedTuple):
    """Where a command is, and what the list of commands says of it."""

    target: str
    """`module:attribute` of a `click.Command`; a module that begins with a dot is one of `COMMANDS`."""
    summary: str


class LazyGroup(click.Group):
    """Commands under headings, imported on use."""

    def __init__(self, *, sections: Mapping[str, Mapping[str, LazyCommand]], help: str, epilog: str) -> None:
        super().__init__(
            name="headgate",
            help=help,
            epilog=epilog,
            no_args_is_help=True,
            context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        )
        self._sections = sections
        self._commands = {name: command for section in sections.values() for name, command in section.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all commands, in the order of the help."""
        return list(self._commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; None if there is none of that name."""
        found = self._commands.get(cmd_name)
        if found is None:
            return None
        module, _, attribute = found.target.partition(":")
        with uncollected():
            command = getattr(import_module(module, COMMANDS), attribute)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command; an unknown one is reported with those that are spelt alike."""
        if args and args[0] not in self._commands and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], self._commands, 3)
            hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
            ctx.fail(f"No such command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)

    @property
    def sections(self) -> Mapping[str, Mapping[str, LazyCommand]]:
        """Commands by heading."""
        return self._sections

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands with their summaries, section by section."""
        for heading, commands in self._sections.items():
            with formatter.section(heading):
                formatter.write_dl([(name, command.summary) for name, command in commands.items()])


class TeachingCommand(click.Command):
    """A command whose help ends with examples and a place to read more."""

    def __init__(self, name: str, *, examples: Sequence[str] = (), read_more: str = "", **settings: Any) -> None:
        super().__init__(name, context_settings={"show_default": True}, **settings)
        self.examples = examples
        self._read_more = read_more

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples as they are typed, unwrapped."""
        if self.examples:
            with formatter.section("Examples"):
                for example in self.examples:
                    formatter.write(f"{'':>{formatter.current_indent}}{example}\n")
        if self._read_more:
            formatter.write_paragraph()
            formatter.write_text(f"Read more: {self._read_more}")
