"""`headgate keys`: the key pair that Secrets are sealed to, for gateways and watchers that do not share a folder."""

import json
from pathlib import Path

import click
from nacl.public import PrivateKey

from headgate.cli.terminal.errors import UsageMistake
from headgate.cli.terminal.group import TeachingCommand
from headgate.common.resources import JsonObject
from headgate.common.sealing import PRIVATE_KEY_FILE, PUBLIC_KEY_FILE, key_pair_files, load_or_create_key_pair


@click.command(
    cls=TeachingCommand,
    examples=[
        "headgate keys /etc/headgate/sealing",
        "headgate keys --secret headgate-sealing | kubectl -n headgate apply -f -",
        "headgate keys --fill headgate-generated --password gateway-password    # in a pod",
    ],
    read_more="docs/cli.md",
)
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), required=False)
@click.option("--secret", metavar="NAME", help="Print a Secret of this name instead: another pair with every call.")
@click.option(
    "--fill", metavar="NAME", help="Add what is missing to this Secret of the pod's cluster, which must exist."
)
@click.option(
    "--namespace", "-n", default="", metavar="NAME", help="Namespace of the Secret to fill; by default the pod's own."
)
@click.option(
    "--password",
    "passwords",
    multiple=True,
    metavar="KEY",
    help="With --fill, add a random password under this key; repeatable.",
)
@click.option(
    "--key",
    "private_keys",
    multiple=True,
    metavar="KEY",
    help="With --fill, add a private key under this key, as HEADGATE_ACME_KEY_FILE of translators; repeatable.",
)
@click.option("--pair/--no-pair", default=True, help="With --fill, whether to add a key pair.")
def keys(
    folder: Path | None,
    secret: str | None,
    fill: str | None,
    namespace: str,
    passwords: tuple[str, ...],
    private_keys: tuple[str, ...],
    pair: bool,
) -> None:
    """Make the key pair that private keys and credentials are sealed to: watchers seal, gateways alone open.

    FOLDER gets gateway.key, for HEADGATE_SEALING_PRIVATE_KEYS of all gateways, and gateway.pub, for
    HEADGATE_SEALING_PUBLIC_KEYS of all watchers. A pair that is there already is kept. A Secret has both under these
    names; mount gateway.pub alone into watchers.
    """
    if sum(target is not None for target in (folder, secret, fill)) != 1:
        raise UsageMistake("give one of: a folder for the two files, --secret NAME for a manifest, --fill NAME")
    if fill is not None:
        from headgate.cli.commands.secret_filling import (
            fill_secret,  # its client takes 0.2 s, which files need not wait for
        )

        added = fill_secret(fill, namespace, passwords, private_keys, with_pair=pair)
        click.echo(f"Secret {fill}: " + (f"added {', '.join(added)}" if added else "nothing was missing"))
    elif secret is not None:
        click.echo(json.dumps(_manifest(secret), indent=2))
    elif folder is not None:
        _write(folder)


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
