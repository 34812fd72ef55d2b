"""What long work shows of itself."""

import gc
import io
import sys

import pytest

from headgate.cli.terminal.progress import long_work


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_a_line_says_what_is_done_and_goes_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with long_work() as progress:
        progress.begin("reading")
    assert terminal.getvalue() == "\r\x1b[Kreading\r\x1b[K"


def test_elsewhere_nothing_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    with long_work() as progress:
        progress.begin("reading")
    assert pipe.getvalue() == ""


def fail() -> None:
    with long_work():
        assert not gc.isenabled()
        raise ValueError("x")


def test_the_collector_rests_meanwhile_and_works_again_after_a_failure() -> None:
    with pytest.raises(ValueError, match="x"):
        fail()
    assert gc.isenabled()
