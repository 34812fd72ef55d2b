"""`headgate completion`: what makes a shell complete commands, flags and files."""

import click
from click.shell_completion import get_completion_class

from headgate.cli.terminal.group import TeachingCommand


@click.command(
    cls=TeachingCommand,
    examples=[
        'eval "$(headgate completion bash)"                                        # in ~/.bashrc',
        'eval "$(headgate completion zsh)"                                         # in ~/.zshrc',
        "headgate completion fish > ~/.config/fish/completions/headgate.fish",
    ],
    read_more="docs/cli.md",
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print what completes commands, flags and files in bash (4.4 or newer), zsh or fish."""
    kind = get_completion_class(shell)
    assert kind is not None
    # Not `source()`, which runs the shell to ask for its version: this may be printed for another machine.
    made = kind(ctx.find_root().command, {}, "headgate", "_HEADGATE_COMPLETE")
    click.echo(made.source_template % made.source_vars())
