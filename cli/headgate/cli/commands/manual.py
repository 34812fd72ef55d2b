"""`headgate man`: the manual page, made from what `--help` says."""

import re
from collections.abc import Iterator

import click

from headgate.cli.terminal.group import LazyGroup, TeachingCommand
from headgate.common.release import release


@click.command(
    cls=TeachingCommand,
    examples=[
        "headgate man | man -l -",
        "headgate man | sudo tee /usr/local/share/man/man1/headgate.1 > /dev/null",
    ],
    read_more="docs/cli.md",
)
@click.pass_context
def man(ctx: click.Context) -> None:
    """Print the manual page of the command and all its subcommands, as troff."""
    root = ctx.find_root()
    assert isinstance(root.command, LazyGroup)
    click.echo("\n".join(_page(root.command, root)))


def _page(group: LazyGroup, root: click.Context) -> Iterator[str]:
    yield f'.TH HEADGATE 1 "" "Headgate {release()}"'
    yield from (".SH NAME", "headgate \\- ingress controller and API gateway")
    yield from (".SH SYNOPSIS", ".B headgate", "COMMAND [OPTIONS]")
    yield from (".SH DESCRIPTION", _escaped(group.help or ""))
    for heading, commands in group.sections.items():
        yield f".SH {_escaped(heading).upper()}"
        for name in commands:
            command = group.get_command(root, name)
            assert command is not None
            yield from _command(command, click.Context(command, info_name=name, parent=root))
    yield from (".SH EXIT STATUS", _escaped(group.epilog or ""))


def _command(command: click.Command, ctx: click.Context) -> Iterator[str]:
    yield f".SS {_escaped(' '.join([ctx.command_path, *command.collect_usage_pieces(ctx)]))}"
    yield _escaped(command.help or command.get_short_help_str())
    for parameter in command.get_params(ctx):
        record = parameter.get_help_record(ctx)
        if record is not None:
            yield from (".TP", f".B {_escaped(record[0])}", _escaped(record[1]) or "\\&")
    examples = command.examples if isinstance(command, TeachingCommand) else ()
    if examples:
        yield from (".PP", "Examples:", ".nf", *(f"    {_escaped(example)}" for example in examples), ".fi")


_WORDS = re.compile(r"[ \t]*\n[ \t]*")


def _escaped(text: str) -> str:
    """Write text so that troff prints it as it is; paragraphs stay, lines within them are joined."""
    paragraphs = [_WORDS.sub(" ", part.strip()) for part in text.split("\n\n")]
    escaped = [part.replace("\\", "\\e").replace("-", "\\-") for part in paragraphs if part]
    return "\n.PP\n".join(f"\\&{part}" if part[:1] in (".", "'") else part for part in escaped)
