"""Functions of an operator's own, and the page that says what Lua was for."""

import re
from pathlib import Path

import pytest
import yaml

from headgate.common.errors import SettingsError
from headgate.common.plugins.checking import check_use
from headgate.common.table import PluginUse
from headgate.gateway.plugins.kit.hooks import load_hooks

PAGE = Path(__file__).parents[4] / "docs" / "lua.md"


def blocks() -> list[str]:
    """Return the indented blocks of the page."""
    text = PAGE.read_text()
    found = re.findall(r"(?:^ {4}.*\n(?:^\n(?= {4}))*)+", text, re.MULTILINE)
    return [re.sub("^ {4}", "", each, flags=re.MULTILINE) for each in found]


YAML = [each for each in blocks() if "- name:" in each]
PYTHON = re.sub("^ {4}", "", PAGE.read_text().partition("hooks.py\n")[2].partition("\nStart")[0], flags=re.MULTILINE)


def write(folder: Path, text: str, name: str = "hooks.py") -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize("block", YAML)
def test_what_the_page_says_is_what_plugins_take(block: str) -> None:
    uses = yaml.safe_load(re.sub("^--.*", "", block, flags=re.MULTILINE))
    for use in uses:
        check_use(PluginUse(name=use["name"], config=use["config"]))


def test_the_page_has_the_twenty_commonest() -> None:
    assert sum("--" in each for each in YAML) >= 20


def test_the_functions_of_the_page_are_there(tmp_path: Path) -> None:
    assert set(load_hooks(write(tmp_path, PYTHON))) == {"office_hours", "add_tenant", "stamp"}


def test_without_a_file_there_are_none() -> None:
    assert load_hooks(None) == {}


def test_what_begins_with_an_underscore_or_is_imported_is_no_hook(tmp_path: Path) -> None:
    text = "from json import dumps\ndef _own(request): ...\nclass Thing: ...\ndef seen(request): ...\nvalue = 1\n"
    assert set(load_hooks(write(tmp_path, text))) == {"seen"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def broken(:\n", "SyntaxError"),
        ("1 / 0\n", "ZeroDivisionError: division by zero"),
        ("import nowhere_1\n", "nowhere_1"),
    ],
)
def test_a_file_that_cannot_be_run_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(SettingsError) as failure:
        load_hooks(write(tmp_path, text))
    assert said in str(failure.value)
    assert "\n" not in str(failure.value)


def test_a_file_that_is_not_there_or_no_python_says_so(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read: No such file"):
        load_hooks(tmp_path / "hooks.py")
    with pytest.raises(SettingsError, match=r"has to end in \.py"):
        load_hooks(write(tmp_path, "", "hooks.txt"))
