"""The errors of the command.

CommandError                one line for the user: what is wrong and what to do; carries the exit code
├── UsageMistake            the command line or the surroundings (a port, a folder) must be changed first
└── Unreachable             a gateway or a store did not answer

Errors of `headgate.operations` are for the user too; `exit_code_of` says what the command exits with.

Exit codes are part of the interface and documented in docs/cli.md.
"""

from enum import IntEnum

from headgate.operations.errors import InvalidRequest, OperationError, StoresUnreachable


class ExitCode(IntEnum):
    """What the command's exit code says."""

    OK = 0
    NEGATIVE = 1
    """The question was answered, and the answer is no: manifests with errors, a request that no route takes."""
    USAGE = 2
    """The command line or its surroundings must be changed before this can work."""
    UNREACHABLE = 3
    """A gateway or a store did not answer."""
    INTERRUPTED = 130
    """Ended by Ctrl-C (128 + SIGINT), as shells say it."""


class CommandError(Exception):
    """A failure, whose text is one line for the user."""

    exit_code = ExitCode.NEGATIVE


class UsageMistake(CommandError):
    """The command line or its surroundings must be changed first."""

    exit_code = ExitCode.USAGE


class Unreachable(CommandError):
    """A gateway or a store did not answer."""

    exit_code = ExitCode.UNREACHABLE


def exit_code_of(error: OperationError) -> ExitCode:
    """Return what the command exits with after an error of the shared library."""
    match error:
        case InvalidRequest():
            return ExitCode.USAGE
        case StoresUnreachable():
            return ExitCode.UNREACHABLE
        case _:
            return ExitCode.NEGATIVE
