"""A step of the Dockerfile: what services depend on, and nothing of ours, so that our changes leave this layer alone.

    python3 libraries.py FOLDER PYPROJECT...

installs from /wheels, where the locked version of each is the only one, and takes away what only debuggers read of
compiled modules: zstandard, uvloop and brotli come with it, and are a tenth without.
"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

OURS = re.compile(r"headgate\b")


def dependencies(projects: list[Path]) -> list[str]:
    """Return the requirements of some pyproject.toml files, but for those on each other."""
    wanted = {each for path in projects for each in tomllib.loads(path.read_text())["project"]["dependencies"]}
    return sorted(each for each in wanted if not OURS.match(each))


def main(folder: Path, *projects: Path) -> None:
    """Install the dependencies into a folder."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--find-links", "/wheels"]
    subprocess.run([*pip, "--target", str(folder), *dependencies(list(projects))], check=True)  # noqa: S603 - all of it is ours
    modules = [str(path) for path in folder.rglob("*.so*") if path.is_file()]
    subprocess.run(["strip", "--strip-debug", *modules], check=True)  # noqa: S603, S607 - the image's own


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
