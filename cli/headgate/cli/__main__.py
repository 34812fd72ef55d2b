"""Entry point of the `headgate` command."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from headgate.cli.terminal.errors import CommandError, ExitCode, exit_code_of
from headgate.cli.terminal.group import LazyCommand, LazyGroup
from headgate.common.errors import HeadgateError
from headgate.operations.errors import OperationError

SECTIONS = {
    "Every day": {
        "up": LazyCommand("headgate.cli.up.command:up", "Run everything on this machine, NATS server included."),
        "check": LazyCommand(".check:check", "Find mistakes in manifests: file, object, field and reason."),
        "explain": LazyCommand(".explain:explain", "Say which route takes a request and why."),
        "status": LazyCommand(".status:status", "Say what runs, which revision is applied, what is wrong."),
        "history": LazyCommand(".history:history", "List revisions: when, which objects, by whom, which hosts."),
    },
    "Ask a running Headgate": {
        "routes": LazyCommand(".routes:routes", "List what is served: hosts, paths, backends, sources."),
        "top": LazyCommand(".live.top:top", "Show what traffic there is now: rates, failures, durations."),
        "tail": LazyCommand(".live.tail:tail", "Print finished requests of all gateways, as they come."),
        "endpoints": LazyCommand(".live.endpoints:endpoints", "List endpoints that get no requests, and why."),
        "consumers": LazyCommand(".consumers:consumers", "List whom routes recognise, and by what."),
        "certificates": LazyCommand(
            ".certificates:certificates", "List when certificates end, their hosts and Secrets."
        ),
        "sealed": LazyCommand(".sealed:sealed", "List the keys that private keys are sealed to."),
    },
    "Run a service": {
        "watcher": LazyCommand(".services:watcher", "Run a watcher: changes of one cluster or of folders."),
        "translator": LazyCommand(".services:translator", "Run a translator: changes become route tables."),
        "gateway": LazyCommand(".services:gateway", "Run a gateway: serve traffic by the route table."),
        "console": LazyCommand(".services:console", "Run the console: pages and an HTTP API over all of it."),
        "keys": LazyCommand(".keys:keys", "Make the key pair that Secrets are sealed to."),
        "demo-backend": LazyCommand(".demo_backend:demo_backend", "Run a small server that echoes JSON."),
    },
    "Ask about manifests, before anything runs": {
        "audit": LazyCommand(
            ".audit:audit",
            "Say what a move costs, of files or a cluster: what is honoured, approximated, ignored, refused.",
        ),
        "convert": LazyCommand(".convert:convert", "Turn Ingresses and other objects into manifests of Gateway API."),
    },
    "Look back, go back, look ahead": {
        "diff": LazyCommand(".diff:diff", "Say what differs between two revisions."),
        "rollback": LazyCommand(".rollback:rollback", "Serve an old revision again, until `unpin`."),
        "unpin": LazyCommand(".rollback:unpin", "Serve what the objects say now again."),
        "rollout": LazyCommand(".rollout:rollout", "Say how far a changed table has got; promote it, or take it back."),
        "plan": LazyCommand(
            ".plan:plan", "Say what manifests would change in the live table, before they are applied."
        ),
        "events": LazyCommand(".events:events", "List what happened to objects, and follow it."),
    },
    "Decide what clusters get": {
        "clusters": LazyCommand(".clusters:clusters", "List clusters: share, rank, drained by whom, last change."),
        "drain": LazyCommand(".clusters:drain", "Give a cluster no new requests."),
        "undrain": LazyCommand(".clusters:undrain", "Give it requests again."),
        "set-cluster": LazyCommand(".clusters:set_cluster", "Set a cluster's weight, rank and gateways."),
        "remove-cluster": LazyCommand(
            ".removal:remove_cluster", "Take a cluster out of all tables that is gone for good."
        ),
    },
    "Set up the shell": {
        "completion": LazyCommand(".completion:completion", "Print what completes commands in a shell."),
        "man": LazyCommand(".manual:man", "Print the manual page, for `man -l -`."),
    },
}

HELP = """Headgate: an ingress controller and API gateway that says why every request goes where it goes.

Start with:  headgate up --manifests examples/quickstart
"""

EPILOG = (
    "Exit codes: 0 done; 1 the answer is no (errors in manifests, no route); 2 the command line must be changed; "
    "3 a gateway or store did not answer. Read more: docs/cli.md"
)


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from headgate.common.release import release

        click.echo(f"headgate {release()}")
        ctx.exit()


def build() -> click.Group:
    """Make the command."""
    group = LazyGroup(sections=SECTIONS, help=HELP, epilog=EPILOG)
    group.params.append(
        click.Option(
            ["--version"],
            is_flag=True,
            expose_value=False,
            is_eager=True,
            callback=_print_version,
            help="Print the version and exit.",
        )
    )
    return group


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code; every expected failure is one line on stderr."""
    try:
        result = build().main(
            args=list(sys.argv[1:] if argv is None else argv),
            prog_name=_program(),
            standalone_mode=False,
            color=_wants_colour(),
        )
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return ExitCode.OK
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx else "headgate"
        return _fail(f"{error.format_message()} See: {where} --help", ExitCode.USAGE)
    except click.ClickException as error:
        return _fail(error.format_message(), ExitCode.USAGE)
    except click.Abort:
        return ExitCode.INTERRUPTED
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader (head, less) has seen enough. The interpreter would complain when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.OK
    except CommandError as error:
        return _fail(str(error), error.exit_code)
    except OperationError as error:
        return _fail(str(error), exit_code_of(error))
    except HeadgateError as error:
        return _fail(str(error), ExitCode.USAGE)
    return result if isinstance(result, int) else ExitCode.OK


def _program() -> str:
    """Return what the user typed: kubectl runs plugins under their own name."""
    return "kubectl headgate" if Path(sys.argv[0]).name == "kubectl-headgate" else "headgate"


def _wants_colour() -> bool | None:
    """Heed NO_COLOR (no-color.org) and FORCE_COLOR; None: as the output is a terminal or not."""
    if os.environ.get("NO_COLOR"):
        return False
    return True if os.environ.get("FORCE_COLOR") else None


def _fail(message: str, code: ExitCode) -> int:
    click.echo(f"headgate: {message}", err=True)
    return code


if __name__ == "__main__":
    raise SystemExit(main())
