"""What a newcomer types: wrong names, completion, the manual, colours, narrow terminals."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import click
import pytest

from headgate.cli.__main__ import SECTIONS, main
from headgate.cli.terminal import rendering


@pytest.mark.parametrize(("typed", "meant"), [("statsu", "status"), ("explan", "explain"), ("roll-back", "rollback")])
def test_a_misspelt_command_names_the_one_that_was_meant(
    typed: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([typed]) == 2
    said = capsys.readouterr().err
    assert f"No such command {typed!r}. Did you mean {meant!r}" in said
    assert said.count("\n") == 1


def test_a_command_like_no_other_names_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["xyzzy"]) == 2
    assert "Did you mean" not in capsys.readouterr().err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_printed_without_that_shell(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert f"_HEADGATE_COMPLETE={shell}_complete" in capsys.readouterr().out


def test_bash_completes_commands() -> None:
    script = """
        headgate() { "$PYTHON" -m headgate.cli "$@"; }
        eval "$(headgate completion bash)"
        COMP_WORDS=(headgate exp) COMP_CWORD=1
        export COMP_CWORD; COMP_WORDS="${COMP_WORDS[*]}" _HEADGATE_COMPLETE=bash_complete "$PYTHON" -m headgate.cli
    """
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, timeout=60, check=True, env={"PYTHON": sys.executable}
    )
    assert done.stdout.split() == ["plain,explain"]


def test_the_manual_has_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["man"]) == 0
    page = capsys.readouterr().out
    names = [name for section in SECTIONS.values() for name in section]
    assert [name for name in names if f".SS headgate {name.replace('-', chr(92) + '-')}" not in page] == []
    macros = {".TH", ".SH", ".SS", ".TP", ".B", ".PP", ".nf", ".fi"}
    assert {line.split()[0] for line in page.splitlines() if line.startswith(".")} == macros


def printed(rows: Sequence[Sequence[object]], columns: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "terminal_width", lambda: columns)
    rendering.print_table(("NAME", "WHY"), rows)


def test_tables_fit_the_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    why = "Service shop/web is not there, create it or name another one"
    printed([("web", why)], 40, monkeypatch)
    lines = click.unstyle(capsys.readouterr().out).splitlines()
    assert all(len(line) <= 40 for line in lines)
    assert " ".join(line[6:] for line in lines[1:]) == why


def test_tables_are_not_wrapped_for_programs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    printed([("web", "x " * 200)], None, monkeypatch)
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_columns_are_no_narrower_than_a_word() -> None:
    assert rendering.fitting([10, 300], 8) == [10, 16]
    assert rendering.fitting([10, 30], 80) == [10, 30]


@pytest.mark.parametrize(("variable", "is_coloured"), [("NO_COLOR", False), ("FORCE_COLOR", True)])
def test_colours_are_a_matter_of_the_environment(
    variable: str,
    is_coloured: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    (tmp_path / "a.yaml").write_text(
        "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: a, annotations: {"
        "nginx.ingress.kubernetes.io/proxy-buffer-size: 8k}}\nspec: {}\n"
    )
    monkeypatch.setenv(variable, "1")
    assert main(["audit", str(tmp_path)]) == 1
    assert ("\x1b[33mignored" in capsys.readouterr().out) is is_coloured
