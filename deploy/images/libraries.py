"""A step of the Dockerfile: what services depend on, and nothing of ours, so that our changes leave this layer alone.

    python3 libraries.py fetch PYPROJECT...             what these projects need, to /wheels
    python3 libraries.py install FOLDER PYPROJECT...    the same, then from there into a folder
    python3 libraries.py tools PYPROJECT...             what builds these projects, into this interpreter

Only what a project needs is fetched, in the version of requirements.lock and checked against its digest there; which
libraries need which others stands in the lock file, too (`# via`). From a folder is taken away what only debuggers read
of compiled modules: zstandard, uvloop and brotli come with it, and are a tenth without.
"""

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

LOCK = Path("requirements.lock")
WHEELS = Path("/wheels")
OURS = re.compile(r"headgate\b")
_ENTRY = re.compile(r"^([a-z0-9-]+)==.*(?:\n[ ]+.*)*", re.MULTILINE)
_PARENT = re.compile(r"^ +#(?: via)? +([a-z0-9-]+)$", re.MULTILINE)


class Locked(NamedTuple):
    """An entry of the lock file."""

    text: str
    needed_by: frozenset[str]


def read_lock(text: str) -> dict[str, Locked]:
    """Return the entries of a lock file by name."""
    return {match[1]: Locked(match[0], frozenset(_PARENT.findall(match[0]))) for match in _ENTRY.finditer(text)}


def closure(wanted: Iterable[str], lock: Mapping[str, Locked]) -> list[str]:
    """Return these names and all that they need, as the lock file has it.

    Raises:
        KeyError: the lock file lacks one of them.
    """
    found = set(wanted)
    if missing := sorted(found - lock.keys()):
        raise KeyError(f"{LOCK} lacks {', '.join(missing)}: add it to requirements.in, then `make lock`")
    while more := {name for name, entry in lock.items() if entry.needed_by & found} - found:
        found |= more
    return sorted(found)


def name_of(requirement: str) -> str:
    """Return the normalized name in a requirement."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]).lower()


def dependencies(project: Path) -> list[str]:
    """Return what a pyproject.toml depends on, but for projects of ours."""
    wanted: list[str] = tomllib.loads(project.read_text())["project"]["dependencies"]
    return [each for each in wanted if not OURS.match(each)]


def build_requirements(project: Path) -> list[str]:
    """Return what builds the project of a pyproject.toml."""
    wanted: list[str] = tomllib.loads(project.read_text())["build-system"]["requires"]
    return wanted


def fetch(requirements: Iterable[str]) -> None:
    """Put wheels of these, and of what they need, to the others."""
    lock = read_lock(LOCK.read_text())
    here = {name_of(path.name.split("-")[0]) for path in WHEELS.glob("*.whl")}
    missing = [name for name in closure(map(name_of, requirements), lock) if name not in here]
    if missing:
        chosen = WHEELS / "chosen.lock"
        WHEELS.mkdir(exist_ok=True)
        chosen.write_text("\n".join(lock[name].text for name in missing))
        pip("wheel", "--no-deps", "--require-hashes", "--requirement", str(chosen), "--wheel-dir", str(WHEELS))
        chosen.unlink()


def pip(command: str, *arguments: str) -> None:
    """Run pip; its failure ends this program."""
    subprocess.run([sys.executable, "-m", "pip", command, "--quiet", *arguments], check=True)  # noqa: S603 - all of it is ours


def slim(folder: Path) -> None:
    """Take away what only debuggers read, and the sources that the wheel of PCRE2 brings along."""
    shutil.rmtree(folder / "src", ignore_errors=True)
    modules = [str(path) for path in folder.rglob("*.so*") if path.is_file() and is_elf(path)]
    subprocess.run(["strip", "--strip-debug", *modules], check=True)  # noqa: S603, S607 - the image's own


def is_elf(path: Path) -> bool:
    """Whether a file is a module, and is not merely called like one."""
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def main(step: str, *arguments: str) -> None:
    """Do one of the three steps."""
    paths = [Path(each) for each in arguments]
    target = paths.pop(0) if step == "install" else None
    read: Callable[[Path], list[str]] = build_requirements if step == "tools" else dependencies
    requirements = sorted({each for path in paths for each in read(path)})
    fetch(requirements)
    if step != "fetch":
        into = ["--target", str(target)] if target else []
        pip("install", "--no-index", "--find-links", str(WHEELS), *into, *requirements)
    if target:
        slim(target)


if __name__ == "__main__":
    main(*sys.argv[1:])
