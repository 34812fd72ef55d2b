"""Every `headgate ...` that a page shows, in a block or in a sentence, is a command with these flags; every variable is
a setting."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from headgate.cli.__main__ import build
from headgate.common.service.settings import ServiceSettings
from headgate.console.settings import ConsoleSettings
from headgate.gateway.settings import GatewaySettings
from headgate.translator.settings import TranslatorSettings
from headgate.watcher.settings import WatcherSettings

ROOT = Path(__file__).parents[3]
PAGES = sorted({ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")})
SERVICES: dict[str, type[ServiceSettings]] = {
    "watcher": WatcherSettings,
    "translator": TranslatorSettings,
    "gateway": GatewaySettings,
    "console": ConsoleSettings,
}
PROGRAM = re.compile(r"(?:\.venv/bin/)?headgate(?:-(watcher|translator|gateway|console))?")
ASSIGNMENT = re.compile(r"[A-Z][A-Z0-9_]*=.*", re.DOTALL)
VARIABLES = {"HEADGATE_CONFIG", "HEADGATE_CONSOLE_TOKEN", "HEADGATE_ENGINE", "HEADGATE_TAG"}
"""Those that are no setting: where settings are, a token for the console, which engine and which images run."""
STREAMS = {"HEADGATE_DELTAS", "HEADGATE_STATUS", "HEADGATE_TABLES", "HEADGATE_GATEWAYS"}


def snippets(text: str) -> Iterator[str]:
    """Yield the lines of code blocks, continued ones as one, and the code within sentences."""
    text = text.replace("\\\n", " ")
    is_fenced = False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            is_fenced = not is_fenced
        elif is_fenced or line.startswith("    "):
            yield line.strip().removeprefix("$ ")
        else:
            yield from re.findall(r"`([^`]+)`", line)


def commands(page: Path) -> Iterator[list[str]]:
    """Yield the words of each call of the command, from its name on."""
    for snippet in snippets(page.read_text()):
        for part in re.split(r"[|;]|&&| & |\$\(", re.sub(r"(?:^|\s)#.*", "", snippet)):
            if "headgate" not in part:
                continue
            try:
                words = shlex.split(part.replace("...", "").strip(" &)"))
            except ValueError:
                continue  # a quotation that a bar has cut: nothing of ours is written so
            while words and ASSIGNMENT.fullmatch(words[0]):
                words.pop(0)
            if words and PROGRAM.fullmatch(words[0]) and len(words) + words[0].count("-") > 1:
                yield words


def faults(words: list[str]) -> list[str]:
    """Say what of a call does not exist."""
    service = PROGRAM.fullmatch(words[0])[1]  # type: ignore[index]
    name, arguments = (service, words[1:]) if service else (words[1], words[2:])
    flags = {word.split("=")[0] for word in arguments if re.match(r"--?[a-zA-Z]", word)}
    if name in SERVICES:
        known = {field.replace("_", "-") for field in SERVICES[name].model_fields} | {"config", "help"}
        return [flag for flag in flags if flag.lstrip("-").removeprefix("no-") not in known]
    group = build()
    if name in ("--help", "--version", "COMMAND"):
        return []
    command = group.get_command(click.Context(group), name)
    while isinstance(command, click.Group) and arguments and not arguments[0].startswith("-"):
        command = command.get_command(click.Context(command), arguments.pop(0))
    if command is None:
        return [f"no command {name}"]
    options = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    return [flag for flag in flags if flag not in options | {"--help", "-h"}]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_and_flags_that_a_page_shows_exist(page: Path) -> None:
    assert {shlex.join(words): found for words in commands(page) if (found := faults(words))} == {}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_variables_that_a_page_names_are_settings(page: Path) -> None:
    known = {f"HEADGATE_{field.upper()}" for settings in SERVICES.values() for field in settings.model_fields}
    named = set(re.findall(r"\bHEADGATE_[A-Z_]*[A-Z]\b", page.read_text()))
    assert named - known - VARIABLES - STREAMS == set()


def test_slips_are_found() -> None:
    assert faults(["headgate", "set-cluster", "west", "--wieght", "10"]) == ["--wieght"]
    assert faults(["headgate", "rolback", "57"]) == ["no command rolback"]
    assert faults(["headgate-gateway", "--no-https", "--worker=4"]) == ["--worker"]
    assert faults(["headgate", "rollout", "promote", "--resaon=x"]) == ["--resaon"]


def test_blocks_and_sentences_are_read(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "Say `headgate routes --jsn` or\n\n    $ A=1 headgate drain x \\\n        --by=y | jq .   # --later\n"
    )
    assert [*commands(page)] == [["headgate", "routes", "--jsn"], ["headgate", "drain", "x", "--by=y"]]
