"""`headgate keys`: the key pair that Secrets are sealed to, for gateways and watchers that do not share a folder."""

import json
from pathlib import Path

import click
from nacl.public import PrivateKey

from headgate.cli.errors import UsageMistake
from headgate.cli.group import TeachingCommand
from headgate.common.resources import JsonObject
from headgate.common.sealing import PRIVATE_KEY_FILE, PUBLIC_KEY_FILE, key_pair_files, load_or_create_key_pair


@click.command(
    cls=TeachingCommand,
    examples=[
        "headgate keys /etc/headgate/sealing",
        "headgate keys --secret headgate-sealing | kubectl -n headgate apply -f -",
    ],
    read_more="docs/cli.md",
)
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), required=False)
@click.option("--secret", metavar="NAME", help="Print a Secret of this name instead: another pair with every call.")
def keys(folder: Path | None, secret: str | None) -> None:
    """Make the key pair that private keys and credentials are sealed to: watchers seal, gateways alone open.

    FOLDER gets gateway.key, for HEADGATE_SEALING_PRIVATE_KEYS of all gateways, and gateway.pub, for
    HEADGATE_SEALING_PUBLIC_KEYS of all watchers. A pair that is there already is kept. The Secret has both under
    these names; mount gateway.pub alone into watchers.
    """
    if (folder is None) == (secret is None):
        raise UsageMistake("give a folder for the two files, or --secret NAME for a manifest on standard output")
    if folder is not None:
        _write(folder)
    else:
        click.echo(json.dumps(_manifest(str(secret)), indent=2))


def _write(folder: Path) -> None:
    is_new = not (folder / PRIVATE_KEY_FILE).exists()
    try:
        load_or_create_key_pair(folder)
    except OSError as error:
        raise UsageMistake(f"no key pair could be written to {folder}: {error.strerror}") from error
    click.echo(f"{folder / PRIVATE_KEY_FILE} {'made' if is_new else 'kept'}; its public half is {PUBLIC_KEY_FILE}")


def _manifest(name: str) -> JsonObject:
    files = key_pair_files(PrivateKey.generate())
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "type": "Opaque",
        "stringData": {file: content.decode() for file, content in files.items()},
    }
