"""The command as a whole: help, version, and mistakes in one line."""

import subprocess
import sys

import pytest

from headgate.cli.__main__ import SECTIONS, build, main
from headgate.cli.terminal.errors import ExitCode, exit_code_of
from headgate.operations.errors import InvalidRequest, OperationError, StoresUnreachable

SERVICES = ("watcher", "translator", "gateway", "console")
"""Their help is that of their settings."""


@pytest.mark.parametrize("name", [name for section in SECTIONS.values() for name in section])
def test_every_command_that_the_help_lists_exists(name: str) -> None:
    command = build().get_command(None, name)  # type: ignore[arg-type]
    assert command is not None


@pytest.mark.parametrize("name", [name for section in SECTIONS.values() for name in section if name not in SERVICES])
def test_every_help_has_an_example_and_says_where_to_read_more(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    shown = capsys.readouterr().out
    assert f"headgate {name}" in shown.partition("Examples:")[2]
    assert "Read more: docs/" in shown


def test_help_imports_no_service_and_no_server_library() -> None:
    code = "import sys, headgate.cli.__main__ as m; m.main(['--help']); print(sorted(sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for heavy in ("aiohttp", "pydantic", "nats", "headgate.gateway", "kubernetes_asyncio", "asyncio"):
        assert f"'{heavy}'" not in done.stderr


def test_the_help_says_what_commands_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())  # lines are broken where the terminal ends
    assert "why every request goes where it goes" in shown
    assert "until `unpin`" in shown


def test_no_command_prints_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "Ask a running Headgate:" in capsys.readouterr().out


def test_version_is_that_of_the_distribution(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("headgate 0.")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["uo"], "No such command 'uo'"),
        (["up", "--http-port", "eighty"], "--http-port"),
        (["up"], "nothing to serve: give --route HOST=ADDRESS:PORT"),
        (["check"], "Missing argument 'PATH...'"),
        (["check", "no/such/file.yaml"], "does not exist"),
        (["explain", "GET", "ftp://x/"], "is not a URL"),
        (["explain", "GET", "http://[::1/"], "is not a URL"),
        (["explain", "GET", "http://x/", "-H", "Host"], "expected 'NAME: VALUE'"),
    ],
)
def test_a_mistake_is_one_line_with_exit_code_2(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1
    assert told in shown


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OperationError("no such revision"), ExitCode.NEGATIVE),
        (InvalidRequest("no such name"), ExitCode.USAGE),
        (StoresUnreachable("no answer"), ExitCode.UNREACHABLE),
    ],
)
def test_an_error_of_the_shared_library_says_how_the_command_exits(error: OperationError, expected: ExitCode) -> None:
    assert exit_code_of(error) is expected


def test_a_service_gets_its_arguments_untouched(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["gateway", "--http-port", "eighty"])
    assert ended.value.code == 2
    assert "--http-port" in capsys.readouterr().err


def test_a_service_explains_its_own_flags(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["gateway", "--help"])
    assert ended.value.code == 0
    assert "--access-log" in capsys.readouterr().out
