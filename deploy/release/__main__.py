"""`python -m deploy.release`: everything that a release publishes, made on this machine.

    python -m deploy.release set-version 1.2.3
    python -m deploy.release make --signing-key ~/.ssh/release_ed25519
    python -m deploy.release verify dist/1.2.3 --allowed-signers signers

Nothing is uploaded: `docs/releasing.md` says where each file goes.
"""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
from deploy.release import artifacts, signing
from deploy.release.versions import ROOT, current, set_version


@click.group(help=__doc__)
def cli() -> None:
    """Commands of a release."""


@cli.command("set-version")
@click.argument("version")
def set_version_command(version: str) -> None:
    """Write the version into every file that names it."""
    for path in set_version(version):
        click.echo(path.relative_to(ROOT))


STEPS: dict[str, Callable[[Path, str, str], None]] = {
    "wheels": lambda folder, version, registry: artifacts.wheels(folder),
    "compiled-wheel": lambda folder, version, registry: artifacts.compiled_wheel(folder),
    "chart": lambda folder, version, registry: artifacts.chart(folder, version),
    "images": artifacts.images,
    "sbom": lambda folder, version, registry: artifacts.bill_of_materials(folder, version),
    "krew": lambda folder, version, registry: artifacts.krew(folder, version),
}


@cli.command("make")
@click.option("--without", multiple=True, type=click.Choice(list(STEPS)), help="Leave a step out; repeatable.")
@click.option("--signing-key", type=click.Path(path_type=Path), help="SSH private key that signs the digests.")
@click.option("--registry", default="headgate", show_default=True, help="Where images will be pushed to.")
@click.option("--folder", type=click.Path(path_type=Path), help="Where files go; default: dist/VERSION.")
def make_command(without: tuple[str, ...], signing_key: Path | None, registry: str, folder: Path | None) -> None:
    """Build all parts of the version of this checkout, their digests, and the signature of these."""
    version = current()
    folder = (folder or ROOT / "dist" / version).absolute()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    steps = [name for name in STEPS if name not in without]
    for number, name in enumerate(steps, 1):
        click.echo(f"[{number}/{len(steps)}] {name}")
        STEPS[name](folder, version, registry)
    signing.write_sums(folder)
    if signing_key is not None:
        signing.sign(folder, signing_key)
    click.echo(f"{folder}: {'signed' if signing_key else 'NOT signed: give --signing-key'}")


@cli.command("wheel")
@click.option("--folder", type=click.Path(path_type=Path), help="Where it goes; default: dist/VERSION.")
def wheel_command(folder: Path | None) -> None:
    """Build the gateway's wheel with the proxy compiled, install it in a new environment and load its engine."""
    folder = (folder or ROOT / "dist" / current()).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("headgate_ingress_gateway-*linux*.whl"):
        old.unlink()
    artifacts.compiled_wheel(folder)


@cli.command("verify")
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--allowed-signers", required=True, type=click.Path(path_type=Path, exists=True))
def verify_command(folder: Path, allowed_signers: Path) -> None:
    """Check the files of a release against their digests, and these against their signature."""
    wrong = signing.wrong_sums(folder)
    if not signing.is_signed(folder, allowed_signers):
        wrong.append(f"{signing.SIGNATURE}: missing, or of no key in {allowed_signers}")
    for line in wrong:
        click.echo(line, err=True)
    if wrong:
        raise SystemExit(1)
    click.echo(f"{folder}: all files are those that were signed")


def main() -> int:
    """Run a command; a failure is one line."""
    try:
        cli.main(standalone_mode=False, prog_name="python -m deploy.release")
    except click.ClickException as error:
        click.echo(f"release: {error.format_message()}", err=True)
        return 2
    except (ValueError, artifacts.Missing) as error:
        click.echo(f"release: {error}", err=True)
        return 1
    except subprocess.CalledProcessError as error:
        click.echo(f"release: {error.cmd[0]} failed with {error.returncode}; its words stand above", err=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
