"""`headgate sealed`: to which keys a table's private keys and credentials are sealed, so that keys can be rotated.

Watchers seal to the keys in their settings, and gateways open with all keys that they hold. Before the old key goes,
every value must be sealed to the new one: values of a forgotten cluster's watchers would be lost with the old key.
"""

from collections.abc import Sequence
from pathlib import Path

import click

from headgate.cli.running.store import ask_stores, store_options
from headgate.cli.terminal.errors import ExitCode, UsageMistake
from headgate.cli.terminal.group import TeachingCommand
from headgate.cli.terminal.rendering import print_json, print_table
from headgate.common.errors import SealingError
from headgate.common.sealing import parse_public_key, recipient_id
from headgate.operations.tables.sealed import Sealed, read_sealed
from headgate.operations.wording import count_of

SHOWN = 20
_NAME_DIGITS = 16


@click.command(
    cls=TeachingCommand,
    examples=[
        "headgate sealed",
        "headgate sealed --without /etc/headgate/old/gateway.pub && echo 'the old key may go'",
    ],
    read_more="docs/operations.md",
)
@click.option(
    "--without",
    "without",
    multiple=True,
    metavar="KEY",
    help="List values that only this key opens: a public key, its file, or its name as shown here; repeatable.",
)
@store_options
def sealed(without: tuple[str, ...], nats_url: str, data_dir: Path, table: str, as_json: bool) -> int:
    """List the keys to which private keys and credentials of the published table are sealed.

    The exit code is 1 if a value could not be opened any more without the keys that --without names.
    """
    dropped = frozenset(map(_read_name, without))
    version, values = ask_stores(nats_url, data_dir, lambda stores: read_sealed(stores.snapshots, table))
    names = sorted({name for value in values for name in value.recipients})
    lost = sorted({value.entry for value in values if value.recipients <= dropped}) if dropped else []
    rows = [(name, *_counts(name, values)) for name in names]
    if as_json:
        keys = [{"key": name, "values": count, "alone": alone} for name, count, alone in rows]
        print_json({"table": table, "version": version, "keys": keys, "lost": lost})
    elif dropped:
        _tell_lost(lost, len(values))
    else:
        print_table(("KEY", "VALUES", "OPENED BY NO OTHER"), rows)
    return ExitCode.NEGATIVE if lost else ExitCode.OK


def _tell_lost(lost: Sequence[str], count: int) -> None:
    if not lost:
        click.echo(f"{count_of(count, 'value')}: each is opened by another key" if count else "nothing is sealed")
        return
    for entry in lost[:SHOWN]:
        click.echo(f"opened by no other key: {entry}")
    if len(lost) > SHOWN:
        click.echo(f"and {len(lost) - SHOWN} more")


def _counts(name: str, values: Sequence[Sealed]) -> tuple[int, int]:
    theirs = [value for value in values if name in value.recipients]
    return len(theirs), sum(len(value.recipients) == 1 for value in theirs)


def _read_name(text: str) -> str:
    path = Path(text)
    try:
        if path.is_file():
            return recipient_id(parse_public_key(path.read_text()))
        return text if len(text) == _NAME_DIGITS else recipient_id(parse_public_key(text))
    except (OSError, UnicodeDecodeError, SealingError) as error:
        raise UsageMistake(
            f"--without: {text!r} is neither a public key in base64 nor a file with one nor the name of one: {error}"
        ) from error
